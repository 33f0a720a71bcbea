/**
 * One frame: how a record is laid out on disk, so that a reader can tell a complete frame from any other bytes.
 *
 * All numbers are little-endian. Each frame can be checked on its own.
 *
 *   offset  bytes  field
 *        0      2  magic        ff b5 (ff never occurs in UTF-8, so plain text cannot imitate a frame)
 *        2      1  type         1..254 for the owner of the journal, 255 = footer of a segment, 0 is illegal
 *        3      1  flags        KEYED, STUB, MORE, the rest for the owner of the journal
 *        4      4  length       of the payload, 1 or more
 *        8      8  seq          number of the frame in the journal, from 1, without gaps
 *       16      8  durable seq  highest seq known to be on disk when this frame was written, or packed, see below
 *       24      4  crc          CRC-32 (IEEE polynomial, zlib.crc32) of the journal's id, bytes 0..24 and the payload
 *       28      n  payload
 *
 * If the highest bit of the durable seq is set, the field holds two numbers. Bits 40..62 are the seq minus the durable
 * seq. Bits 0..39 are the peer seq: the newest frame known to be on disk, when this frame was written, of the other
 * journal that this one is checked against. Such frames exist only in segments of version 3 and later.
 *
 * The CRC detects accidental damage only; the chain hash (chain.ts) and the Merkle tree above detect tampering. It
 * includes the id because recovery searches torn bytes for frames: senders of payloads do not know the id, so they
 * cannot embed a valid frame in one. Segments of version 1 (segment.ts) have CRCs without the id: their seed is 0.
 */
import { crc32 } from 'node:zlib'

export const FRAME_HEADER_BYTES = 28

/** The format's own limit on header plus payload: a longer length field is not a frame. */
export const FRAME_BYTES_LIMIT = 64 * 1024 * 1024

/** Flag: the payload begins with a 16-byte key that can be looked up in the index of a sealed segment. */
export const KEYED = 0x80

/**
 * Flag: this frame has been replaced by a stub. The payload begins with the 32-byte SHA-256 of the original payload, so
 * the chain hash still holds; the key of a KEYED stub follows the digest.
 */
export const STUB = 0x40

/**
 * Flag: the next frame belongs to the same decision. If a journal ends with this flag set, the decision is incomplete
 * and does not count (whole-decisions.ts).
 */
export const MORE = 0x20

export const KEY_BYTES = 16
export const DIGEST_BYTES = 32

/** Type of the frame that seals a segment (see segment.ts). */
export const FOOTER = 255

export type Frame = { readonly seq: number; readonly type: number; readonly flags: number; readonly payload: Buffer }
export type NewFrame = { readonly type: number; readonly flags: number; readonly payload: Uint8Array }

/** A decoded frame; `frameBytes` counts header and payload. */
export type FoundFrame = Frame & {
  readonly durableSeq: number
  /** Newest frame of the other journal that was durable when this one was written; 0 if unknown. */
  readonly peerSeq: number
  readonly frameBytes: number
}

/** Why bytes are not a frame. `short`: the frame would extend beyond the available bytes. */
type FrameFault = 'short' | 'magic' | 'length' | 'crc'
export type NoFrame = { readonly frameBytes: undefined; readonly fault: FrameFault; readonly needs: number }

const faultTexts: Readonly<Record<FrameFault, string>> = {
  short: 'an incomplete frame',
  magic: 'a frame with a bad magic number',
  length: 'a frame with a bad length',
  crc: 'a frame with a bad CRC',
}

/** Names what was found in place of a frame, for an error. */
export function faultText({ fault }: NoFrame): string {
  return faultTexts[fault]
}

const magic0 = 0xff
const magic1 = 0xb5
const crcOffset = 24
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})
const twoTo32 = 2 ** 32
const isPacked = 0x80
const distanceMax = 2 ** 23 - 1
const peerSeqMax = 2 ** 40 - 1

/** For searching unknown bytes for frames. */
export const FRAME_MAGIC: Uint8Array = Uint8Array.of(magic0, magic1)

/** Header fields. `peerSeq` 0 or absent: nothing known about another journal. `seed`: from the segment's header. */
type Place = { readonly seq: number; readonly durableSeq: number; readonly peerSeq?: number; readonly seed: number }

/**
 * Writes one frame into `into` at `at` and returns the position after it. The caller must have reserved
 * FRAME_HEADER_BYTES + payload bytes and checked the values with `frameRefusal`.
 */
export function encodeFrame(
  into: Buffer,
  at: number,
  frame: NewFrame,
  { seq, durableSeq, peerSeq = 0, seed }: Place,
): number {
  const { payload } = frame
  into[at] = magic0
  into[at + 1] = magic1
  into[at + 2] = frame.type
  into[at + 3] = frame.flags
  into.writeUInt32LE(payload.length, at + 4)
  writeSeq(into, seq, at + 8)
  writeKnown(into, seq - durableSeq, peerSeq, durableSeq, at + 16)
  const crc = crc32(payload, headerCrc(into, at, seed))
  into.writeUInt32LE(crc, at + crcOffset)
  into.set(payload, at + FRAME_HEADER_BYTES)
  return at + FRAME_HEADER_BYTES + payload.length
}

