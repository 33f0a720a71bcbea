/**
 * What every read is made of: the request, the answer, and the checks that a reader has to pass.
 * The feed thread answers for everything public, a shard for its private rooms; both with the same functions.
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

/** A read on its way: fields already checked against the operation's declaration. */
export type ReadRequest<Name extends AnyReadName = AnyReadName> = {
  readonly op: Name
  readonly args: Readonly<Record<string, string | number>>
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
  /** Public key that signed, 43 characters, where a reader did. */
  readonly key?: string
  /** The operator of this board signed. */
  readonly operator?: boolean
  /** What the reader is called, as the front knows it. */
  readonly handle?: string
  /** Identity ids: the signed reader has muted these, so what they wrote is left out. */
  readonly muted?: readonly string[]
  /** What another actor has found of it, where one goes on with what another began. */
  readonly found?: unknown
  /** Asked by a command; absent: by a plain GET. */
  readonly isCommand?: true
}

/** What an answer depends on beside its request: it is kept, and given again, as long as nothing of that has changed. */
export type Scope = {
  /** The one room; absent: the whole board. */
  readonly room?: string
  /** Unix seconds from which on something shown here is not so any more, a text that has expired above all; `unending`: never. */
  readonly until: number
}

/** Nothing in it ends by itself: only a change makes it old. */
export const unending = 0

/**
 * A reply that shows a value of this type, as JSON in UTF-8. The type exists for the compiler alone; as the parameter of a method it fits `unknown` both
 * ways, which stands where any read may have been asked.
 */
type Reply<Data> = Uint8Array & { '~value'?(value: Data): void }

/** Ready bytes, as clients get them: written once, where the answer is made, and passed on by other threads as they are. */
export type ShownAnswer<Data> = {
  readonly ok: true
  /** The body of the reply, with the value as its `data`. */
  readonly reply: Reply<Data>
  readonly value?: never
  /** For a GET the answer is this file and nothing around it: `reply` is its text. */
  readonly file?: string
  /** What the answer to a write says beside this text, where a write shows it. */
  readonly made?: Made
} & Scope

/** A value for the board itself: plain data that a link between threads carries. */
type ValueAnswer<Data> = {
  readonly ok: true
  readonly value: Data
  readonly reply?: never
  readonly file?: never
  readonly made?: never
} & Scope

/** `event`: id of the event that is shown; `leaf` and `head`: of the version that the command made, where it knows them. */
export type Made = { readonly event: string; readonly leaf?: number; readonly head?: Head }

export type NotFound =
  | { readonly ok: false; readonly refusal: Refusal }
  /** Not on this board; another may hold it. */
  | { readonly ok: false; readonly absent: Refusal }

/** What each read gives, by its name. Filled by the table of reads (src/workers/reads.ts), which stands above all that read. */
// biome-ignore lint/suspicious/noEmptyInterface: the table of reads declares its members.
export interface ReadTable {}
/** What the read of this name gives. */
export type AnswerOf<Name extends AnyReadName> = Name extends keyof ReadTable ? ReadTable[Name] : unknown
/** Asks the actor that can answer, wherever it is. */
export type ReadCall = {
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void
}['read']

/** Seals places in lists, so that readers can hand them back and do nothing else with them (src/format/cursor.ts). */
export type Cursors = {
  seal(list: string, place: unknown): string
  open(list: string, text: string): unknown
  /** Of what the board itself has kept. */
  openKept(list: string, text: string): unknown
}

/** What the board asks itself is answered so. */
export type KnownAnswer<Data = unknown> = ValueAnswer<Data> | NotFound
export type ReadAnswer<Data = unknown> = ShownAnswer<Data> | ValueAnswer<Data> | NotFound

/** Takes the answer to a read; undefined: none came. */
export type Take<Data = unknown> = { take(answer: ReadAnswer<Data> | undefined): void }['take']

