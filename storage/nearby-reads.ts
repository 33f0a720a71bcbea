/**
 * Frames read one by one, of which many lie near each other: those of a thread, of a page, of an export.
 *
 * Whoever has read two of them is likely to want the next, so more is read with the second of them, and again more the longer it goes
 * on: a read of one frame costs as much as one of fifty. Payloads are views of what was read, which is never written again.
 */
import type { DiskFile } from './disk.ts'
import { decodeFrame, type Frame } from './frame.ts'
import { readFrameAt } from './segment.ts'

/** Where a frame is, and up to which position its file can be read. */
export type FramePlace = {
  readonly file: DiskFile
  readonly offset: number
  readonly end: number
  readonly limit: number
  readonly seq: number
  readonly seed: number
}

/** What lies so near to the frame before is worth reading what is between them. */
export const gapBytesMax = 8 * 1024
const aheadBytesMin = 4 * 1024
const aheadBytesMax = 64 * 1024

export class NearbyReads {
  #file: DiskFile | undefined
  /** Position of `#bytes` in the file. */
  #base = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** The frame that was read last. */
  #offset = 0
  #end = 0
  #aheadBytes = aheadBytesMin

  /** Throws Damage. */
  read(place: FramePlace): Frame {
    const { file, offset, end, seq, seed } = place
    if (!this.#holds(place)) this.#fill(place)
    this.#offset = offset
    this.#end = end
    if (this.#holds(place)) {
      const frame = decodeFrame(this.#bytes, offset - this.#base, end - this.#base, seed)
      if (frame.frameBytes === end - offset && frame.seq === seq) return frame
    }
    // Read by itself, so that what was read with it is not to blame.
    this.forget()
    return readFrameAt(file, place)
  }

  /** Files were rewritten. */
  forget(): void {
    this.#file = undefined
    this.#bytes = Buffer.alloc(0)
  }

  #holds({ file, offset, end }: FramePlace): boolean {
    return this.#file === file && offset >= this.#base && end <= this.#base + this.#bytes.length
  }

  #fill({ file, offset, end, limit }: FramePlace): void {
    const isSame = this.#file === file
    const isAfter = isSame && offset >= this.#end && offset - this.#end <= gapBytesMax
    const isBefore = isSame && end <= this.#offset && this.#offset - end <= gapBytesMax
    this.#aheadBytes = isAfter || isBefore ? Math.min(this.#aheadBytes * 4, aheadBytesMax) : aheadBytesMin / 4
    const from = isBefore ? Math.max(0, Math.min(offset, end - this.#aheadBytes)) : offset
    const to = isAfter ? Math.min(limit, Math.max(end, offset + this.#aheadBytes)) : end
    this.#file = undefined
    if (to - from > aheadBytesMax) return
    const bytes = Buffer.allocUnsafe(to - from)
    try {
      this.#bytes = bytes.subarray(0, file.readAt(bytes, from))
    } catch {
      return // The frame itself may be readable, and says what is wrong if it is not.
    }
    this.#base = from
    this.#file = file
  }
}
