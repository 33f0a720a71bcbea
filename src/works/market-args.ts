/** What the market is sent with a command: configuration as it stands, and what the room says of the signer. */

import { rates, sizes } from '../../actors/kernel/limits.ts'
import type { WriteName } from '../../actors/operations.ts'
import { type MarketLimits, marketName, type ReserveArgs, type WorkArgs } from '../../actors/works/market/letters.ts'
import type { Terms } from '../../actors/works/market/work.ts'
import { isGiven } from '../command/check.ts'
import type { Services } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { provenBits } from '../format/proof-of-work.ts'
import { networkMark, widerNetworkMark } from './network-marks.ts'

export const market = () => ({ actor: marketName })

export function limitsOf({ limitsOn }: Services): MarketLimits {
  const reward = sizes.work_reward_maximum
  return limitsOn
    ? { claims: rates.work_live_claims, holds: rates.work_live_holds, reward }
    : { claims: Number.POSITIVE_INFINITY, holds: Number.POSITIVE_INFINITY, reward }
}

/** With limits off a worker may come back at once. */
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
  }
}

/** Commands about a work that is there. */
export type AboutWork = Exclude<Extract<WriteName, `work.${string}`>, 'work.create'>

/** What `data` of one of them may say. */
type Said = { readonly schema?: 1 } & Pick<
  Partial<WorkArgs>,
  'version_id' | 'result_sha256' | 'accept_changed' | 'percent'
>

/** Of a command about a work that is there. */
export function workArgs(
  verified: Verified<AboutWork>,
  services: Services,
): WorkArgs & { readonly fee_basis_points: number; readonly bond_percent: number } {
  const { command } = verified
  const { schema, ...data }: Said = verified.data
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

/** Of `work.create`. */
export function reserveArgs(
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

/** Requester and worker of a work are compared by this, and it reveals nothing else. */
function fromOf(work: string, { door }: Verified, { secret }: Services): string {
  const purpose = `work ${work}`
  return widerNetworkMark(secret, purpose, door.address) || networkMark(secret, purpose, door.address)
}

function proofOf({ command, sha }: Verified): number {
  return provenBits(isGiven(command.proof) ? command.proof : '', sha.toString('hex'))
}
