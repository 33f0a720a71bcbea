/** How delegations are made and ended: by the registry, which knows every key that ever acted for another. */

import { scopes as allScopes } from '../../actors/kernel/operation.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { registryName } from '../../actors/records/record.ts'
import type { Delegate } from '../command/delegates.ts'
import { type AnyPlan, type Found, idOf, type Plan, type ReadPlans, type Services } from '../command/plan.ts'
import type { NoAnswer } from '../command/ports.ts'
import type { Verified } from '../command/verified.ts'
import { proveNewKey } from './new-key.ts'

const create: Plan<'delegation.create'> = {
  to: () => ({ actor: registryName }),
  args: ({ command, data }) => {
    const { scopes, label = '', client_id = '', redirect_host = '' } = data
    return {
      key: command.target,
      scopes: allScopes.filter((scope) => scopes.includes(scope)),
      expires: command.timestamp + command.ttl,
      label,
      clientId: client_id,
      redirectHost: redirect_host,
    }
  },
  ask: (verified, services, pass) =>
    proveNewKey(verified, services, (found) => {
      if (found === undefined || 'refusal' in found) return pass(found)
      // Whether it was decided is known to the registry alone where its answer is lost.
      pass({ ...found, settle: (answer) => answer === undefined && services.news.delegates.refresh() })
    }),
  heard: ({ command, signer, signature, bytes, sha }, { facts }, { news }) =>
    news.delegates.add({
      id: sha.toString('hex', 0, 16),
      identity: signer.id,
      key: command.target,
      scopes: facts.scopes,
      expires: facts.expires,
      published: false,
      ended: false,
      by: signer.text,
      sig: signature.toString('base64url'),
      signed: bytes.toString('base64url'),
    }),
  show: (verified, decided) => ({ read: 'delegation.one', args: { id: idOf(verified, decided) } }),
}

const revoke: Plan<'delegation.revoke'> = {
  to: () => ({ actor: registryName }),
  args: ({ command }) => ({ target: command.target }),
  ask: ({ command, signer }, services, pass) => {
    const { target } = command
    const isMeant = ({ id, key }: Delegate) => id === target || key === target
    quiesce(services, services.news.delegates.liveOf(signer.id).filter(isMeant), pass)
  },
  heard: (_verified, { facts }, { news }) => news.delegates.end(facts.id),
  show: (_verified, { facts }) => ({ read: 'delegation.one', args: { id: facts.id } }),
}

/** Bars delegates whose end is to be decided, and goes on when nothing that they sent is under way. */
export function quiesce({ news, soon }: Services, delegates: readonly Delegate[], pass: (found: Found) => void): void {
  const settle = (answer: ShardAnswer | NoAnswer): void => {
    if (answer === undefined) news.delegates.refresh()
    release()
  }
  const release = news.delegates.hold(delegates, () => soon(() => pass({ args: {}, settle })))
}

type Ask = NonNullable<AnyPlan['ask']>

/** The same for all that an identity has, before what `ask` finds out. */
export function quiescing(whose: (verified: Verified) => string, ask: Ask): Ask {
  return (verified, services, pass) =>
    ask(verified, services, (found) => {
      if (found === undefined || 'refusal' in found) return pass(found)
      quiesce(services, services.news.delegates.liveOf(whose(verified)), (quiet) =>
        pass({ ...found, ...(quiet !== undefined && 'settle' in quiet ? { settle: quiet.settle } : {}) } as Found),
      )
    })
}

export const delegationsPlans = { 'delegation.create': create, 'delegation.revoke': revoke }

const atRegistry = { actor: () => registryName }

/** Delegations lie with the registry. */
export const delegationsReadPlans = {
  'delegation.list': atRegistry,
  'delegation.one': atRegistry,
  'delegation.known': atRegistry,
} satisfies ReadPlans
