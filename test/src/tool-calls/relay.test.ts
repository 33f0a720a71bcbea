/** The relay under faults on our side: nothing is sent unrecorded, nothing sent is forgotten, and no call stays open without reason. */
import { expect, test } from 'vitest'
import type { PayFacts, SettledFacts } from '../../../actors/tool-calls/tool-calls.ts'
import type { Actors } from '../../../src/command/ports.ts'
import type { Answered, NotAnswered, OutgoingRequest } from '../../../src/outgoing/request.ts'
import type { Offer, Payer } from '../../../src/payments/payment.ts'
import { Unsettled } from '../../../src/tool-calls/open-payments.ts'
import { Relay, type Relayed, unknownOutcome } from '../../../src/tool-calls/relay.ts'

const payee = '0x00000000000000000000000000000000000000aa'
const offer: Offer = {
  protocol: 'x402',
  network: 'eip155:8453',
  payee,
  micros: 1000,
  feeMicros: 0,
  sign: async (now) => ({ header: ['x-payment', 'signed'], validUntil: now + 60, reference: { nonce: '1' } }),
}
const call: Relayed = {
  id: 'c'.repeat(32),
  identity: 'i'.repeat(64),
  isOperators: false,
  data: { tool: 't' } as unknown as Relayed['data'],
  facts: {
    tool: 't',
    subject: 's',
    micros: 1000,
    address: { url: 'https://tool.example/', method: 'GET', mcp: false, name: 't' },
  },
}
const asks: Answered = { ok: true, status: 402, headers: {}, body: Buffer.alloc(0) }
const gives: Answered = { ok: true, status: 200, headers: {}, body: Buffer.from('done') }

type Hindered = {
  /** Settlements that fail before one is accepted. */
  readonly unwritten?: number
  /** Reads that fail before one is answered. */
  readonly unread?: number
  readonly open?: readonly object[]
}

/** A relay whose tool does one of `steps` after another; an error is thrown on our side. */
function relayOver(
  steps: readonly (Answered | NotAnswered | Error)[],
  { unwritten = 0, unread = 0, open = [] }: Hindered = {},
) {
  const written: { op: string; args: PayFacts | SettledFacts }[] = []
  const sent: OutgoingRequest[] = []
  const left: PayFacts[] = []
  const reports: string[] = []
  const rest = [...steps]
  const hindered = { settlements: unwritten, reads: unread }
  const payer: Payer = {
    demandOf: () => ({ accepts: [], challenges: [], offers: [offer] }),
    receiptOf: () => undefined,
    canAsk: () => false,
    wasMade: async () => undefined,
  }
  const read = ({ op }: { op: string }, answer: (found: never) => void) => {
    if (hindered.reads-- > 0) return answer(undefined as never)
    const found = op === 'calls.open' ? open : { mark: { micros: 1000, payees: [payee] } }
    answer({ ok: true, value: found } as never)
  }
  const relay = new Relay({
    actors: {
      write: ({ op, args }: { op: string; args: never }, answer: (answer: unknown) => void) => {
        if (op === 'call.settle' && hindered.settlements-- > 0) return answer(undefined)
        written.push({ op, args })
        answer({ ok: true })
      },
    } as unknown as Actors,
    read,
    outgoing: {
      request: async (request) => {
        sent.push(request)
        const step = rest.shift()!
        if (step instanceof Error) throw step
        return step
      },
      close: () => undefined,
    },
    payer,
    walletMicros: 1e9,
    now: () => 0,
    wallSeconds: () => 1000,
    pause: async () => undefined,
    signal: new AbortController().signal,
    unsettled: { take: (_relay, _call, payment) => left.push(payment) },
  })
  const unsettled = new Unsettled({
    read,
    payer,
    wallSeconds: () => 1000,
    pause: async () => undefined,
    report: (event) => reports.push(event),
  })
  return { relay, unsettled, written, sent, left, reports }
}

test('a fault before anything was paid settles the call as not paid, and is reported', async () => {
  const { relay, written, left } = relayOver([new Error('a fault of ours')])
  await expect(relay.make(call)).rejects.toThrow('a fault of ours')
  expect(written.map(({ op }) => op)).toEqual(['call.settle'])
  expect(written[0]!.args).toMatchObject({ call: call.id, state: 'failed', isUnpaid: true })
  expect(left).toEqual([])
})

