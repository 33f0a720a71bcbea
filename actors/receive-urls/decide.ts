/** Decisions about receive URLs: pure functions of the state; the signer was verified and the secret hashed earlier. */

import { createHash, timingSafeEqual } from 'node:crypto'
import { sizes } from '../kernel/limits.ts'
import type { RefusalCode } from '../kernel/refusals.ts'
import type { Parts } from '../records/core.ts'
import { type InternalWriteName, internalLetter } from '../records/internal-operations.ts'
import { type FactRecord, RecordType } from '../records/record.ts'
import {
  type ArgsOf,
  accept,
  act,
  type Deciders,
  type ReplyOf,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import { dedupeSeconds, type ItemFacts, type Receiver, type ReceiverFacts } from './receive-urls.ts'

/** Name of the actor that decides all receive URLs of an identity. */
export const receiversOf = (owner: string) => `@in-${owner}`

const tooMany = `an identity can have ${sizes.receivers_per_identity} receive URLs: delete one with receiver.delete`

type CreateArgs = ReceiverFacts & {
  /** Hex SHA-256 of the secret. */
  readonly hash: string
  /** Shown once, to its creator. */
  readonly secret?: string
  /** Why the creator may not have items posted to this room: code and message. */
  readonly barred?: readonly [code: RefusalCode, message: string]
}

/** One delivery: the letter's author is the owner of the receive URL. */
export type DeliverArgs = Omit<ItemFacts, 'item'> & { readonly hash: string }

const create = ({ state, now }: Situation, letter: WriteLetter<CreateArgs>) => {
  const { hash, barred, label, room, dedupe, sealed, allow, post } = letter.args
  if (barred !== undefined) return refuse(...barred, 'room')
  if (state.receivers.of(letter.author).filter(isActive).length >= sizes.receivers_per_identity)
    return refuse('wrong_state', tooMany)
  const receiver = Buffer.from(letter.id).toString('hex')
  return act(letter, now, { facts: { receiver, label, room, dedupe, sealed, allow, post, hash }, isPublic: false })
}

const rotate = (
  { state, now }: Situation,
  letter: WriteLetter<{ receiver: string; hash: string; secret?: string }>,
) => {
  const { receiver, hash } = letter.args
  const found = ownReceiver(state, letter.author, receiver)
  if (found === undefined) return unknown(receiver)
  return act(letter, now, { facts: { receiver, hash }, isPublic: false })
}

const remove = ({ state, now }: Situation, letter: WriteLetter<{ receiver: string }>) => {
  const { receiver } = letter.args
  const found = ownReceiver(state, letter.author, receiver)
  if (found === undefined) return unknown(receiver)
  return act(letter, now, { facts: { receiver }, isPublic: false })
}

/** The URL was valid a moment ago; it may have been rotated or deleted since. */
const deliver = ({ state, now }: Situation, letter: WriteLetter<DeliverArgs>) => {
  const { hash, ...came } = letter.args
  const receiver = ownReceiver(state, letter.author, came.receiver)
  if (receiver === undefined || !opens(receiver, hash)) return refuse('not_found', noSuchReceiveUrl)
  const before = came.dedupe === '' ? undefined : receiver.seen.get(came.dedupe)
  if (before !== undefined && now - before.at < dedupeSeconds)
    return accept([], { item: before.item, bytes: before.bytes, duplicate: true as const })
  const item = receiver.count + 1
  const facts: ItemFacts = { ...came, item }
  return accept([planned(letter.to, letter.author, 'receiver.item', facts, now)], {
    item,
    bytes: came.body.length,
    at: now,
  })
}

/** The board has posted an item, or found that it never will. */
const posted = ({ now }: Situation, letter: WriteLetter<{ receiver: string; item: number }>) => {
  const { receiver, item } = letter.args
  const record = planned(letter.to, letter.author, 'receiver.posted', { receiver, item }, now)
  return accept([record], {})
}

export const receiversDeciders = {
  'receiver.create': create,
  'receiver.rotate': rotate,
  'receiver.delete': remove,
  'receiver.deliver': deliver,
  'receiver.posted': posted,
} satisfies Deciders

/** The answer of a URL that opens nothing: unknown, deleted, or with another secret. */
export const noSuchReceiveUrl = 'there is no receive URL at this address: ask its owner for the current one'

/** A record of something unsigned. */
function planned(
  room: string,
  owner: string,
  op: string,
  facts: { readonly receiver: string; readonly item: number },
  at: number,
) {
  const cause = `${op} ${String(facts.receiver)}:${String(facts.item)}`
  const key = createHash('sha256').update(cause).digest().subarray(0, 16)
  const record: FactRecord = { type: RecordType.act, room, at, author: Buffer.from(owner, 'hex'), op, facts }
  return { record, key, isPublic: false }
}

function isActive({ deletedAt }: Receiver): boolean {
  return deletedAt === 0
}

/** A receive URL that this identity created and has not deleted. */
function ownReceiver(state: Parts, owner: string, id: string): Receiver | undefined {
  const found = state.receivers.find(id)
  return found !== undefined && found.owner === owner && isActive(found) ? found : undefined
}

function unknown(id: string) {
  return refuse('not_found', `you have no receive URL ${id}: receiver.list shows yours`, 'target')
}

const nobody = Buffer.alloc(32)

/** Takes the same time for every secret, and if there is no such receive URL. */
export function opens(receiver: Receiver | undefined, hash: string): boolean {
  const kept = Buffer.from(receiver?.hash ?? '', 'hex')
  const isThere = kept.length === nobody.length
  return timingSafeEqual(isThere ? kept : nobody, Buffer.from(hash, 'hex')) && isThere
}

/** A letter to the actor of an identity's receive URLs. `owner`: identity id. */
export function ownLetter<Name extends InternalWriteName>(
  op: Name,
  owner: string,
  args: ArgsOf<Name>,
): WriteLetter<ArgsOf<Name>, ReplyOf<Name>> {
  return internalLetter(op, receiversOf(owner), owner, args)
}
