/**
 * Checks the logs of an export as their leaves arrive: the root of every log, its last head, and the tie between a closed log and its
 * successor.
 *
 * One pinned key suffices for all of them. Forward: the last entry of a closed log names the next log and its key. Backward: the first
 * entry of a log names the size and root of the previous one, so trust in the newer head extends to the older root.
 */
import { nextOf, previousOf } from '../../actors/log/rotation.ts'
import { decodeBase64 } from '../../storage/base64.ts'
import { openCheckpoint, type ParsedCheckpoint, parseCheckpoint } from '../../storage/checkpoint.ts'
import { CompactRange, leafHash } from '../../storage/merkle.ts'
import { parseNote, parseVkey, type VerifierKey } from '../../storage/note.ts'
import { textOf } from '../export-check/signed-line.ts'
import { LeafClaims } from './leaf-claims.ts'
import { wordOf } from './terminal.ts'

const leavesPerLineMax = 4096

type ExportLogsOptions = {
  /** The pinned key, of any of the logs. */
  readonly logKey: VerifierKey | undefined
  readonly fail: (line: number, reason: string) => void
}

/** What a closed log says of its successor, and the leaf that the successor must begin with. */
type Tie = { readonly origin: string; readonly open: Buffer }

export class ExportLogs {
  /** Leaves in the file. */
  leaves = 0
  /** Leaves whose entry is a line of the file. */
  named = 0
  /** Number of closed logs in the file. */
  closed = 0
  /** How many of them have lost their end. */
  lost = 0
  /** The newest head in the file. */
  checkpoint: ParsedCheckpoint | undefined
  /** Undefined if there is no key to check with. */
  isSigned: boolean | undefined
  readonly #options: ExportLogsOptions
  readonly #claims = new Map<string, LeafClaims>()
  readonly #keys = new Map<string, VerifierKey>()
  /** Receives the nodes that CompactRange writes for storage; not needed here. */
  readonly #nodes = Buffer.alloc(leavesPerLineMax * 64 + 54 * 32)
  #range = new CompactRange()
  #last = Buffer.alloc(0)
  /** The log whose leaves are being read. */
  #origin: string | undefined
  #tie: Tie | undefined
  /** The newest log whose end is lost: none of its entries names the key of the next one. */
  #lost: string | undefined
  #areLeavesBroken = false

  constructor(options: ExportLogsOptions) {
    this.#options = options
    if (options.logKey !== undefined) this.#keys.set(options.logKey.name, options.logKey)
  }

  /** A line claims to be this leaf of that log. */
  claim(origin: string, index: number, hash: Uint8Array, line: number): void {
    const claims = this.#claims.get(origin) ?? new LeafClaims()
    this.#claims.set(origin, claims)
    claims.add(index, hash, line)
  }

  /** Claims by log. */
  get claims(): ReadonlyMap<string, LeafClaims> {
    return this.#claims
  }

  takeLeaves(number: number, value: Readonly<Record<string, unknown>>): void {
    const hashes = decodeBase64(textOf(value.hashes))
    if (
      hashes === undefined ||
      hashes.length === 0 ||
      hashes.length % 32 !== 0 ||
      hashes.length > leavesPerLineMax * 32
    ) {
      this.#areLeavesBroken = true
      return this.#fail(number, `hashes is not base64 of 1 to ${leavesPerLineMax} hashes of 32 bytes`)
    }
    const origin = textOf(value.origin)
    if (this.#origin === undefined) this.#begin(number, origin, hashes.subarray(0, 32))
    else if (origin !== this.#origin)
      this.#fail(number, `the log is ${origin}; the preceding leaves belong to ${this.#origin}`)
    if (value.start !== this.#range.size) {
      this.#areLeavesBroken = true
      return this.#fail(
        number,
        `the leaves begin at ${wordOf(value.start)}, not where the last ended, at ${this.#range.size}`,
      )
    }
    const claims = this.#claims.get(this.#origin!)
    this.named +=
      claims?.compare(this.#range.size, hashes, (line, index) => {
        this.#fail(line, `its entry is not leaf ${index} of the log`)
      }) ?? 0
    this.#range.append(hashes, this.#nodes)
    this.#last = Buffer.from(hashes.subarray(-32))
    this.leaves += hashes.length / 32
  }

