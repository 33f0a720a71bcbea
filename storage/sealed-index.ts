/**
 * The index of a sealed segment: where each frame is and which frame has a key. Searched on disk, without loading it.
 *
 * A FlatBuffers file `<first seq>.idx` next to the segment, derived from it and deletable at any time:
 *
 *   struct Key { bytes: [ubyte:16]; ordinal: uint; }      // 20 bytes; ordinal 0 = first frame of the segment
 *   table SegmentIndex {
 *     journal_id: [ubyte];     // 16, of the segment's header
 *     first_seq: ulong;
 *     segment_bytes: uint;     // size of the sealed file
 *     chain: [ubyte];          // 32, of the segment's footer
 *     offsets: [uint];         // position of every frame, by ordinal
 *     keys: [Key];             // ascending by bytes; one entry per key, its newest frame
 *   }
 *   root_type SegmentIndex;  file_identifier "BSIX";
 *
 * followed by 4 bytes: CRC-32 (IEEE, little-endian) of everything before. The first four fields identify the segment it
 * belongs to. It stays valid when compaction rewrites the segment, because no frame moves.
 */
import { crc32 } from 'node:zlib'
import { Builder } from 'flatbuffers'
import type { BlockCache } from './block-cache.ts'
import type { DiskFile } from './disk.ts'
import { KEY_BYTES } from './frame.ts'
import type { LiveIndex } from './live-index.ts'
import { FOOTER_BYTES } from './segment.ts'

/** What an index and its segment must agree on. */
export type SealedFacts = {
  readonly journalId: Buffer
  readonly firstSeq: number
  readonly count: number
  readonly segmentBytes: number
  readonly chain: Buffer
}

/** Anything that can be read at a position: an open file, or bytes in memory. */
export type ByteSource = Pick<DiskFile, 'size' | 'readAt' | 'prefetch'>

/** Frames whose positions are read together. */
const framesPerBlock = 1024
/** Their positions, plus that of the frame after them. */
export const offsetBlockBytes = 4 * (framesPerBlock + 1)

const identifier = 'BSIX'
const trailerBytes = 4
/** The table and its two short vectors; the long vectors follow them. */
const headBytes = 256
const keyEntryBytes = KEY_BYTES + 4
/** One read of a key search: one page of the file system. */
const keysPerPage = Math.floor(4096 / keyEntryBytes)
const slots = { journalId: 0, firstSeq: 1, segmentBytes: 2, chain: 3, offsets: 4, keys: 5 } as const

/** The whole index file for a segment with the frames in `live`. The same segment always gives the same bytes. */
export function buildIndex(live: LiveIndex, facts: SealedFacts): Buffer {
  // FlatBuffers are written from end to start, so the last entry comes first.
  const sorted = sortKeys(live)
  const builder = new Builder(live.count * 4 + sorted.length * keyEntryBytes + 2 * headBytes)
  builder.startVector(keyEntryBytes, sorted.length, 4)
  for (let i = sorted.length - 1; i >= 0; i--) {
    const ordinal = sorted[i]!
    builder.writeInt32(ordinal)
    for (let at = KEY_BYTES - 4; at >= 0; at -= 4) builder.writeInt32(live.keyWord(ordinal, at))
  }
  const keys = builder.endVector()
  builder.startVector(4, live.count, 4)
  for (let seq = live.nextSeq - 1; seq >= live.firstSeq; seq--) builder.writeInt32(live.offsetOf(seq) | 0)
  const offsets = builder.endVector()
  const chain = builder.createByteVector(facts.chain)
  const journalId = builder.createByteVector(facts.journalId)
  builder.startObject(6)
  builder.addFieldOffset(slots.journalId, journalId, 0)
  builder.addFieldInt64(slots.firstSeq, BigInt(facts.firstSeq), 0n)
  builder.addFieldInt32(slots.segmentBytes, facts.segmentBytes | 0, 0)
  builder.addFieldOffset(slots.chain, chain, 0)
  builder.addFieldOffset(slots.offsets, offsets, 0)
  builder.addFieldOffset(slots.keys, keys, 0)
  builder.finish(builder.endObject(), identifier)
  const table = builder.asUint8Array()
  const file = Buffer.alloc(table.length + trailerBytes)
  file.set(table)
  file.writeUInt32LE(crc32(table), table.length)
  return file
}

/**
 * Ordinals of the keyed frames, sorted by key; for duplicate keys only the newest. A writer waits for this, so frames
 * are sorted as numbers made of the first bits of the key and the ordinal. Whole keys are compared only if those bits
 * are equal.
 */
