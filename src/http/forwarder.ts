/**
 * In an HTTP thread: forwards requests to the main thread, and delivers its answers.
 *
 * A request is sent with its body if that arrives in the same turn, as it nearly always does. Otherwise the head is sent first, and the
 * body is buffered here until it is complete. Once the main thread has announced a limit, a longer body is refused.
 *
 * A bounded number of requests is in flight; the others wait here. The main thread handles all of them in one turn, and has other work to
 * do.
 */
import type { Timers } from '../../actors/kernel/timers.ts'
import {
  type FromClients,
  HeaderLists,
  type RequestMessage,
  reportedBytesMin,
  type ToClients,
} from './forward-messages.ts'
import type { ByteStream, Exchange, WebSocketConnection } from './port.ts'

type ForwarderOptions = {
  /** Sends the message together with all others of this turn. */
  readonly tell: (message: FromClients) => void
  readonly timers: Pick<Timers, 'every'>
  /** The longest body that any handler reads. */
  readonly bodyBytesMax: number
  /**
   * Whether a request becomes a WebSocket before the main thread is asked, for an engine that can accept one only while it calls the
   * handler. A refusal is then the text of one message, after which the connection closes.
   */
  readonly opensAtOnce: (exchange: Exchange) => boolean
}

/** A request that is not sent yet, and the message to send right after it if its body is too long. */
type Waiting = { readonly request: RequestMessage; tooLong?: FromClients }

/** The flow of bytes to one client. */
type Flow = {
  /** Bytes taken but not reported yet. */
  taken: number
  isBlocked: boolean
  /** Value of `sink.blockedSince` at the last report. */
  blockedSince: number | undefined
}
type StreamFlow = Flow & { readonly sink: ByteStream }
type SocketFlow = Flow & {
  readonly sink: WebSocketConnection
  readonly unsent: string[]
  /** What arrived before the main thread accepted the WebSocket; undefined once it has. */
  early: FromClients[] | undefined
}

