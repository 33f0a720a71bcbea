/**
 * Checks each line of a whole-board export before anything of it is stored: it must have the declared shape, be signed by its author, have
 * the id of its signed bytes, and refer only to things in earlier lines.
 */
import { createHash } from 'node:crypto'
import { formatEntry, parseEntry } from '../../actors/records/entry.ts'
import { none } from '../../actors/records/event-index.ts'
import {
  type BoardRecord,
  commandIn,
  commandSha,
  ownKey,
  RecordType,
  type Signed,
} from '../../actors/records/record.ts'
import { authorOf } from '../../actors/records/write.ts'
import type { State } from '../../actors/state.ts'
import { parseCheckpoint } from '../../storage/checkpoint.ts'
import { parseNote } from '../../storage/note.ts'
import type { TakenRecord } from '../export/board-lines.ts'
import { areEntriesOf } from '../export-check/act-entries.ts'
import { isProven, moves, signatureFault, type Verify } from '../export-check/signed-record.ts'
import { type BoardHead, lineSchemas, type RecordLine, type VotesLine } from '../format/board-schema.ts'
import { foreignJson } from '../format/foreign-json.ts'
import { type Check, compile } from '../format/schema-check.ts'
import { identityId } from '../format/signing.ts'
import { chooseBackend } from '../verify/backends.ts'
import { contradictionIn, type EarlierEvents } from './as-signed.ts'

/** An invalid line, described in words that follow its number. */
export class BadLine extends Error {
  override name = 'BadLine'
}

type LineType = keyof typeof lineSchemas
export type Line = { readonly type: LineType }

const checks = new Map<LineType, Check>()

function checkOf(type: LineType): Check {
  const known = checks.get(type) ?? compile(lineSchemas[type])
  checks.set(type, known)
  return known
}

/** Parses a line, which must have the shape of its type. Throws BadLine. */
export function parseLine(text: string): Line {
  const value = foreignJson(text)
  if (typeof value !== 'object' || value === null) throw new BadLine('it is not one JSON object')
  const { type } = value as { readonly type?: unknown }
  const known = (Object.keys(lineSchemas) as LineType[]).find((each) => each === type)
  if (known === undefined) throw new BadLine(`its type must be one of ${Object.keys(lineSchemas).join(', ')}`)
  const version: unknown = known === 'board' ? Object(value).version : undefined
  if (known === 'board' && version !== 1)
    throw new BadLine(`it has version ${JSON.stringify(version)} of the export, and this release reads version 1`)
  checkShape(known, value)
  if (known === 'board') checkHead(value as BoardHead)
  const { reserved } = value as { readonly reserved?: unknown }
  if (reserved !== undefined) checkShape('act', reserved)
  return value as Line
}

/** The new log names this head. Without the key of the old log, only that its parts agree can be checked. */
function checkHead({ log }: BoardHead): void {
  const note = parseNote(log.checkpoint)
  const read = note.ok ? parseCheckpoint(note.value.text) : note
  if (!read.ok) throw new BadLine(`log/checkpoint is not a signed checkpoint: ${read.problem}`)
  const { origin, size, root } = read.value
  if (origin !== log.origin || size !== log.size || root.toString('hex') !== log.root)
    throw new BadLine('log/checkpoint is of another origin, size or root than log')
}

function checkShape(type: LineType, value: unknown): void {
  const check = checkOf(type)
  if (check(value)) return
  const { instancePath = '', message = 'does not have the expected shape', params } = check.errors?.[0] ?? {}
  const more = params?.additionalProperty === undefined ? '' : ` (${params.additionalProperty})`
  throw new BadLine(`${instancePath === '' ? `a line of type ${type}` : instancePath.slice(1)} ${message}${more}`)
}

