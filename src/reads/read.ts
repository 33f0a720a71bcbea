/**
 * The building blocks of every read: the request, the answer, and the checks on the reader. The feed thread answers for everything public
 * and a shard for its private rooms, with the same functions.
 */

import { isAscii } from 'node:buffer'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { toUtf8, type Utf8, utf8Bytes } from '../../actors/kernel/utf8.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import type { Head } from '../../actors/records/answer.ts'
import type { Board, Room, Visibility } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import type { State } from '../../actors/state.ts'
import { Damage, isUnreadable } from '../../storage/disk.ts'
import type { Frame } from '../../storage/journal.ts'
import { type EventView, itemView, type Showing, unreadableView } from './event-view.ts'

/** A read in progress. Its fields have been checked against the operation's declaration. */
export type ReadRequest<Name extends AnyReadName = AnyReadName> = {
  readonly op: Name
  readonly args: Readonly<Record<string, string | number>>
  /** Identity id of a signed reader, or ''. */
  readonly reader: string
  /** Public key that signed, 43 characters, if the reader signed. */
  readonly key?: string
  /** Whether this board's operator signed. */
  readonly operator?: boolean
  /** The operator has suspended the reader, who may read what is public and their own account, but no private room. */
  readonly isSuspended?: boolean
  /** The reader's handle, as the main thread knows it. */
  readonly handle?: string
  /** Identity ids that the signed reader has muted; their posts are left out. */
  readonly muted?: readonly string[]
  /** Intermediate result, if one actor continues what another began. */
  readonly found?: unknown
  /** Requested by a command; absent for a plain GET. */
  readonly isCommand?: true
}

/** What an answer depends on besides its request: it is cached and reused until any of this changes. */
export type Scope = {
  /** A single room; absent for the whole board. */
  readonly room?: string
  /** Unix seconds at which something shown here stops being true, typically because a text expires; `unending` if never. */
  readonly until: number
}

/** Nothing in the answer expires: only a change makes it outdated. */
export const unending = 0

/**
 * A reply that shows a value of this type, as JSON in UTF-8. The type exists only for the compiler. As a method parameter it is compatible
 * with `unknown` in both directions, which is the type where any read may have been requested.
 */
type Reply<Data> = Uint8Array & { '~value'?(value: Data): void }

/** Finished bytes, as clients get them: written once, where the answer is made, and passed on unchanged by other threads. */
export type ShownAnswer<Data> = {
  readonly ok: true
  /** The body of the reply, with the value as its `data`. */
  readonly reply: Reply<Data>
  readonly value?: never
  /** For a GET, the answer is just this file: `reply` is its text. */
  readonly file?: string
  /** What the answer to a write says in addition to this text, if a write shows it. */
  readonly made?: Made
} & Scope

/** A value for the board itself: plain data that a link between threads can carry. */
type ValueAnswer<Data> = {
  readonly ok: true
  readonly value: Data
  readonly reply?: never
  readonly file?: never
  readonly made?: never
} & Scope

/** `event`: id of the event shown. `leaf` and `head`: of the version that the command created, if known. */
export type Made = { readonly event: string; readonly leaf?: number; readonly head?: Head }

export type NotFound =
  | { readonly ok: false; readonly refusal: Refusal }
  /** Not on this board; another may have it. */
  | { readonly ok: false; readonly absent: Refusal }

/** The result type of each read, by name. Filled by the table of reads (src/workers/reads.ts), which depends on all reads. */
// biome-ignore lint/suspicious/noEmptyInterface: the table of reads declares its members.
export interface ReadTable {}
/** The result type of the read with this name. */
export type AnswerOf<Name extends AnyReadName> = Name extends keyof ReadTable ? ReadTable[Name] : unknown
/** Queries the actor that can answer, wherever it is. */
export type ReadCall = {
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void
}['read']

