/**
 * One message to followers: the new frames of every journal, bytes as they are on disk, whole decisions, a frame of the log only with
 * or after the frames that it covers. What is too long for one message of the stream is sent as several parts. The header stands in
 * each of them, so that the newest message alone says how far the stream has come.
 */
import { isDeepStrictEqual } from 'node:util'
import { foreignJson } from '../format/foreign-json.ts'

/** What a batch has of one journal. */
export type JournalShare = {
  /** Id of the journal, 32 hex. */
  readonly id: string
  /** Frames in this batch; none: `last` is `first` less one. */
  readonly first: number
  readonly last: number
  /** How many bytes they take in the payload, header of each frame included. */
  readonly bytes: number
  /** Chain hash of the journal up to `last`, 64 hex. */
  readonly chain: string
  /** Numbers from `first` to `last` plus one with which a segment begins. */
  readonly rolls: readonly number[]
}

export type BatchHeader = {
  readonly version: 1
  /** Counts the boards that have written to this stream one after the other. */
  readonly epoch: number
  /** The data directory that writes, 32 hex. */
  readonly leader: string
  /** By shard number, and then the log. The payload has their frames in this order. */
  readonly journals: readonly JournalShare[]
}

export type Batch = { readonly header: BatchHeader; readonly payload: Buffer }

/** One message of the stream. */
export type Part = {
  readonly header: BatchHeader & { readonly part: number; readonly parts: number }
  readonly bytes: Uint8Array
}

/** The stream takes messages of 1 MB, header included. */
const partBytesMax = 900_000

/** The parts of a batch, numbered from 1. */
export function partsOf({ header, payload }: Batch): Part[] {
  const parts = Math.max(1, Math.ceil(payload.length / partBytesMax))
  return Array.from({ length: parts }, (_, index) => ({
    header: { ...header, part: index + 1, parts },
    bytes: payload.subarray(index * partBytesMax, (index + 1) * partBytesMax),
  }))
}

export function isSamePart(one: Part, other: Part): boolean {
  return isDeepStrictEqual(one.header, other.header) && Buffer.compare(one.bytes, other.bytes) === 0
}

/** Undefined: this is not the header of a batch, or one of a later version. */
export function parseHeader(text: string): Part['header'] | undefined {
  const found = foreignJson(text)
  return isHeader(found) ? found : undefined
}

function isHeader(value: unknown): value is Part['header'] {
  const { version, epoch, leader, journals, part, parts }: Readonly<Record<string, unknown>> = Object(value)
  const numbers = [epoch, part, parts].every((each) => Number.isSafeInteger(each) && Number(each) > 0)
  return version === 1 && numbers && isHex(leader, 16) && Array.isArray(journals) && journals.every(isShare)
}

function isShare(value: unknown): value is JournalShare {
  const { id, first, last, bytes, chain, rolls }: Readonly<Record<string, unknown>> = Object(value)
  const numbers = [first, last, bytes, ...(Array.isArray(rolls) ? rolls : [-1])]
  return isHex(id, 16) && isHex(chain, 32) && numbers.every((each) => Number.isSafeInteger(each) && Number(each) >= 0)
}

function isHex(value: unknown, bytes: number): boolean {
  return typeof value === 'string' && value.length === 2 * bytes && /^[0-9a-f]+$/.test(value)
}
