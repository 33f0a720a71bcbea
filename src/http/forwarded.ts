/**
 * In the main thread: an exchange whose client is connected to an HTTP thread. It has the interface of an engine's exchange, and forwards
 * what is done with it to that thread.
 *
 * Bytes written are counted here until the thread reports that the socket has taken them, so that at most `streamBytesHigh` bytes are in
 * flight to one client.
 */
import { headersText, type RequestMessage, type ToClients } from './forward-messages.ts'
import {
  type ByteStream,
  type Header,
  type HttpOptions,
  type SocketHandlers,
  streamBytesHigh,
  type WebSocketConnection,
} from './port.ts'
import {
  assertHeaders,
  EngineExchange,
  type EngineHooks,
  EngineSocket,
  type EngineSocketOptions,
  EngineStream,
  type FlatHeaders,
  statusLine,
} from './wire.ts'

/** The HTTP thread that holds the client's connection, as its exchanges see it. */
export interface ClientThread {
  readonly options: HttpOptions
  readonly draining: boolean
  /** Exchanges that are not answered yet. */
  readonly pending: { delete(exchange: unknown): boolean }
  tell(message: ToClients): void
  /** Combined with writes of the same bytes to other clients. */
  write(id: number, chunk: Uint8Array): void
  /** From now on, `flow` is notified of what the client's socket takes, and when it closes. */
  follow(id: number, flow: ForwardedFlow): void
}

/** A stream or a WebSocket; it is notified of what its client's socket takes, and when it closes. */
export interface ForwardedFlow {
  taken(bytes: number, isAgain: boolean): void
  blocked(): void
  closed(): void
}

export class ForwardedExchange extends EngineExchange {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly query: string
  readonly remoteAddress: string
  readonly isUpgrade: boolean
  readonly since: number
  readonly #thread: ClientThread
  readonly #headersText: string
  #headers: FlatHeaders | undefined
  /** The body that arrived with the request, until the handler has returned. */
  #body: Uint8Array | undefined
  #isBodyWanted = false

  constructor(thread: ClientThread, [, id, method, path, query, address, headers, isUpgrade, body]: RequestMessage) {
    super(thread)
    this.#thread = thread
    this.id = id
    this.method = method
    this.path = path
    this.query = query
    this.remoteAddress = address
    this.#headersText = headers
    this.isUpgrade = isUpgrade
    this.since = thread.options.now()
    this.#body = body
    // Content-Length is needed only while the body is still arriving.
    if (body === undefined) this.frame()
    else this.isBodyComing = true
  }

  get headers(): FlatHeaders {
    this.#headers ??= this.#headersText === '' ? [] : this.#headersText.split('\n')
    return this.#headers
  }

