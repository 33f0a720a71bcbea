/**
 * A walk through a market: people take random actions, mostly sensible ones for the state of a work, sometimes not; the clock jumps; the
 * board is restored from a snapshot, replayed, and moved into another recovery epoch.
 */
import { expect } from 'vitest'
import { State } from '../../../actors/state.ts'
import type { Step } from '../../../actors/works/market/letters.ts'
import type { Work } from '../../../actors/works/market/work.ts'
import { expectLog, Invariants, works } from './invariants.ts'
import {
  boundOf,
  day,
  hour,
  inRoom,
  MarketHarness,
  moderator,
  type Outcome,
  type Person,
  someone,
} from './market-harness.ts'

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b_79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export type WalkResult = {
  /** Rows of the table that were used. */
  readonly rows: ReadonlySet<string>
  readonly done: ReadonlyMap<string, number>
  readonly refused: ReadonlyMap<string, number>
}

export function walk(seed: number, steps: number, { livesMax = 24 } = {}): WalkResult {
  const harness = new MarketHarness()
  const invariants = new Invariants()
  const random = randomOf(seed)
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
  const people = Array.from({ length: 7 }, (_, n) => someone(`${seed} ${n}`))
  const arbiter = someone(`${seed} arbiter`)
  const done = new Map<string, number>()
  const refused = new Map<string, number>()
  const note = (op: string, { refusal }: Outcome): void => {
    const table = refusal === undefined ? done : refused
    const name = refusal === undefined ? op : `${op} ${refusal.code}`
    table.set(name, (table.get(name) ?? 0) + 1)
  }
  const known = (id: string): Person => people.find((each) => each.id === id) ?? arbiter
  harness.beginEpoch()
  for (const each of people) harness.grant(each, 3_000)

  const live = (): Work[] => [...harness.live].map((id) => harness.market.find(id)!)
  const create = (): void => {
    if (live().length >= livesMax) return
    const more = {
      ...(random() < 0.3 ? { reviewer: pick(people).id, reviewer_key: 'k' } : {}),
      ...(random() < 0.2 ? { eligibility: 'first_work' } : {}),
      ...(random() < 0.2 ? { simulated: true } : {}),
    }
    const by = pick(people)
    const reserved = harness.reserve(by, pick([1, 7, 50, 99, 100, 250, 1_000, 5_000]), more)
    note('work.create', reserved)
    if (reserved.refusal !== undefined || random() < 0.05) return
    const fate = random()
    if (fate < 0.1) note('work.void', harness.boardLetter('work.void', { work: reserved.work, refusal: {} }))
    else note('work.open', harness.open(reserved.work, random() < 0.75))
    // Repeated, as after a crash: it changes nothing.
    if (random() < 0.2)
      note(
        'again',
        fate < 0.1 ? harness.boardLetter('work.void', { work: reserved.work }) : harness.open(reserved.work),
      )
  }
  const act = (work: Work): void => {
    const now = harness.settledWork(work.id)
    const [requester, worker, reviewer] = [now.requester, now.worker, now.reviewer].map(known)
    const who = random() < 0.15 ? pick(people) : undefined
    const amount = random() < 0.1 ? now.fence + pick([-1, 1, 2]) : now.fence
    const result = pick(['a', 'b', 'c'])
    const say = (op: string, by: Person, more = {}): void => note(op, harness.workCommand(op, who ?? by, work.id, more))
    const bound = boundOf(who ?? worker!, work.id, now.result === null || random() < 0.3 ? result : 'a')
    const deeds: Readonly<Record<string, readonly (() => void)[]>> = {
      open: [
        () => say('work.claim', pick(people), { standing: inRoom, ttl: pick([900, hour, day, 2 * day]) }),
        () => say('work.claim', pick(people), { standing: inRoom, ttl: day }),
        () => {
          const by = who ?? pick(people)
          note('claim+', harness.claim(by, work.id, { bound: boundOf(by, work.id, result) }))
        },
        () => say('work.raise', requester!, { amount: pick([1, 10, 500, 5_000]) }),
        () => random() < 0.3 && say('work.cancel', requester!),
        () => random() < 0.1 && say('work.cancel', arbiter, { standing: moderator }),
        () => edit(work, requester!),
      ],
      claimed: [
        () => say('work.submit', worker!, { amount, bound }),
        () => say('work.submit', worker!, { amount, bound }),
        () => say('work.renew', worker!, { amount, ttl: pick([900, day]) }),
        () => random() < 0.3 && say('work.release', worker!, { amount }),
      ],
      submitted: [
        () =>
          say(
            'work.accept',
            pick([reviewer!, requester!]),
            now.result?.missing ? {} : { result_sha256: now.result?.current, accept_changed: random() < 0.5 },
          ),
        () => say('work.reject', reviewer!, { reason: 'it is not what was asked for' }),
        () => say('work.revise', reviewer!, { reason: 'more' }),
        () => random() < 0.2 && say('work.release', worker!, { amount }),
        () => observe(work),
      ],
      revision: [
        () => say('work.submit', worker!, { amount, bound }),
        () => random() < 0.3 && say('work.release', worker!, { amount }),
        () => observe(work),
      ],
      rejected: [
        () => say('work.dispute', worker!, { amount, reason: 'it is' }),
        () => say('work.concede', worker!, { amount }),
        () => say('work.reopen', requester!),
        () => random() < 0.2 && say('work.accept', requester!),
      ],
      disputed: [
        () => say('work.rule', arbiter, { standing: moderator, percent: pick([0, 1, 33, 50, 99, 100]) }),
        () => random() < 0.2 && say('work.accept', requester!),
        () => observe(work),
      ],
      recovery_required: [
        () => say('work.renew', worker!, { amount, ttl: pick([900, day]) }),
        () =>
          say('work.submit', worker!, {
            amount,
            bound: { ...bound, ...(now.result === null ? {} : { id: now.result.id }) },
          }),
        () => random() < 0.3 && say('work.accept', requester!),
      ],
    }
    const anything = Object.values(deeds).flat()
    const usual = deeds[now.state] ?? anything
    pick(random() < 0.1 || usual.length === 0 ? anything : usual)()
  }
  const edit = (work: Work, by: Person): void => {
    const begun = harness.workCommand('work.edit', by, work.id)
    note('work.edit', begun)
    const { editing } = harness.market.find(work.id)!
    if (editing === '' || random() < 0.2) return
    note(
      'work.edited',
      harness.boardLetter('work.edited', {
        work: work.id,
        generation: harness.generation,
        edit: editing,
        taken: random() < 0.7,
      }),
    )
  }
  const observe = (work: Work): void => {
    const change = pick(['edited', 'edited', 'hidden', 'restored', 'redacted'])
    const event = random() < 0.8 ? 'result' : 'request'
    const n = work.observed + pick([0, 1, 1, 1])
    const sha256 = boundOf(arbiter, work.id, pick(['a', 'changed'])).sha256
    const said = { work: work.id, n, event, change, by: random() < 0.5 ? 'author' : 'other', sha256 }
    note('work.observe', harness.boardLetter('work.observe', said))
  }
  const settleRooms = (): void => {
    for (const { work } of [...harness.market.reservations]) note('work.open', harness.open(work))
    for (const { id, editing } of [...harness.market.editing])
      note(
        'work.edited',
        harness.boardLetter('work.edited', { work: id, generation: harness.generation, edit: editing, taken: true }),
      )
  }
  const passTime = (): void => {
    harness.now += pick([1, 60, 900, hour, 6 * hour, day, 2 * day, 8 * day])
    if (random() < 0.5) return
    const before = live().map(({ id }) => harness.settledWork(id))
    note('work.tick', harness.tick())
    // What readers saw before is written now.
    for (const each of before) expect({ ...harness.market.find(each.id)!, places: [] }).toEqual({ ...each, places: [] })
    expect(harness.tick().reply.written).toBe(0)
  }
  const credits = (): void => {
    const [from, to] = [pick(people), pick(people)]
    note(
      'credit.transfer',
      harness.command('credit.transfer', from, { target: to.id, amount: pick([1, 20, 400]), cost: 1 }),
    )
    const welcome = { identity: to.id, network: pick(['a', 'b']), amount: 100, network_max: 3, board_max: 5 }
    if (random() < 0.3) note('credit.welcome', harness.boardLetter('credit.welcome', welcome))
    const reward = { subject: pick(['s', 't', 'u']), reviewer: to.id, amount: 100, subject_max: 5 }
    if (random() < 0.3) note('credit.reward', harness.boardLetter('credit.reward', reward))
  }
  const forget = (): void => {
    const packed = State.unpack(harness.state.pack(null))!.state
    expect(packed.market.pack()).toEqual(harness.state.market.pack())
    const replayed = harness.replay()
    expect(replayed.market.pack()).toEqual(harness.state.market.pack())
    harness.state = random() < 0.5 ? packed : replayed
    const feed = harness.replay(true).market
    const isPublic = (each: Work) => each.is_public
    // The feed sees no edit before it is in place, and nothing private.
    const shown = (each: Work) => ({ ...each, editing: '' })
    expect([...feed.all].map(shown)).toEqual(works(harness).filter(isPublic).map(shown))
    expectLog(harness)
    invariants.checkEnded(harness)
  }

  for (let step = 0; step < steps; step++) {
    try {
      const chance = random()
      const alive = live()
      if (chance < 0.08) create()
      else if (chance < 0.14) passTime()
      else if (chance < 0.18) credits()
      else if (chance < 0.2) settleRooms()
      else if (chance < 0.2 + 10 / steps) forget()
      else if (chance < 0.202 + 10 / steps) {
        harness.generation = `${step}`.padStart(32, '0')
        harness.beginEpoch()
      } else if (alive.length > 0) act(pick(alive))
      invariants.check(harness)
    } catch (error) {
      throw new Error(`seed ${seed}, step ${step}: ${(error as Error).message}`, { cause: error })
    }
  }
  forget()
  return { done, refused, rows: rowsOf(harness) }
}

function rowsOf({ records }: MarketHarness): Set<string> {
  const rows = new Set<string>()
  for (const { record } of records) {
    const { steps = [] } = ((record as { facts?: unknown }).facts ?? {}) as { steps?: readonly Step[] }
    for (const { transition } of steps) rows.add(transition)
  }
  return rows
}
