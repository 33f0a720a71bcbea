/** Lists of threads under what a hostile author, voter or moderator can do; and what keeps a list of numbers in order. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { none } from '../../actors/records/event-index.ts'
import { Looks, NewestFirst } from '../../actors/threads/newest-first.ts'
import { Ordered } from '../../actors/threads/ordered.ts'
import type { ThreadsQuery } from '../../actors/threads/threads.ts'
import { person, ShardHarness } from '../support/shard-harness.ts'

const plain = { page: '', kind: '', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }
const query: ThreadsQuery = { order: 'active', window: 'day', limit: 10, from: undefined }

function post(shard: ShardHarness, who: string, more: object = {}): string {
  const said = shard.send(who, 'post', 'hall', { text: 'words', args: { ...plain, ...more } })
  if (!said.ok) throw new Error(said.refusal.message)
  return said.id
}

function hall(): ShardHarness {
  const shard = new ShardHarness()
  shard.send('ann', 'room.create', 'hall', { args: { visibility: 'public', members: [], text: '' } })
  return shard
}

test('a thread of 20,000 replies is redacted from its newest to its oldest, and is correct after each', () => {
  const shard = hall()
  const root = post(shard, 'ann')
  const other = post(shard, 'ben')
  const replies = Array.from({ length: 20_000 }, (_, n) => post(shard, n % 2 === 0 ? 'ben' : 'cat', { replyTo: root }))
  const { events } = shard.state.board
  const slotOf = (id: string) => events.find(Buffer.from(id, 'hex'))
  const index = shard.state.threads.at(shard.now)
  expect(index.find(query).roots).toEqual([slotOf(root), slotOf(other)])
  expect(index.sums(slotOf(root))).toEqual({
    replies: 20_000,
    participants: 3,
    last: slotOf(replies.at(-1)!),
    until: 0,
  })
  for (let n = replies.length - 1; n >= 0; n--) {
    shard.send(n % 2 === 0 ? 'ben' : 'cat', 'event.redact', 'hall', { args: { event: replies[n]!, reason: 'x' } })
    const last = n === 0 ? root : replies[n - 1]!
    const sums = index.sums(slotOf(root))
    // Of 20,000 comparisons only the first wrong one is reported in full.
    if (sums.replies !== n || sums.last !== slotOf(last)) expect(sums).toMatchObject({ replies: n, last: slotOf(last) })
  }
  expect(index.find(query).roots).toEqual([slotOf(other), slotOf(root)])
  shard.send('ann', 'event.redact', 'hall', { args: { event: root, reason: 'x' } })
  expect(index.find(query).roots).toEqual([slotOf(other)])
  expect(index.sums(slotOf(root))).toEqual({ replies: 0, participants: 0, last: none, until: 0 })
})

test('a list with few threads among many replies ends its pages early, and the pages are complete', () => {
  const shard = hall()
  const slotOf = (id: string) => shard.state.board.events.find(Buffer.from(id, 'hex'))
  const [first, second] = [slotOf(post(shard, 'ann')), slotOf(post(shard, 'ann', { page: 'side' }))]
  const root = post(shard, 'ann')
  for (let n = 0; n < 105_000; n++) post(shard, n % 50 === 0 ? 'ben' : 'ann', { replyTo: root })
  const long = slotOf(root)
  const { board, threads } = shard.state
  const room = board.rooms.get('hall')!
  const author = board.authors.get(person('ann'))!.number
  const pages = (more: Partial<ThreadsQuery>, from?: number): (readonly number[])[] => {
    const found = threads.at(shard.now).find({ ...query, ...more, from })
    return [found.roots, ...(found.next === undefined ? [] : pages(more, found.next))]
  }
  const places = { front: {}, room: { room }, page: { room, page: 'main' }, author: { author } }
  for (const [name, place] of Object.entries(places)) {
    const all = name === 'page' ? [long, first] : [long, second, first]
    for (const order of ['active', 'new', 'top'] as const) {
      const found = pages({ ...place, order })
      expect([name, order, found.flat()]).toEqual([name, order, all])
      // Threads without votes are ordered by age.
      expect([name, order, found.length > 1]).toEqual([name, order, order !== 'top'])
      // What was found once is cached; a place further down is searched from there.
      expect(pages({ ...place, order })).toHaveLength(1)
      expect(threads.at(shard.now + 1).find({ ...query, ...place, order, from: second + 1 }).roots).toEqual(
        all.slice(1),
      )
    }
  }
  const later = threads.at(shard.now)
  shard.send('ben', 'vote', 'hall', { args: { event: board.events.idHex(first), value: 1 } })
  expect(later.find({ ...query, order: 'top', author }).roots).toEqual([first, long, second])
})

test('a search for a place is bounded per reader, and the next reader continues where it ended', () => {
  const slots = { length: 1_000, at: (n: number) => n * 2, lowerBound: (slot: number) => Math.ceil(slot / 2) }
  const list = (limit: number) => new NewestFirst(slots, limit, (slot) => slot % 500 === 0, [])
  const kept = list(2_000)
  const found: number[] = []
  let reached: number | undefined = 2_000
  let readers = 0
  for (; reached !== undefined; readers++) {
    const looks: Looks = new Looks(100)
    // Every second reader uses a list that was read before, the others one that begins where they are.
    const isKept = readers % 2 === 0 && kept.hasFound(reached)
    found.push(...(isKept ? kept : list(reached)).below(reached, looks))
    reached = looks.reached
  }
  expect(found).toEqual([1_500, 1_000, 500, 0])
  expect(readers).toBeGreaterThan(3)
  expect(readers).toBeLessThan(20)
})

test('one identity counts once, however often it changes its vote and whenever', () => {
  const shard = hall()
  const event = post(shard, 'ann')
  const slot = shard.state.board.events.find(Buffer.from(event, 'hex'))
  const honest = post(shard, 'ann')
  for (const who of ['cat', 'dan']) shard.send(who, 'vote', 'hall', { args: { event: honest, value: 1 } })
  const top: ThreadsQuery = { ...query, order: 'top' }
  for (let n = 0; n < 1_000; n++) {
    shard.send('ben', 'vote', 'hall', { args: { event, value: [1, 0, -1, 1][n % 4]! } })
    shard.now += n % 7 === 0 ? 600 : 0
    for (const who of n % 100 === 0 ? ['cat', 'dan'] : []) {
      shard.send(who, 'vote', 'hall', { args: { event: honest, value: 0 } })
      shard.send(who, 'vote', 'hall', { args: { event: honest, value: 1 } })
    }
    const index = shard.state.threads.at(shard.now)
    const { up, down } = index.votes(slot)
    expect(up + down).toBeLessThanOrEqual(1)
    expect(index.find(top).roots.at(-1)).toBe(slot)
  }
})

test('a room that repeatedly leaves and rejoins the front page is where its policy says', () => {
  const shard = hall()
  post(shard, 'ann')
  for (let n = 0; n < 50; n++) {
    shard.send('ann', 'room.policy.set', 'hall', { args: { set: { front_page: n % 2 === 1 } } })
    expect(shard.state.threads.at(shard.now).find(query).roots).toHaveLength(n % 2)
  }
})

test('numbers stay in order and complete, whatever is added and removed', () => {
  const value = fc.nat({ max: 4_000 })
  const change = fc.record({ isAdded: fc.boolean(), value })
  const run = fc.record({ from: value, count: fc.nat({ max: 1_500 }), isAdded: fc.boolean() })
  fc.assert(
    fc.property(fc.array(fc.oneof(change, run), { maxLength: 60 }), fc.array(value), (steps, limits) => {
      const begun = Uint32Array.from({ length: 1_200 }, (_, n) => n * 3)
      const list = Ordered.slots(begun)
      const model = new Set<number>(begun)
      for (const each of steps) {
        const values = 'count' in each ? Array.from({ length: each.count }, (_, n) => each.from + n) : [each.value]
        for (const one of values) {
          if (each.isAdded) list.add(one)
          else list.remove(one)
          if (each.isAdded) model.add(one)
          else model.delete(one)
        }
      }
      for (const limit of [...limits, 0, Number.POSITIVE_INFINITY]) {
        const expected = [...model].filter((one) => one < limit).sort((a, b) => b - a)
        expect([...list.below(limit)]).toEqual(expected)
      }
      expect(list.length).toBe(model.size)
    }),
    { numRuns: 100 },
  )
})
