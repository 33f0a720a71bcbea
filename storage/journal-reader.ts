/**
 * A read-only view of a live journal from another thread or process.
 *
 * It reads only as far as `advance` has allowed: later frames may be half written or may still be rolled back. It
 * discovers new segments, and the indexes of newly sealed ones, on its own.
 */
import { Damage, type Disk, type DiskFile } from './disk.ts'
import { FOOTER, type FoundFrame, type Frame, faultText, KEY_BYTES } from './frame.ts'
import { FrameWindow, frameBytesUsual, windowBytes } from './frame-window.ts'
import { LiveIndex } from './live-index.ts'
import { type FramePlace, gapBytesMax, NearbyReads } from './nearby-reads.ts'
import { scanFrames } from './scan.ts'
import { type ScanPlace, SealedSegments } from './sealed-segments.ts'
import { listSegments, readSegmentHeader, type SegmentHeader, segmentPath } from './segment.ts'

type Tail = {
  readonly file: DiskFile
  readonly live: LiveIndex
  readonly window: FrameWindow
  /** From the segment's header. */
  readonly seed: number
}

/** The id of the journal in a directory; undefined if there is no journal yet, or its first segment has no valid header. */
export function journalIdIn(disk: Disk, directory: string): Buffer | undefined {
  const first = disk.fileExists(directory) ? listSegments(disk, directory, 'log')[0] : undefined
  if (first === undefined) return undefined
  const file = disk.openFile(segmentPath(directory, first), 'read')
  try {
    return readSegmentHeader(file)?.journalId
  } finally {
    file.close()
  }
}

export class JournalReader {
  readonly #directory: string
  readonly #disk: Disk
  readonly #sealed: SealedSegments
  /** The segment that was growing when last read; opened when one of its frames is requested. */
  #tail: Tail | undefined
  /** Positions of its frames, as far as they have been read. Retained while the file is closed, because frames never move. */
  #live: LiveIndex | undefined
  #through = 0
  readonly #nearby = new NearbyReads()
  readonly #readNearby = (place: FramePlace): Frame => this.#nearby.read(place)

  /** Opens the existing segments. Nothing can be read until `advance` is called. Throws ENOENT. */
  static open(disk: Disk, directory: string): JournalReader {
    return new JournalReader(disk, directory)
  }

  private constructor(disk: Disk, directory: string) {
    this.#directory = directory
    this.#disk = disk
    this.#sealed = new SealedSegments({ disk, directory })
    const firsts = listSegments(disk, directory, 'log')
    for (const [i, next] of firsts.slice(1).entries()) this.#sealed.add(firsts[i]!, next - firsts[i]!)
  }

