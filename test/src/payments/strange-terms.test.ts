/** Whatever a 402 or a buyer puts where a string is expected: it is no offer and no payment, and nothing throws. */

import { expect, test } from 'vitest'
import { caip2 } from '../../../src/money/networks.ts'
import type { Answered, Outgoing } from '../../../src/outgoing/request.ts'
import { createPayer } from '../../../src/payments/payer.ts'
import { Seller } from '../../../src/payments/seller.ts'
import { walletOf } from '../../../src/payments/wallet.ts'
import { encodeBase64Json } from '../../../src/payments/x402.ts'
import { machine } from '../../../src/platform.ts'
import { SaleJournal } from '../../support/sale-journal.ts'

const outgoing = {} as Outgoing
const wallSeconds = () => 1_800_000_000
const payer = createPayer({
  wallet: await walletOf(Buffer.alloc(32, 1)),
  nodes: new Map(),
  outgoing,
  wallSeconds,
  random: machine.random,
})
const payTo = `0x${'1'.repeat(40)}`
/** JSON values that cannot be turned into a string or a number, and some that only look like one. */
const strange: readonly unknown[] = [
  { toString: 1 },
  { toString: null, valueOf: 'x' },
  [{ toString: 1 }],
  [],
  null,
  true,
  'constructor',
]

const accepted = {
  ...{ scheme: 'exact', network: 'eip155:8453', amount: '2500', maxTimeoutSeconds: 60 },
  ...{ asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', payTo },
}
const old = { ...accepted, network: 'base', maxAmountRequired: '2500' }
const charge = {
  amount: '2500',
  currency: `0x20c${'0'.repeat(37)}`,
  recipient: payTo,
  methodDetails: { chainId: 4217 },
}
const answer = (headers: Record<string, string[]>, body: object = {}): Answered => ({
  ...{ ok: true, status: 402, headers, body: Buffer.from(JSON.stringify(body)) },
})
const ways: Record<string, readonly [object, (terms: object) => Answered]> = {
  'x402 v2': [
    accepted,
    (terms) => answer({ 'payment-required': [encodeBase64Json({ x402Version: 2, accepts: [terms] })] }),
  ],
  'x402 v1': [old, (terms) => answer({}, { x402Version: 1, accepts: [terms] })],
  mpp: [
    charge,
    (terms) => {
      const request = Buffer.from(JSON.stringify(terms)).toString('base64url')
      const challenge = `Payment id="a", realm="b", method="tempo", intent="charge", request="${request}"`
      return answer({ 'www-authenticate': [challenge] })
    },
  ],
}

test.each(Object.keys(ways))('a demand by %s is parsed, whatever it holds', (name) => {
  const [terms, asked] = ways[name]!
  expect(payer.demandOf(asked(terms), 'id').offers).toHaveLength(1)
  for (const field of Object.keys(terms))
    for (const value of strange)
      expect(payer.demandOf(asked({ ...terms, [field]: value }), 'id').offers.length).toBeLessThan(2)
  for (const chainId of strange)
    expect(payer.demandOf(asked({ ...terms, methodDetails: { chainId } }), 'id').offers.length).toBeLessThan(2)
})

test('a name that is not a network stays as it is', () => {
  for (const name of ['constructor', '__proto__', 'toString']) expect(caip2(name)).toBe(name)
})

test('a payment is refused, whatever it holds', async () => {
  const seller = new Seller({
    ...{ payTo, facilitator: 'https://facilitator.example', network: 'eip155:8453', micros: 1_000 },
    ...{ realm: 'board.example', secret: Buffer.alloc(32), outgoing, wallSeconds },
    sales: new SaleJournal(wallSeconds).open(),
  })
  const ware = { id: 'x', url: 'https://board.example/x', description: '', work: async () => ({ json: '{}' }) }
  const asked = await seller.sell(ware, {})
  const required = asked.headers.find(([name]) => name === 'PAYMENT-REQUIRED')![1]
  const { accepts } = JSON.parse(Buffer.from(required, 'base64').toString()) as { accepts: object[] }
  for (const value of strange) {
    const payload = { signature: '0x', authorization: { from: value, nonce: value } }
    const x402 = encodeBase64Json({ x402Version: 2, accepted: accepts[0], payload })
    expect((await seller.sell(ware, { x402 })).status).toBe(402)
    const mpp = encodeBase64Json({ challenge: { id: value, expires: value }, payload })
    expect((await seller.sell(ware, { mpp })).status).toBe(402)
  }
})
