/** The engine between sources, hooks and targets: whatever is slow, or has no answer, no hook misses what it asked for. */

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { HookKind } from '../../../actors/webhooks/kind-names.ts'
import { systemClock } from '../../../src/clock.ts'
import { Engine, type EngineOptions } from '../../../src/webhooks/engine.ts'
import { endRequestsMax } from '../../../src/webhooks/expiry.ts'
import type { Signal, SignalsRequest } from '../../../src/webhooks/payloads/signals.ts'
import type { HookView } from '../../../src/webhooks/reads.ts'
import { freshCourse } from '../../../src/webhooks/retry.ts'
import type { Sender, Sent } from '../../../src/webhooks/sender.ts'
import type { Commit, DeliveryStore, Place } from '../../../src/webhooks/store.ts'
import { HookRun } from '../../../src/webhooks/subscription-run.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_700_000_000_000 }))
afterEach(() => void vi.useRealTimers())

const [ada, bob] = ['aa'.repeat(32), 'bb'.repeat(32)]

const hookOf = (hook: string, more: Partial<HookView> = {}): HookView => ({
  ...{ hook, form: 'webhook', url: `https://${hook}.example.org/in`, kinds: ['room.post'], filter: { room: 'lobby' } },
  ...{ sealed: '', tag: '', marks: [1], expires: 0, owner: ada, epoch: 5, createdAt: 0, former: undefined },
  ...{ wakes: 0, redeliveries: [] },
  ...more,
})

/** A post in the lobby, and whom it addresses. */
const postAt = (position: number, to: readonly string[] = []): Signal => ({
  ...{ position, at: 0, room: 'lobby', page: 'main', kind: 'note', subject: String(position), item: 0, state: '' },
  ...{ kinds: ['room.post', ...(to.length > 0 ? (['mention'] as const) : [])], to, handles: [] },
})

type Office = {
  readonly posts: Signal[]
  readonly places?: Record<string, Place>
  readonly tail: number
  readonly end?: EngineOptions['end']
  /** Positions of posts whose records cannot be read this many times. */
  readonly damaged?: { readonly at: number; readonly upTo?: number; readonly times: number }
}

/** An engine over one source of posts at the positions 1, 2, 3 ... */
function office({ posts, places = {}, tail, end, damaged }: Office) {
  const sent: string[] = []
  let damage = damaged?.times ?? 0
  const ended: HookView[] = []
  let silences = 0
  let asks = 0
  const page = ({ from, spoken }: SignalsRequest) => ({
    signals: posts
      .filter(({ position }) => position >= from)
      .map((each) => (spoken ? each : { ...each, to: [], kinds: ['room.post'] as HookKind[] })),
    next: Math.max(from, posts.length + 1),
    more: false,
  })
  const written: Commit[] = []
  const store = {
    tails: () => [tail],
    places: () => new Map(Object.entries(places)),
    commit: (commit: Commit) => void written.push(commit),
    delivery: () => ({ ...postAt(1), source: 0, kind: 'room.post', work: '', attempts: 1 }),
  }
  const send: Sender['send'] = ({ view }, { kind, signal }, _marks, done) => {
    const [from, to] = [damaged?.at ?? 0, damaged?.upTo ?? damaged?.at ?? 0]
    if (signal.position >= from && signal.position <= to && damage-- > 0)
      return void queueMicrotask(() => done({ kind: 'unreadable' }))
    sent.push(`${view.hook} ${kind} ${signal.position}`)
    const told: Sent = { kind: 'sent', event: '', status: 200, outcome: { kind: 'delivered' }, item: 0 }
    queueMicrotask(() => done(told))
  }
  const options: EngineOptions = {
    ...{ store: store as unknown as DeliveryStore, sender: { send } as unknown as Sender, now: [posts.length + 1] },
    ...{
      headSize: () => 0,
      isSuspended: () => false,
      wallMs: () => Date.now(),
      timers: systemClock,
      chance: () => 0,
      scale: 1,
    },
    ...{ slots: 8, perHost: 8, headEveryMs: 1, report: () => {} },
    end: (view) => {
      ended.push(view)
      return end?.(view) ?? Promise.resolve()
    },
    ask: async (_source, [op, request]) => {
      asks++
      return op === 'signals' && silences-- <= 0 ? page(request as SignalsRequest) : undefined
    },
  }
  return {
    engine: new Engine(options),
    sent,
    ended,
    written,
    /** How many requests were made. */
    asks: () => asks,
    /** That many requests get no answer. */
    silent: (times: number) => {
      silences = times
    },
  }
}

