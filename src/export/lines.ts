/**
 * Lines of /v1/export: everything public and archivable, with what is needed to check it offline.
 *
 * One line for each signed version in its current state; a tombstone for an event whose text was removed. Votes are as of when the line is
 * written. A record that the disk no longer holds as written gets a line that says so.
 */

import type { DelegationEnd } from '../../actors/delegations/delegations.ts'
import { toUtf8, type Utf8 } from '../../actors/kernel/utf8.ts'
import type { Rotation } from '../../actors/people/people.ts'
import type { Redaction } from '../../actors/posts/marks.ts'
import { parseEntry } from '../../actors/records/entry.ts'
import { none } from '../../actors/records/event-index.ts'
import { commandIn, frameCommand, frameEntry, fromFrame } from '../../actors/records/record.ts'
import { formatOf, kindDefault, pageDefault } from '../../actors/rooms/room.ts'
import type { State } from '../../actors/state.ts'
import type { Frame } from '../../storage/journal.ts'
import { commandId } from '../format/signing.ts'
import { beginningOfEvent, plainPost, quoted } from '../reads/event-json.ts'
import { type EventView, versionView } from '../reads/event-view.ts'
import { type ReadContext, showing } from '../reads/read.ts'

/** Whether the event may be archived: its room allows it, and the event does not expire. */
export function isForArchive({ board: { events, roomList }, rules }: State, slot: number): boolean {
  return events.expires(slot) === 0 && rules.policyOf(roomList[events.room(slot)]!.name).archive
}

type LineContext = Pick<ReadContext, 'state' | 'body' | 'frame' | 'now' | 'handleOf'>

/** One version as a line with its line feed. `leaves`: the number of the board's leaves that the export proves. */
export function exportLine(context: LineContext, slot: number, leaves: number): Utf8 {
  const frame = context.body(slot)
  return plainLine(context, slot, frame) ?? toUtf8(viewLine(context, slot, frame, leaves))
}

/** The line of a post that is shown as it was written, built from the stored bytes. */
function plainLine({ state, now, handleOf }: LineContext, slot: number, frame: Frame): Utf8 | undefined {
  const plain = plainPost(state, slot, () => frame, { now: now(), handleOf })
  const parent = state.board.events.parent(slot)
  const isAsSigned = parent === none || (plain?.page === pageDefault && isForArchive(state, parent))
  if (plain === undefined || !isAsSigned) return undefined
  const { index, origin } = logOf(state, state.board.events.leaf(slot))
  const log = `{"state":"included","index":${index},"origin":${quoted(origin)}}`
  return `${beginningOfEvent(state, plain, true)}${log},"command_sha256":"${frameCommand(frame)}","archive_eligible":true}\n`
}

function viewLine(context: LineContext, slot: number, frame: Frame, leaves: number): string {
  const { state, frame: frameAt } = context
  const event = versionView(state, slot, frame, showing(context, true))
  const log = logOf(state, state.board.events.leaf(slot))
  const line = { ...asSigned(state, slot, event), command_sha256: frameCommand(frame), log, archive_eligible: true }
  // The log names the original, whose redaction covers every version.
  const redaction = state.marks.isEdit(slot) ? undefined : state.marks.redactionOf(slot)
  // A redaction during the export is left to the next one: its text is gone, but its leaf is not among these leaves.
  if (redaction === undefined || redaction.leaf >= leaves) return `${JSON.stringify(line)}\n`
  return `${JSON.stringify({ ...line, redaction: redactionView(state, redaction, frameAt(redaction.shard, redaction.place)) })}\n`
}

/**
 * Page, kind and format as they were signed; if they follow from another event, the actual values are added in separate fields. Verifiers
 * of every release compare them with the signed bytes, where a reply without a page is on `main`, a version without a kind is a note, and
 * one without a format is plain text. `reply_to` is also as it was signed if the export has no line for that event, which would name its versions.
 */
