/**
 * When a thread keeps a snapshot: every so many records, beside its work, at once after a start that read as many, and when it stops.
 * A snapshot that cannot be kept is no fault.
 */
import type { Cancel } from '../../actors/kernel/timers.ts'
import { checkReached, type Image, loadNewest, type Snapshot, SnapshotWriter, save } from '../../storage/snapshot.ts'
import type { ThreadPlatform } from './thread.ts'

/** Replaying this many records takes about a second. */
const recordsBetween = 200_000
/** On a large board, this share of all records, so that the bytes written for each stay bounded. */
const shareBetween = 1 / 32
/** Between two pieces of a snapshot that is written beside the work: the disk is there for posts first. */
const pauseMs = 4

type Here = Pick<ThreadPlatform, 'clock' | 'disk' | 'report'>

export class SnapshotKeeper {
  readonly #here: Here
  readonly #directory: string
  #found: Snapshot | undefined
  #journalId: Buffer | undefined
  /** Newest frame of the snapshot that was found. */
  readonly #reached: number
  /** Newest frame of the last one that was kept or begun here, or was found and is of use; 0: there is none. */
  #kept: number
  /** How many records that one has. */
  #recordsKept: number
  /** What is being written. */
  #writer: SnapshotWriter | undefined
  #stopStep: Cancel = () => {}

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
    const onUnreadable = (path: string, problem: string): void =>
      here.report('warn', 'snapshot.unreadable', { path, problem })
    this.#found = journalId === undefined ? undefined : loadNewest(here.disk, directory, journalId, onUnreadable)
    this.#reached = this.#found?.seq ?? 0
    this.#kept = this.#reached
    this.#recordsKept = this.#reached
  }

  /**
   * What `use` makes of the snapshot that was found; it is asked once, because both share their memory. What is of no use to it, such as
   * the format of an older release, does not stand in the way of a new one of the same frame.
   */
  take<Made>(use: (found: Snapshot) => Made | undefined): Made | undefined {
    const found = this.#found
    this.#found = undefined
    const made = found === undefined ? undefined : use(found)
    if (made === undefined) this.#kept = this.#recordsKept = 0
    return made
  }

  /** What was found, or nothing, has so many records: for journals whose frames have many each. */
  holds(records: number): void {
    this.#recordsKept = records
  }

  /** The journal is open now: before this nothing that was found may be used. Throws Damage. */
  begin(journalId: Buffer, durable: number): void {
    if (this.#journalId !== undefined && !journalId.equals(this.#journalId))
      throw new Error(`another journal was opened than the one whose snapshots are in ${this.#directory}`)
    this.#journalId = journalId
    if (this.#reached > 0) checkReached(this.#directory, this.#reached, durable)
  }

  /**
   * Begins one when there are enough `records` that the last has not: `pack(true)` gives an image that does not change while it is
   * written.
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

  /** Keeps one at once, and gives up what is being written. */
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

  /** A stop tries again. */
  #notKept(seq: number, problem: unknown): void {
    this.#kept = 0
    this.#here.report('warn', 'snapshot.not_kept', { directory: this.#directory, seq, problem: String(problem) })
  }
}
