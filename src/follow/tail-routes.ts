/**
 * Tails: one room followed live by many readers, as text or as server-sent events.
 *
 * Each reader goes through three phases: backfill from the feed, cutover, live. Live bytes are rendered once for all readers of a format. A
 * reader that does not keep up gets a notice and is disconnected; it never slows the writer or the other readers.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { OpenRooms } from '../command/open-rooms.ts'
import type { ByteStream, Exchange, Header } from '../http/port.ts'
import { dataHeaders } from '../http/replies.ts'
import { fromYou, type PlaceKeeper, Places, type Release, streamWaitSeconds } from '../rates/places.ts'
import type { Backfill, BackfillRequest } from './backfill.ts'
import type { Outbox } from './outbox.ts'
import type { TailFormat } from './stream.ts'
import { type Subscriber, Subscriptions } from './subscriptions.ts'
import { type Asked, askedOf, type TailRules } from './tail-request.ts'
import type { FollowTell } from './topics.ts'

type TailsOptions = TailRules & {
  /** Queries the feed or, for a request with a reader, the shard of the private room. */
  readonly backfill: (request: BackfillRequest, answer: (found: Backfill | undefined) => void) => void
  /** Notifies the feed, or the shard of a private room. */
  readonly tell: (tell: FollowTell) => void
  readonly rooms: Pick<OpenRooms, 'may'>
  /** The closing message for followers with this reader and key, if one of them is now refused. */
  readonly standing: (follower: Pick<Subscriber, 'reader' | 'key'>) => string | undefined
  readonly refuse: (exchange: Exchange, found: Refusal) => void
  readonly addressOf: (exchange: Exchange) => string
  /** Streams that one client may have open. */
  readonly streamsPerAddress: number
  readonly keeper?: PlaceKeeper
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Timers
  readonly outbox: Outbox
  readonly queueBytesMax: number
  readonly stallMs: number
}

/** A following client, from before its backfill is requested. */
type Follower = Subscriber & {
  /** Why it may not continue. */
  over: string | undefined
  /** Whether the thread that publishes for it is gone. */
  isLost: boolean
  /** Sends the reason, and disconnects; set once the stream exists. */
  closeWith: ((why: string) => void) | undefined
}

type Reader = {
  readonly stream: ByteStream
  /** Updates up to this change have been sent to this reader. */
  after: number
  live: boolean
  /** It gets nothing more: it has left, or was sent the closing message. */
  over: boolean
  blocked: boolean
  /** Continues when the socket has room again. */
  drained: () => void
  /** Live bytes waiting for the socket. */
  queue: Uint8Array[]
  queuedBytes: number
  quietSince: number
}

type News = { readonly change: number; readonly bytes: Uint8Array }
/** Readers of one room in one format. */
type Channel = {
  readonly name: string
  readonly format: TailFormat
  readonly isPrivate: boolean
  readonly readers: Set<Reader>
  /** Updates waiting until every reader has the previous batch: the slower the round, the larger the next batch. */
  pending: News[]
  sending: boolean
}

const nothing = () => {}
const heartbeatMs = 25_000
const watchEveryMs = 1_000

export class Tails {
  readonly #options: TailsOptions
  readonly #channels = new Map<string, Channel>()
  readonly subscriptions: Subscriptions<Follower>
  /** Counts all streams, including those of other routes. */
  readonly places: Places
  readonly #stopWatching: Cancel
  /** Readers of public rooms, like the closed ones that did not keep up. Readers of private rooms do not appear in public counts. */
  open = 0
  dropped = 0

  constructor(options: TailsOptions) {
    this.#options = options
    this.subscriptions = new Subscriptions({
      tell: options.tell,
      isRefused: (follower) => options.standing(follower) !== undefined,
      end: (follower, why) => {
        follower.over ??= why === 'member' ? notMember : options.standing(follower)
        if (follower.over !== undefined) follower.closeWith?.(follower.over)
      },
    })
    this.places = new Places({ limit: 'streams_per_address', each: options.streamsPerAddress, keeper: options.keeper })
    this.#stopWatching = options.timers.every(() => this.#checkReaders(), watchEveryMs)
  }

