/**
 * What does a page of threads cost on a board of ten thousand events, and on one of a million? Measured on the state alone: bodies, of
 * which a page reads one for each thread, cost the same on both.
 *
 * One event in four begins a thread, one in ten is voted on, and one thread of each board has a tenth of all events.
 */

import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { RecordType } from '../actors/records/record.ts'
import { State } from '../actors/state.ts'
import type { ThreadIndex, ThreadsQuery } from '../actors/threads/threads.ts'
import type { Bench, Row } from './report.ts'

export const threadLists: Bench = {
  name: 'thread-lists',
  question: 'Does a page of threads cost the same on 10^4 events and on 10^6?',
  run: async ({ isQuick }) => {
    const counts = isQuick ? [10_000, 100_000] : [10_000, 1_000_000]
    const boards = counts.map((count) => filled(count))
    return [
      { title: 'a page of 50 threads, microseconds', rows: pageRows(boards) },
      { title: 'a record applied while the lists are followed, microseconds', rows: boards.map(applyRow) },
      { title: 'the lists, made when they are first read', rows: boards.map(madeRow) },
    ]
  },
}

const roomsMax = 200
const authorsMax = 20_000
const begin = 1_790_000_000
const rounds = 400

type Filled = {
  readonly state: State
  readonly count: number
  readonly now: number
  readonly madeMs: number
  readonly madeBytes: number
}

function idOf(n: number): Buffer {
  return createHash('sha256').update(`event ${n}`).digest().subarray(0, 16)
}

const authors = Array.from({ length: authorsMax }, (_, n) => createHash('sha256').update(`author ${n}`).digest())
const signed = Buffer.from('{"command":{"text":"x"}}')
const byOf = (author: number) => ({ key: authors[author]!, sig: Buffer.alloc(64), signed })

/** Numbers that repeat in every run. */
class Chance {
  #state = 12_345

  below(limit: number): number {
    this.#state = (this.#state * 48_271) % 2_147_483_647
    return this.#state % limit
  }
}

class Writer {
  readonly state = new State(undefined, 'reading')
  readonly chance = new Chance()
  readonly roots: number[] = []
  #change = 0
  #events = 0

  constructor() {
    for (let n = 0; n < roomsMax; n++)
      this.#apply({ type: RecordType.roomCreated, room: `room-${n}`, at: begin, visibility: 'public' }, idOf(-1 - n))
  }

  get events(): number {
    return this.#events
  }

  get now(): number {
    return begin + Math.floor(this.#events / 5)
  }

  /** `root`: number of the event that it replies to; undefined: it begins a thread. */
  post(root: number | undefined): void {
    const n = this.#events++
    const author = this.chance.below(authorsMax)
    if (root === undefined) this.roots.push(n)
    const place = root === undefined ? {} : { reply: idOf(root), root: idOf(root) }
    const room = `room-${(root ?? n) % roomsMax}`
    this.#apply(
      {
        type: RecordType.event,
        room,
        at: this.now,
        author: authors[author]!,
        page: 'main',
        kind: 'note',
        seq: n + 1,
        via: 'command',
        by: byOf(author),
        ...place,
      },
      idOf(n),
    )
  }

  vote(n: number, value: 1 | -1): void {
    const author = this.chance.below(authorsMax)
    this.#act('vote', author, { id: idOf(n), value, up: 0, down: 0 })
  }

  hide(n: number, isHidden: boolean): void {
    const facts = { id: idOf(n), reason: 'x', by: 'room' }
    this.#act(isHidden ? 'room.hide' : 'room.restore', 0, facts)
  }

  #act(op: string, author: number, facts: Readonly<Record<string, unknown>>): void {
    const record = { type: RecordType.act, room: 'room-0', at: this.now, author: authors[author]!, op, facts }
    this.#apply({ ...record, by: byOf(author) }, idOf(-1_000_000 - this.#change))
  }

  #apply(record: Parameters<State['apply']>[0], key: Buffer): void {
    const change = ++this.#change
    this.state.apply(record, key, { shard: 0, seq: change, change, leaf: change })
  }
}

const writers = new Map<State, Writer>()

