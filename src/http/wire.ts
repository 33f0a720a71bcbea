/**
 * What both engines must refuse and answer in the same way: request framing, targets, answer headers, peer addresses.
 *
 * Sources: RFC 9112 sections 3.2 (Host), 6.1 and 6.3 (framing), RFC 9110 sections 5.5, 7.6.1 and 8.6.
 */
import { parseAddress } from '../../actors/kernel/networks.ts'
import { STATUS_CODES } from '../node-http.ts'
import type { BodyPlace, BodySpace } from './body-space.ts'
import { awaitedBytesMax, HeldAnswer } from './held-answer.ts'
import type {
  BodyResult,
  ByteStream,
  Exchange,
  Header,
  HttpOptions,
  SocketHandlers,
  WebSocketConnection,
} from './port.ts'

/** Header fields of one request: names in lower case and values, alternating, in order of arrival. */
export type FlatHeaders = readonly string[]

export type Framing = {
  /** Announced bytes; 0 without a Content-Length. */
  readonly contentLength: number
  readonly chunked: boolean
  /** The connection is closed after the answer, because the client requested it or the end of the request is uncertain. */
  readonly close: boolean
}

/** Requests with more fields are refused with 431: the bound built into uWebSockets.js. */
export const headerFieldsMax = 98

/** An unread body up to this size is read and discarded, so that the connection can continue; a larger one closes it. */
const discardBytesMax = 65_536

/** Thrown for an answer header that must not reach the wire. */
class BadHeader extends Error {
  override readonly name = 'BadHeader'
}

const noBody: Framing = { contentLength: 0, chunked: false, close: false }
const noBodyLast: Framing = { ...noBody, close: true }

/**
 * Methods whose requests usually have no body. A request with another method may have a body even if no length is visible: after an empty
 * field name (`: x`) the native parser hides all further fields. So nothing is read after such a request.
 */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Returns how the body is framed, or a sentence that explains why that is uncertain. Two parties that read different lengths see different
 * requests after it (request smuggling), so in doubt the request is refused and the connection closed.
 */
function readFraming(method: string, headers: FlatHeaders): Framing | string {
  let length: string | undefined
  let coding: string | undefined
  let hosts = 0
  let close = false
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]
    const value = headers[i + 1] ?? ''
    if (name === 'content-length') {
      if (length !== undefined) return 'Content-Length came more than once'
      length = value
    } else if (name === 'transfer-encoding') {
      if (coding !== undefined) return 'Transfer-Encoding came more than once'
      coding = value
    } else if (name === 'host') {
      hosts++
    } else if (name === 'connection' && !close) {
      close = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(value)
    }
  }
  if (hosts !== 1) return hosts === 0 ? 'Host is missing' : 'Host came more than once'
  if (coding !== undefined) {
    if (length !== undefined) return 'Transfer-Encoding and Content-Length came together'
    if (coding !== 'chunked') return 'the only Transfer-Encoding accepted is chunked'
    return { contentLength: 0, chunked: true, close }
  }
  if (length === undefined) return close || !bodiless.has(method) ? noBodyLast : noBody
  if (!/^\d{1,18}$/.test(length)) return 'Content-Length must be digits'
  return { contentLength: Number(length), chunked: false, close }
}

