/**
 * Compaction in a shard's thread: texts that were redacted or have expired leave the disk, in slices between turns.
 *
 * A text is gone from every read at once; this makes the bytes go too. What was done is told to whoever reads this journal,
 * so that nobody keeps the old file open.
 */
import { isStub, stubOf } from '../../actors/record.ts'
import type { State } from '../../actors/state.ts'
import type { Journal } from '../../storage/journal.ts'
import { monotonicMs, readingSeconds } from '../clock.ts'
import { report } from './entry.ts'

export type CompactorOptions = {
  readonly shard: number
  readonly journal: Journal
  readonly state: State
  /** Seconds between two looks; what was taken back is gone from the disk soon after the next one. */
  readonly everySeconds: number
  /** Segments of the journal were rewritten. */
  readonly onRewritten: () => void
}

export class Compactor {
  readonly #options: CompactorOptions
  /** Frames that are stubs, as far as this run knows. */
  readonly #done = new Set<number>()
  readonly #timer: NodeJS.Timeout
  #isRunning = false
  #closed = false

  constructor(options: CompactorOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#look(), options.everySeconds * 1000)
    this.#timer.unref()
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
  }

  #look(): void {
    if (this.#isRunning) return
    const { state, journal } = this.#options
    const { place } = state.board.events
    const wanted = new Set<number>()
    const events = state.marks.takenBack(readingSeconds()).map((slot) => place[slot]!)
    // Of the request of a work the market has the command too, until it is taken back.
    for (const seq of [...events, ...state.mail.takenBack()]) {
      if (this.#done.has(seq)) continue
      // After a start it is not known yet which of them are stubs: the frame says.
      const frame = journal.read(seq)
      if (frame === undefined || isStub(frame)) this.#done.add(seq)
      else wanted.add(seq)
    }
    if (wanted.size === 0) return
    this.#isRunning = true
    this.#run(wanted)
  }

  #run(wanted: ReadonlySet<number>): void {
    const { shard, journal, onRewritten } = this.#options
    const startedAt = monotonicMs()
    const steps = journal.compact(wanted, stubOf)
    const slice = (): void => {
      // What is left half done is done again after the next start.
      if (this.#closed) return
      try {
        const step = steps.next()
        if (!step.done) {
          report('info', 'journal.compacting', { shard, ...step.value })
          return void setImmediate(slice)
        }
        for (const seq of wanted) this.#done.add(seq)
        report('info', 'journal.compacted', { shard, texts: step.value, ms: Math.round(monotonicMs() - startedAt) })
        onRewritten()
      } catch (error) {
        report('error', 'journal.not_compacted', {
          shard,
          problem: error instanceof Error ? error.message : String(error),
        })
        // After a failed sync nothing that is read back can be trusted: the thread starts over from the disk.
        if (error instanceof Error && error.name !== 'DiskFull') throw error
      }
      this.#isRunning = false
    }
    slice()
  }
}
