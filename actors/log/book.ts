/**
 * The logs of a board, oldest first, as recorded in the frames of the log's journal: which sizes were signed, and in
 * which frames.
 *
 * A board has one log until it is rotated; then the old one is closed permanently and the next one begins at leaf 0.
 * State that refers to leaves of several logs numbers them consecutively: leaf i of a log is leaf `base + i` of the
 * board.
 */
import type { Head } from '../records/answer.ts'
import { entriesOf, type LogFrame, openFrameType } from './frame.ts'
import { previousOf } from './rotation.ts'

/** One log, as far as its frames have been taken. */
export class BookedLog {
  /** First line of its checkpoints. */
  readonly origin: string
  /** Number of leaves in all logs before it. */
  readonly base: number
  /** Every size that was signed, and the log frame that carries it. */
  readonly sizes: number[]
  readonly frames: number[]
  head: Head
  /** It was not closed: anything after its head is lost, as the first entry of the next log states. */
  isLost: boolean

  constructor({ origin, base, sizes, frames, head, isLost = false }: PackedLog) {
    this.origin = origin
    this.base = base
    this.sizes = [...sizes]
    this.frames = [...frames]
    this.head = head
    this.isLost = isLost
  }

  /** The year and letter at the end of its origin, such as 2026a. */
  get name(): string {
    return nameOf(this.origin)
  }

  /** The frame that holds leaf `index` of this log. */
  frameOf(index: number): number {
    return this.frames[firstAtLeast(this.sizes, index + 1)]!
  }

  /** The frame whose head has exactly this size, or undefined if none was signed. */
  frameOfSize(size: number): number | undefined {
    const at = firstAtLeast(this.sizes, size)
    return this.sizes[at] === size ? this.frames[at] : undefined
  }
}

/** A leaf of one log; `origin` names the log unless it is the newest. */
export type LeafPlace = { readonly index: number; readonly origin?: string }

export type PackedLog = Pick<BookedLog, 'origin' | 'base' | 'sizes' | 'frames' | 'head'> & { readonly isLost?: boolean }

/** `host/log/2026a` -> `2026a`. */
export function nameOf(origin: string): string {
  return origin.slice(origin.lastIndexOf('/') + 1)
}

export class LogBook {
  readonly logs: BookedLog[]

  constructor(packed: readonly PackedLog[] = []) {
    this.logs = packed.map((log) => new BookedLog(log))
  }

  pack(): PackedLog[] {
    return this.logs.map(({ origin, base, sizes, frames, head, isLost }) => ({
      origin,
      base,
      sizes,
      frames,
      head,
      ...(isLost && { isLost }),
    }))
  }

  /** The newest log, the only one that grows. Throws before the first frame was taken. */
  get newest(): BookedLog {
    const newest = this.logs.at(-1)
    if (newest === undefined) throw new Error('no frame of the log was read')
    return newest
  }

  /** The log with this name, such as 2026a. */
  named(name: string): BookedLog | undefined {
    return this.logs.find((log) => log.name === name)
  }

  /** The log that holds this leaf of the board. */
  holding(leaf: number): BookedLog {
    return this.logs.findLast(({ base }) => base <= leaf)!
  }

  /** The position of a leaf of the board. */
  placeOf(leaf: number): LeafPlace {
    const log = this.holding(leaf)
    return log === this.newest ? { index: leaf - log.base } : { index: leaf - log.base, origin: log.origin }
  }

  /** Takes the next frame of the log's journal; returns the `base` of the log that it belongs to. */
  take(frame: LogFrame, seq: number): number {
    const head: Head = { size: frame.size, checkpoint: frame.checkpoint }
    if (this.logs.length === 0 || frame.type === openFrameType) {
      const before = this.logs.at(-1)
      if (before !== undefined) before.isLost = previousOf([...entriesOf(frame)][0]!)?.isLost === true
      const base = before === undefined ? 0 : before.base + before.head.size
      const origin = frame.checkpoint.slice(0, frame.checkpoint.indexOf('\n'))
      this.logs.push(new BookedLog({ origin, base, sizes: [], frames: [], head }))
    }
    const log = this.newest
    log.head = head
    if (log.sizes.at(-1) !== frame.size) {
      log.sizes.push(frame.size)
      log.frames.push(seq)
    }
    return log.base
  }
}

/** Index of the first number that is not smaller than `value`. */
function firstAtLeast(sorted: readonly number[], value: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sorted[middle]! < value) low = middle + 1
    else high = middle
  }
  return low
}
