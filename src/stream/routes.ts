/** GET /v1/stream: a WebSocket that accepts commands and follows rooms. Each connection counts as an open stream. */
import { streamPath } from '../../actors/follow/stream.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { handshakeFault } from '../http/handshake.ts'
import { OwnSite } from '../http/own-site.ts'
import type { Exchange } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import { fromYou, type Places, streamWaitSeconds } from '../rates/places.ts'
import { noteCause } from '../runtime/slow-turns.ts'
import { type ConnectionOptions, StreamConnection } from './connection.ts'

type StreamsOptions = Omit<ConnectionOptions, 'timers'> & {
  /** Public address of the board, and the origins besides its own. */
  readonly address: string
  readonly origins: readonly string[]
  /** Counts all open streams. */
  readonly places: Places
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
  readonly timers: Timers
  /** Counts an answer, and a connection that the board closed with this code; 0 if the board did not close it. */
  readonly onReply: (status: number) => void
  readonly onClosed: (code: number) => void
}

const methods = 'GET, OPTIONS'
const watchEveryMs = 1_000

export class Streams {
  readonly #options: StreamsOptions
  readonly #site: OwnSite
  readonly #open = new Set<StreamConnection>()
  readonly #stopWatching: Cancel
  #isStopping = false

  constructor(options: StreamsOptions) {
    this.#options = options
    this.#site = new OwnSite(options)
    this.#stopWatching = options.timers.every(() => this.#lookAround(), watchEveryMs)
  }

  get open(): number {
    return this.#open.size
  }

  handle(exchange: Exchange): void {
    const { replies, places, addressOf, onReply, onClosed } = this.#options
    noteCause(streamPath)
    if (exchange.method === 'OPTIONS') return replies.preflight(exchange, methods)
    if (exchange.method !== 'GET') return replies.wrongMethod(exchange, methods)
    if (!replies.isWithinReads(exchange)) return
    const fault = handshakeFault(exchange) ?? this.#faultOfSite(exchange)
    if (fault !== undefined) return replies.refuse(exchange, fault)
    const address = addressOf(exchange)
    const leave = places.take({ address })
    if (typeof leave === 'string') {
      const message = `too many streams are open ${fromYou}: close one first`
      return replies.refuse(exchange, refusal('rate_limited', message, undefined, streamWaitSeconds))
    }
    const connection = new StreamConnection(this.#options, address, (code) => {
      this.#open.delete(connection)
      leave()
      onClosed(code ?? 0)
    })
    const socket = this.#isStopping ? undefined : exchange.accept(connection.handlers)
    if (socket === undefined) {
      leave()
      return replies.refuse(exchange, refusal('overloaded', 'this board is stopping: try again', undefined, 1))
    }
    onReply(101)
    connection.begin(socket)
    this.#open.add(connection)
  }

  /** Each connection ends with 1001 once everything requested on it has been answered. */
  close(): void {
    this.#isStopping = true
    this.#stopWatching()
    for (const connection of [...this.#open]) connection.stop()
  }

  #lookAround(): void {
    for (const connection of [...this.#open]) connection.lookAround()
  }

  #faultOfSite(exchange: Exchange): Refusal | undefined {
    const foreign = this.#site.faultOf(exchange)
    return foreign === undefined ? undefined : refusal('invalid_origin', foreign)
  }
}
