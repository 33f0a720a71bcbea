/** A follower's client for its leader, over HTTP. */
import { Diverged, type JournalPlace } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Clock } from '../clock.ts'
import type { FollowSettings } from '../config.ts'
import { foreignJson } from '../format/foreign-json.ts'
import type { Reply } from '../format/reply.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { type Ends, type FrameShares, isEnds } from './journals-out.ts'
import {
  type AskedPlaces,
  type ForwardedCommand,
  goneStatus,
  type LeaderEnds,
  type LeaderFacts,
  unpackShares,
} from './leader-answers.ts'
import { replicaKeyIn } from './replica-key.ts'
import { isSharedSettings } from './shared-settings.ts'
import { isSealState, type SealState } from './stream-seal.ts'

/** How long an answer may take in total, and until it begins. */
type Patience = { readonly withinMs: number; readonly beginsWithinMs: number }

const briefly: Patience = { withinMs: 5_000, beginsWithinMs: 5_000 }
/** A batch may have one extra decision, whose size no frame limits. Meanwhile, what the stream brings waits. */
const forBytes: Patience = { withinMs: 60_000, beginsWithinMs: 5_000 }
/** A write waits for the log, and behind other writes. */
const forWrites: Patience = { withinMs: 30_000, beginsWithinMs: 30_000 }

/** The leader gave no useful answer. */
export class OutOfReach extends Error {
  override name = 'OutOfReach'
  /** The address of a box that certainly did not carry out the request. */
  readonly undoneBy: string | undefined

  constructor(message: string, undoneBy?: string) {
    super(message)
    this.undoneBy = undoneBy
  }
}

/** A board answered, and refused this follower itself: nothing works until an operator has done what the message says. */
export class RefusedFollower extends OutOfReach {}

type Asked = Patience & {
  /** 64 hex. */
  readonly key: string
  /** The body to post; undefined for a GET. */
  readonly body?: string
  readonly signal: AbortSignal
}

type Answer = { readonly status: number; readonly bytes: Buffer }

/** A write that the leader has answered. `ends`: how far a follower must be to show it. */
type CarriedOut = { readonly reply: Reply; readonly ends: Ends | undefined }

/** Sends a request to the box at an address, at `/replica/<path>`. Rejects with OutOfReach. */
export type AskBox = (address: string, path: string, asked: Asked) => Promise<Answer>

/** Codes of connections that were never established. */
const unsent = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** One of several boxes leads. If the current one does not answer as a leader, the next one is tried on the next request. */
export class Leader {
  readonly #addresses: readonly string[]
  readonly #key: string
  readonly #askBox: AskBox
  readonly #closing = new AbortController()
  #at = 0
  /** Addresses that were passed over, or said that they do not lead, since a leader was last found. */
  readonly #skipped = new Set<string>()
  #leading: string | undefined

  /** `addresses`: origins, such as `https://board.example`. `key`: 64 hex. */
  constructor(addresses: readonly string[], key: string, askBox: AskBox) {
    this.#addresses = addresses
    this.#key = key
    this.#askBox = askBox
  }

  /** The address for the next request. */
  get address(): string {
    return this.#addresses[this.#at]!
  }

  /** The address that last answered as a leader; undefined if none has. */
  get leading(): string | undefined {
    return this.#leading
  }

  /** Call this if the box at this address does not lead. */
  next(asked: string): void {
    if (asked === this.address) this.#at = (this.#at + 1) % this.#addresses.length
  }

  /** Call this if the box at this address leads. */
  select(address: string): void {
    const found = this.#addresses.indexOf(address)
    if (found === -1) return
    this.#at = found
    this.#leading = address
    this.#skipped.clear()
  }

  /**
   * Call this if the box at this address answers as a leader but with an older epoch, or with less than the caller has: it may
   * have been replaced, so the next one is tried. Returns false if all others have answered too, and none of them leads with
   * more.
   */
  skip(asked: string): boolean {
    this.#skipped.add(asked)
    this.next(asked)
    return this.#addresses.some((each) => !this.#skipped.has(each))
  }

  /** Aborts pending requests. */
  close(): void {
    this.#closing.abort()
  }

  /** Tries each address until one answers. */
  async facts(): Promise<LeaderFacts> {
    for (let left = this.#addresses.length; ; left--) {
      try {
        return await this.#factsOf(this.address)
      } catch (error) {
        if (!(error instanceof OutOfReach) || left === 1) throw error
      }
    }
  }

