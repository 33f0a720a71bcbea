/**
 * When a thread saves a snapshot: in the background after a fixed number of records, immediately after a start that replayed that many, and
 * when it stops. Failing to save a snapshot is not an error.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import { checkReached, type Image, loadNewest, type Snapshot, SnapshotWriter, save } from '../../storage/snapshot.ts'
import type { ThreadPlatform } from './thread.ts'

/** Replaying this many records takes about a second. */
const recordsBetween = 200_000
/** On a large board, this share of all records instead, so that the bytes written per record stay bounded. */
const shareBetween = 1 / 32
/** Pause between two pieces of a snapshot written in the background: posts have priority on the disk. */
const pauseMs = 4

type Here = Pick<ThreadPlatform, 'clock' | 'disk' | 'report'>

export class SnapshotKeeper {
  readonly #here: Here
  readonly #directory: string
  #found: Snapshot | undefined
  #journalId: Buffer | undefined
  /** Newest frame of the snapshot that was found. */
  readonly #reached: number
  /** Newest frame of the last snapshot saved or begun here, or found and usable; 0 if there is none. */
  #kept: number
  /** How many records that snapshot covers. */
  #recordsKept: number
  /** The snapshot being written. */
  #writer: SnapshotWriter | undefined
  #stopStep: Cancel = () => {}

  /** For a journal that is open. `durable`: its newest durable frame; a snapshot beyond it is damage. */
  static open(here: Here, directory: string, journalId: Buffer, durable: number): SnapshotKeeper {
    const keeper = new SnapshotKeeper(here, directory, journalId)
    keeper.begin(journalId, durable)
    return keeper
  }

  /** Loads the newest snapshot while the owner is still opening the journal. `journalId` is undefined if the journal does not exist yet. */
  constructor(here: Here, directory: string, journalId: Buffer | undefined) {
    this.#here = here
    this.#directory = directory
    this.#journalId = journalId
    here.disk.makeDirectory(directory)
    const onUnreadable = (path: string, problem: string): void =>
      here.report('warn', 'snapshot.unreadable', { path, problem })
    this.#found = journalId === undefined ? undefined : loadNewest(here.disk, directory, journalId, onUnreadable)
    this.#reached = this.#found?.seq ?? 0
    this.#kept = this.#reached
    this.#recordsKept = this.#reached
  }

  /**
   * Passes the snapshot that was found to `use`, once only, because both share its memory. If `use` rejects it, for example because an
   * older release wrote it, a new snapshot of the same frame may replace it.
   */
  take<Made>(use: (found: Snapshot) => Made | undefined): Made | undefined {
    const found = this.#found
    this.#found = undefined
    const made = found === undefined ? undefined : use(found)
    if (made === undefined) this.#kept = this.#recordsKept = 0
    return made
  }

  /** States how many records the found snapshot (if any) covers, for journals with several records per frame. */
  holds(records: number): void {
    this.#recordsKept = records
  }

  /** The journal is open now; nothing that was found may be used before this. Throws Damage. */
  begin(journalId: Buffer, durable: number): void {
    if (this.#journalId !== undefined && !journalId.equals(this.#journalId))
      throw new Error(`the opened journal is not the one whose snapshots are in ${this.#directory}`)
    this.#journalId = journalId
    if (this.#reached > 0) checkReached(this.#directory, this.#reached, durable)
  }

  /**
   * Begins a snapshot if there are enough `records` since the last one. `pack(true)` returns an image that does not change while it is
   * being written.
   */
  after(seq: number, pack: (isLive: boolean) => Image, records = seq): void {
    if (this.#writer !== undefined) return
    if (records - this.#recordsKept < Math.max(recordsBetween, records * shareBetween)) return
    this.#kept = seq
    this.#recordsKept = records
    this.#trying(seq, () => {
      const { disk } = this.#here
      this.#writer = new SnapshotWriter(disk, this.#directory, { journalId: this.#journalId!, seq, ...pack(true) })
      this.#stepLater(seq)
    })
  }

  /** Saves a snapshot immediately, and abandons the one being written. */
  keep(seq: number, pack: () => Image): void {
    if (seq === this.#kept && this.#writer === undefined) return
    this.#giveUp()
    this.#kept = seq
    this.#trying(seq, () => save(this.#here.disk, this.#directory, { journalId: this.#journalId!, seq, ...pack() }))
  }

  #stepLater(seq: number): void {
    this.#stopStep = this.#here.clock.later(() => this.#trying(seq, () => this.#step(seq)), pauseMs)
  }

  #step(seq: number): void {
    const writer = this.#writer!
    if (writer.step()) return this.#stepLater(seq)
    writer.finish((failed) => {
      this.#writer = undefined
      if (failed !== undefined) this.#notKept(seq, failed)
    })
  }

  #trying(seq: number, write: () => void): void {
    try {
      write()
    } catch (error) {
      this.#giveUp()
      this.#notKept(seq, error)
    }
  }

  #giveUp(): void {
    this.#stopStep()
    this.#writer?.giveUp()
    this.#writer = undefined
  }

  /** The next stop tries again. */
  #notKept(seq: number, problem: unknown): void {
    this.#kept = 0
    this.#here.report('warn', 'snapshot.not_kept', { directory: this.#directory, seq, problem: String(problem) })
  }
}
