/**
 * Reads on works. The feed answers for those of public rooms; of those of private rooms the market's shard has the record and the
 * room's shard knows who may read it: the main thread asks one after the other (src/works/plans.ts).
 */

import { refusal } from '../../actors/kernel/refusals.ts'
import { type FactRecord, fromFrame, workStates } from '../../actors/records/record.ts'
import { stateOf } from '../../actors/works/market/clock.ts'
import { isOfMarket, type MarketFacts, type Posting } from '../../actors/works/market/letters.ts'
import { type Claimant, workSorts } from '../../actors/works/market/listing.ts'
import type { Market } from '../../actors/works/market/market.ts'
import { type TransitionName, transitionNamed } from '../../actors/works/market/table.ts'
import type { Work } from '../../actors/works/market/work.ts'
import { delegationIn } from '../reads/event-view.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  type Scope,
  unending,
  withinPage,
  withRoom,
} from '../reads/read.ts'
import { dealingsView, isGone, party, previewOf, type WorkView, workView } from './view.ts'

export const worksReads = {
  'work.get': (context, request) => withWork(context, request, (work) => get(context, work)),
  'work.list': list,
  'work.history': (context, request) => withWork(context, request, (work) => history(context, request, work)),
  'work.where': where,
  'work.complete': complete,
} satisfies Reads

function withWork<Data>(
  context: ReadContext,
  { args }: ReadRequest,
  read: (work: Work) => ReadAnswer<Data>,
): ReadAnswer<Data> {
  const work = context.state.market.find(String(args.event_id))
  if (work === undefined || work.is_public !== (context.visibility === 'public'))
    return { ok: false, absent: refusal('not_found', `there is no work ${args.event_id}`, 'event_id') }
  return read(work)
}

/** Of a work of a public room the text that all get; of another the value that its room completes. */
function found<Data>(context: ReadContext, data: Data, scope: Scope): ReadAnswer<Data> {
  return context.visibility === 'private' ? known(data, scope) : { ...ok<unknown>(data, scope) }
}

function get(context: ReadContext, stored: Work) {
  const { market } = context.state
  const { work } = market.settled(stored, context.now())
  const { asRequester, asWorker } = market.records
  const records = {
    requester_record: dealingsView(asRequester.get(work.requester)),
    ...(work.worker === '' ? {} : { worker_record: dealingsView(asWorker.get(work.worker)) }),
  }
  return found(context, { work: { ...workView(context, stored, work), ...records } }, { until: untilOf(context) })
}

/** An answer is good until time changes some work: a list may gain one that it did not have. Texts of works do not expire. */
function untilOf({ state, now }: ReadContext): number {
  const due = state.market.nextDue
  return due === 0 ? unending : Math.max(now(), due)
}

function list(context: ReadContext, request: ReadRequest) {
  const { args } = request
  if (args.room === undefined || context.visibility === 'private') return page(context, request)
  return withRoom(context, request, () => page(context, request))
}

function page(context: ReadContext, { args }: ReadRequest) {
  const { market } = context.state
  const sort = workSorts.find((each) => each === args.sort) ?? 'new'
  const name = `work.list:${sort}`
  const from = args.cursor === undefined ? undefined : context.cursors.open(name, String(args.cursor))
  if (args.cursor !== undefined && typeof from !== 'string') return badCursor
  const now = context.now()
  const given = (name: string) => (args[name] === undefined ? undefined : String(args[name]))
  const eligible = given('eligible_for')
  const listed = market.list(
    {
      ...named('room', given('room')),
      ...named(
        'state',
        workStates.find((each) => each === args.kind),
      ),
      ...named('words', given('query')?.toLowerCase()),
      ...named('party', given('target')),
      ...named('capability', given('capability')),
      ...named('minReward', args.min_reward === undefined ? undefined : Number(args.min_reward)),
      ...named('claimant', eligible === undefined ? undefined : claimant(market, eligible, now)),
      ...named('from', from === undefined ? undefined : placeIn(String(from))),
      simulated: args.room !== undefined || args.target !== undefined,
      isPublic: context.visibility === 'public',
      sort,
      limit: limitOf(args),
    },
    now,
  )
  const works = listed.works.map((work) => workView(context, market.find(work.id)!, work))
  const more =
    listed.next === undefined
      ? { has_more: false }
      : { next_cursor: context.cursors.seal(name, JSON.stringify(listed.next)), has_more: true }
  return found(context, { works, ...more }, { until: untilOf(context) })
}

/** The place after which a page goes on, from its cursor. */
function placeIn(cursor: string): readonly (number | string)[] {
  return JSON.parse(cursor)
}

function claimant(market: Market, id: string, now: number): Claimant {
  return { id, isNewcomer: market.isNewcomer(id), may: (work) => market.isEligible(work, id, now) }
}

function named<Name extends string, Value>(name: Name, value: Value | undefined): { [Key in Name]?: Value } {
  return value === undefined ? {} : ({ [name]: value } as { [Key in Name]?: Value })
}

