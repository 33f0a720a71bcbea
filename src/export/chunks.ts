/**
 * The export in chunks: the main thread requests the next one when the reader's socket has room, so memory use stays constant however large
 * the board is. The first chunk fixes size and head; later changes are left to the next export.
 *
 * Lines are in the order of changes. A hide, restore or redaction repeats its event with all its versions. So a client that keeps a copy,
 * continues by cursor and replaces lines with the same id has what the board has.
 */

import type { DelegationEnd } from '../../actors/delegations/delegations.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { toUtf8, type Utf8, utf8Bytes } from '../../actors/kernel/utf8.ts'
import type { Rotation } from '../../actors/people/people.ts'
import type { State } from '../../actors/state.ts'
import { Damage } from '../../storage/disk.ts'
import { HASH_BYTES } from '../../storage/merkle.ts'
import { ledgerLines } from '../works/ledger-export.ts'
import { boardChunk } from './board-stream.ts'
import type { ExportChunk, ExportContext, ExportFilter, ExportRequest, ExportState } from './chunk.ts'
import {
  closedLine,
  delegationEndLine,
  endLine,
  exportLine,
  isForArchive,
  leavesLine,
  rotationLine,
  unreadableLine,
} from './lines.ts'

const chunkBytes = 256 * 1024
/** Changes examined for one chunk, so that a filter with few matches does not delay other readers. */
const chunkRowsMax = 20_000
const leavesPerLine = 4_096
const leafLinesPerChunk = 4

/** A cursor is valid only for its filter. */
const listName = ({ room, since, until }: ExportFilter) => `export:${room ?? ''}:${since ?? ''}:${until ?? ''}`

export function exportChunk(context: ExportContext, request: ExportRequest): ExportChunk {
  const { filter, limit } = request
  if (request.stream === 'ledger') return ledgerChunk(context, request)
  if (request.stream === 'board') return boardChunk(context, request)
  const begun = request.state ?? begin(context, request)
  if (begun === undefined) return badCursor
  if (filter.room !== undefined && !context.board.rooms.has(filter.room)) {
    return { ok: false, refusal: refusal('not_found', `there is no public room ${filter.room}`, 'room') }
  }
  if (positionOf(context, begun) <= begun.end) return records(context, request, begun)
  const whole = limit === 0 && Object.keys(filter).length === 0 && request.cursor === ''
  if (!whole) return { ok: true, bytes: Buffer.alloc(0) }
  return leaves(context, begun)
}

const badCursor: ExportChunk = {
  ok: false,
  refusal: refusal('invalid_field', 'this cursor does not belong to an export: start again without one', 'cursor'),
}

/** Postings by number: `row` is the next one, `end` the newest of this export. */
function ledgerChunk(context: ExportContext, request: ExportRequest): ExportChunk {
  const { cursors, state } = context
  const list = 'export:ledger'
  const { limit, cursor } = request
  const place = cursor === '' ? 1 : cursors.open(list, cursor)
  if (typeof place !== 'number') return badCursor
  const { size, checkpoint } = state.book.newest.head
  const newest = state.ledgerIndex.newest
  const fresh = { row: place, rotation: 0, given: 0, end: newest, size, checkpoint, count: 0, log: 0, leaf: 0 }
  const begun = request.state ?? fresh
  if (begun.row > begun.end && limit === 0 && cursor === '') return leaves(context, begun)
  const wanted = { first: begun.row, last: begun.end, limit: limit === 0 ? chunkRowsMax : limit, bytes: chunkBytes }
  const { lines, next } = ledgerLines(context, wanted)
  const bytes = Buffer.from(lines.join(''))
  if (limit === 0) return { ok: true, bytes, state: { ...begun, row: next, count: begun.count + lines.length } }
  return next > begun.end ? { ok: true, bytes } : { ok: true, bytes, nextCursor: cursors.seal(list, next) }
}

/** A cursor contains the number of a change and how many of its lines have been exported: an event has at most 32 versions. */
const linesPerChange = 64

