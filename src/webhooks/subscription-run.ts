/**
 * A running hook: its queue, and its position in each source.
 *
 * It follows a source as long as every change there is queued when it happens. When the queue is full, it falls behind,
 * remembers its position, and is caught up when there is room again. So it holds only a few signals, shared with all other
 * hooks, however much happens and however long its target is away.
 */
import type { HookKind } from '../../actors/webhooks/kind-names.ts'
import type { Pending } from './pending.ts'
import type { HookView } from './reads.ts'
import { type Course, freshCourse, woken } from './retry.ts'
import type { DeliveryHead } from './signature.ts'
import type { DeliveryRow, Place } from './store.ts'

/** Signals that wait in memory for one hook. */
export const queueMax = 64
/** When this few are left, a hook that fell behind is caught up. */
export const queueLow = 16

/** A log head has no position in a source: it may be queued before older changes, and missing one does no harm. */
const headKind: HookKind = 'log.checkpoint'

export class HookRun {
  view: HookView
  readonly queue: Pending[] = []
  /** For each source: everything before it is queued, done, or of no interest. */
  readonly positions: number[]
  /** Sources that it does not follow. */
  behind: readonly number[]
  course: Course
  redone: number
  headSize: number
  /** Unix milliseconds before which no log head is queued. */
  headNotBefore = 0
  /** A delivery to it is in progress. */
  inFlight = false
  removed = false
  /** How often in a row the next payload could not be read. */
  unread = 0
  /** It is to end, and that has been requested. */
  isOver = false
  /** Built for its first delivery, and again after a change. */
  deliveryHead: DeliveryHead | undefined
  #host: string | undefined
  /** On resuming, for each source in which it is inside a change: the kinds of that change that are done already. */
  readonly #taken: ReadonlyMap<number, { readonly position: number; readonly count: number }> | undefined

  /**
   * `place`: where an earlier run left it. `tails`: the positions from which the sources are followed. `ends`: limits its
   * positions to the ends of the sources, if the hook may come from a copy of the board that had gone further.
   */
  constructor(view: HookView, place: Place | undefined, tails: readonly number[], ends?: readonly number[]) {
    this.view = view
    const kept = place?.epoch === view.epoch ? place : undefined
    const isAtTails = kept?.idle === true
    const marks = kept?.marks ?? view.marks
    const from = (tail: number, source: number) =>
      Math.min(marks[source] ?? tail, ends?.[source] ?? Number.MAX_SAFE_INTEGER)
    this.positions = tails.map((tail, source) => (isAtTails ? Math.max(tail, from(tail, source)) : from(tail, source)))
    this.behind = isAtTails ? nowhere : tails.map((_, source) => source)
    this.course = courseOf(view, kept)
    this.redone = kept?.redone ?? 0
    this.headSize = kept?.headSize ?? 0
    const taken = isAtTails ? [] : (kept?.taken ?? [])
    const inside = taken.flatMap((count, source) =>
      count === 0 ? [] : [[source, { position: marks[source] ?? 0, count }] as const],
    )
    this.#taken = inside.length === 0 ? undefined : new Map(inside)
  }

  /** The host of its address; hooks with the same host take turns. */
  get host(): string {
    this.#host ??= new URL(this.view.url).host
    return this.#host
  }

  get id(): string {
    return this.view.hook
  }

  get isIdle(): boolean {
    return this.queue.length === 0 && this.behind.length === 0
  }

  get redelivery(): { readonly number: number; readonly event: string } | undefined {
    return this.view.redeliveries.find(({ number }) => number > this.redone)
  }

  /** Queues the part of a change that it wants; returns false if there is no room, and it has fallen behind from there on. */
  offer(wanted: readonly Pending[]): boolean {
    const first = wanted[0]
    if (first === undefined) return true
    const { source } = first
    const { position } = first.signal
    if (position < this.positions[source]!) return true
    if (this.queue.length + wanted.length > queueMax) {
      if (!this.behind.includes(source)) this.behind = [...this.behind, source]
      this.positions[source] = position
      return false
    }
    const taken = this.#taken?.get(source)
    const done = taken?.position === position ? taken.count : 0
    for (const each of wanted) if (each.nth >= done) this.queue.push(each)
    this.positions[source] = position + 1
    return true
  }

  /** It is caught up to here; returns true if it follows the source again. */
  caughtUp(source: number, next: number, tail: number): boolean {
    this.positions[source] = Math.max(this.positions[source]!, next)
    if (this.positions[source]! < tail || !this.behind.includes(source)) return false
    this.behind = this.behind.length === 1 ? nowhere : this.behind.filter((each) => each !== source)
    return true
  }

  /** It is not waiting any more: sent, or of no interest. A newer log head stands for those before it. */
  isPast({ kind, source, position, item }: Pick<DeliveryRow, 'kind' | 'source' | 'position' | 'item'>): boolean {
    if (kind === headKind) return item <= this.headSize
    const isQueued = this.queue.some(
      (each) => each.kind === kind && each.source === source && each.signal.position === position,
    )
    return !isQueued && position < this.positions[source]!
  }

  /** Next position of each source once `from` entries of the queue are done. */
  marks(tails: readonly number[], from = 0): number[] {
    const { positions, behind, queue } = this
    const marks = tails.map((tail, source) =>
      behind.length > 0 && behind.includes(source) ? positions[source]! : Math.max(tail, positions[source]!),
    )
    for (let n = queue.length - 1; n >= from; n--) {
      const { source, signal, kind } = queue[n]!
      if (kind !== headKind) marks[source] = signal.position
    }
    return marks
  }

  /** Kinds that are done, of the change at its position in a source. */
  #takenOf(source: number): number {
    const waiting = this.queue.find((each) => each.source === source && each.kind !== headKind)
    if (waiting !== undefined) return waiting.nth
    const taken = this.#taken?.get(source)
    return taken !== undefined && this.positions[source]! <= taken.position ? taken.count : 0
  }

  place(tails: readonly number[]): Place {
    return {
      epoch: this.view.epoch,
      idle: this.isIdle,
      marks: this.marks(tails),
      taken: tails.map((_, source) => this.#takenOf(source)),
      course: this.course,
      wakes: this.view.wakes,
      redone: this.redone,
      headSize: this.headSize,
    }
  }
}

const nowhere: readonly number[] = []

/** A wake is in the journal immediately, and in the store a moment later. */
function courseOf({ wakes }: HookView, kept: Place | undefined): Course {
  if (kept === undefined) return freshCourse
  return wakes > (kept.wakes ?? wakes) ? woken(kept.course) : kept.course
}
