/** Attachments as a client of a board handles them, for tests. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Answer, Fields } from './client.ts'

export type BlobJson = {
  readonly id: string
  readonly filename?: string
  readonly media_type?: string
  readonly size?: number
  readonly sha256?: string
  readonly url?: string
  readonly room?: string
}

/** The blob in an answer; throws with the whole answer if there is none. */
export function blobOf({ data, text }: Answer): BlobJson {
  const { blob } = data as { blob?: BlobJson }
  if (blob === undefined) throw new Error(text)
  return blob
}

export function putFields(bytes: Buffer, more: Record<string, string> = {}): Fields {
  return { operation: 'blob.put', data: bytes.toString('base64url'), ...more }
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Files on disk of one room. */
export function filesOf(directory: string, room: string): string[] {
  const path = join(directory, 'blobs', room)
  return existsSync(path) ? readdirSync(path).sort() : []
}
