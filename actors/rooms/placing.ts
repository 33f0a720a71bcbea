/**
 * Where a post goes: the thread it begins or joins, or the event that it is a later version of.
 *
 * `data.supersedes` names an event by its own id, whatever its newest version, or by the id of its newest version, which then
 * says "as I have read it": a version between is refused as `conflict`. A version has a place of its own in the room (id, seq,
 * leaf) and is shown at its original's; it lives as long as that one.
 *
 * A reply that names no page goes to the page of the event it answers. Boards of older releases put such replies on `main`:
 * the page is decided when the post is written and kept in its record, so those stay where they are.
 */

import type { RefusalCode } from '../kernel/refusals.ts'
import type { Schema } from '../kernel/schema.ts'
import type { Room } from '../records/board.ts'
import { none } from '../records/event-index.ts'
import { commandIn, dataIn, postIn } from '../records/record.ts'
import { type Refused, refuse, type Situation, type WriteLetter } from '../records/write.ts'

/** Versions of one event, the first one counted. */
export const versionsMax = 32

/** What the command says of its place; `''` and 0: nothing. */
export type Wanted = {
  readonly page: string
  readonly kind: string
  /** 32 hex of the event replied to. */
  readonly replyTo: string
  /** 32 hex of the event, or of its newest version, that this replaces. */
  readonly supersedes: string
  /** Seconds, 0 = forever. */
  readonly ttl: number
}

/** `''` and 0: none. */
export type Placed = {
  readonly page: string
  /** 32 hex of the event replied to: of a version, its original. */
  readonly replyTo: string
  /** 32 hex of the thread's root. */
  readonly root: string
  /** 32 hex of the event that this is a version of. */
  readonly original: string
  /** Unix seconds. */
  readonly expires: number
}

type Placing = { readonly placed: Placed } | { readonly refused: Refused }

/** Page of a thread that names none. */
export const pageDefault = 'main'

export function placeOf(situation: Situation, letter: WriteLetter, room: Room | undefined, wanted: Wanted): Placing {
  if (wanted.supersedes !== '') return placeEdit(situation, letter, room, wanted)
  const { state, board, now } = situation
  const expires = wanted.ttl === 0 ? 0 : now + wanted.ttl
  if (wanted.replyTo === '')
    return { placed: { page: wanted.page || pageDefault, replyTo: '', root: '', original: '', expires } }
  const target = slotIn(situation, room, wanted.replyTo)
  if (target === undefined)
    return { refused: refuse('not_found', `there is no event ${wanted.replyTo} in room ${letter.to}`, 'reply_to') }
  const slot = state.marks.original(target)
  const replyTo = board.events.idHex(slot)
  const page = wanted.page || board.page(slot)
  return { placed: { page, replyTo, root: threadOf(situation, slot), original: '', expires } }
}

export type Format = 'text' | 'markdown'

/** The format a text is shown in: `kept` from the version before, else the one that `data` of the signed command names. */
export function formatOf(kept: Format | undefined, data: string | undefined): Format {
  if (kept !== undefined) return kept
  if (data === undefined || data === '') return 'text'
  return dataIn<{ readonly data: Schema<{ readonly format?: Format }> }>({ data }).format ?? 'text'
}

/** The format of the version that an edit replaces, for an edit that names none. */
export function formatBefore({ state, board, record }: Situation, original: string): Format {
  const newest = state.marks.newest(board.events.find(Buffer.from(original, 'hex')))
  const { format, by } = postIn(record(board.events.place[newest]!))
  const command = commandIn(by.signed)
  return formatOf(format, command.data)
}

function placeEdit(situation: Situation, letter: WriteLetter, room: Room | undefined, wanted: Wanted): Placing {
  const { state, board, now } = situation
  const { marks } = state
  const { events } = board
  const named = slotIn(situation, room, wanted.supersedes)
  if (named === undefined)
    return no(
      'not_found',
      `"supersedes" in data names no event of room ${letter.to}: ${wanted.supersedes}`,
      'data.supersedes',
    )
  const slot = marks.original(named)
  const newest = marks.newest(slot)
  if (board.authorList[events.author[slot]!]!.id !== letter.author)
    return no('forbidden', 'only the author of an event can post a new version of it', 'data.supersedes')
  const gone = marks.gone(slot, now)
  if (gone !== undefined)
    return no(
      'wrong_state',
      `the text of this event is gone (${gone.reason}): it cannot have a new version`,
      'data.supersedes',
    )
  if (letter.op !== 'work.version' && state.bound.markedAt(slot) !== undefined)
    return no('wrong_state', 'this is the request of a work: change it with work.edit', 'data.supersedes')
  if (named !== slot && named !== newest)
    return no(
      'conflict',
      `this version was replaced: read the newest, ${events.idHex(newest)}, with event.get and name that`,
      'data.supersedes',
    )
  if (marks.edits(slot).length + 1 >= versionsMax)
    return no(
      'wrong_state',
      `this event has ${versionsMax} versions, which is the limit: post a new event`,
      'data.supersedes',
    )
  const page = board.page(slot)
  if (wanted.page !== '' && wanted.page !== page)
    return no('invalid_field', `a new version stays in its place: page must be ${page}, or left out`, 'page')
  const replyTo = parentOf(situation, slot)
  if (wanted.replyTo !== '' && wanted.replyTo !== replyTo) {
    const right = replyTo === '' ? 'left out, as the event is not a reply' : `${replyTo}, or left out`
    return no('invalid_field', `a new version stays in its place: reply_to must be ${right}`, 'reply_to')
  }
  const kind = board.kind(slot)
  if (wanted.kind !== '' && wanted.kind !== kind)
    return no('invalid_field', `a new version keeps its kind: kind must be ${kind}, or left out`, 'kind')
  if (wanted.ttl !== 0) return no('invalid_field', 'a new version expires with its original: leave ttl out', 'ttl')
  const original = events.idHex(slot)
  return { placed: { page, replyTo, root: threadOf(situation, slot), original, expires: events.expires[slot]! } }
}

function no(code: RefusalCode, message: string, field?: string): Placing {
  return { refused: refuse(code, message, field) }
}

/** The slot of an event of this room. */
function slotIn({ board: { events } }: Situation, room: Room | undefined, id: string): number | undefined {
  const slot = events.find(Buffer.from(id, 'hex'))
  return slot === none || room === undefined || events.room[slot] !== room.number ? undefined : slot
}

function parentOf({ board: { events } }: Situation, slot: number): string {
  const parent = events.parent[slot]!
  return parent === none ? '' : events.idHex(parent)
}

function threadOf({ board: { events } }: Situation, slot: number): string {
  const root = events.root[slot]!
  return events.idHex(root === none ? slot : root)
}
