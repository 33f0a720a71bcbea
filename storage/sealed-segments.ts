/**
 * All sealed segments of a journal as one searchable list; the writer and every reader have their own.
 *
 * Only two numbers per segment stay in memory. Files are opened and frame positions are read on demand, and the least
 * recently used are evicted, so memory does not grow with the age of the journal.
 */
import { BlockCache } from './block-cache.ts'
import { BoundedMap } from './bounded-map.ts'
import { Damage } from './disk.ts'
import type { Frame } from './frame.ts'
import type { FramePlace } from './nearby-reads.ts'
import { offsetBlockBytes } from './sealed-index.ts'
import { type SealedOptions, SealedSegment } from './sealed-segment.ts'
import { readFrameAt } from './segment.ts'

/** 512 segments of 64 MiB, two descriptors each: random reads over a journal of 32 GiB reopen no file. */
const openSegmentsCeiling = 512
const openSegmentsMin = 16
/** Each list may keep one segment open per this many descriptors of the process, so eleven lists use a twelfth of them. */
const descriptorsPerSegment = 256
/** Lists on a board with one shard. */
const listsMax = 11
/** 4 KiB each: enough for a journal of four million frames. */
const offsetBlocksMax = 4_096

/** Where a scan begins, and the last position and seq of this file. */
export type ScanPlace = {
  readonly path: string
  readonly offset: number
  readonly end: number
  readonly lastSeq: number
  /** From the segment's header. */
  readonly seed: number
}

type Listed = { readonly firstSeq: number; readonly count: number }

export class SealedSegments {
  readonly #blocks = new BlockCache(offsetBlocksMax, offsetBlockBytes)
  readonly #options: SealedOptions
  readonly #list: Listed[] = []
  /** By first seq, least recently used first. */
  readonly #opened: BoundedMap<number, SealedSegment>

  constructor(options: Omit<SealedOptions, 'blocks'>) {
    this.#options = { ...options, blocks: this.#blocks }
    this.#opened = new BoundedMap(openSegmentsMax(options.disk.descriptorsMax))
  }

  /** Adds the next sealed segment, whose `firstSeq` is `nextSeq`. */
  add(firstSeq: number, count: number): void {
    this.#list.push({ firstSeq, count })
  }

  /** Seq after the last sealed frame, or 1. */
  get nextSeq(): number {
    const last = this.#list.at(-1)
    return last ? last.firstSeq + last.count : 1
  }

  /** The segments that hold any of these seqs, by first seq in ascending order, and which of the seqs each holds. */
  holding(seqs: Iterable<number>): [firstSeq: number, held: number[]][] {
    const sealed = [...seqs].filter((seq) => seq < this.nextSeq)
    return [...Map.groupBy(sealed, (seq) => this.#listedAt(seq).firstSeq)].sort(([a], [b]) => a - b)
  }

  /** Closes all open segments: one was rewritten. Each is reopened in its new state when needed. */
  reopen(): void {
    for (const segment of this.#opened.values()) segment.close()
    this.#opened.clear()
    this.#blocks.clear()
  }

  /** Gives every segment an index that names it; scans only segments that have none. */
  checkIndexes(): void {
    for (const { firstSeq } of this.#list) {
      const segment = SealedSegment.open(this.#options, firstSeq)
      try {
        if (!segment.findIndex()) segment.rebuildIndex()
      } finally {
        segment.close()
      }
    }
  }

  /** A frame of a sealed segment, in its own memory unless `readAt` does otherwise. Throws Damage. */
  read(seq: number, readAt: (place: FramePlace) => Frame = ownFrameAt): Frame {
    const segment = this.#found(this.#listedAt(seq))
    try {
      return readAt(segment.framePlace(seq))
    } catch (error) {
      // A frame carries its own seq, so an index that leads to it needs no CRC check; one that does not may be to blame.
      if (segment.isKnownIntact || !(error instanceof Damage)) throw error
      segment.repairIndex()
      return readAt(segment.framePlace(seq))
    }
  }

  /**
   * Hints that these frames will be read next; frames at most `gapBytes` apart are prefetched together. Segments that
   * are not open are skipped, because opening many would evict others in use. Damage is ignored here: the read itself
   * reports it.
   */
  prefetch(seqs: readonly number[], gapBytes: number): void {
    if (!this.#options.disk.readsAreSlow()) return
    const sealed = seqs.filter((seq) => seq < this.nextSeq)
    for (const [{ firstSeq }, held] of Map.groupBy(sealed, (seq) => this.#listedAt(seq))) {
      const segment = this.#opened.get(firstSeq)
      if (segment?.isIndexed !== true) continue
      try {
        segment.prefetch(held, gapBytes)
      } catch (error) {
        if (!(error instanceof Damage)) throw error
      }
    }
  }

  /** Newest seq up to `through` with this key. A frame after `through` hides older ones with the same key in its segment. */
  findKey(key: Buffer, through: number): number | undefined {
    for (let i = this.#list.length - 1; i >= 0; i--) {
      const listed = this.#list[i]!
      if (listed.firstSeq > through) continue
      const seq = this.#indexed(listed).findKey(key)
      if (seq !== undefined && seq <= through) return seq
    }
    return undefined
  }

  /** Where `seq` is; the index is needed only if `seq` is not the first of its segment. */
  placeOf(seq: number): ScanPlace {
    const listed = this.#listedAt(seq)
    const segment = seq === listed.firstSeq ? this.#open(listed) : this.#indexed(listed)
    const { file, facts, lastSeq } = segment
    const { seed } = segment.header
    return { path: file.path, offset: segment.offsetOf(seq), end: facts.segmentBytes, lastSeq, seed }
  }

  close(): void {
    this.reopen()
  }

  #listedAt(seq: number): Listed {
    let low = 0
    let high = this.#list.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.#list[middle]!.firstSeq <= seq) low = middle
      else high = middle - 1
    }
    return this.#list[low]!
  }

  #open(listed: Listed): SealedSegment {
    const { firstSeq } = listed
    const known = this.#opened.touch(firstSeq)
    if (known !== undefined) return known
    const segment = SealedSegment.open(this.#options, firstSeq)
    this.#opened.set(firstSeq, segment)?.close()
    return segment
  }

  /** An open segment with an index that names it. */
  #found(listed: Listed): SealedSegment {
    const segment = this.#open(listed)
    if (!segment.isIndexed && !segment.findIndex()) segment.rebuildIndex()
    return segment
  }

  /**
   * An open segment with an index whose CRC has been verified: that reads the whole index, once while it is open. The
   * check does not carry over to a file opened later.
   */
  #indexed(listed: Listed): SealedSegment {
    const segment = this.#found(listed)
    segment.repairIndex()
    return segment
  }
}

/** How many segments one list keeps open, given how many descriptors the process may have. */
function openSegmentsMax(descriptors: number): number {
  const share = Math.floor(descriptors / descriptorsPerSegment)
  return Math.min(openSegmentsCeiling, Math.max(openSegmentsMin, share))
}

/** Descriptors that all lists of a board with one shard need together. */
export function descriptorsForSegments(descriptors: number): number {
  return 2 * listsMax * openSegmentsMax(descriptors)
}

function ownFrameAt(place: FramePlace): Frame {
  return readFrameAt(place.file, place)
}
