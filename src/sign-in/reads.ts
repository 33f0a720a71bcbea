/** What the authorization server reads of what it keeps: one record by its key. Asked by the board alone. */

import { type FactRecord, fromFrame } from '../../actors/records/record.ts'
import type { OauthKeep } from '../../actors/sign-in/records.ts'
import { ok, type ReadAnswer, type ReadContext, type ReadRequest, type Reads } from '../reads/read.ts'

export const oauthReads = { 'oauth.find': find } satisfies Reads

function find(
  { state, frame, now }: ReadContext,
  { args }: ReadRequest,
): ReadAnswer<{ payload?: string; consumed?: number }> {
  const found = state.oauth.find(String(args.key), now())
  if (found === undefined) return ok({})
  const { facts } = fromFrame(frame(0, found.place)) as FactRecord
  const { payload } = facts as OauthKeep
  return ok({ payload, ...(found.consumedAt === 0 ? {} : { consumed: found.consumedAt }) })
}
