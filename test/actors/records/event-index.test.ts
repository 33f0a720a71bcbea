/** Threads stay linked as they were made, however often their columns grow while links change. */
import { hash } from 'node:crypto'
import { expect, test } from 'vitest'
import { Columns } from '../../../actors/records/columns.ts'
import { EventIndex, none } from '../../../actors/records/event-index.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

const idOf = (n: number) => hash('sha256', `event ${n}`, 'buffer').subarray(0, 16)

/** Slots of each thread, by its root, in order. */
type Threads = Map<number, number[]>

function add(index: EventIndex, threads: Threads, chance: SeededRandom): void {
  const slot = index.count
  const roots = [...threads.keys()]
  const root = slot === 0 || (slot < 200 && chance.below(4) === 0) ? none : roots[chance.below(roots.length)]!
  const place = { shard: 0, place: slot + 1, room: 0, page: 0, kind: 0, author: 0, seq: slot + 1, at: slot }
  const rest = { isEdit: false, expires: 0, change: slot + 1, leaf: slot }
  expect(index.add({ id: idOf(slot), root, parent: root, ...place, ...rest })).toBe(slot)
  if (root === none) threads.set(slot, [slot])
  else threads.get(root)!.push(slot)
}

function expectThreads(index: EventIndex, threads: Threads): void {
  for (const [root, slots] of threads) {
    expect(index.tail(root)).toBe(slots.at(-1))
    const found: number[] = []
    for (let slot = root; slot !== none; slot = index.next(slot)) found.push(slot)
    expect(found).toEqual(slots)
    expect(slots.slice(2).map((slot) => index.tail(slot))).toEqual(slots.slice(1, -1))
  }
}

test('threads are complete at each size', () => {
  const chance = new SeededRandom('threads that grow')
  const threads: Threads = new Map()
  const index = new EventIndex()
  for (let n = 1; n <= 35_000; n++) {
    add(index, threads, chance)
    // Columns grow at powers of two, and are copied from 15/16 of one on.
    if (n % 3_000 === 0 || [15_400, 16_384, 16_385, 31_000, 32_768, 32_769].includes(n)) expectThreads(index, threads)
  }
  for (let slot = 0; slot < index.count; slot++)
    expect([index.find(idOf(slot)), index.place(slot), index.at(slot)]).toEqual([slot, slot + 1, slot])
})

test.each([1, 900, 15_000, 15_500, 31_000])(
  'a snapshot of %i events written while others are added has the threads of its time, and continues',
  (count) => {
    const chance = new SeededRandom(`threads of ${count}`)
    const threads: Threads = new Map()
    const index = new EventIndex()
    for (let n = 0; n < count; n++) add(index, threads, chance)
    const columns = new Columns([], true)
    const packed = structuredClone(index.pack(columns))
    const then: Threads = structuredClone(threads)
    for (let n = 0; n < 3_000; n++) add(index, threads, chance)
    const read = EventIndex.of(packed, new Columns(columns.all.map((bytes) => bytes.slice())))!
    expect(read.count).toBe(count)
    expectThreads(read, then)
    for (let n = 0; n < 3_000; n++) add(read, then, chance)
    expectThreads(read, then)
    expectThreads(index, threads)
  },
)
