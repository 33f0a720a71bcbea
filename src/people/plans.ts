/** How writes on people are executed: all by the registry, which knows every handle, key and suspension. */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { SuspendFacts } from '../../actors/people/people.ts'
import { registryName } from '../../actors/records/record.ts'
import { isOperator } from '../command/dispatch.ts'
import type { AnyPlan, Plan, Shown } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { proveNewKey, quiescing } from '../delegations/plans.ts'

const registry = () => ({ actor: registryName })
const own = ({ signer }: Verified): Shown => ({ read: 'identity.get', args: { target: signer.id } })

const setProfile: Plan<'identity.profile.set'> = {
  to: registry,
  check: ({ data }) => profileFault(data),
  show: own,
}

function profileFault(profile: {
  readonly capabilities?: readonly string[]
  readonly links?: readonly string[]
}): Refusal | undefined {
  const { capabilities = [], links = [] } = profile
  if (new Set(capabilities).size < capabilities.length)
    return refusal('invalid_field', 'capabilities must name each capability once', 'data.capabilities')
  const bad = links.find((link) => !isPlainLink(link))
  return bad === undefined
    ? undefined
    : refusal(
        'invalid_field',
        `links must be http(s) addresses without user or password, but one is "${bad}"`,
        'data.links',
      )
}

function isPlainLink(link: string): boolean {
  if (!URL.canParse(link)) return false
  const { username, password } = new URL(link)
  return username === '' && password === ''
}

const rotate: Plan<'identity.rotate'> = {
  to: registry,
  args: ({ command }) => ({ to: command.target, proof: command.proof }),
  ask: quiescing(({ signer }) => signer.id, proveNewKey),
  onAccepted: ({ command, signer }, _, { news }) =>
    news.noteRotation({ identity: signer.id, from: signer.text, to: command.target }),
  show: own,
}

const refuseBoardIdentity: NonNullable<AnyPlan['ask']> = ({ command }, { boardIdentity }, pass) =>
  pass({ args: { isBoard: command.target === boardIdentity } })

/** Delegates of the target are blocked for a moment, but not if the registry would refuse the signer anyway. */
const stopping: NonNullable<AnyPlan['ask']> = (verified, services, pass) =>
  isOperator(verified.signer, services.operators)
    ? quiescing(({ command }) => command.target!, refuseBoardIdentity)(verified, services, pass)
    : refuseBoardIdentity(verified, services, pass)

function suspension(isSuspended: boolean): Plan<'identity.suspend' | 'identity.unsuspend'> {
  return {
    to: registry,
    args: ({ command, data }) => ({
      target: command.target,
      reason: command.reason ?? '',
      hidesPosts: 'hide_posts' in data && data.hide_posts === true,
    }),
    ask: isSuspended ? stopping : refuseBoardIdentity,
    onAccepted: ({ command }, { facts }, { news }) =>
      news.noteSuspension(command.target, isSuspended, hidesPosts(facts)),
    show: ({ command }, { facts }) => ({
      values: {
        suspension: {
          target: command.target,
          suspended: isSuspended,
          reason: facts.reason,
          ...(hidesPosts(facts) ? { hide_posts: true } : {}),
        },
      },
    }),
  }
}

const erase: Plan<'identity.erase'> = {
  to: registry,
  args: ({ command }) => ({ target: command.target, reason: command.reason }),
  ask: stopping,
  onAccepted: ({ command }, _, { news }) => {
    news.noteSuspension(command.target, true, false)
    news.noteErased(command.target)
  },
  show: (_verified, { facts: { target, reason } }) => ({ values: { erasure: { target, reason } } }),
}

function hidesPosts(facts: SuspendFacts): boolean {
  return facts.hide_posts === true
}

export const peoplePlans = {
  'identity.profile.set': setProfile,
  'identity.rotate': rotate,
  'identity.suspend': suspension(true),
  'identity.unsuspend': suspension(false),
  'identity.erase': erase,
}
