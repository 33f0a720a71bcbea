/**
 * In the main thread: an exchange whose client is connected to an HTTP thread. It looks like one of an engine; what is done with it is
 * told to that thread.
 *
 * What is written is counted here until the thread says that the socket has taken it, so that no more than `streamBytesHigh` bytes are on
 * their way to one client.
 */
import { headersText, type ToClients } from './forward-messages.ts'
import {
  type BodyResult,
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
  EngineSocket,
  type EngineSocketOptions,
  type FlatHeaders,
  faultBody,
  statusLine,
} from './wire.ts'

/** The HTTP thread that has the client, and what is told to it. */
export interface ClientThread {
  readonly options: HttpOptions
  readonly draining: boolean
  /** Exchanges without an answer. */
  readonly pending: { delete(exchange: unknown): boolean }
  tell(message: ToClients): void
  /** Written with others, where they get the same bytes. */
  write(id: number, chunk: Uint8Array): void
  /** A stream or a WebSocket has begun, which hears of its client from now on. */
  follow(id: number, flow: ForwardedFlow): void
}

/** What comes of a client that is being written to. */
export interface ForwardedFlow {
  taken(bytes: number, isAgain: boolean): void
  blocked(): void
  closed(): void
}

type Request = {
  readonly id: number
  readonly method: string
  readonly path: string
  readonly query: string
  readonly remoteAddress: string
  /** Names and values, one a line. */
  readonly headers: string
  readonly isUpgrade: boolean
  /** Undefined: it has not arrived whole. */
  readonly body: Uint8Array | undefined
}

export class ForwardedExchange extends EngineExchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly remoteAddress: string
  readonly isUpgrade: boolean
  readonly since: number
  readonly id: number
  readonly #thread: ClientThread
  readonly #headersText: string
  #headers: FlatHeaders | undefined
  /** What has come of the body, until somebody reads it. */
  #body: BodyResult | undefined
  #isBodyUnwanted = false
  #limit = 0
  #onBody: ((result: BodyResult) => void) | undefined

  constructor(thread: ClientThread, { id, method, path, query, remoteAddress, headers, isUpgrade, body }: Request) {
    super(thread)
    this.#thread = thread
    this.id = id
    this.method = method
    this.path = path
    this.query = query
    this.remoteAddress = remoteAddress
    this.#headersText = headers
    this.isUpgrade = isUpgrade
    this.since = thread.options.now()
    if (body !== undefined) this.#body = { ok: true, body: asBuffer(body) }
  }

  get headers(): FlatHeaders {
    this.#headers ??= this.#headersText === '' ? [] : this.#headersText.split('\n')
    return this.#headers
  }

  override readBody(limit: number, callback: (result: BodyResult) => void): void {
    if (this.ended || this.#isBodyUnwanted) return
    this.#limit = limit
    this.#onBody = callback
    const announced = Number(this.#body === undefined ? this.header('content-length') : 0)
    if (announced > limit) this.bodyCame({ ok: false, sentAtLeast: announced })
    else if (this.#body === undefined) this.collect()
    else this.bodyCame(this.#body)
  }

  protected collect(): void {
    this.#thread.tell(['body limit', this.id, this.#limit])
  }

  /** The handler has returned: a body that it has not asked for by now is let go. */
  handled(): void {
    if (this.ended || this.#onBody !== undefined) return
    this.#isBodyUnwanted = true
    if (this.#body === undefined) this.#thread.tell(['no body', this.id])
    this.#body = undefined
  }

  /** The body has arrived, or has turned out to be too long. */
  bodyCame(came: BodyResult): void {
    const callback = this.#onBody
    if (callback === undefined || this.ended) return
    this.#onBody = undefined
    this.#body = undefined
    const isLong = came.ok && came.body.length > this.#limit
    const result = isLong ? ({ ok: false, sentAtLeast: came.body.length } as const) : came
    this.isBodyRefused = !result.ok
    this.guard(() => callback(result))
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
    const close = options?.close === true || this.isBodyRefused
    this.#thread.tell(['reply', this.id, status, headersText(headers), body, close])
  }

  stream(status: number, headers: readonly Header[], length?: number): ByteStream {
    statusLine(status)
    assertHeaders(headers)
    const thread = this.ended ? undefined : this.#thread
    const stream = new ForwardedStream(thread, this.id, (error) => faultBody(this.#thread.options, error))
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
    const { options } = this.#thread
    this.end()
    const report = (error: unknown) => faultBody(options, error)
    const socket = new ForwardedSocket(this.#thread, this.id, { handlers, now: options.now, report })
    this.#thread.tell(['accept', this.id])
    this.#thread.follow(this.id, socket)
    return socket
  }
}

class ForwardedStream implements ByteStream, ForwardedFlow {
  blockedSince: number | undefined
  readonly #id: number
  readonly #report: (error: unknown) => void
  /** Undefined: the stream is over. */
  #thread: ClientThread | undefined
  /** Bytes that were written, and that the socket is not known to have taken. */
  #underWay = 0
  #isEnding = false
  #saidFalse = false
  #drainCallbacks: (() => void)[] = []
  #closeCallbacks: (() => void)[] = []

  /** `thread` undefined: the client is gone already. */
  constructor(thread: ClientThread | undefined, id: number, report: (error: unknown) => void) {
    this.#thread = thread
    this.#id = id
    this.#report = report
  }

  write(chunk: Uint8Array): boolean {
    if (this.#thread === undefined || this.#isEnding || chunk.length === 0) return true
    this.#underWay += chunk.length
    this.#thread.write(this.#id, chunk)
    const room = this.#hasRoom
    if (!room) this.#saidFalse = true
    return room
  }

  onDrain(callback: () => void): void {
    this.#drainCallbacks.push(callback)
  }

  onClose(callback: () => void): void {
    if (this.#thread === undefined) this.#call(callback)
    else this.#closeCallbacks.push(callback)
  }

  end(): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#thread?.tell(['end', this.#id])
  }

  close(): void {
    this.#thread?.tell(['cut', this.#id])
    this.closed()
  }

  taken(bytes: number, isAgain: boolean): void {
    this.#underWay -= bytes
    if (isAgain) this.blockedSince = undefined
    if (!this.#saidFalse || !this.#hasRoom) return
    this.#saidFalse = false
    for (const callback of this.#drainCallbacks) this.#call(callback)
  }

  blocked(): void {
    this.blockedSince = this.#thread?.options.now()
  }

  closed(): void {
    if (this.#thread === undefined) return
    this.#thread = undefined
    this.blockedSince = undefined
    this.#drainCallbacks = []
    const callbacks = this.#closeCallbacks
    this.#closeCallbacks = []
    for (const callback of callbacks) this.#call(callback)
  }

  get #hasRoom(): boolean {
    return this.blockedSince === undefined && this.#underWay < streamBytesHigh
  }

  #call(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      this.#report(error)
    }
  }
}

export class ForwardedSocket extends EngineSocket<ClientThread> implements ForwardedFlow {
  readonly #id: number
  #underWay = 0
  #isBlocked = false

  constructor(thread: ClientThread, id: number, options: EngineSocketOptions) {
    super(options)
    this.native = thread
    this.#id = id
  }

  send(messages: readonly string[]): number {
    let taken = 0
    while (taken < messages.length && this.#hasRoom) this.#underWay += messages[taken++]!.length
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
    this.#underWay -= bytes
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
    return !this.#isBlocked && this.#underWay < streamBytesHigh
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
