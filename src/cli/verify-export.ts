/**
 * Checks an export offline: every signature and id, and every line's place under the signed checkpoint.
 *
 * The file is read once, as a stream. Parts of it are checked line by line, on threads; their results are combined here in the order of the
 * file. The leaves at the end yield the root, which must be the checkpoint's, and each line's entry must hash to the leaf that it names.
 * The board is not contacted, and nothing in the file is believed unless it follows from signatures and hashes.
 */

import type { ParsedCheckpoint } from '../../storage/checkpoint.ts'
import { HASH_BYTES } from '../../storage/merkle.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { TILE_WIDTH } from '../../storage/tile-path.ts'
import type { CheckedLine, LeafClaim, OwnerClaim, RecordType } from '../export-check/event-check.ts'
import { LedgerBooks } from '../export-check/ledger-books.ts'
import {
  type ExportPart,
  type LineReading,
  type PartReading,
  type PlainEvents,
  RoomTally,
} from '../export-check/part.ts'
import type { PartReader } from '../export-check/readers.ts'
import type { Renamed } from '../export-check/shown-fields.ts'
import { textOf } from '../export-check/signed-line.ts'
import { ExportLogs } from './export-logs.ts'
import { type Line, lineBytesMax } from './lines.ts'
import type { LogTiles } from './log-tiles.ts'
import { inertLine, shortened, wordOf } from './terminal.ts'

/**
 * Size of the part that a thread gets at a time: about 80 events. The line bound exists because the result for a very short line is larger
 * than the line.
 */
const partBytesMax = 128 * 1024
const partLinesMax = 512

type ExportFailure = { readonly line: number; readonly reason: string }

export type ExportReport = {
  lines: number
  events: number
  tombstones: number
  rotations: number
  /** The public ledger, if the file is one. */
  ledger: LedgerBooks | undefined
  /** Number of delegations that ended. */
  undelegations: number
  /** Records that the board itself could not read. */
  unreadable: number
  signatures: number
  /** Leaves in the file; 0 in a filtered or paged export. */
  leaves: number
  /** Leaves whose entry is a line of the file. */
  named: number
  /** Closed logs in the file, each tied to its successor. */
  closedLogs: number
  /** How many of them have lost their end: none of their entries names the next log. */
  lostLogs: number
  /** Leaves that lines of a part name in a log with another key than the given one. */
  elsewhere: number
  /** Size of the head that the lines of a part were proved against, leaf by leaf; undefined if they were not. */
  provedAt: number | undefined
  /** Lines of a part that only the rest of the export could settle: whose key it is, or which event the id of a version stands for. */
  unsettled: number
  /** Lines of a part that claim to be in no log, like those of private rooms. */
  unlogged: number
  hasEnd: boolean
  /** The checkpoint at the end, and whether the log's key signed it; undefined if there is no key to check with. */
  checkpoint: ParsedCheckpoint | undefined
  isSignedByLog: boolean | undefined
  serviceId: string | undefined
  /** Rooms of a whole export that lack numbers before their last line, and how many. */
  gaps: readonly (readonly [room: string, missing: number])[]
  failures: number
  first: ExportFailure | undefined
}

type ExportVerifyOptions = {
  readonly lines: AsyncIterable<Line & { readonly isCut: boolean }>
  readonly reader: PartReader
  /** The log's key; without it, the checkpoint's signature is not checked unless the file brings a key. */
  readonly logKey: VerifierKey | undefined
  /** The log itself, to prove the lines of a filtered or paged export. */
  readonly tiles?: LogTiles | undefined
  /** Service id of the board that this one was imported from: its lines were signed for that id. */
  readonly importedFrom?: string | undefined
  /** Called as lines are checked. */
  readonly progress: (lines: number) => void
}

/** Checks a whole file. Throws only what reading the file throws. */
export async function verifyExport(options: ExportVerifyOptions): Promise<ExportReport> {
  return new ExportVerification(options).run()
}

class ExportVerification {
  readonly #options: ExportVerifyOptions
  /** Keys that identities moved to, and their identities. */
  readonly #owners = new Map<string, string>()
  readonly #logs: ExportLogs
  readonly #report: ExportReport = emptyReport()
  /** Id of a later version -> its original. */
  readonly #versions = new Map<string, string>()
  readonly #renamed: (Renamed & { readonly line: number })[] = []
  readonly #successors: { readonly id: string; readonly original: string; readonly line: number }[] = []
  readonly #untied: { readonly line: number; readonly whose: string }[] = []
  /** Lines that claim to be in no log. */
  readonly #unlogged: number[] = []
  readonly #delegations = new DelegationTimes()
  readonly #rooms = new RoomTally()

