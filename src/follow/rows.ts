/**
 * Updates: the rows that followers read about what happened. Pure scans of the change columns, each with a bound.
 *
 * A follower's position is a mark: it has everything before position `next`, and `taken` updates at it. One position can hold more than one
 * update (a post that is also a mention), so a page may end in the middle of it without losing or repeating any.
 */

import { addresseesOf } from '../../actors/conversations/conversations.ts'
import { versionOfChange } from '../../actors/documents/documents.ts'
import type { UpdateKind } from '../../actors/follow/operations.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { type Change, nowhere, type Room } from '../../actors/records/board.ts'
import type { ChangeKind } from '../../actors/records/change-kinds.ts'
import { none } from '../../actors/records/event-index.ts'
import { has } from '../../actors/records/slot-lists.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import type { State } from '../../actors/state.ts'
import { answerOf, blockedBy, hasLeft } from '../conversations/blocks.ts'
import { eventOf, names } from '../reads/event-view.ts'
import { listed, type ReadContext } from '../reads/read.ts'

export type Position = { readonly next: number; readonly taken: number }

export type UpdatesFilter = {
  /** Names of rooms; empty for all. */
  readonly rooms: readonly string[]
  /** Types of updates; empty for all. */
  readonly kinds: readonly string[]
  readonly limit: number
}

type Who = {
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
  /** The reader's handle, or ''. */
  readonly handle: string
}

export type UpdatesRequest = UpdatesFilter &
  Who & {
    /** Null to start from now. */
    readonly from: Position | null
  }

/** One update as JSON text, and the mark after it. */
export type Update = {
  readonly json: string
  readonly at: number
  readonly next: number
  readonly taken: number
  /**
   * Identity id of the author who addresses the reader; left out if the reader has blocked them. Absent if the update does not address a
   * user.
   */
  readonly from?: string
  /** Identity id of the author of the event shown; left out if the reader has muted them. */
  readonly author?: string
}

/** An update that is pushed as it happens, with the fields that a waiting request's filter needs. */
export type PushedRow = Pick<Update, 'json' | 'from' | 'author'> & {
  readonly position: number
  readonly type: UpdateKind
  /** Its room, or ''. */
  readonly room: string
  /** Identity ids; absent for all followers. */
  readonly readers?: readonly string[]
}

export type UpdatesPage =
  | {
      readonly ok: true
      readonly updates: readonly Update[]
      /** Where to continue: everything before it is in `updates` or irrelevant. */
      readonly end: Position
      /** Whether there may be more after `end` already. */
      readonly more: boolean
      /** Whom the reader has blocked in conversations of this source. */
      readonly blocked: readonly string[]
      /** Whom the reader has muted, if this source knows. */
      readonly muted: readonly string[]
    }
  | { readonly ok: false; readonly refusal: Refusal }

/** Rows examined for one page, so that a filter with few matches does not delay other readers. */
const rowsMax = 20_000
const bytesMax = 512 * 1024

export function updatesPage(context: ReadContext, request: UpdatesRequest): UpdatesPage {
  const { changes } = context.state
  const now: Position = { next: context.board.change + 1, taken: 0 }
  const from = request.from ?? now
  if (from.next > now.next) return { ok: false, refusal: ahead }
  const updates: Update[] = []
  const { reader } = request
  const leftOut = {
    blocked: reader === '' ? [] : blockedBy(context.state, reader),
    muted: reader === '' ? [] : context.state.subscriptions.mutedBy(reader),
  }
  let bytes = 0
  let { next, taken } = { next: from.next, taken: 0 }
  const first = changes.after(from.next - 1)
  const last = Math.min(changes.count, first + rowsMax)
  for (let row = first; row < last; row++) {
    const change = changes.at(row)
    if (change.position !== next) {
      next = change.position
      taken = 0
    }
    const types = typesOf(change.kind, request.reader)
    if (!isWanted(context, change, request)) {
      taken += types.length
      continue
    }
    for (const type of types) {
      taken++
      if (next === from.next && taken <= from.taken) continue
      if (request.kinds.length > 0 && !request.kinds.includes(type)) continue
      if (updates.length === request.limit || bytes >= bytesMax)
        return { ok: true, updates, end: { next, taken: taken - 1 }, more: true, ...leftOut }
      const json = updateJson(context, change, type, request)
      if (json === undefined) continue
      const sender = senderOf(context, change, type, request.reader)
      const named = sender === undefined ? {} : { from: sender }
      updates.push({ json, at: change.at, next, taken, ...named, ...authorOf(context, change) })
      bytes += json.length
    }
  }
  if (last < changes.count) return { ok: true, updates, end: { next, taken }, more: true, ...leftOut }
  return { ok: true, updates, end: now, more: false, ...leftOut }
}

/** The updates that a public change produces: for everyone, and for those whom it addresses. */
export function publicRows(context: ReadContext, change: Change): PushedRow[] {
  const rows = pushedRow(context, change, change.kind, [''])
  return [...rows, ...concernedReaders(context, change).flatMap((reader) => personalRows(context, change, reader))]
}

/** The updates that a change produces for these readers, all of whom may know of it. */
export function privateRows(context: ReadContext, change: Change, readers: readonly string[]): PushedRow[] {
  const bySender = Map.groupBy(readers, (reader) => senderOf(context, change, change.kind, reader))
  return [
    ...[...bySender.values()].flatMap((alike) => pushedRow(context, change, change.kind, alike)),
    ...readers.flatMap((reader) => personalRows(context, change, reader)),
  ]
}

