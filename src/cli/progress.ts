/**
 * Shows the progress of a long command: a line redrawn in place on a terminal, a plain line now and then elsewhere.
 *
 * Output to a file or a build log must stay readable, so nothing is redrawn there.
 */
import type { Terminal } from './command-line.ts'
import { durationText, grouped } from './terminal.ts'

/** Ten frames per second look like motion; more would only cost the import. */
const drawIntervalMs = 100
/** A log needs signs of life, not a flood. */
const plainIntervalMs = 5000
/** The rate is the mean over this window, so that it neither jumps nor lags. */
const rateWindowMs = 5000
const barCells = 24

type ProgressOptions = {
  readonly terminal: Pick<Terminal, 'clock' | 'err' | 'isInteractive'>
  /** What is counted, in the plural: "posts". */
  readonly unit: string
}

/** Draws on stderr, because stdout is for the command's result. */
export class Progress {
  readonly #options: ProgressOptions
  readonly #startedMs: number
  #drawnMs: number
  #samples: { atMs: number; done: number }[] = []
  #isDrawn = false

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#startedMs = options.terminal.clock.monotonicMs()
    this.#drawnMs = this.#startedMs
  }

  /** `total` is undefined if it is not known yet. `note` is a few words at the end of the line. */
  update(done: number, total: number | undefined, note = ''): void {
    const { terminal, unit } = this.#options
    const nowMs = terminal.clock.monotonicMs()
    const intervalMs = terminal.isInteractive ? drawIntervalMs : plainIntervalMs
    if (nowMs - this.#drawnMs < intervalMs) return
    this.#drawnMs = nowMs
    const rate = this.#rate(nowMs, done)
    const line = progressLine({ done, total, rate, unit, note, bar: terminal.isInteractive })
    terminal.err(terminal.isInteractive ? `\r\x1b[K${line}` : `${line}\n`)
    this.#isDrawn = terminal.isInteractive
  }

  /** Prints a separate line without breaking the bar. */
  say(text: string): void {
    this.clear()
    this.#options.terminal.err(`${text}\n`)
  }

  /** Removes the bar. Call before other output and at the end. */
  clear(): void {
    if (this.#isDrawn) this.#options.terminal.err('\r\x1b[K')
    this.#isDrawn = false
  }

  secondsSpent(): number {
    return (this.#options.terminal.clock.monotonicMs() - this.#startedMs) / 1000
  }

  /** Per second, over the last window. */
  #rate(nowMs: number, done: number): number {
    this.#samples.push({ atMs: nowMs, done })
    while (this.#samples.length > 2 && nowMs - this.#samples[0]!.atMs > rateWindowMs) this.#samples.shift()
    const first = this.#samples[0]!
    const spanMs = nowMs - first.atMs
    if (spanMs > 0) return ((done - first.done) * 1000) / spanMs
    return (done * 1000) / Math.max(1, nowMs - this.#startedMs)
  }
}

type ProgressFacts = {
  readonly done: number
  readonly total: number | undefined
  readonly rate: number
  readonly unit: string
  readonly note: string
  readonly bar: boolean
}

/** One line, for example `[██████░░░░] 61% 41,800 of about 68,392 posts, 5,210/s, 5 s left`. */
function progressLine({ done, total, rate, unit, note, bar }: ProgressFacts): string {
  const parts = []
  if (total !== undefined && total > 0) {
    const share = Math.min(1, done / total)
    const filled = Math.floor(share * barCells)
    const drawn = bar ? `[${'█'.repeat(filled)}${'░'.repeat(barCells - filled)}] ` : ''
    parts.push(`${drawn}${Math.floor(share * 100)}% ${grouped(done)} of ${grouped(total)} ${unit}`)
  } else {
    parts.push(`${grouped(done)} ${unit}`)
  }
  parts.push(`${grouped(rate)}/s`)
  if (total !== undefined && rate > 0 && total > done) parts.push(`${durationText((total - done) / rate)} left`)
  if (note !== '') parts.push(note)
  return parts.join(', ')
}
