/** When a thread keeps a snapshot: every so many frames, and when it stops. A snapshot that cannot be kept is no fault. */
import { checkReached, type Image, loadNewest, type Snapshot, save } from '../../storage/snapshot.ts'
import type { ThreadPlatform } from './thread.ts'

/** Replaying this many frames takes about a second; packing a board of a million events stops its thread for half of one. */
const framesBetween = 200_000

type Here = Pick<ThreadPlatform, 'disk' | 'report'>

export class SnapshotKeeper {
  readonly #here: Here
  readonly #directory: string
  #found: Snapshot | undefined
  #journalId: Buffer | undefined
  #kept: number

  /** Of a journal that is open. `durable`: its newest durable frame; a snapshot beyond it is damage. */
  static open(here: Here, directory: string, journalId: Buffer, durable: number): SnapshotKeeper {
    const keeper = new SnapshotKeeper(here, directory, journalId)
    keeper.begin(journalId, durable)
    return keeper
  }

  /** Loads the newest snapshot while the journal is still being opened by its owner; undefined: it has not begun. */
  constructor(here: Here, directory: string, journalId: Buffer | undefined) {
    this.#here = here
    this.#directory = directory
    this.#journalId = journalId
    here.disk.makeDirectory(directory)
    this.#found = journalId === undefined ? undefined : loadNewest(here.disk, directory, journalId)
    this.#kept = this.#found?.seq ?? 0
  }

  /** What was found, once: it shares its memory with the state made of it, and nothing else may keep that. */
  take(): Snapshot | undefined {
    const found = this.#found
    this.#found = undefined
    return found
  }

  /** The journal is open now: before this nothing that was found may be used. Throws Damage. */
  begin(journalId: Buffer, durable: number): void {
    if (this.#journalId !== undefined && !journalId.equals(this.#journalId))
      throw new Error(`another journal was opened than the one whose snapshots are in ${this.#directory}`)
    this.#journalId = journalId
    if (this.#kept > 0) checkReached(this.#directory, this.#kept, durable)
  }

  /** Keeps one when enough has happened since the last. */
  after(seq: number, pack: () => Image): void {
    if (seq - this.#kept >= framesBetween) this.keep(seq, pack)
  }

  keep(seq: number, pack: () => Image): void {
    if (seq === this.#kept) return
    this.#kept = seq
    try {
      save(this.#here.disk, this.#directory, { journalId: this.#journalId!, seq, ...pack() })
    } catch (error) {
      this.#here.report('warn', 'snapshot.not_kept', { directory: this.#directory, seq, problem: String(error) })
    }
  }
}
