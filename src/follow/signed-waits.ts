/**
 * Waiting for the news of one signed reader: what is public, from the feed, and what happens in private rooms of the
 * reader, from every shard. Each source has its own order and its own mark; an answer takes from all of them by time.
 *
 * Each shard follows a waiting reader from before the first read, so nothing falls between the read and the wait.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { NoAnswer } from '../command/ports.ts'
import { type Reply, type Respond, refused } from '../format/reply.ts'
import type { Position, Update, UpdatesFilter, UpdatesPage, UpdatesRequest } from './rows.ts'
import type { Found } from './wait-limit.ts'

export type SignedWaitsOptions = {
  readonly shards: number
  /** Asks one source: 0 is the feed, n + 1 the shard n. */
  readonly read: (source: number, request: UpdatesRequest, answer: (page: UpdatesPage | NoAnswer) => void) => void
  /** Asks the shards to report when something happens that this reader may know of; false: no longer. */
  readonly follow: (reader: string, on: boolean) => void
  readonly handleOf: (reader: string) => string
  readonly reply: (reader: string, found: Found) => Reply
  /** Why this key is refused by now. */
  readonly keyOver: (key: string) => Refusal | undefined
  /** Puts an answer on its way. */
  readonly send: (respond: Respond, reply: Reply | undefined) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

type SignedWaiter = {
  until: number
  readonly respond: Respond
  readonly reader: string
  /** Public key that signed. */
  readonly key: string
  readonly filter: UpdatesFilter
  /** One mark for each source; null: from now. */
  readonly marks: (Position | null)[]
}

type Seated = SignedWaiter & {
  readonly dirty: Set<number>
  /** Whom the reader has blocked, by the source that said so when it was last read. */
  readonly blocked: Map<number, readonly string[]>
  reading: boolean
  isGone: boolean
}
type Page = Extract<UpdatesPage, { ok: true }>

/** Readers read for at the same time: a public post makes all of them look, and other reads want their turn too. */
const readingMax = 64

export class SignedWaits {
  readonly #options: SignedWaitsOptions
  readonly #waiters = new Map<string, Set<Seated>>()
  #reading = 0
  #queue: Seated[] = []

  constructor(options: SignedWaitsOptions) {
    this.#options = options
  }

