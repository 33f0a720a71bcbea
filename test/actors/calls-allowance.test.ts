/** The daily allowance of calls: nobody gets more than it, whatever happens in between, and a restart loses nothing. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import { dayEnd, dayOf, daySeconds } from '../../actors/kernel/day.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import { type BoardRecord, type FactRecord, fromFrame, toFrame } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { State } from '../../actors/state.ts'
import type { CallOrigin, DayLimits } from '../../actors/tool-calls/tool-calls.ts'

const limits: DayLimits = {
  calls: 5,
  micros: 1_000,
  boardCalls: 200,
  boardMicros: 20_000,
  widerTimes: 4,
  hostTimes: 16,
}
const midnight = 20_000 * daySeconds
const address = { url: 'https://tool.example/', method: '', mcp: false, name: '' }

class Bench {
  state = new State()
  now = midnight + 100
  seq = 0
  readonly records: { record: BoardRecord; key: Uint8Array; seq: number }[] = []

  /** The code of a refusal, or undefined. */
  decide(letter: WriteLetter): string | undefined {
    const situation = {
      state: this.state,
      board: this.state.board,
      now: this.now,
      record: () => this.records[0]!.record,
    }
    const decision = deciders[letter.op]!(situation, letter)
    if (!decision.ok) return decision.refusal.code
    for (const { record, key } of decision.records) {
      // As the journal returns it.
      const frame = toFrame(record, key, false, [])
      const read = fromFrame({ ...frame, seq: ++this.seq, payload: Buffer.from(frame.payload) } as never)
      this.records.push({ record: read, key, seq: this.seq })
      this.apply(this.state, read, key, this.seq)
    }
    return undefined
  }

  apply(state: State, record: BoardRecord, key: Uint8Array, seq: number): void {
    state.apply(record, key, { shard: 0, seq, change: seq, leaf: 0 } as never)
  }

  call(
    identity: number,
    network: number,
    micros = 0,
    more: Partial<CallOrigin> = {},
  ): { id: string; code: string | undefined } {
    const id = Buffer.alloc(16)
    id.writeUInt32BE(++this.seq)
    const author = identity.toString(16).padStart(64, '0')
    const args = {
      tool: 't',
      subject: 's',
      own: false,
      network: String(network),
      ...more,
      micros,
      address,
      limits,
      wall: this.now,
    }
    const letter = { ...internalLetter('nothing', '@calls', author, args), op: 'tools.call', id } as const
    return { id: id.toString('hex'), code: this.decide(letter) }
  }

  pay(call: string, micros: number, isOperators = false): string | undefined {
    const facts = {
      call,
      protocol: 'x402',
      network: 'n',
      payee: 'p',
      micros,
      isOperators,
      header: ['X', 'y'] as const,
      validUntil: 1,
      reference: {},
    }
    return this.decide(internalLetter('call.pay', '@calls', '00'.repeat(32), { ...facts, limits, walletMicros: 5_000 }))
  }

  settle(call: string, state: 'done' | 'failed' | 'unknown', isUnpaid = false): string | undefined {
    const facts = { call, state, isCallBack: state === 'failed', isUnpaid, outcome: '{}' }
    return this.decide(internalLetter('call.settle', '@calls', '00'.repeat(32), facts))
  }

  left(identity: number, network: number) {
    const holder = { identity: identity.toString(16).padStart(64, '0'), network: String(network) }
    return this.state.calls.day.left(holder, limits, this.now)
  }
}

test('an identity has five calls until midnight', () => {
  const bench = new Bench()
  for (let n = 0; n < 5; n++) expect(bench.call(1, 1).code).toBeUndefined()
  expect(bench.call(1, 1).code).toBe('allowance_exhausted')
  expect(bench.call(2, 1).code).toBeUndefined()
  bench.now = dayEnd(bench.now) - 1
  expect(bench.call(1, 1).code).toBe('allowance_exhausted')
  bench.now++
  expect(bench.call(1, 1).code).toBeUndefined()
  expect(bench.left(1, 1).calls).toBe(4)
})

test('the wait is given by the clock that the caller sees', () => {
  const bench = new Bench()
  for (let n = 0; n < 5; n++) bench.call(1, 1)
  const args = { tool: 't', subject: 's', own: false, network: '1', micros: 0, address, limits }
  for (const wall of [bench.now, bench.now - 7_200, dayEnd(bench.now) - 1, dayEnd(bench.now) + 50]) {
    const letter = internalLetter('nothing', '@calls', '1'.padStart(64, '0'), { ...args, wall })
    const situation = {
      state: bench.state,
      board: bench.state.board,
      now: bench.now,
      record: () => bench.records[0]!.record,
    }
    const decision = deciders['tools.call']!(situation, letter)
    expect(decision).toMatchObject({ ok: false, refusal: { retryAfter: Math.max(1, dayEnd(bench.now) - wall) } })
  }
})

