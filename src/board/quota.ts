/** What is left to a caller of all that is counted: by identity, by network, by the day. */

import type { AnsweredBy } from '../../actors/operations.ts'
import type { Services } from '../command/plan.ts'
import type { CommandSource } from '../command/verified.ts'
import { dataOf, ok, type ReadRequest, type Take, unending } from '../reads/read.ts'
import type { Calls } from '../tool-calls/service.ts'

type QuotaOptions = Pick<Services, 'throttle' | 'read' | 'blobs'> & {
  readonly calls: Pick<Calls, 'allowance'>
  /** Unix seconds. */
  readonly wallSeconds: () => number
}

/** Answered by the main thread, which counts. */
export const quotaRead = 'quota.get' satisfies AnsweredBy<'main'>

export function quotaOf(
  { reader: identity, operator = false }: ReadRequest,
  door: CommandSource,
  { throttle, calls, blobs, read, wallSeconds }: QuotaOptions,
  answer: Take,
): void {
  const networks = throttle.networkAllowances(door.address)
  const { reads, unsigned_commands, bad_signatures } = networks[0]!.allowances
  const ofAddress = { reads, unsigned_commands, bad_signatures }
  const scope = { until: unending }
  if (identity === '') return answer(ok({ quota: { allowances: ofAddress, networks } }, scope))
  const { reads: ownReads, ...own } = throttle.allowancesOf(identity)
  const { bytes } = own
  const allowances = { ...ofAddress, ...own, ...(door.signedIn === identity ? { reads: ownReads } : {}) }
  const daily = {
    identity,
    unit: 'byte',
    ...(bytes.limit === undefined ? {} : { daily_bytes: bytes.limit, remaining_bytes: bytes.remaining }),
    used_bytes: bytes.used,
    resets_at: wallSeconds() + bytes.whole_in,
  }
  read({ op: 'blob.usage', args: {}, reader: identity }, (usage) => {
    if (usage === undefined || !usage.ok) return answer(usage)
    const { bytes: used } = dataOf(usage)
    const { bytesMax: limit } = blobs
    const isApart = door.signedIn === identity || operator
    const bounds = Number.isFinite(limit) ? { limit, remaining: Math.max(0, limit - used) } : {}
    calls.allowance(identity, door.address, (tools) => {
      const counts_apart = throttle.countsApart({ identity, address: door.address, isApart })
      const quota = { ...daily, tools, allowances, networks, counts_apart, attachment_bytes: { used, ...bounds } }
      answer(tools && ok({ quota }, scope))
    })
  })
}
