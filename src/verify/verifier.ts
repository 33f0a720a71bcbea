/**
 * Passes signatures from one thread to several threads that check them.
 *
 * Batching is natural: a free thread immediately gets everything that is waiting, so a single signature waits for no other, and while all
 * threads are busy the next batch grows. Every queue is bounded: beyond its limits the answer is 'overloaded', immediately.
 *
 * Callbacks instead of promises: a promise per signature costs more than the entire handover.
 *
 * Measured with libsodium, one thread, 64 in flight, 300-byte messages, against 17,500/s for the same calls in a plain loop: one batch per
 * thread at a time reaches 0.86 of that, two reach 0.96 (two threads: 25,000/s and 32,000/s). `atomics: 'sync'` and `'disabled'` differ by
 * less than the noise; 'disabled' is used because a thread blocked in Atomics.wait receives nothing else.
 */

import type { Timers } from '../../actors/kernel/timers.ts'
import { threadFile } from '../program.ts'
import { startReadyPool } from '../runtime/ready-pool.ts'
import type { Pool, StartPool } from '../runtime/thread-pool.ts'
import {
  type BackendName,
  type Ed25519Backend,
  hasRightLengths,
  judge,
  publicKeyBytes,
  type SignatureItem,
  verdictBadKey,
  verdictGood,
} from './backends.ts'
import { packBatch, type VerifyWorkerData } from './batch.ts'

export type Verdict = 'good' | 'bad_key' | 'bad_signature' | 'overloaded'
export type VerdictCallback = (verdict: Verdict) => void

/**
 * Small enough that 64 commands in flight make four batches, so that one is decided and synced while the next is checked. Signed posts/s at
 * 64 in flight on a quiet machine, alternating: 64 items 5,649, 32 items 5,613, 16 items 6,633, 8 items 6,832.
 */
const batchItemsMax = 16
/** A blob of 2 MiB is sent alone; 64 of them together would be 128 MiB copied at once. */
const batchBytesMax = 1_048_576

/** One batch being checked and one ready in the thread's port, so that the thread never waits for this one to wake. */
const batchesPerThread = 2

/** About a quarter of a second of one thread's work. A caller that would wait longer had better retry. */
const waitingItemsMaxDefault = 4_096
export const waitingBytesMaxDefault = 64 * 1_048_576

/** Checks signatures: in other threads (`Verifier`), in this one (`ChecksHere`), or in both (`SharedChecks`). */
export interface Checks {
  readonly backend: BackendName
  /** Number of signatures waiting. */
  readonly waiting: number
  /** Requests a verdict: see `Verifier.verify`. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void
  close(): Promise<void>
}

export type VerifierOptions = {
  readonly startPool: StartPool
  readonly threads: number
  /** Use only this backend; if omitted, the fastest that works. */
  readonly backend?: BackendName
  readonly waitingItemsMax?: number
  readonly waitingBytesMax?: number
  /** Called if a thread died (its signatures were answered 'overloaded') or the pool is permanently lost. */
  readonly report?: (event: VerifierEvent) => void
}

export type VerifierEvent = {
  readonly kind: 'verify_thread_died' | 'verifier_lost'
  readonly message: string
}

type Waiting = SignatureItem & { readonly callback: VerdictCallback }

export class Verifier implements Checks {
  /** The backend that the threads use. */
  readonly backend: BackendName
  readonly #pool: Pool
  readonly #options: VerifierOptions
  readonly #waitingItemsMax: number
  readonly #waitingBytesMax: number
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #freeSlots: number
  /** True while callbacks run: signatures submitted by them go out as one batch afterwards, not one by one. */
  #gathering = false
  #closed = false
  #whenQuiet: (() => void) | undefined

