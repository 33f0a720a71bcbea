/**
 * The way out for deliveries: POSTs to vetted targets over connections that are kept, at the least cost for each. What may be
 * called is decided by the same rules as for every other request (target.ts, addresses.ts); only the road is shorter:
 *
 *   target, made once -> connection of its origin that is idle, or a new one -> one write -> answer-reader.ts -> done
 *
 * - A connection belongs to one origin and reached one address that was vetted when it was opened. It is used for a minute at
 *   most, so that a name which moves is followed, and is vetted again with the next.
 * - No redirect is followed, nothing is decompressed, no more than 16 KiB of an answer is read.
 * - Time is bounded from the first name query on. One timer looks at everything under way, ten times a second.
 * - A kept connection that was closed before a byte of the answer came is replaced by a fresh one, once.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AnswerReader, type Read } from './answer-reader.ts'
import type { Failure } from './request.ts'
import {
  type Address,
  hasReached,
  lookupOf,
  NoAddress,
  parseTarget,
  type Resolve,
  resolveName,
  type Target,
  vettedAddresses,
} from './target.ts'

/** An address that is posted to: what of every request stays the same. */
export type PostTarget = Pick<Target, 'host' | 'port' | 'secure'> & {
  readonly origin: string
  /** The head up to the headers of one post. */
  readonly start: string
}

export type Post = {
  readonly target: PostTarget
  /** Lines of the head, each with its end: made by the board of characters that no line breaks with. */
  readonly headers: string
  readonly body: string
  readonly connectMs: number
  readonly totalMs: number
  /** Whether the body of the answer is wanted. */
  readonly keepsBody?: boolean
}

export type Posted =
  | { readonly ok: true; readonly status: number; readonly retryAfter: string | undefined; readonly body: Buffer }
  /** `status`: of an answer that was never finished, where it began. */
  | { readonly ok: false; readonly failure: Failure; readonly status: number }

export type PosterOptions = {
  /** BROADSIDE_LOOPBACK=1. */
  readonly loopback: boolean
  /** Says who is calling. */
  readonly userAgent: string
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly resolve?: Resolve
  /** Certificates trusted in place of the system's (tests). */
  readonly ca?: string
}

const answerBytesMax = 16 * 1024
const lookEveryMs = 100
/** Connections that wait for their next request: to one origin, and in all. */
const idlePerOriginMax = 8
const idleMax = 1_024
const ageMsMax = 60_000
const nobody = Buffer.alloc(0)
/** Bytes of all plain connections: they are looked at before the next read can happen. */
const shared = Buffer.allocUnsafeSlow(64 * 1024)

/** One post until it is answered. */
type Errand = {
  readonly post: Post
  readonly done: (posted: Posted) => void
  readonly due: number
  readonly connectDue: number
  /** It has failed on a kept connection already. */
  isAgain: boolean
}

export class Poster {
  readonly #options: PosterOptions
  readonly #idle = new Map<string, Connection[]>()
  readonly #connections = new Set<Connection>()
  /** Errands whose addresses are being asked for, and how to stop that. */
  readonly #vetting = new Map<Errand, AbortController>()
  readonly #timer: NodeJS.Timeout
  #idleCount = 0

