/**
 * One hook at work: what waits for it, and where it stands in each source.
 *
 * It follows a source while everything that happens there is put into its queue as it happens; when the queue is full it
 * falls behind, remembers from where, and is caught up when there is room again. So it holds no more than a few signals, which
 * it shares with all others, however much happens and however long its target is away.
 */
import type { HookKind } from '../views/hooks/kind-names.ts'
import type { Signal } from '../views/hooks/signals.ts'
import type { HookView } from '../views/reads/webhooks.ts'
import { type Course, freshCourse } from './retry.ts'
import type { Place } from './store.ts'

/** One delivery to be made: `nth` of those that one change is told as. */
export type Pending = {
  readonly source: number
  readonly signal: Signal
  readonly kind: HookKind
  readonly nth: number
}

/** Signals that wait in memory for one hook. */
export const queueMax = 64
/** With so few left a hook that fell behind is caught up. */
export const queueLow = 16

export class HookRun {
  view: HookView
  readonly queue: Pending[] = []
  /** Of each source: everything before it is in the queue, done, or of no interest. */
  readonly heard: number[]
  /** Sources in which it does not follow. */
  readonly behind: Set<number>
  course: Course
  redone: number
  headSize: number
  /** Unix milliseconds before which no head of the log is put into the queue. */
  headNotBefore = 0
  /** Something of it is being sent. */
  flying = false
  removed = false
  timer: NodeJS.Timeout | undefined
  /** On resuming, of each source: kinds of the first change that are done already. */
  readonly #taken: readonly { readonly position: number; readonly count: number }[]

  /** `place`: where an earlier run has left it; `tails`: where the sources are followed from. */
  constructor(view: HookView, place: Place | undefined, tails: readonly number[]) {
    this.view = view
    const kept = place?.epoch === view.epoch ? place : undefined
    const isAtTails = kept?.idle === true
    const marks = kept?.marks ?? view.marks
    this.heard = tails.map((tail, source) => (isAtTails ? tail : Math.min(marks[source] ?? tail, tail)))
    this.behind = new Set(isAtTails ? [] : tails.map((_, source) => source))
    this.course = kept?.course ?? freshCourse
    this.redone = kept?.redone ?? 0
    this.headSize = kept?.headSize ?? 0
    this.#taken = tails.map((_, source) => ({
      position: marks[source] ?? 0,
      count: isAtTails ? 0 : (kept?.taken[source] ?? 0),
    }))
  }

  get id(): string {
    return this.view.hook
  }

  get isIdle(): boolean {
    return this.queue.length === 0 && this.behind.size === 0
  }

  get redelivery(): { readonly number: number; readonly event: string } | undefined {
    return this.view.redeliveries.find(({ number }) => number > this.redone)
  }

  /** Takes what happened into its queue; false: there is no room, and it has fallen behind from there on. */
  offer(source: number, signal: Signal, kinds: readonly HookKind[]): boolean {
    if (signal.position < this.heard[source]! || kinds.length === 0) return true
    if (this.queue.length + kinds.length > queueMax) {
      this.behind.add(source)
      this.heard[source] = signal.position
      return false
    }
    const taken = this.#taken[source]!
    const done = taken.position === signal.position ? taken.count : 0
    kinds.forEach((kind, nth) => {
      if (nth >= done) this.queue.push({ source, signal, kind, nth })
    })
    this.heard[source] = signal.position + 1
    return true
  }

  /** Caught up so far; true: it follows the source again. */
  caughtUp(source: number, next: number, tail: number): boolean {
    this.heard[source] = Math.max(this.heard[source]!, next)
    return this.heard[source]! >= tail && this.behind.delete(source)
  }

  /** Next place of each source when `from` entries of the queue are done. */
  marks(tails: readonly number[], from = 0): number[] {
    return tails.map((tail, source) => {
      const waiting = this.queue.find((each, n) => n >= from && each.source === source)
      if (waiting !== undefined) return waiting.signal.position
      return this.behind.has(source) ? this.heard[source]! : Math.max(tail, this.heard[source]!)
    })
  }

  /** Kinds that are done of the change that its place in a source names. */
  #takenOf(source: number): number {
    const waiting = this.queue.find((each) => each.source === source)
    if (waiting !== undefined) return waiting.nth
    const { position, count } = this.#taken[source]!
    return this.heard[source]! <= position ? count : 0
  }

  place(tails: readonly number[]): Place {
    return {
      epoch: this.view.epoch,
      idle: this.isIdle,
      marks: this.marks(tails),
      taken: tails.map((_, source) => this.#takenOf(source)),
      course: this.course,
      redone: this.redone,
      headSize: this.headSize,
    }
  }
}
