/**
 * Reads on moderation: the log of a room, and reports. Memory says where a signed record is; who, what and why come from the record itself.
 */

import { refusal } from '../../actors/kernel/refusals.ts'
import { noLeaf } from '../../actors/log/public-records.ts'
import type { reportResolve } from '../../actors/moderation/operations.ts'
import { postsLeft } from '../../actors/posts/decide.ts'
import type { Ban, Room } from '../../actors/records/board.ts'
import {
  commandIn,
  dataIn,
  type FactRecord,
  frameKey,
  fromFrame,
  RecordType,
  type Signed,
} from '../../actors/records/record.ts'
import { isOver } from '../../actors/rooms/policy.ts'
import type { Kept, Report } from '../../actors/rooms/rules.ts'
import type { Frame } from '../../storage/journal.ts'
import { delegationIn, eventOf } from '../reads/event-view.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  placeInList,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  readable,
  refused,
  type Share,
  soonest,
  unending,
  withinPage,
  withRoom,
} from '../reads/read.ts'
import type { Screened } from './screening.ts'

export const moderationReads = {
  'room.modlog': (context, request) => withRoom(context, request, ({ name }) => modlog(context, request, name)),
  'moderation.log': boardLog,
  'room.bans': (context, request) => withRoom(context, request, (room) => bans(context, request, room)),
  'reports.list': listReports,
  'reports.summary': summarizeReports,
  /** The board counts them for its statistics. */
  'reports.open': ({ state }) => known(state.rules.openReports),
  'screening.recent': recent,
  'author.hidden': hiddenAuthors,
  'author.rooms': roomsLeft,
} satisfies Reads

type SignedAct = FactRecord & { readonly by: Signed }
/** Number of report ids shown per event. */
const shownReportsMax = 20
/** Why an entry has no signature. */
const ofTheBoard = 'set by the board itself when it created the room: no command, so no signature'
function actAt(context: ReadContext, { shard, seq }: Kept): SignedAct {
  const { by, ...act } = actOf(context.frame(shard, seq))
  if (by === undefined) throw new Error(`record ${seq} is not a signed act`)
  return { ...act, by }
}

function actOf(frame: Frame): FactRecord {
  const record = fromFrame(frame)
  if (record.type !== RecordType.act) throw new Error(`record ${frame.seq} is not an act`)
  return record
}

