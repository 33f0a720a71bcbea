/** Whether a payment was made, according to a node: a yes or a no counts only from a node that can know. */
import { expect, test } from 'vitest'
import { isPaid } from '../../../src/payments/payer.ts'

const address = (digit: string) => `0x${digit.repeat(40)}`
const validUntil = 1_795_200_060
const hash = `0x${'ab'.repeat(32)}`
const receipt = { reference: { hash }, validUntil, network: 'eip155:42431' }
const authorization = {
  reference: { from: address('1'), nonce: `0x${'cd'.repeat(32)}`, asset: address('2') },
  validUntil,
  network: 'eip155:42431',
}
const transfer = {
  reference: { asset: address('2'), from: address('1'), to: address('3'), memo: hash },
  validUntil,
  network: 'eip155:42431',
}
const word = (digit: string) => `0x${digit.padStart(64, '0')}`

/** A healthy node with these answers in place of its own; null: no answer. */
function node(answers: Readonly<Record<string, unknown>>, at = validUntil + 60) {
  const all: Record<string, unknown> = {
    eth_chainId: '0xa5bf',
    eth_getBlockByNumber: { number: '0x2000', timestamp: `0x${at.toString(16)}` },
    ...answers,
  }
  return async (method: string) => (all[method] === undefined ? undefined : { result: all[method] })
}

test.each([
  ['a receipt', receipt, { eth_getTransactionReceipt: { status: '0x1' } }, true],
  ['a receipt of what failed', receipt, { eth_getTransactionReceipt: { status: '0x0' } }, false],
  ['no receipt', receipt, { eth_getTransactionReceipt: null }, false],
  ['nothing about a receipt', receipt, {}, undefined],
  ['a nonce that is used', authorization, { eth_call: word('1') }, true],
  ['a nonce that is not', authorization, { eth_call: word('0') }, false],
  ['no contract there', authorization, { eth_call: '0x' }, undefined],
  ['a transfer', transfer, { eth_getLogs: [{}] }, true],
  ['no transfer', transfer, { eth_getLogs: [] }, false],
  ['no logs of so long', transfer, {}, undefined],
  ['another network', receipt, { eth_chainId: '0x1', eth_getTransactionReceipt: { status: '0x1' } }, undefined],
  ['no block', receipt, { eth_getBlockByNumber: null, eth_getTransactionReceipt: null }, undefined],
] as const)('a node that has %s', async (_what, payment, answers, paid) => {
  expect(await isPaid(node(answers), payment)).toBe(paid)
})

test('a node that is behind is believed when it says yes, but not when it says no', async () => {
  expect(await isPaid(node({ eth_call: word('0') }, validUntil), authorization)).toBeUndefined()
  expect(await isPaid(node({ eth_call: word('1') }, validUntil), authorization)).toBe(true)
})
