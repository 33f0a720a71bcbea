/** Lets a follower that has every frame wait for the next ones, so that it gets them at once and need not poll. */
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { JournalPlace } from '../../storage/copied-frames.ts'
import type { Clock } from '../clock.ts'
import type { FramesAnswer } from './copies.ts'

type Answer = (found: FramesAnswer | 'busy') => void

type AwaitedFramesOptions = {
  readonly clock: Pick<Clock, 'later' | 'monotonicMs'>
  readonly frames: (places: readonly JournalPlace[], answer: Answer) => void
}

export class AwaitedFrames {
  readonly #options: AwaitedFramesOptions
  readonly #waiting = new Set<() => void>()
  #isClosed = false
  /** Counts how often there were more frames. */
  #moves = 0

  constructor(options: AwaitedFramesOptions) {
    this.#options = options
  }

  /** Call this when followers may have more frames. */
  readonly moved = (): void => {
    this.#moves++
    for (const retry of [...this.#waiting]) retry()
  }

  /** Answers all requests that wait. Later ones do not wait. */
  close(): void {
    this.#isClosed = true
    this.moved()
  }

  /** Returns the frames after these places; if there are none, waits up to this many milliseconds for some. */
  readonly ask = (places: readonly JournalPlace[], withinMs: number, answer: Answer): void => {
    const { clock, frames } = this.#options
    const until = clock.monotonicMs() + withinMs
    const attempt = (): void => {
      const moves = this.#moves
      frames(places, (found) => {
        const leftMs = until - clock.monotonicMs()
        if (found !== undefined || leftMs <= 0 || this.#isClosed) return answer(found)
        if (this.#moves !== moves) return attempt()
        const retry = (): void => {
          this.#waiting.delete(retry)
          cancel()
          attempt()
        }
        const cancel: Cancel = clock.later(() => {
          this.#waiting.delete(retry)
          answer(undefined)
        }, leftMs)
        this.#waiting.add(retry)
      })
    }
    attempt()
  }
}
