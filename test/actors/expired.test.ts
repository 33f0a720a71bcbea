/** Expired posts are counted once: however many there were, later readers do not walk them. */

import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { countsOf, pagesOf } from '../../actors/reading.ts'
import { type BoardRecord, RecordType } from '../../actors/records/record.ts'
import { State } from '../../actors/state.ts'
import { activityReads } from '../../src/posts/reads.ts'
import { dataOf, type ReadContext } from '../../src/reads/read.ts'

const posts = 3_000
const [start, end] = [1_790_000_000, 1_790_000_600]

/** A page whose first post stays, half of the others expires at `end` and half before; and how often a time was examined. */
function crowded() {
  const state = new State()
  const apply = (record: object, n: number): void => {
    const id = createHash('sha256').update(`${n}`).digest().subarray(0, 16)
    state.apply(record as BoardRecord, id, { shard: 0, seq: n, change: n, leaf: n })
  }
  apply({ type: RecordType.roomCreated, room: 'hall', at: start, visibility: 'public' }, 1)
  const by = { key: Buffer.alloc(32, 2), sig: Buffer.alloc(64), signed: Buffer.from('{}') }
  const post = { type: RecordType.event, room: 'hall', page: 'main', kind: 'note', at: start, via: 'x', by }
  for (let n = 0; n <= posts; n++) {
    const expires = n === 0 ? {} : { expires: end - (n % 2) * (n % 300) }
    apply({ ...post, seq: n + 1, author: Buffer.alloc(32, 1), ...expires }, n + 2)
  }
  const { events } = state.board
  const expires = events.expires.bind(events)
  let looks = 0
  events.expires = (slot) => {
    looks++
    return expires(slot)
  }
  const looked = (read: () => void): number => {
    const before = looks
    read()
    return looks - before
  }
  return { state, room: state.board.rooms.get('hall')!, looked }
}

test('counts, pages and disk cleanup cost only what has expired since they last ran', () => {
  const { state, room, looked } = crowded()
  const readAll = (now: number) => () => {
    pagesOf(state, room, now)
    countsOf(state, room, now)
    state.marks.removedTextSlots(now)
  }
  expect(pagesOf(state, room, start)[0]).toMatchObject({ count: posts + 1, last: posts })
  expect(looked(readAll(start))).toBeLessThan(50)
  expect(pagesOf(state, room, end)[0]).toMatchObject({ count: 1, last: 0, until: 0 })
  expect(countsOf(state, room, end)).toEqual({ count: 1, threads: 1, pages: 1, until: 0 })
  expect(state.marks.removedTextSlots(end)).toHaveLength(posts)
  expect(looked(readAll(end))).toBeLessThan(50)
  expect(looked(readAll(end + 1_000))).toBeLessThan(50)
})

test('the plot of posts leaves out what has expired, and examines nothing else', () => {
  const { state, looked } = crowded()
  const shownAt = (now: number): number => {
    const context = { state, board: state.board, now: () => now } as unknown as ReadContext
    const args = { step: 3_600, bars: 24 }
    const found = activityReads['board.activity']!(context, { op: 'board.activity', args, reader: '' })
    if (!found.ok) throw new Error('no plot')
    return dataOf(found).counts.reduce((sum, count) => sum + count)
  }
  expect(shownAt(start)).toBe(posts + 1)
  expect(looked(() => shownAt(start))).toBeLessThan(50)
  expect(shownAt(end)).toBe(1)
  expect(looked(() => shownAt(end))).toBeLessThan(50)
})

test('a query for an earlier time finds no expired post again', () => {
  const { state, room } = crowded()
  expect(pagesOf(state, room, end)[0]).toMatchObject({ count: 1, last: 0 })
  expect(countsOf(state, room, start).count).toBe(1)
  expect(pagesOf(state, room, start)[0]).toMatchObject({ count: 1 })
})
