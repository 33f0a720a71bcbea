/**
 * Copies journals while their owners append to them, for a backup.
 *
 * The last frame of a copy is chosen before the first byte is copied. A segment's contents up to that frame no longer
 * change, except that compaction replaces texts with stubs of the same length, in a new file under the same name. So
 * the copy is consistent however long it takes.
 */
import { Damage, type Disk, type DiskFile } from './disk.ts'
import { FOOTER } from './frame.ts'
import { FrameWindow } from './frame-window.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, segmentPath } from './segment.ts'
import { walkSegment } from './walk.ts'

const copyBytes = 1024 * 1024
/** The end of a journal is polled often, and there is little to read each time. */
const endBytes = 16 * 1024
/** A poll takes microseconds and a shard's turn milliseconds; needing more polls than this means something else is wrong. */
const looksMax = 200_000

type Newest = { readonly file: DiskFile; readonly window: FrameWindow; position: number }

/** Follows the end of a journal that another process is writing. */
export class JournalEnd {
  readonly #disk: Disk
  readonly #directory: string
  #newest: Newest | undefined
  #nextSeq = 1

  constructor(disk: Disk, directory: string) {
    this.#disk = disk
    this.#directory = directory
    const firsts = disk.fileExists(directory) ? listSegments(disk, directory, 'log') : []
    // The newest file may have no header yet.
    for (const firstSeq of firsts.reverse()) if (this.#open(firstSeq)) break
  }

  /** The newest complete frame seen so far; 0 if none. */
  get seq(): number {
    return this.#nextSeq - 1
  }

  /** Reads on. False if nothing was written since the last call. */
  advance(): boolean {
    const before = this.#nextSeq
    if (this.#newest === undefined && !this.#open(this.#nextSeq)) return false
    this.#newest!.window.reset(this.#newest!.file.size())
    for (;;) {
      const { window, position } = this.#newest!
      const frame = window.at(position)
      if (frame.frameBytes === undefined || frame.seq !== this.#nextSeq) return this.#nextSeq !== before
      if (frame.type === FOOTER) {
        if (!this.#open(this.#nextSeq)) return this.#nextSeq !== before
        continue
      }
      this.#nextSeq++
      this.#newest!.position += frame.frameBytes
    }
  }

  close(): void {
    this.#newest?.file.close()
    this.#newest = undefined
  }

  /** False if the segment does not exist yet or is still being created. */
  #open(firstSeq: number): boolean {
    const path = segmentPath(this.#directory, firstSeq)
    if (!this.#disk.fileExists(path)) return false
    const file = this.#disk.openFile(path, 'read')
    const header = readSegmentHeader(file)
    if (header?.firstSeq !== firstSeq) {
      file.close()
      return false
    }
    this.close()
    const window = new FrameWindow(file, { limit: file.size(), seed: header.seed, bytes: endBytes })
    this.#newest = { file, window, position: SEGMENT_HEADER_BYTES }
    this.#nextSeq = firstSeq
    return true
  }
}

/**
 * Where all of these journals ended at one moment, so that every included frame's causes are included too. Undefined if
 * they were never all idle during the polls.
 */
export function consistentEnds(journals: readonly JournalEnd[]): number[] | undefined {
  for (let looks = 0; looks < looksMax; looks++) {
    const moved = journals.filter((journal) => journal.advance())
    if (moved.length === 0 || journals.length === 1) return journals.map(({ seq }) => seq)
  }
  return undefined
}

/** First seqs of the segments that hold the frames up to this one. */
export function segmentsThrough(disk: Disk, directory: string, through: number): number[] {
  return listSegments(disk, directory, 'log').filter((firstSeq) => firstSeq <= through)
}

export type SegmentCopy = {
  readonly disk: Disk
  readonly from: string
  readonly to: string
  /** The last frame to copy. */
  readonly through: number
}

/** Copies one segment, synced. True if the copy is sealed and complete, so that only compaction will change the original. Throws Damage. */
export function copySegment({ disk, from, to, through }: SegmentCopy): boolean {
  copyFile(disk, from, to)
  const file = disk.openFile(to, 'write')
  try {
    const header = readSegmentHeader(file)
    if (header === undefined)
      throw new Damage({ path: from, offset: 0, expected: 'a segment header', found: 'no valid one' })
    const { live, stop } = walkSegment(file, header, file.size())
    const last = live.nextSeq - 1
    const isWhole = stop.kind === 'sealed' && last <= through
    // A sealed segment is followed by others; the active one must hold everything seen in it.
    if (!isWhole && last < through)
      throw new Damage({ path: from, offset: live.end, expected: `frame ${live.nextSeq}`, found: 'none' })
    const end = isWhole ? stop.end : last > through ? live.offsetOf(through + 1) : live.end
    if (end < file.size()) {
      file.truncate(end)
      file.sync()
    }
    return isWhole
  } finally {
    file.close()
  }
}

/** Copies a file's current bytes into a new one, synced. The copy's name is durable after `syncDirectory`. */
export function copyFile(disk: Disk, from: string, to: string): void {
  const source = disk.openFile(from, 'read')
  try {
    const target = disk.openFile(to, 'create')
    try {
      const chunk = Buffer.allocUnsafe(copyBytes)
      for (let at = 0; ; ) {
        const count = source.readAt(chunk, at)
        target.writeAt(chunk.subarray(0, count), at)
        at += count
        if (count < chunk.length) break
      }
      target.sync()
    } finally {
      target.close()
    }
  } finally {
    source.close()
  }
}