function filled(count: number): Filled {
  const writer = new Writer()
  const { chance, roots } = writer
  while (writer.events < count) {
    const isLong = writer.events > 0 && chance.below(10) === 0
    const isRoot = writer.events === 0 || chance.below(4) === 0
    writer.post(isLong ? 0 : isRoot ? undefined : roots[Math.max(0, roots.length - 1 - chance.below(500))])
    if (chance.below(10) === 0) writer.vote(chance.below(writer.events), chance.below(4) === 0 ? -1 : 1)
  }
  writers.set(writer.state, writer)
  const before = memoryInUse()
  const start = process.cpuUsage()
  for (const query of queriesOf(writer.state)) pageOf(writer.state.threads.at(writer.now), query)
  const madeMs = process.cpuUsage(start).user / 1_000
  return { state: writer.state, count, now: writer.now, madeMs, madeBytes: memoryInUse() - before }
}

/** Bytes, after all garbage is collected. */
function memoryInUse(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let times = 0; times < 4; times++) collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function queriesOf({ board }: State): (ThreadsQuery & { readonly name: string })[] {
  const room = board.rooms.get('room-7')!
  const author = board.authors.get(authors[7]!.toString('hex'))?.number ?? 0
  const base = { limit: 50, from: undefined, window: 'week' } as const
  return [
    { ...base, name: 'front page, active', order: 'active' },
    { ...base, name: 'front page, new', order: 'new' },
    { ...base, name: 'front page, top of a day', order: 'top', window: 'day' },
    { ...base, name: 'front page, top of all', order: 'top', window: 'all' },
    { ...base, name: 'a room, active', order: 'active', room },
    { ...base, name: 'a room, top of a week', order: 'top', room },
    { ...base, name: 'an author, active', order: 'active', author },
  ]
}

/** A page, except for its texts. */
function pageOf(index: ThreadIndex, query: ThreadsQuery): number | undefined {
  const { roots, next } = index.find(query)
  for (const root of roots) {
    index.sums(root)
    index.votes(root)
  }
  return next
}

function pageRows(boards: readonly Filled[]): Row[] {
  const names = queriesOf(boards[0]!.state).map(({ name }) => name)
  const cases = [...names, 'front page, active, page 100']
  return cases.map((name, nth) => {
    const columns = boards.map(({ state, count, now }) => {
      const index = state.threads.at(now)
      const query = queriesOf(state)[nth] ?? { ...queriesOf(state)[0]!, from: deep(index, state) }
      // The compiler warms up.
      for (let n = 0; n < rounds; n++) pageOf(index, query)
      const times = Array.from({ length: rounds }, () => timed(() => pageOf(state.threads.at(now), query)))
      return { [`${count} events, p50`]: part(times, 0.5), [`${count} events, p99`]: part(times, 0.99) }
    })
    return Object.assign({ list: name }, ...columns) as Row
  })
}

/** Position of the hundredth page, or of the last. */
function deep(index: ThreadIndex, state: State): number | undefined {
  let from: number | undefined
  for (let page = 0; page < 99; page++) {
    const next = index.find({ ...queriesOf(state)[0]!, from }).next
    if (next === undefined) return from
    from = next
  }
  return from
}

function applyRow({ state, count }: Filled): Row {
  const writer = writers.get(state)!
  const each = (act: (n: number) => void) =>
    part(
      Array.from({ length: rounds * 10 }, (_, n) => timed(() => act(n))),
      0.5,
    )
  const { events } = state.board
  const longest = events.tail(events.find(idOf(0)))
  const roots = () => writer.roots[writer.chance.below(writer.roots.length)]!
  return {
    events: count,
    'new thread': each(() => writer.post(undefined)),
    reply: each(() => writer.post(roots())),
    'reply to the longest': each(() => writer.post(0)),
    vote: each(() => writer.vote(roots(), 1)),
    // Slots are assigned in the order of events.
    'hide or restore the newest of the longest': each((n) => writer.hide(longest, n % 2 === 0)),
  }
}

function madeRow({ count, madeMs, madeBytes, state }: Filled): Row {
  const threads = state.board.roomList.reduce((sum, room) => sum + room.threads, 0)
  return {
    events: count,
    threads,
    'ms of processor time': Math.round(madeMs),
    'bytes a thread': Math.round(madeBytes / threads),
  }
}

function timed(run: () => void): number {
  const start = performance.now()
  run()
  return (performance.now() - start) * 1_000
}

function part(times: readonly number[], share: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  return Math.round(sorted[Math.floor((sorted.length - 1) * share)]! * 10) / 10
}
