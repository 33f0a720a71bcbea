/**
 * Parses and checks some lines of an export on their own, on a thread, so that many parts are checked in parallel. What depends on other
 * lines is left to the code that combines the parts (`cli/verify-export.ts`).
 *
 * Nearly all lines are ordinary events. Those are returned in columns, because an object per line would cost the receiving thread as much
 * as parsing it.
 */
import type { LedgerLine } from '../../actors/log/ledger-entry.ts'
import { HASH_BYTES } from '../../storage/merkle.ts'
import { parseStrictJson } from '../format/strict-json.ts'
import { type Ed25519Backend, judge, verdictBadKey, verdictGood } from '../verify/backends.ts'
import {
  type CheckedLine,
  checkLine,
  isLeafIndex,
  isRecordType,
  type LeafClaim,
  type OwnerClaim,
  ownLeafHash,
  type RecordType,
} from './event-check.ts'
import { readLedgerLine } from './ledger-books.ts'
import { recordOf, textOf } from './signed-line.ts'

/** Lines without their terminators, concatenated. */
export type ExportPart = {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Where each line ends in `bytes`. */
  readonly ends: readonly number[]
  /** The number of each line in the file. */
  readonly numbers: readonly number[]
}

/** How many signatures are valid, and what is wrong with the others. */
type Judged = { readonly good: number; readonly faults: readonly string[] }

/** The result for a single line. `value`: of a line that can only be checked against the lines before it. */
export type LineReading =
  | { readonly is: 'fault'; readonly fault: string }
  | { readonly is: 'value'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly is: 'bad record'; readonly type: RecordType; readonly fault: string }
  | { readonly is: 'record'; readonly line: Omit<CheckedLine, 'signatures'>; readonly signed: Judged }
  | { readonly is: 'bad posting'; readonly fault: string }
  | { readonly is: 'posting'; readonly posting: LedgerLine; readonly leaf: LeafClaim | undefined }

/** Events of one log and one board, signed by their authors, new and not replaced; one row each. */
export type PlainEvents = {
  readonly origin: string
  readonly serviceId: string
  readonly numbers: number[]
  readonly leafIndexes: number[]
  /** 32 bytes each. */
  readonly leafHashes: Uint8Array
  /** For each row, the index in `owners`. */
  readonly ownerOf: number[]
  readonly owners: Omit<OwnerClaim, 'shown' | 'whose'>[]
}

/** How many lines of a room there are, and the greatest number of one. */
export type RoomLines = readonly [room: string, lines: number, last: number]

export type PartReading = {
  readonly rooms: readonly RoomLines[]
  /** Undefined if there are none. */
  readonly plain: PlainEvents | undefined
  /** All other lines, by number, ascending. */
  readonly others: (readonly [number: number, reading: LineReading])[]
}

/** Parses and checks each line of a part. Never throws because of a line's content. */
export function readPart({ bytes, ends, numbers }: ExportPart, backend: Ed25519Backend): PartReading {
  const rows = new PlainRows(ends.length)
  const others: [number, LineReading][] = []
  const rooms = new RoomTally()
  let start = 0
  for (const [n, end] of ends.entries()) {
    const reading = readLine(bytes.subarray(start, end), backend)
    const number = numbers[n]!
    if (reading.is === 'record' && reading.line.place !== undefined)
      rooms.add(reading.line.place.room, 1, reading.line.place.seq)
    if (reading.is !== 'record' || !rows.add(number, reading)) others.push([number, reading])
    start = end
  }
  return { rooms: rooms.all, plain: rows.events(), others }
}

/** Counts the lines of rooms. Numbers of a room begin with 1, so what is missing before its last line can be told. */
export class RoomTally {
  readonly #rooms = new Map<string, { lines: number; last: number }>()

  add(room: string, lines: number, last: number): void {
    const known = this.#rooms.get(room)
    if (known === undefined) this.#rooms.set(room, { lines, last })
    else {
      known.lines += lines
      known.last = Math.max(known.last, last)
    }
  }

