/**
 * The way out to the network for all addresses that users gave: calls of tools, probes, metadata of OAuth clients
 * (deliveries, of which there are many, go by poster.ts). One request, to a vetted target:
 *
 *   url -> parseTarget -> name resolved once, every address vetted -> connection to one of those -> request -> bounded answer
 *
 * - The socket gets the vetted addresses in place of a name to look up, so a name server that changes its mind changes
 *   nothing (DNS rebinding); SNI, Host and the certificate stay those of the name.
 * - A redirect is a failure, never followed. Nothing is decompressed. No cookies, no proxy, no upgrade.
 * - Time is bounded from the first name query on: `connectMs` to a usable connection, `totalMs` to the last byte.
 * - Every request has a connection of its own and is sent at most once.
 */
import type { IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { VettedHttpAgent, VettedHttpsAgent } from './agents.ts'
import { outgoingHeaders, receivedHeaders } from './headers.ts'
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

export type Failure = 'timeout' | 'refused' | 'tls' | 'blocked' | 'too_large' | 'redirect' | 'unknown'

export type OutgoingRequest = {
  readonly url: string
  readonly method?: string
  /** Made by the board, never by a caller; hop-by-hop names and cookies are a fault of ours and throw. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  readonly connectMs?: number
  readonly totalMs?: number
  readonly answerBytesMax?: number
  readonly signal?: AbortSignal
}

export type Answered = {
  readonly ok: true
  readonly status: number
  /** Lower-case names; without hop-by-hop ones and cookies. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>
  readonly body: Buffer
}

export type NotAnswered = {
  readonly ok: false
  readonly failure: Failure
  /** A sentence of ours about the class of failure: nothing that the other side sent, no address. */
  readonly reason: string
  /** Whether the other side may have got the request. False: it certainly did not. */
  readonly sent: boolean
  /** The status, where one was read before it failed (redirect, too_large). */
  readonly status?: number
}

export type Outgoing = {
  request(request: OutgoingRequest): Promise<Answered | NotAnswered>
  close(): void
}

export type OutgoingOptions = {
  /** BROADSIDE_LOOPBACK=1. */
  readonly loopback: boolean
  /** Says who is calling. */
  readonly userAgent: string
  readonly resolve?: Resolve
  /** Certificates trusted in place of the system's (tests). */
  readonly ca?: string
}

export const connectMsDefault = 10_000
export const totalMsDefault = 30_000
export const answerBytesMaxDefault = 1024 * 1024

export function createOutgoing({ loopback, userAgent, resolve = resolveName, ca }: OutgoingOptions): Outgoing {
  const trust = ca === undefined ? {} : { ca }
  const agents = { http: new VettedHttpAgent(), https: new VettedHttpsAgent(trust) }

  async function request(asked: OutgoingRequest): Promise<Answered | NotAnswered> {
    const target = parseTarget(asked.url, loopback)
    if (typeof target === 'string') return { ok: false, failure: 'blocked', reason: target, sent: false }
    const clock = new Budget(asked)
    try {
      const addresses = await clock.within(() => vettedAddresses(target, { loopback, resolve, signal: clock.signal }))
      const headers = outgoingHeaders(asked.headers ?? {}, asked.body, userAgent)
      return await new Exchange(target, addresses, asked, headers, clock, agents).run()
    } catch (error) {
      if (error instanceof NoAddress) return { ok: false, failure: error.failure, reason: error.message, sent: false }
      if (error instanceof OutOfTime) return { ok: false, failure: 'timeout', reason: error.message, sent: false }
      throw error
    } finally {
      clock.end()
    }
  }

  return {
    request,
    close() {
      agents.http.destroy()
      agents.https.destroy()
    },
  }
}

/** `isStopped`: its maker has given it up. */
class OutOfTime extends Error {
  readonly isStopped: boolean

  constructor(message: string, isStopped = false) {
    super(message)
    this.isStopped = isStopped
  }
}

/** The time of one request, its name queries included. */
class Budget {
  readonly #abort = new AbortController()
  readonly #total: NodeJS.Timeout
  #connect: NodeJS.Timeout | undefined
  readonly #given: AbortSignal | undefined
  readonly #stop = () => this.#abort.abort(new OutOfTime('it was given up', true))

  constructor({ connectMs = connectMsDefault, totalMs = totalMsDefault, signal }: OutgoingRequest) {
    const expire = (ms: number, what: string) => () =>
      this.#abort.abort(new OutOfTime(`it did not ${what} within ${ms / 1000} s`))
    this.#total = setTimeout(expire(totalMs, 'answer'), totalMs)
    this.#connect = setTimeout(expire(connectMs, 'accept a connection'), connectMs)
    this.#given = signal
    if (signal?.aborted) this.#stop()
    signal?.addEventListener('abort', this.#stop, { once: true })
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  connected(): void {
    clearTimeout(this.#connect)
    this.#connect = undefined
  }

  /** What is given up before it begins is not begun: no caller would be there to learn how it failed. */
  async within<Value>(begin: () => Promise<Value>): Promise<Value> {
    const { signal } = this
    signal.throwIfAborted()
    const work = begin()
    return new Promise<Value>((settle, reject) => {
      const stop = () => reject(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      work.then(settle, reject).finally(() => signal.removeEventListener('abort', stop))
    })
  }

  end(): void {
    this.connected()
    clearTimeout(this.#total)
    this.#given?.removeEventListener('abort', this.#stop)
  }
}

type Agents = { readonly http: VettedHttpAgent; readonly https: VettedHttpsAgent }

/** One attempt on one connection. */
class Exchange {
  readonly #target: Target
  readonly #addresses: readonly Address[]
  readonly #asked: OutgoingRequest
  readonly #headers: Record<string, string>
  readonly #clock: Budget
  readonly #agents: Agents
  #phase: 'connect' | 'tls' | 'sent' = 'connect'

  constructor(
    target: Target,
    addresses: readonly Address[],
    asked: OutgoingRequest,
    headers: Record<string, string>,
    clock: Budget,
    agents: Agents,
  ) {
    this.#target = target
    this.#addresses = addresses
    this.#asked = asked
    this.#headers = headers
    this.#clock = clock
    this.#agents = agents
  }

  run(): Promise<Answered | NotAnswered> {
    const { url, host, port, secure } = this.#target
    const { method = 'GET', body, answerBytesMax = answerBytesMaxDefault } = this.#asked
    const { signal } = this.#clock
    return new Promise((settle) => {
      const agent = secure ? this.#agents.https : this.#agents.http
      const request = agent.send({
        method,
        host,
        port,
        path: `${url.pathname}${url.search}`,
        headers: { host: url.host, ...this.#headers },
        lookup: lookupOf(this.#addresses),
        ...(secure && isIP(host) === 0 && { servername: host }),
      })
      let done = false
      const finish = (answer: Answered | NotAnswered) => {
        if (done) return
        done = true
        signal.removeEventListener('abort', stop)
        if (!answer.ok) request.destroy()
        settle(answer)
      }
      const fail = (failure: Failure, reason: string, more: { status?: number } = {}) =>
        finish({ ok: false, failure, reason, sent: this.#phase === 'sent', ...more })
      const stop = () => {
        const { isStopped, message } = signal.reason as OutOfTime
        // The wait was too short to call it a time-out.
        fail(isStopped && this.#phase === 'sent' ? 'unknown' : 'timeout', message)
      }
      signal.addEventListener('abort', stop, { once: true })
      request.on('socket', (socket) => this.#follow(socket, fail))
      request.on('error', (error: NodeJS.ErrnoException) => this.#broken(error, fail))
      request.on('upgrade', () => fail('unknown', 'it answered with another protocol'))
      request.on('response', (response) => read(response, answerBytesMax, finish, fail))
      if (signal.aborted) stop()
      else request.end(body)
    })
  }

  #follow(socket: Socket, fail: Fail): void {
    const ready = () => {
      if (!hasReached(socket, this.#addresses)) {
        socket.destroy()
        fail('blocked', 'its host is not on the public Internet')
        return
      }
      this.#clock.connected()
      this.#phase = 'sent'
    }
    socket.once('connect', () => {
      if (this.#target.secure) this.#phase = 'tls'
      else ready()
    })
    if (this.#target.secure) socket.once('secureConnect', ready)
  }

  #broken(error: NodeJS.ErrnoException, fail: Fail): void {
    if (this.#phase === 'connect') fail('refused', 'nobody accepts connections there')
    else if (this.#phase === 'tls') fail('tls', 'no TLS connection with a valid certificate of that name was possible')
    else if (error.code === 'HPE_HEADER_OVERFLOW') fail('too_large', 'the head of its answer is too large')
    else fail('unknown', 'the connection broke before an answer')
  }
}

type Fail = (failure: Failure, reason: string, more?: { status?: number }) => void

function read(response: IncomingMessage, bytesMax: number, finish: (answer: Answered) => void, fail: Fail): void {
  const status = response.statusCode ?? 0
  if (status >= 300 && status < 400) {
    fail('redirect', 'it answered with a redirect, which is never followed', { status })
    return
  }
  const tooLarge = () => fail('too_large', `its answer has more than ${bytesMax} bytes`, { status })
  if (Number(response.headers['content-length'] ?? 0) > bytesMax) {
    tooLarge()
    return
  }
  const chunks: Buffer[] = []
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > bytesMax) tooLarge()
    else chunks.push(chunk)
  })
  response.on('end', () => {
    finish({ ok: true, status, headers: receivedHeaders(response.headersDistinct), body: Buffer.concat(chunks) })
  })
  response.on('error', () => fail('unknown', 'the connection broke inside the answer', { status }))
}
