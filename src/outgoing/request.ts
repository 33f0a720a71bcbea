/**
 * Sends requests to addresses that users supplied: tool calls, probes, metadata of OAuth clients (deliveries, of which there are many, use
 * poster.ts). One request to a vetted target:
 *
 *   url -> parseTarget -> name resolved once, every address vetted -> connection to one of those -> request -> bounded answer
 *
 * - Time is bounded from the first DNS query on: `connectMs` to a usable connection, `totalMs` to the last byte.
 * - Every request has its own connection and is sent at most once.
 */

import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { validateHeaderValue } from '../node-http.ts'
import { Connection, type Ended, type Failure, type Fields } from './connection.ts'
import {
  type Address,
  NoAddress,
  parseTarget,
  type Resolve,
  resolveName,
  type Target,
  vettedAddresses,
} from './target.ts'

export type OutgoingRequest = {
  readonly url: string
  readonly method?: string
  /** Set by the board, never by a caller; hop-by-hop names and cookies would be our bug, and throw. */
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
  /** Lowercase names, without hop-by-hop headers and cookies. */
  readonly headers: Readonly<Record<string, readonly string[] | undefined>>
  readonly body: Buffer
}

export type NotAnswered = {
  readonly ok: false
  readonly failure: Failure
  /** Our own sentence about the class of failure: nothing that the other side sent, no address. */
  readonly reason: string
  /** Whether the other side may have received the request. False if it certainly did not. */
  readonly sent: boolean
  /** The status, if one was read before the failure (redirect, too_large). */
  readonly status?: number
}

export type Outgoing = {
  request(request: OutgoingRequest): Promise<Answered | NotAnswered>
  close(): void
}

type OutgoingOptions = {
  /** BROADSIDE_LOOPBACK=1. */
  readonly loopback: boolean
  /** Identifies the board to the target. */
  readonly userAgent: string
  readonly timers: Pick<Timers, 'later'>
  readonly resolve?: Resolve
  /** Certificates trusted instead of the system's (tests). */
  readonly ca?: string
}

const connectMsDefault = 10_000
export const totalMsDefault = 30_000
const answerBytesMaxDefault = 1024 * 1024

export function createOutgoing({ loopback, userAgent, timers, resolve = resolveName, ca }: OutgoingOptions): Outgoing {
  const open = new Set<Connection>()

  async function request(asked: OutgoingRequest): Promise<Answered | NotAnswered> {
    const target = parseTarget(asked.url, loopback)
    if (typeof target === 'string') return { ok: false, failure: 'blocked', reason: target, sent: false }
    const clock = new Budget(asked, timers)
    try {
      const addresses = await clock.within(() => vettedAddresses(target, { loopback, resolve, signal: clock.signal }))
      const headers = outgoingHeaders(asked.headers ?? {}, userAgent)
      return await exchange(target, { addresses, ca, asked, headers, clock, open })
    } catch (error) {
      if (error instanceof NoAddress) {
        const failure = error.failure === 'no_address' ? 'refused' : error.failure
        return { ok: false, failure, reason: error.message, sent: false }
      }
      if (error instanceof OutOfTime) return { ok: false, failure: 'timeout', reason: error.message, sent: false }
      throw error
    } finally {
      clock.end()
    }
  }

  return {
    request,
    close() {
      for (const connection of open) connection.destroy()
    },
  }
}

/** `isStopped`: its caller has canceled it. */
class OutOfTime extends Error {
  readonly isStopped: boolean

  constructor(message: string, isStopped = false) {
    super(message)
    this.isStopped = isStopped
  }
}

/** The time budget of one request, including DNS queries. */
class Budget {
  readonly #abort = new AbortController()
  readonly #stopTotal: Cancel
  readonly #stopConnect: Cancel
  readonly #given: AbortSignal | undefined
  readonly #stop = () => this.#abort.abort(new OutOfTime('it was canceled', true))

