/** The board pays for a call: real sellers of x402 and MPP on loopback, whose answers get lost, whose price and payee change. */

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readArguments } from '../../src/cli/command-line.ts'
import { relayTool, toolsCommand } from '../../src/cli/tools.ts'
import { MppSeller } from '../peers/mpp-seller.ts'
import { missingPackage } from '../peers/npm-peers.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import type { Seller } from '../peers/seller.ts'
import { X402Seller } from '../peers/x402-seller.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { callResultOf, keyFileOf, PayerBoard, payerAddress } from '../support/payer-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = missingPackage('@x402/express') ?? missingPackage('@x402/evm') ?? missingPackage('mppx')
const payees = [`0x${'11'.repeat(20)}`]

/** `fee`: the maximum in millionths that the network takes. */
const kinds = [
  { kind: 'x402', open: () => X402Seller.open(), network: 'eip155:84532', fee: 0 },
  { kind: 'MPP', open: () => MppSeller.open({ buyer: payerAddress }), network: 'eip155:42431', fee: 7_500 },
  {
    kind: 'MPP, paying the fee',
    open: () => MppSeller.open({ buyer: payerAddress, isSponsored: true }),
    network: 'eip155:42431',
    fee: 0,
  },
]
const dollars = (micros: number) => String(micros / 1_000_000)