function begin({ state, board, cursors }: ExportContext, { cursor, filter }: ExportRequest): ExportState | undefined {
  const place = cursor === '' ? 0 : cursors.open(listName(filter), cursor)
  if (typeof place !== 'number') return undefined
  const change = Math.floor(place / linesPerChange)
  const row = state.changes.after(change - 1)
  const acts = keyActsOf(state)
  const first = acts.findIndex((each) => each.change >= change)
  const rotation = first < 0 ? acts.length : first
  const { size, checkpoint } = state.book.newest.head
  const begun = { row, rotation, given: place % linesPerChange, end: board.change, size, checkpoint }
  return { ...begun, count: 0, log: 0, leaf: 0 }
}

/** Acts that change whose a key is: rotations to other keys, and ends of delegations. */
type KeyAct = Rotation | DelegationEnd

const keyActs = new WeakMap<State, readonly KeyAct[]>()

/** All of them, ordered by change number. Rebuilt when there is a new one, which is rare. */
function keyActsOf(state: State): readonly KeyAct[] {
  const { rotations } = state.people
  const { ends } = state.delegations
  const known = keyActs.get(state)
  if (known?.length === rotations.length + ends.length) return known
  const all = [...rotations, ...ends].sort((a, b) => a.change - b.change)
  keyActs.set(state, all)
  return all
}

/** Number of the next change, or infinity. */
function positionOf({ state }: ExportContext, { row, rotation }: ExportState): number {
  const { changes } = state
  const ofRow = row < changes.count ? changes.at(row).position : Number.POSITIVE_INFINITY
  return Math.min(ofRow, keyActsOf(state)[rotation]?.change ?? Number.POSITIVE_INFINITY)
}

function records(context: ExportContext, { filter, limit }: ExportRequest, begun: ExportState): ExportChunk {
  const lines: Utf8[] = []
  let bytes = 0
  let at = begun
  const isAuthor = authorsIn(context, filter)
  for (let looked = 0; looked < chunkRowsMax; looked++) {
    const position = positionOf(context, at)
    if (position > at.end) break
    const found = linesAt(context, at, position, { filter, isAuthor })
    const room = limit > 0 ? limit - lines.length : found.length
    if (room === 0 && found.length > 0) break
    for (const line of found.slice(0, room)) {
      lines.push(line)
      bytes += line.length
    }
    if (room < found.length) {
      at = { ...at, given: at.given + room }
      break
    }
    at = next(context, at, position)
    if (limit === 0 && bytes >= chunkBytes) break
  }
  const chunk = utf8Bytes(lines)
  if (limit === 0) return { ok: true, bytes: chunk, state: { ...at, count: at.count + lines.length } }
  const position = positionOf(context, at)
  if (position > at.end) return { ok: true, bytes: chunk }
  const cursor = context.cursors.seal(listName(filter), position * linesPerChange + at.given)
  return { ok: true, bytes: chunk, nextCursor: cursor }
}

function next({ state }: ExportContext, at: ExportState, position: number): ExportState {
  const isRotation = keyActsOf(state)[at.rotation]?.change === position
  return isRotation ? { ...at, rotation: at.rotation + 1, given: 0 } : { ...at, row: at.row + 1, given: 0 }
}

/** Lines of the change at this position that have not been exported yet. */
function linesAt(
  context: ExportContext,
  at: ExportState,
  position: number,
  { filter, isAuthor }: { readonly filter: ExportFilter; readonly isAuthor: (identity: string) => boolean },
): Utf8[] {
  const { state } = context
  const keyAct = keyActsOf(state)[at.rotation]
  if (keyAct?.change === position) {
    const isOutside = !isWithin(keyAct.at, filter) || at.given > 0
    // A reader of a single room also needs those of its authors, which say whose the keys are.
    if (isOutside || !isAuthor(keyAct.identity)) return []
    const line = () =>
      toUtf8('delegation' in keyAct ? delegationEndLine(context, keyAct) : rotationLine(context, keyAct))
    return [lineOrUnreadable(context, keyAct, line)]
  }
  const change = state.changes.at(at.row)
  if (!change.kind.startsWith('event.') || !isWithin(change.at, filter)) return []
  const { events, roomList } = state.board
  if (filter.room !== undefined && roomList[change.room]!.name !== filter.room) return []
  const isOfMarks = change.kind !== 'event.posted' && change.kind !== 'event.superseded'
  const slots = isOfMarks ? [change.slot, ...state.marks.edits(change.slot)] : [change.slot]
  return slots
    .filter(
      (slot) =>
        events.change(slot) <= position && isForArchive(state, slot) && isDue(state, slot, position, at.end, filter),
    )
    .slice(at.given)
    .map((slot) => {
      const record = {
        id: events.id(slot).toString('hex'),
        room: roomList[change.room]!.name,
        leaf: events.leaf(slot),
      }
      return lineOrUnreadable(context, record, () => exportLine(context, slot, state.book.newest.base + at.size))
    })
}