  /** The writer has announced that all seqs up to `through` are durable. A smaller number than before is ignored. */
  advance(through: number): void {
    if (through > this.#through) this.#through = through
  }

  /** Highest seq that may be read. */
  get through(): number {
    return this.#through
  }

  /** One frame, or undefined if there is none up to `through`. Adjacent frames may share memory. Throws Damage. */
  read(seq: number): Frame | undefined {
    if (!Number.isSafeInteger(seq) || seq < 1 || seq > this.#through) return undefined
    const tail = this.#reach(seq)
    if (!tail?.live.has(seq)) return this.#sealed.read(seq, this.#readNearby)
    const { file, live, seed } = tail
    const [offset, end] = [live.offsetOf(seq), live.offsetOf(seq + 1)]
    return this.#nearby.read({ file, offset, end, limit: live.end, seq, seed })
  }

  /** Hints that these frames will be read next: see DiskFile.prefetch. */
  prefetch(seqs: readonly number[]): void {
    this.#sealed.prefetch(seqs, gapBytesMax)
  }

  /** Like Journal.scan: `from` to `through` inclusive; payloads are views that the next step overwrites. Throws Damage. */
  *scan(from: number, through: number = Infinity): Generator<FoundFrame, void, undefined> {
    const last = Math.min(through, this.#through)
    let seq = Math.max(1, from)
    while (seq <= last) {
      if (seq > this.#sealed.nextSeq) this.#reach(seq - 1)
      const known = Math.max(this.#sealed.nextSeq, this.#live?.nextSeq ?? 0) - 1
      if (seq > known) {
        yield* this.#follow(last)
        return
      }
      const end = Math.min(last, known)
      yield* scanFrames({ disk: this.#disk, placeOf: (each) => this.#placeOf(each), from: seq, through: end })
      seq = end + 1
    }
  }

  /** Reads on from the first frame not read here yet. Each frame is decoded once, for the index and the caller. */
  *#follow(last: number): Generator<FoundFrame, void, undefined> {
    let tail = this.#tail ?? this.#openTail()
    let seq = tail.live.nextSeq
    let window = windowOver(tail, last)
    while (seq <= last) {
      const { live, file } = tail
      // Between two steps, a read of a later frame has already indexed these.
      if (seq < live.nextSeq || this.#tail !== tail) {
        yield* this.scan(seq, last)
        return
      }
      const frame = frameAt(window, live, file)
      if (frame.type === FOOTER) {
        tail = this.#pass(tail)
        window = windowOver(tail, last)
        continue
      }
      live.add(frame.frameBytes, frame.flags, frame.payload)
      seq++
      yield frame
    }
  }

  #placeOf(seq: number): ScanPlace {
    const tail = this.#reach(seq)
    if (!tail?.live.has(seq)) return this.#sealed.placeOf(seq)
    const { file, live, seed } = tail
    return { path: file.path, offset: live.offsetOf(seq), end: live.end, lastSeq: live.nextSeq - 1, seed }
  }

  /** Newest seq, up to the limit set by `advance`, of a KEYED frame with this 16-byte key. */
  findKey(key: Uint8Array): number | undefined {
    if (key.length !== KEY_BYTES) throw new RangeError(`a key must have ${KEY_BYTES} bytes, not ${key.length}`)
    const newest = this.#reach(this.#through)?.live.find(key)
    return newest ?? this.#sealed.findKey(Buffer.from(key), this.#through)
  }

  /**
   * The writer has rewritten segments, possibly including the one that was just growing: closes all open files and
   * discards cached contents.
   */
  reopen(): void {
    this.#tail?.file.close()
    this.#tail = undefined
    this.#sealed.reopen()
    this.#nearby.forget()
  }

  close(): void {
    this.reopen()
  }

  /** Scans forward until `seq` (durable) is in a sealed segment or in the tail, which is returned. */
  #reach(seq: number): Tail | undefined {
    if (seq < this.#sealed.nextSeq) return this.#tail
    let tail = this.#tail ?? this.#openTail()
    if (seq < tail.live.nextSeq) return tail
    // The window may have read these bytes before they were written.
    tail.window.reset(tail.file.size())
    while (tail.live.nextSeq <= seq) {
      const { live, file } = tail
      const frame = frameAt(tail.window, live, file)
      if (frame.type === FOOTER) tail = this.#pass(tail)
      else live.add(frame.frameBytes, frame.flags, frame.payload)
    }
    return tail
  }

  /** The tail was sealed: its index serves it from now on, and the next segment becomes the tail. */
  #pass(tail: Tail): Tail {
    this.#sealed.add(tail.live.firstSeq, tail.live.count)
    tail.file.close()
    this.#tail = undefined
    return this.#openTail()
  }

  #openTail(): Tail {
    const firstSeq = this.#sealed.nextSeq
    const path = segmentPath(this.#directory, firstSeq)
    if (!this.#disk.fileExists(path)) {
      throw new Damage({ path, offset: 0, expected: `the segment with durable frame ${firstSeq}`, found: 'no file' })
    }
    const file = this.#disk.openFile(path, 'read')
    try {
      const { seed } = headerOf(file, firstSeq)
      if (this.#live?.firstSeq !== firstSeq) this.#live = new LiveIndex(firstSeq)
      this.#tail = { file, live: this.#live, window: new FrameWindow(file, { limit: file.size(), seed }), seed }
      return this.#tail
    } catch (error) {
      file.close()
      throw error
    }
  }
}

/** The header of the segment that begins with this frame. Throws Damage, NewerFormat, or a disk error. */
function headerOf(file: DiskFile, firstSeq: number): SegmentHeader {
  const header = readSegmentHeader(file)
  if (header?.firstSeq === firstSeq) return header
  const expected = `the header of segment ${firstSeq}`
  throw new Damage({ path: file.path, offset: 0, expected, found: 'a different one or none' })
}

/** A window sized for what was appended after the indexed frames, through frame `last`. */
function windowOver({ file, live, seed }: Tail, last: number): FrameWindow {
  const size = file.size()
  const usual = Math.max(1, last - live.nextSeq + 1) * frameBytesUsual
  const bytes = Math.max(1, Math.min(windowBytes, size - live.end, usual))
  return new FrameWindow(file, { limit: size, seed, bytes })
}

/** The frame after the last indexed one; the writer has announced that it is durable. */
function frameAt(window: FrameWindow, live: LiveIndex, file: DiskFile): FoundFrame {
  const frame = window.at(live.end)
  if (frame.frameBytes !== undefined && frame.seq === live.nextSeq) return frame
  const found = frame.frameBytes === undefined ? faultText(frame) : `frame ${frame.seq}`
  throw new Damage({ path: file.path, offset: live.end, expected: `durable frame ${live.nextSeq}`, found })
}