  constructor(options: ExportVerifyOptions) {
    this.#options = options
    this.#logs = new ExportLogs({ logKey: options.logKey, fail: (line, reason) => this.#fail(line, reason) })
  }

  async run(): Promise<ExportReport> {
    const report = this.#report
    const { reader, progress } = this.#options
    const pending: (PartReading | Promise<PartReading>)[] = []
    for await (const part of this.#parts()) {
      const reading = reader.read(part)
      // A rejection is handled where the reading is awaited. It may occur earlier, and must not count as unhandled.
      if (reading instanceof Promise) reading.catch(() => {})
      pending.push(reading)
      if (pending.length >= reader.partsMax) this.#takePart(await pending.shift()!)
      progress(report.lines)
    }
    for (const reading of pending) this.#takePart(await reading)
    this.#settle()
    this.#finish()
    report.leaves = this.#logs.leaves
    report.named = this.#logs.named
    report.closedLogs = this.#logs.closed
    report.lostLogs = this.#logs.lost
    report.checkpoint = this.#logs.checkpoint
    report.isSignedByLog = this.#logs.isSigned
    if (!report.hasEnd && this.#options.tiles !== undefined) await this.#prove(this.#options.tiles)
    return report
  }

  /** The lines of the file, copied into parts. */
  async *#parts(): AsyncGenerator<ExportPart> {
    let part = new GrowingPart()
    for await (const { number, bytes, isCut } of this.#options.lines) {
      this.#report.lines = number
      if (bytes.length === 0) continue
      if (isCut) {
        this.#fail(number, `the line is longer than ${lineBytesMax} bytes`)
        continue
      }
      if (!part.hasRoomFor(bytes)) {
        yield part
        part = new GrowingPart()
      }
      part.add(number, bytes)
    }
    if (part.ends.length > 0) yield part
  }