  /** Returns what to call when the waiter is gone. */
  add(waiter: SignedWaiter): () => void {
    const seated: Seated = {
      ...waiter,
      dirty: new Set(Array.from({ length: this.#options.shards + 1 }, (_, source) => source)),
      blocked: new Map(),
      reading: false,
      isGone: false,
    }
    let waiters = this.#waiters.get(waiter.reader)
    if (waiters === undefined) {
      waiters = new Set()
      this.#waiters.set(waiter.reader, waiters)
      this.#options.follow(waiter.reader, true)
    }
    waiters.add(seated)
    this.#run(seated)
    return () => this.#leave(seated)
  }

  /** Public rooms changed. */
  changed(rooms: readonly (readonly [room: string, change: number])[]): void {
    for (const waiters of this.#waiters.values()) {
      for (const waiter of waiters) {
        const wanted = waiter.filter.rooms
        if (wanted.length === 0 || rooms.some(([room]) => wanted.includes(room))) this.#wake(waiter, 0)
      }
    }
  }

  /** Something happened in a shard that these readers may know of. */
  heard(shard: number, readers: readonly string[]): void {
    for (const reader of readers) for (const waiter of this.#waiters.get(reader) ?? []) this.#wake(waiter, shard + 1)
  }

  /** A shard was restarted: it has forgotten whom it follows. */
  restarted(shard: number): void {
    for (const [reader, waiters] of this.#waiters) {
      this.#options.follow(reader, true)
      for (const waiter of waiters) this.#wake(waiter, shard + 1)
    }
  }

  /** Answers those whose time is over. `all`: all of them. */
  sweep(all: boolean): void {
    this.endOver()
    const now = this.#options.now()
    for (const waiters of [...this.#waiters.values()]) {
      for (const waiter of [...waiters]) {
        if (all) waiter.until = 0
        if (waiter.until <= now && !waiter.reading && waiter.dirty.size === 0) this.#answerNothing(waiter)
      }
    }
  }

  /** Answers those whose key is refused since they came: they get nothing more. */
  endOver(): void {
    for (const waiters of [...this.#waiters.values()]) {
      for (const waiter of [...waiters]) {
        const why = this.#options.keyOver(waiter.key)
        if (why !== undefined) this.#answer(waiter, refused(why))
      }
    }
  }

  #wake(waiter: Seated, source: number): void {
    waiter.dirty.add(source)
    this.#run(waiter)
  }

  #run(waiter: Seated): void {
    if (waiter.reading || waiter.isGone || waiter.dirty.size === 0) return
    waiter.reading = true
    if (this.#reading === readingMax) this.#queue.push(waiter)
    else this.#read(waiter)
  }

  #read(waiter: Seated): void {
    this.#reading++
    const { filter, reader, marks } = waiter
    const sources = [...waiter.dirty]
    waiter.dirty.clear()
    const handle = this.#options.handleOf(reader)
    const pages: (UpdatesPage | NoAnswer)[] = []
    let open = sources.length
    sources.forEach((source, place) => {
      this.#options.read(source, { ...filter, from: marks[source]!, reader, handle }, (page) => {
        pages[place] = page
        if (--open > 0) return
        this.#reading--
        waiter.reading = false
        const next = this.#queue.shift()
        if (next !== undefined) this.#read(next)
        if (!waiter.isGone) this.#take(waiter, sources, pages)
      })
    })
  }

  #take(waiter: Seated, sources: readonly number[], pages: readonly (UpdatesPage | NoAnswer)[]): void {
    const failed = pages.find((page) => page === undefined || !page.ok)
    if (pages.includes(undefined) || failed !== undefined) {
      return this.#answer(waiter, failed === undefined || failed.ok ? undefined : refused(failed.refusal))
    }
    ;(pages as readonly Page[]).forEach((page, place) => {
      waiter.blocked.set(sources[place]!, page.blocked)
    })
    const blocked = new Set([...waiter.blocked.values()].flat())
    const found = (pages as readonly Page[]).map((page) => unblocked(page, blocked))
    const { updates, counts } = merged(found, waiter.filter.limit)
    let more = false
    found.forEach((page, place) => {
      const source = sources[place]!
      const count = counts[place]!
      const last = page.updates[count - 1]
      if (count === page.updates.length) waiter.marks[source] = page.end
      else if (last !== undefined) waiter.marks[source] = { next: last.next, taken: last.taken }
      if (page.more) waiter.dirty.add(source)
      more ||= page.more || count < page.updates.length
    })
    if (updates.length > 0)
      return this.#answer(
        waiter,
        this.#options.reply(waiter.reader, { updates, marks: waiter.marks as readonly Position[], more }),
      )
    if (waiter.dirty.size > 0) return this.#run(waiter)
    if (waiter.until <= this.#options.now()) this.#answerNothing(waiter)
  }

  #answerNothing(waiter: Seated): void {
    const found = { updates: [], marks: waiter.marks as readonly Position[], more: false }
    this.#answer(waiter, this.#options.reply(waiter.reader, found))
  }

  #answer(waiter: Seated, reply: Reply | undefined): void {
    this.#leave(waiter)
    this.#options.send(waiter.respond, reply)
  }

  #leave(waiter: Seated): void {
    waiter.isGone = true
    const waiters = this.#waiters.get(waiter.reader)
    if (waiters?.delete(waiter) !== true || waiters.size > 0) return
    this.#waiters.delete(waiter.reader)
    this.#options.follow(waiter.reader, false)
  }
}

/** The page without what those say to the reader whom they have blocked in any conversation. */
function unblocked(page: Page, blocked: ReadonlySet<string>): Page {
  if (blocked.size === 0) return page
  return { ...page, updates: page.updates.filter(({ from }) => from === undefined || !blocked.has(from)) }
}

/** At most `limit` updates of all pages by time, the order inside each page kept; and how many came from each. */
function merged(pages: readonly Page[], limit: number): { updates: string[]; counts: number[] } {
  const counts = pages.map(() => 0)
  const updates: string[] = []
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
    updates.push(first.json)
    counts[best]!++
  }
  return { updates, counts }
}