type Shown = { readonly entry: Readonly<Record<string, unknown>>; readonly textOf: string }

function history(context: ReadContext, { args }: ReadRequest, work: Work) {
  const name = `work.history:${work.id}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const first = cursor.from ?? 0
  const end = Math.min(work.places.length, first + limitOf(args))
  const wanted = Array.from({ length: end - first }, (_, n) => first + n)
  const { views: transitions } = withinPage(wanted, (index) => {
    const { entry, textOf } = transitionAt(context, work, index)
    return signedAway(context, entry, textOf)
  })
  const behind = first + transitions.length
  const data = {
    work_id: work.id,
    transitions,
    ...paging(context, name, behind < work.places.length ? behind : undefined),
  }
  return found(context, data, { until: unending })
}

/** What was signed with the text of a request is shown while the text is. */
function signedAway(context: ReadContext, entry: Shown['entry'], textOf: string): object {
  if (textOf === '') return entry
  const { signed_payload, signature, ...rest } = entry
  return isGone(context, textOf) ? rest : { ...entry, ...(context.visibility === 'private' ? { text_of: textOf } : {}) }
}

function transitionAt(context: ReadContext, work: Work, index: number): Shown {
  const place = work.places[index]!
  const act = actAt(context, work.shard, place)
  if (index === 0) return created(context, work, act)
  const { steps = [] } = act.facts
  const step = steps[index - work.places.indexOf(place)]!
  const { transition, at, state, fence, reason, postings } = step
  const row = transitionNamed[transition as TransitionName]
  const entry = {
    seq: index + 1,
    operation: row.on,
    transition,
    ...actorOf(context, work, act, row.on),
    at,
    state,
    fence,
    ...(reason === undefined ? {} : { reason }),
    transfers: postings.map(transferView),
    ...signedOf(act),
  }
  return { entry, textOf: '' }
}

function created(context: ReadContext, work: Work, act: FactRecord<MarketFacts>): Shown {
  const { postings = [] } = act.facts
  const entry = {
    seq: 1,
    operation: 'work.create',
    transition: 'create',
    actor: party(context, work.requester, work.requester_key),
    at: work.created_at,
    state: 'open',
    fence: 0,
    transfers: postings.map(transferView),
    ...signedOf(act),
  }
  return { entry, textOf: work.id }
}

function actAt(context: ReadContext, shard: number, seq: number): FactRecord<MarketFacts> {
  const record = fromFrame(context.frame(shard, seq))
  if (!isOfMarket(record)) throw new Error(`record ${seq} of the market is not an act`)
  return record
}

/** Its signer; of a version of the request, the requester. */
function actorOf(context: ReadContext, work: Work, act: FactRecord, on: string): object {
  if (act.by === undefined)
    return on === 'work.edit' ? { actor: party(context, work.requester, work.requester_key) } : {}
  const key = Buffer.from(act.by.key).toString('base64url')
  return { actor: party(context, Buffer.from(act.author).toString('hex'), key) }
}

function signedOf({ by }: FactRecord): object {
  if (by === undefined || by.signed.length === 0) return {}
  return {
    signed_payload: Buffer.from(by.signed).toString('utf8'),
    signature: Buffer.from(by.sig).toString('base64url'),
    ...delegationIn(by),
  }
}

export function transferView({ id, type, code, debit, credit, amount }: Posting) {
  return { transfer: id, type, code, debit, credit, amount }
}

/** The board asks itself, of the market's shard: where a work is, public or not, and whose. */
function where({ state, now }: ReadContext, { args }: ReadRequest): KnownAnswer<{ room: string }> {
  const { market } = state
  const stored = market.find(String(args.event_id))
  if (stored === undefined)
    return { ok: false, absent: refusal('not_found', `there is no work ${args.event_id}`, 'event_id') }
  const { work } = market.settled(stored, now())
  const { room, is_public, requester, reviewer, worker, fence } = work
  return known({ room, is_public, requester, reviewer, worker, fence, state: stateOf(work, market.epoch) })
}

type Uncompleted = {
  readonly work?: WorkView
  readonly works?: readonly WorkView[]
  readonly transitions?: readonly (Shown['entry'] & { readonly text_of?: string })[]
}

/** What the market's shard has found, on its way through the shard of a private room: who may read it is asked here. */
function complete(context: ReadContext, request: ReadRequest): ReadAnswer {
  return withRoom(context, request, () => {
    const found = request.found as Uncompleted
    const filled = (work: WorkView) => ({ ...work, request: { ...work.request, ...previewOf(context, work.id) } })
    const { work, works, transitions } = found
    const answer = {
      ...found,
      ...(work === undefined ? {} : { work: filled(work) }),
      ...(works === undefined ? {} : { works: works.map(filled) }),
      ...(transitions === undefined
        ? {}
        : {
            transitions: transitions.map(({ text_of: textOf = '', ...entry }) => {
              const { signed_payload, signature, ...rest } = entry
              return textOf !== '' && isGone(context, textOf) ? rest : entry
            }),
          }),
    }
    return ok(answer, { until: context.now() })
  })
}
