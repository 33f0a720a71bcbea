/**
 * One segment: an append-only file of frames, until a footer seals it. In an unsealed segment the last frame may be
 * followed by up to 1 MiB of zeros, preallocated for the next frames.
 *
 *   <first seq, 20 digits>.log   header | frame | frame | ... | footer frame once sealed
 *   <first seq, 20 digits>.idx   index of a sealed segment (sealed-index.ts), derived
 *
 * The header is one block of 64 bytes, little-endian, durable before any frame is written after it:
 *
 *   offset  bytes  field
 *        0      3  magic           "BSJ"
 *        3      1  version         3 (as in frame.ts), 2 (no packed frames), 1 (also CRCs without journal id); later ones keep the crc
 *        4     16  journal id      random, the same in all segments of a journal
 *       20      8  first seq       of the frames after it; equal to the file's name
 *       28     32  previous chain  chain hash of the segment before (chain.ts)
 *       60      4  crc             CRC-32 (IEEE) of bytes 0..60
 *
 * The footer is a frame of type 255 whose seq is the first seq of the next segment (it takes no number of its own):
 *
 *        0      4  count           frames in the segment without the footer
 *        4     32  chain           chain hash of the segment
 */
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { CHAIN_BYTES } from './chain.ts'
import { Damage, type Disk, type DiskFile, failedAt, NewerFormat } from './disk.ts'
import {
  decodeFrame,
  encodeFrame,
  FOOTER,
  FRAME_BYTES_LIMIT,
  FRAME_HEADER_BYTES,
  type Frame,
  faultText,
  readSeq,
  writeSeq,
} from './frame.ts'

export const SEGMENT_HEADER_BYTES = 64
export const JOURNAL_ID_BYTES = 16
/** The whole footer frame. */
export const FOOTER_BYTES = FRAME_HEADER_BYTES + 4 + CHAIN_BYTES
/** Frame positions are stored in 32 bits. */
export const SEGMENT_BYTES_LIMIT = 2 ** 32 - 1

export type SegmentHeader = {
  readonly journalId: Buffer
  readonly firstSeq: number
  readonly previousChain: Buffer
  /** The initial value for the CRCs of its frames. */
  readonly seed: number
  /** Written by an older release, whose frames do not record another journal's progress. */
  readonly isOld: boolean
}
type SegmentFooter = { readonly count: number; readonly chain: Buffer }

const magic = Buffer.from('BSJ', 'latin1')
const versionAt = magic.length
const version = 3
const versionWithoutSeed = 1
const crcAt = 60
const digits = 20

export function segmentPath(directory: string, firstSeq: number): string {
  return join(directory, `${String(firstSeq).padStart(digits, '0')}.log`)
}

export function indexPath(directory: string, firstSeq: number): string {
  return join(directory, `${String(firstSeq).padStart(digits, '0')}.idx`)
}

/** First seqs of all segments in a directory, ascending; `kind` chooses the segments or their indexes. */
export function listSegments(disk: Disk, directory: string, kind: 'log' | 'idx'): number[] {
  const names = disk.listFiles(directory).filter((name) => name.length === digits + 4 && name.endsWith(`.${kind}`))
  return names.filter((name) => /^\d{20}\./.test(name)).map((name) => Number(name.slice(0, digits)))
}

/** The CRC seed of all new segments of this journal. */
export function seedOf(journalId: Uint8Array): number {
  return crc32(journalId)
}

export function encodeSegmentHeader(header: Omit<SegmentHeader, 'seed' | 'isOld'>): Buffer {
  const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES)
  magic.copy(bytes)
  bytes[versionAt] = version
  header.journalId.copy(bytes, 4)
  writeSeq(bytes, header.firstSeq, 20)
  header.previousChain.copy(bytes, 28)
  bytes.writeUInt32LE(crc32(bytes.subarray(0, crcAt)), crcAt)
  return bytes
}

/** The header of a segment file, or undefined if the bytes are not one. Throws NewerFormat for a valid header of a later version. */
export function readSegmentHeader(file: DiskFile): SegmentHeader | undefined {
  const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES)
  return file.readAt(bytes, 0) < SEGMENT_HEADER_BYTES ? undefined : headerOf(bytes, file.path)
}

/** The header in the first bytes of the segment file at `path`; undefined if they are not one. Throws NewerFormat as above. */
export function headerOf(bytes: Buffer, path: string): SegmentHeader | undefined {
  if (bytes.length < SEGMENT_HEADER_BYTES) return undefined
  const found = bytes[versionAt]!
  if (!bytes.subarray(0, versionAt).equals(magic) || found < versionWithoutSeed) return undefined
  if (crc32(bytes.subarray(0, crcAt)) !== bytes.readUInt32LE(crcAt)) return undefined
  if (found > version) throw new NewerFormat(path, `is a segment of version ${found}`)
  const journalId = bytes.subarray(4, 20)
  const seed = found === versionWithoutSeed ? 0 : seedOf(journalId)
  return {
    journalId,
    firstSeq: readSeq(bytes, 20),
    previousChain: bytes.subarray(28, crcAt),
    seed,
    isOld: found < version,
  }
}

