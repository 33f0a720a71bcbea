/** Decisions about calls and their payments: pure functions of the state. Anything that needs the network was found out earlier. */

import { createHash } from 'node:crypto'
import { dayEnd, dayOf } from '../kernel/day.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import { type FactRecord, RecordType } from '../records/record.ts'
import { accept, act, type Deciders, type Refused, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import {
  type CallFacts,
  callsActor,
  type DayLimits,
  originOf,
  type PayFacts,
  type RelayFacts,
  type SettledFacts,
} from './tool-calls.ts'

export type CallArgs = CallFacts & {
  readonly limits: DayLimits
  /** The clock that callers see, Unix seconds: waiting times are relative to it. */
  readonly wall: number
  /** Why it is refused: code, message and field. */
  readonly barred?: readonly [code: RefusalCode, message: string, field?: string]
}

export type PayArgs = PayFacts & {
  readonly limits: DayLimits
  /** What the wallet may sign away in a day. */
  readonly walletMicros: number
}

const call = ({ state, now }: Situation, letter: WriteLetter<CallArgs>) => {
  const { limits, wall, barred, ...facts } = letter.args
  if (barred !== undefined) return refuse(...barred)
  if (facts.own) return act(letter, now, { facts, isPublic: false })
  const left = state.calls.day.left({ identity: letter.author, ...originOf(facts) }, limits, now)
  if (left.calls < 1) return exhausted('the free calls for today are used up', now, wall)
  if (left.micros < facts.micros)
    return exhausted('the rest of the free allowance for today does not cover this tool', now, wall)
  return act(letter, now, { facts, isPublic: false })
}

function exhausted(what: string, now: number, wall: number): Refused {
  const message = `${what}: it resets at midnight UTC, in retry_after seconds`
  return refuse('allowance_exhausted', message, undefined, Math.max(1, dayEnd(now) - wall))
}

/** From here on, the payment may be sent. There is one for each call, forever. */
const pay = ({ state, now }: Situation, letter: WriteLetter<PayArgs>) => {
  const { limits, walletMicros, ...facts } = letter.args
  const open = state.calls.open(facts.call)
  if (open === undefined || open.paid !== undefined) return refuse('conflict', 'this call is settled or paid for')
  if (state.calls.day.wallet(now) + facts.micros > walletMicros) return refuse('quota_exhausted', 'wallet_cap')
  // What was reserved on another day does not count on this one.
  const reserved = dayOf(open.at) === dayOf(now) ? open.micros : 0
  const coverable = state.calls.day.left(open, limits, now).micros + reserved
  if (!facts.isOperators && facts.micros > coverable) return refuse('allowance_exhausted', 'allowance')
  return unsigned(letter, now, 'call.pay', facts)
}

const settle = ({ state, now }: Situation, letter: WriteLetter<SettledFacts>) => {
  const facts = letter.args
  // If it is reported twice, after a crash, the first report counts.
  if (state.calls.open(facts.call) === undefined) return accept([], {})
  return unsigned(letter, now, 'call.settled', facts)
}

const relay = (
  { now }: Situation,
  letter: WriteLetter<
    RelayFacts & {
      barred?: readonly [RefusalCode, string, string]
    }
  >,
) => {
  const { barred, ...facts } = letter.args
  if (!letter.operator)
    return refuse('forbidden', 'only the operator of this board can choose which tools its wallet pays for')
  if (barred !== undefined) return refuse(...barred)
  // The permission is shown with the tool, and the directory follows only what is public.
  return act(letter, now, { facts, isPublic: true })
}

export const callsDeciders = {
  'tools.call': call,
  'call.pay': pay,
  'call.settle': settle,
  'tools.relay': relay,
} satisfies Deciders

/** An unsigned record: its key is derived from its content, so that equal records have equal keys. */
function unsigned(letter: WriteLetter, at: number, op: string, facts: { readonly call: string }) {
  const key = createHash('sha256').update(`${op} ${facts.call}`).digest().subarray(0, 16)
  const author = Buffer.from(letter.author, 'hex')
  const record: FactRecord = { type: RecordType.act, room: callsActor, at, author, op, facts }
  return accept([{ record, key, isPublic: false }], { at })
}