test('a fault after the payment was recorded leaves the payment to be settled, and is reported', async () => {
  const { relay, written, left } = relayOver([asks, new Error('a fault of ours')])
  await expect(relay.make(call)).rejects.toThrow('a fault of ours')
  expect(written.map(({ op }) => op)).toEqual(['call.pay'])
  expect(left).toHaveLength(1)
  expect(written[0]!.args).toMatchObject(left[0]!)
})

test('a fault while a payment is resent is no answer: the same bytes are sent again, until one arrives', async () => {
  const { relay, unsettled, written, sent, left, reports } = relayOver([
    asks,
    new Error('a fault of ours'),
    new Error('another'),
    gives,
  ])
  await expect(relay.make(call)).rejects.toThrow()
  unsettled.take(relay, call, left[0]!)
  await expect.poll(() => written.map(({ op }) => op)).toEqual(['call.pay', 'call.settle'])
  expect(written[1]!.args).toMatchObject({ call: call.id, state: 'done', isUnpaid: false })
  expect(reports).toEqual(['calls.not_resent'])
  expect(sent.slice(1).map(({ headers }) => headers?.['x-payment'])).toEqual(['signed', 'signed', 'signed'])
})

test('a payment without an answer is reported as such, with what is known and how to learn the rest', async () => {
  const late: NotAnswered = { ok: false, failure: 'timeout', reason: 'it did not answer within 30 s', sent: true }
  const large: NotAnswered = { ok: false, failure: 'too_large', reason: 'too many bytes', sent: true, status: 200 }
  for (const [answers, known] of [
    [[late, late], 'it did not answer within 30 s'],
    [[large], 'too many bytes'],
  ] as const) {
    const { relay, left } = relayOver([asks, ...answers])
    const reason = `it was sent a payment of 0.001 dollars, but ${known}: send the same command again later for the outcome`
    expect(await relay.make(call)).toMatchObject({ status: 0, failure: 'unknown', reason })
    expect(left).toHaveLength(1)
  }
  expect(unknownOutcome('t', true).reason).toMatch(/send the same command again later/)
})

test.each([
  [true, 'no answer came, and nothing was paid'],
  [false, 'no answer came: it may have carried out the request'],
])('a call that is given up says why (unpaid: %s)', async (isUnpaid, reason) => {
  expect(await relayOver([]).relay.giveUp(call, isUnpaid)).toMatchObject({ status: 0, failure: 'unknown', reason })
})

test('an outcome that cannot be recorded is not disclosed, and is recorded as soon as possible', async () => {
  const { relay, written } = relayOver([gives], { unwritten: 3 })
  expect(await relay.make(call)).toBeUndefined()
  await expect.poll(() => written.map(({ op }) => op)).toEqual(['call.settle'])
  expect(written[0]!.args).toMatchObject({ call: call.id, state: 'done' })
})

test('an answered payment is not resent because recording failed', async () => {
  const { relay, unsettled, written, sent, left } = relayOver([asks, new Error('a fault of ours'), gives], {
    unwritten: 2,
  })
  await expect(relay.make(call)).rejects.toThrow()
  unsettled.take(relay, call, left[0]!)
  await expect.poll(() => written.map(({ op }) => op)).toEqual(['call.pay', 'call.settle'])
  expect(sent).toHaveLength(3)
})

test('calls left open by an earlier run are queried until their state is known', async () => {
  const { id, identity, facts } = call
  const open = [{ id, identity, ...facts, data: {} }]
  const { relay, unsettled, written } = relayOver([], { unread: 2, open })
  await unsettled.resume(relay)
  await expect.poll(() => written.map(({ op }) => op)).toEqual(['call.settle'])
  expect(written[0]!.args).toMatchObject({ call: id, state: 'unknown' })
})

test('a tool listed as free that demands money is not paid, whatever its mark allows', async () => {
  const { relay, written, sent } = relayOver([asks])
  const free: Relayed = { ...call, facts: { ...call.facts, micros: 0, isFree: true } }
  const found = await relay.make(free)
  expect(found?.payment_needed?.why).toMatch(/^price_changed: .*, and 0 were agreed/)
  expect([written.map(({ op }) => op), sent.length]).toEqual([['call.settle'], 1])
})
