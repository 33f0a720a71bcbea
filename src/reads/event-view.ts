/**
 * An event as shown to a reader, built from its record on disk, the index, and its marks. The text comes from the signed bytes themselves,
 * so what is shown is what was signed.
 *
 * A version is a single signed event: tails, exports and histories print versions. An item is what lists, threads and answers show: one per
 * original, at its place and under its id, with the newest version's text and signature. If an event's text is gone, only its place and the
 * reason are shown; if it is gone permanently, its signed bytes are not even read.
 */

import type { BlobView } from '../../actors/attachments/attachments.ts'
import { mentionsIn } from '../../actors/conversations/conversations.ts'
import type { LeafPlace } from '../../actors/log/book.ts'
import type { Gone, GoneBy } from '../../actors/posts/marks.ts'
import type { Sums } from '../../actors/posts/votes.ts'
import { none } from '../../actors/records/event-index.ts'
import {
  commandIn,
  type Delegated,
  fromFrame,
  type PostRecord,
  RecordType,
  type Signed,
} from '../../actors/records/record.ts'
import { type Format, formatOf, type Source, sourceOf } from '../../actors/rooms/room.ts'
import type { State } from '../../actors/state.ts'
import type { Frame } from '../../storage/journal.ts'

type PersonView = { readonly id: string; readonly public_key: string; readonly handle?: string }

/** The delegation under which a delegate acted: the bytes of the delegation.create, and the identity's signature over them. */
type DelegationView = { readonly id: string; readonly signed_payload: string; readonly signature: string }

export type EventView = {
  readonly type: 'event' | 'tombstone'
  readonly event_id: string
  readonly room: string
  readonly page: string
  readonly seq: number
  readonly kind: string
  readonly author: PersonView
  readonly text?: string
  readonly format?: Format
  /** Where it was published earlier, as its signer claims. */
  readonly source?: Source
  readonly reply_to?: string
  readonly to?: string
  readonly to_id?: string
  readonly thread: string
  readonly attachments?: readonly BlobView[]
  readonly created_at: number
  /** For an edited item: when its newest version was accepted. */
  readonly edited_at?: number
  readonly expires_at?: number
  /** For a version: the original, and the version that replaced it. */
  readonly supersedes?: string
  readonly superseded_by?: string
  /** For an edited item: its newest version, and how many there are. */
  readonly version_id?: string
  readonly versions?: number
  readonly hidden: boolean
  readonly reason?: string
  readonly hidden_by?: GoneBy
  readonly votes: Sums
  readonly via: string
  /** For an event that a delegate signed. */
  readonly delegation?: DelegationView
  readonly signature?: string
  readonly signed_payload?: string
  /** In a search answer: positions of the words searched for. */
  readonly highlights?: readonly (readonly [start: number, end: number])[]
  readonly log: ({ readonly state: 'included' } & LeafPlace) | { readonly state: 'none' }
}

/** The fields of a signed post that its view shows. */
type SignedPost = {
  readonly text: string
  readonly to?: string
  readonly data?: string
  readonly attachments?: readonly string[]
}

/** Everything about an event except what was signed. */
export type EventFacts = {
  readonly id: string
  readonly room: string
  readonly page: string
  readonly seq: number
  readonly kind: string
  readonly author: PersonView
  readonly replyTo: string
  readonly thread: string
  readonly at: number
  /** Unix seconds; 0 if never. */
  readonly expires: number
  readonly via: string
  /** Undefined in private rooms. */
  readonly leaf: LeafPlace | undefined
  readonly votes: Sums
  /** '' or 0 if there is none. */
  readonly supersedes: string
  readonly supersededBy: string
  readonly versionId: string
  readonly versions: number
  readonly editedAt: number
}

/** What was signed, with its attachments; or why it is not shown, and whom it was addressed to. */
export type Body =
  | {
      readonly post: SignedPost
      readonly by: Signed
      readonly attachments: readonly BlobView[]
      /** For an edit that keeps the previous version's format. */
      readonly format?: Format | undefined
      /** Identity id (64 hex) of the handle that it is addressed to. */
      readonly toId?: string | undefined
    }
  | { readonly gone: Gone; readonly to: string | undefined; readonly toId?: string | undefined }

/** A page of events, as events.list and a search show it. */
export type EventList = {
  readonly events: readonly EventView[]
  readonly next_cursor?: string
  readonly has_more: boolean
  readonly generation: string
  /** For a search: the number of matches, as far as they are counted. */
  readonly total?: number
}

