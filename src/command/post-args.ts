/** The arguments with which a room decides a post, and the proof of work that this board requires of posts. */

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

/** The text of a field, or `fallback` if it is not given. */
export function given(value: Command[keyof Command], fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback
}

/** Event id (32 hex) of the post that this one replaces, or ''. */
export function supersedesOf({ data }: Pick<CommandRead<'post'>, 'data'>): string {
  return data.supersedes ?? ''
}

/** The identity id of the handle that a post is addressed `to`, or why there is none; undefined if it names no handle. */
export function addresseeOf(to: string, handles: HandleCache): string | Refusal | undefined {
  return to.startsWith('@') ? resolveHandle(handles, to, 'to') : undefined
}

type Found = {
  /** Seconds until its author may create a room again, 0 = now. */
  readonly roomWait: number
  /** Identity id of the handle that the post is addressed to. */
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

/** Why this command's proof of work is insufficient; undefined if it is sufficient. */
export function unproven(
  { operation, command, sha, source, signer }: Verified,
  { proofBits, operators }: { readonly proofBits: number; readonly operators: ReadonlySet<string> },
): Refusal | undefined {
  if (proofBits === 0 || !posting.has(operation.name) || !isGiven(command.text)) return undefined
  // The board's own identity and its operators need no proof.
  if (source.via === 'board' || isOperator(signer, operators)) return undefined
  const proof = isGiven(command.proof) ? command.proof : ''
  if (provenBits(proof, sha.toString('hex')) >= proofBits) return undefined
  return refusal('proof_required', proofWanted('this board', proofBits), 'proof')
}
