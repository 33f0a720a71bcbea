/**
 * Decides who may start an export now. An export reads the whole archive, and its reader decides how long that takes: each network may have
 * two at a time, and a limited number of starts per hour. A page of an export (`limit` or `cursor`) is bounded like any other read: it
 * takes a slot, but counts as no start.
 */

import { rates } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Exchange } from '../http/port.ts'
import { fromYou, Places, type Release, streamWaitSeconds } from '../rates/places.ts'
import type { Throttle } from '../rates/throttle.ts'

type ExportGateOptions = {
  readonly throttle: Throttle
  readonly addressOf: (exchange: Exchange) => string
}

/** Lets an export begin, or says why not. The returned function must be called when the export is over. */
export type Enter = (exchange: Exchange, isPage: boolean) => Release | Refusal

export function exportGate({ throttle, addressOf }: ExportGateOptions): Enter {
  const places = new Places({ limit: 'exports_per_network', each: rates.exports_per_network, keeper: throttle })
  return (exchange, isPage) => {
    const source = { address: addressOf(exchange) }
    const leave = places.take(source)
    if (typeof leave === 'string') {
      const message = `${rates.exports_per_network} exports are in progress ${fromYou}: wait for one to finish`
      return refusal('rate_limited', message, undefined, streamWaitSeconds)
    }
    const tooMany = isPage ? undefined : throttle.count('export_starts', source)
    if (tooMany === undefined) return leave
    leave()
    return tooMany
  }
}
