/**
 * Waiting for public news. All who ask with the same filter share one channel: one read of the feed serves every one of
 * them, wherever each stands, and those who stand at the same place get the same bytes.
 *
 * A waiter is to be served by a read whenever something of interest may lie at or after its mark (`need`). News only say
 * when to read; what is there, and where each waiter stands after it, is the feed's answer.
 */

import type { NoAnswer } from '../command/ports.ts'
import { type Reply, type Respond, refused } from '../format/reply.ts'
import type { Position, UpdatesFilter, UpdatesPage, UpdatesRequest } from './rows.ts'
import { type Found, isBefore } from './wait-limit.ts'

export type PublicWaitsOptions = {
  readonly read: (request: UpdatesRequest, answer: (page: UpdatesPage | NoAnswer) => void) => void
  readonly reply: (found: Found) => Reply
  /** Puts an answer on its way. */
  readonly send: (respond: Respond, reply: Reply | undefined) => void
  /** Monotonic milliseconds. */
  readonly now: () => number
}

type PublicWaiter = {
  until: number
  readonly respond: Respond
  mark: Position
  /** Number of a change that must have been examined. */
  need: number
}

type Channel = {
  readonly key: string
  readonly filter: UpdatesFilter
  readonly waiters: Set<PublicWaiter>
  /** Those of them for whom something may be there. */
  readonly dirty: Set<PublicWaiter>
  reading: boolean
}

const isDirty = ({ mark, need }: PublicWaiter): boolean => mark.next <= need

export class PublicWaits {
  readonly #options: PublicWaitsOptions
  readonly #channels = new Map<string, Channel>()
  /** Channels that name rooms, by room. */
  readonly #byRoom = new Map<string, Set<Channel>>()
  /** Channels that get news of every room. */
  readonly #everywhere = new Set<Channel>()

  constructor(options: PublicWaitsOptions) {
    this.#options = options
  }

  /** Returns what to call when the waiter is gone. */
  add(filter: UpdatesFilter, waiter: PublicWaiter): () => void {
    const channel = this.#channel(filter)
    channel.waiters.add(waiter)
    if (isDirty(waiter)) {
      channel.dirty.add(waiter)
      this.#run(channel)
    } else this.#settle(channel, [waiter])
    return () => this.#leave(channel, waiter)
  }

  /** A room changed. */
  changed(rooms: readonly (readonly [room: string, change: number])[]): void {
    const touched = new Set<Channel>()
    for (const [room, change] of rooms) {
      for (const channels of [this.#everywhere, this.#byRoom.get(room) ?? []]) {
        for (const channel of channels) {
          touched.add(channel)
          for (const waiter of channel.waiters) {
            waiter.need = Math.max(waiter.need, change)
            if (isDirty(waiter)) channel.dirty.add(waiter)
          }
        }
      }
    }
    for (const channel of touched) this.#run(channel)
  }

  /** Answers those whose time is over. `all`: all of them. */
  sweep(all: boolean): void {
    for (const channel of [...this.#channels.values()]) {
      if (all) for (const waiter of channel.waiters) waiter.until = 0
      this.#settle(channel, channel.waiters)
    }
  }

  #channel(filter: UpdatesFilter): Channel {
    const { rooms, kinds, limit } = filter
    const key = JSON.stringify([rooms, kinds, limit])
    let channel = this.#channels.get(key)
    if (channel !== undefined) return channel
    channel = { key, filter: { rooms, kinds, limit }, waiters: new Set(), dirty: new Set(), reading: false }
    this.#channels.set(key, channel)
    if (rooms.length === 0) this.#everywhere.add(channel)
    for (const room of rooms) {
      const named = this.#byRoom.get(room) ?? new Set()
      this.#byRoom.set(room, named.add(channel))
    }
    return channel
  }

  #leave(channel: Channel, waiter: PublicWaiter): void {
    channel.dirty.delete(waiter)
    if (channel.waiters.delete(waiter)) this.#dropIfEmpty(channel)
  }

  #dropIfEmpty(channel: Channel): void {
    if (channel.waiters.size > 0 || channel.reading || this.#channels.get(channel.key) !== channel) return
    this.#channels.delete(channel.key)
    this.#everywhere.delete(channel)
    for (const room of channel.filter.rooms) {
      const named = this.#byRoom.get(room)
      if (named?.delete(channel) === true && named.size === 0) this.#byRoom.delete(room)
    }
  }

  /** Reads for those that may have news. */
  #run(channel: Channel): void {
    if (channel.reading) return
    let from: Position | undefined
    for (const { mark } of channel.dirty) if (from === undefined || isBefore(mark, from)) from = mark
    if (from === undefined) return
    const begin = from
    channel.reading = true
    this.#options.read({ ...channel.filter, from: begin, reader: '', handle: '' }, (page) => {
      channel.reading = false
      if (page?.ok) this.#apply(channel, begin, page)
      else this.#fail(channel, page === undefined ? undefined : refused(page.refusal))
      this.#run(channel)
      this.#dropIfEmpty(channel)
    })
  }

  /** One page, from the mark `from` on, for all who stand at it or after it. */
  #apply(channel: Channel, from: Position, { updates, end, more }: Extract<UpdatesPage, { ok: true }>): void {
    const replies = new Map<number, Reply>()
    const waited: PublicWaiter[] = []
    for (const waiter of [...channel.dirty]) {
      if (isBefore(waiter.mark, from)) continue
      let first = 0
      while (first < updates.length && !isBefore(waiter.mark, updates[first]!)) first++
      if (first === updates.length) {
        if (isBefore(waiter.mark, end)) waiter.mark = end
        if (more && !isBefore(end, waiter.mark)) waiter.need = Math.max(waiter.need, end.next)
        if (isDirty(waiter)) continue
        channel.dirty.delete(waiter)
        waited.push(waiter)
        continue
      }
      let reply = replies.get(first)
      if (reply === undefined) {
        reply = this.#options.reply({ updates: updates.slice(first).map(({ json }) => json), marks: [end], more })
        replies.set(first, reply)
      }
      this.#answer(channel, waiter, reply)
    }
    this.#settle(channel, waited)
  }

  #fail(channel: Channel, reply: Reply | undefined): void {
    for (const waiter of [...channel.dirty]) this.#answer(channel, waiter, reply)
  }

  /** A waiter whose time ended during the read is answered that there is nothing. */
  #settle(channel: Channel, waiters: Iterable<PublicWaiter>): void {
    const now = this.#options.now()
    const replies = new Map<string, Reply>()
    for (const waiter of [...waiters]) {
      if (waiter.until > now || isDirty(waiter)) continue
      const { next, taken } = waiter.mark
      let reply = replies.get(`${next}.${taken}`)
      if (reply === undefined) {
        reply = this.#options.reply({ updates: [], marks: [waiter.mark], more: false })
        replies.set(`${next}.${taken}`, reply)
      }
      this.#answer(channel, waiter, reply)
    }
  }

  #answer(channel: Channel, waiter: PublicWaiter, reply: Reply | undefined): void {
    this.#leave(channel, waiter)
    this.#options.send(waiter.respond, reply)
  }
}
