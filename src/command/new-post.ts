/**
 * The answer to a new post, as JSON text. Pieces that depend only on the signed command are written as soon as it is parsed, in whatever
 * thread; what only its room decides goes between them. The event in it equals the one that a read shows (src/reads/event-view.ts), member
 * by member.
 */

import { formatOf, kindDefault, type PostReply, sourceOf } from '../../actors/rooms/room.ts'
import { delegationIn } from '../reads/event-view.ts'
import { given } from './post-args.ts'
import { type CommandRead, type Signer, signedBy } from './verified.ts'

/** Pieces of an answer, in order: up to the page, the author, the event replied to, the thread, and the place in the log. */
export type PostPieces = readonly [page: string, author: string, reply: string, thread: string, log: string]

/** What the main thread and the room add. Strings are JSON, like the pieces. */
type Placed = {
  readonly page: string
  readonly author: string
  /** Identity id of the handle that the post is addressed to. */
  readonly toId: string | undefined
  /** Lifetime in seconds, 0 = forever. */
  readonly ttl: number
  readonly reply: Pick<PostReply, 'seq' | 'at' | 'replyTo' | 'thread'>
  readonly leaf: number | undefined
  readonly receipt: string
  /** Why the requested handle was not claimed, or ''. */
  readonly notApplied?: string
}

/** `via`: the interface it came through. `signer`: what is shown of a delegate. */
export function piecesOf(
  read: Pick<CommandRead<'post'>, 'command' | 'signature' | 'bytes' | 'sha'>,
  { room, via, signer }: { room: string; via: string; signer: Pick<Signer, 'key' | 'delegate'> },
): PostPieces {
  const { text, kind, to, data, signature } = read.command
  const id = read.sha.toString('hex', 0, 16)
  const source = sourceOf(data)
  const from = source === undefined ? '' : `,"source":${JSON.stringify(source)}`
  const { delegation } = signer.delegate === undefined ? {} : delegationIn(signedBy({ ...read, signer }))
  const by = delegation === undefined ? '' : `,"delegation":${JSON.stringify(delegation)}`
  return [
    `{"ok":true,"data":{"event_id":"${id}","event":{"type":"event","event_id":"${id}","room":${nameJson(room)},"page":`,
    `,"kind":${nameJson(given(kind, kindDefault))},"author":`,
    `,"text":${JSON.stringify(text)},"format":"${formatOf(undefined, data)}"${from}`,
    to === undefined ? '' : `,"to":${nameJson(to)}`,
    `,"hidden":false,"votes":{"up":0,"down":0,"score":0},"via":${nameJson(via)}${by},"signature":"${signature}","log":`,
  ]
}

/** A name as JSON. Most names consist of characters that need no escaping. */
export function nameJson(name: string): string {
  return /^[\w.@:-]*$/.test(name) ? `"${name}"` : JSON.stringify(name)
}

/** The whole answer. */
export function newPostJson(
  [page, author, reply, thread, log]: PostPieces,
  { toId, ttl, leaf, notApplied = '', ...placed }: Placed,
): string {
  const { seq, at, replyTo, thread: root } = placed.reply
  const parent = replyTo === '' ? '' : `,"reply_to":"${replyTo}"`
  const addressee = toId === undefined ? '' : `,"to_id":"${toId}"`
  const end = ttl === 0 ? '' : `,"expires_at":${at + ttl}`
  const place = leaf === undefined ? '{"state":"none"}' : `{"state":"included","index":${leaf}}`
  const extra = notApplied === '' ? '' : `"handle_not_applied":${JSON.stringify(notApplied)},`
  return `${page}${placed.page},"seq":${seq}${author}${placed.author}${reply}${parent}${thread}${addressee},"thread":"${root}","attachments":[],"created_at":${at}${end}${log}${place}},${extra}"receipt":${placed.receipt}}}`
}