  /** A log ends here, and its successor begins. */
  takeClosed(number: number, value: Readonly<Record<string, unknown>>): void {
    if (this.#origin === undefined || value.origin !== this.#origin)
      return this.#fail(number, `it closes ${textOf(value.origin)}, whose leaves do not precede it`)
    const parsed = this.#takeHead(number, textOf(value.checkpoint))
    const close = decodeBase64(textOf(value.close))
    const open = decodeBase64(textOf(value.open))
    const previous = open === undefined ? undefined : previousOf(open)
    // If the end of a log is lost, its successor says so, and no entry names the successor's key.
    const lost = previous?.isLost ? { origin: textOf(value.next), vkey: '' } : undefined
    const next = lost ?? (close === undefined ? undefined : nextOf(close))
    if (close === undefined || next === undefined || !leafHash(close).equals(this.#last))
      return this.#fail(number, 'its close entry is not the last leaf of the log')
    const isTied =
      parsed !== undefined &&
      previous?.origin === parsed.origin &&
      previous.size === parsed.size &&
      previous.root.equals(parsed.root)
    if (open === undefined || !isTied)
      return this.#fail(number, 'the first entry of the next log does not name the end of this one')
    const key = parseVkey(next.vkey)
    const isTrusted = this.#isSignedBy(number, textOf(value.checkpoint), this.#origin) === true
    if (isTrusted && key.ok && key.value.name === next.origin) this.#keys.set(next.origin, key.value)
    if (lost !== undefined) this.#lost = this.#origin
    this.#endClaims()
    this.#tie = { origin: next.origin, open: leafHash(open) }
    this.#origin = undefined
    this.#range = new CompactRange()
    this.closed += 1
    if (lost !== undefined) this.lost += 1
  }

  /** The end line: the head of the last log. */
  takeEnd(number: number, checkpoint: string): void {
    if (this.#origin === undefined && this.#tie !== undefined)
      this.#fail(number, `the leaves of ${this.#tie.origin}, which follows, are missing`)
    const parsed = this.#takeHead(number, checkpoint)
    if (parsed === undefined) return
    this.checkpoint = parsed
    this.#origin ??= parsed.origin
    const { logKey } = this.#options
    if (logKey === undefined) return
    this.isSigned = this.#isSignedBy(number, checkpoint, parsed.origin)
    if (this.isSigned !== undefined) return
    // The key belongs to none of these logs, so the checkpoint belongs to another one.
    this.isSigned = false
    const opened = openCheckpoint(checkpoint, logKey)
    if (this.#lost !== undefined)
      return this.#fail(
        number,
        `the end of ${this.#lost} is lost, so it names no next log: pin the key of ${parsed.origin}`,
      )
    if (!opened.ok) this.#fail(number, `the checkpoint does not verify: ${opened.problem}`)
  }

  /** All lines have been read. */
  finish(): void {
    // Leaves that could not be read are one fault, not one per line that names them.
    if (this.#areLeavesBroken) return
    this.#endClaims()
    for (const [origin, claims] of this.#claims) {
      claims.sort()
      claims.remaining((line) => this.#fail(line, `it names the log ${origin}, whose leaves are not in the file`))
    }
  }

  #begin(number: number, origin: string, first: Buffer): void {
    this.#origin = origin
    this.#claims.get(origin)?.sort()
    const tie = this.#tie
    if (tie === undefined) {
      const [named] = this.#claims.keys()
      if (named === undefined || this.#claims.has(origin)) return
      this.#areLeavesBroken = true
      return this.#fail(number, `the log is ${origin}; the preceding lines name ${named}`)
    }
    if (tie.origin !== origin)
      this.#fail(number, `the leaves belong to ${origin}, but the previous log names ${tie.origin}`)
    else if (!tie.open.equals(first)) this.#fail(number, `the first leaf of ${origin} is not the entry that opens it`)
  }

  #takeHead(number: number, checkpoint: string): ParsedCheckpoint | undefined {
    const note = parseNote(checkpoint)
    const parsed = note.ok ? parseCheckpoint(note.value.text) : note
    if (!parsed.ok) {
      this.#fail(number, `the checkpoint cannot be read: ${parsed.problem}`)
      return undefined
    }
    const { origin, size, root } = parsed.value
    if (this.#origin !== undefined && origin !== this.#origin)
      this.#fail(number, `the log is ${origin}; the preceding lines name ${this.#origin}`)
    else if (size !== this.#range.size)
      this.#fail(number, `the checkpoint covers ${size} leaves; the file has ${this.#range.size}`)
    else if (!this.#range.root().equals(root))
      this.#fail(number, 'the root of the leaves is not the root that the checkpoint signs')
    return parsed.value
  }

  /** Undefined if no key of this log is known. */
  #isSignedBy(number: number, checkpoint: string, origin: string): boolean | undefined {
    const key = this.#keys.get(origin)
    if (key === undefined) return undefined
    const opened = openCheckpoint(checkpoint, key)
    if (!opened.ok) this.#fail(number, `the checkpoint does not verify: ${opened.problem}`)
    return opened.ok
  }

  #endClaims(): void {
    const origin = this.#origin
    if (origin === undefined) return
    const claims = this.#claims.get(origin)
    if (this.#range.size === 0) claims?.sort()
    claims?.remaining((line, index) => this.#fail(line, `leaf ${index}, which it names, is beyond the checkpoint`))
    this.#claims.delete(origin)
  }

  #fail(line: number, reason: string): void {
    this.#options.fail(line, reason)
  }
}