  async #factsOf(address: string): Promise<LeaderFacts> {
    const found = await this.#json('board')
    if (isFacts(found)) return found
    this.next(address)
    throw new OutOfReach(`${address} does not answer like a leader with followers`)
  }

  /** Its state of the stream's seal; undefined if it publishes nothing. */
  async seal(): Promise<SealState | undefined> {
    const found = await this.#json('seal')
    return isSealState(found) ? found : undefined
  }

  /** How far its journals are durable, and how many boards have led before it. */
  async ends(): Promise<LeaderEnds> {
    const { address } = this
    const found = await this.#json('ends')
    // A leader of an older release reports neither.
    const { epoch = 1, durable = found }: { readonly epoch?: unknown; readonly durable?: unknown } = Object(found)
    if (!isEnds(found) || !isEnds(durable) || typeof epoch !== 'number') {
      this.next(address)
      throw new OutOfReach(`${address} did not report how far its journals reach`)
    }
    return { log: found.log, shards: found.shards, durable, epoch }
  }

  /**
   * The frames after these places; undefined if there are none. `wait`: how many milliseconds the leader may wait for some. Throws
   * OutOfReach, and Diverged if its journals are others.
   */
  async frames(places: readonly JournalPlace[], wait = 0): Promise<FrameShares | undefined> {
    const { address } = this
    const body = JSON.stringify({ places, wait } satisfies AskedPlaces)
    const answer = await this.#ask('frames', forBytes, body)
    const { status, bytes } = answer
    if (status === 204) return undefined
    const shares = status === 200 ? unpackShares(bytes) : undefined
    if (shares !== undefined) return shares
    const { problem }: { readonly problem?: unknown } = Object(foreignJson(bytes.toString('utf8')))
    if (status === 409 && typeof problem === 'string') throw new Diverged(problem)
    if (!isFault(answer)) this.next(address)
    if (typeof problem === 'string') throw new OutOfReach(`${address} sent no frames: ${problem}`)
    throw useless(address, answer)
  }

  /** Where this box would continue deliveries to webhooks, as text; undefined if there are none. */
  async deliveries(): Promise<string | undefined> {
    const found = await this.#json('deliveries')
    return found === undefined || found === null ? undefined : JSON.stringify(found)
  }

  /** The bytes of an attachment; undefined if the leader no longer has the file. */
  async blob(room: string, sha256: string): Promise<Buffer | undefined> {
    const { address } = this
    const answer = await this.#ask(`blob/${room}/${sha256}`, forBytes)
    const { status, bytes } = answer
    if (status === goneStatus) return undefined
    if (status === 200) return bytes
    if (!isFault(answer)) this.next(address)
    throw useless(address, answer)
  }

  /** Carries out a write; undefined if its outcome is unknown. Throws OutOfReach. */
  async command(passed: ForwardedCommand): Promise<CarriedOut | undefined> {
    const { address } = this
    const answer = await this.#ask('command', forWrites, JSON.stringify(passed))
    if (answer.status !== 200) {
      const problem = useless(address, answer)
      // The board's own refusal is for the client.
      if (problem.undoneBy !== undefined && !(problem instanceof RefusedFollower))
        return { reply: { status: answer.status, body: answer.bytes.toString('utf8') }, ends: undefined }
      this.next(address)
      if (problem instanceof RefusedFollower) throw problem
      // A proxy may have passed it on before it gave up.
      return undefined
    }
    const found = foreignJson(answer.bytes.toString('utf8'))
    const { status, body, retryAfter, ends }: Readonly<Record<string, unknown>> = Object(found)
    if (typeof status !== 'number' || typeof body !== 'string') return undefined
    const reply = { status, body, ...(typeof retryAfter === 'number' ? { retryAfter } : {}) }
    return { reply, ends: isEnds(ends) ? ends : undefined }
  }

  /** Every board that leads and has followers has these paths. Of several boxes, another one may take the lead at any moment. */
  #notLeading(address: string): OutOfReach {
    this.#skipped.add(address)
    return this.#addresses.length > 1
      ? new OutOfReach(`${address} does not lead now, or has no REPLICA_KEY_FILE`, address)
      : new RefusedFollower(
          `${address} accepts no followers: set REPLICA_KEY_FILE on the leader and restart it, and let FOLLOW name the leader and not another follower`,
          address,
        )
  }

  async #json(path: string): Promise<unknown> {
    const { address } = this
    const answer = await this.#ask(path, briefly)
    if (answer.status === 200) return foreignJson(answer.bytes.toString('utf8'))
    // A proxy answers for a box that is gone.
    this.next(address)
    throw useless(address, answer)
  }

  async #ask(path: string, patience: Patience, body?: string): Promise<Answer> {
    const { address } = this
    const asked = { key: this.#key, ...patience, signal: this.#closing.signal, ...(body === undefined ? {} : { body }) }
    try {
      const answer = await this.#askBox(address, path, asked)
      if (answer.status === 404) throw this.#notLeading(address)
      if (answer.status === 200) this.#leading = address
      return answer
    } catch (error) {
      this.next(address)
      throw error
    }
  }
}