/** True for an origin-form target of visible ASCII (RFC 9112 section 3.2.1): all other forms mean a proxy or a mistake. */
export function isTarget(path: string, query: string): boolean {
  return path.charCodeAt(0) === 0x2f && !/[^\x21-\x7e]/.test(path) && !/[^\x21-\x7e]/.test(query)
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const printable = /^[\t\x20-\x7e]*$/
const engineNames = /^(?:content-length|transfer-encoding|connection|keep-alive|date)$/i

/** True for a header that only the engine itself writes. */
export function isEngineHeader(name: string): boolean {
  return engineNames.test(name)
}

/** Names that were checked; a service uses only a few. The bound keeps names invented at run time from filling the memory. */
const goodNames = new Set<string>()
const goodNamesMax = 256

function assertName(name: string): void {
  if (!token.test(name)) throw new BadHeader(`header name ${JSON.stringify(name)} is not a token`)
  if (isEngineHeader(name)) throw new BadHeader(`header ${name} belongs to the engine`)
  if (goodNames.size < goodNamesMax) goodNames.add(name)
}

/** Frozen lists, which many answers share, are checked once. */
const checked = new WeakSet<readonly Header[]>()

/** Throws BadHeader unless every header may be sent as it is: the native writer checks nothing, so CR LF would inject headers. */
export function assertHeaders(headers: readonly Header[]): void {
  const isFixed = Object.isFrozen(headers)
  if (isFixed && checked.has(headers)) return
  for (const [name, value] of headers) {
    if (!goodNames.has(name)) assertName(name)
    if (!printable.test(value)) throw new BadHeader(`header ${name} has a value outside printable ASCII`)
  }
  if (isFixed) checked.add(headers)
}

/** Statuses whose message has no content, hence no Content-Length here (RFC 9110 sections 8.6, 15.3.5, 15.4.5). */
export function isBodyless(status: number): boolean {
  return status === 204 || status === 304
}

const statusLines = new Map<number, string>()

/** Code and reason for the status line, like `200 OK`. */
export function statusLine(status: number): string {
  let line = statusLines.get(status)
  if (line === undefined) {
    const reason = STATUS_CODES[status]
    if (reason === undefined || status < 200) throw new BadHeader(`status ${status} is not one to answer with`)
    line = `${status} ${reason}`
    statusLines.set(status, line)
  }
  return line
}

let lastPeer = { text: '', address: '' }

/** Normalizes a peer's address; anything that is not an address stays as it is. Behind a proxy the peer is the same every time. */
export function peerAddress(text: string): string {
  if (text !== lastPeer.text) lastPeer = { text, address: parseAddress(text) ?? text }
  return lastPeer.address
}

/** Records the fault; if recording fails, the request must still get an answer. */
export function faultBody(options: HttpOptions, error: unknown): string {
  try {
    return options.onFault(error)
  } catch {
    return '{}'
  }
}

const emptyBody = Buffer.alloc(0)

const jsonHeaders: readonly Header[] = [
  ['Content-Type', 'application/json'],
  ['Cache-Control', 'no-store'],
]

const spaceHeaders: readonly Header[] = [...jsonHeaders, ['Retry-After', '1'], ['Access-Control-Allow-Origin', '*']]

/** Whether this Accept-Encoding accepts gzip (RFC 9110 section 12.5.3): named, and not with a weight of 0. */
export function takesGzip(accepted = ''): boolean {
  return accepted.split(',').some((each) => {
    const [coding, ...parameters] = each.split(';').map((part) => part.trim().toLowerCase())
    return coding === 'gzip' && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))
  })
}

const unread: Framing = { contentLength: 0, chunked: false, close: true }

/** A body that is being read. */
type Reading = {
  limit: number
  readonly callback: (result: BodyResult) => void
  readonly chunks: Buffer[]
  readonly place: BodyPlace | undefined
  bytes: number
}

/** The server, as its exchanges see it. */
type Engine = {
  readonly options: HttpOptions
  readonly draining: boolean
  /** Absent if bodies arrive without a bound, or whole. */
  readonly bodySpace?: BodySpace | undefined
  /** Requests that are not answered yet. */
  readonly pending: { delete(exchange: unknown): boolean }
}

/** What exchanges of all engines share: framing, faults, and whether the connection ends with the answer. */
export abstract class EngineExchange implements Exchange {
  abstract readonly remoteAddress: string
  abstract readonly method: string
  abstract readonly path: string
  abstract readonly query: string
  abstract readonly headers: FlatHeaders
  abstract readonly isUpgrade: boolean
  ended = false
  protected framing = unread
  /** There is a body, and it has not fully arrived. */
  protected isBodyComing = false
  protected streaming: { close(): void; closed(): void } | undefined
  readonly #engine: Engine
  #reading: Reading | undefined
  /** The client disconnected before it was answered. */
  #isAborted = false
  #abortCallbacks: (() => void)[] | undefined
  #held: HeldAnswer | undefined

  constructor(engine: Engine) {
    this.#engine = engine
  }