describe.skipIf(skipWithout(missing)).each(kinds)(`a seller of $kind${skipNote(missing)}`, ({ open, network, fee }) => {
  let seller: Seller
  let board: PayerBoard
  let keyFile: string
  const charged = 2_500 + fee
  beforeAll(async () => {
    ;[seller, board] = await Promise.all([open(), PayerBoard.open()])
    keyFile = keyFileOf(board.operator)
  })
  afterAll(async () => {
    seller.close()
    board.client.close()
    await board.board.kill()
  })

  test('is paid once, and the caller gets the result and a receipt of the transaction', async () => {
    const tool = await board.tool(seller.url, { price: '0.0025', payees })
    const found = callResultOf(await board.call(person('who calls'), tool))
    expect(found).toMatchObject({
      status: 200,
      output: { weather: 'fair' },
      price: dollars(charged),
      paid_by: 'allowance',
      allowance: { left: 19, price_left: dollars(50_000 - charged) },
      receipt: { network },
    })
    expect(seller.settled).toHaveLength(1)
    const { from, ...transfer } = seller.transferIn(found.receipt)!
    expect([from.toLowerCase(), transfer]).toEqual([
      payerAddress.toLowerCase(),
      { to: payees[0], value: 2_500n, nonce: seller.settled[0]!.nonce },
    ])
    expect(callResultOf(await board.call(board.operator, tool))).toMatchObject({
      paid_by: 'wallet',
      allowance: { price_left: '0.05' },
    })
  })

  test('is marked from the command line, at the price and for the payee that it states', async () => {
    const tool = await board.tool(seller.url, { price: '0.0025' })
    const terminal = capturedTerminal()
    const options = ['relay', tool, '--key', keyFile, '--url', board.client.address]
    const relay = (...more: string[]) =>
      relayTool(tool, readArguments(toolsCommand, [...options, ...more]).args, terminal)
    const given = ['--payee', seller.payTo]
    expect(await relay(...given)).toBe(0)
    expect(terminal.said.out).toContain(`up to 0.0025 dollars a call, to ${seller.payTo}`)
    expect(callResultOf(await board.call(person('who trusts the operator'), tool)).status).toBe(200)
    expect(await relay('--off')).toBe(0)
    expect(callResultOf(await board.call(person('who trusts him'), tool)).payment_needed?.why).toMatch(/^not_relayed: /)
    await expect(relay('--payee', 'nobody')).rejects.toThrow('not an address')
  })

  test.each(['before', 'after'] as const)(
    'that drops the connection %s it settles is paid once, by the same bytes',
    async (drop) => {
      const tool = await board.tool(seller.url, { price: '0.0025', payees })
      const [settled, requests] = [seller.settled.length, seller.paidRequests.length]
      seller.drop = drop
      const found = callResultOf(await board.call(person(`who lost ${drop}`), tool))
      const sent = seller.paidRequests.slice(requests)
      expect(new Set(sent).size).toBe(1)
      await vi.waitFor(() => expect(seller.settled.length - settled).toBe(1), patience)
      if (drop === 'before') {
        expect(found).toMatchObject({ status: 200, output: { weather: 'fair' } })
        expect(seller.transferIn(found.receipt)).toEqual(seller.settled.at(-1))
      } else expect(found.failure === 'unknown' || found.payment_needed !== undefined).toBe(true)
      expect(found.allowance.price_left).toBe(dollars(50_000 - charged))
    },
  )

  test('that demands more, or names another payee, is not paid', async () => {
    const tool = await board.tool(seller.url, { price: '0.0025', payees })
    const before = seller.settled.length
    seller.price = '0.0026'
    const dear = callResultOf(await board.call(person('who calls dear'), tool))
    expect(dear).toMatchObject({ status: 402, allowance: { left: 20, price_left: '0.05' } })
    expect(dear.payment_needed?.why).toMatch(/^price_changed: .*0\.0026/)
    seller.price = '0.0025'
    seller.payTo = `0x${'33'.repeat(20)}`
    const other = callResultOf(await board.call(person('who calls other'), tool))
    expect(other.payment_needed?.why).toMatch(/^payee_changed: /)
    seller.payTo = payees[0]!
    for (const max_price of ['0.001', dollars(charged - 1)]) {
      const cheap = callResultOf(await board.call(person(`who is careful: ${max_price}`), tool, { max_price }))
      expect(cheap.payment_needed?.why).toMatch(/^over_max_price: /)
    }
    const unmarked = await board.tool(seller.url, { price: '0.0025' })
    expect(callResultOf(await board.call(person('x'), unmarked)).payment_needed?.why).toMatch(/^not_relayed: /)
    expect(seller.settled.length).toBe(before)
  })

  test('that demands payment again is not paid again, and the money counts as spent', async () => {
    const tool = await board.tool(seller.url, { price: '0.0025', payees })
    const [sent, settled] = [seller.paidRequests.length, seller.settled.length]
    seller.isBlind = true
    const found = callResultOf(await board.call(person('who is asked twice'), tool))
    seller.isBlind = false
    expect(found).toMatchObject({ status: 402, allowance: { left: 20, price_left: dollars(50_000 - charged) } })
    expect(found.payment_needed?.why).toMatch(/^payment_refused: /)
    expect([seller.paidRequests.length - sent, seller.settled.length - settled]).toEqual([1, 0])
  })

  test('is paid from each caller’s own money, and from no more than the wallet’s daily limit', async () => {
    const tool = await board.tool(seller.url, { price: '0.04', payees })
    seller.price = '0.04'
    const one = person('who spends')
    expect(callResultOf(await board.call(one, tool)).status).toBe(200)
    const spent = await board.call(one, tool)
    expect([spent.status, spent.code]).toEqual([429, 'allowance_exhausted'])
    expect(Number(spent.headers['retry-after'])).toBeGreaterThan(0)
    const before = seller.settled.length
    const whys: (string | undefined)[] = []
    for (let n = 0; n < 6; n++) {
      const found = await board.call(person(`spender ${n}`), tool)
      whys.push(found.status === 200 ? callResultOf(found).payment_needed?.why : found.code)
    }
    // 0.2 dollars a day, some of it spent above; and one address has three times what one identity has.
    expect(seller.settled.length - before).toBeLessThanOrEqual(3)
    expect(whys.some((why) => why === 'allowance_exhausted' || why?.startsWith('wallet_cap: '))).toBe(true)
  })
})
