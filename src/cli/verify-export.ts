/**
 * An export checked offline: every signature and id, and every line's place under the signed checkpoint.
 *
 * The file is read once, as a stream. Lines are checked as they come, signatures on threads; the leaves at the end
 * give the root, which must be the checkpoint's, and each line's entry must hash to the leaf it names. The board is
 * not asked, and nothing in the file is believed that does not follow from signatures and hashes.
 */

import type { ParsedCheckpoint } from '../../storage/checkpoint.ts'
import { leafHash } from '../../storage/merkle.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { TILE_WIDTH } from '../../storage/tile-path.ts'
import { parseStrictJson } from '../format/strict-json.ts'
import { chooseBackend } from '../verify/backends.ts'
import type { VerdictCallback } from '../verify/verifier.ts'
import { type CheckedLine, checkLine, KeyOwners, type LeafClaim } from './event-check.ts'
import { ExportLogs } from './export-logs.ts'
import { LedgerBooks, readLedgerLine } from './ledger-books.ts'
import { type Line, lineBytesMax } from './lines.ts'
import type { LogTiles } from './log-tiles.ts'
import type { Renamed } from './shown-fields.ts'
import { type SignatureToCheck, textOf } from './signed-line.ts'
import { inertLine, shortened } from './terminal.ts'

/** Signatures under way: half of what the verifier holds, so that it is never 'overloaded'. */
const pendingMax = 2048

type ExportFailure = { readonly line: number; readonly reason: string }

export type ExportReport = {
  lines: number
  events: number
  tombstones: number
  rotations: number
  /** Of the public ledger, where the file is that. */
  ledger: LedgerBooks | undefined
  /** Delegations that ended. */
  undelegations: number
  /** Records that the board itself could not read. */
  unreadable: number
  signatures: number
  /** Leaves in the file; 0 in a filtered or paged export. */
  leaves: number
  /** Leaves that a line of the file is the entry of. */
  named: number
  /** Logs that are closed in the file, each tied to the one that follows it. */
  closedLogs: number
  /** Leaves that a line of a part names in a log of another key than the one given. */
  elsewhere: number
  /** Size of the head that the lines of a part were proved against, leaf by leaf; undefined = they were not. */
  provedAt: number | undefined
  /** Lines of a part that only the rest could settle: whose key it is, or which event a version's id stands for. */
  unsettled: number
  /** Lines of a part that say they are in no log, as those of private rooms do. */
  unlogged: number
  hasEnd: boolean
  /** The checkpoint at the end, and whether the log's key signed it; undefined = no key to check with. */
  checkpoint: ParsedCheckpoint | undefined
  isSignedByLog: boolean | undefined
  serviceId: string | undefined
  failures: number
  first: ExportFailure | undefined
}

/** What checks signatures: the threads of `Verifier`, or this thread alone. */
export type SignatureChecker = {
  verify(signature: Uint8Array, publicKey: Uint8Array, message: Uint8Array, callback: VerdictCallback): void
  close(): Promise<void>
}

/** Checks at once on this thread: a small file is done before threads would have started. */
export function checkHere(backend = chooseBackend()): SignatureChecker {
  return {
    verify(signature, publicKey, message, callback) {
      if (!backend.checkKey(publicKey)) callback('bad_key')
      else callback(backend.verify(signature, message, publicKey) ? 'good' : 'bad_signature')
    },
    close: () => Promise.resolve(),
  }
}

type ExportVerifyOptions = {
  readonly lines: AsyncIterable<Line & { readonly isCut: boolean }>
  readonly checker: SignatureChecker
  /** The log's key; without it the checkpoint's signature stays unchecked unless the file brings a key. */
  readonly logKey: VerifierKey | undefined
  /** The log itself, to prove the lines of a filtered or paged export against. */
  readonly tiles?: LogTiles | undefined
  /** Service id of the board that this one was imported from: its lines were signed for that. */
  readonly importedFrom?: string | undefined
  /** Called after each line. */
  readonly progress: (lines: number) => void
}

/** Checks a whole file. Throws only what reading the file throws. */
export async function verifyExport(options: ExportVerifyOptions): Promise<ExportReport> {
  return new ExportVerification(options).run()
}

