/** Reads on blobs: one with its bytes, what the route at /a/ needs, and internal queries of the board. */
import { hash } from 'node:crypto'
import type { Blob } from '../../actors/attachments/attachments.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { mayWrite } from '../../actors/rooms/policy.ts'
import { blobDamage } from '../../storage/blob-files.ts'
import {
  known,
  ok,
  privateRoom,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  refused,
} from '../reads/read.ts'

/** Where the bytes of a public blob are, and how to serve them. */
export type BlobFile = {
  readonly room: string
  readonly sha256: string
  readonly size: number
  readonly filename: string
  readonly media_type: string
  readonly is_image: boolean
}

export const blobsReads = {
  'blob.get': (context, request) =>
    withBlob(context, request, (blob) => {
      const bytes = context.blobFile(blob.room, blob.sha256)
      if (bytes === undefined) throw new Error(`the file ${blob.sha256} of blob ${blob.id} is missing`)
      if (hash('sha256', bytes) !== blob.sha256) throw blobDamage(blob)
      return ok({ blob: blobView(context, blob), data: bytes.toString('base64url') })
    }),
  'blob.file': (context, request) =>
    withBlob(context, request, ({ room, sha256, size, filename, mediaType, isImage }) =>
      known<BlobFile>({ room, sha256, size, filename, media_type: mediaType, is_image: isImage }),
    ),
  'blob.usage': ({ state, visibility }, { reader }) =>
    known({ bytes: visibility === 'private' ? state.blobs.bytesOf(reader) : 0 }),
  'blob.holders': ({ state }, { args }) => known(state.blobs.roomsHolding(String(args.sha256))),
  'blob.needed': ({ state }, { args }) => known([...state.blobs.heldIn(String(args.room))]),
  'blob.rooms': ({ state }) => known(state.blobs.rooms),
} satisfies Reads

function withBlob<Answer extends ReadAnswer>(
  context: ReadContext,
  { args, reader }: ReadRequest,
  read: (blob: Blob) => Answer,
): Answer | ReturnType<typeof refused> {
  const { blobs } = context.state
  const blob = blobs.find(String(args.target))
  const absent = refusal('not_found', `there is no blob ${args.target}`, 'target')
  const room = blob === undefined ? undefined : blobs.roomOf(blob)
  if (blob === undefined || room?.visibility !== context.visibility) return { ok: false, absent }
  if (room.visibility === 'private' && !mayWrite(room, reader)) return privateRoom('target')
  const gone =
    context.state.moderation.takedown(blob.sha256) === undefined
      ? blobs.goneReason(blob, context.now())
      : 'an operator took these bytes down'
  return gone === undefined
    ? read(blob)
    : refused(refusal('not_found', `the file of blob ${blob.id} is no longer served: ${gone}`, 'target'))
}

function blobView({ state }: ReadContext, blob: Blob) {
  const { room, author, at } = blob
  return { ...state.blobs.viewOf(blob.id), room, author, created_at: at }
}
