/**
 * The answer to a new post, as JSON text: what was signed is written in pieces as soon as it is known, in whatever thread, and what only
 * its room decides goes between them. The event in it is the one that a read shows (src/reads/event-view.ts), member by member.
 */

import { toUtf8, type Utf8 } from '../../actors/kernel/utf8.ts'
import type { Head } from '../../actors/records/answer.ts'
import { formatOf, kindDefault, type PostReply, sourceOf } from '../../actors/rooms/room.ts'
import { authorJson, quoted } from '../reads/event-json.ts'
import { delegationIn } from '../reads/event-view.ts'
import { given } from './post-args.ts'
import { receiptJson } from './reply.ts'
import { type CommandRead, type Signer, signedBy } from './verified.ts'

/** Parts of an answer, in order: before the page, the author, the event replied to, the thread and the place in the log. */
export type PostPieces = readonly [page: Utf8, author: Utf8, reply: Utf8, thread: Utf8, log: Utf8]

/** What the main thread and the room add. */
type Placed = {
  /** SHA-256 of the signed bytes. */
  readonly sha: Buffer
  readonly author: Parameters<typeof authorJson>[0]
  /** Identity id of the handle that it is addressed to. */
  readonly toId: string | undefined
  /** Seconds that it lives, 0 = forever. */
  readonly ttl: number
  readonly reply: Pick<PostReply, 'page' | 'seq' | 'at' | 'replyTo' | 'thread'>
  readonly leaf: number | undefined
  readonly head: Head | undefined
  /** Why the handle that it asked for was not claimed, or ''. */
  readonly notApplied?: string
}

/** `via`: the interface that it came by. `signer`: what is shown of a delegate. */
export function piecesOf(
  { command, signature, bytes, sha }: CommandRead<'post'>,
  { room, via, signer }: { room: string; via: string; signer: Pick<Signer, 'key' | 'delegate'> },
): PostPieces {
  const id = sha.toString('hex', 0, 16)
  const source = sourceOf(command.data)
  const { delegation } = delegationIn(signedBy({ signer, signature, bytes }))
  const from = source === undefined ? '' : `,"source":${JSON.stringify(source)}`
  const by = delegation === undefined ? '' : `,"delegation":${JSON.stringify(delegation)}`
  const shown = `,"text":${JSON.stringify(command.text)},"format":"${formatOf(undefined, command.data)}"${from}`
  return [
    `{"ok":true,"data":{"event_id":"${id}","event":{"type":"event","event_id":"${id}","room":${quoted(room)},"page":`,
    `,"kind":${quoted(given(command.kind, kindDefault))},"author":`,
    toUtf8(shown),
    command.to === undefined ? '' : `,"to":${quoted(command.to)}`,
    toUtf8(
      `,"hidden":false,"votes":{"up":0,"down":0,"score":0},"via":${JSON.stringify(via)}${by},"signature":"${signature.toString('base64url')}","log":`,
    ),
  ]
}

/** The whole answer. */
export function newPostJson(
  [page, author, reply, thread, log]: PostPieces,
  { sha, author: by, toId, ttl, reply: placed, leaf, head, notApplied = '' }: Placed,
): Buffer {
  const { at, replyTo } = placed
  const parent = replyTo === '' ? '' : `,"reply_to":"${replyTo}"`
  const addressee = toId === undefined ? '' : `,"to_id":"${toId}"`
  const end = ttl === 0 ? '' : `,"expires_at":${at + ttl}`
  const place = leaf === undefined ? '{"state":"none"}' : `{"state":"included","index":${leaf}}`
  const extra = notApplied === '' ? '' : `"handle_not_applied":${JSON.stringify(notApplied)},`
  const receipt = toUtf8(receiptJson(sha.toString('hex'), { at, leaf, head }))
  const text = `${page}${quoted(placed.page)},"seq":${placed.seq}${author}${authorJson(by)}${reply}${parent}${thread}${addressee},"thread":"${placed.thread}","attachments":[],"created_at":${at}${end}${log}${place}},${extra}"receipt":${receipt}}}`
  return Buffer.from(text, 'latin1')
}
