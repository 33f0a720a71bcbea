/** When a thread keeps a snapshot: every so many frames, and when it stops. A snapshot that cannot be kept is no fault. */
import { makeDirectory } from '../../storage/disk.ts'
import { type Image, loadNewest, type Snapshot, save } from '../../storage/snapshot.ts'
import { report } from './entry.ts'

/** Replaying this many frames takes about a second; packing a board of a million events stops its thread for half of one. */
const framesBetween = 200_000

export class SnapshotKeeper {
  readonly #directory: string
  readonly #journalId: Buffer
  #kept: number

  /** `durable`: the newest durable frame; a snapshot beyond it is damage. */
  constructor(directory: string, journalId: Buffer, durable: number) {
    this.#directory = directory
    this.#journalId = journalId
    makeDirectory(directory)
    this.found = loadNewest(directory, journalId, durable)
    this.#kept = this.found?.seq ?? 0
  }

  found: Snapshot | undefined

  /** Keeps one when enough has happened since the last. */
  after(seq: number, pack: () => Image): void {
    if (seq - this.#kept >= framesBetween) this.keep(seq, pack)
  }

  keep(seq: number, pack: () => Image): void {
    if (seq === this.#kept) return
    this.#kept = seq
    try {
      save(this.#directory, { journalId: this.#journalId, seq, ...pack() })
    } catch (error) {
      report('warn', 'snapshot.not_kept', { directory: this.#directory, seq, problem: String(error) })
    }
  }
}
