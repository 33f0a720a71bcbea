/**
 * Versions, hides, redactions and votes against a model that fits on a page: in any order of commands, the same ones are refused, lists and
 * counts show what the model shows, and a snapshot or a replay of the records gives the same state.
 */

import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deciders } from '../../actors/deciders.ts'
import type { AnyWriteName } from '../../actors/operations.ts'
import { countsOf, findEvents, pagesOf, readThread } from '../../actors/reading.ts'
import type { BoardRecord } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { State } from '../../actors/state.ts'
import { identityId } from '../../src/format/signing.ts'
import { imageBytes } from '../support/image-bytes.ts'

/** Owner, moderator, two without a role, and the operator of the board. */
const people = Array.from({ length: 5 }, (_, n) => {
  const key = createHash('sha256').update(`person ${n}`).digest()
  return { key, id: identityId(key) }
})
const [owner, moderator, operator] = [0, 1, 4]
const room = 'hall'
const pages = ['main', 'side']

type Step =
  | { readonly op: 'post'; readonly by: number; readonly page: number; readonly reply: number; readonly ttl: number }
  | { readonly op: 'edit'; readonly by: number; readonly of: number; readonly version: number }
  | { readonly op: 'room.hide' | 'room.restore' | 'event.redact'; readonly by: number; readonly of: number }
  | { readonly op: 'author.hide' | 'author.show'; readonly by: number; readonly from: number }
  | { readonly op: 'vote'; readonly by: number; readonly of: number; readonly value: 1 | 0 | -1 }
  | { readonly op: 'wait'; readonly seconds: number }

const by = fc.nat({ max: people.length - 1 })
const of = fc.nat({ max: 30 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('post' as const),
      by,
      // One of the pages, or none given.
      page: fc.nat({ max: 2 }),
      reply: fc.integer({ min: -20, max: 20 }),
      ttl: fc.constantFrom(0, 0, 3),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('edit' as const), by, of, version: fc.nat({ max: 5 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constantFrom('room.hide' as const, 'room.restore' as const, 'event.redact' as const),
      by,
      of,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constant('vote' as const), by, of, value: fc.constantFrom(1 as const, 0, -1) }),
  },
  fc.record({ op: fc.constantFrom('author.hide' as const, 'author.show' as const), by, from: fc.nat({ max: 9 }) }),
  fc.record({ op: fc.constant('wait' as const), seconds: fc.constantFrom(1, 5) }),
)

/** The board under test: decides, applies, and keeps the records so that they can be replayed. */
class Subject {
  readonly records: { record: BoardRecord; key: Uint8Array }[] = []
  state = new State()
  now = 1_790_000_000
  #count = 0

  /** The id of what was accepted (32 hex), or the code of the refusal. */
  do(op: AnyWriteName, person: number, args: Record<string, unknown>): { id: string } | { code: string } {
    const sha = createHash('sha256')
      .update(`command ${this.#count++}`)
      .digest()
    const { key, id } = people[person]!
    const letter: WriteLetter = {
      op,
      to: room,
      id: sha.subarray(0, 16),
      sha,
      author: id,
      by: { key, sig: Buffer.alloc(64), signed: Buffer.from('{"command":{}}') },
      timestamp: this.now,
      nonce: 'n',
      requestId: '',
      via: 'command',
      limited: 0,
      rotated: false,
      suspended: false,
      operator: person === operator,
      args,
    }
    const { state, now } = this
    const record = (seq: number) => this.records[seq - 1]!.record
    const decision = deciders[op]!({ state, board: state.board, now, record }, letter)
    if (!decision.ok) return { code: decision.refusal.code }
    for (const { record, key: made } of decision.records) {
      this.records.push({ record, key: Buffer.from(made) })
      state.apply(record, made, placeOf(this.records.length))
    }
    return { id: sha.toString('hex', 0, 16) }
  }

  post(person: number, args: object): { id: string } | { code: string } {
    const plain = { page: '', kind: 'note', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }
    return this.do('post', person, { ...plain, ...args })
  }

  replayed(): State {
    const state = new State()
    for (const [n, { record, key }] of this.records.entries()) state.apply(record, key, placeOf(n + 1))
    return state
  }
}

function placeOf(seq: number) {
  return { shard: 0, seq, change: seq, leaf: 0 }
}

type Kept = {
  readonly by: number
  readonly page: string
  readonly root: number
  readonly ends: number
  /** Ids, the original's first. */
  readonly versions: string[]
  hidden: 'room' | 'operator' | undefined
  isRedacted: boolean
  isWithAuthor: boolean
  readonly votes: Map<number, number>
}