  get all(): RoomLines[] {
    return Array.from(this.#rooms, ([room, { lines, last }]) => [room, lines, last] as const)
  }
}

function readLine(bytes: Uint8Array, backend: Ed25519Backend): LineReading {
  // A duplicate key would be read differently here than by software that takes the first of the two.
  const read = parseStrictJson(bytes)
  if (!read.ok) return { is: 'fault', fault: `the line is not strict JSON: ${read.message}` }
  const value = recordOf(read.value)
  const type = textOf(value.type)
  if (type === 'ledger') return readPosting(value)
  if (ofTheFile.has(type)) return { is: 'value', value }
  if (type === 'board')
    return {
      is: 'fault',
      fault: 'this is the export of a whole board (stream=board), which only broadside import --as-it-was checks',
    }
  if (!isRecordType(type)) {
    const types = 'event, tombstone, rotation, undelegation, unreadable, ledger, leaves, log or end'
    return { is: 'fault', fault: `the type is not ${types}` }
  }
  const check = checkLine(value)
  if (!check.ok) return { is: 'bad record', type, fault: check.problem }
  const { signatures, ...line } = check.line
  return { is: 'record', line, signed: judgeAll(signatures, backend) }
}

const ofTheFile: ReadonlySet<string> = new Set(['leaves', 'log', 'end', 'unreadable'])

function judgeAll(signatures: CheckedLine['signatures'], backend: Ed25519Backend): Judged {
  const faults: string[] = []
  for (const item of signatures) {
    const verdict = judge(backend, item)
    if (verdict === verdictGood) continue
    const { whose } = item
    faults.push(
      verdict === verdictBadKey ? `the key of ${whose} is not a valid Ed25519 key` : `${whose} does not verify`,
    )
  }
  return { good: signatures.length - faults.length, faults }
}

function readPosting(value: Readonly<Record<string, unknown>>): LineReading {
  const read = readLedgerLine(value)
  if (typeof read === 'string') return { is: 'bad posting', fault: read }
  const { state, origin, index } = recordOf(value.log)
  const isIncluded = state === 'included' && typeof origin === 'string' && isLeafIndex(index)
  const leaf = isIncluded ? { origin, index, leafHash: ownLeafHash(read.entry) } : undefined
  return { is: 'posting', posting: read.line, leaf }
}

/** Collects ordinary events in columns. */
class PlainRows {
  readonly #hashes: Uint8Array
  readonly #places = new Map<string, number>()
  #events: PlainEvents | undefined

  constructor(rowsMax: number) {
    this.#hashes = new Uint8Array(rowsMax * HASH_BYTES)
  }

  /** Takes a line if it is ordinary and matches those before it. */
  add(number: number, { line, signed }: LineReading & { is: 'record' }): boolean {
    const { owner, serviceId, leaves } = line
    const [leaf] = leaves
    if (owner === undefined || serviceId === undefined || leaf === undefined || leaves.length > 1) return false
    if (line.kind !== 'event' || signed.good !== 1 || signed.faults.length > 0 || owner.shown !== owner.id) return false
    if (line.version !== undefined || line.successor !== undefined || line.delegation !== undefined) return false
    if (line.renamed.length > 0) return false
    this.#events ??= {
      origin: leaf.origin,
      serviceId,
      numbers: [],
      leafIndexes: [],
      leafHashes: this.#hashes,
      ownerOf: [],
      owners: [],
    }
    const events = this.#events
    if (events.origin !== leaf.origin || events.serviceId !== serviceId) return false
    this.#hashes.set(leaf.leafHash, events.numbers.length * HASH_BYTES)
    events.numbers.push(number)
    events.leafIndexes.push(leaf.index)
    events.ownerOf.push(this.#placeOf(events.owners, owner))
    return true
  }

  events(): PlainEvents | undefined {
    return this.#events
  }

  #placeOf(owners: PlainEvents['owners'], { publicKey, id }: OwnerClaim): number {
    const known = this.#places.get(publicKey)
    if (known !== undefined) return known
    this.#places.set(publicKey, owners.length)
    return owners.push({ publicKey, id }) - 1
  }
}