function sortKeys(live: LiveIndex): number[] {
  const numbers = new BigUint64Array(live.count)
  const words = new Uint32Array(numbers.buffer)
  const ordinalMask = 2 ** (32 - Math.clz32(live.count)) - 1
  let keyed = 0
  for (let ordinal = 0; ordinal < live.count; ordinal++) {
    if (!live.isKeyed(ordinal)) continue
    words[2 * keyed] = (swapped(live.keyWord(ordinal, 4)) & ~ordinalMask) | ordinal
    words[2 * keyed + 1] = swapped(live.keyWord(ordinal, 0))
    keyed++
  }
  numbers.subarray(0, keyed).sort()
  const sorted: number[] = []
  const beginsAs = (a: number, b: number) =>
    words[2 * a + 1] === words[2 * b + 1] && ((words[2 * a]! ^ words[2 * b]!) & ~ordinalMask) === 0
  for (let at = 0, end = 1; at < keyed; at = end++) {
    while (end < keyed && beginsAs(at, end)) end++
    if (end === at + 1) {
      sorted.push(words[2 * at]! & ordinalMask)
      continue
    }
    const alike = Array.from({ length: end - at }, (_, n) => words[2 * (at + n)]! & ordinalMask)
    alike.sort((a, b) => compareKeys(live, a, b) || b - a)
    for (const [n, ordinal] of alike.entries())
      if (n === 0 || compareKeys(live, alike[n - 1]!, ordinal) !== 0) sorted.push(ordinal)
  }
  return sorted
}

/** Reverses the byte order. */
function swapped(word: number): number {
  return (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)
}

function compareKeys(live: LiveIndex, a: number, b: number): number {
  return Buffer.compare(live.keyAt(a), live.keyAt(b))
}

type Vector = { readonly start: number; readonly length: number }

export class SealedIndex {
  readonly #source: ByteSource
  readonly #facts: SealedFacts
  /** Cached positions, keyed by the first seq of each block; shared by all segments of a journal. */
  readonly #blocks: BlockCache
  readonly #offsetsAt: Vector
  readonly #keysAt: Vector
  readonly #page = Buffer.allocUnsafe(keysPerPage * keyEntryBytes)

