/**
 * Reads on works. The feed answers for works of public rooms. For a work of a private room, the market's shard has the record and the
 * room's shard knows who may read it: the main thread queries one after the other (src/works/plans.ts).
 */

import { createHash } from 'node:crypto'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Board } from '../../actors/records/board.ts'
import { workStates } from '../../actors/records/change-kinds.ts'
import { none } from '../../actors/records/event-index.ts'
import { type FactRecord, fromFrame } from '../../actors/records/record.ts'
import { isUnconfirmed, stateOf } from '../../actors/works/market/clock.ts'
import { isOfMarket, type MarketFacts, type Posting } from '../../actors/works/market/letters.ts'
import { type Claimant, workSorts } from '../../actors/works/market/listing.ts'
import type { Market } from '../../actors/works/market/market.ts'
import { medianHours, type TrackRecord } from '../../actors/works/market/records.ts'
import { type TransitionName, transitionNamed } from '../../actors/works/market/table.ts'
import { claimSecondsLeft, type Work } from '../../actors/works/market/work.ts'
import { delegationIn } from '../reads/event-view.ts'
import {
  badCursor,
  countedPage,
  type KnownAnswer,
  known,
  limitOf,
  listed,
  type NotFound,
  ok,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  type Scope,
  unending,
  withRoom,
} from '../reads/read.ts'
import { removedTitle } from '../reads/thread-title.ts'
import { release } from '../release.ts'

export const worksReads = {
  'work.get': (context, request) => withWork(context, request, (work) => get(context, work)),
  'work.list': list,
  'work.history': (context, request) => withWork(context, request, (work) => history(context, request, work)),
  'work.offer': (context, request) => withWork(context, request, (work) => offer(context, request, work)),
  'work.where': where,
  'work.complete': complete,
} satisfies Reads

function withWork<Answer extends ReadAnswer>(
  context: ReadContext,
  { args }: ReadRequest,
  read: (work: Work) => Answer,
): Answer | NotFound {
  const work = context.state.market.find(String(args.event_id))
  if (work === undefined || work.is_public !== (context.visibility === 'public'))
    return { ok: false, absent: refusal('not_found', `there is no work ${args.event_id}`, 'event_id') }
  return read(work)
}

/** For a work of a public room, the text that everyone gets; otherwise the value, which its room completes. */
function found<Data>(context: ReadContext, data: Data, scope: Scope): ReadAnswer<Data> {
  return context.visibility === 'private' ? known(data, scope) : { ...ok<unknown>(data, scope) }
}

function get(context: ReadContext, stored: Work) {
  return found(context, { work: recordOf(context, stored) }, { until: untilOf(context) })
}

function recordOf(context: ReadContext, stored: Work) {
  const { market } = context.state
  const { work } = market.settled(stored, context.now())
  const { asRequester, asWorker } = market.records
  const records = {
    requester_record: dealingsView(asRequester.get(work.requester)),
    ...(work.worker === '' ? {} : { worker_record: dealingsView(asWorker.get(work.worker)) }),
  }
  return { ...workView(context, stored, work), ...records }
}

/** An answer is valid until time changes some work, since a list may then gain one. Texts of works do not expire. */
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
      showsTitle: (work) => !isGone(context, work.id),
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

/** The place after which a page continues, from its cursor. */
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

function history(context: ReadContext, request: ReadRequest, work: Work) {
  const show = (index: number) => {
    const { entry, textOf } = transitionAt(context, work, index)
    return signedAway(context, entry, textOf)
  }
  const page = countedPage(context, request, { name: `work.history:${work.id}`, all: [...work.places.keys()], show })
  if (page === undefined) return badCursor
  return found(context, { work_id: work.id, transitions: page.views, ...page.paging }, { until: unending })
}

/** What was signed along with a request's text is shown only while the text is. */
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

/** The signer; for a version of the request, the requester. */
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

