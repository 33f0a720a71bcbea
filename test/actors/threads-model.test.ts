/**
 * Lists of threads against a naive recomputation from every event: whatever the order of posts, replies, votes, edits, hides,
 * restores, redactions, expiries, policies and moves, whenever a list was first read, and after a replay or a snapshot.
 */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countsOf } from '../../actors/reading.ts'
import { none } from '../../actors/records/event-index.ts'
import type { State } from '../../actors/state.ts'
import { type VoteWindow, voteWindows } from '../../actors/threads/scores.ts'
import { type ThreadsQuery, threadOrders } from '../../actors/threads/threads.ts'
import { person, ShardHarness } from '../support/shard-harness.ts'

const people = ['ann', 'ben', 'cat', 'dan', 'eve']
const rooms = ['hall', 'yard']
const pages = ['main', 'side']
const operator = 'operator'

const by = fc.constantFrom(...people)
const of = fc.nat({ max: 60 })
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('post' as const),
      by,
      room: fc.constantFrom(...rooms),
      page: fc.constantFrom('', ...pages),
      reply: fc.integer({ min: -30, max: 60 }),
      ttl: fc.constantFrom(0, 0, 0, 3, 4_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('edit' as const), of }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constantFrom('room.hide' as const, 'room.hide' as const, 'room.restore' as const, 'event.redact' as const),
      of,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('author.hide' as const, 'author.show' as const),
      by,
      room: fc.constantFrom(...rooms),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('vote' as const), by, of, value: fc.constantFrom(1, 1, 0, -1) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('wait' as const), seconds: fc.constantFrom(1, 5, 3_600, 90_000, 700_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('front' as const), room: fc.constantFrom(...rooms), front: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('read' as const), query: fc.nat({ max: 1_000 }) }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('move' as const), of, to: fc.constantFrom(...rooms) }) },
)
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

type Cast = { readonly value: number; readonly at: number }
type Post = { readonly id: string; readonly votes: Map<string, Cast> }

/** A room, its posts, the votes as they were cast, and where threads were moved: by the id of the root. */
class Story {
  readonly shard = new ShardHarness()
  readonly posts: Post[] = []
  readonly moves = new Map<string, string>()

  constructor() {
    for (const room of rooms)
      this.shard.send('ann', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } })
  }

  do(given: Step): void {
    const { shard, posts } = this
    if (given.op === 'wait') shard.now += given.seconds
    else if (given.op === 'read') {
      const all = queries(shard.state)
      shard.state.threads.at(shard.now).find(all[given.query % all.length]!)
    } else if (given.op === 'front') {
      const said = shard.send('ann', 'room.policy.set', given.room, { args: { set: { front_page: given.front } } })
      expect(said.ok).toBe(true)
    } else if (!('of' in given) && given.op !== 'post')
      shard.send(operator, given.op, given.room, { args: { target: person(given.by), from: 0 } })
    else if (given.op === 'post') this.#post(given)
    else {
      const post = posts[given.of % Math.max(1, posts.length)]
      if (post === undefined) return
      const { events, roomList, authors } = shard.state.board
      const slot = events.find(Buffer.from(post.id, 'hex'))
      const room = roomList[events.room(slot)]!.name
      if (given.op === 'edit') {
        const author = people.find((each) => person(each) === authors.idOf(events.author(slot)))!
        shard.send(author, 'post', room, { text: 'edited', args: { ...plain, supersedes: post.id } })
      } else if (given.op === 'vote') {
        const said = shard.send(given.by, 'vote', room, { args: { event: post.id, value: given.value } })
        const before = post.votes.get(given.by)?.value ?? 0
        if (said.ok && before !== given.value) post.votes.set(given.by, { value: given.value, at: shard.now })
      } else if (given.op === 'move') {
        const destination = { isPublic: true, isClosed: false, moderates: false }
        const args = { event: post.id, to: given.to, reason: '', destination, moderatesList: '' }
        const said = shard.send(operator, 'thread.move', room, { operator: true, args })
        const root = events.idHex(events.rootOf(slot))
        expect(said.ok).toBe(given.to !== (this.moves.get(root) ?? room))
        this.moves.set(root, given.to)
      } else shard.send(operator, given.op, room, { operator: true, args: { event: post.id, reason: 'because' } })
    }
  }

  #post({ by, room, page, reply, ttl }: Extract<Step, { op: 'post' }>): void {
    const replyTo = reply < 0 ? '' : (this.posts[reply % Math.max(1, this.posts.length)]?.id ?? '')
    const said = this.shard.send(by, 'post', room, { text: 'words', args: { ...plain, page, replyTo, ttl } })
    if (said.ok) this.posts.push({ id: said.id, votes: new Map() })
  }
}

const plain = { page: '', kind: '', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }

function queries({ board }: State): ThreadsQuery[] {
  const scopes: Pick<ThreadsQuery, 'room' | 'page' | 'author'>[] = [
    {},
    ...rooms.flatMap((name) => {
      const room = board.rooms.get(name)!
      return [{ room }, ...pages.filter((page) => room.pages.has(page)).map((page) => ({ room, page }))]
    }),
    ...people.flatMap((name) => {
      const author = board.authors.get(person(name))?.number
      return author === undefined ? [] : [{ author }, { author, room: board.rooms.get('hall')! }]
    }),
  ]
  const windows = Object.keys(voteWindows) as VoteWindow[]
  return scopes.flatMap((scope) =>
    threadOrders.flatMap((order) =>
      windows
        .filter((window) => order === 'top' || window === 'day')
        .map((window) => ({ ...scope, order, window, limit: 3, from: undefined })),
    ),
  )
}

