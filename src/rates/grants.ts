/**
 * How many times its limits a caller may use, as the main thread has to know for every request: what LIMITS says, and what operators
 * granted. The registry decides and remembers grants; they are read from it at the start, and whenever its answer may be lost.
 */

import { raisedLimits } from '../../actors/kernel/limits.ts'
import { NetworkSet } from '../../actors/kernel/networks.ts'
import type { GrantFacts } from '../../actors/limits/grants.ts'
import type { Clock } from '../clock.ts'
import type { Factors } from './throttle.ts'

export type ToldGrant = Pick<GrantFacts, 'target' | 'factor' | 'expires'>
type Load = (told: (found: readonly ToldGrant[] | undefined) => void) => void

const againMs = 100
const identity = /^[0-9a-f]{64}$/

export class KnownGrants implements Factors {
  readonly #granted = new Map<string, ToldGrant>()
  /** Unix seconds. */
  readonly #now: () => number
  readonly #later: Clock['later']
  #load: Load | undefined
  #identities = new Map<string, number>()
  /** The largest factor first. */
  #networks: (readonly [factor: number, networks: NetworkSet])[] = []
  /** When the next grant ends. */
  #nextEnd = Number.POSITIVE_INFINITY

  constructor({ wallSeconds, later }: Pick<Clock, 'wallSeconds' | 'later'>) {
    this.#now = wallSeconds
    this.#later = later
    this.#arrange()
  }

  /** Reads what the registry has, now and by `refresh`. `load` gives undefined while it has no answer. */
  begin(load: Load): Promise<void> {
    this.#load = load
    return new Promise((resolve) => this.#reload(resolve))
  }

  /** An answer was lost, or the registry was restarted. */
  refresh(): void {
    if (this.#load !== undefined) this.#reload(() => {})
  }

  add(grant: ToldGrant): void {
    this.#granted.set(grant.target, grant)
    this.#arrange()
  }

  end(target: string): void {
    this.#granted.delete(target)
    this.#arrange()
  }

  ofIdentity(id: string): number {
    this.#passTime()
    return this.#identities.get(id) ?? 1
  }

  ofAddress(address: string): number {
    this.#passTime()
    return this.#networks.find(([, networks]) => networks.has(address))?.[0] ?? 1
  }

  #passTime(): void {
    if (this.#nextEnd !== Number.POSITIVE_INFINITY && this.#now() >= this.#nextEnd) this.#arrange()
  }

  #arrange(): void {
    const now = this.#now()
    for (const { target, expires } of this.#granted.values()) if (expires <= now) this.#granted.delete(target)
    const granted = [...this.#granted.values()]
    this.#nextEnd = Math.min(Number.POSITIVE_INFINITY, ...granted.map(({ expires }) => expires))
    const raised = [
      ...raisedLimits.identities,
      ...raisedLimits.networks,
      ...granted.map(({ target, factor }) => [target, factor === 0 ? Number.POSITIVE_INFINITY : factor] as const),
    ]
    const byFactor = new Map<number, string[]>()
    this.#identities = new Map()
    for (const [target, factor] of raised) {
      if (identity.test(target)) this.#identities.set(target, Math.max(factor, this.#identities.get(target) ?? factor))
      else byFactor.set(factor, [...(byFactor.get(factor) ?? []), target])
    }
    this.#networks = [...byFactor]
      .sort(([a], [b]) => b - a)
      .map(([factor, networks]) => [factor, new NetworkSet(networks)])
  }

  #reload(done: () => void): void {
    this.#load!((found) => {
      if (found === undefined) {
        this.#later(() => this.#reload(done), againMs)
        return
      }
      this.#granted.clear()
      for (const grant of found) this.#granted.set(grant.target, grant)
      this.#arrange()
      done()
    })
  }
}