  /** Takes the results for lines, in the order of the file. */
  #takePart({ rooms, plain, others }: PartReading): void {
    for (const each of rooms) this.#rooms.add(...each)
    let row = 0
    for (const [number, reading] of others) {
      if (plain !== undefined) row = this.#takePlain(plain, row, number)
      this.#take(number, reading)
    }
    if (plain !== undefined) this.#takePlain(plain, row, Number.POSITIVE_INFINITY)
  }

  /** Takes the rows before this line, starting at `row`. Returns the first row after them. */
  #takePlain(events: PlainEvents, row: number, before: number): number {
    const report = this.#report
    const { origin, serviceId, numbers, leafIndexes, leafHashes } = events
    let next = row
    for (; next < numbers.length && numbers[next]! < before; next++) {
      const number = numbers[next]!
      if (this.#isMisplaced(number)) continue
      report.events += 1
      report.signatures += 1
      if (!this.#isOfBoard(number, serviceId)) continue
      if (this.#owners.size > 0) {
        const { publicKey, id } = events.owners[events.ownerOf[next]!]!
        this.#checkOwner(number, { publicKey, id, shown: id, whose: 'the author’s id' })
      }
      const at = next * HASH_BYTES
      this.#logs.claim(origin, leafIndexes[next]!, leafHashes.subarray(at, at + HASH_BYTES), number)
    }
    return next
  }

  #take(number: number, reading: LineReading): void {
    if (reading.is === 'fault') return this.#fail(number, reading.fault)
    if (reading.is === 'value') return this.#takeValue(number, reading.value)
    if (this.#isMisplaced(number)) return
    if (reading.is === 'posting' || reading.is === 'bad posting') return this.#takePosting(number, reading)
    this.#count(reading.is === 'record' ? reading.line.kind : reading.type)
    if (reading.is === 'bad record') return this.#fail(number, reading.fault)
    this.#takeRecord(number, reading)
  }

  #takeValue(number: number, value: Readonly<Record<string, unknown>>): void {
    if (this.#report.hasEnd) return this.#fail(number, 'a line follows the end line')
    if (value.type === 'leaves') return this.#logs.takeLeaves(number, value)
    if (value.type === 'log') return this.#logs.takeClosed(number, value)
    if (value.type === 'end') return this.#takeEnd(number, value)
    this.#takeUnreadable(number, value)
  }

  /** Reports a record in a place where none is allowed; its content is not checked. */
  #isMisplaced(number: number): boolean {
    if (this.#report.hasEnd) this.#fail(number, 'a line follows the end line')
    else if (this.#logs.leaves > 0) this.#fail(number, 'a record follows the leaves')
    else return false
    return true
  }

  /** The board could not read its own record: everything else is checked, but the file is incomplete. */
  #takeUnreadable(number: number, value: Record<string, unknown>): void {
    this.#report.unreadable += 1
    const why = inertLine(shortened(textOf(value.error), 200))
    this.#fail(number, `the board could not read ${inertLine(shortened(textOf(value.event_id), 64))} (${why})`)
  }

  #count(type: RecordType): void {
    const report = this.#report
    if (type === 'event') report.events += 1
    else if (type === 'tombstone') report.tombstones += 1
    else if (type === 'rotation') report.rotations += 1
    else report.undelegations += 1
  }

  #takeRecord(number: number, { line, signed }: LineReading & { is: 'record' }): void {
    this.#report.signatures += signed.good
    for (const fault of signed.faults) this.#fail(number, fault)
    const { kind, leaves, serviceId, version, successor, renamed, owner, rotatedTo, delegation } = line
    const whose = owner === undefined ? undefined : this.#checkOwner(number, owner)
    if (rotatedTo !== undefined && whose !== undefined) this.#owners.set(rotatedTo, whose)
    if (serviceId !== undefined && !this.#isOfBoard(number, serviceId)) return
    for (const { index, leafHash, origin } of leaves) this.#logs.claim(origin, index, leafHash, number)
    if (version !== undefined) this.#versions.set(version.id, version.original)
    for (const each of renamed) this.#renamed.push({ ...each, line: number })
    if (successor !== undefined) this.#successors.push({ ...successor, line: number })
    const [own] = leaves
    if (own === undefined) this.#unlogged.push(number)
    if (delegation !== undefined && own !== undefined) this.#delegations.note(kind, delegation, own, number)
  }

  #isOfBoard(number: number, serviceId: string): boolean {
    if (serviceId === this.#options.importedFrom) return true
    this.#report.serviceId ??= serviceId
    if (serviceId === this.#report.serviceId) return true
    this.#fail(
      number,
      'it was signed for another board than the preceding lines; where this board was imported, name the service id of the one before with --imported-from',
    )
    return false
  }

  /** The owner of the key, by the rotations so far. */
  #checkOwner(number: number, { publicKey, id, shown, whose }: OwnerClaim): string {
    const owner = this.#owners.get(publicKey) ?? id
    if (owner !== shown) this.#untied.push({ line: number, whose })
    return owner
  }

  #takePosting(number: number, reading: LineReading & { is: 'posting' | 'bad posting' }): void {
    this.#report.ledger ??= new LedgerBooks()
    if (reading.is === 'bad posting') return this.#fail(number, reading.fault)
    const { posting, leaf } = reading
    const fault = this.#report.ledger.take(posting)
    if (fault !== undefined) this.#fail(number, fault)
    if (leaf === undefined) return this.#fail(number, 'log names no state, origin and index')
    this.#logs.claim(leaf.origin, leaf.index, leaf.leafHash, number)
  }

  #takeEnd(number: number, value: Record<string, unknown>): void {
    const report = this.#report
    report.hasEnd = true
    const { events, tombstones, rotations, undelegations, unreadable } = report
    const records = events + tombstones + rotations + undelegations + unreadable + (report.ledger?.postings ?? 0)
    if (value.count !== records)
      this.#fail(number, `the end line counts ${wordOf(value.count)} records; there are ${records}`)
    this.#logs.takeEnd(number, textOf(value.checkpoint))
  }

  #finish(): void {
    const report = this.#report
    if (!report.hasEnd) {
      if (this.#logs.leaves > 0) this.#fail(report.lines, 'the file is cut short: it has leaves but no end line')
      return
    }
    this.#logs.finish()
    report.gaps = this.#rooms.all.flatMap(([room, lines, last]) =>
      lines < last ? [[room, last - lines] as const] : [],
    )
  }

  /** Settles claims that depend on other lines, which may be missing in a part of an export. */
  #settle(): void {
    const report = this.#report
    const unbalanced = report.ledger?.end()
    if (unbalanced !== undefined) this.#fail(report.lines, unbalanced)
    for (const { line, field, signed, shown } of this.#renamed) {
      const original = this.#versions.get(signed)
      if (original === shown) continue
      // If the line of a version could not be read, its original is unknown.
      const isWhole = report.hasEnd && report.unreadable === 0
      if (original !== undefined || isWhole) this.#fail(line, `the ${field} shown is not the one that was signed`)
      else report.unsettled += 1
    }
    for (const line of this.#delegations.late())
      this.#fail(line, 'its delegation had already ended, by the order of the log')
    for (const { line, whose } of this.#untied) {
      if (report.hasEnd) this.#fail(line, `${whose} is not the hash of the key, and no rotation in the file links them`)
      else report.unsettled += 1
    }
    if (!report.hasEnd) report.unlogged = this.#unlogged.length
    else
      for (const line of this.#unlogged) this.#fail(line, 'it names no leaf, and every line of a complete export does')
    // `superseded_by` counts only if everything else is right. The version that it names may be newer than the export.
    if (report.failures > 0) return
    for (const { line, id, original } of this.#successors) {
      const actual = this.#versions.get(id)
      if (actual !== undefined && actual !== original)
        this.#fail(line, 'superseded_by names a version of another event')
    }
  }

  /** Compares every leaf that a line names with the tiles of its log. Leaves of other logs are only counted. */
  async #prove(tiles: LogTiles): Promise<void> {
    const report = this.#report
    report.provedAt = tiles.size
    for (const [origin, claims] of this.#logs.claims) {
      claims.sort()
      if (origin !== tiles.origin) {
        report.elsewhere += claims.count
        continue
      }
      for (const tile of claims.tiles(TILE_WIDTH, tiles.size)) {
        report.named += claims.compare(tile * TILE_WIDTH, await tiles.leaves(tile), (line, index) => {
          this.#fail(line, `its entry is not leaf ${index} of the log`)
        })
      }
      claims.remaining((line, index) => this.#fail(line, `leaf ${index}, which it names, is beyond the checkpoint`))
    }
  }

  #fail(line: number, reason: string): void {
    this.#report.failures += 1
    if (this.#report.first !== undefined && line >= this.#report.first.line) return
    this.#report.first = { line, reason: inertLine(shortened(reason, reasonCharactersMax)) }
  }
}