/** Maximum of requests that were sent and not received by the main thread. */
const inFlightMax = 256
/** Messages of a WebSocket that may arrive before the main thread has accepted it. Their total size has the bound of a body. */
const earlyMax = 1_024
/** How often a blocked socket's `blockedSince` is reported if it has changed. */
const blockedEveryMs = 1_000

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #lists = new HeaderLists()
  /** Exchanges that are not answered yet. */
  readonly #open = new Map<number, Exchange>()
  readonly #waiting = new Map<number, Waiting>()
  readonly #streams = new Map<number, StreamFlow>()
  readonly #sockets = new Map<number, SocketFlow>()
  readonly #blocked = new Map<number, StreamFlow | SocketFlow>()
  /** Requests that will be sent at the end of this turn; a body that arrives until then is included. */
  readonly #fresh = new Map<number, RequestMessage>()
  #inFlight = 0
  #newest = 0

  constructor(options: ForwarderOptions) {
    this.#options = options
    options.timers.every(() => this.#reportBlocked(), blockedEveryMs)
  }

  /** Called right before the messages of this turn are sent. */
  flushing(): void {
    this.#fresh.clear()
  }

  /** Takes a request; this is the engine's handler. */
  readonly handle = (exchange: Exchange): void => {
    const { method, path, query, remoteAddress, headers, isUpgrade } = exchange
    const id = ++this.#newest
    const request: RequestMessage = [
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
    const isOpened = isUpgrade && this.#options.opensAtOnce(exchange) && this.#accept(id, exchange, [])
    if (!isOpened) this.#open.set(id, exchange)
    if (this.#inFlight < inFlightMax) this.#forward(id, request)
    else this.#waiting.set(id, { request })
    if (isOpened) return
    exchange.onAbort(() => {
      if (this.#open.delete(id) && !this.#waiting.delete(id)) this.#options.tell(['lost', id])
    })
    exchange.readBody(this.#options.bodyBytesMax, (result) => {
      const waiting = this.#waiting.get(id)
      const unsent = waiting?.request ?? this.#fresh.get(id)
      if (result.ok && unsent !== undefined) unsent[8] = result.body
      else if (result.ok) this.#options.tell(['body', id, result.body])
      else if (waiting !== undefined) waiting.tooLong = ['long body', id, result.sentAtLeast]
      else this.#options.tell(['long body', id, result.sentAtLeast])
    })
  }

  /** Carries out a message from the main thread. */
  take(message: ToClients): void {
    switch (message[0]) {
      case 'received':
        this.#received(message[1])
        break
      case 'reply': {
        const [, id, status, headers, body, close] = message
        if (this.#sockets.get(id)?.early !== undefined) this.#refuse(id, status, body)
        else this.#ending(id)?.reply(status, this.#lists.of(headers), body, { close })
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
        this.#streams.get(message[1])?.sink.end()
        break
      case 'cut':
        this.#streams.get(message[1])?.sink.close()
        break
      case 'drop':
        this.#ending(message[1])?.drop()
        this.#sockets.get(message[1])?.sink.end(1011, '')
        break
      case 'body limit':
        this.#open.get(message[1])?.lowerBodyLimit(message[2])
        break
      case 'no body':
        this.#open.get(message[1])?.discardBody()
        break
      case 'accept': {
        const exchange = this.#ending(message[1])
        if (exchange === undefined) this.#accepted(message[1])
        else if (!this.#accept(message[1], exchange, undefined)) this.#options.tell(['closed', message[1]])
        break
      }
      case 'send':
        this.#send(message[1], message[2])
        break
      case 'send ping':
        this.#sockets.get(message[1])?.sink.ping()
        break
      case 'end socket':
        this.#sockets.get(message[1])?.sink.end(message[2], message[3])
        break
    }
  }

  #forward(id: number, request: RequestMessage): void {
    this.#inFlight++
    this.#fresh.set(id, request)
    this.#options.tell(request)
  }

  #received(requests: number): void {
    this.#inFlight -= requests
    for (const [id, { request, tooLong }] of this.#waiting) {
      if (this.#inFlight >= inFlightMax) return
      this.#waiting.delete(id)
      this.#forward(id, request)
      if (tooLong !== undefined) this.#options.tell(tooLong)
    }
  }

  /** The exchange, which is now removed; undefined if it has ended already. */
  #ending(id: number): Exchange | undefined {
    const exchange = this.#open.get(id)
    this.#open.delete(id)
    return exchange
  }

  #begin(id: number, status: number, headers: string, length: number): void {
    const exchange = this.#ending(id)
    if (exchange === undefined) return this.#options.tell(['closed', id])
    const sink = exchange.stream(status, this.#lists.of(headers), length < 0 ? undefined : length)
    const flow: StreamFlow = { sink, taken: 0, isBlocked: false, blockedSince: undefined }
    this.#streams.set(id, flow)
    sink.onDrain(() => this.#unblock(id, flow))
    sink.onClose(() => {
      this.#streams.delete(id)
      this.#blocked.delete(id)
      this.#options.tell(['closed', id])
    })
  }

  #write(id: number, chunk: Uint8Array): void {
    const flow = this.#streams.get(id)
    if (flow === undefined) return
    // Bytes that wait behind a full socket are copied, so they do not retain the whole message that they arrived in.
    const isBehind = flow.isBlocked || flow.sink.blockedSince !== undefined
    const takesMore = flow.sink.write(isBehind ? Buffer.from(chunk) : chunk)
    this.#took(id, flow, chunk.length, takesMore)
  }

  #took(id: number, flow: StreamFlow | SocketFlow, bytes: number, takesMore: boolean): void {
    flow.taken += bytes
    if (flow.isBlocked) return
    if (!takesMore) {
      flow.isBlocked = true
      flow.blockedSince = flow.sink.blockedSince
      this.#blocked.set(id, flow)
      this.#options.tell(['blocked', id])
    } else if (flow.taken >= reportedBytesMin) {
      this.#options.tell(['taken', id, flow.taken])
      flow.taken = 0
    }
  }

  #unblock(id: number, flow: StreamFlow | SocketFlow): void {
    if (!flow.isBlocked) return
    flow.isBlocked = false
    this.#blocked.delete(id)
    this.#options.tell(['taken again', id, flow.taken])
    flow.taken = 0
  }

  /** A socket that takes a few bytes now and then must not count as one that takes none. */
  #reportBlocked(): void {
    for (const [id, flow] of this.#blocked) {
      if (flow.sink.blockedSince === flow.blockedSince) continue
      flow.blockedSince = flow.sink.blockedSince
      this.#options.tell(['blocked', id])
    }
  }

  /** False if it cannot become a WebSocket now. */
  #accept(id: number, exchange: Exchange, early: FromClients[] | undefined): boolean {
    let earlyBytes = 0
    const tell = (message: FromClients): void => {
      const waiting = this.#sockets.get(id)?.early
      if (waiting === undefined) return this.#options.tell(message)
      if (message[0] === 'message') earlyBytes += message[2].length
      if (waiting.push(message) > earlyMax || earlyBytes > this.#options.bodyBytesMax)
        this.#sockets.get(id)?.sink.end(1008, 'wait for an answer first')
    }
    const sink = exchange.accept({
      message: (bytes, isBinary) => tell(['message', id, bytes, isBinary]),
      ping: () => tell(['ping', id]),
      pong: () => tell(['pong', id]),
      drain: () => this.#pump(id),
      closed: () => {
        const isAccepted = this.#sockets.get(id)?.early === undefined
        this.#sockets.delete(id)
        this.#blocked.delete(id)
        if (!this.#waiting.delete(id)) this.#options.tell([isAccepted ? 'closed' : 'lost', id])
      },
    })
    if (sink === undefined) return false
    this.#sockets.set(id, { sink, unsent: [], taken: 0, isBlocked: false, blockedSince: undefined, early })
    return true
  }

  /** The main thread has accepted a WebSocket that was opened before it was asked. */
  #accepted(id: number): void {
    const flow = this.#sockets.get(id)
    // It has closed in the meantime.
    if (flow === undefined) return this.#options.tell(['closed', id])
    const early = flow.early ?? []
    flow.early = undefined
    for (const message of early) this.#options.tell(message)
  }

  #refuse(id: number, status: number, body: Uint8Array | string): void {
    const { sink } = this.#sockets.get(id)!
    sink.send([typeof body === 'string' ? body : Buffer.from(body).toString()])
    sink.end(status === 429 || status === 503 ? 1013 : 1008, `refused with status ${status}`)
  }

  #send(id: number, messages: readonly string[]): void {
    const flow = this.#sockets.get(id)
    if (flow === undefined) return
    flow.unsent.push(...messages)
    if (!flow.isBlocked) this.#pump(id)
  }

  /** Sends the messages that wait for the socket. */
  #pump(id: number): void {
    const flow = this.#sockets.get(id)
    if (flow === undefined) return
    const { sink, unsent } = flow
    const given = unsent.splice(0, sink.send(unsent))
    const bytes = given.reduce((sum, { length }) => sum + length, 0)
    const takesMore = unsent.length === 0 && sink.blockedSince === undefined
    this.#took(id, flow, bytes, takesMore)
    if (takesMore) this.#unblock(id, flow)
  }
}
