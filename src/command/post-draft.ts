/**
 * A post that was parsed, checked, and packed off the main thread. The main thread adds what only it knows and forwards the rest unchanged;
 * the shard decides the letter and writes the answer.
 */

import { encodeApart, Packr } from '../../actors/kernel/msgpack.ts'
import { toUtf8, type Utf8 } from '../../actors/kernel/utf8.ts'
import type { Answer, Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import type { PostArgs, PostReply } from '../../actors/rooms/room.ts'
import { authorJson, quoted } from '../reads/event-json.ts'
import type { DraftLetter, PostDraft, Posted, PostedLetter } from './draft-letter.ts'
import { newPostJson, type PostPieces, piecesOf } from './new-post.ts'
import { given, postArgs, supersedesOf } from './post-args.ts'
import { receiptJson } from './reply.ts'
import type { CommandRead, SignedCommand } from './verified.ts'

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

const codec = new Packr({ useRecords: false, moreTypes: false })

/**
 * Undefined if the post needs more of the main thread than a draft says. `proofBits`: the bits of work that the board requires of posts.
 */
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
    ...([Buffer.from(page), Buffer.from(author), Buffer.from(reply), Buffer.from(thread), Buffer.from(log)] as const),
  ]
  const to = given(command.to, '')
  return [public_key, room, to, bytes.length, requestId === '' ? 0 : 1, sha, encodeApart(codec, packed)]
}

/**
 * The letter that a shard decides, and the callback for its answer, which renders the client's answer to a new post and passes it to
 * `tell`.
 */
export function openDraft(
  draft: DraftLetter,
  tell: (answer: ShardAnswer | PostedLetter, head: Head | undefined) => void,
): { readonly letter: WriteLetter<PostArgs>; readonly take: Answer<PostReply> } {
  const [to, author, handle, limited, factor, rotated, suspended, operator, roomWait, addressee, packed] = draft
  // Unpacking a Buffer yields Buffers.
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
    const placed = { page: quoted(reply.page), author: authorJson(by), ttl: args.ttl, toId: args.to, reply, leaf }
    const receipt = toUtf8(receiptJson(sha.toString('hex'), { at: reply.at, leaf, head }))
    const body = bytesOf(newPostJson(shown, { ...placed, receipt }))
    const screen = reply.screen === true ? { at: reply.at, isReply: reply.replyTo !== '' } : undefined
    tell([body, reply.isPublic, change, reply.madeRoom === true, screen], head)
  }
  return { letter, take }
}

/** The answer in the form that the main thread takes. */
export function postedAnswer([body, isPublic, change, madeRoom, screen]: PostedLetter): ShardAnswer<Posted> {
  const reply: Posted = {
    body,
    isPublic,
    ...(madeRoom ? { madeRoom } : {}),
    ...(screen === undefined ? {} : { screen }),
  }
  return { ok: true, reply, ...(change === undefined ? {} : { change }) }
}

function bytesOf(piece: Utf8): Buffer {
  return Buffer.from(piece, 'latin1')
}

function textOf(piece: Buffer): Utf8 {
  return piece.toString('latin1')
}