  abstract reply(...given: Parameters<Exchange['reply']>): void
  abstract stream(...given: Parameters<Exchange['stream']>): ByteStream
  abstract drop(): void
  abstract accept(...given: Parameters<Exchange['accept']>): ReturnType<Exchange['accept']>
  /** The body is being read, up to this many bytes. */
  protected bodyWanted(_limit: number): void {}

  /** Returns why the request must be refused, if it must. */
  protected frame(): string | undefined {
    const framing = readFraming(this.method, this.headers)
    if (typeof framing === 'string') return framing
    this.framing = framing
    this.isBodyComing = framing.chunked || framing.contentLength > 0
    return isTarget(this.path, this.query) ? undefined : 'the request target must be a path of visible ASCII characters'
  }

  header(name: string): string | undefined {
    for (let i = 0; i < this.headers.length; i += 2) if (this.headers[i] === name) return this.headers[i + 1]
    return undefined
  }

  onAbort(callback: () => void): void {
    if (this.#isAborted) this.guard(callback)
    else if (this.#abortCallbacks === undefined) this.#abortCallbacks = [callback]
    else this.#abortCallbacks.push(callback)
  }

  readBody(limit: number, callback: (result: BodyResult) => void): void {
    if (this.ended) return
    if (this.framing.contentLength > limit) callback({ ok: false, sentAtLeast: this.framing.contentLength })
    else if (this.isBodyComing) {
      const place = this.#engine.bodySpace?.begin(this)
      this.#reading = { limit, callback, chunks: [], place, bytes: 0 }
      this.bodyWanted(limit)
    } else callback({ ok: true, body: emptyBody })
  }

  lowerBodyLimit(limit: number): void {
    if (this.#reading === undefined) return
    this.#reading.limit = Math.min(this.#reading.limit, limit)
    this.#fits(0)
  }

  discardBody(): void {
    this.#stopReading()
  }

  #stopReading(): void {
    this.#reading?.place?.release()
    this.#reading = undefined
  }

  /** A part of the body has arrived; the last may be empty. `copy` returns its bytes, if there are any. */
  protected onPart(bytes: number, isLast: boolean, copy?: () => Buffer): void {
    if (isLast) this.isBodyComing = false
    if (this.#fits(bytes)) this.#keep(bytes, isLast, copy)
    this.#held?.onPart(bytes, isLast)
  }

  /** Counts bytes of the body. False if the body is not being read, or is now too long, in which case its reader was notified. */
  #fits(more: number): boolean {
    const reading = this.#reading
    if (reading === undefined || this.ended) return false
    reading.bytes += more
    if (reading.bytes <= reading.limit) return true
    this.#stopReading()
    this.guard(() => reading.callback({ ok: false, sentAtLeast: reading.bytes }))
    return false
  }

  #keep(bytes: number, isLast: boolean, copy: (() => Buffer) | undefined): void {
    const reading = this.#reading!
    if (!isLast && reading.place?.takes(reading.bytes) === false) return this.#refuseForSpace()
    if (copy !== undefined && bytes > 0) reading.chunks.push(copy())
    if (!isLast) return
    this.#stopReading()
    const { chunks, callback } = reading
    const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, reading.bytes)
    this.guard(() => callback({ ok: true, body }))
  }

  /** There is no memory for the rest of the body. The client can send it again; for the handler, the request has ended. */
  #refuseForSpace(): void {
    const message = 'too many long bodies are arriving at this board or from your network: send it again'
    this.reply(429, spaceHeaders, this.#engine.options.refusal(429, 'overloaded', message))
    this.#abort()
  }

