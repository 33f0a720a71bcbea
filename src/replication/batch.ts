/**
 * One message to followers: the new frames of every journal, byte for byte as on disk, in whole decisions. A frame of the log
 * comes only with or after the frames that it covers. A batch that is too long for one message of the stream is sent in several
 * parts. Each part has the header, so that the newest message alone says how far the stream has come.
 */
import { isDeepStrictEqual } from 'node:util'
import type { CopiedFrames, JournalPlace } from '../../storage/copied-frames.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { isSealName, type SealName, type StreamSeal, sealBytes } from './stream-seal.ts'

/** A batch's share of one journal. `bytes`: the size of the frames in the payload, including the header of each frame. */
export type JournalShare = Omit<CopiedFrames, 'bytes'> & { readonly bytes: number }

export type BatchHeader = {
  readonly version: 1
  /** Counts the boards that have written to this stream in succession. */
  readonly epoch: number
  /** Id of the data directory that writes, 32 hex. */
  readonly leader: string
  /** By shard number, then the log. The payload has their frames in this order. */
  readonly journals: readonly JournalShare[]
  /** Attachments named by these frames. The payload has them after the frames, in this order. */
  readonly files?: readonly FileShare[]
  /**
   * The writer acknowledges and shows nothing before the stream has it. So a follower that has applied all messages up to this
   * one has every acknowledged write. Absent: it may lack some.
   */
  readonly ack?: 'quorum'
  /** The writer has stopped: the stream has everything it has, and it writes nothing more. */
  readonly handedOver?: true
}

/** `name`: `<room>/<SHA-256 of the bytes, 64 hex>`. */
export type FileShare = { readonly name: string; readonly bytes: number }

export type Batch = { readonly header: BatchHeader; readonly payload: Buffer }

/** One message of the stream. `bytes` are sealed; the header is not, and contains no text. */
export type Part = {
  readonly header: BatchHeader & { readonly part: number; readonly parts: number; readonly seal: SealName }
  readonly bytes: Uint8Array
}

/** The stream takes messages of 1 MB, including the header. */
const messageBytesMax = 900_000
const partBytesMax = messageBytesMax - sealBytes

/** The parts of a batch, numbered from 1. Each is sealed once, so that a retry publishes the same bytes. */
export function partsOf({ header, payload }: Batch, seal: StreamSeal): Part[] {
  const parts = Math.max(1, Math.ceil(payload.length / partBytesMax))
  return Array.from({ length: parts }, (_, index) => {
    const own = { ...header, part: index + 1, parts, seal: seal.now }
    const bytes = payload.subarray(index * partBytesMax, (index + 1) * partBytesMax)
    return { header: own, bytes: seal.seal(own, bytes) }
  })
}

export function isSamePart(one: Part, other: Part): boolean {
  return isDeepStrictEqual(one.header, other.header) && Buffer.compare(one.bytes, other.bytes) === 0
}

/** Undefined if this is not the header of a batch, or of a later version. */
export function parseHeader(text: string): Part['header'] | undefined {
  const found = foreignJson(text)
  return isHeader(found) ? found : undefined
}

/** A batch's frames of each journal, by shard number and then the log, and the attachments that came with it. */
export type Opened = { readonly shares: readonly CopiedFrames[]; readonly files: ReadonlyMap<string, Uint8Array> }

/** Throws RangeError if the payload does not match the header. */
export function openPayload(
  { journals, files = [] }: Pick<BatchHeader, 'journals' | 'files'>,
  payload: Uint8Array,
): Opened {
  let at = 0
  const next = (bytes: number): Uint8Array => {
    at += bytes
    return payload.subarray(at - bytes, at)
  }
  const shares = journals.map((share) => ({ ...share, bytes: next(share.bytes) }))
  const found = new Map(files.map(({ name, bytes }) => [name, next(bytes)]))
  if (at !== payload.length) throw new RangeError(`the batch has ${payload.length} bytes, but its header states ${at}`)
  return { shares, files: found }
}