export type ReadContext = {
  readonly state: State
  readonly board: Board
  readonly body: (slot: number) => Frame
  /** These events will be read next: a slow disk reads them at the same time, and not one after the other. */
  readonly prefetch: (slots: readonly number[]) => void
  /** The bytes of an attachment's file; undefined: it is not there. */
  readonly blobFile: (room: string, sha256: string) => Buffer | undefined
  /** The frame with this number in the journal of a shard. */
  readonly frame: (shard: number, seq: number) => Frame
  readonly cursors: Cursors
  /** In a shard: changes when the number of shards does, and what a cursor holds is another post then. Absent: it never did. */
  readonly layout?: string | undefined
  readonly generation: string
  readonly serviceId: string
  /** What an identity (64 hex) is called. The registry decides it, whose records no other shard has. */
  readonly handleOf: (identity: string) => string | undefined
  /** Unix seconds. */
  readonly now: () => number
  /** Notes damage for the operator; the sentence that a reader is given. */
  readonly fault?: (error: unknown) => string
  /** In a shard: the actor that accepted the command of this id (32 hex). */
  readonly acceptedBy?: (command: string) => string | undefined
  /** Newest frame of the log that is applied, where this board follows it. */
  readonly applied?: () => number
  /** Which rooms this board answers for; all others are absent here. */
  readonly visibility: Visibility
}

export type Read = (context: ReadContext, request: ReadRequest) => ReadAnswer
/** Reads by the name of the operation. */
export type Reads = Readonly<Record<string, Read>>

const pageDefault = 50

/** Is there, anywhere in data of this type, what a user wrote: a text, or the bytes that were signed with it? */
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

/** An answer that shows texts, or whose type does not say that it shows none, must say when the first of them ends. */
export function ok<Data>(data: Data, ...[scope]: true extends HoldsText<Data> ? [Scope] : [Scope?]): ShownAnswer<Data> {
  return { ok: true, reply: replyWith(JSON.stringify(data)), until: unending, ...scope }
}

const [replyStart, replyEnd] = ['{"ok":true,"data":', '}']

/** The body of a reply with this JSON as its `data`. */
export function replyWith(json: string): Buffer {
  return Buffer.from(`${replyStart}${json}${replyEnd}`)
}

/** The same of JSON in parts, each of which is copied once: a long answer is never one text. */
export function okJson<Data>(parts: readonly Utf8[], scope: Scope): ShownAnswer<Data> {
  return { ok: true, reply: utf8Bytes([replyStart, ...parts, replyEnd]), ...scope }
}

/** JSON of an object, in parts: some fields, lists by their names with what is in them as JSON, and more fields. */
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

/** The same for the board itself, which gets the value and no text of it. */
export function known<Data>(value: Data, scope: Scope = { until: unending }): KnownAnswer<Data> {
  return { ok: true, value, ...scope }
}

/** The value that an answer holds. */
export function dataOf<Data>(answer: ShownAnswer<Data> | ValueAnswer<Data>): Data {
  return answer.reply === undefined ? answer.value : JSON.parse(jsonOf(answer))
}

/** The JSON of the value that an answer shows; of a file, its text. */
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

/** One actor's share of a list: at most one item more than were requested, each with the cursor that continues after it. */
export type Share = {
  readonly limit: number
  readonly items: readonly { readonly place: string; readonly cursor: string; readonly item: unknown }[]
  /** It looked this far and no further; absent: to the end, or until it had enough. */
  readonly reached?: { readonly place: string; readonly cursor: string }
}

/** What an answer about the threads of a room depends on: on that room, or on all where it lists threads of others. */
export function listScope({ state }: Pick<ReadContext, 'state'>, room: Room): Pick<Scope, 'room'> {
  return state.threadFlags.movedInto(room).size === 0 ? { room: room.name } : {}
}

/** What an answer of these events depends on, when they are all of one room. */
export function scopeOf(events: readonly EventView[]): Scope {
  const [first] = events
  return { ...(first === undefined ? {} : { room: first.room }), until: endOf(events) }
}

/** When the first of the texts that are shown here ends. */
export function endOf(events: readonly EventView[]): number {
  return soonest(events.map(({ hidden, expires_at = unending }) => (hidden ? unending : expires_at)))
}

/** The first of these moments, `unending` being none. */
export function soonest(ends: readonly number[]): number {
  return ends.reduce((first, end) => (end !== unending && (first === unending || end < first) ? end : first), unending)
}