/** Queried by the board itself from the market's shard: where a work is, whether it is public, and whose it is. */
function where({ state, now }: ReadContext, { args }: ReadRequest): KnownAnswer<{ room: string }> {
  const { market } = state
  const stored = market.find(String(args.event_id))
  if (stored === undefined)
    return { ok: false, absent: refusal('not_found', `there is no work ${args.event_id}`, 'event_id') }
  const { work } = market.settled(stored, now())
  const { room, is_public, requester, reviewer, worker, fence } = work
  return known({ room, is_public, requester, reviewer, worker, fence, state: stateOf(work, market.epoch) })
}

/**
 * What webhooks report about a work of a private room, which its room completes for each reader (`work.complete`). Also whether the
 * identity that wants works it may claim has had none accepted, which is public.
 */
function offer(context: ReadContext, { args }: ReadRequest, work: Work) {
  const { market } = context.state
  const isNewcomer = args.eligible_for === undefined || market.records.isNewcomer(String(args.eligible_for))
  return known({ work: recordOf(context, work), isNewcomer })
}

type Uncompleted = {
  readonly work?: WorkView
  readonly works?: readonly WorkView[]
  readonly transitions?: readonly (Shown['entry'] & { readonly text_of?: string })[]
}

/** Completes what the market's shard found, in the shard of the private room, which checks who may read it. */
function complete(context: ReadContext, request: ReadRequest): ReadAnswer {
  return withRoom(context, request, () => {
    const found = request.found as Uncompleted
    const filled = (work: WorkView) => ({
      ...work,
      title: isGone(context, work.id) ? removedTitle : work.title,
      request: { ...work.request, ...previewOf(context, work.id) },
    })
    const { work, works, transitions } = found
    const answer = {
      ...found,
      ...(work === undefined ? {} : { work: filled(work) }),
      ...(works === undefined ? {} : { works: works.filter((work) => isFound(context, request, work)).map(filled) }),
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

/** A removed title must not match; the market's shard may not know that it was removed. */
function isFound(context: ReadContext, { args }: ReadRequest, { id, capabilities }: WorkView): boolean {
  if (args.query === undefined || capabilities.includes(String(args.query).toLowerCase())) return true
  return !isGone(context, id)
}

/** Characters of the request shown in a record. */
const previewMax = 280

type WorkView = ReturnType<typeof workView>

type Preview = { readonly text: string; readonly truncated: boolean }

const builds = new Map<string, string>()

/** Identifies this build of the service in a recovery epoch. */
function serviceGeneration(generation: string): string {
  let known = builds.get(generation)
  if (known === undefined) {
    known = createHash('sha256').update(`broadside ${release} ${generation}`).digest('hex').slice(0, 32)
    builds.set(generation, known)
  }
  return known
}

/**
 * A work as readers get it: the record of the interface for its current `state`, without fields that do not exist in that state. `stored`:
 * the recorded work; `work`: the same with the time-outs since then.
 */
function workView(context: ReadContext, stored: Work, work: Work) {
  const { state, generation, serviceId } = context
  const { epoch } = state.market
  const isHeld = work.worker !== ''
  const { result } = work
  const isUnsure = isUnconfirmed(work, epoch)
  return {
    id: work.id,
    room: work.room,
    title: isGone(context, work.id) ? removedTitle : work.title,
    capabilities: work.capabilities,
    simulated: work.simulated,
    state: stateOf(work, epoch),
    stored_state: stored.state,
    generation: work.generation,
    service_generation: serviceGeneration(generation),
    service_id: serviceId,
    created_at: work.created_at,
    updated_at: work.updated_at,
    deadline: work.deadline,
    claim_expires_at: work.claim_expires_at,
    fence: work.fence,
    requester_author: work.requester,
    requester: party(context, work.requester, work.requester_key),
    ...(isHeld ? { worker: party(context, work.worker, work.worker_key) } : {}),
    ...(result === null
      ? { result_available: false }
      : {
          result_id: result.id,
          result_available: result.available && !isGone(context, result.id),
          result_sha256: result.sha256,
          result_changed_since_submit: result.current !== result.sha256 || result.missing,
        }),
    reward: rewardView(work),
    reviewer: party(context, work.reviewer, work.reviewer_key),
    eligibility: work.eligibility,
    request: {
      version_id: work.version,
      versions: work.versions,
      ...previewOf(context, work.id),
      thread: `/api/thread/${work.id}`,
    },
    ...(work.pinned === '' ? {} : { claimed_version_id: work.pinned }),
    ...(work.state !== 'open' || work.terms.claim_total === undefined
      ? {}
      : { claim_seconds_left: claimSecondsLeft(work) }),
    ...(work.submitted_at === 0 ? {} : { submitted_at: work.submitted_at }),
    ...(isUnsure ? { confirm_due: epoch.at + work.terms.recovery_window } : clocksOf(work)),
    ...(work.reopen ? { reopen_wished: true } : {}),
  }
}

function clocksOf({ review_due, dispute_due, arbitration_due }: Work) {
  return {
    ...(review_due === 0 ? {} : { review_due }),
    ...(dispute_due === 0 ? {} : { dispute_due }),
    ...(arbitration_due === 0 ? {} : { arbitration_due }),
  }
}

function rewardView({ amount, fee, reward_state, held_at, settled_at, reward_reason, percent }: Work) {
  return {
    amount,
    unit: 'credit',
    fee,
    state: reward_state,
    held_at,
    ...(settled_at === 0 ? {} : { settled_at, reason: reward_reason }),
    ...(reward_state === 'split' ? { percent } : {}),
  }
}

/** The identity's newest key and handle if it is known here; otherwise the key that was given. */
export function party({ board, handleOf }: ReadContext, id: string, key: string) {
  const handle = handleOf(id)
  return {
    id,
    public_key: board.authors.get(id)?.key ?? key,
    ...(handle === undefined ? {} : { handle }),
  }
}

function slotOf({ board }: ReadContext, id: string): number {
  return board.events.find(Buffer.from(id, 'hex'))
}

/** Known here and removed. For a work that is not known here, only the market decides. */
export function isGone(context: ReadContext, id: string): boolean {
  const slot = slotOf(context, id)
  if (slot === none) return false
  return context.state.marks.gone(context.state.marks.original(slot), context.now()) !== undefined
}

/** Beginnings of requests by version slot. A version's text never changes; every transition shows it, and lists show fifty. */
const beginnings = new WeakMap<Board, Map<number, Preview>>()
const beginningsMax = 10_000

/** The beginning of the request's newest version; empty if it is not known here, or its text is gone. */
export function previewOf(context: ReadContext, id: string): Preview {
  const slot = slotOf(context, id)
  if (slot === none) return nothingShown
  const { board, marks } = context.state
  let known = beginnings.get(board)
  if (known === undefined) {
    known = new Map()
    beginnings.set(board, known)
  }
  const version = marks.newest(slot)
  const isShown = marks.gone(version, context.now()) === undefined
  const found = isShown ? known.get(version) : undefined
  if (found !== undefined) return found
  known.delete(version)
  const begun = beginningOf(listed(context, slot).text)
  if (!isShown || begun === nothingShown) return begun
  if (known.size >= beginningsMax) known.clear()
  known.set(version, begun)
  return begun
}

function beginningOf(text: string | undefined): Preview {
  if (text === undefined) return nothingShown
  // Counted in code points: half a surrogate pair is not a character.
  const characters = text.length > previewMax ? [...text] : undefined
  if (characters === undefined || characters.length <= previewMax) return { text, truncated: false }
  return { text: characters.slice(0, previewMax).join(''), truncated: true }
}

const nothingShown: Preview = { text: '', truncated: false }

/** What is publicly known of an identity. */
function dealingsView(dealings: TrackRecord | undefined) {
  const { accepted, rejected, lapsed } = dealings ?? nothing
  const hours = dealings === undefined ? undefined : medianHours(dealings)
  return { accepted, rejected, lapsed, ...(hours === undefined ? {} : { median_hours_to_verdict: hours }) }
}

const nothing = { accepted: 0, rejected: 0, lapsed: 0 }
