/**
 * One connection to a vetted target, with one request on it at a time. undici speaks HTTP/1.1; what a request may reach, how much of an
 * answer is read, and which class a failure belongs to are decided here:
 *
 * - The socket gets the vetted addresses in place of a name to look up, so a name server that changes its mind changes nothing (DNS
 *   rebinding); SNI, Host and the certificate stay those of the name. It is opened once: another one is vetted anew by its maker.
 * - A redirect is a failure, never followed. Nothing is decompressed. No cookies, no proxy, no upgrade.
 * - Time is bounded by the maker, who ends what takes too long.
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
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | undefined
  readonly answerBytesMax: number
  /** Whether the body of the answer is wanted. */
  readonly keepsBody: boolean
  /** The connection serves no other request. */
  readonly isLast: boolean
  /** It leaves now: the connection is made. */
  readonly begun?: () => void
}

/** Header fields of an answer, by lower-case names. */
export type Fields = Readonly<Record<string, string | string[] | undefined>>

export type Ended =
  | { readonly ok: true; readonly status: number; readonly fields: Fields; readonly body: Buffer }
  | {
      readonly ok: false
      readonly failure: Failure
      /** Of an answer that was never finished, where it began; else 0. */
      readonly status: number
      /** Whether the other side may have got the request. False: it certainly did not. */
      readonly sent: boolean
      /** The connection served before, and closed without a byte of an answer. */
      readonly isStale: boolean
    }

export type ConnectionOptions = {
  /** Certificates trusted in place of the system's (tests). */
  readonly ca: string | undefined
  /** It will serve no more requests. */
  readonly gone: () => void
}

/** Bytes of an answer's head. */
const headBytesMax = 32_768
/** The parser's own bound of a head makes an error for each field behind it, which takes half a second: it is never met. */
const parserHeadBytesMax = 8 * headBytesMax
const interimMax = 16
/** What a socket reads at once. */
const chunkBytesMax = 65_536
/** Bytes of an answer for each that is wanted of its body: chunks have sizes and ends. */
const bytesForOne = 2
/** For how long a connection waits for its next request, if the other side does not say less. */
const idleMs = 60_000
/** The other side counts from earlier than we do. */
const leewayMs = 1_000

const load = createRequire(import.meta.url)

/** Loaded with the first request; the rest of the package is three times as large. */
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
  /** What the socket had read when this request was sent, and when something came last. */
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

  /** It is open, and all that was sent has left: an answer that came before leaves half a request behind. */
  get isFree(): boolean {
    const socket = this.#socket
    return this.#phase === 'ready' && socket !== undefined && !socket.destroyed && socket.writableLength === 0
  }

  /** Connected and, where that is asked for, secured. */
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

  /** Ends what is under way. */
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

  /** Before the parser reads on: it has no bound for what it passes over, such as a reason phrase or the extension of a chunk. */
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

  /** The other side has ended it, or it waited long enough. */
  #over(): void {
    if (this.#exchange === undefined) this.destroy()
  }
}

type Answered =
  | Extract<Ended, { ok: true }>
  | { readonly ok: false; readonly failure: Failure; readonly status: number }

/** One request until its answer is read. */
class Exchange implements Dispatcher.DispatchHandler {
  /** The request has left, or begun to. */
  hasBegun = false
  /** 0: its head is not whole. */
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

  /** Of all the bytes of its answer. */
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

  /** By then it is known whether the connection can be used again. */
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
