/**
 * One open sealed segment: its facts, its frames by seq, its keys.
 *
 * Its index file is a cache. An index that is missing, broken, unreadable, or belongs to another segment is rebuilt
 * from the frames.
 */
import { BlockCache } from './block-cache.ts'
import { Damage, type Disk, type DiskFile, failedAt, isUnreadable, unlessUnreadable } from './disk.ts'
import type { FramePlace } from './nearby-reads.ts'
import { type ByteSource, buildIndex, offsetBlockBytes, type SealedFacts, SealedIndex } from './sealed-index.ts'
import {
  FOOTER_BYTES,
  indexPath,
  readFooter,
  readSegmentHeader,
  SEGMENT_HEADER_BYTES,
  type SegmentHeader,
  segmentPath,
} from './segment.ts'
import { sealedDamage, walkSegment } from './walk.ts'

export type SealedOptions = {
  readonly disk: Disk
  readonly directory: string
  /** Frame positions cached for all segments of a journal together. If absent, each segment has its own cache. */
  readonly blocks?: BlockCache
  /** Called with the bytes of an index that had to be rebuilt. Readers omit it: they hold the rebuilt index only in memory. */
  readonly keepIndex?: (path: string, bytes: Buffer) => void
}

const ownBlocksMax = 64

export class SealedSegment {
  readonly file: DiskFile
  readonly header: SegmentHeader
  readonly facts: SealedFacts
  readonly #options: SealedOptions
  readonly #blocks: BlockCache
  #indexFile: DiskFile | undefined
  #index: SealedIndex | undefined
  #isIntact = false

  private constructor(options: SealedOptions, file: DiskFile, header: SegmentHeader, facts: SealedFacts) {
    this.#options = options
    this.#blocks = options.blocks ?? new BlockCache(ownBlocksMax, offsetBlockBytes)
    this.file = file
    this.header = header
    this.facts = facts
  }

  /**
   * Reads header and footer only. Throws Damage with the first bad position if the segment is not properly sealed,
   * including FailedRead.
   */
  static open(options: SealedOptions, firstSeq: number): SealedSegment {
    const path = segmentPath(options.directory, firstSeq)
    let file: DiskFile | undefined
    try {
      file = options.disk.openFile(path, 'read')
      const header = readSegmentHeader(file)
      if (header?.firstSeq !== firstSeq) {
        const found = header ? `first seq ${header.firstSeq}` : 'no valid one'
        throw new Damage({ path: file.path, offset: 0, expected: `the header of segment ${firstSeq}`, found })
      }
      const segmentBytes = file.size()
      const footer = readFooter(file, segmentBytes, header)
      if (!footer) throw missingFooter(file, header, segmentBytes)
      const { count, chain } = footer
      return new SealedSegment(options, file, header, {
        journalId: header.journalId,
        firstSeq,
        count,
        segmentBytes,
        chain,
      })
    } catch (error) {
      file?.close()
      throw failedAt({ path, offset: 0, expected: `the header and the footer of segment ${firstSeq}` }, error)
    }
  }

  get lastSeq(): number {
    return this.facts.firstSeq + this.facts.count - 1
  }

  /** Opens the index by its head. True if it names this segment; its CRC is not checked. */
  findIndex(): boolean {
    const path = indexPath(this.#options.directory, this.facts.firstSeq)
    if (!this.#options.disk.fileExists(path)) return false
    const file = unlessUnreadable(() => this.#options.disk.openFile(path, 'read'))
    if (file === undefined) return false
    try {
      this.#index = unlessUnreadable(() => SealedIndex.open(file, this.facts, this.#blocks))
    } finally {
      if (this.#index === undefined) file.close()
    }
    if (this.#index !== undefined) this.#indexFile = file
    return this.#index !== undefined
  }

  /** True once its CRC has been verified, or it has been rebuilt. */
  get isKnownIntact(): boolean {
    return this.#isIntact
  }

  /** Reads the whole index and verifies its CRC, once; rebuilds an index that is not intact. Needs the index. Throws Damage. */
  repairIndex(): void {
    if (this.#isIntact) return
    // Positions cached earlier may come from a bad index.
    this.#blocks.clear()
    this.#isIntact = unlessUnreadable(() => this.#index!.isIntact()) === true
    if (!this.#isIntact) this.rebuildIndex()
  }

  /** Rebuilds the index from the frames. Throws Damage if they are not as they were written. */
  rebuildIndex(): void {
    this.#indexFile?.close()
    this.#indexFile = undefined
    this.#index = undefined
    this.#isIntact = false
    this.#blocks.clear()
    const walk = walkSegment(this.file, this.header, this.facts.segmentBytes)
    const damage = sealedDamage(this.file.path, walk, this.facts.segmentBytes)
    if (damage) throw damage
    const bytes = buildIndex(walk.live, this.facts)
    this.#options.keepIndex?.(indexPath(this.#options.directory, this.facts.firstSeq), bytes)
    this.#index = SealedIndex.open(inMemory(bytes), this.facts, this.#blocks)
    this.#isIntact = true
  }

  /** True once `findIndex` or `rebuildIndex` has provided it. */
  get isIndexed(): boolean {
    return this.#index !== undefined
  }

  /** Where a frame is. Needs the index. Throws Damage if no frame can be there. */
  framePlace(seq: number): FramePlace {
    const { offset, end } = this.#ask((index) => index.placeOf(seq))
    const { segmentBytes } = this.facts
    if (offset >= SEGMENT_HEADER_BYTES && offset < end && end <= segmentBytes - FOOTER_BYTES)
      return { file: this.file, offset, end, limit: segmentBytes, seq, seed: this.header.seed }
    throw new Damage({ path: this.file.path, offset, expected: `frame ${seq}`, found: 'an invalid position' })
  }

  /**
   * Hints that frames of this segment will be read next, in this order; frames at most `gapBytes` apart are prefetched
   * together. Needs the index. Throws as `framePlace` does.
   */
  prefetch(seqs: readonly number[], gapBytes: number): void {
    this.#index!.prefetch(seqs)
    let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const seq of seqs) {
      const { offset, end } = this.framePlace(seq)
      if (offset > to + gapBytes || end < from - gapBytes) this.file.prefetch(offset, end - offset)
      ;[from, to] = [offset, end]
    }
  }

  /** Newest seq of this segment with the 16-byte key. Needs the index. */
  findKey(key: Buffer): number | undefined {
    return this.#ask((index) => index.find(key))
  }

  /** Position of a frame. Without the index only the first one is known. */
  offsetOf(seq: number): number {
    return seq === this.facts.firstSeq ? SEGMENT_HEADER_BYTES : this.#ask((index) => index.placeOf(seq)).offset
  }

  #ask<Answer>(ask: (index: SealedIndex) => Answer): Answer {
    try {
      return ask(this.#index!)
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.rebuildIndex()
      return ask(this.#index!)
    }
  }

  close(): void {
    this.#indexFile?.close()
    this.file.close()
  }
}

// The end of the file does not say where the damage begins; the first bad frame does.
function missingFooter(file: DiskFile, header: SegmentHeader, size: number): Damage {
  const walk = walkSegment(file, header, size)
  const damage = sealedDamage(file.path, walk, size)
  return (
    damage ?? new Damage({ path: file.path, offset: walk.live.end, expected: 'a footer', found: 'a different one' })
  )
}

function inMemory(bytes: Buffer): ByteSource {
  return {
    size: () => bytes.length,
    readAt: (into, position) => bytes.copy(into, 0, position, position + into.length),
    prefetch: () => {},
  }
}
