/**
 * A window over a file of frames: sequential reading with few large reads.
 *
 * Payloads are views of one buffer that the next step may overwrite; callers copy what they keep.
 */
import { type DiskFile, isUnreadable } from './disk.ts'
import { decodeFrame, type FoundFrame, FRAME_HEADER_BYTES, type NoFrame } from './frame.ts'

/** Largest single read: large enough that the system call costs next to nothing per frame, small enough for every thread to have one. */
export const windowBytes = 256 * 1024

/** Bytes read per frame when only a few are wanted: most frames are shorter, and a longer one costs another read. */
export const frameBytesUsual = 1024

export class FrameWindow {
  readonly #file: DiskFile
  readonly #seed: number
  readonly #readBytes: number
  #limit: number
  /** Grows up to the read size: on a small board most files are much shorter. */
  #bytes: Buffer = Buffer.alloc(0)
  #base = 0
  #filled = 0
  /** A read up to this position failed. Frames before it are read one by one, so that only those in the bad place fail. */
  #singlyUntil = 0

  /** `limit`: position after which nothing is read; `seed`: from the segment's header; `bytes`: size of one read. */
  constructor(file: DiskFile, { limit, seed, bytes = windowBytes }: { limit: number; seed: number; bytes?: number }) {
    this.#file = file
    this.#seed = seed
    this.#limit = limit
    this.#readBytes = bytes
  }

  /** Discards what was read; later calls read the file as it is now, up to `limit`. */
  reset(limit: number): void {
    this.#limit = limit
    this.#filled = 0
    this.#singlyUntil = 0
  }

  /** The frame at `position`, or why there is none; `short` then means that it extends beyond the limit. */
  at(position: number): FoundFrame | NoFrame {
    if (position < this.#base || position >= this.#base + this.#filled) this.#fill(position, 0)
    let found = decodeFrame(this.#bytes, position - this.#base, this.#filled, this.#seed)
    // At most two more tries: one for the whole header, one for the whole payload.
    for (let tries = 0; tries < 2 && found.frameBytes === undefined && found.fault === 'short'; tries++) {
      if (position + found.needs > this.#limit) return found
      this.#fill(position, found.needs)
      found = decodeFrame(this.#bytes, 0, this.#filled, this.#seed)
    }
    return found
  }

  #fill(position: number, needs: number): void {
    const frameBytes = Math.max(FRAME_HEADER_BYTES, needs)
    if (position < this.#singlyUntil) return this.#read(position, frameBytes)
    const bytes = Math.max(this.#readBytes, frameBytes)
    try {
      this.#read(position, bytes)
    } catch (error) {
      if (!isUnreadable(error) || bytes === frameBytes) throw error
      this.#singlyUntil = position + bytes
      this.#read(position, frameBytes)
    }
  }

  #read(position: number, bytes: number): void {
    const wanted = Math.max(0, Math.min(bytes, this.#limit - position))
    if (wanted > this.#bytes.length) this.#bytes = Buffer.allocUnsafe(wanted)
    // A failed read may have overwritten the buffer.
    this.#filled = 0
    this.#filled = this.#file.readAt(this.#bytes.subarray(0, wanted), position)
    this.#base = position
  }
}