/** A naive model of a room's events. */
class Model {
  readonly events: Kept[] = []

  isGone(event: Kept, now: number): boolean {
    return event.isWithAuthor || this.isGoneByItself(event, now)
  }

  isGoneByItself({ hidden, isRedacted, ends }: Kept, now: number): boolean {
    return isRedacted || hidden !== undefined || (ends !== 0 && ends <= now)
  }

  /** In which role this person may remove a text. */
  power(person: number, event: Kept): 'room' | 'operator' | undefined {
    if (person === owner) return 'room'
    if (person === moderator) return event.by === owner ? undefined : 'room'
    return person === operator ? 'operator' : undefined
  }

  mark(op: AnyWriteName, person: number, event: Kept, now: number): string {
    const power = op === 'event.redact' && person === event.by ? 'room' : this.power(person, event)
    if (power === undefined) return 'forbidden'
    if (op === 'room.hide') {
      if (this.isGoneByItself(event, now)) return 'wrong_state'
      event.hidden = power
    } else if (op === 'room.restore') {
      if (event.isRedacted || event.hidden === undefined) return 'wrong_state'
      if (event.hidden === 'operator' && person !== operator) return 'forbidden'
      event.hidden = undefined
    } else {
      if (event.isRedacted) return 'wrong_state'
      event.isRedacted = true
    }
    return 'ok'
  }

  vote(person: number, event: Kept, value: number, now: number): string {
    if (person === event.by) return 'forbidden'
    if (this.isGone(event, now)) return 'wrong_state'
    event.votes.set(person, value)
    return 'ok'
  }

  edit(person: number, event: Kept, version: number, now: number): string {
    if (person !== event.by) return 'forbidden'
    if (this.isGone(event, now)) return 'wrong_state'
    if (version !== 0 && version !== event.versions.length - 1) return 'conflict'
    return event.versions.length >= 32 ? 'wrong_state' : 'ok'
  }
}

function run(steps: readonly Step[]): { subject: Subject; model: Model } {
  const subject = new Subject()
  const model = new Model()
  subject.do('room.create', owner, { visibility: 'public', members: [], text: '' })
  subject.do('room.moderator.add', owner, { target: people[moderator]!.id })
  for (const step of steps) {
    if (step.op === 'wait') {
      subject.now += step.seconds
      // A read by somebody in between changes no later read.
      seen(subject.state, subject.now, model)
      continue
    }
    if (step.op === 'post') {
      const parent = model.events[step.reply]
      // Any version identifies the event.
      const replyTo = parent?.versions.at(-1) ?? ''
      const named = pages[step.page]
      const done = subject.post(step.by, { page: named ?? '', replyTo, ttl: step.ttl })
      const ends = step.ttl === 0 ? 0 : subject.now + step.ttl
      const root = parent === undefined ? model.events.length : parent.root
      const fresh = { hidden: undefined, isRedacted: false, isWithAuthor: false, votes: new Map() }
      const versions = [(done as { id: string }).id]
      const page = named ?? parent?.page ?? 'main'
      model.events.push({ by: step.by, page, root, ends, versions, ...fresh })
      continue
    }
    if ('from' in step) {
      subject.do(step.op, operator, { target: people[step.by]!.id, from: step.from })
      const { board } = subject.state
      for (const event of model.events)
        if (event.by === step.by && board.events.find(Buffer.from(event.versions[0]!, 'hex')) >= step.from)
          event.isWithAuthor = step.op === 'author.hide'
      continue
    }
    const event = model.events[step.of]
    if (event === undefined) continue
    const any = event.versions[step.by % event.versions.length]!
    if (step.op === 'edit') {
      const version = step.version % event.versions.length
      const expected = model.edit(step.by, event, version, subject.now)
      const done = subject.post(step.by, { supersedes: event.versions[version] })
      expect('code' in done ? done.code : 'ok').toBe(expected)
      if ('id' in done) event.versions.push(done.id)
    } else if (step.op === 'vote') {
      const expected = model.vote(step.by, event, step.value, subject.now)
      const done = subject.do('vote', step.by, { event: any, value: step.value })
      expect('code' in done ? done.code : 'ok').toBe(expected)
    } else {
      const expected = model.mark(step.op, step.by, event, subject.now)
      const done = subject.do(step.op, step.by, { event: any, reason: 'r' })
      expect('code' in done ? done.code : 'ok').toBe(expected)
    }
  }
  return { subject, model }
}

