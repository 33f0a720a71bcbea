/** A board that pays is killed at every step of a payment: after its restart the money has moved at most once, with the same bytes. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { MppSeller } from '../peers/mpp-seller.ts'
import { missingPackage } from '../peers/npm-peers.ts'
import { skipNote, skipWithout } from '../peers/peers.ts'
import type { Seller, Step } from '../peers/seller.ts'
import { X402Seller } from '../peers/x402-seller.ts'
import { person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { callResultOf, PayerBoard, payerAddress } from '../support/payer-board.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = missingPackage('@x402/express') ?? missingPackage('@x402/evm') ?? missingPackage('mppx')
/** Moments between two steps that nobody outside can see, in milliseconds after the previous step. */
const moments = (process.env.KILL_MOMENTS ?? '0,5,20').split(',').map(Number)

const kinds = [
  { kind: 'x402', open: () => X402Seller.open(), moments },
  { kind: 'MPP', open: () => MppSeller.open({ buyer: payerAddress }), moments: moments.slice(-2) },
]

describe.skipIf(skipWithout(missing)).each(kinds)(
  `a board that pays by $kind and is killed${skipNote(missing)}`,
  ({ open, moments }) => {
    let seller: Seller
    let board: PayerBoard
    let tool: string
    beforeAll(async () => {
      seller = await open()
      board = await PayerBoard.open({
        PAY_CAP_DAY: '5',
        LIMITS: '{"tool_microdollars_per_identity_per_day":1000000,"tool_microdollars_per_board_per_day":100000000}',
      })
      tool = await board.tool(seller.url, { price: '0.0025', payees: [seller.payTo] })
    })
    afterAll(async () => {
      seller.close()
      board.client.close()
      await board.board.kill()
    })

    const steps: readonly (readonly [step: Step, ms: number])[] = [
      ['asked', 0],
      ...moments.map((ms) => ['answered', ms] as const),
      ['paid', 0],
      ['delivered', 0],
    ]

    test.each(randomPart(steps))('when its request is %s, %i ms later, pays at most once', async (step, ms) => {
      const signer = person(`killed at ${step} ${ms}`)
      const { body } = board.client.sign(signer, { operation: 'tools.call', target: tool, data: '{"schema":1}' })
      const [settled, sent] = [seller.settled.length, seller.paidRequests.length]
      let killed: Promise<unknown> | undefined
      seller.when = async (now) => {
        if (now !== step || killed !== undefined) return
        if (ms > 0) await new Promise((later) => setTimeout(later, ms))
        killed = board.board.kill()
        await killed
      }
      const lost = await board.client.send(body).catch(() => undefined)
      await vi.waitFor(() => expect(killed).toBeDefined(), patience)
      seller.when = () => {}
      await board.restart(async () => killed)

      const now = async () => callResultOf(await board.client.send(body))
      // A caller that paid without an answer sends the same bytes until the outcome is known; one that did not pay never gets one.
      if (seller.paidRequests.length > sent || (await now()).failure !== 'unknown')
        await vi.waitFor(async () => expect((await now()).failure).toBeUndefined(), patience)
      const found = await now()
      expect(found.receipt.duplicate).toBe(true)
      expect(new Set(seller.paidRequests.slice(sent)).size).toBeLessThanOrEqual(1)
      expect(seller.settled.length - settled).toBeLessThanOrEqual(1)
      if (lost?.status === 200) expect(found.output).toEqual(callResultOf(lost).output)
      if (found.status === 200) expect(seller.settled.length - settled).toBe(1)
      // And it calls nobody again.
      const requests = seller.requests.length
      await now()
      expect(seller.requests.length).toBe(requests)
    })
  },
)