  /** Calls `send` now, or, if an unread body would close the connection, once the client has sent the rest. */
  protected whenSent(send: () => void): void {
    if (!this.#closesForBody || this.framing.contentLength > awaitedBytesMax) return send()
    const { now } = this.#engine.options
    this.#held = new HeldAnswer(now, () => {
      this.#held = undefined
      send()
    })
  }

  /** Sends an answer that waits for the rest of a body that will not come. */
  release(): void {
    this.#held?.release()
  }

  refuse(status: number, code: string, message: string): void {
    this.reply(status, jsonHeaders, this.#engine.options.refusal(status, code, message), { close: true })
  }

  fault(error: unknown): void {
    const body = faultBody(this.#engine.options, error)
    if (this.streaming !== undefined) this.streaming.close()
    else this.reply(500, jsonHeaders, body)
  }

  overdue(): void {
    const { onDeadline } = this.#engine.options
    if (onDeadline !== undefined) this.guard(() => onDeadline(this))
    this.drop()
  }

  /** The connection is gone. */
  lost(): void {
    const wasEnded = this.ended
    this.end()
    this.streaming?.closed()
    this.#held?.cancel()
    this.#held = undefined
    if (!wasEnded) this.#abort()
  }

  #abort(): void {
    this.#isAborted = true
    for (const callback of this.#abortCallbacks ?? []) this.guard(callback)
  }

  /** The clock and the fault recorder, for a stream or a WebSocket of this exchange. */
  protected get hooks(): EngineHooks {
    const { options } = this.#engine
    return { now: options.now, report: (error) => faultBody(options, error) }
  }

  protected end(): void {
    this.ended = true
    this.#stopReading()
    this.#engine.pending.delete(this)
  }

  protected mustClose(): boolean {
    return this.framing.close || this.#engine.draining || this.#closesForBody
  }

  /**
   * Whether an unread body makes the answer close the connection: its bytes must not be taken for the next request, and a long body is not
   * read to its end.
   */
  get #closesForBody(): boolean {
    return this.isBodyComing && (this.framing.chunked || this.framing.contentLength > discardBytesMax)
  }

  protected guard(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.fault(error)
    }
  }
}

export type EngineHooks = {
  readonly now: () => number
  /** Receives errors thrown by a callback or a handler. */
  readonly report: (error: unknown) => void
}

/** What streamed answers of all engines share: the end is reported once, and a fault in one callback does not affect the others. */
export abstract class EngineStream<Native> implements ByteStream {
  blockedSince: number | undefined
  /** Undefined once the stream is over. */
  protected native: Native | undefined
  protected readonly hooks: EngineHooks
  #drainCallbacks: (() => void)[] = []
  #closeCallbacks: (() => void)[] = []

  /** `native` is undefined if the client is gone already: then the stream is over from the start. */
  constructor(native: Native | undefined, hooks: EngineHooks) {
    this.native = native
    this.hooks = hooks
  }

  abstract write(chunk: Uint8Array): boolean
  abstract end(): void
  abstract close(): void

  onDrain(callback: () => void): void {
    this.#drainCallbacks.push(callback)
  }

  onClose(callback: () => void): void {
    if (this.native === undefined) this.#call(callback)
    else this.#closeCallbacks.push(callback)
  }

  /** The connection is gone, or the message is complete. */
  closed(): void {
    if (this.native === undefined) return
    this.native = undefined
    this.blockedSince = undefined
    this.#drainCallbacks = []
    const callbacks = this.#closeCallbacks
    this.#closeCallbacks = []
    for (const callback of callbacks) this.#call(callback)
  }

  /** The socket accepts more again. */
  protected drained(): void {
    for (const callback of this.#drainCallbacks) this.#call(callback)
  }

  #call(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      this.hooks.report(error)
    }
  }
}

export type EngineSocketOptions = EngineHooks & { readonly handlers: SocketHandlers }

/** What WebSockets of all engines share: the end is reported once, and a fault in a handler ends the connection. */
export abstract class EngineSocket<Native> implements WebSocketConnection {
  blockedSince: number | undefined
  /** Undefined before it is opened and after it has ended. */
  protected native: Native | undefined
  protected readonly options: EngineSocketOptions

  constructor(options: EngineSocketOptions) {
    this.options = options
  }

  abstract send(messages: readonly string[]): number
  abstract ping(): void
  abstract end(code: number, reason: string): void

  /** The connection is gone. */
  closed(): void {
    if (this.native === undefined) return
    this.native = undefined
    this.blockedSince = undefined
    this.guard(this.options.handlers.closed)
  }

  /** The peer's socket accepts more again. */
  protected unblock(): void {
    this.blockedSince = undefined
    this.guard(this.options.handlers.drain)
  }

  protected guard(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.options.report(error)
      this.end(1011, 'an internal error of this board')
    }
  }
}