  constructor(options: PosterOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), lookEveryMs)
    this.#timer.unref()
  }

  /** A text: why nothing is sent there. */
  target(address: string): PostTarget | string {
    const target = parseTarget(address, this.#options.loopback)
    if (typeof target === 'string') return target
    const { url, host, port, secure } = target
    const start =
      `POST ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\nuser-agent: ${this.#options.userAgent}\r\n` +
      'accept-encoding: identity\r\nconnection: keep-alive\r\n'
    return { host, port, secure, origin: url.origin, start }
  }

  post(post: Post, done: (posted: Posted) => void): void {
    const now = this.#options.now()
    const errand: Errand = { post, done, due: now + post.totalMs, connectDue: now + post.connectMs, isAgain: false }
    const kept = this.#kept(post.target.origin, now)
    if (kept === undefined) void this.#open(errand)
    else kept.send(errand)
  }

  close(): void {
    clearInterval(this.#timer)
    for (const stop of this.#vetting.values()) stop.abort()
    for (const connection of this.#connections) connection.destroy()
  }

  /** The one that was used last: the others may come to rest. */
  #kept(origin: string, now: number): Connection | undefined {
    const idle = this.#idle.get(origin)
    for (let found = idle?.pop(); found !== undefined; found = idle!.pop()) {
      this.#idleCount--
      if (idle!.length === 0) this.#idle.delete(origin)
      if (found.isUsable(now)) return found
      found.destroy()
    }
    return undefined
  }

  async #open(errand: Errand): Promise<void> {
    const { loopback, resolve = resolveName } = this.#options
    const { target } = errand.post
    const stop = new AbortController()
    this.#vetting.set(errand, stop)
    try {
      const addresses = await vettedAddresses(target, { loopback, resolve, signal: stop.signal })
      // The caller does not wait for it any more.
      if (!this.#vetting.delete(errand)) return
      const connection = new Connection(target, addresses, {
        ca: this.#options.ca,
        bornAt: this.#options.now(),
        free: (each, keepMs) => this.#free(each, keepMs),
        gone: (each) => this.#gone(each),
        again: (each) => void this.#open(each),
      })
      this.#connections.add(connection)
      connection.send(errand)
    } catch (error) {
      if (!this.#vetting.delete(errand)) return
      const failure = error instanceof NoAddress ? error.failure : 'refused'
      errand.done({ ok: false, failure, status: 0 })
    }
  }

  #free(connection: Connection, keepMs: number): void {
    const { origin } = connection.target
    const idle = this.#idle.get(origin) ?? []
    if (keepMs === 0 || idle.length >= idlePerOriginMax || this.#idleCount >= idleMax) return connection.destroy()
    connection.idleUntil = this.#options.now() + keepMs
    idle.push(connection)
    this.#idle.set(origin, idle)
    this.#idleCount++
  }

  #gone(connection: Connection): void {
    this.#connections.delete(connection)
    const { origin } = connection.target
    const idle = this.#idle.get(origin)
    const at = idle?.indexOf(connection) ?? -1
    if (at < 0) return
    idle!.splice(at, 1)
    this.#idleCount--
    if (idle!.length === 0) this.#idle.delete(origin)
  }

  #look(): void {
    const now = this.#options.now()
    for (const [errand, stop] of this.#vetting) {
      if (now < errand.connectDue && now < errand.due) continue
      this.#vetting.delete(errand)
      stop.abort()
      errand.done({ ok: false, failure: 'timeout', status: 0 })
    }
    for (const connection of this.#connections) connection.look(now)
  }
}

type ConnectionOptions = {
  readonly ca: string | undefined
  readonly bornAt: number
  /** It has nothing to do, for so long at most. */
  readonly free: (connection: Connection, keepMs: number) => void
  readonly gone: (connection: Connection) => void
  /** This errand needs a fresh connection. */
  readonly again: (errand: Errand) => void
}

class Connection {
  readonly target: PostTarget
  idleUntil = 0
  readonly #addresses: readonly Address[]
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  #phase: 'connect' | 'tls' | 'ready' | 'over' = 'connect'
  #errand: Errand | undefined
  #reader: AnswerReader | undefined
  #hasAnswered = false
  #uses = 0

  constructor(target: PostTarget, addresses: readonly Address[], options: ConnectionOptions) {
    this.target = target
    this.#addresses = addresses
    this.#options = options
    const socket = target.secure ? this.#secure() : this.#plain()
    this.#socket = socket
    socket.once('connect', () => {
      if (target.secure) this.#phase = 'tls'
      else this.#ready()
    })
    if (target.secure) socket.once('secureConnect', () => this.#ready())
    socket.on('error', () => this.#over())
    // A host that has ended its side takes no more requests either.
    socket.on('end', () => this.#over())
    socket.on('close', () => this.#over())
  }

  send(errand: Errand): void {
    this.#errand = errand
    if (this.#phase === 'ready') this.#write(errand)
  }

  isUsable(now: number): boolean {
    return this.#phase === 'ready' && now < this.idleUntil && now < this.#options.bornAt + ageMsMax
  }

  /** Whose time is over? */
  look(now: number): void {
    const errand = this.#errand
    if (errand === undefined) {
      if (!this.isUsable(now)) this.destroy()
    } else if (now >= errand.due || (this.#phase !== 'ready' && now >= errand.connectDue)) this.#fail('timeout', 0)
  }

  destroy(): void {
    const isNews = this.#phase !== 'over'
    this.#phase = 'over'
    if (isNews) this.#options.gone(this)
    this.#socket.destroy()
  }

  #plain(): Socket {
    const { host, port } = this.target
    const callback = (size: number, bytes: Uint8Array): boolean => {
      this.#take((bytes as Buffer).subarray(0, size))
      return true
    }
    return connectTcp({
      host,
      port,
      lookup: lookupOf(this.#addresses),
      noDelay: true,
      onread: { buffer: shared, callback },
    })
  }

  #secure(): Socket {
    const { host, port } = this.target
    const { ca } = this.#options
    const socket = connectTls({
      ...{ host, port, lookup: lookupOf(this.#addresses), minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] },
      ...(isIP(host) === 0 && { servername: host }),
      ...(ca !== undefined && { ca }),
    })
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    return socket
  }

  #ready(): void {
    if (this.#phase === 'over') return
    if (!hasReached(this.#socket, this.#addresses)) return this.#fail('blocked', 0)
    this.#phase = 'ready'
    if (this.#errand !== undefined) this.#write(this.#errand)
  }

  #write({ post }: Errand): void {
    const { target, headers, body, keepsBody = false } = post
    this.#reader = new AnswerReader(answerBytesMax, keepsBody)
    this.#hasAnswered = false
    this.#uses++
    const length = Buffer.byteLength(body)
    const text = `${target.start}${headers}content-length: ${length}\r\n\r\n${body}`
    this.#socket.write(text, length === body.length ? 'latin1' : 'utf8')
  }

  #take(bytes: Buffer): void {
    // Bytes that no request asked for.
    if (this.#reader === undefined) return this.destroy()
    this.#hasAnswered = true
    this.#finish(this.#reader.take(bytes), this.#reader)
  }

  #finish(read: Read, reader: AnswerReader): void {
    if (read === 'more') return
    const errand = this.#errand!
    const { status, retryAfter, keepMs } = reader
    if (read !== 'done') return this.#fail(read === 'broken' ? 'unknown' : 'too_large', status)
    const body = errand.post.keepsBody === true ? reader.body : nobody
    this.#errand = undefined
    this.#reader = undefined
    if (status >= 300 && status < 400) {
      this.destroy()
      return errand.done({ ok: false, failure: 'redirect', status })
    }
    // An answer that came before all was sent leaves half a request unsent.
    const isClean = this.#phase === 'ready' && this.#socket.writableLength === 0
    this.#options.free(this, isClean ? keepMs : 0)
    errand.done({ ok: true, status, retryAfter, body })
  }

  #fail(failure: Failure, status: number): void {
    const errand = this.#errand
    this.#errand = undefined
    this.#reader = undefined
    this.destroy()
    errand?.done({ ok: false, failure, status })
  }

  /** The connection has broken, or the other side has ended it. */
  #over(): void {
    if (this.#phase === 'over') return
    const errand = this.#errand
    const reader = this.#reader
    if (errand === undefined) return this.destroy()
    if (this.#phase === 'connect') return this.#fail('refused', 0)
    if (this.#phase === 'tls') return this.#fail('tls', 0)
    if (!this.#hasAnswered && this.#uses > 1 && !errand.isAgain) {
      errand.isAgain = true
      this.#errand = undefined
      this.destroy()
      return this.#options.again(errand)
    }
    this.#finish(reader!.ended(), reader!)
  }
}
