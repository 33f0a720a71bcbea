/**
 * One connection of /v1/stream. Each command is processed like a line of POST /v1/commands, in message order.
 *
 * Memory is bounded in both directions: unanswered messages by the limits of one batch, and pages of follows by what the socket accepts.
 * While it accepts nothing, no command is started.
 */
import { type CloseCode, closeCodes, streamPath } from '../../actors/follow/stream.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import { LineOrder } from '../command/line-order.ts'
import type { CommandPath } from '../command/ports.ts'
import type { CommandSource } from '../command/verified.ts'
import type { Updates } from '../follow/updates.ts'
import { pollOf, updatesRead } from '../follow/wait-limit.ts'
import { stringAt } from '../format/json-head.ts'
import { bodyOf, type Reply, refused } from '../format/reply.ts'
import type { SocketHandlers, WebSocketConnection } from '../http/port.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { ReadRequest } from '../reads/read.ts'
import { inTurn } from '../runtime/slow-turns.ts'
import { Follow, type FollowOptions } from './follow.ts'
import { type Asked, readMessage } from './messages.ts'

export type ConnectionOptions = Pick<FollowOptions, 'members' | 'standing'> & {
  readonly commands: Pick<CommandPath, 'execute'>
  readonly updates: Pick<Updates, 'poll' | 'enter'>
  readonly throttle: Pick<Throttle, 'count'>
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Pick<Timers, 'soon' | 'later'>
  /** A peer that accepts nothing for this long is disconnected. */
  readonly stallMs: number
}

type Received = { readonly asked: Asked; readonly text: string; readonly bytes: number }
type Outgoing = {
  readonly text: string
  /** The follow that this page belongs to; the page can be rebuilt. */
  readonly follow?: Follow
  /** Called when the socket has accepted it. */
  readonly sent: () => void
}

/** Messages executed in one turn of the event loop, as in a batch. */
const messagesPerTurn = 32
const pingEveryMs = 20_000
const silentMs = 55_000
/** Between two checks, which are a second apart. */
const pingsMax = 64

export class StreamConnection {
  readonly #options: ConnectionOptions
  readonly #address: string
  readonly #closed: (code: CloseCode | undefined) => void
  readonly #order = new LineOrder()
  readonly #follows = new Map<string, Follow>()
  readonly #whenGone = new Set<() => void>()
  #socket: WebSocketConnection | undefined
  /** Messages not executed yet. */
  #received: Received[] = []
  #executed = 0
  #isTurnAsked = false
  /** Messages whose answers the socket has not accepted yet. */
  #unanswered = 0
  #unansweredBytes = 0
  #outgoing: Outgoing[] = []
  #isFlushAsked = false
  #isStopping = false
  #receivedAt: number
  #pingedAt: number
  #pings = 0
  #code: CloseCode | undefined

  /** `closed` is called once, with the code that the board sent. */
  constructor(options: ConnectionOptions, address: string, closed: (code: CloseCode | undefined) => void) {
    this.#options = options
    this.#address = address
    this.#closed = closed
    this.#receivedAt = options.now()
    this.#pingedAt = this.#receivedAt
  }