  protected override bodyWanted(limit: number): void {
    this.#isBodyWanted = true
    if (this.#body === undefined) this.#thread.tell(['body limit', this.id, limit])
    else this.onBody(this.#body)
  }

  /** The handler has returned; a body that it has not requested by now is discarded. */
  handled(): void {
    const isStillComing = this.#body === undefined && this.isBodyComing
    this.#body = undefined
    if (isStillComing && !this.#isBodyWanted && !this.ended) this.#thread.tell(['no body', this.id])
  }

  /** The whole body has arrived. */
  onBody(body: Uint8Array): void {
    this.onPart(body.length, true, () => asBuffer(body))
  }

  /** The body has at least this many bytes, which is too many. The thread discards the rest. */
  bodyIsLong(sentAtLeast: number): void {
    this.onPart(sentAtLeast, false)
  }

  reply(
    status: number,
    headers: readonly Header[],
    body: Uint8Array | string,
    options?: { readonly close?: boolean },
  ): void {
    statusLine(status)
    assertHeaders(headers)
    if (this.ended) return
    this.end()
    // The thread decides whether the rest of a body closes the connection.
    const close = options?.close === true
    this.#thread.tell(['reply', this.id, status, headersText(headers), body, close])
  }

  stream(status: number, headers: readonly Header[], length?: number): ByteStream {
    statusLine(status)
    assertHeaders(headers)
    const thread = this.ended ? undefined : this.#thread
    const stream = new ForwardedStream(thread, this.hooks, this.id)
    if (thread === undefined) return stream
    this.end()
    this.streaming = stream
    thread.tell(['stream', this.id, status, headersText(headers), length ?? -1])
    thread.follow(this.id, stream)
    return stream
  }

  drop(): void {
    if (this.ended) return
    this.end()
    this.#thread.tell(['drop', this.id])
  }

  accept(handlers: SocketHandlers): WebSocketConnection | undefined {
    if (this.ended || !this.isUpgrade || this.#thread.draining) return undefined
    this.end()
    const socket = new ForwardedSocket(this.#thread, this.id, { handlers, ...this.hooks })
    this.#thread.tell(['accept', this.id])
    this.#thread.follow(this.id, socket)
    return socket
  }
}

class ForwardedStream extends EngineStream<ClientThread> implements ForwardedFlow {
  readonly #id: number
  /** Bytes written that the socket is not known to have taken. */
  #inFlightBytes = 0
  #isEnding = false
  #needsDrain = false

  constructor(thread: ClientThread | undefined, hooks: EngineHooks, id: number) {
    super(thread, hooks)
    this.#id = id
  }

  write(chunk: Uint8Array): boolean {
    if (this.native === undefined || this.#isEnding || chunk.length === 0) return true
    this.#inFlightBytes += chunk.length
    this.native.write(this.#id, chunk)
    const room = this.#hasRoom
    if (!room) this.#needsDrain = true
    return room
  }

  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.native?.tell(['end', this.#id])
  }

  close(): void {
    this.native?.tell(['cut', this.#id])
    this.closed()
  }

  taken(bytes: number, isAgain: boolean): void {
    this.#inFlightBytes -= bytes
    if (isAgain) this.blockedSince = undefined
    if (!this.#needsDrain || !this.#hasRoom) return
    this.#needsDrain = false
    this.drained()
  }

  blocked(): void {
    this.blockedSince = this.hooks.now()
  }

  get #hasRoom(): boolean {
    return this.blockedSince === undefined && this.#inFlightBytes < streamBytesHigh
  }
}

export class ForwardedSocket extends EngineSocket<ClientThread> implements ForwardedFlow {
  readonly #id: number
  #inFlightBytes = 0
  #isBlocked = false

  constructor(thread: ClientThread, id: number, options: EngineSocketOptions) {
    super(options)
    this.native = thread
    this.#id = id
  }

  send(messages: readonly string[]): number {
    let taken = 0
    while (taken < messages.length && this.#hasRoom) this.#inFlightBytes += messages[taken++]!.length
    if (taken > 0) this.native?.tell(['send', this.#id, messages.slice(0, taken)])
    if (!this.#hasRoom) this.blockedSince ??= this.options.now()
    return this.native === undefined ? 0 : taken
  }

  ping(): void {
    this.native?.tell(['send ping', this.#id])
  }

  end(code: number, reason: string): void {
    this.native?.tell(['end socket', this.#id, code, reason])
    this.closed()
  }

  taken(bytes: number, isAgain: boolean): void {
    this.#inFlightBytes -= bytes
    if (isAgain) this.#isBlocked = false
    if (this.blockedSince !== undefined && this.#hasRoom) this.unblock()
  }

  blocked(): void {
    this.#isBlocked = true
    this.blockedSince = this.options.now()
  }

  message(bytes: Uint8Array, isBinary: boolean): void {
    if (this.native !== undefined) this.guard(() => this.options.handlers.message(asBuffer(bytes), isBinary))
  }

  control(kind: 'ping' | 'pong'): void {
    if (this.native !== undefined) this.guard(this.options.handlers[kind])
  }

  get #hasRoom(): boolean {
    return !this.#isBlocked && this.#inFlightBytes < streamBytesHigh
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
