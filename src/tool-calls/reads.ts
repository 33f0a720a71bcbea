/** Reads that the board itself requests from the actor of calls: the rest of an allowance, the outcome of a call, open calls. */

import { dayEnd } from '../../actors/kernel/day.ts'
import { allowances, rates } from '../../actors/kernel/limits.ts'
import type { Infer } from '../../actors/kernel/schema.ts'
import { ActsOf, commandIn, dataIn, fromFrame } from '../../actors/records/record.ts'
import type { toolsCall } from '../../actors/tool-calls/operations.ts'
import {
  type Address,
  type CallFacts,
  type CallOrigin,
  type DayLimits,
  identityLimits,
  type Mark,
  type Open,
  type PayFacts,
  type SettledFacts,
} from '../../actors/tool-calls/tool-calls.ts'
import { priceOf } from '../money/price.ts'
import { hostFactor } from '../rates/throttle.ts'
import { type KnownAnswer, known, type ReadContext, type ReadRequest, type Reads, readable } from '../reads/read.ts'

/** What is free for each caller, as configured by the operator. */
export const dayLimits: DayLimits = {
  calls: allowances.tool_calls_per_identity_per_day,
  micros: allowances.tool_microdollars_per_identity_per_day,
  boardCalls: allowances.tool_calls_per_board_per_day,
  boardMicros: allowances.tool_microdollars_per_board_per_day,
  widerTimes: rates.ipv6_48_factor,
  hostTimes: hostFactor,
}

export type AllowanceLeft = {
  readonly left: number
  readonly of: number
  readonly resets_at: number
  readonly price_left: string
}

/** `outcome`: JSON text, if there is one. `open`: not known yet. */
export type FoundCall = { readonly allowance: AllowanceLeft; readonly open: boolean; readonly outcome?: string }

/** A call that an earlier run left open. */
export type OpenCall = {
  readonly id: string
  readonly identity: string
  readonly tool: string
  readonly subject: string
  readonly address: Address
  /** `data` of its command. */
  readonly data: Infer<(typeof toolsCall)['data']>
  readonly payment?: PayFacts
}

export const callsReads = {
  'call.outcome': outcome,
  'calls.open': openCalls,
  'calls.mark': mark,
  'calls.completed': completed,
} satisfies Reads

function outcome({ state: { calls }, frame, now }: ReadContext, { args, reader }: ReadRequest): KnownAnswer<FoundCall> {
  const { call = '', network = '', wider, hosted } = args
  const at = calls.day.moment(now())
  const origin: CallOrigin = {
    network: String(network),
    ...(wider === undefined ? {} : { wider: String(wider) }),
    ...(hosted === 1 ? { isHosted: true } : {}),
  }
  const left = calls.day.left({ identity: reader, ...origin }, dayLimits, at)
  const allowance: AllowanceLeft = {
    left: left.calls,
    of: identityLimits(dayLimits).calls,
    resets_at: dayEnd(at),
    price_left: priceOf(left.micros),
  }
  const place = calls.outcome(String(call))
  const kept =
    place === undefined ? {} : { outcome: settled.in(fromFrame(frame(place.shard, place.seq))).facts.outcome }
  return known({ allowance, open: calls.open(String(call)) !== undefined, ...kept })
}

function openCalls(context: ReadContext): KnownAnswer<readonly OpenCall[]> {
  const { state, frame } = context
  const openCall = (open: Open): OpenCall => {
    const act = called.in(fromFrame(frame(open.shard, open.seq)))
    const { tool, subject, address } = act.facts
    const command = commandIn(act.by!.signed)
    const paid =
      open.paid === undefined ? {} : { payment: payments.in(fromFrame(frame(open.shard, open.paid.seq))).facts }
    return {
      id: open.id,
      identity: open.identity,
      tool,
      subject,
      address,
      data: dataIn<typeof toolsCall>(command),
      ...paid,
    }
  }
  // A call that the disk cannot read waits for the next start, without delaying the others.
  return known(state.calls.allOpen().flatMap((open) => readable(context, () => openCall(open)) ?? []))
}

function mark({ state }: ReadContext, { args }: ReadRequest): KnownAnswer<{ mark?: Mark | undefined }> {
  return known({ mark: state.calls.mark(String(args.tool)) })
}

/** Whether the reader has completed a call of this subject; for the board's own tools, by the id of the tool. */
function completed({ state }: ReadContext, { args, reader }: ReadRequest): KnownAnswer<{ completed: boolean }> {
  return known({ completed: state.calls.hasCalled(reader, String(args.subject)) })
}

const called = new ActsOf<CallFacts>('tools.call')
const payments = new ActsOf<PayFacts>('call.pay')
const settled = new ActsOf<SettledFacts>('call.settled')
