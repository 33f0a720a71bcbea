/**
 * Who was given what: a welcome once for an identity, a reward once for a subject and its reviewer, and how many of both on the
 * newest day. Networks are counted by keyed hashes: no address is ever in here.
 */
import { dayOf } from '../../kernel/day.ts'
import type { RewardFacts, WelcomeFacts } from './letters.ts'

export type PackedGiven = readonly [
  welcomed: readonly string[],
  networks: readonly (readonly [string, number])[],
  day: number,
  rewarded: readonly (readonly [string, readonly string[]])[],
  /** Absent: written by a release that counted neither. */
  wider?: PackedDay,
  rewards?: PackedDay,
]
type PackedDay = readonly [day: number, counts: readonly (readonly [string, number])[]]

/** Counts of one UTC day, by what they are counted for. */
export class DayCounts {
  #day = 0
  #counts = new Map<string, number>()

  /** On the day of this Unix second. */
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

export class Given {
  readonly welcomed = new Set<string>()
  /** Keyed hashes of networks -> how many welcomes today. */
  networks = new Map<string, number>()
  /** UTC day of the newest welcome. */
  day = 0
  /** Welcomes by what is above a network. */
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