/** Every page of a list, one after the other. */
function listed(state: State, query: ThreadsQuery, now: number): number[] {
  const roots: number[] = []
  let from: number | undefined
  do {
    const found = state.threads.at(now).find({ ...query, from })
    roots.push(...found.roots)
    from = found.next
  } while (from !== undefined)
  return roots
}

/** The same, computed from all events. */
function naive(state: State, { posts, moves }: Story, query: ThreadsQuery, now: number): number[] {
  const { events, rooms: named, roomList, pages: names } = state.board
  const hour = (seconds: number) => Math.floor(seconds / 3_600)
  const scoreOf = (root: number): number =>
    posts
      .filter(({ id }) => threadOf(state, id) === root)
      .flatMap(({ votes }) => [...votes.values()])
      .filter(({ at }) => hour(at) > hour(now) - voteWindows[query.window])
      .reduce((sum, { value }) => sum + value, 0)
  const keyOf = (root: number): number[] => {
    if (query.order === 'new') return [root]
    if (query.order === 'top') return [scoreOf(root), root]
    return [Math.max(...shownIn(state, posts, root, now))]
  }
  const fits = (root: number): boolean => {
    if (events.root(root) !== none || shownIn(state, posts, root, now).length === 0) return false
    const own = roomList[events.room(root)]!
    const room = named.get(moves.get(events.idHex(root)) ?? '') ?? own
    if (query.author !== undefined && events.author(root) !== query.author) return false
    if (query.room === undefined) return [own, room].every(({ name }) => state.rules.policyOf(name).front_page)
    return room === query.room && (query.page === undefined || names.name(events.page(root)) === query.page)
  }
  return posts
    .map(({ id }) => events.find(Buffer.from(id, 'hex')))
    .filter(fits)
    .map((root) => ({ root, key: keyOf(root) }))
    .sort((a, b) => b.key[0]! - a.key[0]! || (b.key[1] ?? 0) - (a.key[1] ?? 0))
    .map(({ root }) => root)
}

function threadOf({ board: { events } }: State, id: string): number {
  const slot = events.find(Buffer.from(id, 'hex'))
  return events.root(slot) === none ? slot : events.root(slot)
}

function shownIn(state: State, posts: readonly Post[], root: number, now: number): number[] {
  return posts
    .filter(({ id }) => threadOf(state, id) === root)
    .map(({ id }) => state.board.events.find(Buffer.from(id, 'hex')))
    .filter((slot) => state.marks.gone(slot, now) === undefined)
}

function holds(state: State, story: Story): void {
  const { posts, shard } = story
  const { now } = shard
  const { events } = state.board
  for (const query of queries(state)) {
    const found = listed(state, query, now)
    expect([query.order, query.window, found]).toEqual([query.order, query.window, naive(state, story, query, now)])
  }
  for (const room of state.board.roomList) {
    const all = listed(state, { room, order: 'new', window: 'all', limit: 3, from: undefined }, now)
    const whole = all.filter((root) => state.marks.gone(root, now) === undefined)
    expect(countsOf(state, room, now).threads).toBe(whole.length)
  }
  const index = state.threads.at(now)
  for (const { id } of posts) {
    const root = events.find(Buffer.from(id, 'hex'))
    const shown = shownIn(state, posts, root, now)
    if (events.root(root) !== none || shown.length === 0) continue
    const ends = shown.map((slot) => events.expires(slot)).filter((end) => end !== 0)
    const votes = posts.filter((post) => threadOf(state, post.id) === root).flatMap((post) => [...post.votes.values()])
    const up = votes.filter(({ value }) => value === 1).length
    const down = votes.filter(({ value }) => value === -1).length
    expect({ ...index.sums(root), votes: index.votes(root) }).toEqual({
      replies: shown.filter((slot) => slot !== root).length,
      participants: new Set(shown.map((slot) => events.author(slot))).size,
      last: Math.max(...shown),
      until: Math.min(...ends) === Number.POSITIVE_INFINITY ? 0 : Math.min(...ends),
      votes: { up, down, score: up - down },
    })
  }
}

/** A list that nobody has read yet continues from the middle, as after a start. */
function goesOn(state: State, story: Story): void {
  const { now } = story.shard
  const index = state.threads.at(now)
  for (const query of queries(state)) {
    const roots = naive(state, story, query, now)
    const middle = roots.length >>> 1
    if (roots[middle] === undefined) continue
    const { roots: found } = index.find({ ...query, from: index.placeOf(query, roots[middle]) })
    expect([query.order, query.window, found]).toEqual([query.order, query.window, roots.slice(middle + 1, middle + 4)])
  }
}

test('lists of threads equal a recomputation, whenever they are read', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
      const story = new Story()
      for (const [n, each] of steps.entries()) {
        story.do(each)
        // Read early, so that the lists have to follow later events; and late, so that they are built from them.
        if (n === 40) holds(story.shard.state, story)
      }
      holds(story.shard.state, story)
      const { replayed, unpacked } = story.shard.replay()
      goesOn(unpacked, story)
      holds(replayed, story)
      holds(unpacked, story)
    }),
    { numRuns: 150 },
  )
})

test('a long thread is counted the same way', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 150, maxLength: 250 }), (steps) => {
      const story = new Story()
      story.do({ op: 'post', by: 'ann', room: 'hall', page: '', reply: -1, ttl: 0 })
      for (const [n, each] of steps.entries()) {
        story.do(each.op === 'post' && n % 10 !== 0 ? { ...each, room: 'hall', reply: 0 } : each)
        if (n === 80) holds(story.shard.state, story)
      }
      goesOn(story.shard.replay().unpacked, story)
      holds(story.shard.state, story)
    }),
    { numRuns: 30 },
  )
})