test('a network has three times the calls of an identity, and no identity more than a tenth of the board', () => {
  const bench = new Bench()
  let calls = 0
  for (let identity = 1; identity <= 10; identity++)
    for (let n = 0; n < 5; n++) if (bench.call(identity, 7).code === undefined) calls++
  expect(calls).toBe(15)
  const tight: DayLimits = { ...limits, boardCalls: 20 }
  expect(bench.state.calls.day.left({ identity: 'x', network: 'y' }, tight, bench.now).calls).toBe(2)
})

/** The calls that this many identities make, each from the network that `from` returns, until each is refused. */
function allOf(
  bench: Bench,
  identities: number,
  from: (identity: number) => readonly [number, Partial<CallOrigin>],
): number {
  let calls = 0
  for (let identity = 1; identity <= identities; identity++) {
    const [network, more] = from(identity)
    for (let n = 0; n < 6; n++) if (bench.call(identity, network, 0, more).code === undefined) calls++
  }
  return calls
}

test('all networks of one /48 have four times the calls of one, and at most half of the board’s', () => {
  const bench = new Bench()
  expect(allOf(bench, 100, (identity) => [identity, { wider: 'a' }])).toBe(60)
  expect(bench.call(101, 101, 0, { wider: 'b' }).code).toBeUndefined()
  const endless: DayLimits = { ...limits, widerTimes: Number.POSITIVE_INFINITY }
  const holder = { identity: 'x', network: 'y', wider: 'a' }
  const left = (of: DayLimits) => bench.state.calls.day.left(holder, of, bench.now).calls
  expect([left(limits), left(endless), left({ ...endless, boardCalls: 120 })]).toEqual([0, 5, 0])
  expect(left({ ...endless, calls: 0 })).toBe(0)
})

test('sign-ins that share an address have five calls each, and together half of the board’s', () => {
  const bench = new Bench()
  // Calls from there that are not by sign-ins count in another network.
  expect(allOf(bench, 10, () => [1, {}])).toBe(15)
  expect(allOf(bench, 100, () => [2, { isHosted: true }])).toBe(100)
  expect(bench.call(101, 3).code).toBeUndefined()
})

test('calls refunded after failures return to each sign-in or /48 network they counted in', () => {
  const bench = new Bench()
  const from = [7, { wider: 'w', isHosted: true }] as const
  expect(allOf(bench, 20, () => from)).toBe(100)
  const holder = { identity: 'f'.repeat(64), network: '7', wider: 'w', isHosted: true } as const
  const left = () => bench.state.calls.day.left(holder, limits, bench.now).calls
  expect(left()).toBe(0)
  bench.settle(bench.state.calls.allOpen()[0]!.id, 'failed')
  expect(left()).toBe(1)
  const restored = State.unpack(bench.state.pack(null))!.state
  bench.state = restored
  bench.settle(restored.calls.allOpen()[0]!.id, 'failed')
  expect(left()).toBe(2)
})

test('a failed call is refunded, one of unknown outcome is not, and each only once', () => {
  const bench = new Bench()
  const failed = bench.call(1, 1, 300)
  const unknown = bench.call(1, 1, 300)
  expect(bench.left(1, 1)).toEqual({ calls: 3, micros: 400 })
  bench.settle(failed.id, 'failed')
  bench.settle(failed.id, 'failed')
  expect(bench.left(1, 1)).toEqual({ calls: 4, micros: 700 })
  bench.settle(unknown.id, 'unknown')
  expect(bench.left(1, 1)).toEqual({ calls: 4, micros: 1_000 })
})

test('a call is paid once, from what is left, and the wallet can run out', () => {
  const bench = new Bench()
  const { id } = bench.call(1, 1, 300)
  expect(bench.pay(id, 1_001)).toBe('allowance_exhausted')
  expect(bench.pay(id, 900)).toBeUndefined()
  expect(bench.pay(id, 900)).toBe('conflict')
  expect(bench.left(1, 1).micros).toBe(100)
  bench.settle(id, 'done')
  expect(bench.pay(id, 1)).toBe('conflict')
  expect(bench.left(1, 1).micros).toBe(100)
  const operators = bench.call(9, 9)
  expect(bench.pay(operators.id, 5_000, true)).toBe('quota_exhausted')
  expect(bench.pay(operators.id, 4_100, true)).toBeUndefined()
  expect(bench.left(9, 9).micros).toBe(1_000)
  bench.settle(operators.id, 'failed', true)
  expect(bench.state.calls.day.wallet(bench.now)).toBe(900)
})