  readonly handlers: SocketHandlers = {
    message: (bytes, isBinary) => inTurn(streamPath, () => this.#receive(bytes, isBinary)),
    ping: () => {
      this.#receivedAt = this.#options.now()
      if (++this.#pings > pingsMax) this.#end(1008)
    },
    pong: () => {
      this.#receivedAt = this.#options.now()
    },
    drain: () => {
      this.#order.release()
      this.#flush()
      for (const follow of [...this.#follows.values()]) follow.ask()
    },
    closed: () => this.#gone(),
  }

  begin(socket: WebSocketConnection): void {
    this.#socket = socket
  }

  /** Called every second. */
  lookAround(): void {
    const now = this.#options.now()
    this.#pings = 0
    const blockedSince = this.#socket?.blockedSince
    if (blockedSince !== undefined && now - blockedSince >= this.#options.stallMs) return this.#end(4008)
    if (now - this.#receivedAt >= silentMs) return this.#end(4009)
    for (const follow of [...this.#follows.values()]) follow.isGood()
    if (now - this.#pingedAt < pingEveryMs) return
    this.#pingedAt = now
    this.#socket?.ping()
  }

  /** Ends the connection once everything requested has been answered. */
  stop(): void {
    this.#isStopping = true
    for (const follow of [...this.#follows.values()]) follow.end(refused(stopping))
    this.#endStopped()
  }

  #endStopped(): void {
    if (this.#isStopping && this.#unanswered === 0) this.#end(1001)
  }

  #end(code: CloseCode): void {
    this.#code = code
    this.#socket?.end(code, closeCodes[code].slice(0, 120))
  }

  #gone(): void {
    if (this.#socket === undefined) return
    this.#socket = undefined
    this.#order.giveUp()
    this.#received = []
    this.#outgoing = []
    for (const follow of [...this.#follows.values()]) follow.end()
    for (const gone of this.#whenGone) gone()
    this.#closed(this.#code)
  }

  #receive(bytes: Buffer, isBinary: boolean): void {
    this.#receivedAt = this.#options.now()
    if (this.#socket === undefined || this.#isStopping) return
    if (isBinary) return this.#end(1003)
    if (bytes.length > sizes.stream_message_bytes) return this.#end(1009)
    this.#unanswered++
    this.#unansweredBytes += bytes.length
    if (this.#unanswered > sizes.batch_lines || this.#unansweredBytes > sizes.body_bytes) return this.#end(4008)
    const text = bytes.toString('latin1')
    const asked = readMessage(bytes, text)
    if ('fault' in asked) {
      const tooMany = this.#options.throttle.count('unsigned_commands', { address: this.#address })
      return this.#answer(asked.id, bytes.length, refused(tooMany ?? asked.fault))
    }
    this.#received.push({ asked, text, bytes: bytes.length })
    if (!this.#isTurnAsked) this.#execute()
  }

  /** Executes messages, a few per turn, so that other clients are served in between. */
  #execute(): void {
    for (const each of this.#received.splice(0, messagesPerTurn - this.#executed)) {
      this.#executed++
      this.#one(each)
    }
    if (this.#isTurnAsked || this.#executed < messagesPerTurn) return
    this.#isTurnAsked = true
    this.#options.timers.soon(() => {
      this.#isTurnAsked = false
      this.#executed = 0
      inTurn(streamPath, () => this.#execute())
    })
  }

  #one({ asked, text, bytes }: Received): void {
    const { id } = asked
    if (asked.kind === 'unfollow') return this.#answer(id, bytes, this.#unfollow(asked.target))
    const wrong = asked.kind === 'follow' ? this.#faultOfFollow(id, asked.command) : undefined
    if (wrong !== undefined) return this.#answer(id, bytes, wrong)
    const place = this.#order.place(text)
    const gone = new Set<() => void>()
    const answer = (reply: Reply | undefined): void => {
      for (const each of gone) this.#whenGone.delete(each)
      this.#answer(id, bytes, reply)
      place.answered()
    }
    const source: CommandSource = {
      via: 'command',
      address: this.#address,
      place,
      onGone: (callback) => {
        if (this.#socket === undefined) return callback()
        gone.add(callback)
        this.#whenGone.add(callback)
      },
      ...(asked.kind === 'follow'
        ? { follow: (request) => this.#follow(id, request, bytes, answer, place.answered) }
        : {}),
    }
    this.#options.commands.execute(asked.command, source, answer)
  }

  #faultOfFollow(id: string, command: Buffer): Reply | undefined {
    if (this.#follows.has(id)) return refused(refusal('conflict', 'a follow with this id is open', 'id'))
    const operation = stringAt(command, ['operation'])
    // If there is none, the command path says what is wrong.
    if (operation === undefined || operation === updatesRead) return undefined
    return refused(refusal('invalid_field', `only ${updatesRead} can be followed`, 'follow'))
  }

  /** `answer`: used to refuse it. `isAnswered` is called when messages that wait for its answer may continue. */
  #follow(
    id: string,
    request: ReadRequest,
    bytes: number,
    answer: (reply: Reply) => void,
    isAnswered: () => void,
  ): void {
    const { updates, members, standing, timers } = this.#options
    const { reader, key = '' } = request
    const poll = pollOf(request.args, request, { via: 'command', address: this.#address })
    const wrong = this.#follows.has(id)
      ? refusal('conflict', 'a follow with this id is open', 'id')
      : reader === ''
        ? undefined
        : standing(reader, key)
    const leave = wrong ?? updates.enter(poll)
    if ('code' in leave) return answer(refused(leave))
    let isOpen = true
    const release = (): void => {
      if (isOpen) this.#release(bytes)
      isOpen = false
    }
    const follow = new Follow({
      poll,
      leave,
      updates,
      members,
      standing,
      timers,
      waitSeconds: sizes.updates_wait_seconds,
      page: (body, from) => {
        const sent = (): void => {
          release()
          from.sent()
        }
        this.#tell({ text: messageOf(id, 200, body), follow: from, sent })
        isAnswered()
      },
      over: (reply) => {
        this.#follows.delete(id)
        if (reply === undefined) release()
        else this.#tell({ text: messageOf(id, reply.status, bodyOf(reply)), sent: release })
        isAnswered()
      },
    })
    this.#follows.set(id, follow)
    if (this.#socket === undefined || this.#isStopping) follow.end(refused(stopping))
    else follow.ask()
  }

  #unfollow(id: string): Reply {
    const follow = this.#follows.get(id)
    if (follow === undefined) return refused(refusal('not_found', 'no follow with this id is open', 'unfollow'))
    follow.end()
    return { status: 200, body: '{"ok":true,"data":{}}' }
  }

  #answer(id: string, bytes: number, reply: Reply | undefined): void {
    if (this.#socket === undefined) return
    if (reply === undefined) return this.#end(1011)
    this.#tell({ text: messageOf(id, reply.status, bodyOf(reply)), sent: () => this.#release(bytes) })
  }

  /** Call when the socket has accepted the answer to a message of this many bytes. */
  #release(bytes: number): void {
    this.#unanswered--
    this.#unansweredBytes -= bytes
  }

  /** Answers come per turn of an actor; those of one turn of the event loop are sent together. */
  #tell(outgoing: Outgoing): void {
    if (this.#socket === undefined) return
    const isBlocked = this.#socket.blockedSince !== undefined
    if (isBlocked && outgoing.follow !== undefined) return outgoing.follow.unsent()
    this.#outgoing.push(outgoing)
    if (this.#isFlushAsked || isBlocked) return
    this.#isFlushAsked = true
    this.#options.timers.soon(() => {
      this.#isFlushAsked = false
      this.#flush()
    })
  }

  #flush(): void {
    const socket = this.#socket
    while (socket !== undefined && this.#outgoing.length > 0 && socket.blockedSince === undefined) {
      const asked = this.#outgoing
      this.#outgoing = []
      const due = asked.filter(({ follow }) => follow === undefined || follow.isGood())
      const taken = socket.send(due.map(({ text }) => text))
      for (const { sent } of due.slice(0, taken)) sent()
      const left = due.slice(taken)
      for (const { follow } of left) follow?.unsent()
      this.#outgoing = [...left.filter(({ follow }) => follow === undefined), ...this.#outgoing]
    }
    if (socket?.blockedSince !== undefined) this.#order.hold()
    this.#endStopped()
  }
}

const stopping = refusal('overloaded', 'this board is stopping: connect again', undefined, 1)

function messageOf(id: string, status: number, body: string): string {
  return `{"id":"${id}","status":${status},${body.slice(1)}`
}
