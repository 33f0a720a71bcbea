/** Reads on raised limits: what an operator sees of them, and what the front has to know. They lie with the registry. */

import { raisedLimits } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { LimitGrant } from '../../actors/limits/grants.ts'
import {
  badCursor,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
} from '../reads/read.ts'

export const limitsReads = {
  'limits.list': list,
  'limits.known': ({ state, now }) =>
    known(state.limitGrants.inForce(now()).map(({ target, factor, expires }) => ({ target, factor, expires }))),
} satisfies Reads

function list(context: ReadContext, { args, operator }: ReadRequest): ReadAnswer {
  if (operator !== true)
    return refused(refusal('forbidden', 'only an operator of this board can list the limits it raised'))
  const cursor = opened(context, 'limits', args)
  if (cursor === undefined) return badCursor
  const all = context.state.limitGrants.inForce(context.now())
  const from = cursor.from ?? 0
  const to = Math.min(all.length, from + limitOf(args))
  const configured = [...raisedLimits.networks, ...raisedLimits.identities].map(([target, factor]) => ({
    target,
    ...(factor === Number.POSITIVE_INFINITY ? { exempt: true } : { factor }),
  }))
  const next = to < all.length ? to : undefined
  return ok({ grants: all.slice(from, to).map(grantView), configured, ...paging(context, 'limits', next) })
}

export function grantView({ id, target, factor, reason, by, at, expires }: LimitGrant) {
  return {
    id,
    target,
    ...(factor === 0 ? { exempt: true } : { factor }),
    ...(reason === '' ? {} : { reason }),
    granted_by: by,
    created_at: at,
    expires_at: expires,
  }
}
