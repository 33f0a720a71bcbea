/**
 * `/v1/export?stream=board`: every public record of the board in log order, with everything needed to rebuild the same board.
 *
 * What no reader is shown is left out: texts that are hidden, redacted, expired or in rooms excluded from archives; deleted documents and
 * files; replaced profiles; and what erased identities said about themselves. Votes are sums. Networks, which a few records name by keyed
 * hashes, are left out. A line of type `unreadable` stands for each record that is damaged on the disk.
 */

import { hash } from 'node:crypto'
import type { BlobFacts } from '../../actors/attachments/attachments.ts'
import type { VersionFacts } from '../../actors/documents/documents.ts'
import { hex } from '../../actors/kernel/hex.ts'
import type { CoveredRecord } from '../../actors/log/public-records.ts'
import { none } from '../../actors/records/event-index.ts'
import {
  ActsOf,
  type BoardRecord,
  type FactRecord,
  type Facts,
  frameEntries,
  frameKey,
  fromFrame,
  RecordType,
} from '../../actors/records/record.ts'
import { type CreditFacts, isOfMarket, type OpenFacts, type ReserveFacts } from '../../actors/works/market/letters.ts'
import { blobDamage } from '../../storage/blob-files.ts'
import { Damage, isUnreadable } from '../../storage/disk.ts'
import type { RecordLine, UnreadableLine } from '../format/board-schema.ts'
import { release } from '../release.ts'
import { boardStreamVersion, type Head, type HeldRecord, opened, recordLine, votesLine } from './board-lines.ts'
import type { ExportChunk, ExportContext, ExportRequest, ExportState } from './chunk.ts'

const chunkBytes = 256 * 1024
/** Records examined for one chunk. */
const chunkRecordsMax = 5_000

/**
 * `row`: the next frame of the log; after the last frame, `leaf` is the next event slot. `given`: records of the frame already exported.
 */
export function boardChunk(context: ExportContext, { state: begun }: ExportRequest): ExportChunk {
  const at = begun ?? begin(context)
  const lines = new Lines()
  if (begun === undefined) lines.add(headLine(context, at))
  const next = at.row <= at.end ? records(context, at, lines) : votes(context, at, lines)
  const state = next === undefined ? undefined : { ...next, count: at.count + lines.count }
  if (state === undefined) lines.add({ type: 'end', lines: at.count + lines.count })
  return { ok: true, bytes: lines.bytes(), ...(state === undefined ? {} : { state }) }
}

class Lines {
  readonly #lines: string[] = []
  size = 0

  get count(): number {
    return this.#lines.length
  }

  add(line: object): void {
    const text = `${JSON.stringify(line)}\n`
    this.#lines.push(text)
    this.size += text.length
  }

