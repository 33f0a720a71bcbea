/**
 * In an HTTP thread: forwards what clients send to the main thread, and gives them what it answers.
 *
 * A request travels with its body where that arrives in the same turn, which it nearly always does. Otherwise its head goes first, and
 * the body is kept here until it is whole; once the main thread has said how long it may be, it may be no longer.
 */
import type { Timers } from '../../actors/kernel/timers.ts'
import { type FromClients, HeaderLists, type ToClients, toldBytesMin } from './forward-messages.ts'
import type { ByteStream, Exchange, WebSocketConnection } from './port.ts'

type ForwarderOptions = {
  /** Sends it with all others of this turn. */
  readonly tell: (message: FromClients) => void
  readonly timers: Pick<Timers, 'soon'>
  /** The longest body that any handler reads. */
  readonly bodyBytesMax: number
}

type Request = Extract<FromClients, readonly ['request', ...unknown[]]>

/** What is written for one client, and what its socket takes of it. */
type Flow = {
  /** Bytes that were taken, and not told. */
  taken: number
  isBlocked: boolean
}
type Streaming = Flow & { readonly stream: ByteStream }
type Talking = Flow & { readonly socket: WebSocketConnection; waiting: string[] }

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #lists = new HeaderLists()
  /** Not answered yet. */
  readonly #open = new Map<number, Exchange>()
  readonly #streams = new Map<number, Streaming>()
  readonly #sockets = new Map<number, Talking>()
  /** Requests of this turn, which are not on their way yet. */
  #fresh = new Map<number, Request>()
  #newest = 0

  constructor(options: ForwarderOptions) {
    this.#options = options
  }

  /** Takes a request: the handler of the engine. */
  readonly handle = (exchange: Exchange): void => {
    const { method, path, query, remoteAddress, headers, isUpgrade } = exchange
    const id = ++this.#newest
    // Before the message itself: until this runs, the message has not been encoded.
    if (this.#fresh.size === 0) this.#options.timers.soon(() => this.#fresh.clear())
    const request: Request = [
      'request',
      id,
      method,
      path,
      query,
      remoteAddress,
      headers.join('\n'),
      isUpgrade,
      undefined,
    ]
    this.#fresh.set(id, request)
    this.#open.set(id, exchange)
    this.#options.tell(request)
    exchange.onAbort(() => {
      if (this.#open.delete(id)) this.#options.tell(['lost', id])
    })
    exchange.readBody(this.#options.bodyBytesMax, (result) => {
      const fresh = this.#fresh.get(id)
      if (!result.ok) this.#options.tell(['long body', id, result.sentAtLeast])
      else if (fresh !== undefined) fresh[8] = result.body
      else this.#options.tell(['body', id, result.body])
    })
  }

  /** Does what the main thread says. */
  take(message: ToClients): void {
    switch (message[0]) {
      case 'reply': {
        const [, id, status, headers, body, close] = message
        this.#ending(id)?.reply(status, this.#lists.of(headers), body, { close })
        break
      }
      case 'write': {
        const [, ids, chunk] = message
        for (const id of ids) this.#write(id, chunk)
        break
      }
      case 'stream': {
        const [, id, status, headers, length] = message
        this.#begin(id, status, headers, length)
        break
      }
      case 'end':
        this.#streams.get(message[1])?.stream.end()
        break
      case 'cut':
        this.#streams.get(message[1])?.stream.close()
        break
      case 'drop':
        this.#ending(message[1])?.drop()
        break
      case 'body limit':
        this.#open.get(message[1])?.lowerBodyLimit(message[2])
        break
      case 'accept':
        this.#accept(message[1])
        break
      case 'send':
        this.#send(message[1], message[2])
        break
      case 'send ping':
        this.#sockets.get(message[1])?.socket.ping()
        break
      case 'end socket':
        this.#sockets.get(message[1])?.socket.end(message[2], message[3])
        break
    }
  }

  /** The exchange, which ends now; undefined: it has ended. */
  #ending(id: number): Exchange | undefined {
    const exchange = this.#open.get(id)
    this.#open.delete(id)
    return exchange
  }

  #begin(id: number, status: number, headers: string, length: number): void {
    const exchange = this.#ending(id)
    if (exchange === undefined) return this.#options.tell(['closed', id])
    const stream = exchange.stream(status, this.#lists.of(headers), length < 0 ? undefined : length)
    const streaming: Streaming = { stream, taken: 0, isBlocked: false }
    this.#streams.set(id, streaming)
    stream.onDrain(() => this.#unblock(id, streaming))
    stream.onClose(() => {
      this.#streams.delete(id)
      this.#options.tell(['closed', id])
    })
  }

  #write(id: number, chunk: Uint8Array): void {
    const streaming = this.#streams.get(id)
    if (streaming === undefined) return
    const { stream } = streaming
    // What waits must not keep the whole message that it came with.
    const isWaiting = streaming.isBlocked || stream.blockedSince !== undefined
    const takesMore = stream.write(isWaiting ? Buffer.from(chunk) : chunk)
    this.#took(id, streaming, chunk.length, takesMore)
  }

  #took(id: number, flow: Flow, bytes: number, takesMore: boolean): void {
    flow.taken += bytes
    if (flow.isBlocked) return
    if (!takesMore) {
      flow.isBlocked = true
      this.#options.tell(['blocked', id])
    } else if (flow.taken >= toldBytesMin) {
      this.#options.tell(['taken', id, flow.taken])
      flow.taken = 0
    }
  }

  #unblock(id: number, flow: Flow): void {
    if (!flow.isBlocked) return
    flow.isBlocked = false
    this.#options.tell(['taken again', id, flow.taken])
    flow.taken = 0
  }

  #accept(id: number): void {
    const { tell } = this.#options
    const socket = this.#ending(id)?.accept({
      message: (bytes, isBinary) => tell(['message', id, bytes, isBinary]),
      ping: () => tell(['ping', id]),
      pong: () => tell(['pong', id]),
      drain: () => this.#pump(id),
      closed: () => {
        this.#sockets.delete(id)
        tell(['closed', id])
      },
    })
    if (socket === undefined) tell(['closed', id])
    else this.#sockets.set(id, { socket, waiting: [], taken: 0, isBlocked: false })
  }

  #send(id: number, messages: readonly string[]): void {
    const talking = this.#sockets.get(id)
    if (talking === undefined) return
    talking.waiting.push(...messages)
    if (!talking.isBlocked) this.#pump(id)
  }

  /** Gives the socket what waits. */
  #pump(id: number): void {
    const talking = this.#sockets.get(id)
    if (talking === undefined) return
    const { socket, waiting } = talking
    const given = waiting.splice(0, socket.send(waiting))
    const bytes = given.reduce((sum, { length }) => sum + length, 0)
    const takesMore = waiting.length === 0 && socket.blockedSince === undefined
    this.#took(id, talking, bytes, takesMore)
    if (takesMore) this.#unblock(id, talking)
  }
}
