/** Searches of private rooms share the shards with everyone's writes: they take turns, and leave half of the time to others. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { internalLimits } from '../../../actors/kernel/limits.ts'
import { refusal } from '../../../actors/kernel/refusals.ts'
import { Searches } from '../../../src/board/searches.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Actors } from '../../../src/command/ports.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const absent = refusal('not_found', 'there is no room', 'room')

/** Searches of rooms that only their shard knows; the test ends each. */
class Bench {
  readonly begun: string[] = []
  readonly answered: string[] = []
  readonly #ends = new Map<string, () => void>()
  readonly #searches: Searches

  constructor() {
    const actors: Pick<Actors, 'shards' | 'read' | 'readPrivate'> = {
      shards: 1,
      read: (_request, answer) => answer({ ok: false, absent }),
      readPrivate: (_shard, { args }, answer) => {
        this.begun.push(String(args.room))
        this.#ends.set(String(args.room), () => answer({ ok: false, absent }))
      },
    }
    const queue = { ...internalLimits.searchQueue, now: () => Date.now(), timers: systemClock }
    this.#searches = new Searches({ actors: actors as Actors, queue })
  }

  ask(room: string, address: string): void {
    const request = { op: 'events.list', args: { room, query: 'word' }, reader: '' } as const
    this.#searches.read(request, { address }, () => this.answered.push(room))
  }

  end(room: string, ms: number): void {
    vi.advanceTimersByTime(ms)
    this.#ends.get(room)!()
  }
}

test('one private search runs at a time, and the next begins after a pause of the same length', () => {
  const bench = new Bench()
  bench.ask('one', '192.0.2.1')
  bench.ask('two', '192.0.2.2')
  expect(bench.begun).toEqual(['one'])
  bench.end('one', 40)
  expect(bench.answered).toEqual(['one'])
  vi.advanceTimersByTime(39)
  expect(bench.begun).toEqual(['one'])
  vi.advanceTimersByTime(1)
  expect(bench.begun).toEqual(['one', 'two'])
  bench.end('two', 5)
  expect(bench.answered).toEqual(['one', 'two'])
})