  private constructor(pool: Pool, backend: BackendName, options: VerifierOptions) {
    this.#pool = pool
    this.backend = backend
    this.#options = options
    this.#freeSlots = options.threads * batchesPerThread
    this.#waitingItemsMax = options.waitingItemsMax ?? waitingItemsMaxDefault
    this.#waitingBytesMax = options.waitingBytesMax ?? waitingBytesMaxDefault
    pool.onError((error) => this.#threadDied(error))
  }

  /** Starts the threads and resolves when each has loaded a backend. Rejects if one cannot. */
  static async start(options: VerifierOptions): Promise<Verifier> {
    const { threads, startPool } = options
    const data: VerifyWorkerData = { backend: options.backend }
    const file = threadFile('verify')
    const { pool, answers } = await startReadyPool<BackendName>(startPool, 'backendName', file, {
      threads,
      tasksPerThread: batchesPerThread,
      data,
    })
    return new Verifier(pool, answers[0]!, options)
  }

  get waiting(): number {
    return this.#waiting.length
  }

  /** Whether it has no threads left and accepts nothing. */
  get isLost(): boolean {
    return this.#closed
  }

  /**
   * Requests a verdict. The callback runs exactly once: later, or before this returns if the answer is known immediately ('overloaded', a
   * wrong length). Signature (64 bytes), key (32) and message may be views into larger buffers and must not change until the callback: they
   * are copied once, when their batch is sent.
   */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void {
    const item: Waiting = { signature, publicKey, message, callback }
    if (!hasRightLengths(item)) {
      callback(publicKey.length === publicKeyBytes ? 'bad_signature' : 'bad_key')
      return
    }
    const full =
      this.#waiting.length >= this.#waitingItemsMax || this.#waitingBytes + message.length > this.#waitingBytesMax
    if (full || this.#closed) {
      callback('overloaded')
      return
    }
    this.#waiting.push(item)
    this.#waitingBytes += message.length
    if (!this.#gathering && this.#freeSlots > 0) this.#dispatch()
  }

  /** Accepts no more, answers everything accepted, and stops the threads. */
  async close(): Promise<void> {
    this.#closed = true
    if (!this.#isQuiet()) {
      await new Promise<void>((resolve) => {
        this.#whenQuiet = resolve
      })
    }
    await this.#pool.end()
  }

  #isQuiet(): boolean {
    return this.#waiting.length === 0 && this.#freeSlots === this.#options.threads * batchesPerThread
  }

  #dispatch(): void {
    while (this.#freeSlots > 0 && this.#waiting.length > 0) this.#send(this.#takeBatch())
  }

  /** The oldest waiting items, divided fairly among the free slots. */
  #takeBatch(): Waiting[] {
    const share = Math.min(batchItemsMax, Math.ceil(this.#waiting.length / this.#freeSlots))
    let count = 0
    let bytes = 0
    while (count < share) {
      const { length } = this.#waiting[count]!.message
      if (count > 0 && bytes + length > batchBytesMax) break
      bytes += length
      count += 1
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  #send(batch: readonly Waiting[]): void {
    this.#freeSlots -= 1
    const letter = packBatch(batch)
    this.#pool.run<Uint8Array>('verifyBatch', letter, { transfer: [letter] }).then(
      (verdicts) => this.#answer(batch, (index) => verdictOf(verdicts[index])),
      (error: Error) => {
        this.#threadDied(error)
        this.#answer(batch, () => 'overloaded')
      },
    )
  }

  #answer(batch: readonly Waiting[], verdictAt: (index: number) => Verdict): void {
    this.#freeSlots += 1
    // The thread first, so that it works while the callbacks run.
    this.#dispatch()
    this.#gathering = true
    for (let index = 0; index < batch.length; index += 1) batch[index]!.callback(verdictAt(index))
    this.#gathering = false
    this.#dispatch()
    if (this.#closed && this.#isQuiet()) this.#whenQuiet?.()
  }

  /** The pool replaces a thread that died, unless the new one fails to start. Then it stops trying, and so must we. */
  #threadDied(error: Error): void {
    if (this.#closed) return
    const lost = this.#pool.threads < this.#options.threads
    this.#options.report?.({ kind: lost ? 'verifier_lost' : 'verify_thread_died', message: error.message })
    if (!lost) return
    this.#closed = true
    this.#waitingBytes = 0
    for (const { callback } of this.#waiting.splice(0)) callback('overloaded')
    // This rejects tasks that the pool still holds for a thread that will never come, and so answers them.
    void this.#pool.end()
  }
}

export function verdictOf(byte: number | undefined): Verdict {
  if (byte === verdictGood) return 'good'
  return byte === verdictBadKey ? 'bad_key' : 'bad_signature'
}

/** Checks signatures in the calling thread: with few cores, handing over a single one costs more than it gains. */
export class ChecksHere implements Checks {
  readonly backend: BackendName
  readonly waiting = 0
  readonly #backend: Ed25519Backend

  constructor(backend: Ed25519Backend) {
    this.backend = backend.name
    this.#backend = backend
  }

  /** Same contract as Verifier.verify, but the callback runs before this returns. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void {
    const item = { signature, publicKey, message }
    if (!hasRightLengths(item)) return callback(publicKey.length === publicKeyBytes ? 'bad_signature' : 'bad_key')
    const verdict = judge(this.#backend, item)
    if (verdict === verdictGood) callback('good')
    else callback(verdict === verdictBadKey ? 'bad_key' : 'bad_signature')
  }

  async close(): Promise<void> {}
}

/**
 * How many signatures per turn of the event loop are checked in the calling thread. Posts/s relative to checking all of them there,
 * alternating, on two cores shared with the client: 64 in flight 4 items 1.04, 8 1.09, 12 1.04, 16 1.17 to 1.20, 24 1.11; 256 in flight 16
 * 1.13 to 1.37.
 */
const hereMax = 16

/**
 * Checks the first signatures of a turn of the event loop in the calling thread, the others in a second thread. That one is started when
 * first needed; until it is ready, and if it is lost, all are checked here.
 */
export class SharedChecks implements Checks {
  readonly backend: BackendName
  readonly #local: ChecksHere
  readonly #start: () => Promise<Verifier>
  readonly #soon: Timers['soon']
  #starting: Promise<void> | undefined
  #remote: Verifier | undefined
  #inTurn = 0

  /** `start`: starts the second thread, and itself reports why it could not. */
  constructor(here: ChecksHere, start: () => Promise<Verifier>, { soon }: Pick<Timers, 'soon'>) {
    this.backend = here.backend
    this.#local = here
    this.#start = start
    this.#soon = soon
  }

  get waiting(): number {
    return this.#remote?.waiting ?? 0
  }

  /** Same contract as Verifier.verify. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void {
    if (this.#inTurn === 0) {
      this.#soon(() => {
        this.#inTurn = 0
      })
    }
    const isHere = this.#inTurn++ < hereMax
    if (!isHere && this.#starting === undefined) this.#starting = this.#begin()
    const checks = isHere || this.#remote === undefined || this.#remote.isLost ? this.#local : this.#remote
    checks.verify(signature, publicKey, message, callback)
  }

  async close(): Promise<void> {
    await this.#starting
    await this.#remote?.close()
  }

  async #begin(): Promise<void> {
    this.#remote = await this.#start().catch(() => undefined)
  }
}
