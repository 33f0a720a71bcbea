/**
 * Builds the JSON text of events in answers, mostly from the stored bytes. The result equals that of `event-view.ts`, without decoding what
 * was signed only to encode it again. Unusual posts (edited, hidden, redacted, expired, signed by a delegate, with attachments) are left to
 * `event-view.ts`. `test/e2e/stored-posts.test.ts` compares the two.
 */

import { textIn, toUtf8, type Utf8 } from '../../actors/kernel/utf8.ts'
import { none } from '../../actors/records/event-index.ts'
import { type StoredPost, storedPost } from '../../actors/records/stored-post.ts'
import { type Format, type Source, shownIn } from '../../actors/rooms/room.ts'
import type { State } from '../../actors/state.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { Frame } from '../../storage/journal.ts'
import type { EventView, Showing } from './event-view.ts'

/** A post that is shown as it was written. */
export type PlainPost = StoredPost & {
  readonly slot: number
  readonly room: string
  readonly page: string
  readonly format: Format
  readonly source?: Source
  /** When its text expires, in Unix seconds; 0 if never. */
  readonly ends: number
  readonly author: EventView['author']
}

/** Undefined if only `event-view.ts` can show it. */
export function plainPost(
  { board, marks }: State,
  slot: number,
  frame: (slot: number) => Frame,
  { now, handleOf }: Pick<Showing, 'now' | 'handleOf'>,
): PlainPost | undefined {
  if (marks.newest(slot) !== slot || marks.isEdit(slot) || marks.gone(slot, now) !== undefined) return undefined
  const stored = storedPost(frame(slot))
  if (stored === undefined) return undefined
  const { format = 'text', source } = shownIn(stored.data === undefined ? undefined : textIn(stored.data))
  const { events, authors, roomList } = board
  const id = authors.idOf(events.author(slot))
  const handle = handleOf(id)
  return {
    ...stored,
    slot,
    room: roomList[events.room(slot)]!.name,
    page: board.page(slot),
    ends: events.expires(slot),
    format,
    ...(source === undefined ? {} : { source }),
    author: { id, public_key: stored.publicKey, ...(handle === undefined ? {} : { handle }) },
  }
}

/** The JSON of its `eventView`, as `JSON.stringify` writes it, up to the value of `log`, which follows. */
export function beginningOfEvent(state: State, post: PlainPost, payload: boolean): Utf8 {
  const { events } = state.board
  const { slot, ends, to, toId, source } = post
  const parent = events.parent(slot)
  const { up, down, score } = state.marks.votes(slot)
  const reply = parent === none ? '' : `,"reply_to":"${events.idHex(parent)}"`
  const from = source === undefined ? '' : `,"source":${toUtf8(JSON.stringify(source))}`
  const addressee = to === undefined ? '' : `,"to":${to}${toId === undefined ? '' : `,"to_id":"${toId}"`}`
  const end = ends === 0 ? '' : `,"expires_at":${ends}`
  const signed = payload ? `,"signed_payload":${JSON.stringify(post.signed)}` : ''
  return `{"type":"event","event_id":"${events.idHex(slot)}","room":${quoted(post.room)},"page":${quoted(post.page)},"seq":${events.seq(slot)},"kind":${quoted(state.board.kind(slot))},"author":${authorJson(post.author)},"text":${post.text},"format":"${post.format}"${from}${reply}${addressee},"thread":"${events.idHex(events.rootOf(slot))}","attachments":[],"created_at":${events.at(slot)}${end},"hidden":false,"votes":{"up":${up},"down":${down},"score":${score}},"via":${quoted(post.via)},"signature":"${post.signature}"${signed},"log":`
}

/** The whole event. */
export function eventJson(state: State, post: PlainPost, payload: boolean): Utf8 {
  const { events, roomList } = state.board
  const beginning = beginningOfEvent(state, post, payload)
  if (roomList[events.room(post.slot)]!.visibility !== 'public') return `${beginning}{"state":"none"}}`
  const { index, origin } = state.book.placeOf(events.leaf(post.slot))
  return `${beginning}{"state":"included","index":${index}${origin === undefined ? '' : `,"origin":${quoted(origin)}`}}}`
}

type Author = { readonly id: string; readonly public_key: string; readonly handle?: string | undefined }

export function authorJson({ id, public_key, handle }: Author): Utf8 {
  return `{"id":"${id}","public_key":"${public_key}"${handle === undefined ? '' : `,"handle":${quoted(handle)}`}}`
}

/** JSON of a name. Cached, because the same few names recur. */
export function quoted(name: string): Utf8 {
  const known = namesSeen.get(name)
  if (known !== undefined) return known
  const json = toUtf8(JSON.stringify(name))
  namesSeen.set(name, json)
  return json
}

const namesSeen = new BoundedMap<string, Utf8>(1_024)
