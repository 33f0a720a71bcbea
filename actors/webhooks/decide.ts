/** Decisions about hooks: pure functions of the state. That an address answered its challenge was checked earlier. */

import { createHash } from 'node:crypto'
import type { RefusalCode } from '../kernel/refusals.ts'
import type { Parts } from '../records/core.ts'
import { type FactRecord, RecordType } from '../records/record.ts'
import { accept, act, type Deciders, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import type { Hook, HookFacts, RotatedFacts } from './webhooks.ts'

/** Name of the actor that decides all hooks of an identity. */
export const hooksOf = (owner: string) => `@hooks-${owner}`

/** Why it may not be created, found out before the letter was sent. The actor returns it, so that a retry is still a retry. */
type Barred = { readonly barred?: readonly [code: RefusalCode, message: string, field: string, retryAfter: number] }

/** How many hooks one identity may have at a time, subscriptions and plain webhooks together. */
type Limited = { readonly limit: number }

/** `secret` is shown only to the creator, and not recorded. */
type CreateArgs = Omit<HookFacts, 'hook'> & Barred & Limited & { readonly secret: string }
type SubscribeArgs = HookFacts & Limited
/** `publicOnly`: by a delegate without the right to read private rooms. */
type RotateArgs = RotatedFacts & { readonly secret?: string; readonly publicOnly: boolean }
type RedeliverArgs = { readonly hook: string; readonly event: string } & Barred

const create = ({ state, now }: Situation, letter: WriteLetter<CreateArgs>) => {
  const { barred, limit, secret: _, ...facts } = letter.args
  if (barred !== undefined) return refuse(barred[0], barred[1], barred[2], barred[3] === 0 ? undefined : barred[3])
  if (liveOf(state, letter.author, now) >= limit) return refuse('wrong_state', tooMany(limit))
  return act(letter, now, { facts: { hook: Buffer.from(letter.id).toString('hex'), ...facts }, isPublic: false })
}

const rotate = ({ state, now }: Situation, letter: WriteLetter<RotateArgs>) => {
  const { secret: _, publicOnly, ...facts } = letter.args
  const known = ownWebhook(state, letter.author, facts.hook)
  if (known === undefined) return unknown(facts.hook)
  // It would no longer end with the delegate who chose its address or knows its former secret.
  const { delegation = facts.delegation } = known.facts
  if (facts.delegation !== undefined && facts.delegation !== delegation) return refuse('forbidden', ofAnother, 'target')
  // It would deliver nothing private any more.
  if (publicOnly && known.facts.delegation === undefined) return refuse('forbidden', ofReader, 'target')
  return act(letter, now, { facts, isPublic: false })
}

const ofReader =
  'this webhook may deliver from private rooms: a delegation needs the scope board:read to give it a new secret'
const ofAnother =
  'this webhook ends with another delegation: its delegate or the identity itself can give it a new secret'

const remove = ({ state, now }: Situation, letter: WriteLetter<{ hook: string }>) => {
  const { hook } = letter.args
  if (ownWebhook(state, letter.author, hook) === undefined) return unknown(hook)
  return act(letter, now, { facts: { hook }, isPublic: false })
}

const redeliver = ({ state, now }: Situation, letter: WriteLetter<RedeliverArgs>) => {
  const { barred, hook, event } = letter.args
  if (ownWebhook(state, letter.author, hook) === undefined) return unknown(hook)
  if (barred !== undefined) return refuse(barred[0], barred[1], barred[2])
  return act(letter, now, { facts: { hook, event }, isPublic: false })
}

/** Creates a subscription, or renews it. It is unsigned: the caller was identified by a token. */
const subscribe = ({ state, now }: Situation, letter: WriteLetter<SubscribeArgs>) => {
  const { limit, ...facts } = letter.args
  const known = state.hooks.find(facts.hook)
  const isLive = known !== undefined && !hasRunOut(known, now)
  if (!isLive && liveOf(state, letter.author, now) >= limit) return refuse('wrong_state', tooMany(limit))
  // A live one keeps its position; a new one begins at the given position.
  const put = isLive ? { ...facts, marks: known.facts.marks } : facts
  const ended =
    known !== undefined && !isLive ? [planned(letter.to, letter.author, 'hook.end', { hook: facts.hook }, now)] : []
  const records = [...ended, planned(letter.to, letter.author, 'hook.subscribe', put, now)]
  return accept(records, { at: now, refreshed: isLive })
}

const end = ({ state, now }: Situation, letter: WriteLetter<{ hook: string; epoch?: number; wakes?: number }>) => {
  const { hook, epoch, wakes } = letter.args
  const known = state.hooks.find(hook)
  // A later hook with the same id is not meant.
  const isMeant = known?.owner === letter.author && (epoch === undefined || known.epoch === epoch)
  // If it was renewed before the end arrived, it does not end.
  if (!isMeant || (wakes !== undefined && known.wakes !== wakes)) return accept([], { ended: false })
  return accept([planned(letter.to, letter.author, 'hook.end', { hook }, now)], { ended: true })
}

export const hooksDeciders = {
  'webhook.create': create,
  'webhook.rotate': rotate,
  'webhook.delete': remove,
  'webhook.redeliver': redeliver,
  'hook.subscribe': subscribe,
  'hook.end': end,
} satisfies Deciders

const tooMany = (limit: number) =>
  `an identity can have ${limit} webhooks and subscriptions: delete one with webhook.delete, or end one with events/unsubscribe`

export function hasRunOut({ facts }: { readonly facts: Pick<HookFacts, 'expires'> }, now: number): boolean {
  return facts.expires !== 0 && facts.expires <= now
}

function liveOf(state: Parts, owner: string, now: number): number {
  return state.hooks.of(owner).filter((each) => !hasRunOut(each, now)).length
}

function ownWebhook(state: Parts, owner: string, id: string): Hook | undefined {
  const found = state.hooks.find(id)
  return found?.owner === owner && found.facts.form === 'webhook' ? found : undefined
}

function unknown(id: string) {
  return refuse('not_found', `you have no webhook ${id}: webhook.list shows yours`, 'target')
}

/** A record of something unsigned. */
function planned(room: string, owner: string, op: string, facts: { readonly hook: string }, at: number) {
  const key = createHash('sha256').update(`${op} ${facts.hook}:${at}`).digest().subarray(0, 16)
  const record: FactRecord = { type: RecordType.act, room, at, author: Buffer.from(owner, 'hex'), op, facts }
  return { record, key, isPublic: false }
}
