/**
 * A post that was read, checked and packed away from the main thread. That one adds what only it knows and passes the rest on as it is;
 * the shard decides the letter, and writes the answer.
 */

import { encodeApart, Packr } from '../../actors/kernel/msgpack.ts'
import type { Utf8 } from '../../actors/kernel/utf8.ts'
import type { Answer, Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import type { PostArgs, PostReply } from '../../actors/rooms/room.ts'
import { newPostJson, type PostPieces, piecesOf } from './new-post.ts'
import { given, postArgs, supersedesOf } from './post-args.ts'
import type { CommandRead, SignedCommand } from './verified.ts'

/** An array, and no object: names would cross with each post. */
export type PostDraft = readonly [
  publicKey: string,
  room: string,
  /** Identity id or `@handle` that it is addressed to, or ''. */
  to: string,
  signedBytes: number,
  requestIds: 0 | 1,
  /** SHA-256 of the signed bytes. */
  sha: Uint8Array,
  /** For the shard. */
  packed: Uint8Array,
]

/** What follows from the signed bytes. */
type Packed = readonly [
  sha: Buffer,
  key: Buffer,
  sig: Buffer,
  signed: Buffer,
  timestamp: number,
  nonce: string,
  requestId: string,
  via: string,
  args: PostArgs,
  publicKey: string,
  ...pieces: readonly [Buffer, Buffer, Buffer, Buffer, Buffer],
]

/** A draft as the main thread sends it on. */
export type DraftLetter = readonly [
  room: string,
  author: string,
  /** Of the author, or ''. */
  handle: string,
  limited: number,
  factor: number,
  rotated: boolean,
  suspended: boolean,
  operator: boolean,
  roomWait: number,
  /** Identity id of the handle that it is addressed to, or ''. */
  addressee: string,
  packed: Uint8Array,
]

/** What the main thread is answered; to a retry, what the room replied the first time. */
export type Posted = {
  /** JSON: the whole answer to the client. */
  readonly body: Uint8Array
  readonly isPublic: boolean
  readonly madeRoom?: true
  /** The room wants to know whether it is an advertisement. */
  readonly screen?: { readonly at: number; readonly isReply: boolean }
}

const codec = new Packr({ useRecords: false, moreTypes: false })

/** Undefined: it needs more of the main thread than a draft says. `proofBits`: those that the board requires of posts. */
export function draftOf(
  read: CommandRead<'post'> & { readonly command: SignedCommand },
  key: Buffer,
  { via, proofBits }: { readonly via: string; readonly proofBits: number },
): PostDraft | undefined {
  const { command, signature, bytes, sha } = read
  const isAlone = given(command.reply_to, '') === '' && supersedesOf(read) === ''
  const room = given(command.room, isAlone ? 'lobby' : '')
  const args = postArgs(read, { roomWait: 0, to: undefined })
  const isPlain = args.supersedes === '' && args.attachments.length === 0 && given(command.handle, '') === ''
  if (room === '' || !isPlain || args.proofBits < proofBits) return undefined
  const requestId = given(command.request_id, '')
  const { public_key, timestamp, nonce } = command
  const [page, author, reply, thread, log] = piecesOf(read, { room, via, signer: { key } })
  const packed: Packed = [
    ...([sha, key, signature, bytes, timestamp, nonce, requestId, via, args, public_key] as const),
    ...([bytesOf(page), bytesOf(author), bytesOf(reply), bytesOf(thread), bytesOf(log)] as const),
  ]
  const to = given(command.to, '')
  return [public_key, room, to, bytes.length, requestId === '' ? 0 : 1, sha, encodeApart(codec, packed)]
}

/** The letter that a shard decides, and what takes its answer: with that of a new post it makes the one to the client, and tells it. */
export function openDraft(
  draft: DraftLetter,
  tell: (answer: ShardAnswer, head: Head | undefined) => void,
): { readonly letter: WriteLetter<PostArgs>; readonly take: Answer<PostReply> } {
  const [to, author, handle, limited, factor, rotated, suspended, operator, roomWait, addressee, packed] = draft
  // From a buffer it gives buffers.
  const opened = codec.unpack(Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength)) as Packed
  const [sha, key, sig, signed, timestamp, nonce, requestId, via, given, publicKey, ...pieces] = opened
  const args = {
    ...given,
    ...(addressee === '' ? {} : { to: addressee }),
    ...(roomWait === 0 ? {} : { roomWait }),
  }
  const letter = {
    ...({ op: 'post', to, id: sha.subarray(0, 16), sha, author, by: { key, sig, signed } } as const),
    ...{ timestamp, nonce, requestId, via, limited, rotated, suspended, operator, args },
    ...(factor === 1 ? {} : { factor }),
  }
  const take: Answer<PostReply> = (answer, head) => {
    if (!answer.ok || answer.duplicate === true) return tell(answer, head)
    const { reply, leaf, change } = answer
    const by = { id: author, public_key: publicKey, ...(handle === '' ? {} : { handle }) }
    const [a, b, c, d, e] = pieces
    const shown: PostPieces = [textOf(a), textOf(b), textOf(c), textOf(d), textOf(e)]
    const body = newPostJson(shown, { sha, author: by, reply, leaf, head, ttl: args.ttl, toId: args.to })
    const posted: Posted = {
      body,
      isPublic: reply.isPublic,
      ...(reply.madeRoom === true ? { madeRoom: true } : {}),
      ...(reply.screen === true ? { screen: { at: reply.at, isReply: reply.replyTo !== '' } } : {}),
    }
    tell({ ok: true, reply: posted, ...(change === undefined ? {} : { change }) }, head)
  }
  return { letter, take }
}

function bytesOf(piece: Utf8): Buffer {
  return Buffer.from(piece, 'latin1')
}

function textOf(piece: Buffer): Utf8 {
  return piece.toString('latin1')
}
