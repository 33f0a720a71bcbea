/** What a post says of itself, as its room decides about it. */
import type { Format } from '../../actors/events/placing.ts'
import type { PostArgs } from '../../actors/rooms/room.ts'
import { provenBits } from '../format/proof-of-work.ts'
import type { Command } from './check.ts'
import type { Verified } from './reply.ts'

/** The text of a field, or `fallback` where it is not given. */
export function given(value: Command[keyof Command], fallback: string): string {
  return typeof value === 'string' && value !== '' ? value : fallback
}

/** 32 hex of the event that a post is a new version of, or ''. */
export function supersedesOf({ data }: Verified): string {
  return (data.supersedes as string | undefined) ?? ''
}

/** `roomWait`: seconds until its author may make a room again, 0: now. */
export function postArgs(verified: Verified, roomWait: number): PostArgs {
  const { command, data, sha } = verified
  return {
    page: given(command.page, ''),
    kind: given(command.kind, ''),
    replyTo: given(command.reply_to, ''),
    supersedes: supersedesOf(verified),
    ...(data.format === undefined ? {} : { format: data.format as Format }),
    attachments: (command.attachments as readonly string[] | undefined) ?? [],
    ttl: (command.ttl as number | undefined) ?? 0,
    proofBits: provenBits(given(command.proof, ''), sha.toString('hex')),
    ...(roomWait === 0 ? {} : { roomWait }),
  }
}
