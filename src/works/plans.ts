/** How commands about works and credits are executed (all by the market), and who answers reads on them. */

import { rates, sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { WriteName } from '../../actors/operations.ts'
import { shardOf } from '../../actors/shard.ts'
import { type MarketLimits, marketName, type ReserveArgs, type WorkArgs } from '../../actors/works/market/letters.ts'
import type { Terms } from '../../actors/works/market/work.ts'
import { newRoomFor } from '../command/charging.ts'
import { isGiven } from '../command/check.ts'
import type { Asked, Plan, ReadPlans, Services, Shown } from '../command/plan.ts'
import type { Actors } from '../command/ports.ts'
import type { Verified } from '../command/verified.ts'
import { provenBits } from '../format/signing.ts'
import { dataOf, type ReadAnswer, type ReadRequest, type Take } from '../reads/read.ts'
import { transferView } from './reads.ts'
import { networkMark, widerNetworkMark } from './welcome.ts'

const market = () => ({ actor: marketName })

const show = ({ command }: Verified): Shown => ({ read: 'work.get', args: { event_id: command.event_id! } })

const plan = {
  to: market,
  ask: (verified: Verified<AboutWork>, services: Services, pass: (found: Asked<ReturnType<typeof workArgs>>) => void) =>
    pass({ args: workArgs(verified, services) }),
  show,
}

/** Determines the room of the request, and the reviewer. */
const create: Plan<'work.create'> = {
  to: market,
  check: ({ command }) => requestFault(command),
  ask: (verified, services, pass) => {
    roomOf(verified, services, (room) => {
      if (room === undefined || typeof room !== 'string') return pass(room && { refusal: room })
      reviewerOf(verified, services, (key) => {
        if (key === undefined) return pass(undefined)
        isSeen(room, verified, services, (seen) => {
          if (seen === undefined) return pass(undefined)
          newRoomFor(verified, services, room, (made) => {
            if (made === undefined || 'code' in made) return pass(made && { refusal: made })
            const settle: Asked['settle'] = (answer) => {
              if (answer?.ok !== true || answer.duplicate === true) made.giveBack()
            }
            pass({
              args: reserveArgs(verified, services, room, { reviewerKey: key, seen }),
              settle,
            })
          })
        })
      })
    })
  },
  onLogged: welcomed,
  show: (_verified, { facts }) => ({ read: 'work.get', args: { event_id: String(facts.work) } }),
}

/** A request is a post of its author. */
function welcomed({ signer, source }: Verified, { welcome }: Services): void {
  welcome(signer.id, source.address)
}

function requestFault(command: Verified['command']): Refusal | undefined {
  const event = isGiven(command.event_id)
  if (!event && !isGiven(command.text))
    return refusal(
      'missing_field',
      'work.create needs text (the request itself) or event_id (a request that you posted)',
      'text',
    )
  const extra = event ? (['text', 'room', 'page'] as const).find((name) => isGiven(command[name])) : undefined
  return extra === undefined
    ? undefined
    : refusal('invalid_field', `with event_id the request is already posted: leave ${extra} out`, extra)
}

/** The name of the room; undefined if no answer came. */
function roomOf(verified: Verified, services: Services, then: (room: string | Refusal | undefined) => void): void {
  const { command, signer } = verified
  if (!isGiven(command.event_id)) return then(isGiven(command.room) ? command.room : 'lobby')
  const thing = command.event_id
  services.read({ op: 'locate', args: { thing }, reader: signer.id }, (found) => {
    if (found === undefined) return then(undefined)
    if (!found.ok) return then(refusal('not_found', `there is no event ${thing}`, 'event_id'))
    const { actor } = dataOf(found)
    then(actor.startsWith('@') ? refusal('not_found', `there is no event ${thing}`, 'event_id') : actor)
  })
}

/** Whether a delegate is about to act in public: its delegation must then be in the public log first. */
function isSeen(
  room: string,
  { signer }: Verified,
  services: Services,
  then: (seen: boolean | undefined) => void,
): void {
  if (signer.delegate === undefined) return then(false)
  services.read({ op: 'room.get', args: { room }, reader: '' }, (found) => then(found?.ok))
}

/** Public key of the reviewer; '' if no identity has this id, or none is named. */
function reviewerOf(
  { data, signer }: Verified<'work.create'>,
  services: Services,
  then: (key: string | undefined) => void,
): void {
  const { reviewer } = data
  if (reviewer === undefined || reviewer === signer.id) return then('')
  services.read({ op: 'identity.get', args: { target: reviewer }, reader: signer.id }, (found) => {
    if (found === undefined) return then(undefined)
    then(found.ok ? dataOf(found).identity.public_key : '')
  })
}

export const workPlans = {
  'work.create': create,
  'work.edit': { ...plan, onLogged: welcomed },
  'work.raise': plan,
  'work.cancel': plan,
  'work.claim': plan,
  'work.renew': plan,
  'work.release': plan,
  'work.submit': plan,
  'work.accept': plan,
  'work.revise': plan,
  'work.reject': plan,
  'work.dispute': plan,
  'work.concede': plan,
  'work.reopen': plan,
  'work.rule': plan,
}

const moving: Plan<'credit.transfer' | 'credit.grant'> = {
  to: market,
  // The decider refuses, not the plan, so that a retry of something accepted before the erasure gets its original answer.
  args: ({ command: { target, amount } }, { news }) => ({
    ...{ target, amount, cost: sizes.credit_transfer_cost },
    ...(news.isErased(target) ? { erased: true } : {}),
  }),
  show: (_verified, { facts, at }) => ({
    values: { transfers: (facts.postings ?? []).map((each) => ({ at, ...transferView(each) })) },
  }),
}

export const creditPlans = { 'credit.transfer': moving, 'credit.grant': moving }

const atMarket = { actor: () => marketName }

/** The market holds the credits. */
export const creditReadPlans = {
  'credit.balance': atMarket,
  'credit.history': atMarket,
} satisfies ReadPlans

export const workReads: ReadonlySet<string> = new Set(['work.get', 'work.list', 'work.history'])

/**
 * Reads on works that two shards answer together: the market's shard has the record, and the shard of the private room knows who may read
 * it and how the request begins. The feed alone answers for works of public rooms.
 */
export function readWorks(actors: Actors, request: ReadRequest, answer: Take): void {
  actors.read(request, (found) => {
    if (found === undefined || found.ok || 'refusal' in found) return answer(found)
    roomOfWork(actors, request, (room) => {
      if (typeof room !== 'string') return answer(room ?? found)
      actors.readPrivate(marketShard(actors), request, (part) => {
        if (part === undefined || !part.ok) return answer(part === undefined || 'refusal' in part ? part : found)
        const { query } = request.args
        const args = { room, ...(query === undefined ? {} : { query }) }
        const asked = { ...request, op: 'work.complete', args, found: dataOf(part) } as const
        actors.readPrivate(shardOf(room, actors.shards), asked, answer)
      })
    })
  })
}

function marketShard({ shards }: Actors): number {
  return shardOf(marketName, shards)
}

/** The room that a list names, or that a work is in; undefined if there is none. */
function roomOfWork(actors: Actors, request: ReadRequest, then: (room: string | ReadAnswer | undefined) => void): void {
  if (request.args.room !== undefined) return then(String(request.args.room))
  actors.readPrivate(marketShard(actors), { ...request, op: 'work.where' }, (where) => {
    if (where === undefined || !where.ok) return then(where === undefined || 'absent' in where ? undefined : where)
    then(dataOf(where).room)
  })
}

/** The limits sent to the market with a command, as currently configured. */
function limitsOf({ limitsOn }: Services): MarketLimits {
  const reward = sizes.work_reward_maximum
  return limitsOn
    ? { claims: rates.work_live_claims, holds: rates.work_live_holds, reward }
    : { claims: Number.POSITIVE_INFINITY, holds: Number.POSITIVE_INFINITY, reward }
}

/** With limits off, a worker may reclaim immediately. */
function termsOf({ limitsOn }: Services, reviewWindow: number): Terms {
  return {
    review_window: reviewWindow,
    revision_window: sizes.work_revision_window,
    dispute_window: sizes.work_dispute_window,
    arbitration_window: sizes.work_arbitration_window,
    recovery_window: sizes.work_recovery_window,
    reclaim_cooldown: limitsOn ? sizes.work_reclaim_cooldown : 0,
    claim_margin: sizes.work_claim_margin,
    renewals: sizes.work_renewals,
    revisions: sizes.work_revisions,
    lapses: sizes.work_lapses,
    claim_total: sizes.work_claim_total,
  }
}

/** Commands about an existing work. */
type AboutWork = Exclude<Extract<WriteName, `work.${string}`>, 'work.create'>

/** The keys that `data` of such a command may have. */
type CreateData = { readonly schema?: 1 } & Pick<
  Partial<WorkArgs>,
  'version_id' | 'result_sha256' | 'accept_changed' | 'percent'
>

/** For a command about an existing work. */
function workArgs(
  verified: Verified<AboutWork>,
  services: Services,
): WorkArgs & { readonly fee_basis_points: number; readonly bond_percent: number } {
  const { command } = verified
  const { schema, ...data }: CreateData = verified.data
  const work = command.event_id!
  return {
    work,
    from: fromOf(work, verified, services),
    generation: services.generation,
    amount: command.amount ?? 0,
    reason: isGiven(command.reason) ? command.reason : '',
    ttl: command.ttl ?? sizes.work_claim_default,
    limits: limitsOf(services),
    proof_bits: proofOf(verified),
    fee_basis_points: sizes.work_fee_basis_points,
    bond_percent: sizes.work_bond_percent,
    ...(isGiven(command.target) ? { result: command.target } : {}),
    ...data,
  }
}

/** For `work.create`. */
function reserveArgs(
  verified: Verified<'work.create'>,
  services: Services,
  room: string,
  { reviewerKey, seen }: { readonly reviewerKey: string; readonly seen: boolean },
): ReserveArgs {
  const { command, data, sha } = verified
  const { amount } = command
  const work = isGiven(command.event_id) ? command.event_id : sha.toString('hex', 0, 16)
  return {
    work,
    from: fromOf(work, verified, services),
    generation: services.generation,
    amount,
    fee: Math.floor((amount * sizes.work_fee_basis_points) / 10_000),
    lifetime: sizes.work_deadline_seconds,
    title: data.title,
    capabilities: [...new Set(data.capabilities ?? [])],
    eligibility: data.eligibility ?? 'open',
    simulated: data.simulated ?? false,
    room,
    reviewer: data.reviewer === verified.signer.id ? '' : (data.reviewer ?? ''),
    reviewer_key: reviewerKey,
    seen,
    terms: termsOf(services, data.review_window ?? sizes.work_review_window),
    limits: limitsOf(services),
    proof_bits: proofOf(verified),
  }
}

/** A mark for comparing the networks of a work's requester and worker; it reveals nothing else. */
function fromOf(work: string, { source }: Verified, { secret }: Services): string {
  const purpose = `work ${work}`
  return widerNetworkMark(secret, purpose, source.address) || networkMark(secret, purpose, source.address)
}

function proofOf({ command, sha }: Verified): number {
  return provenBits(isGiven(command.proof) ? command.proof : '', sha.toString('hex'))
}