/** `payload`: also include the exact signed bytes. */
export function eventView(facts: EventFacts, body: Body, payload: boolean): EventView {
  const isGone = 'gone' in body
  const to = isGone ? body.to : body.post.to
  const source = isGone ? undefined : sourceOf(body.post.data)
  return {
    type: isGone ? 'tombstone' : 'event',
    event_id: facts.id,
    room: facts.room,
    page: facts.page,
    seq: facts.seq,
    kind: facts.kind,
    author: facts.author,
    ...(isGone ? {} : { text: body.post.text, format: formatOf(body.format, body.post.data) }),
    ...(source === undefined ? {} : { source }),
    ...(facts.replyTo === '' ? {} : { reply_to: facts.replyTo }),
    ...(to === undefined ? {} : { to }),
    ...(to === undefined || body.toId === undefined ? {} : { to_id: body.toId }),
    thread: facts.thread,
    ...(isGone ? {} : { attachments: body.attachments }),
    created_at: facts.at,
    ...(facts.editedAt === 0 ? {} : { edited_at: facts.editedAt }),
    ...(facts.expires === 0 ? {} : { expires_at: facts.expires }),
    ...(facts.supersedes === '' ? {} : { supersedes: facts.supersedes }),
    ...(facts.supersededBy === '' ? {} : { superseded_by: facts.supersededBy }),
    ...(facts.versionId === '' ? {} : { version_id: facts.versionId, versions: facts.versions }),
    hidden: isGone,
    ...(isGone ? { reason: body.gone.reason } : {}),
    ...(isGone && body.gone.by !== undefined ? { hidden_by: body.gone.by } : {}),
    votes: facts.votes,
    via: facts.via,
    ...(isGone ? {} : delegationIn(body.by)),
    ...(isGone ? {} : { signature: base64url(body.by.sig) }),
    ...(isGone || !payload ? {} : { signed_payload: Buffer.from(body.by.signed).toString('utf8') }),
    log: facts.leaf === undefined ? { state: 'none' } : { state: 'included', ...facts.leaf },
  }
}

/** Identity id that an event is addressed to; undefined if there is none. */
export function addressee({ to, to_id }: Pick<EventView, 'to' | 'to_id'>): string | undefined {
  return to_id ?? to
}

/** For a reply or an edited event: whether the text that is shown names the reader. */
export function names(event: EventView, reader: string, handle: string): boolean {
  if (addressee(event) === reader) return true
  return handle !== '' && event.text !== undefined && mentionsIn(event.text).has(handle)
}

/** The delegation, if a delegate signed. */
export function delegationIn({ for: delegated }: Signed): { readonly delegation?: DelegationView } {
  return delegated === undefined ? {} : { delegation: delegationOf(delegated) }
}

function delegationOf({ id, sig, signed }: Delegated): DelegationView {
  return {
    id: Buffer.from(id).toString('hex'),
    signed_payload: Buffer.from(signed).toString('utf8'),
    signature: base64url(sig),
  }
}

/** `now`: Unix seconds, decides whether the text has expired. */
export type Showing = {
  readonly payload: boolean
  readonly now: number
  readonly handleOf: (identity: string) => string | undefined
}

/** One version: only the event in this slot, whose record is in `frame`. */
export function versionView(state: State, slot: number, frame: Frame, showing: Showing): EventView {
  const { payload, now } = showing
  const { marks, board } = state
  const record = eventOf(frame)
  const successor = marks.successor(slot)
  const facts = {
    ...slotFacts(state, slot, record, showing),
    supersedes: marks.isEdit(slot) ? board.events.idHex(marks.original(slot)) : '',
    supersededBy: successor === undefined ? '' : board.events.idHex(successor),
    versionId: '',
    versions: 0,
    editedAt: 0,
  }
  return eventView(facts, bodyOf(state, slot, record, now), payload)
}

/**
 * An original with its newest version's text, signature and leaf; if the slot is an edit, only that version. The leaf shown contains the
 * hash of the signed bytes shown; if those are gone, it is the original's leaf.
 */