  private constructor(source: ByteSource, facts: SealedFacts, blocks: BlockCache, at: readonly [Vector, Vector]) {
    this.#source = source
    this.#facts = facts
    this.#blocks = blocks
    ;[this.#offsetsAt, this.#keysAt] = at
  }

  /** The index in `source` if it belongs to the segment with these facts; reads only its first bytes. */
  static open(source: ByteSource, facts: SealedFacts, blocks: BlockCache): SealedIndex | undefined {
    const head = Buffer.alloc(headBytes)
    source.readAt(head, 0)
    const tableEnd = source.size() - trailerBytes
    try {
      const table = new TableHead(head)
      const offsets = longVector(source, table.vectorAt(slots.offsets))
      const keys = longVector(source, table.vectorAt(slots.keys))
      const agrees =
        table.bytes(slots.journalId).equals(facts.journalId) &&
        table.u64(slots.firstSeq) === BigInt(facts.firstSeq) &&
        table.u32(slots.segmentBytes) === facts.segmentBytes &&
        table.bytes(slots.chain).equals(facts.chain) &&
        offsets.length === facts.count &&
        offsets.start + offsets.length * 4 <= tableEnd &&
        keys.start + keys.length * keyEntryBytes <= tableEnd
      return agrees ? new SealedIndex(source, facts, blocks, [offsets, keys]) : undefined
    } catch (error) {
      // If the head is not an index, its offsets may lead outside it: that is an answer, not a bug.
      if (error instanceof RangeError) return undefined
      throw error
    }
  }

  /** Reads the whole index once and verifies its CRC. */
  isIntact(): boolean {
    const end = this.#source.size() - trailerBytes
    const chunk = Buffer.allocUnsafe(Math.min(256 * 1024, Math.max(end, trailerBytes)))
    let crc = 0
    for (let at = 0; at < end; ) {
      const count = this.#source.readAt(chunk.subarray(0, Math.min(chunk.length, end - at)), at)
      if (count === 0) return false
      crc = crc32(chunk.subarray(0, count), crc)
      at += count
    }
    this.#source.readAt(chunk.subarray(0, trailerBytes), end)
    return chunk.readUInt32LE(0) === crc
  }

  /** Where the frame `seq` of this segment begins and ends in the segment file. */
  placeOf(seq: number): { offset: number; end: number; seq: number } {
    const ordinal = seq - this.#facts.firstSeq
    const first = ordinal - (ordinal % framesPerBlock)
    const offsets = this.#block(first)
    const at = ordinal - first
    const isLast = ordinal === this.#facts.count - 1
    const end = isLast ? this.#facts.segmentBytes - FOOTER_BYTES : offsets[at + 1]!
    return { offset: offsets[at]!, end, seq }
  }

  /** Hints that the positions of these frames will be requested next. */
  prefetch(seqs: readonly number[]): void {
    let newest = -1
    for (const seq of seqs) {
      const ordinal = seq - this.#facts.firstSeq
      const first = ordinal - (ordinal % framesPerBlock)
      if (first !== newest && !this.#blocks.has(this.#facts.firstSeq + first))
        this.#source.prefetch(this.#blockAt(first), this.#blockBytes(first))
      newest = first
    }
  }

  #blockAt(first: number): number {
    return this.#offsetsAt.start + first * 4
  }

  #blockBytes(first: number): number {
    return Math.min(offsetBlockBytes, (this.#facts.count - first) * 4)
  }

  /** Positions of the frames from this ordinal on, and of the one after them. */
  #block(first: number): Uint32Array {
    const seq = this.#facts.firstSeq + first
    const read = (into: Buffer): number => this.#source.readAt(into, this.#blockAt(first))
    return this.#blocks.get(seq) ?? this.#blocks.read(seq, this.#blockBytes(first), read)
  }

  /**
   * Newest seq with this 16-byte key, or undefined. Guesses the page from the key's value, which takes one or two reads
   * for keys that are hashes. Every second step halves the range, so other keys take logarithmic time.
   */
  find(key: Buffer): number | undefined {
    const wanted = key.readUIntBE(0, 6)
    let range = { low: 0, high: this.#keysAt.length, lowValue: 0, highValue: 2 ** 48 }
    for (let step = 0; range.low < range.high; step++) {
      const share = step % 2 === 0 ? (wanted - range.lowValue) / (range.highValue - range.lowValue + 1) : 0.5
      const guess = range.low + Math.floor(share * (range.high - range.low))
      const first = Math.max(range.low, Math.min(guess - (keysPerPage >> 1), range.high - keysPerPage))
      const count = Math.min(keysPerPage, range.high - first)
      this.#source.readAt(this.#page.subarray(0, count * keyEntryBytes), this.#keysAt.start + first * keyEntryBytes)
      if (this.#compare(key, 0) < 0) {
        range = { ...range, high: first, highValue: this.#page.readUIntBE(0, 6) }
      } else if (this.#compare(key, count - 1) > 0) {
        range = { ...range, low: first + count, lowValue: this.#page.readUIntBE((count - 1) * keyEntryBytes, 6) }
      } else {
        return this.#findInPage(key, count)
      }
    }
    return undefined
  }

  #findInPage(key: Buffer, count: number): number | undefined {
    let low = 0
    let high = count
    while (low < high) {
      const middle = (low + high) >> 1
      const order = this.#compare(key, middle)
      if (order === 0) return this.#facts.firstSeq + this.#page.readUInt32LE(middle * keyEntryBytes + KEY_BYTES)
      if (order < 0) high = middle
      else low = middle + 1
    }
    return undefined
  }

  #compare(key: Buffer, entry: number): number {
    const at = entry * keyEntryBytes
    return key.compare(this.#page, at, at + KEY_BYTES, 0, KEY_BYTES)
  }
}

/** Reads fields of a FlatBuffers table that begins in `head`. Throws RangeError when it leads outside. */
class TableHead {
  readonly #head: Buffer
  readonly #table: number
  readonly #vtable: number

  constructor(head: Buffer) {
    if (head.toString('latin1', 4, 8) !== identifier) throw new RangeError('the file identifier is wrong')
    this.#head = head
    this.#table = head.readUInt32LE(0)
    this.#vtable = this.#table - head.readInt32LE(this.#table)
  }

  #field(slot: number): number {
    if (4 + slot * 2 >= this.#head.readUInt16LE(this.#vtable)) throw new RangeError('a field is missing')
    const offset = this.#head.readUInt16LE(this.#vtable + 4 + slot * 2)
    if (offset === 0) throw new RangeError('a field is missing')
    return this.#table + offset
  }

  u32(slot: number): number {
    return this.#head.readUInt32LE(this.#field(slot))
  }

  u64(slot: number): bigint {
    return this.#head.readBigUInt64LE(this.#field(slot))
  }

  /** Position of a vector's length field in the file. */
  vectorAt(slot: number): number {
    const field = this.#field(slot)
    return field + this.#head.readUInt32LE(field)
  }

  /** A byte vector that is within the head. */
  bytes(slot: number): Buffer {
    const at = this.vectorAt(slot)
    const length = this.#head.readUInt32LE(at)
    if (at + 4 + length > this.#head.length) throw new RangeError('a short vector lies outside the head')
    return this.#head.subarray(at + 4, at + 4 + length)
  }
}

function longVector(source: ByteSource, at: number): Vector {
  const length = Buffer.alloc(4)
  if (source.readAt(length, at) < 4) throw new RangeError('a vector lies outside the file')
  return { start: at + 4, length: length.readUInt32LE(0) }
}
