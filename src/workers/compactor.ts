/**
 * Compaction in a shard's thread: texts that were redacted or have expired leave the disk, in slices between turns. What was
 * examined is not examined again; after a start everything that was ever taken back is, once.
 *
 * A text is gone from every read at once; this makes the bytes go too, and with them what recovery saved of this journal. What
 * was done is announced to the readers of this journal, so that none keeps the old file open, and to the owner of the files of posts.
 *
 * What the disk does not give costs the texts it belongs to: it is reported, damaged ones wait for the next start, and all else for
 * the next look. Only after a failed sync does the thread start over.
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
  /** Seconds between two looks; what was taken back is gone from the disk soon after the next one. */
  readonly everySeconds: number
  /** Segments of the journal were rewritten: all that hold what is to be destroyed, or those for which the disk had room. */
  readonly onRewritten: () => void
  /** The texts of the events with these slots are destroyed. */
  readonly onDestroyed: (slots: ReadonlySet<number>) => void
}

/** Frames read between two turns. */
const framesPerSlice = 128

export class Compactor {
  readonly #options: CompactorOptions
  /** Frames that are to become stubs, as far as they have been examined. */
  readonly #wanted = new Set<number>()
  /** Frames that were not written yet when they were examined, or were in a segment that a copy may not seal. */
  readonly #unwritten: number[] = []
  /** How many texts of posts, of commands of the market, and of profiles have been examined. */
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
    const events = state.marks.takenBack(clock.readingSeconds())
    // Of the request of a work the market has the command too, until it is taken back.
    const commands = state.mail.takenBack()
    const profiles = state.people.takenBack()
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
      // A thread that was here before may have rewritten segments, and died before it announced that.
      if (isFirst) this.#options.onRewritten()
      this.#isRunning = false
    }
    this.#isRunning = true
    for (const seq of this.#unwritten.splice(0)) this.#see(seq)
    slice()
  }

  /** Whether there is a text to destroy. After a start it is not known yet which of them are stubs: the frame says. */
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
      // What is left half done is done again after the next start.
      if (this.#closed) return
      if (journal.isAppending) return void journal.idle().then(slice)
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
        // A reader that has a segment open that was rewritten before keeps its old space from the next pass.
        onRewritten()
      }
      this.#isRunning = false
    }
    slice()
  }

  /** Texts stay on the disk for this. */
  #left(error: unknown): void {
    const problem = error instanceof Error ? error.message : String(error)
    this.#options.report('error', 'journal.not_compacted', { shard: this.#options.shard, problem })
  }
}

const isDamage = (error: unknown) => error instanceof Error && error.name === 'Damage'

/** Not for what the disk says of one file: after a failed sync nothing that is read back can be trusted, and a fault is a fault. */
function mustStartOver(error: unknown): boolean {
  const { name, syscall } = error as Error & { readonly syscall?: string }
  return !['Damage', 'DiskFull', 'FailedRead'].includes(name) && syscall === undefined
}
