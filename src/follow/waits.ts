/**
 * Requests that wait for updates. Each has one mark in every source that it follows: the feed and, for a signed reader, all shards. A
 * request is answered from the rows that a source pushes. It reads a source only if its mark is before what is pushed: when it arrives with
 * an older cursor, or when a push is incomplete.
 *
 * A source is followed before it is read, so nothing is missed between the two; what is pushed before the page of a read arrives is part of
 * that page. Unsigned requests with the same filter and mark share a read, and get the same bytes.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import type { NoAnswer } from '../command/ports.ts'
import { type Reply, type Respond, refused } from '../format/reply.ts'
import type { Outbox } from './outbox.ts'
import type { Position, PushedRow, Update, UpdatesFilter, UpdatesPage, UpdatesRequest } from './rows.ts'
import { type Subscriber, Subscriptions } from './subscriptions.ts'
import type { Blocked, FollowTell, PublicPush, Pushed, Topic } from './topics.ts'

/** The content of an answer; the cursor text is made from the marks. */
export type Found = { readonly updates: readonly string[]; readonly marks: readonly Position[]; readonly more: boolean }

export type WaitsOptions = {
  readonly shards: number
  /** Queries one source: 0 is the feed, n + 1 the shard n. */
  readonly read: (source: number, request: UpdatesRequest, answer: (page: UpdatesPage | NoAnswer) => void) => void
  /** Notifies the feed, or one or all shards. */
  readonly tell: (tell: FollowTell, shard?: number) => void
  readonly handleOf: (reader: string) => string
  readonly reply: (reader: string, found: Found) => Reply
  /** Why this reader or key is now refused. */
  readonly standing: (reader: Pick<Subscriber, 'reader' | 'key'>) => Refusal | undefined
  /** Newest public change that this thread knows of. */
  readonly newest: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly outbox: Outbox
}

type WaitRequest = {
  readonly until: number
  readonly respond: Respond
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
  /** Public key that signed, else ''. */
  readonly key: string
  readonly filter: UpdatesFilter
  /** One mark for each source; null to start from now. */
  readonly marks: readonly (Position | null)[]
}

/** A request's progress in one source. */
type Place = {
  mark: Position | null
  /** Whether it has to be read. */
  isDirty: boolean
  /** Whom the reader has blocked, as last reported by the source. */
  blocked: readonly string[]
  muted: readonly string[]
}

type Waiter = Subscriber &
  Pick<WaitRequest, 'respond' | 'filter'> & {
    until: number
    readonly places: readonly Place[]
    readonly alike: Alike
    reading: boolean
    isGone: boolean
  }

/** What is common to requests that get the same answers at the same marks; `name` is '' for signed readers. */
type Alike = { readonly name: string; readonly topics: readonly Topic[] }

type Page = Extract<UpdatesPage, { ok: true }>
/** Answers by what they depend on: requests with the same filter and mark get the same bytes. */
type Replies = Map<string, Reply>
type Read = { readonly sources: readonly number[]; readonly waiters: Waiter[]; readonly name: string }

/** Concurrent reads: other reads need their turn too. */
const readingMax = 64
const alikeMax = 1_024

export class Waits {
  readonly #options: WaitsOptions
  readonly subscriptions: Subscriptions<Waiter>
  readonly #alike = new BoundedMap<string, Alike>(alikeMax)
  /** Reads, queued or in progress, that another request can still join. */
  readonly #shared = new TurnoverMap<string, Read>()
  #reading = 0
  #queue: Read[] = []
  #answers: (() => void)[] = []

  constructor(options: WaitsOptions) {
    this.#options = options
    this.subscriptions = new Subscriptions({
      tell: options.tell,
      isRefused: (waiter) => options.standing(waiter) !== undefined,
      end: (waiter) => {
        if (!waiter.isGone) this.#answer(waiter, refused(options.standing(waiter)!))
      },
    })
  }

  /** Returns a function to call when the client has gone. */
  add(request: WaitRequest): () => void {
    const { until, respond, reader, key, filter, marks } = request
    const alike = this.#alikeOf(request)
    const newest = this.#options.newest()
    const now: Position = { next: newest + 1, taken: 0 }
    const waiter: Waiter = {
      until,
      respond,
      reader,
      key,
      filter,
      alike,
      topics: alike.topics,
      // An unsigned request at the newest change has nothing to read. A signed one also needs its reader's blocks.
      places: marks.map((asked) => {
        const mark = reader === '' ? (asked ?? now) : asked
        return { mark, isDirty: reader !== '' || mark?.next !== now.next || mark.taken > 0, blocked: [], muted: [] }
      }),
      reading: false,
      isGone: false,
      at: -1,
    }
    this.subscriptions.add(waiter)
    this.#run(waiter)
    return () => this.#leave(waiter)
  }

