/**
 * Positions and keys of the frames in the growing segment, in memory: 4 bytes per frame, plus 16 for its key.
 *
 * The writer fills it as it appends, a reader as it scans forward. A sealed segment has an index file instead
 * (sealed-index.ts), which is built from this.
 */
import { KEY_BYTES, keyOffset } from './frame.ts'
import { SEGMENT_HEADER_BYTES } from './segment.ts'

export class LiveIndex {
  readonly firstSeq: number
  #offsets = new Uint32Array(256)
  #count = 0
  #end = SEGMENT_HEADER_BYTES
  #keys = Buffer.alloc(256 * KEY_BYTES)
  #keyed = new Uint8Array(256)

  constructor(firstSeq: number) {
    this.firstSeq = firstSeq
  }

  /** Adds the next frame, directly after the last one. */
  add(frameBytes: number, flags: number, payload: Uint8Array): void {
    if (this.#count === this.#offsets.length) this.#grow()
    const at = keyOffset(flags)
    if (at !== undefined && payload.length >= at + KEY_BYTES) {
      const to = this.#count * KEY_BYTES
      // A loop of sixteen steps costs less than creating the view that `set` would need.
      for (let i = 0; i < KEY_BYTES; i++) this.#keys[to + i] = payload[at + i]!
      this.#keyed[this.#count] = 1
    }
    this.#offsets[this.#count] = this.#end
    this.#count++
    this.#end += frameBytes
  }

  get count(): number {
    return this.#count
  }

  /** Seq of the next frame. */
  get nextSeq(): number {
    return this.firstSeq + this.#count
  }

  /** Position after the last frame. */
  get end(): number {
    return this.#end
  }

  has(seq: number): boolean {
    return seq >= this.firstSeq && seq < this.nextSeq
  }

  /** Position of an existing frame, or of the end for `nextSeq`. */
  offsetOf(seq: number): number {
    const ordinal = seq - this.firstSeq
    return ordinal === this.#count ? this.#end : this.#offsets[ordinal]!
  }

  /** Newest seq with this 16-byte key. A linear search from the end, because no write needs it. */
  find(key: Uint8Array): number | undefined {
    for (let ordinal = this.#count - 1; ordinal >= 0; ordinal--) {
      if (this.#keyed[ordinal] === 1 && this.keyAt(ordinal).equals(key)) return this.firstSeq + ordinal
    }
    return undefined
  }

  /** A view of the key of the frame with this ordinal (0 = first of the segment); meaningless if `isKeyed` is false. */
  keyAt(ordinal: number): Buffer {
    return this.#keys.subarray(ordinal * KEY_BYTES, (ordinal + 1) * KEY_BYTES)
  }

  /** Four bytes of that key from `at` on, as a little-endian number. */
  keyWord(ordinal: number, at: number): number {
    return this.#keys.readInt32LE(ordinal * KEY_BYTES + at)
  }

  isKeyed(ordinal: number): boolean {
    return this.#keyed[ordinal] === 1
  }

  #grow(): void {
    const frames = this.#offsets.length * 2
    const offsets = new Uint32Array(frames)
    offsets.set(this.#offsets)
    this.#offsets = offsets
    const keys = Buffer.alloc(frames * KEY_BYTES)
    keys.set(this.#keys)
    this.#keys = keys
    const keyed = new Uint8Array(frames)
    keyed.set(this.#keyed)
    this.#keyed = keyed
  }
}