/** What an answer means that has not what was asked for. */
function useless(address: string, answer: Answer): OutOfReach {
  const { error }: { readonly error?: unknown } = Object(foreignJson(answer.bytes.toString('utf8')))
  const { code, message }: { readonly code?: unknown; readonly message?: unknown } = Object(error)
  // Guesses are counted, so a board soon refuses a wrong key with rate_limited.
  if (code === 'forbidden' || code === 'rate_limited')
    return new RefusedFollower(
      `${address} does not accept the key of this follower: give both the same REPLICA_KEY_FILE, and restart them`,
      address,
    )
  // Any other refusal of a board, except that the outcome of what failed inside is unknown.
  if (typeof code === 'string' && typeof message === 'string')
    return new OutOfReach(`${address} answered: ${message}`, code === 'internal' ? undefined : address)
  if (isFault(answer)) return new OutOfReach(`${address} cannot answer now (status ${answer.status})`)
  return new OutOfReach(
    `${address} answered with status ${answer.status}, which is not a leader's answer: check that the leader is running, and that a proxy in front of it forwards /replica/`,
  )
}

/** A board that cannot provide something now says so in JSON, and may still be the leader. A proxy sends a page, or nothing. */
function isFault({ status, bytes }: Answer): boolean {
  return status >= 500 && foreignJson(bytes.toString('utf8')) !== undefined
}

/** The leader named in these settings, over HTTP. */
export function leaderOf(
  { leaders, keyFile }: Pick<FollowSettings, 'leaders' | 'keyFile'>,
  { disk, clock }: { readonly disk: Disk; readonly clock: Pick<Clock, 'later'> },
): Leader {
  return new Leader(leaders, replicaKeyIn(disk, keyFile), askOverHttp(clock))
}

/** Requests over HTTP, with the timers of this clock. */
export function askOverHttp(clock: Pick<Clock, 'later'>): AskBox {
  return async (address, path, { key, body, withinMs, beginsWithinMs, signal }) => {
    const notBegun = new AbortController()
    const begun = clock.later(() => notBegun.abort(), beginsWithinMs)
    let answer: Response
    try {
      answer = await fetch(`${address}/replica/${path}`, {
        ...(body === undefined ? {} : { method: 'POST', body }),
        redirect: 'error',
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.any([AbortSignal.timeout(withinMs), notBegun.signal, signal]),
      })
    } catch (error) {
      const { code }: { readonly code?: unknown } = Object(error instanceof Error ? error.cause : undefined)
      const why = code === undefined ? '' : ` (${code})`
      throw new OutOfReach(`${address} is out of reach${why}`, unsent.has(String(code)) ? address : undefined)
    } finally {
      begun()
    }
    try {
      return { status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }
    } catch {
      throw new OutOfReach('the leader cut an answer short')
    }
  }
}

export function isFacts(value: unknown): value is LeaderFacts {
  const { facts, identity, log, logs = [], readKey, settings = {} }: Readonly<Record<string, unknown>> = Object(value)
  const { service_id, generation, shards }: Readonly<Record<string, unknown>> = Object(facts)
  const { id, publicKey }: Readonly<Record<string, unknown>> = Object(identity)
  const texts = [service_id, generation, id, publicKey]
  return (
    texts.every((each) => typeof each === 'string') &&
    Array.isArray(logs) &&
    [log, ...logs].every(isLog) &&
    Number.isSafeInteger(shards) &&
    isSharedSettings(settings) &&
    typeof readKey === 'string' &&
    /^[0-9a-f]{64}$/.test(readKey)
  )
}

function isLog(value: unknown): value is LogIdentity {
  const { origin, vkey }: Readonly<Record<string, unknown>> = Object(value)
  return typeof origin === 'string' && typeof vkey === 'string'
}
