/**
 * Limits that an operator has raised or lifted for an identity or a network, each for a limited time. The registry decides
 * them. They are private, because the network address of a user is personal data.
 */
import { hex } from '../kernel/hex.ts'
import type { Projection, RecordPlace } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

export type LimitGrant = {
  /** 32 hex: event id of its limits.grant. */
  readonly id: string
  /** Identity id, or an address or network in its canonical form. */
  readonly target: string
  /** Multiplies the limits; 0: no limits. */
  readonly factor: number
  readonly reason: string
  /** Identity id of the operator. */
  readonly by: string
  /** Unix seconds. */
  readonly at: number
  readonly expires: number
}

export type GrantFacts = Pick<LimitGrant, 'target' | 'factor' | 'expires' | 'reason'>

export class LimitGrants implements Projection {
  readonly acts: Projection['acts'] = {
    'limits.grant': (act, place) => this.#grant(act, place),
    'limits.revoke': ({ facts }: FactRecord<Pick<GrantFacts, 'target'>>) => {
      this.#byTarget.delete(facts.target)
    },
  }
  /** In the order in which they were granted; one for each target. */
  readonly #byTarget = new Map<string, LimitGrant>()

  /** The grants in force, oldest first. */
  inForce(now: number): LimitGrant[] {
    return [...this.#byTarget.values()].filter(({ expires }) => now < expires)
  }

  find(target: string, now: number): LimitGrant | undefined {
    const found = this.#byTarget.get(target)
    return found !== undefined && now < found.expires ? found : undefined
  }

  pack(): readonly LimitGrant[] {
    return [...this.#byTarget.values()]
  }

  restore(grants: readonly LimitGrant[]): void {
    for (const grant of grants) this.#byTarget.set(grant.target, grant)
  }

  #grant({ author, at, facts }: FactRecord<GrantFacts>, { id }: RecordPlace): void {
    const { target, factor, expires, reason } = facts
    for (const each of this.#byTarget.values()) if (each.expires <= at) this.#byTarget.delete(each.target)
    this.#byTarget.delete(target)
    this.#byTarget.set(target, { id: hex(id), target, factor, reason, by: hex(author), at, expires })
  }
}
