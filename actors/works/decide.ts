/**
 * A room's decisions about its works: it accepts requests and new versions of them, binds results, and records the state of a
 * work. For the market, it reports the rights of a command's signer in the room.
 *
 * These letters come from the board itself. Each is decided once: an existing request was accepted, a refusal is stored by the
 * id of the command, and the 300 s window is not checked again. Pure functions of the state and the records.
 */

import { hash } from 'node:crypto'
import { hex } from '../kernel/hex.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import type { Board, Room } from '../records/board.ts'
import type { Parts } from '../records/core.ts'
import { none } from '../records/event-index.ts'
import {
  commandIn,
  type Delegated,
  type FactRecord,
  type Facts,
  type PostRecord,
  postIn,
  RecordType,
} from '../records/record.ts'
import {
  type Accepted,
  accept,
  type Deciders,
  delegationOver,
  type Planned,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import { banObjection, mayModerate, mayWrite, objection } from '../rooms/policy.ts'
import { decidePost, type PostArgs } from '../rooms/room.ts'
import {
  type BindArgs,
  type BoundReply,
  type ObservedArgs,
  type RequestArgs,
  type RequestVerdict,
  type RoomRefusal,
  resultHashOf,
  type SentArgs,
  type SignedNotice,
  type TellLetter,
  type TellReply,
  type UnbindArgs,
} from './letters.ts'
import type { BoundResult, Standing, WorkArgs } from './market/letters.ts'

/** The request of a work is a post made by the same command. */
const postRequest = (situation: Situation, letter: WriteLetter<RequestArgs>) => {
  const { work } = letter.args
  if (situation.state.bound.find(work) !== undefined) return taken(situation, work)
  return (
    refusedBefore(situation, letter) ??
    reviewerObjection(situation, letter) ??
    posted(situation, letter, { kind: 'request', supersedes: '' }, (record) => ({ ...record, isRequest: true }))
  )
}

/** The request of a work is an existing event. */
const markRequest = (situation: Situation, letter: WriteLetter<RequestArgs>) => {
  const { state, board, now } = situation
  const { work } = letter.args
  const slot = board.events.find(Buffer.from(work, 'hex'))
  const room = board.rooms.get(letter.to)
  const marked = state.bound.find(work)
  if (marked?.command === hex(letter.id)) return taken(situation, work)
  const before = refusedBefore(situation, letter)
  if (before !== undefined) return before
  const no = (code: RefusalCode, message: string) => refusal(letter, now, { code, message, field: 'event_id' })
  if (room === undefined || slot === none || board.events.room(slot) !== room.number || !mayWrite(room, letter.author))
    return no('not_found', `there is no event ${work}`)
  const banned = banObjection(room, letter.author, now, 'event_id')
  if (banned !== undefined) return no(banned[0], banned[1])
  if (board.authors.idOf(board.events.author(slot)) !== letter.author)
    return no('forbidden', 'a work needs a request of your own: post one of kind request')
  if (state.marks.isEdit(slot)) return no('wrong_state', 'name the request itself, not a version of it')
  if (board.events.root(slot) !== none || board.kind(slot) !== 'request')
    return no('wrong_state', 'a work needs a post of kind request that starts a thread')
  if (board.events.expires(slot) !== 0)
    return no('wrong_state', 'the request of a work cannot expire: post it without ttl')
  const gone = state.marks.gone(slot, now)
  if (gone !== undefined) return no('wrong_state', `the text of this request is gone: ${gone.reason}`)
  if (marked !== undefined) return no('conflict', 'this request already belongs to a work: work.get shows it')
  const objection = reviewerObjection(situation, letter)
  if (objection !== undefined) return objection
  const verdict = verdictOf(situation, slot)
  return noted(letter, now, 'work.mark', { work, command: hex(letter.id) }, verdict)
}

/** A new version of the request; only the market can send one. */
const newVersion = (situation: Situation, letter: WriteLetter<RequestArgs>) => {
  const { work } = letter.args
  const { board } = situation
  if (board.events.find(letter.id) !== none) return taken(situation, work)
  return (
    refusedBefore(situation, letter) ?? posted(situation, letter, { kind: '', supersedes: work }, (record) => record)
  )
}

/** Looks up a reply that is about to be submitted. If it can be a result, it is bound until the market has decided. */
export const bind = (situation: Situation, letter: WriteLetter<BindArgs>) => {
  const { state, board, now } = situation
  const { work, result } = letter.args
  const command = hex(letter.id)
  const marked = state.bound.find(work)
  const named = board.events.find(Buffer.from(result, 'hex'))
  const room = board.rooms.get(letter.to)
  if (marked === undefined || named === none || room === undefined || board.events.room(named) !== room.number)
    return fault('not_found', `there is no event ${result} in the room of this work`)
  const slot = state.marks.original(named)
  const id = board.events.idHex(slot)
  const author = board.authors.idOf(board.events.author(slot))
  const reply = (sha256: string): BoundReply => ({ id, author, reply_to: work, sha256 })
  const before = marked.bindings.get(command)
  if (before !== undefined) return accept([], reply(before.sha256))
  if (author !== letter.author) return fault('forbidden', 'a result must be a reply of your own')
  if (board.events.parent(slot) !== board.events.find(Buffer.from(work, 'hex')))
    return fault('wrong_state', 'a result must be a reply to the request of its work: post it with reply_to')
  if (board.events.expires(slot) !== 0) return fault('wrong_state', 'a result cannot expire: post it without ttl')
  const isGone = state.marks.gone(slot, now) !== undefined
  const kept = state.bound.deliveredHash(slot) ?? ''
  // What others removed still counts if the holder of the fence delivered it: hiding a result must not make the work free.
  if (isGone && (kept === '' || state.bound.isGoneByAuthor(slot)))
    return fault('not_found', 'this reply is no longer shown: a result must be visible when it is submitted')
  const sha256 = kept === '' ? hashAt(situation, state.marks.newest(slot))! : kept
  if (isCopied(situation, slot, sha256))
    return fault('conflict', 'an earlier reply by someone else has exactly the same text')
  const versions = state.marks.edits(slot).length + 1
  return noted(letter, now, 'work.bind', { work, command, result: id, sha256, versions }, reply(sha256))
}

const unbind = ({ state, now }: Situation, letter: WriteLetter<UnbindArgs>) => {
  const { work, command } = letter.args
  if (state.bound.find(work)?.bindings.has(command) !== true) return nothingNew
  return noted(letter, now, 'work.unbind', { work, command }, {})
}

/** Records the state and posts its notice in one turn. No caller waits until the notice is in the public log. */
const tell = (situation: Situation, letter: WriteLetter<TellLetter>) => {
  const { state, board, now } = situation
  const { notice, ...update } = letter.args
  const marked = state.bound.find(update.work)
  if (marked === undefined) throw new Error(`the market reported on work ${update.work}, which is not in this room`)
  const page = board.page(board.events.find(Buffer.from(update.work, 'hex')))
  const posted = notice === undefined ? noPost : postNotice(situation, letter, update.work, notice)
  const isKnown = marked.lastTell !== undefined && marked.lastTell.n >= update.n
  // The notice comes first: if the state was recorded, so was the notice.
  const records = [...posted.records, ...(isKnown ? [] : [note(letter, now, 'work.tell', update)])]
  const isPublic = board.rooms.get(letter.to)!.visibility === 'public'
  const reply: TellReply = {
    page,
    isPublic,
    ...(posted.noticeRefusal === undefined ? {} : { noticeRefusal: posted.noticeRefusal }),
  }
  return { ...accept(records, reply), isAnsweredEarly: true as const }
}

type Posted = { readonly records: readonly Planned[]; readonly noticeRefusal?: string }

const noPost: Posted = { records: [] }

/** Posts the board's notice like any other post; one that already exists is not posted again. */
function postNotice(situation: Situation, letter: WriteLetter, work: string, notice: SignedNotice): Posted {
  const { sha, by, page } = notice
  const id = sha.subarray(0, 16)
  if (situation.board.events.find(id) !== none) return noPost
  const args: PostArgs = {
    page,
    kind: 'notice',
    replyTo: work,
    supersedes: '',
    ttl: 0,
    attachments: [],
    proofBits: 0,
  }
  const decision = decidePost(situation, { ...letter, op: 'post', id, sha, by, via: 'board', args })
  return decision.ok ? decision : { records: [], noticeRefusal: decision.refusal.message }
}

const observed = ({ state, now }: Situation, letter: WriteLetter<ObservedArgs>) => {
  const { work, n } = letter.args
  const first = state.bound.find(work)?.unreported[0]
  if (first === undefined || first.n > n) return nothingNew
  return noted(letter, now, 'work.observed', { work, n }, {})
}

/** The market's own letter: rooms have the state, and the notices are posted. */
const sent = ({ state, now }: Situation, letter: WriteLetter<SentArgs>) => {
  const seqs = letter.args.seqs.filter((seq) => state.mail.isOpen(seq))
  return seqs.length > 0 ? noted(letter, now, 'mail.sent', { seqs }, {}) : nothingNew
}

/** An identity's rights in this room. */
const stands = (situation: Situation, { to: room, author, operator }: WriteLetter) =>
  accept([], standingIn(situation, { room, author, operator }))

export const worksDeciders = {
  'work.post': postRequest,
  'work.mark': markRequest,
  'work.version': newVersion,
  'work.standing': stands,
  'work.bind': bind,
  'work.unbind': unbind,
  'work.tell': tell,
  'work.observed': observed,
  'mail.sent': sent,
} satisfies Deciders

const nothingNew = accept([], {})

/** A note of the room for itself; it is unsigned and not shown to readers. */
function noted<Reply extends Facts>(letter: WriteLetter, now: number, op: string, facts: Facts, reply: Reply) {
  return accept([note(letter, now, op, facts)], reply)
}

function note(letter: WriteLetter, now: number, op: string, facts: Facts): Planned {
  const author = Buffer.from(letter.author, 'hex')
  const record: FactRecord = { type: RecordType.act, room: letter.to, at: now, author, op, facts }
  const key = hash('sha256', `${op} ${letter.to} ${JSON.stringify(facts)}`, 'buffer').subarray(0, 16)
  return { record, key, isPublic: false }
}

/** Decided like any post by its author; the verdict is the reply. */
function posted(
  situation: Situation,
  letter: WriteLetter<RequestArgs>,
  { kind, supersedes }: { kind: string; supersedes: string },
  shape: (record: PostRecord) => PostRecord,
): Accepted<RequestVerdict> {
  const { proofBits, page } = letter.args
  // After a crash this may be decided late: a delegate's post must not have a time at which the delegation had expired.
  if (letter.by.for !== undefined && situation.now >= endOf(letter.by.for))
    return refusal(letter, situation.now, { code: 'forbidden', message: delegationOver, field: 'public_key' })
  const args: PostArgs = { page, kind, replyTo: '', supersedes, ttl: 0, attachments: [], proofBits }
  const decision = decidePost(situation, { ...letter, args })
  if (!decision.ok) return refusal(letter, situation.now, decision.refusal)
  const { reply } = decision
  const { text } = commandIn(letter.by.signed)
  const versions = supersedes === '' ? 1 : situation.state.marks.edits(slotOf(situation, supersedes)).length + 2
  const verdict: RequestVerdict = {
    taken: true,
    version: hex(letter.id),
    versions,
    isPublic: reply.isPublic,
    page: reply.page,
    ...(reply.screen === true ? { screen: { text: text!, at: reply.at } } : {}),
  }
  const records = decision.records.map((planned) =>
    planned.record.type === RecordType.event ? { ...planned, record: shape(planned.record) } : planned,
  )
  return accept(records, verdict)
}

/** Unix seconds. */
function endOf({ signed }: Delegated): number {
  const command = commandIn(signed)
  return command.timestamp! + command.ttl!
}

function taken(situation: Situation, work: string): Accepted<RequestVerdict> {
  return accept([], verdictOf(situation, slotOf(situation, work)))
}

function verdictOf({ state, board }: Situation, slot: number): RequestVerdict {
  const versions = state.marks.edits(slot).length + 1
  const room = board.roomList[board.events.room(slot)]!
  const version = board.events.idHex(state.marks.newest(slot))
  return { taken: true, version, versions, isPublic: room.visibility === 'public', page: board.page(slot) }
}

/** A refusal is a verdict too, and is stored. */
function refusal(letter: WriteLetter, now: number, found: RoomRefusal): Accepted<RequestVerdict> {
  const { code, message, field, retryAfter } = found
  const kept: RoomRefusal = {
    code,
    message,
    ...(field === undefined ? {} : { field }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  }
  const verdict: RequestVerdict = { taken: false, refusal: kept }
  return noted(letter, now, 'work.refusal', { command: hex(letter.id), refusal: kept }, verdict)
}

function refusedBefore({ state }: Situation, letter: WriteLetter): Accepted<RequestVerdict> | undefined {
  const found = state.bound.refusalOf(hex(letter.id))
  if (found === undefined) return undefined
  const verdict: RequestVerdict = { taken: false, refusal: found }
  return accept([], verdict)
}

/** A reviewer must be able to read the room. */
function reviewerObjection(
  { board, now }: Situation,
  letter: WriteLetter<RequestArgs>,
): Accepted<RequestVerdict> | undefined {
  const { reviewer } = letter.args
  const room: Room | undefined = board.rooms.get(letter.to)
  const isOwn = reviewer === '' || reviewer === letter.author
  if (isOwn || room === undefined || mayWrite(room, reviewer)) return undefined
  const message = 'the reviewer cannot read this room: first add that identity with room.member.add'
  return refusal(letter, now, { code: 'not_eligible', message, field: 'data.reviewer' })
}

function fault(code: RefusalCode, message: string): Accepted<BoundReply> {
  const reply: BoundReply = { fault: { code, message, field: 'target' } }
  return accept([], reply)
}

/** Hash of the one version at this slot; undefined if its text has left the disk. */
function hashAt({ state, board, record }: Situation, slot: number): string | undefined {
  const place = board.events.place(slot)
  let hashes = hashesOf.get(board)
  if (hashes === undefined || hashes.size >= hashesMax) {
    hashes = new Map()
    hashesOf.set(board, hashes)
  }
  const known = hashes.get(place)
  if (known !== undefined) return known
  const sha256 = resultHashOf(postIn(record(place)), state.blobs)
  if (sha256 !== undefined) hashes.set(place, sha256)
  return sha256
}

/** Computed from records that never change. The cache keeps a long thread from being read again at every submission. */
const hashesOf = new WeakMap<Board, Map<number, string>>()
const hashesMax = 100_000

/**
 * Whether an earlier, readable version by another author has the same text. Earlier means: posted before the first version of
 * this reply with that text. The order of the replies does not matter, because any of them may be edited.
 */
function isCopied(situation: Situation, slot: number, sha256: string): boolean {
  const { state, board, now } = situation
  const { events } = board
  const parent = events.parent(slot)
  const says = (version: number) => hashAt(situation, version) === sha256
  const versionsOf = (reply: number) => [reply, ...state.marks.edits(reply)]
  const first = versionsOf(slot).find(says) ?? state.marks.newest(slot)
  for (let other = events.next(parent); other !== none && other < first; other = events.next(other)) {
    if (events.parent(other) !== parent || events.author(other) === events.author(slot)) continue
    if (state.marks.gone(other, now) !== undefined) continue
    if (versionsOf(other).some((version) => version < first && says(version))) return true
  }
  return false
}

function slotOf({ board }: Situation, id: string): number {
  return board.events.find(Buffer.from(id, 'hex'))
}

type Asking = { readonly room: string; readonly author: string; readonly operator: boolean }

const stranger: Standing = { reads: false, replies: false, moderates: false }

/** The rights of a command's signer in the room of a work, which the market needs to decide. */
function standingIn(
  { state, board, now }: { readonly state: Parts; readonly board: Board; readonly now: number },
  { room: name, author, operator }: Asking,
): Standing {
  const room = board.rooms.get(name)
  if (room === undefined || (room.visibility === 'private' && !mayWrite(room, author))) return stranger
  const policy = state.rules.policyOf(name)
  const candidate = {
    author,
    operator,
    isReply: true,
    isEdit: false,
    ttl: policy.ttl_max,
    proofBits: policy.proof_bits,
  }
  const found = objection(policy, candidate, { board, room, now })
  const replies = found === undefined || !lasting.has(found[0])
  return { reads: true, replies, moderates: mayModerate(room, author, operator) }
}

/** Objections that do not resolve on their own within moments. */
const lasting: ReadonlySet<string> = new Set(['room_reply_restricted', 'room_write_restricted', 'wrong_state'])

/** Operations that depend on the signer's rights in the room, and those that may come with a result. */
export const asksStanding: ReadonlySet<string> = new Set(['work.cancel', 'work.claim', 'work.rule'])
export const asksResult: ReadonlySet<string> = new Set(['work.submit', 'work.claim'])

type WithRoomFacts<Args> = { readonly args: Args; readonly records: readonly Planned[] }

/**
 * Adds to the arguments what only the room of a work knows and the market needs to decide: the signer's rights in the room, and
 * the result being submitted. `records`: what the room records about the result if the market accepts it. A room of the same
 * shard is read directly; any other is first queried by letter (delivery.ts).
 */
export function withRoomFacts<Args extends WorkArgs>(
  situation: Situation,
  letter: WriteLetter,
  room: string,
  args: Args,
): WithRoomFacts<Args> {
  if (!situation.board.rooms.has(room)) return { args, records: [] }
  const { author, operator, op } = letter
  const standing = asksStanding.has(op) ? { standing: standingIn(situation, { room, author, operator }) } : {}
  const { work, result } = args
  if (!asksResult.has(op) || result === undefined) return { args: { ...args, ...standing }, records: [] }
  const bound = bind(situation, { ...letter, op: 'work.bind', to: room, args: { work, result } })
  if (!bound.ok) throw new Error('a room cannot refuse to check a result')
  const reply = bound.reply
  return { args: { ...args, ...standing, bound: boundOf(result, reply) }, records: bound.records }
}

/** A room's answer about a result, in the market's form. */
export function boundOf(result: string, reply: BoundReply): BoundResult {
  return 'fault' in reply ? { id: result, author: '', reply_to: '', sha256: '', fault: reply.fault } : reply
}