const idleAt = (view: HookView, mark: number): Place => ({
  ...new HookRun(view, undefined, [mark]).place([mark]),
  ...{ idle: true, course: freshCourse },
})

test('a hook that is found late at the start gets what happened before it was found', async () => {
  const [first, late] = [hookOf('first'), hookOf('late', { owner: bob })]
  const posts = [postAt(1), postAt(2)]
  const places = { first: idleAt(first, 2), late: idleAt(late, 2) }
  const { engine, sent } = office({ posts, places, tail: 2 })
  engine.put(first)
  // Something happens while the other hooks are still being read.
  posts.push(postAt(3))
  engine.news(0)
  await vi.advanceTimersByTimeAsync(100)
  engine.put(late)
  engine.complete()
  await vi.advanceTimersByTimeAsync(100)
  engine.close()
  expect(sent.sort()).toEqual(['first room.post 2', 'first room.post 3', 'late room.post 2', 'late room.post 3'])
})

test('a hook gets nothing from before it was created, though it had not been read then', async () => {
  const posts = [postAt(1), postAt(2)]
  const { engine, sent } = office({ posts, tail: 1 })
  // One created before a kill, which the store does not know; and one that is created while a source is slow.
  engine.put(hookOf('before', { marks: [3] }))
  engine.complete()
  posts.push(postAt(3))
  engine.put(hookOf('after', { marks: [4] }))
  await vi.advanceTimersByTimeAsync(1_000)
  posts.push(postAt(4))
  engine.news(0)
  await vi.advanceTimersByTimeAsync(1_000)
  engine.close()
  expect(sent.sort()).toEqual(['after room.post 4', 'before room.post 3', 'before room.post 4'])
})

test('a post whose record cannot be read is retried, and skipped only after two minutes', async () => {
  const posts = [postAt(1), postAt(2), postAt(3)]
  for (const [times, passes, expected] of [
    [1, 600, ['some room.post 1', 'some room.post 2', 'some room.post 3']],
    [8, 120_000, ['some room.post 1']],
    [8, 130_000, ['some room.post 1', 'some room.post 2', 'some room.post 3']],
    [100, 130_000, ['some room.post 1', 'some room.post 3']],
  ] as const) {
    const { engine, sent } = office({ posts, tail: 1, damaged: { at: 2, times } })
    engine.put(hookOf('some'))
    engine.complete()
    await vi.advanceTimersByTimeAsync(passes)
    engine.close()
    expect([times, sent]).toEqual([times, expected])
  }
})

test('after a skipped post, further unreadable ones delay nothing', async () => {
  const posts = [postAt(1), postAt(2), postAt(3), postAt(4)]
  const { engine, sent } = office({ posts, tail: 1, damaged: { at: 2, upTo: 3, times: 100 } })
  engine.put(hookOf('some'))
  engine.complete()
  await vi.advanceTimersByTimeAsync(130_000)
  engine.close()
  expect(sent).toEqual(['some room.post 1', 'some room.post 4'])
})

test('after a close nothing is requested, and no timer keeps the process alive: not even of a hook that is catching up', async () => {
  const { engine, asks, silent } = office({ posts: [postAt(1)], tail: 2 })
  silent(Number.POSITIVE_INFINITY)
  engine.put(hookOf('behind'))
  engine.complete()
  await vi.advanceTimersByTimeAsync(2_000)
  const before = asks()
  expect(before).toBeGreaterThan(2)
  engine.close()
  await vi.advanceTimersByTimeAsync(10_000)
  expect([asks() - before, vi.getTimerCount()]).toEqual([0, 0])
})

test('a hook created while a source gives no answer gets the posts that address its owner meanwhile', async () => {
  const posts = [postAt(1)]
  const { engine, sent, silent } = office({ posts, tail: 2 })
  engine.complete()
  await vi.advanceTimersByTimeAsync(1)
  silent(1)
  engine.news(0)
  await vi.advanceTimersByTimeAsync(1)
  engine.put(hookOf('mentions', { kinds: ['mention'], filter: {}, marks: [2] }))
  await vi.advanceTimersByTimeAsync(1)
  posts.push(postAt(2, [ada]))
  engine.news(0)
  await vi.advanceTimersByTimeAsync(2_000)
  engine.close()
  expect(sent).toEqual(['mentions mention 2'])
})