export function itemView(state: State, slot: number, bodyFrame: (slot: number) => Frame, showing: Showing): EventView {
  const newest = state.marks.newest(slot)
  if (newest === slot) return versionView(state, slot, bodyFrame(slot), showing)
  const { payload, now } = showing
  const { events } = state.board
  const record = eventOf(bodyFrame(slot))
  const facts = slotFacts(state, slot, record, showing)
  const body = bodyOf(state, newest, eventOf(bodyFrame(newest)), now)
  const shown = {
    ...facts,
    author: { ...facts.author, ...('gone' in body ? {} : { public_key: base64url(body.by.key) }) },
    supersedes: '',
    supersededBy: '',
    versionId: events.idHex(newest),
    versions: state.marks.edits(slot).length + 1,
    editedAt: events.at(newest),
    leaf: facts.leaf === undefined || 'gone' in body ? facts.leaf : state.book.placeOf(events.leaf(newest)),
  }
  return eventView(shown, body, payload)
}

/** An event whose record the disk can no longer read, as a list shows it: a tombstone that says so. */
export function unreadableView(state: State, slot: number, reason: string, { handleOf }: Showing): EventView {
  const { board, marks } = state
  const { events, authors, roomList } = board
  const { id, key } = authors.at(events.author(slot))
  const known = {
    room: roomList[events.room(slot)]!.name,
    page: board.page(slot),
    seq: events.seq(slot),
    at: events.at(slot),
    via: 'unknown',
  }
  const facts = {
    ...standingOf(state, slot, known, { id, publicKey: key, handle: handleOf(id) }),
    ...{ supersedes: '', supersededBy: '', versionId: '', versions: 0, editedAt: 0 },
    ...(marks.isEdit(slot) ? { supersedes: events.idHex(marks.original(slot)) } : {}),
  }
  return eventView(facts, { gone: { reason, by: undefined }, to: undefined }, false)
}

type Standing = Omit<EventFacts, 'supersedes' | 'supersededBy' | 'versionId' | 'versions' | 'editedAt'>

function slotFacts(state: State, slot: number, record: PostRecord, { handleOf }: Showing): Standing {
  const { events, authors } = state.board
  const { id } = authors.at(events.author(slot))
  return standingOf(state, slot, record, { id, publicKey: base64url(record.by.key), handle: handleOf(id) })
}

function standingOf(
  { board, marks, book }: State,
  slot: number,
  record: Pick<PostRecord, 'room' | 'page' | 'seq' | 'at' | 'via'>,
  author: { readonly id: string; readonly publicKey: string; readonly handle: string | undefined },
): Standing {
  const { id, publicKey, handle } = author
  const { events, roomList } = board
  const parent = events.parent(slot)
  const isPublic = roomList[events.room(slot)]!.visibility === 'public'
  return {
    id: events.idHex(slot),
    room: record.room,
    page: record.page,
    seq: record.seq,
    // Records that older releases wrote of versions do not have the kind of the original.
    kind: board.kind(marks.original(slot)),
    author: { id, public_key: publicKey, ...(handle === undefined ? {} : { handle }) },
    replyTo: parent === none ? '' : events.idHex(parent),
    thread: events.idHex(events.rootOf(slot)),
    at: record.at,
    expires: events.expires(slot),
    via: record.via,
    leaf: isPublic ? book.placeOf(events.leaf(slot)) : undefined,
    votes: marks.votes(slot),
  }
}

const destroyed: Gone = { reason: 'removed', by: undefined }

function bodyOf({ marks, blobs }: State, slot: number, { by, format, to }: PostRecord, now: number): Body {
  // The bytes may be gone before this reader has learned why.
  const gone = marks.gone(slot, now) ?? (by.signed.length === 0 ? destroyed : undefined)
  // A text that is permanently gone is not read, because its bytes leave the disk sooner or later.
  const isForGood = gone !== undefined && (marks.hideOf(slot) === undefined || marks.redactionOf(slot) !== undefined)
  if (gone !== undefined && (isForGood || by.signed.length === 0)) return { gone, to: undefined }
  const post = commandIn(by.signed)
  const toId = to === undefined ? undefined : Buffer.from(to).toString('hex')
  if (gone !== undefined) return { gone, to: post.to, toId }
  const attachments = (post.attachments ?? []).flatMap((id) => blobs.viewOf(id) ?? [])
  return { post: post as SignedPost, by, attachments, format, toId }
}

export function eventOf(frame: Frame): PostRecord {
  const record = fromFrame(frame)
  if (record.type !== RecordType.event) throw new Error(`frame ${frame.seq} contains no event`)
  return record
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
