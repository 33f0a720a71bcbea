/** What the scrubber compares of each kind of file, in small reads that its caller paces. */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { decodeFrame, FOOTER } from '../../storage/frame.ts'
import { HASH_BYTES, nodeHash } from '../../storage/merkle.ts'
import { headerOf, SEGMENT_HEADER_BYTES } from '../../storage/segment.ts'

/** `at`: byte of the file. */
export type Found = { readonly problem: string; readonly at: number }

/** A file that is read from its beginning to the size that it had when it was opened. */
export type Source = {
  readonly path: string
  readonly size: number
  /** The next bytes, fewer than wanted only at the end. */
  readonly next: (wanted: number) => Promise<Buffer>
}

/** Undefined: it is what was written. */
export type Check = (source: Source) => Promise<Found | undefined>

const stepBytes = 64 * 1024

/** Every frame of a sealed segment, by its CRC and its number. */
export const checkSegment: Check = async (source) => {
  const head = await source.next(SEGMENT_HEADER_BYTES)
  const header = headerOf(head, source.path)
  if (header === undefined) return { problem: 'no valid header', at: 0 }
  let seq = header.firstSeq
  let at = SEGMENT_HEADER_BYTES
  let bytes = await source.next(stepBytes)
  for (;;) {
    const frame = decodeFrame(bytes, 0, bytes.length, header.seed)
    if (frame.frameBytes === undefined) {
      const more =
        frame.fault === 'short' ? await source.next(Math.max(stepBytes, frame.needs - bytes.length)) : undefined
      if (more === undefined || more.length === 0) return { problem: `frame ${seq} is not what was written`, at }
      bytes = Buffer.concat([bytes, more])
      continue
    }
    if (frame.seq !== seq) return { problem: `frame ${frame.seq} in the place of frame ${seq}`, at }
    if (frame.type === FOOTER) return undefined
    seq++
    at += frame.frameBytes
    bytes = bytes.subarray(frame.frameBytes)
  }
}

/** The CRC at the end of an index. */
export const checkIndex: Check = async (source) => {
  let crc = 0
  let rest = source.size - 4
  while (rest > 0) {
    const bytes = await source.next(Math.min(stepBytes, rest))
    if (bytes.length === 0) break
    crc = crc32(bytes, crc)
    rest -= bytes.length
  }
  const trailer = await source.next(4)
  return trailer.length === 4 && trailer.readUInt32LE(0) === crc
    ? undefined
    : { problem: 'the index is not what was written', at: 0 }
}

/** Every node of a tree file is the hash of its two children, which stand before it (storage/tree-layout.ts). */
export const checkTree: Check = async (source) => {
  const edge: Buffer[] = []
  let bytes: Buffer = Buffer.alloc(0)
  let leaves = 0
  const whole = source.size - (source.size % HASH_BYTES)
  const take = async (): Promise<Buffer> => {
    if (bytes.length === 0) bytes = Buffer.from(await source.next(stepBytes))
    const hash = bytes.subarray(0, HASH_BYTES)
    bytes = bytes.subarray(HASH_BYTES)
    return hash
  }
  for (let at = 0; at < whole; ) {
    edge.push(await take())
    at += HASH_BYTES
    leaves++
    for (let complete = leaves; complete % 2 === 0 && at < whole; complete /= 2, at += HASH_BYTES) {
      const found = await take()
      const [right, left] = [edge.pop()!, edge.pop()!]
      if (!nodeHash(left, right).equals(found)) return { problem: 'a node is not the hash of those below it', at }
      edge.push(found)
    }
  }
  return undefined
}

/** An attachment is named by the SHA-256 of its bytes. */
export function checkAttachment(name: string): Check {
  return async (source) => {
    const hash = createHash('sha256')
    for (let bytes = await source.next(stepBytes); bytes.length > 0; bytes = await source.next(stepBytes))
      hash.update(bytes)
    return hash.digest('hex') === name ? undefined : { problem: 'the attachment has other bytes than its name', at: 0 }
  }
}