  constructor(
    { connectMs = connectMsDefault, totalMs = totalMsDefault, signal }: OutgoingRequest,
    { later }: Pick<Timers, 'later'>,
  ) {
    const expire = (ms: number, what: string) => () =>
      this.#abort.abort(new OutOfTime(`it did not ${what} within ${ms / 1000} s`))
    this.#stopTotal = later(expire(totalMs, 'answer'), totalMs)
    this.#stopConnect = later(expire(connectMs, 'accept a connection'), connectMs)
    this.#given = signal
    if (signal?.aborted) this.#stop()
    signal?.addEventListener('abort', this.#stop, { once: true })
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  connected(): void {
    this.#stopConnect()
  }

  /** A request canceled in advance is not started: no caller would be there to learn how it failed. */
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
    this.#stopTotal()
    this.#given?.removeEventListener('abort', this.#stop)
  }
}

type Attempt = {
  readonly addresses: readonly Address[]
  readonly ca: string | undefined
  readonly asked: OutgoingRequest
  readonly headers: readonly string[]
  readonly clock: Budget
  readonly open: Set<Connection>
}

/** One attempt on one connection. */
function exchange({ url, ...target }: Target, attempt: Attempt): Promise<Answered | NotAnswered> {
  const { addresses, ca, asked, headers, clock, open } = attempt
  const { method = 'GET', body, answerBytesMax = answerBytesMaxDefault } = asked
  const { signal } = clock
  return new Promise((settle) => {
    const gone = () => void open.delete(connection)
    const connection = new Connection({ ...target, origin: url.origin }, addresses, { ca, gone })
    open.add(connection)
    const stop = () => connection.fail('timeout')
    signal.addEventListener('abort', stop, { once: true })
    const sent = { method, path: `${url.pathname}${url.search}`, headers, body, answerBytesMax }
    connection.send({ ...sent, keepsBody: true, isLast: true, begun: () => clock.connected() }, (ended) => {
      signal.removeEventListener('abort', stop)
      connection.destroy()
      settle(ended.ok ? answered(ended) : notAnswered(ended, answerBytesMax, signal))
    })
  })
}

function answered({ status, fields, body }: Extract<Ended, { ok: true }>): Answered {
  return { ok: true, status, headers: receivedHeaders(fields), body }
}

function notAnswered(
  { failure, status, sent }: Extract<Ended, { ok: false }>,
  bytesMax: number,
  signal: AbortSignal,
): NotAnswered {
  const known = status === 0 ? {} : { status }
  if (failure !== 'timeout') return { ok: false, failure, reason: reasonOf(failure, status, bytesMax), sent, ...known }
  const { isStopped, message } = signal.reason as OutOfTime
  // It was canceled too early to call it a time-out.
  return { ok: false, failure: isStopped && sent ? 'unknown' : 'timeout', reason: message, sent }
}

function reasonOf(failure: Exclude<Failure, 'timeout'>, status: number, bytesMax: number): string {
  if (failure === 'too_large')
    return status === 0 ? 'the head of its answer is too large' : `its answer has more than ${bytesMax} bytes`
  if (failure === 'unknown')
    return status === 0 ? 'the connection broke before an answer' : 'the connection broke inside the answer'
  return reasons[failure]
}

const reasons = {
  refused: 'the connection was refused there',
  tls: 'no TLS connection with a valid certificate of that name was possible',
  blocked: 'its host is not on the public Internet',
  redirect: 'it answered with a redirect, which is never followed',
} as const

/** RFC 9110 7.6.1: headers for one connection only. */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
/** Set only here. */
const ours = new Set(['host', 'content-length', 'user-agent', 'accept-encoding', 'cookie', 'expect'])

/** Names and values alternate. Throws if a caller may not set one, or if it would break a line. */
function outgoingHeaders(headers: Readonly<Record<string, string>>, userAgent: string): string[] {
  const sent: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (hopByHop.has(lower) || ours.has(lower)) throw new TypeError(`callers cannot set the header ${lower}`)
    validateHeaderValue(lower, value)
    sent.push(lower, value)
  }
  sent.push('user-agent', userAgent, 'accept-encoding', 'identity')
  return sent
}

/** The headers of an answer that are passed on: none about the connection, and no cookies. */
function receivedHeaders(fields: Fields): Record<string, readonly string[]> {
  const kept: Record<string, readonly string[]> = Object.create(null)
  for (const [name, values] of Object.entries(fields)) {
    if (values === undefined || hopByHop.has(name) || name === 'set-cookie' || name === 'set-cookie2') continue
    kept[name] = [values].flat()
  }
  return kept
}