function asSigned(
  state: State,
  slot: number,
  event: EventView,
): EventView & { readonly actual_page?: string; readonly actual_kind?: string; readonly actual_format?: string } {
  const { type, page, kind, format, reply_to: parent, supersedes, signed_payload: payload } = event
  const mayMove = supersedes === undefined && parent !== undefined && page !== pageDefault
  const mayKeep = supersedes !== undefined && (kind !== kindDefault || format === 'markdown')
  const isAlone = parent !== undefined && !isForArchive(state, state.board.events.parent(slot))
  if (type === 'tombstone' || payload === undefined || !(mayMove || mayKeep || isAlone)) return event
  const command = commandIn(Buffer.from(payload))
  const named = isAlone && command.reply_to !== undefined ? { ...event, reply_to: command.reply_to } : event
  if (mayMove && command.page === undefined) return { ...named, page: pageDefault, actual_page: page }
  if (!mayKeep) return named
  const [ownKind, ownFormat] = [command.kind ?? kindDefault, formatOf(undefined, command.data)]
  return {
    ...named,
    ...(kind === ownKind ? {} : { kind: ownKind, actual_kind: kind }),
    ...(format === ownFormat ? {} : { format: ownFormat, actual_format: format }),
  }
}

/** An archive outlives the log that grows now, so every line names its log. */
function logOf({ book }: State, leaf: number) {
  const { origin, base } = book.holding(leaf)
  return { state: 'included', index: leaf - base, origin }
}

/** The leaf that records the redaction, so that it can be checked like the event's own. */
function redactionView(state: State, { id, leaf }: Redaction, frame: Frame) {
  const lines = parseEntry(frameEntry(frame))!
  const [command, time] = [lines.get('command')!, Number(lines.get('time'))]
  return { event_id: id, command_sha256: command, created_at: time, log: logOf(state, leaf) }
}

/** An identity that moved to another key: both keys and both signatures. The record of the act has what the old key signed. */
export function rotationLine({ state, frame: frameAt }: LineContext, rotation: Rotation): string {
  const { id, identity, from, to, proof, at, leaf, shard, place } = rotation
  const { sig, signed } = fromFrame(frameAt(shard, place)).by!
  const line = {
    type: 'rotation',
    event_id: id,
    identity,
    public_key: from,
    new_public_key: to,
    signature: Buffer.from(sig).toString('base64url'),
    proof,
    signed_payload: Buffer.from(signed).toString('utf8'),
    command_sha256: commandId(signed).sha256,
    created_at: at,
    log: logOf(state, leaf),
    archive_eligible: true,
  }
  return `${JSON.stringify(line)}\n`
}

/** A delegation whose end is in the log: the leaf that says so and, if the identity itself ended it, what was signed. */
export function delegationEndLine({ state, frame: frameAt }: LineContext, ended: DelegationEnd): string {
  const { id, delegation, identity, by, at, leaf, shard, place } = ended
  const frame = frameAt(shard, place)
  const { by: signed } = fromFrame(frame)
  const line = {
    type: 'undelegation',
    event_id: id,
    delegation_id: delegation,
    identity,
    ended_by: by,
    ...(signed === undefined
      ? {}
      : {
          signature: Buffer.from(signed.sig).toString('base64url'),
          signed_payload: Buffer.from(signed.signed).toString('utf8'),
        }),
    command_sha256: frameCommand(frame),
    created_at: at,
    log: logOf(state, leaf),
    archive_eligible: true,
  }
  return `${JSON.stringify(line)}\n`
}

/** Replaces a line whose record is damaged: what is known without it. */
export function unreadableLine(
  { state }: LineContext,
  { id, room, leaf }: { readonly id: string; readonly room?: string | undefined; readonly leaf: number },
  error: string,
): string {
  const line = {
    type: 'unreadable',
    event_id: id,
    ...(room === undefined ? {} : { room }),
    log: logOf(state, leaf),
    error,
  }
  return `${JSON.stringify(line)}\n`
}

/** `hashes`: concatenated 32-byte leaf hashes. */
export function leavesLine(origin: string, start: number, hashes: Buffer): string {
  return `${JSON.stringify({ type: 'leaves', origin, start, hashes: hashes.toString('base64') })}\n`
}

/**
 * The end of a log that was followed by another: its last head, and the two entries that link both logs, as base64 of the hashed bytes.
 * `close` is its last leaf, `open` the first one of the next; both are passed with their length prefix, as in a bundle. `next` is given if
 * the log has no last entry that names its successor, because its end is lost.
 */
export function closedLine(log: {
  readonly origin: string
  readonly checkpoint: string
  readonly close: Buffer
  readonly open: Buffer
  readonly next?: string
}): string {
  const close = log.close.toString('base64', 2)
  const open = log.open.toString('base64', 2)
  const { origin, checkpoint, next } = log
  return `${JSON.stringify({ type: 'log', origin, checkpoint, close, open, next })}\n`
}

export function endLine(count: number, checkpoint: string): string {
  return `${JSON.stringify({ type: 'end', count, checkpoint })}\n`
}
