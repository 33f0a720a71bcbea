/**
 * What every read is made of: the request, the answer, and the doors that a reader has to pass.
 * The feed thread answers for everything public, a shard for its private rooms; both with the same functions.
 */
import type { Board, Room, Visibility } from '../../../actors/board.ts'
import { none } from '../../../actors/event-index.ts'
import { mayWrite } from '../../../actors/rooms/roles.ts'
import type { State } from '../../../actors/state.ts'
import type { Frame } from '../../../storage/journal.ts'
import type { CursorSealer } from '../../format/cursor.ts'
import { type Refusal, refusal } from '../../refusals.ts'
import { type EventView, itemView, type Showing } from '../event.ts'

/** A read on its way: fields already checked against the operation's declaration. */
export type ReadRequest = {
  readonly op: string
  readonly args: Readonly<Record<string, string | number>>
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
  /** Public key that signed, 43 characters, where a reader did. */
  readonly key?: string
  /** The operator of this board signed. */
  readonly operator?: boolean
  /** What the reader is called, as the front knows it. */
  readonly handle?: string
  /** Asked by a command; absent: by a plain GET. */
  readonly isCommand?: true
}

export type ReadAnswer =
  | {
      readonly ok: true
      readonly json: string
      /** The room it depends on alone; absent: on the whole board. */
      readonly room?: string
      /** Unix seconds from which on a text shown here is gone; absent: never. */
      readonly until?: number
      /** At a GET door the answer is this file and nothing around it: `json` is its text. */
      readonly file?: string
    }
  | { readonly ok: false; readonly refusal: Refusal }
  /** Not on this board; another may hold it. */
  | { readonly ok: false; readonly absent: Refusal }

export type ReadContext = {
  readonly state: State
  readonly board: Board
  readonly body: (slot: number) => Frame
  /** The bytes of an attachment's file; undefined: it is not there. */
  readonly blobFile: (room: string, sha256: string) => Buffer | undefined
  /** The frame with this number in the journal of a shard. */
  readonly frame: (shard: number, seq: number) => Frame
  readonly cursors: CursorSealer
  readonly generation: string
  readonly serviceId: string
  /** What an identity (64 hex) is called. The registry decides it, whose records no other shard has. */
  readonly handleOf: (identity: string) => string | undefined
  /** Unix seconds. */
  readonly now: () => number
  /** Newest frame of the log that is applied, where this board follows it. */
  readonly applied?: () => number
  /** Which rooms this board answers for; all others are absent here. */
  readonly visibility: Visibility
}

export type Read = (context: ReadContext, request: ReadRequest) => ReadAnswer
/** Reads by the name of the operation. */
export type Reads = Readonly<Record<string, Read>>

const pageDefault = 50

export function ok(data: unknown, scope: { room?: string; until?: number } = {}): ReadAnswer {
  return { ok: true, json: JSON.stringify(data), ...scope }
}

/** What an answer of these events depends on, when they are all of one room. */
export function scopeOf(events: readonly EventView[]): { room?: string; until?: number } {
  const [first] = events
  if (first === undefined) return {}
  const ends = events
    .filter(({ hidden, expires_at }) => !hidden && expires_at !== undefined)
    .map((event) => event.expires_at!)
  return { room: first.room, ...(ends.length === 0 ? {} : { until: Math.min(...ends) }) }
}

export function refused(refused: Refusal): ReadAnswer {
  return { ok: false, refusal: refused }
}

/** `field` names the room, or the thing inside it. */
export function privateRoom(field: 'room' | 'event_id' | 'target'): ReadAnswer {
  return refused(refusal('private_room', 'this room is private: only its members read it, by signed commands', field))
}

export function withRoom(
  context: ReadContext,
  { args, reader }: ReadRequest,
  read: (room: Room) => ReadAnswer,
): ReadAnswer {
  const room = context.board.rooms.get(String(args.room))
  if (room?.visibility !== context.visibility)
    return { ok: false, absent: refusal('not_found', `there is no room ${args.room}`, 'room') }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return privateRoom('room')
  return read(room)
}

export function withEvent(
  context: ReadContext,
  { args, reader }: ReadRequest,
  read: (slot: number) => ReadAnswer,
): ReadAnswer {
  const { events, roomList } = context.board
  const slot = events.find(Buffer.from(String(args.event_id), 'hex'))
  const room = slot === none ? undefined : roomList[events.room[slot]!]
  if (room?.visibility !== context.visibility)
    return { ok: false, absent: refusal('not_found', `there is no event ${args.event_id}`, 'event_id') }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return privateRoom('event_id')
  return read(slot)
}

/** The event in this slot, with the newest version's text; of a slot that is an edit, that version by itself. */
export function view(context: ReadContext, slot: number, payload: boolean): EventView {
  return itemView(context.state, slot, context.body, showing(context, payload))
}

/** How an event is shown here and now, with its signed payload or without. */
export function showing({ now, handleOf }: Pick<ReadContext, 'now' | 'handleOf'>, payload: boolean): Showing {
  return { payload, now: now(), handleOf }
}

/** Characters of JSON that the texts of one answer may have, about: a list of long texts ends early and says that more follows. */
const pageCharsMax = 1024 * 1024

/** Shows items until the answer is large enough, one at least. `cut`: the last one shown, where that was not all of them. */
export function withinPage<Item, View>(
  items: readonly Item[],
  show: (item: Item) => View,
  textOf: (view: View) => string | undefined,
): { readonly views: View[]; readonly cut: Item | undefined } {
  const views: View[] = []
  let chars = 0
  for (const [n, item] of items.entries()) {
    const view = show(item)
    chars += jsonLength(textOf(view) ?? '')
    views.push(view)
    if (chars > pageCharsMax && n < items.length - 1) return { views, cut: item }
  }
  return { views, cut: undefined }
}

/** A control character takes six characters in JSON; short texts are not worth the look. */
function jsonLength(text: string): number {
  return text.length < 2_048 ? text.length : JSON.stringify(text).length
}

/** Events as a list shows them. */
export function eventsWithin(
  context: ReadContext,
  slots: readonly number[],
): { readonly views: EventView[]; readonly cut: number | undefined } {
  return withinPage(
    slots,
    (slot) => view(context, slot, false),
    ({ text }) => text,
  )
}

export function limitOf(args: ReadRequest['args']): number {
  return args.limit === undefined ? pageDefault : Number(args.limit)
}

/** What a cursor of this list holds: a number, or undefined when it is not ours. */
export function opened(
  context: ReadContext,
  list: string,
  args: ReadRequest['args'],
): { from: number | undefined } | undefined {
  if (args.cursor === undefined) return { from: undefined }
  const from = context.cursors.open(list, String(args.cursor))
  return typeof from === 'number' ? { from } : undefined
}

export const badCursor = refused(
  refusal('invalid_field', 'this cursor was not given by this list: start again without one', 'cursor'),
)

export function paging(context: ReadContext, list: string, next: number | undefined) {
  return next === undefined ? { has_more: false } : { next_cursor: context.cursors.seal(list, next), has_more: true }
}
