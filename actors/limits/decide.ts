/** The registry's decisions about raised limits: pure functions of the state; the signer was verified earlier. */

import { act, type Deciders, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import type { GrantFacts } from './grants.ts'

const notOperator = refuse('forbidden', 'only an operator of this board can raise limits')

/** `target` is in canonical form. */
export type GrantArgs = Omit<GrantFacts, 'expires'> & { readonly ttl: number; readonly grantsMax: number }

const grant = ({ state, now }: Situation, letter: WriteLetter<GrantArgs>) => {
  if (!letter.operator) return notOperator
  const { target, factor, reason, ttl, grantsMax } = letter.args
  const inForce = state.limitGrants.inForce(now)
  if (inForce.length >= grantsMax && state.limitGrants.find(target, now) === undefined) {
    const message = `${grantsMax} grants are in force, which is the limit: revoke one, or name a wider network`
    return refuse('quota_exhausted', message, 'target', Math.min(...inForce.map(({ expires }) => expires)) - now)
  }
  const facts: GrantFacts = { target, factor, reason, expires: now + ttl }
  return act(letter, now, { facts, isPublic: false })
}

const revoke = ({ state, now }: Situation, letter: WriteLetter<Pick<GrantArgs, 'target' | 'reason'>>) => {
  if (!letter.operator) return notOperator
  const { target, reason } = letter.args
  if (state.limitGrants.find(target, now) === undefined)
    return refuse('wrong_state', `no grant for ${target} is in force: limits.list shows those in force`, 'target')
  return act(letter, now, { facts: { target, reason }, isPublic: false })
}

export const limitsDeciders = { 'limits.grant': grant, 'limits.revoke': revoke } satisfies Deciders
