/**
 * updates.get: what is new since a cursor, at once if there is anything, else as soon as there is.
 *
 * A cursor holds the generation and one mark for the feed; a signed one also a mark for each shard. It is sealed for its
 * reader and opaque to others. It stays good across restarts, for positions are places in files.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { Cancel, Timers } from '../clock.ts'
import type { OpenRooms } from '../command/open-rooms.ts'
import type { NoAnswer } from '../command/ports.ts'
import type { CursorSealer } from '../format/cursor.ts'
import { type Reply, type Respond, refused } from '../format/reply.ts'
import { fromYou, type PlaceKeeper, Places, streamWaitSeconds } from '../rates/places.ts'
import { PublicWaits } from './public-waits.ts'
import type { Position, UpdatesFilter, UpdatesPage, UpdatesRequest } from './rows.ts'
import { SignedWaits } from './signed-waits.ts'
import { type Found, Outbox, type Poll } from './wait-limit.ts'

export type UpdatesOptions = {
  readonly shards: number
  readonly generation: string
  readonly cursors: CursorSealer
  readonly rooms: Pick<OpenRooms, 'may'>
  readonly readFeed: (request: UpdatesRequest, answer: (page: UpdatesPage | NoAnswer) => void) => void
  readonly readShard: (shard: number, request: UpdatesRequest, answer: (page: UpdatesPage | NoAnswer) => void) => void
  /** Tells every shard whose news to report. */
  readonly follow: (reader: string, on: boolean) => void
  readonly handleOf: (reader: string) => string
  /** Why the key of a signed reader is refused since it asked; undefined: it is not. */
  readonly keyOver: (key: string) => Refusal | undefined
  /** Newest public change that this thread knows. */
  readonly newest: () => number
  readonly waitersMax: number
  /** Requests that one client may have waiting. */
  readonly waitsPerAddress: number
  readonly keeper?: PlaceKeeper
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Timers
}

const sweepEveryMs = 250
/** Opened cursors kept: half a kilobyte each. */
const openedMax = 1_024

export class Updates {
  readonly #options: UpdatesOptions
  readonly #places: Places
  readonly #outbox = new Outbox()
  readonly #public: PublicWaits
  readonly #signed: SignedWaits
  readonly #stopSweeping: Cancel
  /** Marks of cursors that were opened, by reader and text. */
  readonly #opened = new BoundedMap<string, readonly Position[]>(openedMax)
  #closed = false