function personalRows(context: ReadContext, change: Change, reader: string): PushedRow[] {
  const [, ...personal] = typesOf(change.kind, reader)
  return personal.flatMap((type) => pushedRow(context, change, type, [reader]))
}

/** One row or none. The readers have the same sender; '' means all readers. */
function pushedRow(context: ReadContext, change: Change, type: UpdateKind, readers: readonly string[]): PushedRow[] {
  const reader = readers[0]!
  const json = updateJson(context, change, type, { reader, handle: context.handleOf(reader) ?? '' })
  if (json === undefined) return []
  const from = senderOf(context, change, type, reader)
  return [
    {
      position: change.position,
      type,
      room: roomOf(context, change)?.name ?? '',
      json,
      ...(reader === '' ? {} : { readers }),
      ...(from === undefined ? {} : { from }),
      ...authorOf(context, change),
    },
  ]
}

function authorOf({ board: { events, authors } }: ReadContext, { slot }: Change): { readonly author?: string } {
  return slot === nowhere ? {} : { author: authors.idOf(events.author(slot)) }
}

/** Identities that a new public post or version may reply to, address or mention. */
function concernedReaders({ board, body }: ReadContext, { kind, slot }: Change): readonly string[] {
  if (kind !== 'event.posted' && kind !== 'event.superseded') return []
  const { to, handles } = addresseesOf(eventOf(body(slot)))
  const parent = board.events.parent(slot)
  const parentAuthor = parent === none ? undefined : board.authors.idOf(board.events.author(parent))
  const found = [to || undefined, parentAuthor, ...[...handles].map((handle) => board.handles.get(handle))]
  return [...new Set(found.filter((each) => each !== undefined))]
}

const ahead = refusal('expired', 'this cursor is newer than the state of the board that answers', 'cursor')

/** Every type as which a row may be shown, whether it is or not: `taken` counts these. */
function typesOf(kind: ChangeKind, reader: string): readonly UpdateKind[] {
  if (reader === '') return [kind]
  // An edit can mention a user whom no earlier version mentioned.
  return kind === 'event.posted' ? [kind, 'reply', 'mention'] : kind === 'event.superseded' ? [kind, 'mention'] : [kind]
}

/** Whether this row is for the reader, and in the requested rooms. */
function isWanted(context: ReadContext, change: Change, { reader, rooms }: UpdatesRequest): boolean {
  const room = roomOf(context, change)
  if (rooms.length > 0 && (room === undefined || !rooms.includes(room.name))) return false
  return context.visibility === 'public' || isForReader(context.state, change, reader)
}

/** In a shard: whether this reader may know of the row. Public rows come from the feed. */
export function isForReader(state: State, change: Change, reader: string): boolean {
  if (change.kind === 'receiver.item') return state.receivers.find(change.subject)?.owner === reader
  if (change.room === nowhere) return false
  const room = state.board.roomList[change.room]!
  return room.visibility === 'private' && mayWrite(room, reader) && !hasLeft(state, room.name, reader)
}

/** Who addresses the reader: the author of a reply or mention, or the opener of a conversation that the reader has not answered. */
function senderOf({ state, board }: ReadContext, change: Change, type: UpdateKind, reader: string): string | undefined {
  if (type === 'reply' || type === 'mention') return board.authors.idOf(board.events.author(change.slot))
  if (change.room === nowhere) return undefined
  const conversation = state.direct.conversation(board.roomList[change.room]!.name)
  return conversation !== undefined && answerOf(conversation, reader) === 'pending' ? conversation.opener : undefined
}

function roomOf({ board }: ReadContext, change: Change): Room | undefined {
  return change.room === nowhere ? undefined : board.roomList[change.room]
}

function documentWritten({ documents }: State, { subject, position }: Change) {
  const doc = documents.find(subject)
  const version = doc === undefined ? 0 : versionOfChange(doc, position)
  return { document: subject, ...(version === 0 ? {} : { version }) }
}

/** Undefined if the change is not such an update for this reader. */
function updateJson(
  context: ReadContext,
  change: Change,
  type: UpdateKind,
  { reader, handle }: Who,
): string | undefined {
  const { kind, slot, subject, at } = change
  const room = roomOf(context, change)?.name
  const where = room === undefined ? {} : { room }
  if (slot === nowhere) {
    const named =
      kind === 'document.written'
        ? documentWritten(context.state, change)
        : kind === 'receiver.item'
          ? { receiver: subject }
          : kind.startsWith('work.')
            ? { work: subject }
            : {}
    return JSON.stringify({ type, at, ...where, ...named })
  }
  if (type === 'reply' && !isReplyTo(context, slot, reader)) return undefined
  if (type === 'mention' && !isAddressedTo(context.state, slot, reader, handle)) return undefined
  // A mention is shown as in an inbox: the event that contains it, with its newest text.
  const event = listed(context, type === 'mention' ? context.state.marks.original(slot) : slot)
  const mayName = isReplyTo(context, slot, reader) || event.version_id !== undefined
  if (type === 'mention' && mayName && !names(event, reader, handle)) return undefined
  return JSON.stringify({ type, at, ...where, event })
}

function isReplyTo({ board: { events, authors } }: ReadContext, slot: number, reader: string): boolean {
  const parent = events.parent(slot)
  if (parent === none || authors.idOf(events.author(slot)) === reader) return false
  return authors.idOf(events.author(parent)) === reader
}

/** Whether it is a reply, addressed with `to`, or a mention, according to stored lists, so that no text has to be read. */
function isAddressedTo({ direct }: State, slot: number, reader: string, handle: string): boolean {
  return has(direct.inbox(reader), slot) || (handle !== '' && has(direct.privateMentions(handle), slot))
}