/** Seals places in lists, so that readers can only hand them back unchanged (src/format/cursor.ts). */
export type Cursors = {
  seal(list: string, place: unknown): string
  open(list: string, text: string): unknown
  /** For cursors that the board itself has saved. */
  openKept(list: string, text: string): unknown
}

/** The answer to a read by the board itself. */
export type KnownAnswer<Data = unknown> = ValueAnswer<Data> | NotFound
export type ReadAnswer<Data = unknown> = ShownAnswer<Data> | ValueAnswer<Data> | NotFound

/** Takes the answer to a read; undefined if none came. */
export type Take<Data = unknown> = { take(answer: ReadAnswer<Data> | undefined): void }['take']

/** The answer of a private room that was asked without a reader, for one who is suspended. */
export function asSuspended(answer: Take): Take {
  return (found) =>
    answer(
      found !== undefined && !found.ok && 'refusal' in found && found.refusal.code === 'private_room'
        ? refused(refusal('suspended', closedToSuspended, found.refusal.field))
        : found,
    )
}

const closedToSuspended =
  'this room is private, and the operator of this board has suspended this identity: it reads no private room'

export type ReadContext = {
  readonly state: State
  readonly board: Board
  readonly body: (slot: number) => Frame
  /** Announces that these events will be read next, so that a slow disk reads them concurrently. */
  readonly prefetch: (slots: readonly number[]) => void
  /** The content of an attachment's file; undefined if it does not exist. */
  readonly blobFile: (room: string, sha256: string) => Buffer | undefined
  /** The frame with this number in the journal of a shard. */
  readonly frame: (shard: number, seq: number) => Frame
  readonly cursors: Cursors
  /** In a shard: changes with the number of shards, after which a cursor's place would be a different post. Absent if it never changed. */
  readonly layout?: string | undefined
  readonly generation: string
  readonly serviceId: string
  /** The handle of an identity (64 hex). The registry decides it, and no other shard has the registry's records. */
  readonly handleOf: (identity: string) => string | undefined
  /** Unix seconds. */
  readonly now: () => number
  /** Reports damage to the operator; returns the sentence for the reader. */
  readonly fault?: (error: unknown) => string
  /** In a shard: the actor that accepted the command with this id (32 hex). */
  readonly acceptedBy?: (command: string) => string | undefined
  /** The newest applied frame of the log, if this actor follows it. */
  readonly applied?: () => number
  /** Which rooms this actor answers for; all others are absent here. */
  readonly visibility: Visibility
}

export type Read = (context: ReadContext, request: ReadRequest) => ReadAnswer
/** Reads by operation name. */
export type Reads = Readonly<Record<string, Read>>

const pageDefault = 50

/** Whether data of this type contains anything a user wrote: a text, or the bytes signed with it. */
type HoldsText<Data> = unknown extends Data
  ? true
  : Data extends readonly (infer Item)[]
    ? HoldsText<Item>
    : Data extends object
      ? 'text' extends keyof Data
        ? true
        : 'signed_payload' extends keyof Data
          ? true
          : { [Key in keyof Data]-?: HoldsText<Data[Key]> }[keyof Data]
      : false

/** An answer that shows texts, or whose type does not rule them out, must state when the first of them expires. */
export function ok<Data>(data: Data, ...[scope]: true extends HoldsText<Data> ? [Scope] : [Scope?]): ShownAnswer<Data> {
  return { ok: true, reply: replyWith(JSON.stringify(data)), until: unending, ...scope }
}

const [replyStart, replyEnd] = ['{"ok":true,"data":', '}']

/** The body of a reply with this JSON as its `data`. */
export function replyWith(json: string): Buffer {
  return Buffer.from(`${replyStart}${json}${replyEnd}`)
}

/** The same for JSON in parts. Each part is copied once, so a long answer is never a single string. */
export function okJson<Data>(parts: readonly Utf8[], scope: Scope): ShownAnswer<Data> {
  return { ok: true, reply: utf8Bytes([replyStart, ...parts, replyEnd]), ...scope }
}

