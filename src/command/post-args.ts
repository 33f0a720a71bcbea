/** What a post says of itself, as its room decides about it, and the proof of work that this board requires of posts. */

import type { Command } from '../../actors/kernel/fields.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { requestsOfWork } from '../../actors/records/record.ts'
import { proofWanted } from '../../actors/rooms/policy.ts'
import type { PostArgs } from '../../actors/rooms/room.ts'
import { provenBits } from '../format/signing.ts'
import { isGiven } from './check.ts'
import { isOperator } from './dispatch.ts'
import { type HandleCache, resolveHandle } from './live-facts.ts'
import type { CommandRead, Verified } from './verified.ts'

/** The text of a field, or `fallback` where it is not given. */
export function given(value: Command[keyof Command], fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback
}

/** 32 hex of the event that a post is a new version of, or ''. */
export function supersedesOf({ data }: Pick<CommandRead<'post'>, 'data'>): string {
  return data.supersedes ?? ''
}

/** The id of the handle that a post is addressed `to`, or why there is none; undefined: it names no handle. */
export function addresseeOf(to: string, handles: HandleCache): string | Refusal | undefined {
  return to.startsWith('@') ? resolveHandle(handles, to, 'to') : undefined
}

type Found = {
  /** Seconds until its author may make a room again, 0: now. */
  readonly roomWait: number
  /** Identity id of a handle that it is addressed to. */
  readonly to: string | undefined
}

export function postArgs(read: CommandRead<'post'>, { roomWait, to }: Found): PostArgs {
  const { command, data, sha } = read
  return {
    page: given(command.page, ''),
    kind: given(command.kind, ''),
    replyTo: given(command.reply_to, ''),
    supersedes: supersedesOf(read),
    ...(data.format === undefined ? {} : { format: data.format }),
    ...(data.source === undefined ? {} : { isImported: true }),
    ...(to === undefined ? {} : { to }),
    attachments: command.attachments ?? [],
    ttl: command.ttl ?? 0,
    proofBits: provenBits(given(command.proof, ''), sha.toString('hex')),
    ...(roomWait === 0 ? {} : { roomWait }),
  }
}

/** Operations whose text is a post. */
const posting: ReadonlySet<string> = new Set(['post', ...requestsOfWork])

/** Why the proof of this command is not enough, or undefined. */
export function unproven(
  { operation, command, sha, door, signer }: Verified,
  { proofBits, operators }: { readonly proofBits: number; readonly operators: ReadonlySet<string> },
): Refusal | undefined {
  if (proofBits === 0 || !posting.has(operation.name) || !isGiven(command.text)) return undefined
  // The board's own identity, and its operators.
  if (door.via === 'board' || isOperator(signer, operators)) return undefined
  const proof = isGiven(command.proof) ? command.proof : ''
  if (provenBits(proof, sha.toString('hex')) >= proofBits) return undefined
  return refusal('proof_required', proofWanted('this board', proofBits), 'proof')
}