test('in any order of events a day is never overdrawn, and a replay or a snapshot knows the same', () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant('call' as const),
      who: fc.integer({ min: 1, max: 3 }),
      at: fc.integer({ min: 1, max: 2 }),
      micros: fc.integer({ min: 0, max: 600 }),
    }),
    fc.record({ kind: fc.constant('pay' as const), of: fc.nat(20), micros: fc.integer({ min: 0, max: 700 }) }),
    fc.record({
      kind: fc.constant('settle' as const),
      of: fc.nat(20),
      as: fc.constantFrom('done' as const, 'failed' as const, 'unknown' as const),
      unpaid: fc.boolean(),
    }),
    fc.record({ kind: fc.constant('wait' as const), seconds: fc.constantFrom(1, 3_600, daySeconds) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const bench = new Bench()
      const calls: string[] = []
      const made = new Map<string, number>()
      for (const each of steps) {
        const day = dayOf(bench.now)
        if (each.kind === 'wait') bench.now += each.seconds
        else if (each.kind === 'call') {
          const { id, code } = bench.call(each.who, each.at, each.micros)
          if (code !== undefined) continue
          calls.push(id)
          made.set(`${day} ${each.who}`, (made.get(`${day} ${each.who}`) ?? 0) + 1)
        } else if (calls.length > 0) {
          const id = calls[each.of % calls.length]!
          if (each.kind === 'pay') bench.pay(id, each.micros)
          else bench.settle(id, each.as, each.unpaid)
        }
        for (const who of [1, 2, 3]) {
          const { calls: left, micros } = bench.left(who, 1)
          expect(left).toBeLessThanOrEqual(limits.calls)
          expect(micros).toBeLessThanOrEqual(limits.micros)
        }
        expect(bench.state.calls.day.wallet(bench.now)).toBeLessThanOrEqual(5_000)
        expect(bench.state.calls.day.wallet(bench.now)).toBeGreaterThanOrEqual(0)
      }
      const again = new State()
      for (const { record, key, seq } of bench.records) bench.apply(again, record, key, seq)
      expect(again.calls.pack()).toEqual(bench.state.calls.pack())
      const kept = State.unpack(bench.state.pack(undefined))!.state
      expect(kept.calls.pack()).toEqual(bench.state.calls.pack())
    }),
    { numRuns: 200 },
  )
})

test('what is stored of a call has no address and no secret', () => {
  const bench = new Bench()
  bench.call(1, 1)
  const record = bench.records[0]!.record as FactRecord
  expect(Object.keys(record.facts).sort()).toEqual(['address', 'micros', 'network', 'own', 'subject', 'tool'])
})

test('a clock that was wrong by years, and is right again, lets nobody exceed a day’s allowance', () => {
  const bench = new Bench()
  const right = bench.now
  const open = bench.call(1, 1, 100)
  bench.now += 400 * daySeconds
  expect(bench.call(1, 1).code).toBeUndefined()
  // Times go back where the clock was too far ahead (actors/shard.ts).
  bench.now = right
  expect(bench.state.calls.day.moment(right)).toBe(right)
  const other = bench.call(2, 2)
  bench.settle(open.id, 'failed')
  bench.settle(other.id, 'failed')
  expect(bench.left(1, 1)).toEqual({ calls: 5, micros: 1_000 })
  for (let n = 0; n < 5; n++) expect(bench.call(1, 1).code).toBeUndefined()
  expect(bench.call(1, 1).code).toBe('allowance_exhausted')
  for (let n = 0; n < 5; n++) expect(bench.pay(bench.call(n + 10, n + 10, 900).id, 900, true)).toBeUndefined()
  expect(bench.pay(bench.call(20, 20, 900).id, 900, true)).toBe('quota_exhausted')
})

test('a reservation of yesterday does not add to today’s allowance', () => {
  const bench = new Bench()
  bench.now = dayEnd(bench.now) - 1
  const late = bench.call(1, 1, 1_000)
  bench.now++
  expect(bench.pay(bench.call(1, 1, 1_000).id, 1_000)).toBeUndefined()
  expect(bench.left(1, 1).micros).toBe(0)
  expect(bench.pay(late.id, 1_000)).toBe('allowance_exhausted')
})