/** JSON of an object in parts: some fields, lists (by name) of items that are already JSON, and more fields. */
export function withLists(
  before: object,
  lists: Readonly<Record<string, readonly Utf8[]>>,
  after: object,
): readonly Utf8[] {
  const [first, last] = [before, after].map((fields) => toUtf8(JSON.stringify(fields)).slice(1, -1))
  const parts = [`{${first}`]
  for (const [name, items] of Object.entries(lists)) {
    parts.push(`${parts.length === 1 && first === '' ? '' : ','}"${name}":[`)
    for (const [n, item] of items.entries()) parts.push(n === 0 ? item : `,${item}`)
    parts.push(']')
  }
  return [...parts, `${last === '' ? '' : ','}${last}}`]
}

/** The same for the board itself, which gets the value instead of its text. */
export function known<Data>(value: Data, scope: Scope = { until: unending }): KnownAnswer<Data> {
  return { ok: true, value, ...scope }
}

/** The value in an answer. */
export function dataOf<Data>(answer: ShownAnswer<Data> | ValueAnswer<Data>): Data {
  return answer.reply === undefined ? answer.value : JSON.parse(jsonOf(answer))
}

/** The JSON of the value that an answer shows; for a file, its text. */
export function jsonOf(answer: ShownAnswer<unknown> | ValueAnswer<unknown>): string {
  if (answer.reply === undefined) return JSON.stringify(answer.value)
  const text = textOf(answer.reply)
  return answer.file === undefined ? text.slice(replyStart.length, -replyEnd.length) : text
}

/** The body of the reply to a command. */
export function replyText(answer: ShownAnswer<unknown> | ValueAnswer<unknown>): string {
  const isWhole = answer.reply !== undefined && answer.file === undefined
  return isWhole ? textOf(answer.reply) : `${replyStart}${jsonOf(answer)}${replyEnd}`
}

/** The body of the reply to a GET. */
export function replyOf(answer: ShownAnswer<unknown> | ValueAnswer<unknown>): Buffer {
  if (answer.reply === undefined) return replyWith(JSON.stringify(answer.value))
  const { buffer, byteOffset, byteLength } = answer.reply
  return Buffer.from(buffer, byteOffset, byteLength)
}

/** Most are ASCII, which takes a third of the time. */
function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  return bytes.toString(isAscii(bytes) ? 'latin1' : 'utf8')
}

/** One actor's share of a list: at most one item more than requested, each with the cursor that continues after it. */
export type Share = {
  readonly limit: number
  readonly items: readonly { readonly place: string; readonly cursor: string; readonly item: unknown }[]
  /** Where it stopped looking; absent if it reached the end or found enough. */
  readonly reached?: { readonly place: string; readonly cursor: string }
}

/** What an answer about a room's threads depends on: that room, or all rooms if it lists threads of others. */
export function listScope({ state }: Pick<ReadContext, 'state'>, room: Room): Pick<Scope, 'room'> {
  return state.threadFlags.movedInto(room).size === 0 ? { room: room.name } : {}
}

/** What an answer with these events depends on, if all are of one room. */
export function scopeOf(events: readonly EventView[]): Scope {
  const [first] = events
  return { ...(first === undefined ? {} : { room: first.room }), until: endOf(events) }
}

/** When the first of the texts shown here expires. */
export function endOf(events: readonly EventView[]): number {
  return soonest(events.map(({ hidden, expires_at = unending }) => (hidden ? unending : expires_at)))
}

/** The earliest of these times; `unending` does not count. */
export function soonest(ends: readonly number[]): number {
  return ends.reduce((first, end) => (end !== unending && (first === unending || end < first) ? end : first), unending)
}

export function refused(refused: Refusal): NotFound {
  return { ok: false, refusal: refused }
}

/** `field` names the room, or the object inside it. */
export function privateRoom(field: 'room' | 'event_id' | 'target'): NotFound {
  return refused(
    refusal('private_room', 'this room is private: only its members can read it, with signed commands', field),
  )
}