/** Throws BadLine if the record cannot follow what `state` has, or is not what its author signed. */
export class RecordChecks {
  readonly #state: State
  readonly #verify: Verify
  /** Room -> number of its newest event. */
  readonly #seqs = new Map<string, number>()
  readonly #events: EarlierEvents = {
    original: (id) => this.#named(id, (slot) => slot),
    root: (id) => this.#named(id, (slot) => this.#state.board.events.root(slot)),
  }

  constructor(state: State) {
    this.#state = state
    const backend = chooseBackend()
    this.#verify = (signature, message, key) => backend.verify(signature, message, key)
  }

  /** `isKnown`: an earlier run has checked its signatures. */
  check(taken: TakenRecord, line: RecordLine, isKnown: boolean): void {
    const { record, key, entries } = taken
    this.#follows(record, key)
    for (const entry of entries) if (parseEntry(entry) === undefined) throw new BadLine('entries are not log entries')
    this.#signed(taken, line, isKnown)
    if (record.type === RecordType.act && !areEntriesOf(record, { key, entries, seqOf: (id) => this.#seqOf(id) }))
      throw new BadLine('entries are not the entries of this act in the log')
  }

  #signed(taken: TakenRecord, line: RecordLine, isKnown: boolean): void {
    const { record, key, entries } = taken
    const { by } = record
    // Whoever has the new key acts as the identity from then on, so this is never the old board's word.
    if (moves.is(record) && (by === undefined || taken.isGone || by.for !== undefined))
      throw new BadLine('a move to another key is not signed by the identity itself')
    if (by === undefined) return
    const sha = commandSha(by)
    if (line.signed?.command_sha256 !== sha.toString('hex'))
      throw new BadLine('signed/command_sha256 is not the hash of signed/signed_payload')
    if (!sha.subarray(0, 16).equals(key) && by.signed.length > 0)
      throw new BadLine('id is not the first half of signed/command_sha256')
    if (record.type === RecordType.event) this.#entryOfEvent(record, sha, entries)
    if (taken.isGone) return
    this.#signer(record, by)
    const command = commandOf('signed/signed_payload', by.signed)
    const contradiction = contradictionIn(record, sha.toString('hex', 0, 16), command, this.#events)
    if (contradiction !== undefined) throw new BadLine(contradiction)
    if (isKnown) return
    this.#signatures(by, line, sha)
    if (moves.is(record) && !isProven(record.facts, by.signed, this.#verify))
      throw new BadLine('facts/proof does not verify')
  }

  votes({ event }: VotesLine): void {
    if (this.#find(event) === none) throw new BadLine(`event ${event} is on no earlier line`)
  }

  #seqOf(id: Uint8Array): number {
    const { events } = this.#state.board
    return events.seq(events.find(id))
  }

  #find(event: string): number {
    return this.#state.board.events.find(Buffer.from(event, 'hex'))
  }

  /** The id of the event to which `of` leads from the original of this one; the original itself if it leads to none. */
  #named(id: string, of: (original: number) => number): string | undefined {
    const slot = this.#find(id)
    if (slot === none) return undefined
    const original = this.#state.marks.original(slot)
    const found = of(original)
    return this.#state.board.events.idHex(found === none ? original : found)
  }

  #follows(record: BoardRecord, key: Uint8Array): void {
    const { board } = this.#state
    const isRoom = record.type === RecordType.roomCreated
    if (isRoom && board.rooms.has(record.room)) throw new BadLine(`room ${record.room} was created by an earlier line`)
    if (!isRoom && !record.room.startsWith('@') && !board.rooms.has(record.room))
      throw new BadLine(`room ${record.room} is created by no earlier line`)
    const about = record.type === RecordType.act ? record.facts.id : undefined
    if (about instanceof Uint8Array && board.events.find(about) === none)
      throw new BadLine(`facts/id ${Buffer.from(about).toString('hex')} is on no earlier line`)
    if (record.type !== RecordType.event) return
    if (board.events.find(key) !== none) throw new BadLine('its event is on an earlier line')
    for (const name of ['reply', 'root', 'original'] as const) {
      const other = record[name]
      if (other !== undefined && board.events.find(other) === none)
        throw new BadLine(`${name} ${Buffer.from(other).toString('hex')} is on no earlier line`)
    }
    const next = (this.#seqs.get(record.room) ?? 0) + 1
    if (record.seq !== next)
      throw new BadLine(`seq is ${record.seq}, but the next one of room ${record.room} is ${next}`)
    this.#seqs.set(record.room, next)
  }

  #entryOfEvent(record: Extract<BoardRecord, { seq: number }>, sha: Buffer, entries: readonly Uint8Array[]): void {
    const { room, seq, at: time } = record
    const command = sha.toString('hex')
    const entry = formatEntry({ kind: 'post', event: command.slice(0, 32), room, seq, time, command })
    if (entries.length !== 1 || !entry.equals(entries[0]!))
      throw new BadLine('entries/0 is not the entry of this event in the log')
  }

  /** The key must belong to the identity that the record names as its author. */
  #signer(record: BoardRecord, by: Signed): void {
    const key = Buffer.from(ownKey(by))
    const identity = this.#state.people.identityOf(key.toString('base64url')) ?? identityId(key)
    if (identity !== authorOf(record, key)) throw new BadLine('signed/public_key is not a key of its author')
  }

  #signatures(by: Signed, { signed: shown }: RecordLine, sha: Buffer): void {
    const message = Buffer.from(shown!.signed_payload!)
    if (!createHash('sha256').update(message).digest().equals(sha))
      throw new BadLine('signed/command_sha256 is not the hash of signed/signed_payload')
    if (by.for !== undefined) commandOf('signed/delegation/signed_payload', by.for.signed)
    const fault = signatureFault(by, message, this.#verify)
    if (fault !== undefined) throw new BadLine(fault)
  }
}

function commandOf(what: string, signed: Uint8Array): ReturnType<typeof commandIn> {
  try {
    return commandIn(signed)
  } catch {
    throw new BadLine(`${what} is not a signed command`)
  }
}