  /** GET /tail/{room} */
  handle(exchange: Exchange, room: string): void {
    const asked = askedOf(exchange, room, this.#options)
    if ('code' in asked) return this.#options.refuse(exchange, asked)
    const leave = this.places.take({ address: this.#options.addressOf(exchange) })
    if (typeof leave === 'string') {
      const message = `${this.#options.streamsPerAddress} streams are open ${fromYou}: close one first`
      return this.#options.refuse(exchange, refusal('rate_limited', message, undefined, streamWaitSeconds))
    }
    // Subscribed before the backfill is requested, so that nothing is missed between the two.
    const { format, reader, key } = asked
    const topics = [['tail', room, format, reader] as const]
    const follower: Follower = { topics, reader, key, at: -1, over: undefined, isLost: false, closeWith: undefined }
    this.subscriptions.add(follower)
    this.#options.backfill(asked, (found) => {
      if (!follower.isLost && !exchange.ended && found?.ok) return this.#join(exchange, leave, follower, asked, found)
      leave()
      this.subscriptions.remove(follower)
      if (exchange.ended) return
      if (follower.isLost || found === undefined || found.ok) return exchange.drop()
      this.#refuse(exchange, asked, found.refusal)
    })
  }

  /**
   * If this reader may not read the room's tail, it is refused as missing or private. A private room's refusal says what opens it, or why
   * the token does not.
   */
  #refuse(exchange: Exchange, { room, reader, sinceName, shut }: Asked, found: Refusal): void {
    const { refuse, rooms } = this.#options
    if (found.field !== 'room') return refuse(exchange, { ...found, field: sinceName })
    rooms.may([room], reader, (verdict) => {
      if (exchange.ended) return
      if (verdict === undefined) return exchange.drop()
      if (verdict === 'yes') return refuse(exchange, found)
      if (verdict.code !== 'private_room') return refuse(exchange, verdict)
      const why = reader === '' ? shut : 'the identity that requested this token is no longer a member of the room'
      const message = `this room is private: its tail needs ?token=, which members get from a signed room.read_token${why === undefined ? '' : `; ${why}`}`
      refuse(exchange, refusal('private_room', message, why === undefined ? 'room' : 'token'))
    })
  }

  /** Delivers to the readers of one public room and format; `change` numbers the update. */
  deliver(room: string, format: TailFormat, change: number, bytes: Uint8Array): void {
    this.#deliver(this.#channels.get(nameOf(room, format, false)), change, bytes)
  }

  /** The same for a private room; `position` is a number in its shard's journal. */
  deliverPrivate(room: string, format: TailFormat, position: number, bytes: Uint8Array): void {
    this.#deliver(this.#channels.get(nameOf(room, format, true)), position, bytes)
  }

  /** Asks followers of these private rooms to reconnect: the thread that published for them is gone. */
  losePrivate(isMeant: (room: string) => boolean): void {
    const lost = this.subscriptions.forget(
      ([kind, room, , reader]) => kind === 'tail' && reader !== '' && isMeant(room),
    )
    for (const follower of lost) {
      follower.isLost = true
      follower.closeWith?.(threadLost)
    }
  }