/** A reason may contain text from the line. */
const reasonCharactersMax = 500

function emptyReport(): ExportReport {
  return {
    lines: 0,
    events: 0,
    tombstones: 0,
    rotations: 0,
    ledger: undefined,
    undelegations: 0,
    unreadable: 0,
    signatures: 0,
    leaves: 0,
    named: 0,
    closedLogs: 0,
    lostLogs: 0,
    elsewhere: 0,
    provedAt: undefined,
    unsettled: 0,
    unlogged: 0,
    gaps: [],
    hasEnd: false,
    checkpoint: undefined,
    isSignedByLog: undefined,
    serviceId: undefined,
    failures: 0,
    first: undefined,
  }
}

type Place = { readonly origin: string; readonly index: number; readonly line: number }

/** Whether a delegate acted after its delegation had ended: by the order of leaves in the log, not by clocks. */
class DelegationTimes {
  /** By delegation and log: the newest event. */
  readonly #newest = new Map<string, Place>()
  readonly #ends = new Map<string, Place>()

  note(kind: CheckedLine['kind'], delegation: string, { origin, index }: LeafClaim, line: number): void {
    const name = `${delegation} ${origin}`
    const place = { origin, index, line }
    if (kind === 'undelegation') this.#ends.set(name, place)
    else if (kind === 'event' && index >= (this.#newest.get(name)?.index ?? -1)) this.#newest.set(name, place)
  }

  /** Lines of events after the end of their delegation. */
  late(): number[] {
    return [...this.#newest].flatMap(([name, { index, line }]) =>
      index > (this.#ends.get(name)?.index ?? Number.POSITIVE_INFINITY) ? [line] : [],
    )
  }
}

/** Lines copied one after the other until the next one does not fit. */
class GrowingPart implements ExportPart {
  readonly ends: number[] = []
  readonly numbers: number[] = []
  bytes = new Uint8Array(partBytesMax)

  /** A line longer than a part becomes a part by itself. */
  hasRoomFor({ length }: Uint8Array): boolean {
    const used = this.ends.at(-1) ?? 0
    return used === 0 || (used + length <= partBytesMax && this.ends.length < partLinesMax)
  }

  add(number: number, line: Uint8Array): void {
    const used = this.ends.at(-1) ?? 0
    if (line.length > this.bytes.length) this.bytes = new Uint8Array(line.length)
    this.bytes.set(line, used)
    this.ends.push(used + line.length)
    this.numbers.push(number)
  }
}
