/**
 * A post that was read, checked and packed away from the main thread: its letter and its answer are made but for what only the main
 * thread knows, which passes both on as they are.
 */

import { encodeApart, Packr } from '../../actors/kernel/msgpack.ts'
import type { PostArgs } from '../../actors/rooms/room.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { type PostPieces, piecesOf } from './new-post.ts'
import { given, postArgs, supersedesOf } from './post-args.ts'
import type { CommandRead } from './verified.ts'

/** An array, and no object: its names need not cross with each post. */
export type PostDraft = readonly [
  publicKey: string,
  room: string,
  /** Identity id or `@handle` that it is addressed to, or ''. */
  to: string,
  ttl: number,
  signedBytes: number,
  requestIds: 0 | 1,
  /** SHA-256 of the signed bytes. */
  sha: Uint8Array,
  /** For the shard. */
  packed: Uint8Array,
  ...PostPieces,
]

/** What of a letter follows from the signed bytes. */
type Packed = readonly [
  sha: Uint8Array,
  key: Uint8Array,
  sig: Uint8Array,
  signed: Uint8Array,
  timestamp: number,
  nonce: string,
  requestId: string,
  via: string,
  args: PostArgs,
]

/** The letter of a draft as the main thread sends it. */
export type DraftLetter = Pick<WriteLetter, 'to' | 'author' | 'limited' | 'factor' | 'rotated' | 'suspended' | 'operator'> & {
  readonly packed: Uint8Array
  readonly roomWait: number
  /** Identity id of the handle that it is addressed to, or ''. */
  readonly addressee: string
}

const codec = new Packr({ useRecords: false, moreTypes: false })

/** Undefined: it needs more of the main thread than a draft says. `proofBits`: those that the board requires of posts. */
export function draftOf(
  read: CommandRead<'post'>,
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
  const { timestamp, nonce } = command
  const packed: Packed = [sha, key, signature, bytes, timestamp, nonce, requestId, via, args]
  return [
    command.public_key,
    room,
    given(command.to, ''),
    args.ttl,
    bytes.length,
    requestId === '' ? 0 : 1,
    sha,
    encodeApart(codec, packed),
    ...piecesOf(read, { room, via, signer: { key } }),
  ]
}

/** The letter that a shard decides. */
export function letterOf({ packed, roomWait, addressee, ...told }: DraftLetter): WriteLetter<PostArgs> {
  const [sha, key, sig, signed, timestamp, nonce, requestId, via, args] = codec.unpack(packed) as Packed
  return {
    op: 'post',
    ...told,
    id: sha.subarray(0, 16),
    sha,
    by: { key, sig, signed },
    timestamp,
    nonce,
    requestId,
    via,
    args: {
      ...args,
      ...(addressee === '' ? {} : { to: addressee }),
      ...(roomWait === 0 ? {} : { roomWait }),
    },
  }
}
