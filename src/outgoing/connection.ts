/**
 * One connection to a vetted target, with one request at a time. undici implements HTTP/1.1; this file decides what a request may reach,
 * how much of an answer is read, and how failures are classified:
 *
 * - The socket gets the vetted addresses instead of a name to resolve, so a name server that changes its answer has no effect (DNS
 *   rebinding). SNI, Host and the certificate are still those of the name. The socket is opened once; its creator vets every new one.
 * - A redirect is a failure, never followed. Nothing is decompressed. No cookies, no proxy, no upgrade.
 * - The creator bounds the time, and ends what takes too long.
 */
import { createRequire } from 'node:module'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Client, Dispatcher } from 'undici'
import { type Address, hasReached, lookupOf, type Target } from './target.ts'

export type Failure = 'timeout' | 'refused' | 'tls' | 'blocked' | 'too_large' | 'redirect' | 'unknown'

export type Origin = Pick<Target, 'host' | 'port' | 'secure'> & { readonly origin: string }

type Sent = {
  readonly method: string
  readonly path: string
  /** Names and values alternate. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | undefined
  readonly answerBytesMax: number
  /** Whether to keep the body of the answer. */
  readonly keepsBody: boolean
  /** Whether the connection will serve no other request. */
  readonly isLast: boolean
  /** Called when the request is sent: the connection is established. */
  readonly begun?: () => void
}

/** Header fields of an answer, by lowercase name. */
export type Fields = Readonly<Record<string, string | string[] | undefined>>

export type Ended =
  | { readonly ok: true; readonly status: number; readonly fields: Fields; readonly body: Buffer }
  | {
      readonly ok: false
      readonly failure: Failure
      /** The status of an incomplete answer, if its head had arrived; else 0. */
      readonly status: number
      /** Whether the other side may have received the request. False if it certainly did not. */
      readonly sent: boolean
      /** The connection had served requests before, and was closed without a byte of this answer. */
      readonly isStale: boolean
    }

export type ConnectionOptions = {
  /** Certificates trusted instead of the system's (tests). */
  readonly ca: string | undefined
  /** Called when it will serve no more requests. */
  readonly gone: () => void
}

/** Maximum size of an answer's head, in bytes. */
const headBytesMax = 32_768
/** Never reached: at its own bound, the parser creates an error for each further field, which takes half a second. */
const parserHeadBytesMax = 8 * headBytesMax
const interimMax = 16
/** How much a socket reads at once. */
const chunkBytesMax = 65_536
/** Answer bytes allowed per body byte wanted, because chunks have sizes and terminators. */
const bytesForOne = 2
/** How long a connection waits for its next request, unless the other side allows less. */
const idleMs = 60_000
/** The other side starts counting earlier than we do. */
const leewayMs = 1_000

const load = createRequire(import.meta.url)

/** Loaded with the first request; the entire package is three times as large. */
function clientClass(): typeof Client {
  return load('undici/lib/dispatcher/client.js')
}

export class Connection {
  readonly #target: Origin
  readonly #addresses: readonly Address[]
  readonly #options: ConnectionOptions
  readonly #client: Client
  #socket: Socket | undefined
  #phase: 'connect' | 'tls' | 'ready' | 'over' = 'connect'
  #exchange: Exchange | undefined
  #uses = 0
  /** How much the socket had read when this request was sent, and at the last data since. */
  #readBefore = 0
  #readLast = 0