class ExportVerification {
  readonly #options: ExportVerifyOptions
  readonly #owners = new KeyOwners()
  readonly #logs: ExportLogs
  readonly #report: ExportReport = emptyReport()
  /** Id of a later version -> its original. */
  readonly #versions = new Map<string, string>()
  readonly #renamed: (Renamed & { readonly line: number })[] = []
  readonly #successors: { readonly id: string; readonly original: string; readonly line: number }[] = []
  readonly #untied: { readonly line: number; readonly whose: string }[] = []
  /** Lines that say they are in no log. */
  readonly #unlogged: number[] = []
  readonly #delegations = new DelegationTimes()
  #pending = 0
  #wake: (() => void) | undefined

  constructor(options: ExportVerifyOptions) {
    this.#options = options
    this.#logs = new ExportLogs({ logKey: options.logKey, fail: (line, reason) => this.#fail(line, reason) })
  }

  async run(): Promise<ExportReport> {
    const report = this.#report
    for await (const { number, bytes, isCut } of this.#options.lines) {
      report.lines = number
      if (bytes.length === 0) continue
      if (isCut) this.#fail(number, `the line is longer than ${lineBytesMax} bytes`)
      else this.#take(number, bytes)
      if (this.#pending >= pendingMax) await this.#until(pendingMax / 2)
      this.#options.progress(number)
    }
    await this.#until(0)
    this.#settle()
    this.#finish()
    report.leaves = this.#logs.leaves
    report.named = this.#logs.named
    report.closedLogs = this.#logs.closed
    report.checkpoint = this.#logs.checkpoint
    report.isSignedByLog = this.#logs.isSigned
    if (!report.hasEnd && this.#options.tiles !== undefined) await this.#prove(this.#options.tiles)
    return report
  }

  #take(number: number, bytes: Buffer): void {
    // A key given twice would be one text here and another to who takes the first of the two.
    const read = parseStrictJson(bytes)
    if (!read.ok) return this.#fail(number, `the line is not strict JSON: ${read.message}`)
    const value: Record<string, unknown> = Object(read.value)
    if (this.#report.hasEnd) return this.#fail(number, 'a line follows the end line')
    if (value.type === 'leaves') return this.#logs.takeLeaves(number, value)
    if (value.type === 'log') return this.#logs.takeClosed(number, value)
    if (value.type === 'end') return this.#takeEnd(number, value)
    if (value.type === 'unreadable') return this.#takeUnreadable(number, value)
    const isLedger = value.type === 'ledger'
    if (!isLedger && !recordTypes.has(textOf(value.type))) {
      const types = 'event, tombstone, rotation, undelegation, unreadable, ledger, leaves, log or end'
      return this.#fail(number, `the type is not ${types}`)
    }
    if (this.#logs.leaves > 0) return this.#fail(number, 'a record follows the leaves')
    if (isLedger) return this.#takePosting(number, value)
    this.#takeRecord(number, value)
  }

  /** The board could not read its own record: all else in the file is checked, but the file is not whole. */
  #takeUnreadable(number: number, value: Record<string, unknown>): void {
    this.#report.unreadable += 1
    const why = inertLine(shortened(textOf(value.error), 200))
    this.#fail(number, `the board could not read ${inertLine(shortened(textOf(value.event_id), 64))} (${why})`)
  }

  #takeRecord(number: number, value: Record<string, unknown>): void {
    const report = this.#report
    if (value.type === 'event') report.events += 1
    else if (value.type === 'tombstone') report.tombstones += 1
    else if (value.type === 'rotation') report.rotations += 1
    else report.undelegations += 1
    const check = checkLine(value, this.#owners)
    if (!check.ok) return this.#fail(number, check.problem)
    const { kind, leaves, serviceId, signatures, version, successor, renamed, untied, delegation } = check.line
    if (serviceId !== undefined && serviceId !== this.#options.importedFrom) {
      report.serviceId ??= serviceId
      if (serviceId !== report.serviceId)
        return this.#fail(
          number,
          'it was signed for another board than the preceding lines; where this board was imported, name the service id of the one before with --imported-from',
        )
    }
    for (const { index, leafHash, origin } of leaves) this.#logs.claim(origin, index, leafHash, number)
    if (version !== undefined) this.#versions.set(version.id, version.original)
    for (const each of renamed) this.#renamed.push({ ...each, line: number })
    if (successor !== undefined) this.#successors.push({ ...successor, line: number })
    if (untied !== undefined) this.#untied.push({ line: number, whose: untied })
    const [own] = leaves
    if (own === undefined) this.#unlogged.push(number)
    if (delegation !== undefined && own !== undefined) this.#delegations.note(kind, delegation, own, number)
    for (const signature of signatures) this.#checkSignature(number, signature)
  }

  #takePosting(number: number, value: Record<string, unknown>): void {
    this.#report.ledger ??= new LedgerBooks()
    const read = readLedgerLine(value)
    if (typeof read === 'string') return this.#fail(number, read)
    const fault = this.#report.ledger.take(read.line)
    if (fault !== undefined) this.#fail(number, fault)
    const { state, origin, index } = Object(value.log) as { state?: unknown; origin?: unknown; index?: unknown }
    if (state !== 'included' || typeof origin !== 'string' || !Number.isSafeInteger(index) || (index as number) < 0)
      return this.#fail(number, 'log names no state, origin and index')
    this.#logs.claim(origin, index as number, leafHash(read.entry), number)
  }

