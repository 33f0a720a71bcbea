/**
 * updates.get: what is new since a cursor, immediately if there is anything, otherwise as soon as there is.
 *
 * A cursor holds the generation and one mark for the feed; a signed reader's cursor also has a mark for each shard, and the shard layout.
 * It is sealed for its reader and opaque to others. It stays valid across restarts, because positions are places in files.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { OpenRooms } from '../command/open-rooms.ts'
import { type CursorSealer, epochText, type PlacesEpoch } from '../format/cursor.ts'
import { type Reply, type Respond, refused } from '../format/reply.ts'
import { fromYou, type PlaceKeeper, Places, type Release, streamWaitSeconds } from '../rates/places.ts'
import type { Position } from './rows.ts'
import type { Poll } from './wait-limit.ts'
import { type Found, Waits, type WaitsOptions } from './waits.ts'

type UpdatesOptions = Omit<WaitsOptions, 'reply'> & {
  readonly epoch: PlacesEpoch
  readonly cursors: CursorSealer
  readonly rooms: Pick<OpenRooms, 'may'>
  readonly waitersMax: number
  /** Requests that one client may have waiting. */
  readonly waitsPerAddress: number
  readonly keeper?: PlaceKeeper
  readonly timers: Timers
}

const sweepEveryMs = 250
/** Opened cursors to cache: half a kilobyte each. */
const openedMax = 1_024

export class Updates {
  readonly #options: UpdatesOptions
  readonly #places: Places
  readonly waits: Waits
  readonly #stopSweeping: Cancel
  /** Marks of opened cursors, by reader and text. */
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
    this.waits = new Waits({ ...options, reply: (reader, found) => this.#reply(reader, found) })
    this.#stopSweeping = options.timers.every(() => this.waits.sweep(false), sweepEveryMs)
  }

  /** Number of requests waiting now. */
  get waiting(): number {
    return this.#places.taken
  }

  poll(poll: Poll, respond: Respond): void {
    const { cursor, reader, key, rooms, kinds, limit } = poll
    const unwelcome = reader === '' ? undefined : this.#options.standing({ reader, key })
    if (unwelcome !== undefined) return respond(refused(unwelcome))
    const waitMs = this.#closed ? 0 : poll.waitSeconds * 1000
    // A reader that does not wait is answered by the next read, and needs no place.
    const over = waitMs === 0 || poll.hasPlace === true ? () => {} : this.enter(poll)
    if ('code' in over) return respond(refused(over))
    const marks = cursor === '' ? undefined : this.#open(reader, cursor)
    if (marks !== undefined && 'code' in marks) {
      over()
      return respond(refused(marks))
    }
    // Added before its rooms are looked up, so that nothing is missed between the two. An answer is held back until the rooms are known.
    let mayRead = false
    let held: (() => void) | undefined
    const answer: Respond = (reply) => {
      over()
      if (mayRead) respond(reply)
      else held = () => respond(reply)
    }
    const until = this.#options.now() + waitMs
    const filter = { rooms: sorted(rooms), kinds: sorted(kinds), limit }
    const asked = marks ?? Array.from({ length: this.#sources(reader) }, () => null)
    const leave = this.waits.add({ until, respond: answer, reader, key, filter, marks: asked })
    const end = (): void => {
      over()
      leave()
    }
    poll.onGone(end)
    this.#options.rooms.may(filter.rooms, reader, (verdict) => {
      mayRead = verdict === 'yes'
      if (mayRead) return held?.()
      end()
      respond(typeof verdict === 'object' ? refused({ ...verdict, field: poll.roomsField }) : undefined)
    })
  }

  /** Takes a place among the waiting requests, or returns why there is none. */
  enter(source: Pick<Poll, 'address' | 'signedIn'>): Release | Refusal {
    const place = this.#places.take(source)
    return typeof place === 'string' ? this.#full(place) : place
  }

  /** Answers all waiting readers now; from here on none waits. */
  close(): void {
    this.#closed = true
    this.#stopSweeping()
    this.waits.sweep(true)
  }

  #full(what: 'holder' | 'board'): Refusal {
    const message =
      what === 'board'
        ? 'too many requests are waiting for updates: try again'
        : `${this.#options.waitsPerAddress} requests are already waiting for updates ${fromYou}: wait for one to finish, or name several rooms in one request`
    return refusal(what === 'board' ? 'overloaded' : 'rate_limited', message, undefined, streamWaitSeconds)
  }

  #reply(reader: string, { updates, marks, more }: Found): Reply {
    const cursor = this.#seal(reader, marks)
    const { generation } = this.#options.epoch
    return {
      status: 200,
      body: `{"ok":true,"data":{"schema":1,"updates":[${updates.join(',')}],"cursor":"${cursor}","has_more":${more},"generation":"${generation}"}}`,
    }
  }

  #seal(reader: string, marks: readonly Position[]): string {
    const { cursors, epoch } = this.#options
    return cursors.seal(listName(reader), [epochText(epoch, marks.length), marks.map(markText).join('.')])
  }

  /** The marks of a cursor, cached: thousands of clients that got the same answer come back with the same cursor. */
  #open(reader: string, cursor: string): readonly Position[] | Refusal {
    const name = `${reader} ${cursor}`
    const known = this.#opened.get(name)
    if (known !== undefined) return known
    const marks = this.#read(reader, cursor)
    if ('code' in marks) return marks
    this.#opened.set(name, marks)
    return marks
  }

  /** The marks in a cursor, or why it cannot be served. */
  #read(reader: string, cursor: string): readonly Position[] | Refusal {
    const { cursors, epoch } = this.#options
    const place = cursors.open(listName(reader), cursor) as readonly [string, string] | undefined
    if (place === undefined)
      return refusal(
        'invalid_field',
        'this cursor was not issued to this reader by updates.get: start again without one',
        'cursor',
      )
    const count = this.#sources(reader)
    const marks = place[1].split('.').map(markOf)
    if (place[0] === epochText(epoch, count) && marks.length === count) return marks
    const oldest = this.#seal(
      reader,
      Array.from({ length: count }, () => ({ next: 1, taken: 0 })),
    )
    return refusal(
      'expired',
      `this cursor is from before a restore or a reshard of this board; the oldest valid one is ${oldest}`,
      'cursor',
    )
  }

  /** The feed and, for a signed reader, every shard. */
  #sources(reader: string): number {
    return reader === '' ? 1 : this.#options.shards + 1
  }
}

/** A cursor is valid only for the reader it was issued to. */
const listName = (reader: string) => `updates:${reader}`

const markText = ({ next, taken }: Position) => (taken === 0 ? next.toString(36) : `${next.toString(36)}-${taken}`)

function markOf(text: string): Position {
  const [next = '', taken = '0'] = text.split('-')
  return { next: Number.parseInt(next, 36), taken: Number(taken) }
}

function sorted(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort()
}
