/** The scrubber's checks for each kind of file, in small reads that the caller paces. */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { CHAIN_START, Chain } from '../../storage/chain.ts'
import { Damage, type Disk, NewerFormat } from '../../storage/disk.ts'
import { decodeFrame } from '../../storage/frame.ts'
import { LiveIndex } from '../../storage/live-index.ts'
import { HASH_BYTES, nodeHash } from '../../storage/merkle.ts'
import { SealedSegment } from '../../storage/sealed-segment.ts'
import { checkSegmentHeader, headerOf, SEGMENT_HEADER_BYTES, type SegmentHeader } from '../../storage/segment.ts'
import { nodesIn } from '../../storage/tree-layout.ts'
import { sealedDamage, stepOver, type Walk } from '../../storage/walk.ts'

/** `at`: offset in the file. */
export type Found = { readonly problem: string; readonly at: number }

/** A file that is read from its beginning to the size it had when it was opened. */
export type Source = {
  readonly path: string
  readonly size: number
  /** The next bytes; fewer than requested only at the end. */
  readonly next: (wanted: number) => Promise<Buffer>
}

/** Undefined if the file is intact. May also reject with an error that `findingOf` accepts. */
export type Check = (source: Source) => Promise<Found | undefined>

const stepBytes = 64 * 1024

/** The sealed segments of one journal, checked in order: each must follow the previous one. */
export class SegmentsCheck {
  #journalId: Buffer | undefined
  /** Undefined if damage hides it, like `nextSeq`. */
  #chain: Buffer | undefined = CHAIN_START
  #nextSeq: number | undefined = 1

  /** The segment that must come next; undefined if damage hides which one it is. */
  get nextSeq(): number | undefined {
    return this.#nextSeq
  }

  /** Makes all checks of the full check that the segment with this name allows on its own. Throws Damage. */
  next(firstSeq: number): Check {
    const [nextSeq, chain] = [this.#nextSeq ?? firstSeq, this.#chain]
    this.#nextSeq = undefined
    this.#chain = undefined
    return async (source) => {
      const found = headerOf(await source.next(SEGMENT_HEADER_BYTES), source.path)
      const before = { journalId: this.#journalId, nextSeq, chain: chain ?? found?.previousChain ?? CHAIN_START }
      const header = checkSegmentHeader(source, found, before)
      this.#journalId = header.journalId
      const walk = await walkInSteps(source, header)
      const damage = sealedDamage(source.path, walk, source.size)
      if (damage !== undefined) throw damage
      this.#nextSeq = walk.live.nextSeq
      this.#chain = walk.running.digest()
      return undefined
    }
  }
}

/** `walkSegment` for bytes that arrive in small pieces. */
async function walkInSteps(source: Source, header: SegmentHeader): Promise<Pick<Walk, 'live' | 'running' | 'stop'>> {
  const live = new LiveIndex(header.firstSeq)
  const running = new Chain(header.previousChain)
  let bytes = await source.next(stepBytes)
  for (;;) {
    if (bytes.length === 0 && live.end === source.size) return { live, running, stop: { kind: 'end' } }
    const frame = decodeFrame(bytes, 0, bytes.length, header.seed)
    if (frame.frameBytes === undefined && frame.fault === 'short') {
      const more = await source.next(Math.max(stepBytes, frame.needs - bytes.length))
      if (more.length > 0) {
        bytes = Buffer.concat([bytes, more])
        continue
      }
    }
    const stop = stepOver(frame, live, running)
    if (stop !== undefined) return { live, running, stop }
    bytes = bytes.subarray(frame.frameBytes)
  }
}

/** Checks the CRC at the end of an index, and which segment it belongs to. Throws Damage if that segment is not sealed. */
export function checkIndex(disk: Disk, directory: string, firstSeq: number): Check {
  return async (source) => {
    let crc = 0
    let rest = source.size - 4
    while (rest > 0) {
      const bytes = await source.next(Math.min(stepBytes, rest))
      if (bytes.length === 0) break
      crc = crc32(bytes, crc)
      rest -= bytes.length
    }
    const trailer = await source.next(4)
    if (trailer.length < 4 || trailer.readUInt32LE(0) !== crc)
      return { problem: 'the index differs from what was written', at: 0 }
    const segment = SealedSegment.open({ disk, directory }, firstSeq)
    try {
      return segment.findIndex() ? undefined : { problem: 'it is not the index of this segment', at: 0 }
    } finally {
      segment.close()
    }
  }
}

/**
 * A tree file has the nodes of all leaves of its log, and more while the log grows. Every node is the hash of its two children, which
 * precede it (storage/tree-layout.ts).
 */
export function checkTree(leavesMin: number): Check {
  return async (source) =>
    source.size < nodesIn(leavesMin) * HASH_BYTES
      ? { problem: `the file ends before the nodes of ${leavesMin} leaves do`, at: source.size }
      : checkNodes(source)
}

const checkNodes: Check = async (source) => {
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
      if (!nodeHash(left, right).equals(found)) return { problem: 'a node is not the hash of its children', at }
      edge.push(found)
    }
  }
  return undefined
}

/** The name of an attachment is the SHA-256 of its bytes. */
export function checkAttachment(name: string): Check {
  return async (source) => {
    const hash = createHash('sha256')
    for (let bytes = await source.next(stepBytes); bytes.length > 0; bytes = await source.next(stepBytes))
      hash.update(bytes)
    return hash.digest('hex') === name
      ? undefined
      : { problem: 'the content of the attachment does not match its name', at: 0 }
  }
}

/** What an error says about a file. Rethrows an error that is not about a file. */
export function findingOf(error: unknown): Found {
  if (error instanceof Damage) return { problem: `expected ${error.expected}, found ${error.found}`, at: error.offset }
  if (error instanceof NewerFormat) return { problem: error.message, at: 0 }
  const { code } = error as NodeJS.ErrnoException
  // Excludes Node's own codes, such as ERR_OUT_OF_RANGE.
  if (code !== undefined && /^E[A-Z0-9]+$/.test(code)) return { problem: `it cannot be read (${code})`, at: 0 }
  throw error
}

/** The machine or process has no descriptors or memory left for a read, which says nothing about the file. */
export function isOutOfResources(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'].includes(String((error as NodeJS.ErrnoException).code))
}