/** What a segment must follow: undefined fields are not known yet. */
export type Predecessor = { readonly journalId: Buffer | undefined; readonly nextSeq: number; readonly chain: Buffer }

/** Throws Damage unless the header says that this segment follows `before`. */
export function checkSegmentHeader(
  file: Pick<DiskFile, 'path'>,
  header: SegmentHeader | undefined,
  before: Predecessor,
): SegmentHeader {
  if (!header) throw new Damage({ path: file.path, offset: 0, expected: 'a segment header', found: 'no valid one' })
  const differs = (offset: number, expected: string, found: string): Damage =>
    new Damage({ path: file.path, offset, expected, found })
  if (before.journalId && !before.journalId.equals(header.journalId)) {
    throw differs(4, `journal ${before.journalId.toString('hex')}`, header.journalId.toString('hex'))
  }
  if (header.firstSeq !== before.nextSeq) throw differs(20, `first seq ${before.nextSeq}`, String(header.firstSeq))
  if (!header.previousChain.equals(before.chain)) {
    throw differs(28, `previous chain hash ${before.chain.toString('hex')}`, header.previousChain.toString('hex'))
  }
  return header
}

/** `nextSeq`: the first seq after the segment. */
export function encodeFooter(footer: SegmentFooter, nextSeq: number, seed: number): Buffer {
  const payload = Buffer.alloc(4 + CHAIN_BYTES)
  payload.writeUInt32LE(footer.count)
  footer.chain.copy(payload, 4)
  const bytes = Buffer.alloc(FOOTER_BYTES)
  encodeFrame(bytes, 0, { type: FOOTER, flags: 0, payload }, { seq: nextSeq, durableSeq: nextSeq - 1, seed })
  return bytes
}

/** The footer in a frame of type FOOTER, or undefined if it is not a valid one. */
export function footerOf(frame: Frame): SegmentFooter | undefined {
  if (frame.type !== FOOTER || frame.payload.length !== 4 + CHAIN_BYTES) return undefined
  return { count: frame.payload.readUInt32LE(0), chain: Buffer.from(frame.payload.subarray(4)) }
}

/** The footer at the end of a segment of `size` bytes, or undefined if the segment is not sealed. */
export function readFooter(
  file: DiskFile,
  size: number,
  { firstSeq, seed }: Pick<SegmentHeader, 'firstSeq' | 'seed'>,
): SegmentFooter | undefined {
  if (size < SEGMENT_HEADER_BYTES + FOOTER_BYTES) return undefined
  const bytes = Buffer.alloc(FOOTER_BYTES)
  const filled = file.readAt(bytes, size - FOOTER_BYTES)
  const frame = decodeFrame(bytes, 0, filled, seed)
  if (frame.frameBytes !== FOOTER_BYTES) return undefined
  const footer = footerOf(frame)
  return footer && frame.seq === firstSeq + footer.count ? footer : undefined
}

/** Reads one frame at a known position, with one read into its own memory. Throws Damage, including FailedRead. */
export function readFrameAt(file: DiskFile, place: { offset: number; end: number; seq: number; seed: number }): Frame {
  const expectedBytes = place.end - place.offset
  if (expectedBytes <= FRAME_HEADER_BYTES || expectedBytes > FRAME_BYTES_LIMIT) {
    const found = `an invalid length of ${expectedBytes} bytes`
    throw new Damage({ path: file.path, offset: place.offset, expected: `frame ${place.seq}`, found, frame: place.seq })
  }
  const bytes = Buffer.allocUnsafe(expectedBytes)
  const filled = filledAt(file, bytes, place)
  const frame = decodeFrame(bytes, 0, filled, place.seed)
  if (frame.frameBytes === bytes.length && frame.seq === place.seq) return frame
  const found = frame.frameBytes === undefined ? faultText(frame) : `frame ${frame.seq}`
  throw new Damage({ path: file.path, offset: place.offset, expected: `frame ${place.seq}`, found, frame: place.seq })
}

function filledAt(file: DiskFile, bytes: Buffer, { offset, seq }: { offset: number; seq: number }): number {
  try {
    return file.readAt(bytes, offset)
  } catch (error) {
    throw failedAt({ path: file.path, offset, expected: `frame ${seq}`, frame: seq }, error)
  }
}