  /** Public rooms changed. */
  changed(rooms: readonly (readonly [room: string, change: number])[], pushed: PublicPush): void {
    const followed = new Set(pushed.followed)
    const missed = new Set(followed.has('') ? [] : rooms.map(([room]) => room).filter((room) => !followed.has(room)))
    const concerned = new Set(this.subscriptions.of(['room', '']))
    for (const [room] of rooms) for (const waiter of this.subscriptions.of(['room', room])) concerned.add(waiter)
    const made = new Map<Alike, { readonly wanted: Pushed; readonly replies: Replies }>()
    for (const waiter of concerned) {
      const { filter, alike } = waiter
      let found = made.get(alike)
      if (found === undefined) {
        const { rooms: named } = filter
        const isMissed = named.length === 0 ? missed.size > 0 : named.some((room) => missed.has(room))
        const wanted = { ...pushed, rows: wantedRows(waiter, pushed), isWhole: pushed.isWhole && !isMissed }
        found = { wanted, replies: new Map() }
        made.set(alike, found)
      }
      this.#push(waiter, 0, found.wanted, found.replies)
    }
  }

  /** Requests with the same filter share an object, to avoid one for each of thousands. */
  #alikeOf(request: WaitRequest): Alike {
    const { rooms, kinds, limit } = request.filter
    if (request.reader !== '') return { name: '', topics: topicsOf(request) }
    const name = JSON.stringify([rooms, kinds, limit])
    let alike = this.#alike.get(name)
    if (alike === undefined) {
      alike = { name, topics: topicsOf(request) }
      this.#alike.set(name, alike)
    }
    return alike
  }

  /** Something happened in a shard that these readers may know of. */
  changedInShard(shard: number, pushed: Pushed, concerned: Blocked): void {
    for (const [reader, blocked] of concerned) {
      for (const waiter of [...this.subscriptions.of(['reader', reader])]) {
        waiter.places[shard + 1]!.blocked = blocked
        this.#push(waiter, shard + 1, { ...pushed, rows: wantedRows(waiter, pushed) }, new Map())
      }
    }
  }

  /** A shard was restarted and has lost its subscriptions. */
  restarted(shard: number): void {
    for (const topic of this.subscriptions.topics()) {
      if (topic[0] !== 'reader') continue
      this.#options.tell(['follow', topic], shard)
      for (const waiter of [...this.subscriptions.of(topic)]) this.#wake(waiter, shard + 1)
    }
  }

  /** Answers the requests whose time is up; with `all`, every request. */
  sweep(all: boolean): void {
    this.subscriptions.endRefused()
    const now = this.#options.now()
    const replies: Replies = new Map()
    for (const waiter of this.subscriptions.all()) {
      if (all) waiter.until = 0
      if (waiter.until <= now && !waiter.reading && !waiter.isGone) this.#answerNothing(waiter, replies)
    }
  }

  /** Pushes one source's rows that the waiter wants, without those before its mark, which it has seen. */
  #push(waiter: Waiter, source: number, { through, rows, isWhole }: Pushed, replies: Replies): void {
    const place = waiter.places[source]!
    const { mark } = place
    if (mark !== null && mark.next > through) return
    if (!isWhole || waiter.reading || mark === null) return this.#wake(waiter, source)
    let first = 0
    while (first < rows.length && rows[first]!.position < mark.next) first++
    const fresh = unblocked(first === 0 ? rows : rows.slice(first), waiter)
    if (fresh.length > waiter.filter.limit) return this.#wake(waiter, source)
    place.mark = { next: through + 1, taken: 0 }
    if (fresh.length > 0) this.#answerWith(waiter, { updates: fresh, more: false }, String(first), replies)
  }

  #wake(waiter: Waiter, source: number): void {
    waiter.places[source]!.isDirty = true
    this.#run(waiter)
  }

  /** Reads the dirty sources, and answers a request whose time is up. */
  #run(waiter: Waiter): void {
    if (waiter.reading || waiter.isGone) return
    if (!waiter.places.some(({ isDirty }) => isDirty)) {
      if (waiter.until <= this.#options.now()) this.#answerNothing(waiter, new Map())
      return
    }
    waiter.reading = true
    const sources = waiter.places.flatMap(({ isDirty }, source) => (isDirty ? [source] : []))
    for (const source of sources) waiter.places[source]!.isDirty = false
    const { name: filter } = waiter.alike
    const name = filter === '' ? '' : `${this.#options.newest()} ${markName(waiter.places)} ${filter}`
    const under = this.#shared.get(name)
    if (under !== undefined) {
      under.waiters.push(waiter)
      return
    }
    const read: Read = { sources, waiters: [waiter], name }
    if (name !== '') this.#shared.set(name, read)
    if (this.#reading === readingMax) this.#queue.push(read)
    else this.#read(read)
  }

  #read(read: Read): void {
    this.#reading++
    const { sources, waiters } = read
    const { filter, reader, places } = waiters[0]!
    const handle = this.#options.handleOf(reader)
    const pages: (UpdatesPage | NoAnswer)[] = []
    let open = sources.length
    sources.forEach((source, nth) => {
      this.#options.read(source, { ...filter, from: places[source]!.mark, reader, handle }, (page) => {
        pages[nth] = page
        if (--open > 0) return
        this.#reading--
        this.#shared.delete(read.name)
        const next = this.#queue.shift()
        if (next !== undefined) this.#read(next)
        const replies: Replies = new Map()
        for (const waiter of waiters) {
          waiter.reading = false
          if (!waiter.isGone) this.#take(waiter, sources, pages, replies)
        }
      })
    })
  }

  #take(
    waiter: Waiter,
    sources: readonly number[],
    pages: readonly (UpdatesPage | NoAnswer)[],
    replies: Replies,
  ): void {
    const found = pages.filter((page) => page?.ok === true)
    if (found.length < pages.length) {
      const failed = pages.find((page) => page?.ok === false)
      return this.#answer(
        waiter,
        failed === undefined || pages.includes(undefined) ? undefined : refused(failed.refusal),
      )
    }
    found.forEach(({ blocked, muted }, nth) => {
      const place = waiter.places[sources[nth]!]!
      place.blocked = blocked
      place.muted = muted
    })
    const shown = found.map((page) => ({ ...page, updates: unblocked(page.updates, waiter) }))
    const { updates, counts } = merged(shown, waiter.filter.limit)
    let more = false
    shown.forEach((page, nth) => {
      const place = waiter.places[sources[nth]!]!
      const count = counts[nth]!
      const last = page.updates[count - 1]
      if (count === page.updates.length) place.mark = page.end
      else if (last !== undefined) place.mark = { next: last.next, taken: last.taken }
      if (page.more) place.isDirty = true
      more ||= page.more || count < page.updates.length
    })
    if (updates.length > 0) this.#answerWith(waiter, { updates, more }, 'read', replies)
    else this.#run(waiter)
  }

  #answerNothing(waiter: Waiter, replies: Replies): void {
    this.#answerWith(waiter, { updates: [], more: false }, `${markName(waiter.places)} ${waiter.alike.name}`, replies)
  }

  /** `what`: equal for unsigned requests that get the same answer from `replies`. */
  #answerWith(
    waiter: Waiter,
    { updates, more }: { readonly updates: readonly { readonly json: string }[]; readonly more: boolean },
    what: string,
    replies: Replies,
  ): void {
    let reply = waiter.alike.name === '' ? undefined : replies.get(what)
    if (reply === undefined) {
      const marks = waiter.places.map(({ mark }) => mark!)
      reply = this.#options.reply(waiter.reader, { updates: updates.map(({ json }) => json), marks, more })
      replies.set(what, reply)
    }
    this.#answer(waiter, reply)
  }

  #answer(waiter: Waiter, reply: Reply | undefined): void {
    this.#leave(waiter)
    if (this.#answers.push(() => waiter.respond(reply)) === 1) this.#options.outbox.put((most) => this.#give(most))
  }

  #give(most: number): number {
    // Removed before they run: an answer may bring the next request immediately, whose answer needs another turn.
    const now = this.#answers.splice(0, most)
    for (const give of now) give()
    return now.length
  }

  #leave(waiter: Waiter): void {
    if (waiter.isGone) return
    waiter.isGone = true
    this.subscriptions.remove(waiter)
  }
}