  #checkSignature(number: number, { signature, publicKey, message, whose }: SignatureToCheck): void {
    this.#pending += 1
    this.#options.checker.verify(signature, publicKey, message, (verdict) => {
      this.#pending -= 1
      if (verdict === 'good') this.#report.signatures += 1
      else if (verdict === 'bad_key') this.#fail(number, `the key of ${whose} is not a valid Ed25519 key`)
      else if (verdict === 'bad_signature') this.#fail(number, `${whose} does not verify`)
      else this.#fail(number, `${whose} could not be checked: the verifier threads have stopped`)
      this.#wake?.()
    })
  }

  #takeEnd(number: number, value: Record<string, unknown>): void {
    const report = this.#report
    report.hasEnd = true
    const { events, tombstones, rotations, undelegations, unreadable } = report
    const records = events + tombstones + rotations + undelegations + unreadable + (report.ledger?.postings ?? 0)
    if (value.count !== records)
      this.#fail(number, `the end line counts ${String(value.count)} records; there are ${records}`)
    this.#logs.takeEnd(number, textOf(value.checkpoint))
  }

  #finish(): void {
    const report = this.#report
    if (!report.hasEnd) {
      if (this.#logs.leaves > 0) this.#fail(report.lines, 'the file is cut short: it has leaves but no end line')
      return
    }
    this.#logs.finish()
  }

  /** What a line says by another line's word: in a part of an export that other line may be missing. */
  #settle(): void {
    const report = this.#report
    const unbalanced = report.ledger?.end()
    if (unbalanced !== undefined) this.#fail(report.lines, unbalanced)
    for (const { line, field, signed, shown } of this.#renamed) {
      const original = this.#versions.get(signed)
      if (original === shown) continue
      // A version whose line cannot be read names its original no more.
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
    // Held against a line only where what it names is right; and that may be newer than the export.
    if (report.failures > 0) return
    for (const { line, id, original } of this.#successors) {
      const actual = this.#versions.get(id)
      if (actual !== undefined && actual !== original)
        this.#fail(line, 'superseded_by names a version of another event')
    }
  }

  /** Every leaf that a line names, held against the tiles of its log. Of another log than theirs nothing is known here. */
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

  async #until(pending: number): Promise<void> {
    while (this.#pending > pending) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    this.#wake = undefined
  }
}

/** A reason may bear what stands in the line. */
const reasonCharactersMax = 500

const recordTypes: ReadonlySet<string> = new Set(['event', 'tombstone', 'rotation', 'undelegation'])

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
    elsewhere: 0,
    provedAt: undefined,
    unsettled: 0,
    unlogged: 0,
    hasEnd: false,
    checkpoint: undefined,
    isSignedByLog: undefined,
    serviceId: undefined,
    failures: 0,
    first: undefined,
  }
}

type Place = { readonly origin: string; readonly index: number; readonly line: number }

/** Did a delegate act after its delegation had ended? By the order of the log, not by clocks: leaf against leaf. */
class DelegationTimes {
  /** Of each delegation and log: the newest event by it. */
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
