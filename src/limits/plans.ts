/** How raised limits are executed: by the registry, and by the main thread, which counts. */

import { sizes } from '../../actors/kernel/limits.ts'
import { canonicalNetwork } from '../../actors/kernel/networks.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { GrantArgs } from '../../actors/limits/decide.ts'
import { registryName } from '../../actors/records/record.ts'
import { idOf, type Plan, type ReadPlans } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { grantView } from './reads.ts'

const registry = () => ({ actor: registryName })

/** An identity unchanged, an address or network in canonical form; undefined if it is neither. */
function targetOf({ command }: Verified<'limits.grant' | 'limits.revoke'>): string | undefined {
  const target = command.target
  return /^[0-9a-f]{64}$/.test(target) ? target : canonicalNetwork(target)
}

const badTarget = refusal(
  'invalid_field',
  'target must be an identity id of 64 lowercase hex characters, or an address or network such as 192.0.2.0/24',
  'target',
)

const grant: Plan<'limits.grant'> = {
  to: registry,
  check: (verified) => {
    const { factor, exempt } = verified.data
    if (targetOf(verified) === undefined) return badTarget
    if ((factor === undefined) === (exempt === undefined))
      return refusal('invalid_field', 'data must have either "factor" or "exempt":true', 'data')
    return undefined
  },
  args: (verified): GrantArgs => ({
    target: targetOf(verified)!,
    factor: verified.data.factor ?? 0,
    reason: verified.command.reason ?? '',
    ttl: verified.command.ttl,
    grantsMax: sizes.limit_grants,
  }),
  onAccepted: (_verified, { facts }, { news }) => news.grants.add(facts),
  show: (verified, decided) => {
    const { at, facts } = decided
    const grant = { ...facts, id: idOf(verified, decided), by: verified.signer.id, at }
    return { values: { grant: grantView(grant) } }
  },
}

const revoke: Plan<'limits.revoke'> = {
  to: registry,
  check: (verified) => (targetOf(verified) === undefined ? badTarget : undefined),
  args: (verified) => ({ target: targetOf(verified)!, reason: verified.command.reason ?? '' }),
  onAccepted: (_verified, { facts }, { news }) => news.grants.end(facts.target),
  show: (_verified, { facts }) => ({ values: { target: facts.target, revoked: true } }),
}

export const limitsPlans = { 'limits.grant': grant, 'limits.revoke': revoke }

/** The registry holds raised limits. */
export const limitsReadPlans = {
  'limits.list': { actor: () => registryName },
} satisfies ReadPlans