function modlog(context: ReadContext, { args }: ReadRequest, room: string): ReadAnswer {
  const { rules } = context.state
  const list = `modlog:${room}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const newest = cursor.from === undefined ? rules.logLength(room) : cursor.from - 1
  const oldest = Math.max(1, newest - limitOf(args) + 1)
  const {
    views: entries,
    cut,
    missing,
  } = withinPage(
    context,
    Array.from({ length: newest - oldest + 1 }, (_, n) => newest - n),
    (seq) => entryView(context, room, seq, rules.logEntry(room, seq)),
  )
  return ok(
    { room, entries, ...missing, ...paging(context, list, cut ?? (oldest > 1 ? oldest : undefined)) },
    { room, until: unending },
  )
}

/** The same for the whole board, each with its place in the public log. */
function boardLog(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const { moderation, book } = context.state
  const list = 'moderation'
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const newest = cursor.from === undefined ? moderation.length : cursor.from - 1
  const oldest = Math.max(1, newest - limitOf(args) + 1)
  const {
    views: acts,
    cut,
    missing,
  } = withinPage(
    context,
    Array.from({ length: newest - oldest + 1 }, (_, n) => newest - n),
    (seq) => {
      const act = moderation.entry(seq)
      const { room, ...entry } = entryView(context, actOf(context.frame(act.shard, act.seq)).room, seq, act)
      const log = act.leaf === noLeaf ? undefined : book.holding(act.leaf)
      return {
        ...entry,
        ...(room.startsWith('@') ? {} : { room }),
        log:
          log === undefined ? { state: 'none' } : { state: 'included', origin: log.origin, index: act.leaf - log.base },
      }
    },
  )
  return ok(
    { acts, ...missing, ...paging(context, list, cut ?? (oldest > 1 ? oldest : undefined)) },
    { until: unending },
  )
}

function bans(context: ReadContext, { args }: ReadRequest, room: Room): ReadAnswer {
  const list = `bans:${room.name}`
  const cursor = opened(context, list, args)
  if (cursor === undefined) return badCursor
  const { from = Number.POSITIVE_INFINITY } = cursor
  const now = context.now()
  const found = [...room.bans]
    .filter(([, ban]) => !isOver(ban, now) && ban.seq < from)
    .reverse()
    .map(([target, ban]) => ({ target, ...ban }))
  const page = found.slice(0, limitOf(args))
  const { views, cut, missing } = withinPage(context, page, (ban) => banView(context, ban))
  const next = cut?.seq ?? (found.length > page.length ? page.at(-1)?.seq : undefined)
  const ends = found.flatMap(({ until }) => (until === 0 ? [] : [until]))
  const data = { room: room.name, bans: views, ...missing, ...paging(context, list, next) }
  return ok(data, { room: room.name, until: soonest(ends) })
}

function banView(context: ReadContext, { target, until, ...kept }: Ban & { readonly target: string }) {
  const { author, at, by } = actAt(context, kept)
  const handle = context.handleOf(target)
  return {
    target,
    ...(handle === undefined ? {} : { handle }),
    by: Buffer.from(author).toString('hex'),
    reason: commandIn(by.signed).reason ?? '',
    created_at: at,
    ...(until === 0 ? {} : { expires_at: until }),
  }
}

function entryView(context: ReadContext, room: string, seq: number, kept: Kept) {
  const frame = context.frame(kept.shard, kept.seq)
  const { op, author, at, by } = actOf(frame)
  const actor = Buffer.from(author).toString('hex')
  const handle = context.handleOf(actor)
  const named = handle === undefined ? {} : { handle }
  const place = { seq, room, action: op, created_at: at, event_id: frameKey(frame).toString('hex') }
  if (by === undefined) return { ...place, actor: { id: actor, ...named }, reason: ofTheBoard }
  const { event_id, target = event_id, reason, data } = commandIn(by.signed)
  return {
    ...place,
    actor: { id: actor, public_key: base64url(by.key), ...named },
    ...(target === undefined ? {} : { target }),
    ...(reason === undefined ? {} : { reason }),
    ...(data === undefined || data === '' ? {} : { detail: data }),
    signature: base64url(by.sig),
    signed_payload: Buffer.from(by.signed).toString('utf8'),
    ...delegationIn(by),
  }
}

/** One shard's share of the list: newest first, each with the cursor after it; src/reads/gather.ts merges them. */
function listReports(context: ReadContext, { args, operator }: ReadRequest): KnownAnswer<Share> {
  if (operator !== true) return refused(refusal('forbidden', 'only the operator of this board can read reports'))
  const list = `reports:${args.kind ?? ''}`
  const before = args.cursor === undefined ? '' : context.cursors.open(list, String(args.cursor))
  if (typeof before !== 'string') return badCursor
  const limit = limitOf(args)
  const found = [...context.state.rules.reports()]
    .filter(({ settled }) => args.kind === undefined || (settled === undefined) === (args.kind === 'open'))
    .map((report) => ({ place: placeInList(report.at, report.seq, report.id), report }))
    .filter(({ place }) => before === '' || place < before)
    .sort((a, b) => (a.place < b.place ? 1 : -1))
    .slice(0, limit + 1)
  const seal = (place: string) => context.cursors.seal(list, place)
  const { views: items, cut } = withinPage(context, found, ({ place, report }) => ({
    place,
    cursor: seal(place),
    item: reportView(context, report),
  }))
  return known({
    limit,
    items,
    ...(cut === undefined ? {} : { reached: { place: cut.place, cursor: seal(cut.place) } }),
  })
}

/** Reports that an operator has to read are in the shard of their room, so each event is complete in one share. */
function summarizeReports(context: ReadContext, { args, operator }: ReadRequest): KnownAnswer<Share> {
  if (operator !== true) return refused(refusal('forbidden', 'only the operator of this board can read reports'))
  const list = 'reports:summary'
  const before = args.cursor === undefined ? '' : context.cursors.open(list, String(args.cursor))
  if (typeof before !== 'string') return badCursor
  const limit = limitOf(args)
  const open = [...context.state.rules.reports()].filter(({ settled }) => settled === undefined)
  const found = [...Map.groupBy(open, ({ event }) => event).values()]
    .map((reports) => ({ place: placeInList(reports.at(-1)!.at, reports.at(-1)!.seq, reports[0]!.event), reports }))
    .filter(({ place }) => before === '' || place < before)
    .sort((a, b) => (a.place < b.place ? 1 : -1))
    .slice(0, limit + 1)
  const seal = (place: string) => context.cursors.seal(list, place)
  const { views: items, cut } = withinPage(context, found, ({ place, reports }) => ({
    place,
    cursor: seal(place),
    item: reportedView(context, reports),
  }))
  return known({
    limit,
    items,
    ...(cut === undefined ? {} : { reached: { place: cut.place, cursor: seal(cut.place) } }),
  })
}

/** Open reports of one event, oldest first. */
function reportedView(context: ReadContext, reports: readonly Report[]) {
  const [oldest, newest] = [reports[0]!, reports.at(-1)!]
  const { event_id, room, author, reason } = reportView(context, oldest)
  return {
    event_id,
    room,
    author,
    reporters: reports.length,
    oldest_at: oldest.at,
    newest_at: newest.at,
    reports: reports.slice(0, shownReportsMax).map(({ id }) => id),
    reason,
  }
}

function reportView(context: ReadContext, report: Report) {
  const { board } = context
  const slot = board.events.find(Buffer.from(report.event, 'hex'))
  const { reason = '' } = readable(context, () => commandIn(actAt(context, report).by.signed)) ?? {}
  const { settled } = report
  const resolved = settled && readable(context, () => settledView(actAt(context, settled)))
  return {
    id: report.id,
    event_id: report.event,
    room: report.room,
    author: board.authors.idOf(board.events.author(slot)),
    reporter: report.by,
    reason,
    state: settled === undefined ? 'open' : 'resolved',
    created_at: report.at,
    ...(resolved === undefined ? {} : { resolved }),
  }
}

function settledView({ author, at, by }: SignedAct) {
  const { action, note } = dataIn<typeof reportResolve>(commandIn(by.signed))
  return { by: Buffer.from(author).toString('hex'), at, action, ...(note === undefined ? {} : { note }) }
}

/**
 * Used by the board at its start: posts of moderated rooms that are recent enough for the board to still sign a hide. They include
 * everything that was accepted and not yet screened when it stopped. Repeating a hide has no second effect.
 */
function recent(
  context: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ posts: readonly (Screened & { author?: string })[] }> {
  const { board, state } = context
  const { events } = board
  const posts: (Screened & { author?: string })[] = []
  for (const room of board.roomList) {
    if (room.visibility !== 'public' || state.rules.policyOf(room.name).promotion !== 'moderate') continue
    for (let position = room.events.length - 1; position >= 0; position--) {
      const slot = room.events.at(position)
      if (events.at(slot) < Number(args.since)) break
      if (state.marks.isEdit(slot) || state.marks.gone(slot, context.now()) !== undefined) continue
      const event = readable(context, () => eventOf(context.body(slot)))
      if (event === undefined) continue
      const { at, kind, reply, by } = event
      const { text = '' } = commandIn(by.signed)
      // A delegate is never an operator, even if its identity is.
      const author = by.for === undefined ? { author: board.authors.idOf(events.author(slot)) } : {}
      posts.push({ id: events.idHex(slot), room: room.name, kind, text, at, isReply: reply !== undefined, ...author })
    }
  }
  return known({ posts })
}

/** Used by the board: the identities whose posts a suspension has hidden in this shard so far. */
function hiddenAuthors({ board, state }: ReadContext): KnownAnswer<{ authors: readonly string[] }> {
  return known({ authors: [...state.marks.hiddenAuthors].map((number) => board.authors.idOf(number)) })
}

/**
 * The rooms of a shard that still have posts to hide for a suspension of this identity (`hidden` is 1), or to show again after its end,
 * among the posts after `from`. `next`: where to continue, 0 if done.
 */
function roomsLeft(
  { board, state }: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ rooms: readonly string[]; next: number }> {
  const isHidden = args.hidden === 1
  const { slots, next } = postsLeft(state, { target: String(args.target), from: Number(args.from), isHidden })
  const rooms = new Set(slots.map((slot) => board.roomList[board.events.room(slot)]!.name))
  return known({ rooms: [...rooms], next })
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url')
}
