/** How tool calls are executed, and how the operator marks the tools that the wallet pays for. */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { ArgsOf } from '../../actors/records/write.ts'
import { callsActor, type RelayFacts } from '../../actors/tool-calls/tool-calls.ts'
import type { Found, Plan, ReadPlans, Services } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { microsOf, priceOf } from '../money/price.ts'
import { toCalls } from './service.ts'

const call: Plan<'tools.call'> = {
  to: () => toCalls,
  ask: (verified, { calls }, pass) => calls.prepare(verified, pass),
  show: (verified, decided, _actor, isDuplicate, _args, { calls }) => ({
    later: (give) => calls.finish(verified, decided, isDuplicate, give),
  }),
}

const relay: Plan<'tools.relay'> = {
  to: () => toCalls,
  check: ({ data }) => {
    const { relay: on, max_price, payees = [] } = data
    const missing = max_price === undefined ? 'max_price' : payees.length === 0 ? 'payees' : ''
    if (!on || missing === '') return undefined
    const message = 'to relay a tool "max_price" and "payees" in data are needed'
    return refusal('invalid_field', message, `data.${missing}`)
  },
  args: ({ command, data }): RelayFacts => {
    const { relay: on, max_price = '0', payees = [] } = data
    return { tool: command.target, relay: on, micros: microsOf(max_price) ?? 0, payees }
  },
  ask: isListed,
  show: (_verified, { facts }) => {
    const { tool: id, relay: on, micros, payees } = facts
    return { values: { tool: { id, relay: on, ...(on ? { max_price: priceOf(micros), payees } : {}) } } }
  },
}

/** The actor refuses, so that a retry stays a retry. A tool that left the directory can still be unmarked. */
function isListed(
  { command, data }: Verified<'tools.relay'>,
  { read }: Services,
  pass: (found: Found<Partial<ArgsOf<'tools.relay'>>>) => void,
): void {
  const target = command.target
  if (!data.relay) return pass({ args: {} })
  read({ op: 'tools.listing', args: { target }, reader: '' }, (found) => {
    if (found === undefined) return pass(undefined)
    if (found.ok) return pass({ args: {} })
    if ('refusal' in found) return pass({ refusal: found.refusal })
    pass({ args: { barred: ['not_found', `there is no tool ${target} in the directory`, 'target'] } })
  })
}

export const callsPlans = { 'tools.call': call, 'tools.relay': relay }

const atCalls = { actor: () => callsActor }

/** One actor holds everything known about calls. */
export const callsReadPlans = {
  'call.outcome': atCalls,
  'calls.open': atCalls,
  'calls.mark': atCalls,
  'calls.completed': atCalls,
} satisfies ReadPlans
