/**
 * A payment was sent, no answer came, and the board was killed: restarted after the payment expired, it learns its outcome from the
 * network's node.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { MppSeller } from '../peers/mpp-seller.ts'
import { missingPackage } from '../peers/npm-peers.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import type { Seller } from '../peers/seller.ts'
import { TempoNode } from '../peers/tempo-node.ts'
import { X402Seller } from '../peers/x402-seller.ts'
import { boardDirectory } from '../support/board-process.ts'
import { person } from '../support/client.ts'
import { fakeClock, missingFakeClock } from '../support/fake-clock.ts'
import { patience } from '../support/patience.ts'
import { callResultOf, PayerBoard, payerAddress } from '../support/payer-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing =
  missingFakeClock ?? missingPackage('@x402/express') ?? missingPackage('@x402/evm') ?? missingPackage('mppx')
const payees = [`0x${'11'.repeat(20)}`]
const until = patience
/** Longer than any payment here is valid, and than the board waits after that. */
const later = 700

type Opened = { readonly seller: Seller; readonly node: TempoNode }

const mpp = async (isSponsored: boolean): Promise<Opened> => {
  const seller = await MppSeller.open({ buyer: payerAddress, isSponsored })
  return { seller, node: seller.node }
}
const x402 = async (): Promise<Opened> => {
  const [seller, node] = await Promise.all([X402Seller.open(), TempoNode.open()])
  node.chainId = 84_532
  node.usedAuthorizations = () => seller.settled.map(({ nonce }) => nonce)
  return { seller, node }
}
const kinds = [
  { kind: 'x402, by the nonce of the authorization', open: x402, charged: 0.0025 },
  { kind: 'MPP, by the hash of the transaction', open: () => mpp(false), charged: 0.01 },
  { kind: 'MPP whose fee the seller pays, by the memo', open: () => mpp(true), charged: 0.0025 },
]

describe.skipIf(skipWithout(missing))(`a node is asked${skipNote(missing)}`, () => {
  test.each(kinds)('about $kind', async ({ open, charged }) => {
    const { seller, node } = await open()
    const clockFile = join(boardDirectory(), 'offset')
    writeFileSync(clockFile, '+0\n')
    const board = await PayerBoard.open({
      PAY_NODES: `eip155:${node.chainId}=${node.url}`,
      ...fakeClock(clockFile),
    })
    const tool = await board.tool(seller.url, { price: '0.0025', payees })
    const command = { operation: 'tools.call', target: tool, data: '{"schema":1}' }
    const bodies = ['who pays', 'who does not'].map((name) => board.client.sign(person(name), command).body)

    // Both payments have been sent when the board dies; the seller settles the first and not the second.
    let die = (): void => undefined
    const dead = new Promise<void>((resolve) => {
      die = resolve
    })
    seller.when = async (step) => {
      if (step !== 'paid') return
      const isFirst = seller.paidRequests.length === 1
      await dead
      if (isFirst) return
      await vi.waitUntil(() => seller.settled.length === 1, until)
      seller.drop = 'before'
    }
    const calls: Promise<unknown>[] = []
    for (const body of bodies) {
      calls.push(board.client.send(body).catch(() => undefined))
      await vi.waitUntil(() => seller.paidRequests.length === calls.length, until)
    }
    await board.board.kill()
    die()
    await Promise.all(calls)
    await vi.waitUntil(() => seller.settled.length === 1 && seller.drop === undefined, until)
    const sent = seller.requests.length

    // Nothing more is sent: both payments have expired, for the board and for the network.
    const today = Math.floor(Date.now() / 86_400_000)
    writeFileSync(clockFile, `+${later}\n`)
    node.ahead = later
    await board.restart(async () => undefined)
    const now = async (at: number) => callResultOf(await board.client.send(bodies[at]!))
    await vi.waitUntil(async () => (await now(0)).output_expired === true, until)
    await vi.waitUntil(async () => (await now(1)).allowance.left === 20, until)
    const [paid, unpaid] = [await now(0), await now(1)]
    // Spending of a past day no longer counts.
    const isToday = Math.floor(Date.now() / 1_000 + later) < (today + 1) * 86_400
    expect(paid).toMatchObject({ status: 0, failure: 'unknown' })
    expect(Number(paid.allowance.price_left)).toBeCloseTo(isToday ? 0.05 - charged : 0.05, 6)
    expect(unpaid).toMatchObject({ status: 0, failure: 'unknown', allowance: { price_left: '0.05' } })
    expect(node.asked).toContain('eth_chainId')
    expect([seller.requests.length, seller.settled.length]).toEqual([sent, 1])
    board.client.close()
    await board.board.kill()
    seller.close()
    node.close()
  })
})
