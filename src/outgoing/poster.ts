/**
 * Sends deliveries: POSTs to vetted targets over persistent connections. The same rules as for every other request decide what may be
 * reached (target.ts, connection.ts).
 *
 * - A connection belongs to one origin, and to one address that was vetted when it was opened. It is used for at most a minute, so that
 *   DNS changes are followed; each new connection is vetted again.
 * - No redirect is followed, nothing is decompressed, and at most 16 KiB of an answer are read.
 * - Time is bounded from the first DNS query on. One timer checks everything in progress, ten times per second.
 * - If an idle connection was closed before any byte of the answer, the request is retried once on a fresh one.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Clock } from '../clock.ts'
import { Connection, type Ended, type Failure, type Origin } from './connection.ts'
import { NoAddress, parseTarget, type Resolve, resolveName, vettedAddresses } from './target.ts'

/** A target of POSTs. */
export type PostTarget = Origin & { readonly path: string }

type Post = {
  readonly target: PostTarget
  /** Names and values alternate. */
  readonly headers: readonly string[]
  readonly body: string
  readonly connectMs: number
  readonly totalMs: number
  /** Whether to keep the body of the answer. */
  readonly keepsBody?: boolean
}

/** `no_address`: its name has none. */
export type PostFailure = Failure | 'no_address'

export type Posted =
  | { readonly ok: true; readonly status: number; readonly retryAfter: string | undefined; readonly body: Buffer }
  /** `status`: of an incomplete answer, if its head had arrived. */
  | { readonly ok: false; readonly failure: PostFailure; readonly status: number }

type PosterOptions = {
  /** BROADSIDE_LOOPBACK=1. */
  readonly loopback: boolean
  /** Identifies the board to the target. */
  readonly userAgent: string
  readonly clock: Pick<Clock, 'monotonicMs' | 'every'>
  readonly resolve?: Resolve
  /** Certificates trusted instead of the system's (tests). */
  readonly ca?: string
}

const answerBytesMax = 16 * 1024
const lookEveryMs = 100
/** Idle connections: per origin, and in total. */
const idlePerOriginMax = 8
const idleMax = 1_024
const ageMsMax = 60_000

/** One POST until it is answered. */
type Job = {
  readonly post: Post
  readonly done: (posted: Posted) => void
  readonly due: number
  readonly connectDue: number
  /** Whether it already failed on a reused connection. */
  isAgain: boolean
}

/** A connection and its current work. */
type Line = {
  readonly connection: Connection
  readonly origin: string
  readonly bornAt: number
  job: Job | undefined
}

export class Poster {
  readonly #options: PosterOptions
  readonly #idle = new Map<string, Line[]>()
  readonly #lines = new Set<Line>()
  /** Errands whose addresses are being resolved, and how to abort that. */
  readonly #vetting = new Map<Job, AbortController>()
  readonly #stopLooking: Cancel
  #idleCount = 0

  constructor(options: PosterOptions) {
    this.#options = options
    this.#stopLooking = options.clock.every(() => this.#look(), lookEveryMs)
  }

  /** A text says why nothing is sent there. */
  target(address: string): PostTarget | string {
    const target = parseTarget(address, this.#options.loopback)
    if (typeof target === 'string') return target
    const { url, host, port, secure } = target
    return { host, port, secure, origin: url.origin, path: `${url.pathname}${url.search}` }
  }

  post(post: Post, done: (posted: Posted) => void): void {
    const now = this.#options.clock.monotonicMs()
    const job: Job = { post, done, due: now + post.totalMs, connectDue: now + post.connectMs, isAgain: false }
    const kept = this.#kept(post.target.origin, now)
    if (kept === undefined) void this.#open(job)
    else this.#send(kept, job)
  }

  close(): void {
    this.#stopLooking()
    for (const stop of this.#vetting.values()) stop.abort()
    for (const { connection } of this.#lines) connection.destroy()
  }

  /** The most recently used one, so that the others can become idle and close. */
  #kept(origin: string, now: number): Line | undefined {
    const idle = this.#idle.get(origin)
    for (let found = idle?.pop(); found !== undefined; found = idle!.pop()) {
      this.#idleCount--
      if (idle!.length === 0) this.#idle.delete(origin)
      if (found.connection.isFree && now < found.bornAt + ageMsMax) return found
      found.connection.destroy()
    }
    return undefined
  }

  async #open(job: Job): Promise<void> {
    const { loopback, resolve = resolveName, ca } = this.#options
    const { target } = job.post
    const stop = new AbortController()
    this.#vetting.set(job, stop)
    try {
      const addresses = await vettedAddresses(target, { loopback, resolve, signal: stop.signal })
      // The caller no longer waits for it.
      if (!this.#vetting.delete(job)) return
      const connection = new Connection(target, addresses, { ca, gone: () => this.#gone(line) })
      const line: Line = {
        connection,
        origin: target.origin,
        bornAt: this.#options.clock.monotonicMs(),
        job: undefined,
      }
      this.#lines.add(line)
      this.#send(line, job)
    } catch (error) {
      if (!this.#vetting.delete(job)) return
      const failure = error instanceof NoAddress ? error.failure : 'refused'
      job.done({ ok: false, failure, status: 0 })
    }
  }

  #send(line: Line, job: Job): void {
    line.job = job
    const { target, headers, body, keepsBody = false } = job.post
    const own = ['user-agent', this.#options.userAgent, 'accept-encoding', 'identity']
    const request = { method: 'POST', path: target.path, headers: [...own, ...headers], body }
    line.connection.send({ ...request, answerBytesMax, keepsBody, isLast: false }, (ended) => {
      line.job = undefined
      if (ended.ok) this.#free(line)
      this.#finish(job, ended)
    })
  }

  #finish(job: Job, ended: Ended): void {
    if (ended.ok) {
      const retryAfter = [ended.fields['retry-after'] ?? []].flat()[0]
      return job.done({ ok: true, status: ended.status, retryAfter, body: ended.body })
    }
    if (ended.isStale && !job.isAgain) {
      job.isAgain = true
      return void this.#open(job)
    }
    const { failure, status } = ended
    // An answer that stalls counts as none.
    job.done({ ok: false, failure, status: failure === 'timeout' ? 0 : status })
  }

  #free(line: Line): void {
    const idle = this.#idle.get(line.origin) ?? []
    const isKept = line.connection.isFree && idle.length < idlePerOriginMax && this.#idleCount < idleMax
    if (!isKept) return line.connection.destroy()
    idle.push(line)
    this.#idle.set(line.origin, idle)
    this.#idleCount++
  }

  #gone(line: Line): void {
    this.#lines.delete(line)
    const idle = this.#idle.get(line.origin)
    const at = idle?.indexOf(line) ?? -1
    if (at < 0) return
    idle!.splice(at, 1)
    this.#idleCount--
    if (idle!.length === 0) this.#idle.delete(line.origin)
  }

  /** Ends whatever has run out of time. */
  #look(): void {
    const now = this.#options.clock.monotonicMs()
    for (const [job, stop] of this.#vetting) {
      if (now < job.connectDue && now < job.due) continue
      this.#vetting.delete(job)
      stop.abort()
      job.done({ ok: false, failure: 'timeout', status: 0 })
    }
    for (const { connection, bornAt, job } of this.#lines) {
      if (job === undefined) {
        if (now >= bornAt + ageMsMax) connection.destroy()
      } else if (now >= job.due || (!connection.isReady && now >= job.connectDue)) connection.fail('timeout')
    }
  }
}
