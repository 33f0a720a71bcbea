/** What a post says of itself, as its room decides about it. */

import type { Command } from '../../actors/kernel/fields.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { PostArgs } from '../../actors/rooms/room.ts'
import { provenBits } from '../format/proof-of-work.ts'
import type { HandleCache } from './handle-cache.ts'
import type { Verified } from './reply.ts'
import { resolveHandle } from './resolved.ts'

/** The text of a field, or `fallback` where it is not given. */
export function given(value: Command[keyof Command], fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback
}

/** 32 hex of the event that a post is a new version of, or ''. */
export function supersedesOf({ data }: Verified<'post'>): string {
  return data.supersedes ?? ''
}

/** The id of the handle that a post is addressed to, or why there is none; undefined: it names no handle. */
export function addresseeOf({ command }: Verified, handles: HandleCache): string | Refusal | undefined {
  const to = given(command.to, '')
  return to.startsWith('@') ? resolveHandle(handles, to, 'to') : undefined
}

type Found = {
  /** Seconds until its author may make a room again, 0: now. */
  readonly roomWait: number
  /** Identity id of a handle that it is addressed to. */
  readonly to: string | undefined
}

export function postArgs(verified: Verified<'post'>, { roomWait, to }: Found): PostArgs {
  const { command, data, sha } = verified
  return {
    page: given(command.page, ''),
    kind: given(command.kind, ''),
    replyTo: given(command.reply_to, ''),
    supersedes: supersedesOf(verified),
    ...(data.format === undefined ? {} : { format: data.format }),
    ...(to === undefined ? {} : { to }),
    attachments: command.attachments ?? [],
    ttl: command.ttl ?? 0,
    proofBits: provenBits(given(command.proof, ''), sha.toString('hex')),
    ...(roomWait === 0 ? {} : { roomWait }),
  }
}