function topicsOf({ reader, filter: { rooms } }: WaitRequest): readonly Topic[] {
  const named = rooms.length === 0 ? [''] : rooms
  return [...named.map((room): Topic => ['room', room]), ...(reader === '' ? [] : [['reader', reader] as const])]
}

function wantedRows({ reader, filter: { rooms, kinds } }: Waiter, pushed: Pushed): readonly PushedRow[] {
  return pushed.rows.filter(
    ({ room, type, readers }) =>
      (rooms.length === 0 || rooms.includes(room)) &&
      (kinds.length === 0 || kinds.includes(type)) &&
      (readers === undefined || readers.includes(reader)),
  )
}

/** Leaves out what blocked users (in any conversation) say to the reader, and everything by muted users. */
function unblocked<Each extends Pick<Update, 'from' | 'author'>>(
  updates: readonly Each[],
  { places }: Waiter,
): readonly Each[] {
  if (places.every(({ blocked, muted }) => blocked.length + muted.length === 0)) return updates
  const blocked = new Set(places.flatMap((place) => place.blocked))
  const muted = new Set(places.flatMap((place) => place.muted))
  return updates.filter(
    ({ from, author }) => (from === undefined || !blocked.has(from)) && (author === undefined || !muted.has(author)),
  )
}

/** At most `limit` updates of all pages, merged by time with each page's order kept; and how many came from each page. */
function merged(pages: readonly Page[], limit: number): { updates: Update[]; counts: number[] } {
  const counts = pages.map(() => 0)
  const updates: Update[] = []
  while (updates.length < limit) {
    let best = -1
    let first: Update | undefined
    pages.forEach((page, place) => {
      const update = page.updates[counts[place]!]
      if (update === undefined || (first !== undefined && update.at >= first.at)) return
      first = update
      best = place
    })
    if (first === undefined) break
    updates.push(first)
    counts[best]!++
  }
  return { updates, counts }
}

function markName(places: readonly Place[]): string {
  return places.map(({ mark }) => `${mark?.next}-${mark?.taken}`).join('.')
}
