/**
 * Decisions about listings, all by the actor `@tools`, and about reviews, by the room `reviews`. Pure functions of the state.
 *
 * A listing is a claim. Its publisher may change it. A listing that was imported, or published by somebody else, may be changed
 * by the identity that its host names as owner (seen by a probe). The operator may also withdraw it.
 */

import { createHash } from 'node:crypto'
import { dayOf } from '../kernel/day.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import type { Parts } from '../records/core.ts'
import { postEntry } from '../records/entry.ts'
import { type FactRecord, RecordType } from '../records/record.ts'
import { accept, act, type Deciders, type Refused, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import { eventOf, type PostReply } from '../rooms/room.ts'
import { digestOf, hostOf, type ListingFields, publishedId } from './listing.ts'
import type { Entry, ImportFacts, ProbedFacts, ProbeFacts, PublishFacts, RoundFacts, WithdrawFacts } from './tools.ts'

type ReviewArgs = {
  /** Why it is refused: code and message. */
  readonly barred?: readonly [code: RefusalCode, message: string]
}

const page = 'main'

/**
 * A review becomes its author's post in the room `reviews`: an event like any other, whose signed command is `tools.review`.
 * The room's rules for posts do not apply to it; that the subject exists was checked earlier.
 */
const placeReview = ({ board, now }: Situation, letter: WriteLetter<ReviewArgs>) => {
  const { barred } = letter.args
  if (barred !== undefined) return refuse(...barred, 'target')
  const room = board.rooms.get(letter.to)
  const seq = (room?.events.length ?? 0) + 1
  const id = Buffer.from(letter.id).toString('hex')
  const placed = { page, kind: 'review', replyTo: '', root: '', original: '', expires: 0 }
  const record = eventOf(letter, placed, seq, now)
  const entry = postEntry({ room: letter.to, seq, time: now, sha: letter.sha })
  const reply: PostReply = { page, kind: placed.kind, seq, at: now, thread: id, replyTo: '', isPublic: true }
  return accept([{ record, key: letter.id, isPublic: true, entries: [entry] }], reply)
}

export type PublishArgs = { readonly name: string; readonly host: string; readonly listingsMax: number }
export type UpdateArgs = { readonly target: string; readonly host: string }
export type ImportArgs = { readonly rows: readonly ListingFields[] }
type ProbeArgs = { readonly target: string; readonly gapSeconds: number }
export type RoundArgs = ProbeArgs & {
  /** Per day, for the whole board. */
  readonly looksMax: number
}
/** 32 hex: the id of this probe of the daily round. */
type RoundReply = { readonly id: string; readonly at: number }

const publish = ({ state, now }: Situation, letter: WriteLetter<PublishArgs>) => {
  const { name, host, listingsMax } = letter.args
  if (state.tools.countOf(letter.author) >= listingsMax)
    return refuse('wrong_state', `an identity can have ${listingsMax} listings: withdraw one with tools.withdraw`)
  const id = publishedId(name, Buffer.from(letter.id).toString('hex'))
  if (state.tools.find(id) !== undefined)
    return refuse('conflict', `there is already a listing ${id}: sign again with a fresh nonce`)
  return act(letter, now, {
    facts: { id, verified: state.tools.isOwnerOf(host, letter.author) } satisfies PublishFacts,
    isPublic: true,
  })
}

const update = ({ state, now }: Situation, letter: WriteLetter<UpdateArgs>) => {
  const { target, host } = letter.args
  const entry = state.tools.find(target)
  if (entry === undefined) return unknown(target)
  const objection = ownerObjection(state, entry, letter, false)
  if (objection !== undefined) return objection
  if (entry.withdrawn === 'operator')
    return refuse(
      'wrong_state',
      'the operator of this board withdrew this listing, so it cannot be changed: ask them, or publish another one with tools.publish',
      'target',
    )
  const isMoving = host !== entry.host && entry.owner !== letter.author
  if (isMoving)
    return refuse(
      'invalid_field',
      `you may change this listing because ${entry.host} is yours: url must stay on that host`,
      'data',
    )
  const facts: PublishFacts = { id: target, verified: state.tools.isOwnerOf(host, letter.author) }
  return act(letter, now, { facts, isPublic: true })
}

const withdraw = ({ state, now }: Situation, letter: WriteLetter<{ target: string }>) => {
  const { target } = letter.args
  const entry = state.tools.find(target)
  if (entry === undefined) return unknown(target)
  if (entry.withdrawn !== '')
    return refuse('wrong_state', `listing ${target} is already withdrawn: tools.publish makes a new one`, 'target')
  const objection = ownerObjection(state, entry, letter, true)
  if (objection !== undefined) return objection
  const isOwners = entry.owner === letter.author || state.tools.isOwnerOf(entry.host, letter.author)
  const facts: WithdrawFacts = { id: target, by: isOwners ? 'owner' : 'operator' }
  return act(letter, now, { facts, isPublic: true })
}

/** One batch of a list. Rows without changes, and rows whose listing an owner has changed, are skipped. */
const importRows = ({ state, now }: Situation, letter: WriteLetter<ImportArgs>) => {
  if (!letter.operator) return refuse('forbidden', 'only the operator of this board can import lists of tools')
  const { rows } = letter.args
  const applied: number[] = []
  const kept: [row: number, why: string][] = []
  const seen = new Set<string>()
  for (const [row, fields] of rows.entries()) {
    const id = fields.id!
    const why = seen.has(id) ? 'the id appears twice in this batch' : reasonToKeep(state.tools.find(id), fields)
    seen.add(id)
    if (why === '') applied.push(row)
    else if (why !== unchanged) kept.push([row, why])
  }
  const facts: ImportFacts = { applied, kept, unchanged: rows.length - applied.length - kept.length }
  return act(letter, now, { facts, isPublic: true })
}

const unchanged = 'unchanged'

function reasonToKeep(entry: Entry | undefined, fields: ListingFields): string {
  if (entry === undefined) return ''
  if (entry.owner !== '') return 'its owner maintains it here'
  if (entry.withdrawn !== '') return `the ${entry.withdrawn} withdrew it`
  return entry.digest === digestOf(fields) ? unchanged : ''
}

/** A probe is requested. The request is recorded before anything is sent. */
const probe = ({ state, now }: Situation, letter: WriteLetter<ProbeArgs>) => {
  const { target, gapSeconds } = letter.args
  const entry = state.tools.find(target)
  if (entry === undefined) return unknown(target)
  if (entry.host === '')
    return refuse('wrong_state', 'this listing has no address to probe: add one with tools.update', 'target')
  const wait = state.tools.lastAsked(entry.host) + gapSeconds - now
  if (wait > 0)
    return refuse(
      'rate_limited',
      `${entry.host} was probed less than ${gapSeconds} s ago: wait retry_after seconds`,
      undefined,
      wait,
    )
  const facts: ProbeFacts = { tool: target, host: entry.host }
  return act(letter, now, { facts, isPublic: false })
}

/** The daily round probes a listing: once a day, and only while its host agrees. */
const round = ({ state, now }: Situation, letter: WriteLetter<RoundArgs>) => {
  const { target, gapSeconds, looksMax } = letter.args
  const { tools } = state
  const [entry, day] = [tools.find(target), dayOf(now)]
  const isInvited = entry !== undefined && tools.isListed(entry) && tools.isOwnerOf(entry.host, entry.owner)
  if (!isInvited || entry.lookedDay >= day) return refuse('wrong_state', `${target} is not due for a probe today`)
  if (tools.looksOn(day) >= looksMax || tools.lastAsked(entry.host) + gapSeconds > now)
    return refuse('rate_limited', 'the probes for today or for this host are used up')
  const key = createHash('sha256').update(`tools.round ${day} ${target}`).digest().subarray(0, 16)
  const facts: RoundFacts = { tool: target, host: entry.host, day }
  const author = Buffer.from(entry.owner, 'hex')
  const record: FactRecord = { type: RecordType.act, room: letter.to, at: now, author, op: 'tools.round', facts }
  const reply: RoundReply = { id: key.toString('hex'), at: now }
  return accept([{ record, key, isPublic: false }], reply)
}

/** The result of a probe. It is not signed; a repeated result is recorded once. */
const probed = ({ state, now }: Situation, letter: WriteLetter<ProbedFacts>) => {
  const facts = letter.args
  const key = createHash('sha256').update(`tools.probed ${facts.probe}`).digest().subarray(0, 16)
  const last = state.tools.find(facts.tool)?.lastProbe
  if (last?.id === facts.probe) return accept([], { at: last.at })
  const record: FactRecord = {
    type: RecordType.act,
    room: letter.to,
    at: now,
    author: Buffer.from(facts.identity, 'hex'),
    op: 'tools.probed',
    facts,
  }
  return accept([{ record, key, isPublic: true }], { at: now })
}

export const toolsDeciders = {
  'tools.publish': publish,
  'tools.update': update,
  'tools.withdraw': withdraw,
  'tools.import': importRows,
  'tools.review': placeReview,
  'tools.probe': probe,
  'tools.round': round,
  'tools.probed': probed,
} satisfies Deciders

function unknown(target: string): Refused {
  return refuse('not_found', `there is no listing ${target}: tools.search finds them`, 'target')
}

function ownerObjection(
  state: Parts,
  entry: Entry,
  { author, operator }: WriteLetter,
  orOperator: boolean,
): Refused | undefined {
  if (entry.owner === author || state.tools.isOwnerOf(entry.host, author) || (orOperator && operator)) return undefined
  const how =
    entry.host === ''
      ? 'it has no host that could be yours'
      : `name your identity id under "owners" in https://${entry.host}/.well-known/broadside.json, then call tools.probe`
  const who = entry.owner === '' ? 'it was imported' : 'someone else published it'
  return refuse('forbidden', `${who}, and you are not a verified owner of its host: ${how}`, 'target')
}

/** The host that a listing would be on. */
export function hostIn(fields: Pick<ListingFields, 'url' | 'mcp_url'>): string {
  return hostOf({ url: fields.url ?? '', mcp_url: fields.mcp_url ?? '' })
}
