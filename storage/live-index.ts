/**
 * Where the frames of the growing segment are, in memory: 4 bytes per frame, and its keys.
 *
 * The writer fills it as it appends, a reader as it scans forward; a sealed segment has a file instead
 * (sealed-index.ts), which is made from this.
 */
import { KEY_BYTES, keyOffset, keyText } from './frame.ts'
import { SEGMENT_HEADER_BYTES } from './segment.ts'

export class LiveIndex {
  readonly firstSeq: number
  #offsets = new Uint32Array(256)
  #count = 0
  #end = SEGMENT_HEADER_BYTES
  readonly #keys = new Map<string, number>()

  constructor(firstSeq: number) {
    this.firstSeq = firstSeq
  }

  /** Takes note of the next frame, which stands right behind the one before. */
  add(frameBytes: number, flags: number, payload: Uint8Array): void {
    if (this.#count === this.#offsets.length) {
      const larger = new Uint32Array(this.#offsets.length * 2)
      larger.set(this.#offsets)
      this.#offsets = larger
    }
    const at = keyOffset(flags)
    if (at !== undefined && payload.length >= at + KEY_BYTES) this.#keys.set(keyText(payload, at), this.#count)
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

  /** Position behind the last frame. */
  get end(): number {
    return this.#end
  }

  has(seq: number): boolean {
    return seq >= this.firstSeq && seq < this.nextSeq
  }

  /** Position of a frame that is there, or of the end for `nextSeq`. */
  offsetOf(seq: number): number {
    const ordinal = seq - this.firstSeq
    return ordinal === this.#count ? this.#end : this.#offsets[ordinal]!
  }

  /** Newest seq with this key. */
  find(key: string): number | undefined {
    const ordinal = this.#keys.get(key)
    return ordinal === undefined ? undefined : this.firstSeq + ordinal
  }

  /** All keys with the ordinal of their newest frame (0 = first of the segment). */
  keys(): ReadonlyMap<string, number> {
    return this.#keys
  }
}