  constructor(options: UpdatesOptions) {
    this.#options = options
    this.#places = new Places({
      limit: 'waits_per_address',
      each: options.waitsPerAddress,
      max: options.waitersMax,
      keeper: options.keeper,
    })
    const send = (respond: Respond, reply: Reply | undefined) => this.#outbox.put(() => respond(reply))
    this.#public = new PublicWaits({
      read: options.readFeed,
      reply: (found) => this.#reply('', found),
      send,
      now: options.now,
    })
    this.#signed = new SignedWaits({
      shards: options.shards,
      read: (source, request, answer) =>
        source === 0 ? options.readFeed(request, answer) : options.readShard(source - 1, request, answer),
      follow: options.follow,
      handleOf: options.handleOf,
      reply: (reader, found) => this.#reply(reader, found),
      keyOver: options.keyOver,
      send,
      now: options.now,
    })
    this.#stopSweeping = options.timers.every(() => this.#sweep(), sweepEveryMs)
  }

  /** Requests that wait now. */
  get waiting(): number {
    return this.#places.taken
  }

  poll(poll: Poll, respond: Respond): void {
    const { cursor, reader, key, rooms, kinds, limit } = poll
    const waitMs = this.#closed ? 0 : poll.waitSeconds * 1000
    // A reader that does not wait is answered by the next read, and needs no place.
    const over = waitMs === 0 ? () => {} : this.#places.take(poll)
    if (typeof over === 'string') return respond(refused(this.#full(over)))
    const marks = cursor === '' ? undefined : this.#open(reader, cursor)
    if (marks !== undefined && 'code' in marks) {
      over()
      return respond(refused(marks))
    }
    // Added before its rooms are looked for, so that nothing falls between the two; an answer is held until they are known.
    let mayHear = false
    let held: (() => void) | undefined
    const answer: Respond = (reply) => {
      over()
      if (mayHear) respond(reply)
      else held = () => respond(reply)
    }
    const until = this.#options.now() + waitMs
    const filter = { rooms: sorted(rooms), kinds: sorted(kinds), limit }
    const leave =
      reader === ''
        ? this.#addPublic(filter, marks?.[0], until, answer)
        : this.#signed.add({
            until,
            respond: answer,
            reader,
            key,
            filter,
            marks: marks === undefined ? this.#nowhere() : [...marks],
          })
    const end = (): void => {
      over()
      leave()
    }
    poll.onGone(end)
    this.#options.rooms.may(filter.rooms, reader, (verdict) => {
      mayHear = verdict === 'yes'
      if (mayHear) return held?.()
      end()
      respond(typeof verdict === 'object' ? refused({ ...verdict, field: poll.roomsField }) : undefined)
    })
  }

  /** Public rooms changed. */
  changed(rooms: readonly (readonly [room: string, change: number])[]): void {
    if (rooms.length === 0) return
    this.#public.changed(rooms)
    this.#signed.changed(rooms)
  }

  heard(shard: number, readers: readonly string[]): void {
    this.#signed.heard(shard, readers)
  }

  /** Some keys are refused from now on. */
  keysOver(): void {
    this.#signed.endOver()
  }

  restarted(shard: number): void {
    this.#signed.restarted(shard)
  }

  /** All waiting readers are answered now, and none waits from here on. */
  close(): void {
    this.#closed = true
    this.#stopSweeping()
    this.#sweep()
  }

  #full(what: 'holder' | 'board'): Refusal {
    const message =
      what === 'board'
        ? 'as many requests wait for updates as this board can serve: try again'
        : `${this.#options.waitsPerAddress} requests wait for news already ${fromYou}: let one end first, or name several rooms in one`
    return refusal(what === 'board' ? 'overloaded' : 'rate_limited', message, undefined, streamWaitSeconds)
  }

  #addPublic(filter: UpdatesFilter, asked: Position | undefined, until: number, respond: Respond): () => void {
    const newest = this.#options.newest()
    const mark = asked ?? { next: newest + 1, taken: 0 }
    const add = () => this.#public.add(filter, { until, respond, mark, need: newest })
    if (mark.next <= newest + 1) return add()
    // Further than this thread knows: the feed can tell whether that is the past of this board.
    let leave = (): void => {
      leave = () => {}
      isGone = true
    }
    let isGone = false
    this.#options.readFeed({ ...filter, from: mark, reader: '', handle: '' }, (page) => {
      if (isGone) return
      if (page?.ok) leave = add()
      else respond(page === undefined ? undefined : refused(page.refusal))
    })
    return () => leave()
  }

  #reply(reader: string, { updates, marks, more }: Found): Reply {
    const cursor = this.#seal(reader, marks)
    const { generation } = this.#options
    return {
      status: 200,
      body: `{"ok":true,"data":{"schema":1,"updates":[${updates.join(',')}],"cursor":"${cursor}","has_more":${more},"generation":"${generation}"}}`,
    }
  }

  #seal(reader: string, marks: readonly Position[]): string {
    return this.#options.cursors.seal(listName(reader), [this.#options.generation, marks.map(markText).join('.')])
  }

  /** The marks of a cursor. Thousands who were given one answer come back with one cursor. */
  #open(reader: string, cursor: string): readonly Position[] | Refusal {
    const name = `${reader} ${cursor}`
    const known = this.#opened.get(name)
    if (known !== undefined) return known
    const marks = this.#read(reader, cursor)
    if ('code' in marks) return marks
    this.#opened.set(name, marks)
    return marks
  }

  /** The marks inside a cursor, or why it cannot be served. */
  #read(reader: string, cursor: string): readonly Position[] | Refusal {
    const { cursors, generation, shards } = this.#options
    const place = cursors.open(listName(reader), cursor) as readonly [string, string] | undefined
    if (place === undefined)
      return refusal(
        'invalid_field',
        'this cursor was not issued to this reader by updates.get: start again without one',
        'cursor',
      )
    const count = reader === '' ? 1 : shards + 1
    const marks = place[1].split('.').map(markOf)
    if (place[0] === generation && marks.length === count) return marks
    const oldest = this.#seal(
      reader,
      Array.from({ length: count }, () => ({ next: 1, taken: 0 })),
    )
    return refusal(
      'expired',
      `this cursor is from before a restore of this board; the oldest good one is ${oldest}`,
      'cursor',
    )
  }

  #sweep(): void {
    this.#public.sweep(this.#closed)
    this.#signed.sweep(this.#closed)
  }

  #nowhere(): null[] {
    return Array.from({ length: this.#options.shards + 1 }, () => null)
  }
}

/** A cursor is good for whom it was given to. */
const listName = (reader: string) => `updates:${reader}`

const markText = ({ next, taken }: Position) => (taken === 0 ? next.toString(36) : `${next.toString(36)}-${taken}`)

function markOf(text: string): Position {
  const [next = '', taken = '0'] = text.split('-')
  return { next: Number.parseInt(next, 36), taken: Number(taken) }
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort()
}
