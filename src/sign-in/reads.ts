/** Reads of the authorization server's stored records: one record by its key. Used only by the board itself. */

import { ActsOf, fromFrame } from '../../actors/records/record.ts'
import type { OauthKeep } from '../../actors/sign-in/records.ts'
import { type KnownAnswer, known, type ReadContext, type ReadRequest, type Reads } from '../reads/read.ts'

export const oauthReads = { 'oauth.find': find } satisfies Reads

const keeps = new ActsOf<OauthKeep>('oauth.keep')

function find(
  { state, frame, now }: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ payload?: string; consumed?: number; token?: string }> {
  const found = state.oauth.find(String(args.key), now())
  if (found === undefined) return known({})
  const { payload } = keeps.in(fromFrame(frame(0, found.place))).facts
  const { consumedAt, token } = found
  return known({
    payload,
    ...(consumedAt === 0 ? {} : { consumed: consumedAt }),
    ...(token === '' ? {} : { token }),
  })
}
