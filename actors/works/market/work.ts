/**
 * A work (bounty) as the market stores it: the fields of its record, and what its clocks need. Readers see the record that
 * src/works/reads.ts builds from this.
 */

import type { WorkState } from '../../records/change-kinds.ts'

/** A work in one of these states never changes again, and its credits are settled. */
export const finalStates: ReadonlySet<WorkState> = new Set(['accepted', 'refunded', 'split', 'cancelled', 'expired'])

/** Work in progress: after a backup was restored, its worker must confirm it. */
export const inFlight: ReadonlySet<WorkState> = new Set(['claimed', 'submitted', 'revision'])

export type Eligibility = 'open' | 'first_work'

/** Time and count limits of a work. They are fixed at creation, so a configuration change moves no running clock. */
export type Terms = {
  readonly review_window: number
  readonly revision_window: number
  readonly dispute_window: number
  readonly arbitration_window: number
  readonly recovery_window: number
  readonly reclaim_cooldown: number
  readonly claim_margin: number
  readonly renewals: number
  readonly revisions: number
  readonly lapses: number
  /** Total seconds that claims may hold it without a result; absent if made by a release without this limit. */
  readonly claim_total?: number
}

export type RewardReason = 'accepted' | 'reviewer_silent' | 'ruled' | 'conceded' | 'rejected' | 'cancelled' | 'expired'
type RewardState = 'held' | 'paid' | 'released' | 'split'

/** What the room reported about the result when it was bound, and what happened to it since. */
export type Result = {
  /** 32 hex of the reply that is the result. */
  readonly id: string
  /** Fixed at submission. */
  readonly sha256: string
  /** The current hash. */
  readonly current: string
  /** The worker removed it: they redacted it, or hide it as a moderator. */
  readonly missing: boolean
  /** Its text can be read now. */
  readonly available: boolean
}

/**
 * A former worker of a work: when their cooldown began, how often their claims lapsed, and for how many seconds those claims
 * held the work without a result (absent: an older release wrote it).
 */
export type Left = { readonly at: number; readonly lapses: number; readonly held?: number }

/** How many of them a work remembers by name. */
export const formerWorkersMax = 64

/** The total hold time of the others is stored under this name, which no identity has. */
const others = ''

/** Everything that a transition may change. `''`, 0 and null: none. */
export type Changing = {
  state: WorkState
  /** Recovery epoch in which it was last written. */
  generation: string
  amount: number
  fee: number
  /** Current fence; 0 while no one holds the work. */
  fence: number
  /** Number of the newest fence; never decreases. */
  fence_counter: number
  /** Identity id. */
  worker: string
  /** Its public key, 43 characters. */
  worker_key: string
  claimed_at: number
  claim_expires_at: number
  renewals: number
  /** The version of the request that the worker has claimed. */
  pinned: string
  result: Result | null
  submitted_at: number
  review_due: number
  revisions: number
  dispute_due: number
  arbitration_due: number
  /** The requester wants it to be open again if the worker does not dispute. */
  reopen: boolean
  /** Version of the request (32 hex), and how many there are. */
  version: string
  versions: number
  /** Id (32 hex) of a work.edit that the room has not answered yet. */
  editing: string
  /** Transfer that holds the reward and the fee, and the one that holds the worker's bond. */
  hold: string
  bond: string
  bond_amount: number
  reward_state: RewardState
  reward_reason: RewardReason | ''
  /** The worker's share in percent, if there was a ruling. */
  percent: number
  settled_at: number
  /** By worker. Those no longer remembered by name are counted under `''`. */
  left: Readonly<Record<string, Left>>
  /** Number of the newest message from the room about the marked events. */
  observed: number
}

/** What is fixed when a work is created. */
export type Fixed = {
  /** 32 hex: the event id of its request. */
  readonly id: string
  readonly room: string
  readonly is_public: boolean
  readonly title: string
  readonly capabilities: readonly string[]
  readonly simulated: boolean
  readonly eligibility: Eligibility
  /** Identity ids and public keys. */
  readonly requester: string
  readonly requester_key: string
  readonly reviewer: string
  readonly reviewer_key: string
  readonly terms: Terms
  readonly created_at: number
  readonly deadline: number
  readonly held_at: number
}

export interface Work extends Fixed, Changing {
  updated_at: number
  /** Transitions so far; the place of each in the deciding journal. */
  steps: number
  readonly shard: number
  readonly places: number[]
}

/** No identity holds it, and there is no result. */
export const unheld = {
  worker: '',
  worker_key: '',
  claimed_at: 0,
  claim_expires_at: 0,
  renewals: 0,
  pinned: '',
  result: null,
  submitted_at: 0,
} as const

/** The initial state of a work. */
export function initialState(version: string, generation: string, amount: number, fee: number, hold: string): Changing {
  return {
    state: 'open',
    generation,
    amount,
    fee,
    fence: 0,
    fence_counter: 0,
    ...unheld,
    review_due: 0,
    revisions: 0,
    dispute_due: 0,
    arbitration_due: 0,
    reopen: false,
    version,
    versions: 1,
    editing: '',
    hold,
    bond: '',
    bond_amount: 0,
    reward_state: 'held',
    reward_reason: '',
    percent: 0,
    settled_at: 0,
    left: {},
    observed: 0,
  }
}

/** Seconds for which claims may still hold it without a result; if it is claimed, counted from the time of the claim. */
export function claimSecondsLeft({ terms: { claim_total }, left }: Pick<Work, 'terms' | 'left'>): number {
  if (claim_total === undefined) return Number.POSITIVE_INFINITY
  return Math.max(0, claim_total - Object.values(left).reduce((sum, { held = 0 }) => sum + held, 0))
}

/**
 * Former workers, including this one. Keys are free, and each act about a work writes the whole list, so above the limit the
 * cooldowns of those who left first are forgotten. Workers whose claims lapsed are forgotten last, and their hold times never.
 */
export function withFormer(left: Work['left'], worker: string, now: Left): Work['left'] {
  const { [others]: rest = { at: 0, lapses: 0 }, ...named } = { ...left, [worker]: now }
  const excess = Object.keys(named).length - formerWorkersMax
  if (excess <= 0) return { ...left, [worker]: now }
  const forgotten = Object.entries(named)
    .filter(([each]) => each !== worker)
    .sort(([, a], [, b]) => a.lapses - b.lapses || a.at - b.at)
    .slice(0, excess)
  for (const [each] of forgotten) delete named[each]
  const held = forgotten.reduce((sum, [, each]) => sum + (each.held ?? 0), rest.held ?? 0)
  return { ...named, [others]: { ...rest, held } }
}

/** Whether the result is still as submitted: not changed or removed by its worker. */
export function isIntact({ result }: Pick<Work, 'result'>): boolean {
  return result !== null && !result.missing && result.current === result.sha256
}

/** The identities that are parties to a work. */
export function partiesOf({ requester, reviewer, worker }: Work): readonly string[] {
  return [...new Set(worker === '' ? [requester, reviewer] : [requester, reviewer, worker])]
}

/** Every field of a work, in the order used in snapshots. */
export const workKeys = [
  'id',
  'room',
  'is_public',
  'title',
  'capabilities',
  'simulated',
  'eligibility',
  'requester',
  'requester_key',
  'reviewer',
  'reviewer_key',
  'terms',
  'created_at',
  'deadline',
  'held_at',
  'updated_at',
  'steps',
  'shard',
  'places',
  ...(Object.keys(initialState('', '', 0, 0, '')) as (keyof Changing)[]),
] as const satisfies readonly (keyof Work)[]