  #deliver(channel: Channel | undefined, change: number, bytes: Uint8Array): void {
    if (channel === undefined || channel.readers.size === 0) return
    if (bytes.length === 0) return this.#unread(channel)
    channel.pending.push({ change, bytes })
    if (channel.sending) return
    channel.sending = true
    this.#send(channel)
  }

  /** Live readers would miss what could not be read. Readers still in backfill find it there. */
  #unread(channel: Channel): void {
    for (const reader of [...channel.readers]) if (reader.live) this.#closeWith(channel, reader, notRead)
  }

  /** Ends every stream properly. */
  close(): void {
    this.#stopWatching()
    for (const { readers } of this.#channels.values()) for (const { stream } of [...readers]) stream.end()
  }

  /** Sends each reader everything that is pending as one write, when its turn comes. */
  #send(channel: Channel): void {
    let readers: readonly Reader[] = []
    let news: readonly News[] = []
    let joined: News | undefined
    let next = 0
    this.#options.outbox.put((most) => {
      if (joined === undefined) {
        readers = [...channel.readers]
        news = channel.pending
        channel.pending = []
        joined = { change: news.at(-1)!.change, bytes: Buffer.concat(news.map(({ bytes }) => bytes)) }
      }
      const begin = next
      const end = Math.min(readers.length, begin + most)
      for (; next < end; next++) {
        const reader = readers[next]!
        // Only a reader that joined in the middle of this batch gets it in pieces.
        if (reader.after < news[0]!.change) this.#give(channel, reader, joined)
        else for (const each of news) this.#give(channel, reader, each)
      }
      if (end - begin < most) {
        channel.sending = channel.pending.length > 0
        if (channel.sending) this.#send(channel)
      }
      return end - begin
    })
  }

  #channel(room: string, format: TailFormat, isPrivate: boolean): Channel {
    const name = nameOf(room, format, isPrivate)
    const channel = this.#channels.get(name) ?? {
      name,
      format,
      isPrivate,
      readers: new Set(),
      pending: [],
      sending: false,
    }
    this.#channels.set(name, channel)
    return channel
  }

  #join(
    exchange: Exchange,
    leave: Release,
    follower: Follower,
    asked: Asked,
    found: Extract<Backfill, { ok: true }>,
  ): void {
    const channel = this.#channel(asked.room, asked.format, asked.reader !== '')
    const type = channel.format === 'sse' ? 'text/event-stream; charset=utf-8' : 'text/plain; charset=utf-8'
    const stream = exchange.stream(200, streamHeaders(type))
    const now = this.#options.now()
    const reader: Reader = {
      stream,
      after: 0,
      live: false,
      over: false,
      blocked: false,
      drained: nothing,
      queue: [],
      queuedBytes: 0,
      quietSince: now,
    }
    channel.readers.add(reader)
    if (!channel.isPrivate) this.open++
    stream.onDrain(() => reader.drained())
    stream.onClose(() => {
      reader.over = true
      if (channel.readers.delete(reader) && channel.readers.size === 0) this.#channels.delete(channel.name)
      if (!channel.isPrivate) this.open--
      leave()
      this.subscriptions.remove(follower)
    })
    stream.write(Buffer.from(greetings[channel.format](asked.room)))
    follower.closeWith = (why) => this.#closeWith(channel, reader, why)
    if (follower.over === undefined) this.#backfill(reader, asked, found)
    else follower.closeWith(follower.over)
  }

  /** Writes a page of the past and requests the next one when the socket has room. After the last page, the reader is live. */
  #backfill(reader: Reader, asked: BackfillRequest, found: Extract<Backfill, { ok: true }>): void {
    const room = found.bytes.length === 0 || reader.stream.write(found.bytes)
    if (!found.more) {
      reader.after = found.change
      reader.live = true
      reader.blocked = !room
      reader.drained = () => {
        reader.blocked = false
        this.#flush(reader)
      }
      return
    }
    const more = () => {
      reader.drained = nothing
      this.#options.backfill({ ...asked, after: found.after }, (next) => {
        if (reader.over) return
        if (next?.ok) this.#backfill(reader, asked, next)
        else reader.stream.close()
      })
    }
    if (room) more()
    else reader.drained = more
  }

  #give(channel: Channel, reader: Reader, { change, bytes }: News): void {
    if (!reader.live || change <= reader.after) return
    reader.after = change
    if (!reader.blocked && reader.queue.length === 0) {
      reader.blocked = !reader.stream.write(bytes)
      reader.quietSince = this.#options.now()
      return
    }
    reader.queue.push(bytes)
    reader.queuedBytes += bytes.length
    if (reader.queuedBytes > this.#options.queueBytesMax) this.#drop(channel, reader)
  }

  #flush(reader: Reader): void {
    let sent = 0
    while (sent < reader.queue.length && !reader.blocked) {
      const bytes = reader.queue[sent++]!
      reader.queuedBytes -= bytes.length
      reader.blocked = !reader.stream.write(bytes)
    }
    reader.queue.splice(0, sent)
    reader.quietSince = this.#options.now()
  }

  #drop(channel: Channel, reader: Reader): void {
    if (reader.over) return
    if (!channel.isPrivate) this.dropped++
    this.#closeWith(
      channel,
      reader,
      'you are reading more slowly than this room is posting: closed. Reconnect with ?since=<the last id you saw>',
    )
  }

  /** Sends the last line of a stream that the board ends. */
  #closeWith({ format }: Channel, reader: Reader, why: string): void {
    if (reader.over) return
    reader.live = false
    reader.over = true
    reader.drained = nothing
    reader.queue = []
    reader.stream.write(Buffer.from(format === 'sse' ? `: ${why}\n\n` : `# ${why}\n`))
    reader.stream.end()
    // A socket that accepts nothing would hold the message forever.
    this.#options.timers.later(() => reader.stream.close(), 1_000)
  }

  #checkReaders(): void {
    const now = this.#options.now()
    this.subscriptions.endRefused()
    for (const channel of this.#channels.values()) {
      const { readers, format } = channel
      const beat = Buffer.from(format === 'sse' ? ':\n\n' : '\n')
      for (const reader of readers) {
        const { blockedSince } = reader.stream
        if (blockedSince !== undefined && now - blockedSince >= this.#options.stallMs) this.#drop(channel, reader)
        else if (reader.live && !reader.blocked && now - reader.quietSince >= heartbeatMs) {
          reader.blocked = !reader.stream.write(beat)
          reader.quietSince = now
        }
      }
    }
  }
}

const notMember = 'you are no longer a member of this room: closed'
const threadLost = 'an internal error closed this stream. Reconnect with ?since=<the last id you saw>'
const notRead = 'this board could not read the new events: closed. Reconnect with ?since=<the last id you saw>'

/** The first line of a stream, which describes it. */
const greetings: Readonly<Record<TailFormat, (room: string) => string>> = {
  block: (room) =>
    `# live tail of room ${room}: [ begins a post, an empty line ends it, # is the board, more empty lines are heartbeats; a line of a text that would begin so has "> " before it\n\n`,
  line: (room) =>
    `# live tail of room ${room}: each line that begins with [ is a post, with ⏎ for its line breaks, # is the board, empty lines are heartbeats\n\n`,
  sse: (room) => `: live events of room ${room}\n\n`,
}

function streamHeaders(type: string): readonly Header[] {
  return [['content-type', type], ['cache-control', 'no-store'], ...dataHeaders, ['x-accel-buffering', 'no']]
}

function nameOf(room: string, format: TailFormat, isPrivate: boolean): string {
  return `${isPrivate ? 'private ' : ''}${format} ${room}`
}