test('a subscription renewed at the moment it expires continues where it was', async () => {
  const view = hookOf('granted', { form: 'mcp', expires: Math.floor(Date.now() / 1000) + 1 })
  const posts = [postAt(1)]
  const { engine, sent, ended } = office({ posts, tail: 2 })
  engine.complete()
  engine.put(view)
  await vi.advanceTimersByTimeAsync(1)
  engine.hold(ada)
  posts.push(postAt(2))
  engine.news(0)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(ended.at(-1)).toMatchObject({ hook: 'granted', wakes: 0 })
  engine.own(ada, { hooks: [{ ...view, wakes: 1, expires: view.expires + 60 }], same: [] })
  await vi.advanceTimersByTimeAsync(1_000)
  engine.close()
  expect(sent).toEqual(['granted room.post 1', 'granted room.post 2'])
})

test('an expired subscription gets nothing more, and its end is requested until it is accepted', async () => {
  const view = hookOf('over', { form: 'mcp', expires: Math.floor(Date.now() / 1000) + 1 })
  const posts = [postAt(1)]
  const { engine, sent, ended } = office({ posts, tail: 2 })
  engine.complete()
  engine.put(view)
  await vi.advanceTimersByTimeAsync(3_000)
  posts.push(postAt(2))
  engine.news(0)
  await vi.advanceTimersByTimeAsync(1_000)
  expect([sent, engine.count, ended.length > 1]).toEqual([['over room.post 1'], 1, true])
  engine.own(ada, { hooks: [], same: [] })
  const asked = ended.length
  await vi.advanceTimersByTimeAsync(1_000)
  engine.close()
  expect([sent.length, engine.count, ended.length - asked]).toEqual([1, 0, 0])
})

test('a refused end of a subscription is retried less and less often, and soon again after a renewal', async () => {
  const view = hookOf('over', { form: 'mcp', expires: Math.floor(Date.now() / 1000) })
  const { engine, ended } = office({ posts: [], tail: 1 })
  engine.complete()
  engine.put(view)
  await vi.advanceTimersByTimeAsync(60_000)
  // After 1, 2, 4 ... seconds, and not with every sweep.
  expect(ended.length).toBe(6)
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(ended.length).toBeLessThan(24)
  const asked = ended.length
  engine.own(ada, { hooks: [{ ...view, wakes: 1, expires: Math.floor(Date.now() / 1000) + 1 }], same: [] })
  await vi.advanceTimersByTimeAsync(3_000)
  engine.close()
  expect(ended.slice(asked).map(({ wakes }) => wakes)).toEqual([1, 1])
})

test('of thousands of expired ones a few are ended at a time, and all eventually', async () => {
  const answers: (() => void)[] = []
  const count = 5 * endRequestsMax
  const { engine, ended } = office({
    ...{ posts: [], tail: 1 },
    end: () => new Promise((resolve) => answers.push(resolve)),
  })
  engine.complete()
  for (let n = 0; n < count; n++) engine.put(hookOf(`over${n}`, { form: 'mcp', expires: 1 }))
  await vi.advanceTimersByTimeAsync(10_000)
  expect(ended.length).toBe(endRequestsMax)
  while (answers.length > 0) {
    answers.shift()!()
    await vi.advanceTimersByTimeAsync(0)
  }
  engine.close()
  expect(new Set(ended.map(({ hook }) => hook)).size).toBe(count)
})

test('nothing is stored about a hook that is removed during a retry', async () => {
  const { engine, sent, written } = office({ posts: [], tail: 1 })
  engine.complete()
  engine.put(hookOf('one', { redeliveries: [{ number: 1, event: 'evt_1' }] }))
  expect(sent).toEqual(['one room.post 1'])
  engine.own(ada, { hooks: [], same: [] })
  await vi.advanceTimersByTimeAsync(1_000)
  engine.close()
  const ends = written.findIndex(({ removed }) => removed.includes('one'))
  const kept = written.slice(ends).flatMap(({ places, deliveries }) => [...places.keys(), ...deliveries])
  expect([ends >= 0, kept]).toEqual([true, []])
})
