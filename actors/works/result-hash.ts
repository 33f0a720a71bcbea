/**
 * The hash of a result: SHA-256 of its text in UTF-8, then of each attachment in order one LF and the 64 hex of its SHA-256,
 * and nothing after it. A client makes it from what it posted, before it posts it.
 */
import { createHash } from 'node:crypto'
import type { Blobs } from '../attachments/attachments.ts'
import { commandIn, type PostRecord } from '../records/record.ts'

export function resultSha256(text: string, attachments: readonly string[]): string {
  const hash = createHash('sha256').update(text, 'utf8')
  for (const sha256 of attachments) hash.update(`\n${sha256}`, 'latin1')
  return hash.digest('hex')
}

/** Of one version as it was signed; undefined where its text has left the disk. */
export function resultHashOf({ by, blobs: ids = [] }: PostRecord, blobs: Blobs): string | undefined {
  if (by.signed.length === 0) return undefined
  const command = commandIn(by.signed)
  return resultSha256(
    command.text!,
    ids.map((id) => blobs.find(Buffer.from(id).toString('hex'))!.sha256),
  )
}
