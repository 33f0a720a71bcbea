/** Reads on raised limits, which the registry holds: what an operator sees, and what the main thread needs. */

import { raisedLimits } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { LimitGrant } from '../../actors/limits/grants.ts'
import {
  badCursor,
  countedPage,
  known,
  ok,
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

function list(context: ReadContext, request: ReadRequest): ReadAnswer {
  if (request.operator !== true)
    return refused(refusal('forbidden', 'only an operator of this board can list the limits it raised'))
  const all = context.state.limitGrants.inForce(context.now())
  const page = countedPage(context, request, { name: 'limits', all, show: grantView })
  if (page === undefined) return badCursor
  const configured = [...raisedLimits.networks, ...raisedLimits.identities].map(([target, factor]) => ({
    target,
    ...(factor === Number.POSITIVE_INFINITY ? { exempt: true } : { factor }),
  }))
  return ok({ grants: page.views, configured, ...page.paging })
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
