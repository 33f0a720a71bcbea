/**
 * Receives uploaded files: each is on disk before the actor decides about it, and is removed again if the actor refuses. Bounded in
 * concurrent files, and in bytes per identity, including uploads in progress.
 */

import { hash } from 'node:crypto'
import { internalLimits } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import type { BlobFiles } from '../../storage/blob-files.ts'
import { DiskFull, SyncFailed } from '../../storage/disk.ts'
import type { NoAnswer } from '../command/ports.ts'

declare module '../command/plan.ts' {
  interface Services {
    readonly blobs: BlobIntake
  }
}

type Incoming = {
  readonly room: string
  /** Identity id. */
  readonly author: string
  readonly bytes: Buffer
}

/** A file that is on disk. `settle` takes the actor's answer to the command that names it. */
type Stored = { readonly settle: (answer: ShardAnswer | NoAnswer) => void }

const overloaded = refusal('overloaded', 'too many files are being uploaded at once: try again', undefined, 1)
const full = refusal(
  'storage_full',
  'the disk of this board is full: reads continue, and writes wait for the operator',
  undefined,
  60,
)

export class BlobIntake {
  readonly files: BlobFiles
  /** Bytes that all files of one identity may take. */
  readonly bytesMax: number
  /** Bytes of uploads in progress, by identity. */
  readonly #pendingBytes = new Map<string, number>()
  /** Ends the process: after a failed sync, nothing read back can be trusted. */
  readonly #fail: (error: SyncFailed) => void
  /** Logs an error with one file, and returns its id. */
  readonly #fault: (error: unknown) => string
  #open = 0

  constructor(options: {
    files: BlobFiles
    bytesMax: number
    fail: (error: SyncFailed) => void
    fault: (error: unknown) => string
  }) {
    this.files = options.files
    this.#fail = options.fail
    this.#fault = options.fault
    this.bytesMax = options.bytesMax
  }

  /** Whether an identity whose stored files take `used` bytes has no room for this many more. */
  isOver(author: string, used: number, bytes: number): boolean {
    return used + (this.#pendingBytes.get(author) ?? 0) + bytes > this.bytesMax
  }

  /** Writes the file. `done` is called once; the command must not proceed before that. */
  store({ room, author, bytes }: Incoming, done: (stored: Stored | Refusal) => void): void {
    if (this.#open >= internalLimits.blobUploadsMax) return done(overloaded)
    const sha256 = hash('sha256', bytes, 'hex')
    this.#count(author, bytes.length, 1)
    this.files.hold(room, sha256, bytes).then(
      () =>
        done({
          settle: (answer) => {
            this.#count(author, -bytes.length, -1)
            // Without an answer, the record may exist. A repeated command names what already exists, or was deleted since.
            this.files.release(room, sha256, answer === undefined || (answer.ok && answer.duplicate !== true))
          },
        }),
      (error: unknown) => {
        this.#count(author, -bytes.length, -1)
        if (error instanceof DiskFull) done(full)
        else if (error instanceof SyncFailed) this.#fail(error)
        else
          done(
            refusal(
              'internal',
              `the file could not be written: an internal error of this board, logged as ${this.#fault(error)}`,
            ),
          )
      },
    )
  }

  #count(author: string, bytes: number, files: number): void {
    this.#open += files
    const now = (this.#pendingBytes.get(author) ?? 0) + bytes
    if (now === 0) this.#pendingBytes.delete(author)
    else this.#pendingBytes.set(author, now)
  }
}