/**
 * Reads the frame at `at` of `bytes` (which end at `limit`) and checks magic, length and CRC. The payload is a view of
 * `bytes`. If there is no frame, `needs` says how many bytes from `at` are required to decide. `seed`: from the
 * segment's header.
 */
export function decodeFrame(bytes: Buffer, at: number, limit: number, seed: number): FoundFrame | NoFrame {
  if (at + FRAME_HEADER_BYTES > limit) return refuse('short', FRAME_HEADER_BYTES)
  if (bytes[at] !== magic0 || bytes[at + 1] !== magic1) return refuse('magic', 0)
  const length = bytes.readUInt32LE(at + 4)
  if (length === 0 || length + FRAME_HEADER_BYTES > FRAME_BYTES_LIMIT) return refuse('length', 0)
  const start = at + FRAME_HEADER_BYTES
  const frameBytes = FRAME_HEADER_BYTES + length
  if (at + frameBytes > limit) return refuse('short', frameBytes)
  const payload = bytes.subarray(start, start + length)
  const crc = crc32(payload, headerCrc(bytes, at, seed))
  if (crc !== bytes.readUInt32LE(at + crcOffset)) return refuse('crc', 0)
  const type = bytes[at + 2]!
  if (type === 0) return refuse('magic', 0)
  const seq = readSeq(bytes, at + 8)
  const isPlain = bytes[at + 23]! < isPacked
  const durableSeq = isPlain ? readSeq(bytes, at + 16) : seq - (bytes.readUIntLE(at + 21, 3) - isPacked * 0x1_00_00)
  const peerSeq = isPlain ? 0 : bytes.readUIntLE(at + 16, 5)
  return { seq, type, flags: bytes[at + 3]!, payload, durableSeq, peerSeq, frameBytes }
}

/** If the distance does not fit, which no batch can cause, the peer seq is left out. */
function writeKnown(into: Buffer, distance: number, peerSeq: number, durableSeq: number, at: number): void {
  if (peerSeq === 0 || peerSeq > peerSeqMax || distance > distanceMax) return writeSeq(into, durableSeq, at)
  into.writeUIntLE(peerSeq, at, 5)
  into.writeUIntLE(isPacked * 0x1_00_00 + distance, at + 5, 3)
}

/** CRC-32 of bytes 0..24 of a header after `seed`. A view and a zlib call for so few bytes would cost three times as much. */
function headerCrc(bytes: Uint8Array, at: number, seed: number): number {
  let crc = ~seed
  for (let i = at; i < at + crcOffset; i++) crc = crcTable[(crc ^ bytes[i]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

function refuse(fault: FrameFault, needs: number): NoFrame {
  return { frameBytes: undefined, fault, needs }
}

/**
 * Why a frame may not be appended, or undefined if it may. `frameBytesMax` counts header and payload; `takesStubs`: the
 * frames are copied from another journal.
 */
export function frameRefusal(frame: NewFrame, frameBytesMax: number, takesStubs = false): string | undefined {
  const { type, flags, payload } = frame
  if (!Number.isInteger(type) || type < 1 || type >= FOOTER) return `type ${type} is not in 1..254`
  if (!Number.isInteger(flags) || flags < 0 || flags > 255) return `flags ${flags} do not fit in one byte`
  if ((flags & STUB) !== 0 && !takesStubs) return 'only compaction may write stubs'
  if (payload.length === 0) return 'the payload is empty'
  if ((flags & STUB) !== 0 && payload.length < DIGEST_BYTES) return 'the stub is shorter than its digest'
  const key = keyOffset(flags)
  if (key !== undefined && payload.length < key + KEY_BYTES) return 'the payload is shorter than its key'
  const bytes = FRAME_HEADER_BYTES + payload.length
  if (bytes > frameBytesMax) return `a frame has ${bytes} bytes; the maximum is ${frameBytesMax}`
  return undefined
}

/** All bytes of a frame, as a view of the buffer in which it was found. */
export function bytesOf({ payload, frameBytes }: FoundFrame): Buffer {
  return Buffer.from(payload.buffer, payload.byteOffset - FRAME_HEADER_BYTES, frameBytes)
}

/** Where the key of a KEYED frame begins in its payload, or undefined when it has none. */
export function keyOffset(flags: number): number | undefined {
  if ((flags & KEYED) === 0) return undefined
  return (flags & STUB) === 0 ? 0 : DIGEST_BYTES
}

/** u64 as a number: exact up to 2^53, which no journal reaches. */
export function readSeq(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at + 4) * twoTo32 + bytes.readUInt32LE(at)
}

export function writeSeq(bytes: Buffer, seq: number, at: number): void {
  bytes.writeUInt32LE(seq >>> 0, at)
  bytes.writeUInt32LE(Math.floor(seq / twoTo32), at + 4)
}
