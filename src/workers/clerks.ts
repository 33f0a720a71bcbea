/**
 * Clerks: threads that parse the commands received by the main thread and check their signatures. All commands of one signer go to the same
 * clerk, so each key is examined only once.
 *
 * Every queue is bounded: beyond the bounds, and when a clerk died with pending commands, the verdict is `overloaded`.
 */

import { internalLimits, sizes } from '../../actors/kernel/limits.ts'
import { type Answered, Link } from '../../actors/kernel/link.ts'
import { Supervised, type ThreadError } from '../../actors/kernel/supervisor.ts'
import type { Reading } from '../command/clerk.ts'
import { log } from '../observe.ts'
import type { Platform } from '../platform.ts'
import { threadFile } from '../program.ts'
import { withCause } from '../runtime/slow-turns.ts'
import { type BackendName, hasRightLengths, isBackendName, publicKeyBytes } from '../verify/backends.ts'
import { type Checks, type Verdict, type VerdictCallback, waitingBytesMaxDefault } from '../verify/verifier.ts'
import type { ClerkAsk, ClerkThread } from './clerk.ts'

type ClerksOptions = Pick<Platform, 'clock' | 'startThread' | 'channel'> &
  Omit<ClerkThread, 'front'> & {
    /** Number of threads. */
    readonly threads: number
    /** How many commands and signatures may wait. */
    readonly waitingMax: number
    /** Called when the process cannot continue. */
    readonly onFatal: (thread: string, error: ThreadError) => void
  }

/** The member name that precedes a key. */
const keyName = Buffer.from('"public_key"')
const quote = 0x22
const stopWithinMs = 2_000

export class Clerks implements Checks {
  #backend: BackendName | undefined
  readonly #options: ClerksOptions
  readonly #threads: readonly Supervised[]
  readonly #links: Link[] = []
  #waitingBytes = 0

  private constructor(options: ClerksOptions) {
    this.#options = options
    this.#threads = Array.from({ length: options.threads }, (_, number) => this.#supervise(number))
  }

  /** Resolves when every clerk has loaded a backend. Rejects if one cannot. */
  static async start(options: ClerksOptions): Promise<Clerks> {
    const clerks = new Clerks(options)
    const [facts] = await Promise.all(clerks.#threads.map((thread) => thread.start()))
    const { backend } = facts!
    if (isBackendName(backend)) clerks.#backend = backend
    return clerks
  }

  get backend(): BackendName {
    return this.#backend!
  }

  get waiting(): number {
    return this.#links.reduce((sum, { open }) => sum + open, 0)
  }

  /**
   * Has a command parsed by its signer's clerk. Returns false if the command names no signer, or is one that only the main thread parses.
   * `body` must not change before the end of the turn.
   */
  read(body: Buffer, via: string, callback: (reading: Reading) => void): boolean {
    if (body.length > sizes.command_bytes) return false
    const named = body.indexOf(keyName)
    if (named < 0) return false
    const key = body.indexOf(quote, named + keyName.length) + 1
    // Any bytes will do: every clerk can parse any command, but this one has the key in its cache.
    const number = (body[key + 1]! * 64 + body[key]!) % this.#options.threads
    this.#ask<Reading>(number, ['read', body, via], body.length, callback)
    return true
  }

  /** Same contract as Verifier.verify. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void {
    if (!hasRightLengths({ signature, publicKey }))
      return callback(publicKey.length === publicKeyBytes ? 'bad_signature' : 'bad_key')
    const number = publicKey[0]! % this.#options.threads
    this.#ask<Verdict>(number, ['verify', signature, publicKey, message], message.length, callback)
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop(stopWithinMs)))
    for (const link of this.#links) link.close()
  }

  #ask<Answer>(number: number, ask: ClerkAsk, bytes: number, callback: (answer: Answer | 'overloaded') => void): void {
    if (this.#waitingBytes + bytes > waitingBytesMaxDefault) return callback('overloaded')
    this.#waitingBytes += bytes
    const take = withCause((answered: Answered<Answer, undefined>) => {
      this.#waitingBytes -= bytes
      callback(answered.ok ? answered.body : 'overloaded')
    })
    this.#links[number]!.ask(ask, take)
  }

  #supervise(number: number): Supervised {
    const { clock, startThread, channel, serviceId, proofBits, threads, waitingMax, onFatal } = this.#options
    return new Supervised({
      name: `clerk-${number}`,
      file: threadFile('clerk'),
      startData: () => {
        const front = channel()
        this.#links[number]?.close()
        this.#links[number] = new Link({
          port: front.port1,
          openMax: Math.ceil(waitingMax / threads),
          patienceMs: internalLimits.patienceMs,
          now: clock.monotonicMs,
          timers: clock,
        })
        const data: ClerkThread = { serviceId, proofBits, front: front.port2 }
        return { data, transfer: [front.port2] }
      },
      startThread,
      mayRestart: () => true,
      onEvent: log,
      onFatal,
      now: clock.monotonicMs,
      timers: clock,
    })
  }
}
