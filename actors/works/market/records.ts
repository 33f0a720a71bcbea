/**
 * The public track record of identities with works: results accepted and rejected, claims and reviews that lapsed, and how long
 * verdicts took. Only public works that are not simulated count. Also who received which credits, so that none is given twice.
 */

import { dayOf } from '../../kernel/day.ts'
import type { RewardFacts, Step, WelcomeFacts } from './letters.ts'
import type { TransitionName } from './table.ts'
import type { Work } from './work.ts'

export type TrackRecord = {
  accepted: number
  rejected: number
  lapsed: number
  /** Tenths of an hour from submission to verdict -> how often. */
  readonly waits: Map<number, number>
}

type PackedTrackRecord = readonly (readonly [
  identity: string,
  accepted: number,
  rejected: number,
  lapsed: number,
  waits: readonly (readonly [number, number])[],
])[]

const accepted: ReadonlySet<TransitionName> = new Set(['accept', 'accept_unconfirmed', 'silence', 'rule_all'])
const rejected: ReadonlySet<TransitionName> = new Set([
  'concede',
  'concede_reopen',
  'undisputed',
  'undisputed_reopen',
  'unruled',
  'rule_none',
])
/** A claim or a revision lapsed. */
const lapsed: ReadonlySet<TransitionName> = new Set(['lapse', 'revision_lapse'])
const verdicts: ReadonlySet<TransitionName> = new Set(['accept', 'accept_unconfirmed', 'revise', 'reject'])
/** A review lapsed. */
const unreviewed: ReadonlySet<TransitionName> = new Set(['silence', 'silence_disputed'])

export class Records {
  readonly asWorker = new Map<string, TrackRecord>()
  readonly asRequester = new Map<string, TrackRecord>()

  /** `before`: the work before this step. */
  note(before: Work, { transition, at }: Step): void {
    if (!before.is_public || before.simulated) return
    const has = (set: ReadonlySet<TransitionName>) => (set.has(transition) ? 1 : 0)
    const wait = verdicts.has(transition) ? Math.round((at - before.submitted_at) / 360) : -1
    const expiredClaim = transition === 'expire' && before.worker !== '' ? 1 : 0
    if (before.worker !== '')
      add(this.asWorker, before.worker, [has(accepted), has(rejected), has(lapsed) + expiredClaim], wait)
    add(this.asRequester, before.requester, [has(accepted), has(rejected), has(unreviewed)], wait)
  }

  /** Whether no result of theirs has been accepted yet. */
  isNewcomer(identity: string): boolean {
    return (this.asWorker.get(identity)?.accepted ?? 0) === 0
  }

  pack(): readonly PackedTrackRecord[] {
    return [this.asWorker, this.asRequester].map((table) =>
      [...table].map(
        ([identity, each]) => [identity, each.accepted, each.rejected, each.lapsed, [...each.waits]] as const,
      ),
    )
  }

  restore(packed: readonly PackedTrackRecord[]): void {
    for (const [n, table] of [this.asWorker, this.asRequester].entries())
      for (const [identity, accepted, rejected, lapsed, waits] of packed[n]!)
        table.set(identity, { accepted, rejected, lapsed, waits: new Map(waits) })
  }
}

function add(
  table: Map<string, TrackRecord>,
  identity: string,
  [accepted, rejected, lapsed]: readonly [number, number, number],
  wait: number,
): void {
  if (accepted + rejected + lapsed === 0 && wait < 0) return
  let found = table.get(identity)
  if (found === undefined) {
    found = { accepted: 0, rejected: 0, lapsed: 0, waits: new Map() }
    table.set(identity, found)
  }
  found.accepted += accepted
  found.rejected += rejected
  found.lapsed += lapsed
  if (wait >= 0) found.waits.set(wait, (found.waits.get(wait) ?? 0) + 1)
}

/** The median of all waits, in hours; undefined if there are none. */
export function medianHours({ waits }: Pick<TrackRecord, 'waits'>): number | undefined {
  const sorted = [...waits].sort(([a], [b]) => a - b)
  const count = sorted.reduce((sum, [, times]) => sum + times, 0)
  let passed = 0
  for (const [tenths, times] of sorted) {
    passed += times
    if (passed * 2 >= count) return tenths / 10
  }
  return undefined
}

export type PackedGiven = readonly [
  welcomed: readonly string[],
  networks: readonly (readonly [string, number])[],
  day: number,
  rewarded: readonly (readonly [string, readonly string[]])[],
  /** Absent if written by a release that counted neither. */
  wider?: PackedDay,
  rewards?: PackedDay,
]
type PackedDay = readonly [day: number, counts: readonly (readonly [string, number])[]]

/** Counts for one UTC day, by name. */
class DayCounts {
  #day = 0
  #counts = new Map<string, number>()

  /** The count on the day of this Unix second. */
  of(name: string, at: number): number {
    return this.#day === dayOf(at) ? (this.#counts.get(name) ?? 0) : 0
  }

  add(names: readonly string[], at: number): void {
    if (this.#day !== dayOf(at)) this.#counts = new Map()
    this.#day = dayOf(at)
    for (const name of names) this.#counts.set(name, this.of(name, at) + 1)
  }

  pack(): PackedDay {
    return [this.#day, [...this.#counts]]
  }

  restore([day, counts]: PackedDay): void {
    this.#day = day
    this.#counts = new Map(counts)
  }
}

/**
 * Who received what: a welcome once per identity, a reward once per subject and reviewer, and the counts of both for the newest
 * day. Networks are counted by keyed hashes: no address is ever stored here.
 */
export class Given {
  readonly welcomed = new Set<string>()
  /** Keyed hashes of networks -> number of welcomes today. */
  networks = new Map<string, number>()
  /** UTC day of the newest welcome. */
  day = 0
  /** Welcomes by enclosing network. */
  readonly wider = new DayCounts()
  /** Subject -> who was rewarded for a review of it. */
  readonly rewarded = new Map<string, string[]>()
  readonly rewards = new DayCounts()

  welcome({ identity, network, wider = '' }: WelcomeFacts, at: number): void {
    const day = dayOf(at)
    if (day !== this.day) this.networks = new Map()
    this.day = day
    this.welcomed.add(identity)
    this.networks.set(network, (this.networks.get(network) ?? 0) + 1)
    if (wider !== '') this.wider.add([wider], at)
  }

  reward({ subject, reviewer, counted = [] }: RewardFacts, at: number): void {
    const reviewers = this.rewarded.get(subject)
    if (reviewers === undefined) this.rewarded.set(subject, [reviewer])
    else reviewers.push(reviewer)
    this.rewards.add(counted, at)
  }

  pack(): PackedGiven {
    const { welcomed, networks, day, rewarded, wider, rewards } = this
    return [[...welcomed], [...networks], day, [...rewarded], wider.pack(), rewards.pack()]
  }

  restore([welcomed, networks, day, rewarded, wider, rewards]: PackedGiven): void {
    for (const each of welcomed) this.welcomed.add(each)
    this.networks = new Map(networks)
    this.day = day
    for (const [subject, reviewers] of rewarded) this.rewarded.set(subject, [...reviewers])
    if (wider !== undefined) this.wider.restore(wider)
    if (rewards !== undefined) this.rewards.restore(rewards)
  }
}