export function withRoom<Answer extends ReadAnswer>(
  context: ReadContext,
  { args, reader }: ReadRequest,
  read: (room: Room) => Answer,
): Answer | NotFound {
  const room = context.board.rooms.get(String(args.room))
  if (room?.visibility !== context.visibility)
    return { ok: false, absent: refusal('not_found', `there is no room ${args.room}`, 'room') }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return privateRoom('room')
  return read(room)
}

export function withEvent<Answer extends ReadAnswer>(
  context: ReadContext,
  { args, reader }: ReadRequest,
  read: (slot: number) => Answer,
): Answer | NotFound {
  const { events, roomList } = context.board
  const slot = events.find(Buffer.from(String(args.event_id), 'hex'))
  const room = slot === none ? undefined : roomList[events.room(slot)]
  if (room?.visibility !== context.visibility)
    return { ok: false, absent: refusal('not_found', `there is no event ${args.event_id}`, 'event_id') }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return privateRoom('event_id')
  return read(slot)
}

/** The event in this slot, with the newest version's text; if the slot is an edit, only that version. */
export function view(context: ReadContext, slot: number, payload: boolean): EventView {
  return itemView(context.state, slot, context.body, showing(context, payload))
}

/** The same for a list, where a damaged record does not affect others: it becomes a tombstone that says so. */
export function listed(
  context: ReadContext,
  slot: number,
  show: () => EventView = () => view(context, slot, false),
): EventView {
  return readOr(context, show, (reason) => unreadableView(context.state, slot, reason, showing(context, false)))
}

/** The settings to show an event here and now, with or without its signed payload. */
export function showing({ now, handleOf }: Pick<ReadContext, 'now' | 'handleOf'>, payload: boolean): Showing {
  return { payload, now: now(), handleOf }
}

/**
 * Approximate maximum of JSON characters for the items of one answer: a list of long texts ends early and says that more follows. The main
 * thread receives, hashes and sends each answer; this takes at most 8 ms of its time, while 1 MiB of escapes took 32.
 */
export const pageCharsMax = 256 * 1024

/** How much of an answer its items have used so far. */
export class AnswerSize {
  #chars = 0

  add(view: unknown): void {
    this.#chars += charsIn(view)
  }

  get isFull(): boolean {
    return this.#chars > pageCharsMax
  }
}

/** Only for longer texts is it worth counting what escapes add. */
const shortTextMax = 256

/** Approximate number of JSON characters of a value. */
function charsIn(value: unknown): number {
  if (typeof value === 'string') return value.length <= shortTextMax ? value.length + 2 : JSON.stringify(value).length
  if (typeof value !== 'object' || value === null) return String(value).length
  let chars = 1
  if (Array.isArray(value)) for (const item of value) chars += 1 + charsIn(item)
  else for (const name in value) chars += name.length + 4 + charsIn(value[name as keyof typeof value])
  return chars
}

/** Undefined if the record is damaged. That is reported, and affects only this read. */
export function readable<Found>(context: Pick<ReadContext, 'fault'>, read: () => Found): Found | undefined {
  return readOr(context, read, () => undefined)
}

/**
 * The context for consumers that see each item only once, such as a tail. A failed read (EIO) may succeed later, so it is not skipped as
 * damage is, but throws FailedRead.
 */
export function strictContext<Context extends Pick<ReadContext, 'fault'>>(context: Context): Context {
  const fault = (error: unknown): string => {
    if (isUnreadable(error)) throw error
    return context.fault?.(error) ?? damaged
  }
  return { ...context, fault }
}

const damaged = 'its record is damaged'

/** Returns the result of `read`. A damaged record is reported and replaced by the result of `other`. */
function readOr<Found, Other>(
  { fault }: Pick<ReadContext, 'fault'>,
  read: () => Found,
  other: (reason: string) => Other,
): Found | Other {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof Damage)) throw error
    return other(fault?.(error) ?? damaged)
  }
}

