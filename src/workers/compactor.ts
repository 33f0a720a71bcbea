/**
 * Compaction in a shard's thread: removes redacted and expired texts from the disk, in slices between turns. Each text is examined once per
 * run, so after a start every text ever redacted is examined again.
 *
 * Reads stop showing a text immediately; compaction also removes its bytes, including those in tails that recovery saved from this journal.
 * Readers of this journal are notified so that none keeps an old file open, and so is the owner of the posts' files.
 *
 * A disk error affects only the texts it concerns. It is reported; damaged texts wait for the next start, everything else for the next
 * pass. Only a failed sync restarts the thread.
 */

import type { Cancel } from '../../actors/kernel/timers.ts'
import { isStub, stubOf } from '../../actors/records/record.ts'
import type { State } from '../../actors/state.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Frame, Journal } from '../../storage/journal.ts'
import { removeSavedTails } from '../../storage/recovery.ts'
import type { Clock } from '../clock.ts'
import type { Report } from './thread.ts'

type CompactorOptions = {
  readonly disk: Disk
  readonly report: Report
  readonly shard: number
  readonly journal: Journal
  /** Of the journal. */
  readonly directory: string
  readonly state: State
  readonly clock: Clock
  /** Seconds between two passes. A redacted text leaves the disk soon after the next pass. */
  readonly everySeconds: number
  /** Segments of the journal were rewritten: all that hold texts to be destroyed, or as many as the disk had room for. */
  readonly onRewritten: () => void
  /** The texts of the events with these slots are destroyed. */
  readonly onDestroyed: (slots: ReadonlySet<number>) => void
}

/** Frames read between two turns. */
const framesPerSlice = 128

export class Compactor {
  readonly #options: CompactorOptions
  /** Frames to be turned into stubs, among those examined so far. */
  readonly #wanted = new Set<number>()
  /** Frames that were not yet written when they were examined, or were in a segment that a copied journal may not seal. */
  readonly #unwritten: number[] = []
  /** How many texts of posts, market commands, and profiles have been examined. */
  readonly #seen = { events: 0, commands: 0, profiles: 0 }
  /** Slots of events whose texts are to be destroyed. */
  #leaving = new Set<number>()
  readonly #stopLooking: Cancel
  #isRunning = false
  #isFirst = true
  #closed = false

  constructor(options: CompactorOptions) {
    this.#options = options
    this.#stopLooking = options.clock.every(() => this.#look(), options.everySeconds * 1000)
  }

  close(): void {
    this.#closed = true
    this.#stopLooking()
  }

  #look(): void {
    if (this.#isRunning) return
    const { state, clock } = this.#options
    const events = state.marks.removedTextSlots(clock.readingSeconds())
    // The market also holds the command of a work's request until it is redacted.
    const commands = state.mail.redactedActs()
    const profiles = state.people.redactedActs()
    const seen = this.#seen
    const slice = (): void => {
      if (this.#closed) return
      let looked = 0
      const { events: index } = state.board
      for (; seen.events < events.length && looked < framesPerSlice; looked++) {
        const slot = events[seen.events++]!
        if (this.#see(index.place(slot))) this.#leaving.add(slot)
      }
      for (; seen.commands < commands.length && looked < framesPerSlice; looked++) this.#see(commands[seen.commands++]!)
      for (; seen.profiles < profiles.length && looked < framesPerSlice; looked++) this.#see(profiles[seen.profiles++]!)
      if (looked > 0) return void clock.soon(slice)
      const isFirst = this.#isFirst
      this.#isFirst = false
      if (this.#wanted.size > 0) return this.#run(this.#wanted)
      // An earlier thread may have rewritten segments and died before announcing it.
      if (isFirst) this.#options.onRewritten()
      this.#isRunning = false
    }
    this.#isRunning = true
    for (const seq of this.#unwritten.splice(0)) this.#see(seq)
    slice()
  }

  /** Returns whether there is a text to destroy. After a start, only the frame says whether it is already a stub. */
  #see(seq: number): boolean {
    let frame: Frame | undefined
    try {
      frame = this.#options.journal.read(seq)
    } catch (error) {
      if (mustStartOver(error)) throw error
      this.#left(error)
      if (isDamage(error)) return false
    }
    if (frame !== undefined && isStub(frame)) return false
    if (frame === undefined || !this.#options.journal.mayCompact(seq)) this.#unwritten.push(seq)
    else this.#wanted.add(seq)
    return true
  }

  #run(wanted: Set<number>): void {
    const { shard, journal, disk, report, directory, clock, onRewritten, onDestroyed } = this.#options
    const startedAt = clock.monotonicMs()
    const { events } = this.#options.state.board
    const damaged = new Set<number>()
    const onDamage = (damage: Error, left: readonly number[]): void => {
      this.#left(damage)
      for (const seq of left) damaged.add(seq)
    }
    const steps = (function* () {
      removeSavedTails(disk, directory)
      return yield* journal.compact(wanted, stubOf, onDamage)
    })()
    const slice = (): void => {
      // Unfinished work is redone after the next start.
      if (this.#closed) return
      if (journal.isAppending) return void journal.idle().then(() => clock.soon(slice))
      try {
        const step = steps.next()
        if (!step.done) {
          report('info', 'journal.compacting', { shard, ...step.value })
          return void clock.soon(slice)
        }
        wanted.clear()
        report('info', 'journal.compacted', {
          shard,
          texts: step.value,
          ms: Math.round(clock.monotonicMs() - startedAt),
        })
        onRewritten()
        onDestroyed(new Set([...this.#leaving].filter((slot) => !damaged.has(events.place(slot)))))
        this.#leaving = new Set()
      } catch (error) {
        this.#left(error)
        if (mustStartOver(error)) throw error
        // Readers that still have an old version of a rewritten segment open will reopen it, which frees its space before the next pass.
        onRewritten()
      }
      this.#isRunning = false
    }
    slice()
  }

  /** Reports an error that left texts on the disk. */
  #left(error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error)
    this.#options.report('error', 'journal.not_compacted', { shard: this.#options.shard, problem })
  }
}

const isDamage = (error: unknown) => error instanceof Error && error.name === 'Damage'

/** A disk error about a single file does not need it. A failed sync does, since nothing read back can be trusted; so does a bug. */
function mustStartOver(error: unknown): boolean {
  const { name, syscall } = error as Error & { readonly syscall?: string }
  return !['Damage', 'DiskFull', 'FailedRead'].includes(name) && syscall === undefined
}
