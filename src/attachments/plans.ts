/**
 * How attachments are stored: the bytes are first written to a file, then their room decides. The record stores the signed bytes without
 * the text of the file (actors/records/record.ts, `Cut`), so the journal never contains it.
 */

import { hash } from 'node:crypto'
import type { BlobFacts } from '../../actors/attachments/attachments.ts'
import type { DeleteArgs, PutArgs } from '../../actors/attachments/decide.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { registryName } from '../../actors/records/record.ts'
import { isGiven } from '../command/check.ts'
import { type Found, idOf, type Plan, type ReadPlans, type Services } from '../command/plan.ts'
import { type Verified, withoutData } from '../command/verified.ts'
import { decodeBase64url } from '../format/signing.ts'
import { type AnswerOf, dataOf, known } from '../reads/read.ts'

/**
 * The media type of an image by its first bytes; undefined if it is not a supported image. Only types that browsers display and that
 * contain no scripts; SVG is a document, so it is excluded.
 */
function imageType(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 16)).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  if (head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP') return 'image/webp'
  if (head.slice(4, 12) === 'ftypavif') return 'image/avif'
  return undefined
}

const defaultRoom = 'lobby'
const defaultName = 'attachment.bin'
const defaultType = 'application/octet-stream'

const put: Plan<'blob.put'> = {
  to: (verified) => ({ actor: roomOf(verified) }),
  ask: takeIn,
  show: (verified, decided, actor) => {
    const id = idOf(verified, decided)
    const { sha256, size, filename, media_type } = decided.facts
    const place = decided.isPublic ? { url: `/a/${id}` } : {}
    const hex = Buffer.from(sha256).toString('hex')
    const { id: author } = verified.signer
    return {
      values: {
        blob: { id, filename, media_type, size, sha256: hex, ...place, room: actor, author, created_at: decided.at },
      },
    }
  },
}

const remove: Plan<'blob.delete'> = {
  to: ({ command }) => ({ thing: command.target, field: 'target' }),
  args: ({ command }): DeleteArgs => ({
    target: command.target,
    reason: command.reason ?? '',
  }),
  onAccepted: (_verified, { facts }, { blobs }, actor) => {
    const { file } = facts
    if (file !== '') blobs.files.drop(actor, file)
  },
  show: (_verified, { facts }) => {
    const { target, reason } = facts
    return { values: { blob: { id: target, gone: 'deleted', ...(reason === '' ? {} : { reason }) } } }
  },
}

const takedown: Plan<'blob.takedown'> = {
  to: () => ({ actor: registryName }),
  args: ({ command, data }) => ({
    target: command.target,
    reason: command.reason,
    isEnd: 'ended' in data && data.ended === true,
  }),
  onAccepted: (_verified, { facts: { target, ended } }, { news }) => news.noteTakedown(target, ended !== true),
  show: (_verified, { facts: { target, reason, ended } }) => ({
    values: { takedown: { sha256: target, reason, ...(ended === true ? { ended } : {}) } },
  }),
}

function takeIn(
  verified: Verified<'blob.put'>,
  { blobs, read, news }: Services,
  pass: (found: Found<PutArgs>) => void,
): void {
  const { command, signer } = verified
  const text = command.data
  const bytes = decodeBase64url(text)
  const fault = faultOf(verified, bytes)
  if (fault !== undefined || bytes === undefined) return pass({ refusal: fault! })
  const filename = isGiven(command.filename) ? command.filename : defaultName
  const mediaType = isGiven(command.media_type) ? command.media_type : defaultType
  const sha256 = hash('sha256', bytes, 'buffer')
  const facts: BlobFacts & { readonly sha256: Buffer } = {
    sha256,
    size: bytes.length,
    filename,
    media_type: mediaType,
    is_image: imageType(bytes) === mediaType.toLowerCase(),
  }
  const by = withoutData(verified, sha256)
  const room = roomOf(verified)
  read({ op: 'blob.usage', args: {}, reader: signer.id }, (found) => {
    if (found === undefined) return pass(undefined)
    if (!found.ok) return pass('refusal' in found ? found : undefined)
    const { bytes: used } = dataOf(found)
    const taken_down = news.takenDown.has(facts.sha256.toString('hex'))
    const args = (over_quota: boolean): PutArgs => ({ ...facts, over_quota, taken_down })
    // The actor is still queried, without a file, so that a retry is answered whatever has happened since.
    if (taken_down) return pass({ args: args(false), by })
    if (blobs.isOver(signer.id, used, bytes.length)) return pass({ args: args(true), by })
    blobs.store({ room, author: signer.id, bytes }, (stored) =>
      'settle' in stored ? pass({ args: args(false), by, settle: stored.settle }) : pass({ refusal: stored }),
    )
  })
}

function faultOf({ command }: Verified, bytes: Buffer | undefined): Refusal | undefined {
  if (bytes === undefined)
    return refusal('invalid_field', 'data must be canonical base64url without padding: the bytes of the file', 'data')
  if (bytes.length > sizes.blob_bytes)
    return refusal('too_large', `the file has ${bytes.length} bytes, ${sizes.blob_bytes} are allowed`, 'data')
  if (/^\.{1,2}$/.test(String(command.filename)))
    return refusal('invalid_field', 'filename must name a file, and . and .. are directories', 'filename')
  // The field's pattern lists the common ones; listing all is more than a pattern for every validator can express.
  if (/\p{Cf}/u.test(String(command.filename)))
    return refusal('invalid_field', 'filename contains an invisible character: leave it out', 'filename')
  return undefined
}

function roomOf({ command }: Verified): string {
  return isGiven(command.room) ? command.room : defaultRoom
}

export const blobsPlans = { 'blob.put': put, 'blob.delete': remove, 'blob.takedown': takedown }

/** An identity's attachments are stored with their rooms. */
export const blobsReadPlans = {
  'blob.usage': {
    gather: (parts: readonly AnswerOf<'blob.usage'>[]) =>
      known({ bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0) }),
    isForSuspended: true,
  },
} satisfies ReadPlans