/**
 * Reassembles parts into batches. Part 1 begins a batch. A later epoch discards an unfinished batch; parts of an older epoch
 * are ignored.
 */
export class Assembly {
  readonly #seal: Pick<StreamSeal, 'open'>
  #epoch = 0
  #parts: Part[] = []

  constructor(seal: Pick<StreamSeal, 'open'>) {
    this.#seal = seal
  }

  /** Call this instead of `add` for a part whose frames are not needed: from then on, parts of an older epoch are ignored. */
  skip({ header: { epoch } }: Part): void {
    if (epoch <= this.#epoch) return
    this.#parts = []
    this.#epoch = epoch
  }

  /** Returns the batch that this part completes, or undefined. Throws if any part of it was not sealed for this board. */
  add(part: Part): Batch | undefined {
    const { epoch, part: number, parts } = part.header
    if (epoch < this.#epoch) return undefined
    if (epoch > this.#epoch || number === 1) this.#parts = []
    this.#epoch = epoch
    // If the beginning of a batch was missed, the rest is dropped: its frame numbers will show what must be fetched.
    if (number !== this.#parts.length + 1) return undefined
    this.#parts.push(part)
    if (number < parts) return undefined
    const whole = this.#parts
    this.#parts = []
    return { header: part.header, payload: Buffer.concat(whole.map((each) => this.#seal.open(each))) }
  }
}

/** A share of a batch without frames of this journal: it says how far the journal reaches. */
export function emptyShare(place: JournalPlace, rolls: readonly number[] = []): JournalShare {
  return { ...place, first: place.last + 1, bytes: 0, rolls }
}

export function isShares(value: unknown): value is readonly JournalShare[] {
  return Array.isArray(value) && value.every(isShare)
}

/** How far a journal reaches, as reported by a follower. */
export function isPlace(value: unknown): value is JournalPlace {
  const { id, last, chain }: Readonly<Record<string, unknown>> = Object(value)
  return isHex(id, 16) && isHex(chain, 32) && Number.isSafeInteger(last) && Number(last) >= 0
}

function isHeader(value: unknown): value is Part['header'] {
  const { version, epoch, leader, part, parts, seal, ...more }: Readonly<Record<string, unknown>> = Object(value)
  const { journals, files = [], ack = 'quorum', handedOver = true } = more
  const numbers = [epoch, part, parts].every((each) => Number.isSafeInteger(each) && Number(each) > 0)
  const isWhole = numbers && isHex(leader, 16) && isShares(journals) && isFiles(files) && isSealName(seal)
  return version === 1 && isWhole && ack === 'quorum' && handedOver === true
}

function isFiles(value: unknown): value is readonly FileShare[] {
  return Array.isArray(value) && value.every(isFile)
}

function isFile(value: unknown): value is FileShare {
  const { name, bytes }: Readonly<Record<string, unknown>> = Object(value)
  return isFileName(name) && Number.isSafeInteger(bytes) && Number(bytes) >= 0
}

/** A room and the hash of a file in it. The pattern keeps paths inside the attachments directory. */
function isFileName(value: unknown): boolean {
  return typeof value === 'string' && /^[\w-]{1,64}\/[0-9a-f]{64}$/.test(value)
}

function isShare(value: unknown): value is JournalShare {
  const { id, first, last, bytes, chain, rolls }: Readonly<Record<string, unknown>> = Object(value)
  const numbers = [first, last, bytes, ...(Array.isArray(rolls) ? rolls : [-1])]
  return isHex(id, 16) && isHex(chain, 32) && numbers.every((each) => Number.isSafeInteger(each) && Number(each) >= 0)
}

function isHex(value: unknown, bytes: number): boolean {
  return typeof value === 'string' && value.length === 2 * bytes && /^[0-9a-f]+$/.test(value)
}