  bytes(): Buffer {
    return Buffer.from(this.#lines.join(''))
  }
}

function begin({ state, applied }: ExportContext): ExportState {
  const { size, checkpoint } = state.book.newest.head
  return { row: 1, rotation: 0, given: 0, end: applied(), size, checkpoint, count: 0, log: 0, leaf: 0 }
}

function headLine({ state, serviceId, now }: ExportContext, { size, checkpoint }: ExportState): Head {
  const { origin } = state.book.newest
  const log = { origin, size, root: Buffer.from(checkpoint.split('\n')[2]!, 'base64').toString('hex'), checkpoint }
  return { type: 'board', version: boardStreamVersion, service_id: serviceId, release, exported_at: now(), log }
}

function records(context: ExportContext, at: ExportState, lines: Lines): ExportState {
  let looked = 0
  for (let { row, given } = at; row <= at.end; row++, given = 0) {
    let place = 0
    for (const covered of context.recordsOf(row)) {
      if (place++ < given) continue
      if (looked++ === chunkRecordsMax || lines.size >= chunkBytes) return { ...at, row, given: place - 1 }
      for (const line of linesOf(context, covered)) lines.add(line)
    }
  }
  return { ...at, row: at.end + 1, given: 0 }
}

/** Undefined if there are no more. */
function votes({ state: { marks, board } }: ExportContext, at: ExportState, lines: Lines): ExportState | undefined {
  let looked = 0
  for (let slot = at.leaf; slot < board.events.count; slot++) {
    if (looked++ === chunkRecordsMax) return { ...at, leaf: slot }
    const sums = marks.isEdit(slot) ? undefined : marks.votes(slot)
    if (sums !== undefined && sums.up + sums.down > 0) lines.add(votesLine(board.events.idHex(slot), sums))
  }
  return undefined
}

/** One line, or none if readers must not get it; two if the record is intact and its file is not. */
function linesOf(context: ExportContext, covered: CoveredRecord): (RecordLine | UnreadableLine)[] {
  if (covered.damage !== undefined) return [unreadableLine(context, covered.damage, knownOf(context, covered.change))]
  const { frame } = covered
  const held = { record: fromFrame(frame), key: frameKey(frame), entries: frameEntries(frame) }
  const { record } = held
  try {
    if (put.is(record)) return fileLines(context, held, record)
    const line = lineOf(context, held, frame.seq)
    return line === undefined ? [] : [line]
  } catch (error) {
    // Another record or the file, which it takes too, cannot be read.
    if (!(error instanceof Damage || isUnreadable(error))) throw error
    return [unreadableLine(context, error, { id: hex(held.key) })]
  }
}

type Known = Omit<UnreadableLine, 'type' | 'error'>

/** What the board knows of a damaged record. Only events are known without their record. */
function knownOf({ state: { changes, board } }: ExportContext, number: number): Known {
  const row = changes.after(number - 1)
  if (Number.isNaN(number) || row >= changes.count) return {}
  const { position, kind, slot } = changes.at(row)
  if (position !== number || (kind !== 'event.posted' && kind !== 'event.superseded')) return {}
  const { events, roomList } = board
  return { id: events.idHex(slot), room: roomList[events.room(slot)]!.name, seq: events.seq(slot) }
}

function unreadableLine(context: ExportContext, fault: unknown, known: Known): UnreadableLine {
  return { type: 'unreadable', ...known, error: context.fault(fault) }
}

const put = new ActsOf<BlobFacts>('blob.put')
const versions = new ActsOf<VersionFacts>('docs.create', 'docs.write')
const begun = new ActsOf<CreditFacts>('market.begin')
const asked = new ActsOf<ReserveFacts>('work.create')

/** Undefined if readers must not get it. */
function lineOf(context: ExportContext, held: HeldRecord, seq: number): RecordLine | undefined {
  const { state } = context
  const { record } = held
  switch (record.type) {
    case RecordType.event:
      return eventLine(context, held)
    case RecordType.handleClaimed:
      return state.people.isErased(hex(record.author)) ? undefined : recordLine(held, shown)
    case RecordType.roomCreated:
      return recordLine(held, shown)
  }
  if (record.op === 'vote' || record.op === 'votes.import') return undefined
  // Recovery epochs belong to one board only; the first one funds its rewards.
  if (begun.is(record) && record.facts.postings.length === 0) return undefined
  if (record.op === 'identity.profile.set' && state.people.profileAct(hex(record.author)) !== seq) return undefined
  // The signed bytes contain the invitation code, which others may still use.
  if (record.op === 'room.invite.accept') return recordLine(held, { isGone: true })
  if (versions.is(record)) return versionLine(context, held, record)
  if (opened.is(record)) return openLine(context, held, record.facts.reserved)
  return recordLine({ ...held, record: withoutNetworks(record) }, shown)
}

const shown = { isGone: false }

function eventLine({ state, now }: ExportContext, held: HeldRecord): RecordLine {
  const { board, marks } = state
  const { record } = held
  const slot = board.events.find(held.key)
  const original = marks.original(slot)
  const isGone =
    marks.gone(slot, now()) !== undefined || board.events.expires(original) > 0 || !isArchived(state, record.room)
  // Elsewhere, a text missing from these lines is permanently lost, even if it was only hidden and the hide ends.
  const isLost = isGone && marks.redactionOf(original) === undefined
  const expired = isLost ? { ...record, expires: board.events.at(original) + 1 } : record
  return recordLine({ ...held, record: inOrder(expired) }, { isGone })
}

/** The fields of a record in a fixed order, regardless of its origin. */
function inOrder(record: BoardRecord): BoardRecord {
  return Object.fromEntries(Object.entries(record).sort(([one], [other]) => (one < other ? -1 : 1))) as BoardRecord
}

function isArchived({ rules, board }: ExportContext['state'], room: string): boolean {
  return !board.rooms.has(room) || rules.policyOf(room).archive
}

/** Two if its file is damaged or missing: without the file, and why. */
function fileLines(
  context: ExportContext,
  held: HeldRecord,
  record: FactRecord<BlobFacts>,
): (RecordLine | UnreadableLine)[] {
  const { state, now, blobFile } = context
  const blob = state.blobs.find(hex(held.key))!
  const isServed =
    state.blobs.goneReason(blob, now()) === undefined &&
    state.moderation.takedown(blob.sha256) === undefined &&
    isArchived(state, record.room)
  const file = isServed ? blobFile(blob.room, blob.sha256) : undefined
  const isWhole = file !== undefined && hash('sha256', file) === blob.sha256
  if (isWhole) return [recordLine(held, { isGone: false, file })]
  const facts = { ...record.facts, filename: '', media_type: '', is_image: false }
  const line = recordLine({ ...held, record: { ...record, facts } }, { isGone: true })
  if (!isServed) return [line]
  return [line, unreadableLine(context, blobDamage(blob), { id: hex(held.key), room: record.room, file: true })]
}

function versionLine({ state }: ExportContext, held: HeldRecord, record: FactRecord<VersionFacts>): RecordLine {
  const { doc, version, visibility, size, sha256 } = record.facts
  if (state.documents.find(doc)?.isDeleted !== true && isArchived(state, record.room)) return recordLine(held, shown)
  const facts = { doc, version, title: '', visibility, size, sha256 }
  return recordLine({ ...held, record: { ...record, facts } }, { isGone: true })
}

function openLine(context: ExportContext, held: HeldRecord, place: number): RecordLine {
  const { state, now } = context
  const record = opened.in(withoutNetworks(held.record))
  const { reserved: _, ...rest } = record.facts
  const slot = state.board.events.find(Buffer.from(rest.work, 'hex'))
  const isGone =
    slot === none || state.marks.gone(slot, now()) !== undefined || !isArchived(state, roomOf(context, slot))
  const request = context.frame(state.market.find(rest.work)!.shard, place)
  const reservation = asked.in(withoutNetworks(fromFrame(request)))
  const reserved = recordLine({ record: titled(reservation, isGone), key: frameKey(request), entries: [] }, { isGone })
  return recordLine({ ...held, record: titled({ ...record, facts: rest }, isGone) }, { isGone: false, reserved })
}

/** A work's title is removed together with its request. */
function titled(record: FactRecord<Pick<OpenFacts | ReserveFacts, 'fixed'>>, isGone: boolean): FactRecord {
  const { facts } = record
  return isGone ? { ...record, facts: { ...facts, fixed: { ...facts.fixed, title: '' } } } : record
}

function roomOf({ state: { board } }: ExportContext, slot: number): string {
  return board.roomList[board.events.room(slot)]!.name
}

/** Networks are stored as keyed hashes, which mean something only to the board that has the key. */
function withoutNetworks(record: BoardRecord): BoardRecord {
  if (!isOfMarket(record)) return record
  const { from: _from, wider: _wider, counted: _counted, ...facts }: Facts = record.facts
  return { ...record, facts: 'network' in facts ? { ...facts, network: '' } : facts }
}
