/**
 * Reads the frames on both sides of damage. After bytes that have changed or that the disk fails to read, it searches
 * for the next whole frame.
 *
 * Only the full check reads past damage. Serving and recovery stop at the first bad byte (recovery.ts, scan.ts).
 */
import { type Disk, type DiskFile, readError, unlessUnreadable } from './disk.ts'
import { FOOTER, type FoundFrame, FRAME_HEADER_BYTES, FRAME_MAGIC, type Frame, readSeq } from './frame.ts'
import { FrameWindow } from './frame-window.ts'
import { listSegments, readSegmentHeader, SEGMENT_HEADER_BYTES, type SegmentHeader, segmentPath } from './segment.ts'
import { describe, isBlank } from './walk.ts'

/** Bytes where frame `seq` should begin but no frame does. */
export type Gap = {
  readonly gap: true
  readonly offset: number
  readonly seq: number
  readonly found: string
  /** The next whole frame of the segment, if any. */
  readonly next: Place | undefined
}

type Place = { readonly offset: number; readonly seq: number }

const searchBytes = 256 * 1024
/** The unit in which reads of a disk fail. */
const sectorBytes = 4096

/**
 * The frames of a segment from a position on, including its footer, and the gaps between them. Payloads are views that
 * the next step overwrites.
 */
export function* framesAround(
  file: DiskFile,
  { firstSeq, seed }: SegmentHeader,
  from: Place = { offset: SEGMENT_HEADER_BYTES, seq: firstSeq },
): Generator<FoundFrame | Gap, void, undefined> {
  const size = file.size()
  const window = new FrameWindow(file, { limit: size, seed })
  let { offset, seq } = from
  while (offset < size) {
    const frame = unlessUnreadable(() => window.at(offset))
    if (frame?.frameBytes !== undefined && frame.seq === seq && frame.durableSeq < seq) {
      yield frame
      if (frame.type === FOOTER) return
      offset += frame.frameBytes
      seq++
      continue
    }
    if (frame?.frameBytes === undefined && unlessUnreadable(() => isBlank(file, offset, size)) === true) return
    const found = frame === undefined ? readError : describe(frame)
    const next = nextFrame(file, window, { offset, seq, size })
    yield { gap: true, offset, seq, found, next }
    if (next === undefined) return
    offset = next.offset
    seq = next.seq
  }
}

/** The first whole frame after a position whose seq is possible there. */
function nextFrame(
  file: DiskFile,
  window: FrameWindow,
  { offset, seq, size }: Place & { readonly size: number },
): Place | undefined {
  const seqMax = seq + (size - offset) / FRAME_HEADER_BYTES
  const chunk = Buffer.allocUnsafe(searchBytes)
  for (let base = offset + 1; base + FRAME_HEADER_BYTES <= size; base += searchBytes - FRAME_HEADER_BYTES + 1) {
    const bytes = chunk.subarray(0, size - base)
    readAround(file, bytes, base)
    for (let at = bytes.indexOf(FRAME_MAGIC); at !== -1; at = bytes.indexOf(FRAME_MAGIC, at + 1)) {
      if (at + FRAME_HEADER_BYTES > bytes.length) break
      // The seq is compared first, so that a payload full of fake headers does not cost a CRC over the remaining bytes for each.
      const found = readSeq(bytes, at + 8)
      if (found <= seq || found > seqMax) continue
      const frame = unlessUnreadable(() => window.at(base + at))
      if (frame?.frameBytes !== undefined && frame.durableSeq < found) return { offset: base + at, seq: found }
    }
  }
  return undefined
}

/** Fills `into`; sectors that the disk fails to read become zeros. */
function readAround(file: DiskFile, into: Buffer, position: number): void {
  if (unlessUnreadable(() => file.readAt(into, position)) !== undefined) return
  for (let at = 0; at < into.length; ) {
    const end = at + sectorBytes - ((position + at) % sectorBytes)
    const sector = into.subarray(at, end)
    if (unlessUnreadable(() => file.readAt(sector, position + at)) === undefined) sector.fill(0)
    at = end
  }
}

/** The readable frames of a whole journal, in a single pass from the first one; damaged or missing frames are skipped. */
export class ReadableFrames {
  readonly #frames: Generator<Frame, void, undefined>
  /** A frame that was read but comes after the last one requested. */
  #held: Frame | undefined

  constructor(disk: Disk, directory: string) {
    this.#frames = framesOf(disk, directory)
  }

  /** Yields frames up to `last` that were not returned yet. The payload is a view that the next step overwrites. */
  *through(last: number): Generator<Frame, void, undefined> {
    for (;;) {
      if (this.#held === undefined) {
        const step = this.#frames.next()
        if (step.done) return
        this.#held = step.value
      }
      if (this.#held.seq > last) return
      const frame = this.#held
      this.#held = undefined
      yield frame
    }
  }

  close(): void {
    this.#frames.return()
  }
}

function* framesOf(disk: Disk, directory: string): Generator<Frame, void, undefined> {
  for (const firstSeq of disk.fileExists(directory) ? listSegments(disk, directory, 'log') : []) {
    const file = unlessUnreadable(() => disk.openFile(segmentPath(directory, firstSeq), 'read'))
    if (file === undefined) continue
    try {
      const header = unlessUnreadable(() => readSegmentHeader(file))
      if (header?.firstSeq !== firstSeq) continue
      for (const found of framesAround(file, header)) if (!('gap' in found) && found.type !== FOOTER) yield found
    } finally {
      file.close()
    }
  }
}