/** Everything that a reader can see of marks, from the code under test. */
function seen(state: State, now: number, model: Model) {
  const { events, rooms } = state.board
  const slotOf = (id: string) => events.find(Buffer.from(id, 'hex'))
  const list = (order: 'asc' | 'desc', page?: string) =>
    findEvents(state, { room, order, limit: 1000, ...(page === undefined ? {} : { page }) }, now).slots.map((slot) =>
      events.idHex(slot),
    )
  return {
    events: model.events.map(({ versions: [id = ''] }) => {
      const slot = slotOf(id)
      return {
        versions: [slot, ...state.marks.edits(slot)].map((each) => events.idHex(each)),
        isGone: state.marks.gone(slot, now) !== undefined,
        votes: state.marks.votes(slot),
        thread: readThread(state.board, state.marks.newest(slot), { order: 'asc', limit: 1000 }).slots.map((each) =>
          events.idHex(each),
        ),
      }
    }),
    lists: [list('asc'), list('desc'), ...pages.map((page) => list('asc', page))],
    pages: pagesOf(state, rooms.get(room)!, now)
      .map(({ name, count, threads, last }) => ({ name, count, threads, last: events.idHex(last) }))
      .sort((a, b) => a.name.localeCompare(b.name)),
    room: countsOf(state, rooms.get(room)!, now),
    takenBack: state.marks
      .removedTextSlots(now)
      .map((slot) => events.idHex(slot))
      .sort(),
  }
}

/** The same from the model. */
function expectedOf(model: Model, now: number): ReturnType<typeof seen> {
  const visible = model.events.filter((event) => !model.isGone(event, now))
  const ids = (some: readonly Kept[]) => some.map(({ versions: [id = ''] }) => id)
  const counted = pages.flatMap((name) => {
    const own = visible.filter(({ page }) => page === name)
    const threads = own.filter((event) => model.events[event.root] === event).length
    return own.length === 0 ? [] : [{ name, count: own.length, threads, last: ids(own).at(-1)! }]
  })
  const ends = visible.flatMap(({ ends: end }) => (end === 0 ? [] : [end]))
  return {
    events: model.events.map((event) => {
      const cast = [...event.votes.values()]
      const [up, down] = [1, -1].map((value) => cast.filter((each) => each === value).length) as [number, number]
      return {
        versions: event.versions,
        isGone: model.isGone(event, now),
        votes: { up, down, score: up - down },
        thread: ids(model.events.filter(({ root }) => root === event.root)),
      }
    }),
    lists: [
      ids(visible),
      ids(visible).reverse(),
      ...pages.map((name) => ids(visible.filter(({ page }) => page === name))),
    ],
    pages: counted,
    room: {
      count: visible.length,
      threads: counted.reduce((sum, { threads }) => sum + threads, 0),
      pages: counted.length,
      until: ends.length === 0 ? 0 : Math.min(...ends),
    },
    takenBack: model.events
      .filter(({ isRedacted, ends: end }) => isRedacted || (end !== 0 && end <= now))
      .flatMap(({ versions }) => versions)
      .sort(),
  }
}

test('lists, threads, counts and sums match the model, from a snapshot, a replay, and at any later time', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const { subject, model } = run(steps)
      const packed = subject.state.pack(null)
      const replayed = subject.replayed()
      const unpacked = State.unpack(packed)!.state
      expect(imageBytes(replayed.pack(null)).equals(imageBytes(packed))).toBe(true)
      expect(imageBytes(unpacked.pack(null)).equals(imageBytes(packed))).toBe(true)
      for (const state of [subject.state, replayed, unpacked])
        for (const later of [0, 3, 100])
          expect(seen(state, subject.now + later, model)).toEqual(expectedOf(model, subject.now + later))
    }),
    { numRuns: 150 },
  )
})

test('a page of a list and the next equal one long page, whatever is hidden in between', () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 7 }),
      fc.boolean(),
      (steps, limit, isRising) => {
        const { subject } = run(steps)
        const query = { room, order: isRising ? ('asc' as const) : ('desc' as const) }
        const whole = findEvents(subject.state, { ...query, limit: 1000 }, subject.now).slots
        const walked: number[] = []
        for (let from: number | undefined; ; ) {
          const found = findEvents(
            subject.state,
            { ...query, limit, ...(from === undefined ? {} : { from }) },
            subject.now,
          )
          walked.push(...found.slots)
          if (found.next === undefined) break
          from = found.next
        }
        expect(walked).toEqual(whole)
      },
    ),
    { numRuns: 100 },
  )
})
