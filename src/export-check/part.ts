/**
 * Some lines of an export, read and checked by themselves: on a thread, many parts at a time. What depends on other lines is left
 * to who put the parts together (`cli/verify-export.ts`).
 *
 * Nearly all lines are events with nothing special about them; those travel back in columns, because an object a line costs the
 * receiving thread as much as reading it.
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

/** Lines without their ends, one behind the other. */
export type ExportPart = {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Where each line ends in `bytes`. */
  readonly ends: readonly number[]
  /** The number of each line in the file. */
  readonly numbers: readonly number[]
}

/** Signatures that are good, and what is wrong with the others. */
type Judged = { readonly good: number; readonly faults: readonly string[] }

/** What a line says by itself. `value`: of a line that only the lines before it can be held against. */
export type LineReading =
  | { readonly is: 'fault'; readonly fault: string }
  | { readonly is: 'value'; readonly value: Readonly<Record<string, unknown>> }
  | { readonly is: 'bad record'; readonly type: RecordType; readonly fault: string }
  | { readonly is: 'record'; readonly line: Omit<CheckedLine, 'signatures'>; readonly signed: Judged }
  | { readonly is: 'bad posting'; readonly fault: string }
  | { readonly is: 'posting'; readonly posting: LedgerLine; readonly leaf: LeafClaim | undefined }

/** Events of one log and one board, signed by their authors, new and not replaced; row by row. */
export type PlainEvents = {
  readonly origin: string
  readonly serviceId: string
  readonly numbers: number[]
  readonly leafIndexes: number[]
  /** 32 bytes each. */
  readonly leafHashes: Uint8Array
  /** Of each row, the place in `owners`. */
  readonly ownerOf: number[]
  readonly owners: Omit<OwnerClaim, 'shown' | 'whose'>[]
}

export type PartReading = {
  /** Undefined: there are none. */
  readonly plain: PlainEvents | undefined
  /** All other lines, by their numbers, rising. */
  readonly others: (readonly [number: number, reading: LineReading])[]
}

/** Reads and checks each line of a part. Never throws because of what a line contains. */
export function readPart({ bytes, ends, numbers }: ExportPart, backend: Ed25519Backend): PartReading {
  const rows = new PlainRows(ends.length)
  const others: [number, LineReading][] = []
  let start = 0
  for (const [n, end] of ends.entries()) {
    const reading = readLine(bytes.subarray(start, end), backend)
    const number = numbers[n]!
    if (reading.is !== 'record' || !rows.add(number, reading)) others.push([number, reading])
    start = end
  }
  return { plain: rows.events(), others }
}

function readLine(bytes: Uint8Array, backend: Ed25519Backend): LineReading {
  // A key given twice would be one text here and another to who takes the first of the two.
  const read = parseStrictJson(bytes)
  if (!read.ok) return { is: 'fault', fault: `the line is not strict JSON: ${read.message}` }
  const value = recordOf(read.value)
  const type = textOf(value.type)
  if (type === 'ledger') return readPosting(value)
  if (ofTheFile.has(type)) return { is: 'value', value }
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

/** Gathers plain events in columns. */
class PlainRows {
  readonly #hashes: Uint8Array
  readonly #places = new Map<string, number>()
  #events: PlainEvents | undefined

  constructor(rowsMax: number) {
    this.#hashes = new Uint8Array(rowsMax * HASH_BYTES)
  }

  /** Takes a line, if it is as plain as those before it. */
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