/** One damaged record must not keep readers from the rest of a board. */
function lineOrUnreadable(
  context: ExportContext,
  { id, room, leaf }: { readonly id: string; readonly room?: string; readonly leaf: number },
  line: () => Utf8,
): Utf8 {
  try {
    return line()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    return toUtf8(unreadableLine(context, { id, room, leaf }, context.fault(error)))
  }
}

/** Tells whether an identity has written anything that is in this export. Each is looked up once per chunk: it may have many acts on keys. */
function authorsIn(context: ExportContext, filter: ExportFilter): (identity: string) => boolean {
  const known = new Map<string, boolean>()
  return (identity) => {
    const isAuthor = known.get(identity) ?? hasLine(context, identity, filter)
    known.set(identity, isAuthor)
    return isAuthor
  }
}

/** Examines the events of the identity or those of the room, whichever are fewer. */
function hasLine({ state }: ExportContext, identity: string, { room: name, ...times }: ExportFilter): boolean {
  if (name === undefined) return true
  const { board, marks } = state
  const room = board.rooms.get(name)!
  const author = board.authors.get(identity)
  if (author === undefined) return false
  const slots = author.events.length < room.events.length ? author.events : room.events
  for (let position = 0; position < slots.length; position++) {
    const slot = slots.at(position)
    const isOwn = board.events.room(slot) === room.number && board.events.author(slot) === author.number
    if (!isOwn || !isForArchive(state, slot)) continue
    // An event that was hidden, restored or redacted later has a line there too.
    if (isWithin(board.events.at(slot), times) || marks.changedAt(slot) > 0) return true
  }
  return false
}

function isWithin(at: number, { since, until }: ExportFilter): boolean {
  return (since === undefined || at >= since) && (until === undefined || at < until)
}

/**
 * A line is at the newest change of its event, so that one export has it once. If that change is beyond the export, it is at each change
 * within it.
 */
function isDue(
  { board: { events }, marks }: State,
  slot: number,
  position: number,
  end: number,
  { until }: ExportFilter,
): boolean {
  const newest = Math.max(events.change(slot), marks.changedAt(slot))
  return newest === position || newest > end || until !== undefined
}

/** The leaves of every log, oldest first. After those of a closed log come its end and the beginning of the next. */
function leaves({ state: { book }, leafHashes, entries }: ExportContext, begun: ExportState): ExportChunk {
  const lines: string[] = []
  const log = book.logs[begun.log]!
  const next = book.logs[begun.log + 1]
  const size = next === undefined ? begun.size : log.head.size
  const start = begun.leaf
  const end = Math.min(size, start + leafLinesPerChunk * leavesPerLine)
  const hashes = leafHashes(log, start, end)
  for (let leaf = start; leaf < end; leaf += leavesPerLine) {
    const at = (leaf - start) * HASH_BYTES
    lines.push(leavesLine(log.origin, leaf, hashes.subarray(at, at + leavesPerLine * HASH_BYTES)))
  }
  const bytes = (): Buffer => Buffer.from(lines.join(''))
  if (end < size) return { ok: true, bytes: bytes(), state: { ...begun, leaf: end } }
  if (next === undefined) {
    lines.push(endLine(begun.count, begun.checkpoint))
    return { ok: true, bytes: bytes() }
  }
  const { origin } = log
  const { checkpoint } = log.head
  const [close, open] = [entries(log, size - 1, size), entries(next, 0, 1)]
  lines.push(closedLine({ origin, checkpoint, close, open, ...(log.isLost && { next: next.origin }) }))
  return { ok: true, bytes: bytes(), state: { ...begun, log: begun.log + 1, leaf: 0 } }
}
