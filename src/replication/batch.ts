/**
 * One message to followers: the new frames of every journal, bytes as they are on disk, whole decisions, a frame of the log only with
 * or after the frames that it covers. What is too long for one message of the stream is sent as several parts. The header stands in
 * each of them, so that the newest message alone says how far the stream has come.
 */
import { isDeepStrictEqual } from 'node:util'
import type { CopiedFrames, JournalPlace } from '../../storage/copied-frames.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { isSealName, type SealName, type StreamSeal, sealBytes } from './stream-seal.ts'

/** What a batch has of one journal. `bytes`: how many the frames take in the payload, header of each frame included. */
export type JournalShare = Omit<CopiedFrames, 'bytes'> & { readonly bytes: number }

export type BatchHeader = {
  readonly version: 1
  /** Counts the boards that have written to this stream one after the other. */
  readonly epoch: number
  /** The data directory that writes, 32 hex. */
  readonly leader: string
  /** By shard number, and then the log. The payload has their frames in this order. */
  readonly journals: readonly JournalShare[]
  /** Attachments that these frames name. The payload has them after the frames, in this order. */
  readonly files?: readonly FileShare[]
  /**
   * The writer acknowledges and shows nothing before the stream has it. So a follower that has applied all messages up to this one has
   * every acknowledged write. Absent: it may lack some.
   */
  readonly ack?: 'quorum'
  /** The writer has stopped, has nothing that the stream has not, and writes no more. */
  readonly handedOver?: true
}

/** `name`: `<room>/<SHA-256 of the bytes, 64 hex>`. */
export type FileShare = { readonly name: string; readonly bytes: number }

export type Batch = { readonly header: BatchHeader; readonly payload: Buffer }

/** One message of the stream. `bytes` are sealed; the header is not, and has no text. */
export type Part = {
  readonly header: BatchHeader & { readonly part: number; readonly parts: number; readonly seal: SealName }
  readonly bytes: Uint8Array
}

/** The stream takes messages of 1 MB, header included. */
const messageBytesMax = 900_000
const partBytesMax = messageBytesMax - sealBytes

/** The parts of a batch, numbered from 1. Each is sealed once: it is published again as it is. */
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

/** Undefined: this is not the header of a batch, or one of a later version. */
export function parseHeader(text: string): Part['header'] | undefined {
  const found = foreignJson(text)
  return isHeader(found) ? found : undefined
}

/** What a batch has for each journal, by shard number and then for the log, and the attachments that came with it. */
export type Opened = { readonly shares: readonly CopiedFrames[]; readonly files: ReadonlyMap<string, Uint8Array> }

/** Throws RangeError where the payload is not what the header says. */
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
  if (at !== payload.length) throw new RangeError(`a batch of ${payload.length} bytes, and not ${at}`)
  return { shares, files: found }
}

/** Puts parts together again. A part with number 1 begins a batch; a later epoch voids what is unfinished, an older one is not heard. */
export class Assembly {
  readonly #seal: Pick<StreamSeal, 'open'>
  #epoch = 0
  #parts: Part[] = []

  constructor(seal: Pick<StreamSeal, 'open'>) {
    this.#seal = seal
  }

  /** The batch that this part completes; undefined: it completes none. Throws where a part of it was not sealed for this board. */
  add(part: Part): Batch | undefined {
    const { epoch, part: number, parts } = part.header
    if (epoch < this.#epoch) return undefined
    if (epoch > this.#epoch || number === 1) this.#parts = []
    this.#epoch = epoch
    // Of a batch whose beginning was missed nothing is kept: the numbers of its frames say what has to be fetched.
    if (number !== this.#parts.length + 1) return undefined
    this.#parts.push(part)
    if (number < parts) return undefined
    const whole = this.#parts
    this.#parts = []
    return { header: part.header, payload: Buffer.concat(whole.map((each) => this.#seal.open(each))) }
  }
}

/** Of a batch that brings nothing of this journal: it says how far it reaches. */
export function emptyShare(place: JournalPlace, rolls: readonly number[] = []): JournalShare {
  return { ...place, first: place.last + 1, bytes: 0, rolls }
}

export function isShares(value: unknown): value is readonly JournalShare[] {
  return Array.isArray(value) && value.every(isShare)
}

/** How far a journal reaches, as a follower says it. */
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

/** Of a room and of the bytes in it: no path leaves the directory of attachments. */
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
