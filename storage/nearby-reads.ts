/**
 * Reads frames one by one where many are close together: the frames of a thread, a page or an export.
 *
 * A caller that reads two adjacent frames will probably want the next one, so the second read fetches ahead, and each
 * read after that fetches more. Reading fifty frames costs about as much as reading one. Payloads are views of the
 * bytes read, which are never overwritten.
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

/** Frames this close together are read in one go, gap included. */
export const gapBytesMax = 8 * 1024
const aheadBytesMin = 4 * 1024
const aheadBytesMax = 64 * 1024

export class NearbyReads {
  #file: DiskFile | undefined
  /** Position of `#bytes` in the file. */
  #base = 0
  #bytes: Buffer = Buffer.alloc(0)
  /** The frame read last. */
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
    // Reread alone, so that a failure is not due to bytes read along with it.
    this.forget()
    return readFrameAt(file, place)
  }

  /** Call after files were rewritten. */
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
