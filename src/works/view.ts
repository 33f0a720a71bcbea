/** A work as readers get it: the record of the interface, with what `state` says now, and nothing that is not there in that state. */
import { createHash } from 'node:crypto'
import type { Board } from '../../actors/records/board.ts'
import { none } from '../../actors/records/event-index.ts'
import { isUnconfirmed, stateOf } from '../../actors/works/market/clock.ts'
import { type Dealings, medianHours } from '../../actors/works/market/records.ts'
import type { Work } from '../../actors/works/market/work.ts'
import { type ReadContext, view } from '../reads/read.ts'
import { release } from '../release.ts'

/** Characters of the request that a record shows. */
const previewMax = 280

export type WorkView = ReturnType<typeof workView>

type Preview = { readonly text: string; readonly truncated: boolean }

const builds = new Map<string, string>()

/** Names this build of the service in a recovery epoch. */
function serviceGeneration(generation: string): string {
  let known = builds.get(generation)
  if (known === undefined) {
    known = createHash('sha256').update(`broadside ${release} ${generation}`).digest('hex').slice(0, 32)
    builds.set(generation, known)
  }
  return known
}

/** `stored`: what is recorded; `work`: what it has become since. */
export function workView(context: ReadContext, stored: Work, work: Work) {
  const { state, generation, serviceId } = context
  const { epoch } = state.market
  const isHeld = work.worker !== ''
  const { result } = work
  const isUnsure = isUnconfirmed(work, epoch)
  return {
    id: work.id,
    room: work.room,
    title: work.title,
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

/** Where the identity is known here, its newest key and its handle; else the key that it came with. */
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

/** Known here and taken away; what is not known here is spoken of by the market alone. */
export function isGone(context: ReadContext, id: string): boolean {
  const slot = slotOf(context, id)
  if (slot === none) return false
  return context.state.marks.gone(context.state.marks.original(slot), context.now()) !== undefined
}

/** How requests begin, by the slot of the version, whose text never changes: every transition shows it, and lists show fifty. */
const beginnings = new WeakMap<Board, Map<number, Preview>>()
const beginningsMax = 10_000

/** How the newest version of the request begins; empty where it is not known here, or its text is gone. */
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
  const begun = beginningOf(view(context, slot, false).text)
  if (!isShown || begun === nothingShown) return begun
  if (known.size >= beginningsMax) known.clear()
  known.set(version, begun)
  return begun
}

function beginningOf(text: string | undefined): Preview {
  if (text === undefined) return nothingShown
  // By characters as people count them: half of a surrogate pair is none.
  const characters = text.length > previewMax ? [...text] : undefined
  if (characters === undefined || characters.length <= previewMax) return { text, truncated: false }
  return { text: characters.slice(0, previewMax).join(''), truncated: true }
}

const nothingShown: Preview = { text: '', truncated: false }

/** What is publicly known of an identity. */
export function dealingsView(dealings: Dealings | undefined) {
  const { accepted, rejected, lapsed } = dealings ?? nothing
  const hours = dealings === undefined ? undefined : medianHours(dealings)
  return { accepted, rejected, lapsed, ...(hours === undefined ? {} : { median_hours_to_verdict: hours }) }
}

const nothing = { accepted: 0, rejected: 0, lapsed: 0 }
