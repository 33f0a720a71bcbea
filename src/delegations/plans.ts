/** How delegations are created and ended: by the registry, which knows every key that ever acted for another. */

import { scopes as allScopes } from '../../actors/kernel/operation.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { registryName } from '../../actors/records/record.ts'
import { shardOf } from '../../actors/shard.ts'
import type { Delegate } from '../command/delegates.ts'
import { type AnyPlan, type Found, idOf, type Plan, type ReadPlans, type Services } from '../command/plan.ts'
import { type Actors, type NoAnswer, whenDecided } from '../command/ports.ts'
import type { Verified } from '../command/verified.ts'
import { decodeBytes32, decodeBytes64, identityId } from '../format/signing.ts'
import { type AnswerOf, dataOf } from '../reads/read.ts'

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
      // If its answer is lost, only the registry knows whether it was decided.
      pass({ ...found, settle: (answer) => answer === undefined && services.news.delegates.refresh() })
    }),
  onAccepted: ({ command, signer, signature, bytes, sha }, { facts }, { news }) =>
    news.delegates.add({
      id: sha.toString('hex', 0, 16),
      identity: signer.id,
      key: command.target,
      scopes: facts.scopes,
      expires: facts.expires,
      published: false,
      ended: false,
      unread: false,
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
    quiesce(services, services.news.delegates.activeOf(signer.id).filter(isMeant), pass)
  },
  onAccepted: (_verified, { facts }, { news }) => news.delegates.end(facts.id),
  show: (_verified, { facts }) => ({ read: 'delegation.one', args: { id: facts.id } }),
}

/** Blocks delegates whose end is to be decided, and continues when nothing that they sent is in progress. */
function quiesce({ news, soon }: Services, delegates: readonly Delegate[], pass: (found: Found) => void): void {
  const settle = (answer: ShardAnswer | NoAnswer): void => {
    if (answer === undefined) news.delegates.refresh()
    release()
  }
  const release = news.delegates.hold(delegates, () => soon(() => pass({ args: {}, settle })))
}

type Ask = NonNullable<AnyPlan['ask']>

/** The same for all delegates of an identity, before `ask` makes its queries. */
export function quiescing(whose: (verified: Verified) => string, ask: Ask): Ask {
  return (verified, services, pass) =>
    ask(verified, services, (found) => {
      if (found === undefined || 'refusal' in found) return pass(found)
      quiesce(services, services.news.delegates.activeOf(whose(verified)), (quiet) =>
        pass({ ...found, ...(quiet !== undefined && 'settle' in quiet ? { settle: quiet.settle } : {}) } as Found),
      )
    })
}

export const delegationsPlans = { 'delegation.create': create, 'delegation.revoke': revoke }

const atRegistry = { actor: () => registryName }

/** The registry holds the delegations. */
export const delegationsReadPlans = {
  'delegation.list': atRegistry,
  'delegation.one': atRegistry,
  'delegation.known': atRegistry,
} satisfies ReadPlans

/**
 * What the registry knows, for the main thread to store: the state once every earlier request to it has been decided. `op`: the read.
 * `answer` gets undefined if the registry gives no answer now.
 */
export function queryRegistry<Name extends 'delegation.known' | 'limits.known'>(
  actors: Pick<Actors, 'shards' | 'write' | 'readPrivate'>,
  op: Name,
  answer: (found: AnswerOf<Name> | undefined) => void,
): void {
  whenDecided(actors, registryName, (isDecided) => {
    if (!isDecided) return answer(undefined)
    const shard = shardOf(registryName, actors.shards)
    actors.readPrivate(shard, { op, args: {}, reader: '' }, (found) => answer(found?.ok ? dataOf(found) : undefined))
  })
}

/**
 * Checks a key that is to act from now on, for an identity or as it: it must have signed the same bytes, and must never have acted here,
 * since it would lose what it owns as an identity. `target` is the key, `proof` its signature.
 */
export function proveNewKey({ command, bytes }: Verified, services: Services, pass: (found: Found) => void): void {
  const key = decodeBytes32(command.target!)!
  const identity = identityId(key)
  services.verify(decodeBytes64(command.proof!)!, key, bytes, (verdict) => {
    if (verdict === 'overloaded')
      return pass({
        refusal: refusal('overloaded', 'too many signatures are waiting to be checked: try again', undefined, 1),
      })
    if (verdict === 'bad_key')
      return pass({ refusal: refusal('bad_key', 'target is not a canonical, torsion-free Ed25519 key', 'target') })
    if (verdict !== 'good') {
      const message = 'proof must be the signature of the new key (target) over the same bytes that you signed'
      return pass({ refusal: refusal('bad_signature', message, 'proof') })
    }
    // Queried as this identity itself, so that its actions in private rooms count too.
    services.read({ op: 'identity.get', args: { target: identity }, reader: identity }, (found) =>
      pass(found === undefined ? undefined : { args: { identity, used: found.ok } }),
    )
  })
}