export function refused(refused: Refusal): NotFound {
  return { ok: false, refusal: refused }
}

/** `field` names the room, or the thing inside it. */
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

/** The event in this slot, with the newest version's text; of a slot that is an edit, that version by itself. */
export function view(context: ReadContext, slot: number, payload: boolean): EventView {
  return itemView(context.state, slot, context.body, showing(context, payload))
}

/** The same for a list, of which one damaged record costs no other: it stands as a tombstone that says so. */
export function listed(
  context: ReadContext,
  slot: number,
  show: () => EventView = () => view(context, slot, false),
): EventView {
  return readOr(context, show, (reason) => unreadableView(context.state, slot, reason, showing(context, false)))
}

/** How an event is shown here and now, with its signed payload or without. */
export function showing({ now, handleOf }: Pick<ReadContext, 'now' | 'handleOf'>, payload: boolean): Showing {
  return { payload, now: now(), handleOf }
}

/**
 * Characters of JSON that the items of one answer may have, about: a list of long texts ends early and says that more follows.
 * The front takes over each answer, hashes and sends it: 8 ms of its time at most, where 1 MiB of escapes took 32.
 */
export const pageCharsMax = 256 * 1024

/** What the items of an answer have taken of it so far. */
export class AnswerSize {
  #chars = 0

  add(view: unknown): void {
    this.#chars += charsIn(view)
  }

  get isFull(): boolean {
    return this.#chars > pageCharsMax
  }
}

/** Only in a text that is longer is it worth counting what its escapes add. */
const shortTextMax = 256

/** Characters of JSON that a value takes, about. */
function charsIn(value: unknown): number {
  if (typeof value === 'string') return value.length <= shortTextMax ? value.length + 2 : JSON.stringify(value).length
  if (typeof value !== 'object' || value === null) return String(value).length
  let chars = 1
  if (Array.isArray(value)) for (const item of value) chars += 1 + charsIn(item)
  else for (const name in value) chars += name.length + 4 + charsIn(value[name as keyof typeof value])
  return chars
}

/** Undefined: the record is damaged. That is reported, and costs only what is read of it. */
export function readable<Found>(context: Pick<ReadContext, 'fault'>, read: () => Found): Found | undefined {
  return readOr(context, read, () => undefined)
}

/**
 * The context of who is told of each thing once, such as a tail. What a failed read (EIO) does not give may be there later: it is not
 * passed over as damage is, but throws FailedRead.
 */
export function toldOnce<Context extends Pick<ReadContext, 'fault'>>(context: Context): Context {
  const fault = (error: unknown): string => {
    if (isUnreadable(error)) throw error
    return context.fault?.(error) ?? damaged
  }
  return { ...context, fault }
}

const damaged = 'its record is damaged'

/** What `read` gives. A damaged record is reported, and `other` gives what is shown in its place. */
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
  /** The last one that was looked at, where that was not all of them. */
  readonly cut: Item | undefined
  /** How many are left out because their records are damaged; absent: none. */
  readonly missing: { readonly unreadable?: number }
}

/** Shows items until the answer is large enough, one at least. */
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
 * Place in a list that several actors have shares of, newest first (src/reads/gather.ts): a text that sorts. `order`: what came
 * later in the same second has a greater one, within one actor; between actors a second has no order.
 */
export function placeInList(at: number, order: number, name: string): string {
  return `${String(at).padStart(12, '0')}:${String(order).padStart(16, '0')}:${name}`
}

/** Numbers of the authors whom a signed reader has muted. */
export function mutedAuthors({ board }: ReadContext, { muted = [] }: ReadRequest): ReadonlySet<number> {
  return new Set(muted.flatMap((id) => board.authors.get(id)?.number ?? []))
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
  const from = context.cursors.open(nameOfList(context, list), String(args.cursor))
  return typeof from === 'number' ? { from } : undefined
}

/** A cursor that `opened` opens. */
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

/** A list, by its name for cursors, and how each of it is shown. */
type Counted<Item, View extends object> = {
  readonly name: string
  readonly all: readonly Item[]
  readonly show: (item: Item) => View
}

/** A page of a list whose cursor is how many of it were looked at; undefined: the cursor is of another list. */
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