  constructor(target: Origin, addresses: readonly Address[], options: ConnectionOptions) {
    this.#target = target
    this.#addresses = addresses
    this.#options = options
    this.#client = new (clientClass())(target.origin, {
      connect: (_asked, callback) => this.#connect(callback),
      maxHeaderSize: parserHeadBytesMax,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      keepAliveTimeoutThreshold: leewayMs,
    })
    this.#client.on('disconnect', () => this.#over())
  }

  /** Whether it is open and everything was sent: if an answer comes early, half a request may be left behind. */
  get isFree(): boolean {
    const socket = this.#socket
    return this.#phase === 'ready' && socket !== undefined && !socket.destroyed && socket.writableLength === 0
  }

  /** Connected and, if required, secured. */
  get isReady(): boolean {
    return this.#phase === 'ready'
  }

  send(request: Sent, done: (ended: Ended) => void): void {
    this.#uses++
    const read = this.#socket?.bytesRead ?? 0
    this.#readBefore = read
    this.#readLast = read
    const exchange = new Exchange(request, (answer) => {
      if (this.#exchange !== exchange) return
      this.#exchange = undefined
      if (answer.ok) return done(answer)
      const { failure, status } = answer
      const phase = this.#phase
      const isStale = failure === 'unknown' && this.#uses > 1 && this.#socket?.bytesRead === read
      const named =
        phase === 'connect' && failure === 'unknown'
          ? 'refused'
          : phase === 'tls' && failure === 'unknown'
            ? 'tls'
            : failure
      this.destroy()
      done({ ok: false, failure: named, status, sent: exchange.hasBegun, isStale })
    })
    this.#exchange = exchange
    const { method, path, headers, body, isLast } = request
    this.#client.dispatch({ method, path, headers: headers as string[], body: body ?? null, reset: isLast }, exchange)
  }

  /** Ends the request in progress. */
  fail(failure: Failure): void {
    if (this.#exchange === undefined) this.destroy()
    else this.#exchange.fail(failure)
  }

  destroy(): void {
    if (this.#phase === 'over') return
    this.#phase = 'over'
    this.#socket?.destroy()
    this.#client.destroy().catch(() => undefined)
    this.#options.gone()
  }

  #connect(callback: (...result: [error: null, socket: Socket] | [error: Error, socket: null]) => void): void {
    if (this.#socket !== undefined) return callback(new Error('this connection is closed'), null)
    const { secure } = this.#target
    const socket = secure ? this.#secure() : this.#plain()
    this.#socket = socket
    const failed = (error: Error): void => callback(error, null)
    const ready = (): void => {
      socket.off('error', failed)
      if (this.#phase === 'over') return
      if (!hasReached(socket, this.#addresses)) return this.fail('blocked')
      this.#phase = 'ready'
      socket.on('readable', () => this.#weigh(socket.bytesRead))
      callback(null, socket)
    }
    socket.once('error', failed)
    socket.once('connect', () => {
      if (!secure) ready()
      else if (this.#phase === 'connect') this.#phase = 'tls'
    })
    if (secure) socket.once('secureConnect', ready)
  }

  /** Checked before the parser reads on, because it does not limit what it skips, such as a reason phrase or chunk extensions. */
  #weigh(read: number): void {
    const exchange = this.#exchange
    if (exchange === undefined) return
    const isLongHead = exchange.status === 0 && this.#readLast - this.#readBefore > headBytesMax
    this.#readLast = read
    if (isLongHead || read - this.#readBefore > exchange.bytesMax) exchange.fail('too_large')
  }

  #plain(): Socket {
    const { host, port } = this.#target
    return connectTcp({ host, port, lookup: lookupOf(this.#addresses), noDelay: true })
  }

  #secure(): Socket {
    const { host, port } = this.#target
    const { ca } = this.#options
    const socket = connectTls({
      ...{ host, port, lookup: lookupOf(this.#addresses), minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] },
      ...(isIP(host) === 0 && { servername: host }),
      ...(ca !== undefined && { ca }),
    })
    socket.setNoDelay(true)
    return socket
  }

  /** The other side closed it, or it was idle long enough. */
  #over(): void {
    if (this.#exchange === undefined) this.destroy()
  }
}

type Answered =
  | Extract<Ended, { ok: true }>
  | { readonly ok: false; readonly failure: Failure; readonly status: number }

/** One request until its answer has been read. */
class Exchange implements Dispatcher.DispatchHandler {
  /** The request has been sent, at least in part. */
  hasBegun = false
  /** 0 until its head is complete. */
  status = 0
  readonly #request: Sent
  readonly #done: (answered: Answered) => void
  readonly #chunks: Buffer[] = []
  #fields: Fields = {}
  #bytes = 0
  #interim = 0

  constructor(request: Sent, done: (answered: Answered) => void) {
    this.#request = request
    this.#done = done
  }

  /** Limit for all bytes of its answer. */
  get bytesMax(): number {
    return headBytesMax + chunkBytesMax + bytesForOne * this.#request.answerBytesMax
  }

  fail(failure: Failure): void {
    this.#done({ ok: false, failure, status: this.status })
  }

  onRequestStart(): void {
    this.hasBegun = true
    this.#request.begun?.()
  }

  onResponseStart({ rawHeaders }: Dispatcher.DispatchController, status: number, fields: Fields): void {
    if (Array.isArray(rawHeaders) && lengthOf(rawHeaders) > headBytesMax) return this.fail('too_large')
    if (status < 200) {
      if (++this.#interim > interimMax) this.fail('too_large')
      return
    }
    this.status = status
    this.#fields = fields
    if (status >= 300 && status < 400) this.fail('redirect')
    else if (Number(fields['content-length'] ?? 0) > this.#request.answerBytesMax) this.fail('too_large')
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#request.answerBytesMax) this.fail('too_large')
    else if (this.#request.keepsBody) this.#chunks.push(chunk)
  }

  /** Deferred, so that it is known whether the connection can be reused. */
  onResponseEnd(): void {
    queueMicrotask(() =>
      this.#done({ ok: true, status: this.status, fields: this.#fields, body: Buffer.concat(this.#chunks) }),
    )
  }

  onResponseError(): void {
    this.fail('unknown')
  }
}

function lengthOf(parts: readonly (string | Buffer)[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}
