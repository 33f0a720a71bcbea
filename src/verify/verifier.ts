/**
 * The way from one thread with many signatures to several threads that check them.
 *
 * Batching is natural: a free thread gets what is waiting at once, so a lone signature waits
 * for no other, and while all threads are busy the next batch grows. Nothing waits without
 * bound: beyond the queue's limits the answer is 'overloaded', at once.
 *
 * Callbacks instead of promises: a promise a signature costs more than the whole hand-over.
 *
 * Measured with libsodium, one thread, 64 in flight, 300-byte messages, against 17,500/s for
 * the same calls in a plain loop: one batch a thread at a time gives 0.86 of that, two give
 * 0.96 (two threads: 25,000/s and 32,000/s). `atomics: 'sync'` and `'disabled'` differ by less
 * than the noise; 'disabled' is used because a thread blocked in Atomics.wait receives nothing else.
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
 * Small enough that 64 commands in flight make four batches, so that one is decided and synced while the next is checked.
 * Signed posts/s at 64 in flight on a quiet machine, in turn: 64 items 5,649, 32 items 5,613, 16 items 6,633, 8 items 6,832.
 */
const batchItemsMax = 16
/** A blob of 2 MiB travels alone; 64 of them together would be 128 MiB copied in one go. */
const batchBytesMax = 1_048_576

/** One batch being checked, one lying ready in the thread's own port: the thread never waits for this one to wake. */
const batchesPerThread = 2

/** About a quarter of a second of one thread's work: a caller who would wait longer is better asked to come back. */
const waitingItemsMaxDefault = 4_096
export const waitingBytesMaxDefault = 64 * 1_048_576

/** What checks signatures: other threads (`Verifier`), this one (`ChecksHere`), or both (`SharedChecks`). */
export interface Checks {
  readonly backend: BackendName
  /** Signatures that wait. */
  readonly waiting: number
  /** Asks for a verdict: see `Verifier.verify`. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void
  close(): Promise<void>
}

export type VerifierOptions = {
  readonly startPool: StartPool
  readonly threads: number
  /** Only this backend; without it the fastest that works. */
  readonly backend?: BackendName
  readonly waitingItemsMax?: number
  readonly waitingBytesMax?: number
  /** Called when a thread died (its signatures were answered 'overloaded') or the pool is lost for good. */
  readonly report?: (event: VerifierEvent) => void
}

export type VerifierEvent = {
  readonly kind: 'verify_thread_died' | 'verifier_lost'
  readonly message: string
}

type Waiting = SignatureItem & { readonly callback: VerdictCallback }

export class Verifier implements Checks {
  /** What the threads verify with. */
  readonly backend: BackendName
  readonly #pool: Pool
  readonly #options: VerifierOptions
  readonly #waitingItemsMax: number
  readonly #waitingBytesMax: number
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #freeSlots: number
  /** True while callbacks run: what they ask for goes out as one batch afterwards, not one by one. */
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

  /** Starts the threads and returns when each of them has loaded a backend. Rejects when one cannot. */
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

  /** It has no threads any more, and takes nothing. */
  get isLost(): boolean {
    return this.#closed
  }

  /**
   * Asks for a verdict. The callback runs exactly once: later, or before this returns when the answer is known at
   * once ('overloaded', a wrong length). Signature (64 bytes), key (32) and message may be views into larger buffers
   * and must stay as they are until the callback: they are copied once, when their batch leaves.
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

  /** Takes no more, answers everything taken, ends the threads. */
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

  /** The oldest waiting, divided fairly among the free places. */
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
    // The thread first: it works while the callbacks run.
    this.#dispatch()
    this.#gathering = true
    for (let index = 0; index < batch.length; index += 1) batch[index]!.callback(verdictAt(index))
    this.#gathering = false
    this.#dispatch()
    if (this.#closed && this.#isQuiet()) this.#whenQuiet?.()
  }

  /** The pool replaces a thread that died, unless the new one dies at birth: then it stops trying, and so must we. */
  #threadDied(error: Error): void {
    if (this.#closed) return
    const lost = this.#pool.threads < this.#options.threads
    this.#options.report?.({ kind: lost ? 'verifier_lost' : 'verify_thread_died', message: error.message })
    if (!lost) return
    this.#closed = true
    this.#waitingBytes = 0
    for (const { callback } of this.#waiting.splice(0)) callback('overloaded')
    // What the pool still keeps for a thread that will never come is rejected by this, and so answered.
    void this.#pool.end()
  }
}

export function verdictOf(byte: number | undefined): Verdict {
  if (byte === verdictGood) return 'good'
  return byte === verdictBadKey ? 'bad_key' : 'bad_signature'
}

/** Signatures checked in the calling thread: where cores are few, handing a lone one to another costs more than it gains. */
export class ChecksHere implements Checks {
  readonly backend: BackendName
  readonly waiting = 0
  readonly #backend: Ed25519Backend

  constructor(backend: Ed25519Backend) {
    this.backend = backend.name
    this.#backend = backend
  }

  /** As of a Verifier; the callback runs before this returns. */
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
 * Of the signatures that one turn of the event loop brings, so many are checked in the calling thread. Posts/s against all of them
 * there, in turn, on two cores with the client: 64 in flight 4 items 1.04, 8 1.09, 12 1.04, 16 1.17 to 1.20, 24 1.11; 256 in
 * flight 16 1.13 to 1.37.
 */
const hereMax = 16

/**
 * The first signatures of a turn of the event loop are checked in the calling thread, the others in a thread beside it. That one is
 * started when it is first needed; until it can work, and when it is lost, all are checked here.
 */
export class SharedChecks implements Checks {
  readonly backend: BackendName
  readonly #here: ChecksHere
  readonly #start: () => Promise<Verifier>
  readonly #soon: Timers['soon']
  #starting: Promise<void> | undefined
  #beside: Verifier | undefined
  #inTurn = 0

  /** `start`: starts what checks beside; it reports by itself why it could not. */
  constructor(here: ChecksHere, start: () => Promise<Verifier>, { soon }: Pick<Timers, 'soon'>) {
    this.backend = here.backend
    this.#here = here
    this.#start = start
    this.#soon = soon
  }

  get waiting(): number {
    return this.#beside?.waiting ?? 0
  }

  /** As of a Verifier. */
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void {
    if (this.#inTurn === 0) {
      this.#soon(() => {
        this.#inTurn = 0
      })
    }
    const isHere = this.#inTurn++ < hereMax
    if (!isHere && this.#starting === undefined) this.#starting = this.#begin()
    const checks = isHere || this.#beside === undefined || this.#beside.isLost ? this.#here : this.#beside
    checks.verify(signature, publicKey, message, callback)
  }

  async close(): Promise<void> {
    await this.#starting
    await this.#beside?.close()
  }

  async #begin(): Promise<void> {
    this.#beside = await this.#start().catch(() => undefined)
  }
}