type Page<Item, View> = {
  readonly views: View[]
  /** The last item examined, if there were more. */
  readonly cut: Item | undefined
  /** How many items are left out because their records are damaged; absent if none. */
  readonly missing: { readonly unreadable?: number }
}

/** Shows items until the answer is large enough, but at least one. */
export function withinPage<Item, View extends object>(
  context: Pick<ReadContext, 'fault'>,
  items: readonly Item[],
  show: (item: Item) => View,
): Page<Item, View> {
  const views: View[] = []
  const size = new AnswerSize()
  let cut: Item | undefined
  let unreadable = 0
  for (const [n, item] of items.entries()) {
    const view = readable(context, () => show(item))
    if (view === undefined) {
      unreadable++
      continue
    }
    size.add(view)
    views.push(view)
    if (!size.isFull || n === items.length - 1) continue
    cut = item
    break
  }
  return { views, cut, missing: unreadable === 0 ? {} : { unreadable } }
}

/** Events as a list shows them. */
export function eventsWithin(
  context: ReadContext,
  slots: readonly number[],
): { readonly views: EventView[]; readonly cut: number | undefined } {
  return withinPage(context, slots, (slot) => listed(context, slot))
}

/**
 * A place in a list of which several actors hold shares, newest first (src/reads/gather.ts), as a sortable text. `order`: greater for what
 * came later in the same second, within one actor; between actors, events of the same second have no order.
 */
export function placeInList(at: number, order: number, name: string): string {
  return `${String(at).padStart(12, '0')}:${String(order).padStart(16, '0')}:${name}`
}

/** Author numbers that a signed reader has muted. */
export function mutedAuthors({ board }: ReadContext, { muted = [] }: ReadRequest): ReadonlySet<number> {
  return new Set(muted.flatMap((id) => board.authors.get(id)?.number ?? []))
}

export function limitOf(args: ReadRequest['args']): number {
  return args.limit === undefined ? pageDefault : Number(args.limit)
}

/** The number in a cursor of this list, or undefined if the cursor is not ours. */
export function opened(
  context: ReadContext,
  list: string,
  args: ReadRequest['args'],
): { from: number | undefined } | undefined {
  if (args.cursor === undefined) return { from: undefined }
  const from = context.cursors.open(nameOfList(context, list), String(args.cursor))
  return typeof from === 'number' ? { from } : undefined
}

/** A cursor that `opened` accepts. */
export function sealedPlace(context: ReadContext, list: string, place: number): string {
  return context.cursors.seal(nameOfList(context, list), place)
}

function nameOfList({ layout }: ReadContext, list: string): string {
  return layout === undefined ? list : `${list} ${layout}`
}

export const badCursor = refused(
  refusal('invalid_field', 'this cursor does not belong to this list: start again without one', 'cursor'),
)

export function paging(context: ReadContext, list: string, next: number | undefined) {
  return next === undefined ? { has_more: false } : { next_cursor: sealedPlace(context, list, next), has_more: true }
}

/** A list: its name for cursors, and how each item is shown. */
type Counted<Item, View extends object> = {
  readonly name: string
  readonly all: readonly Item[]
  readonly show: (item: Item) => View
}

/** A page of a list whose cursor counts the items examined; undefined if the cursor belongs to another list. */
export function countedPage<Item, View extends object>(
  context: ReadContext,
  { args }: ReadRequest,
  { name, all, show }: Counted<Item, View>,
): { readonly views: View[]; readonly paging: Page<Item, View>['missing'] & ReturnType<typeof paging> } | undefined {
  const cursor = opened(context, name, args)
  if (cursor === undefined) return undefined
  const from = cursor.from ?? 0
  const page = all.slice(from, from + limitOf(args))
  const { views, cut, missing } = withinPage(context, page, show)
  const end = from + (cut === undefined ? page.length : page.indexOf(cut) + 1)
  return { views, paging: { ...missing, ...paging(context, name, end < all.length ? end : undefined) } }
}
