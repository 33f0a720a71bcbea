/** Secrets that must be readable later, of webhooks and receive URLs: sealed with the board's key, each bound to its owner. */
import { createHmac } from 'node:crypto'
import type { CursorSealer } from './cursor.ts'

type SecretOf = 'hook' | 'receiver'

const secretList = (of: SecretOf, owner: string) => `${of}-secret:${owner}`

export function sealSecret(
  cursors: Pick<CursorSealer, 'sealKept'>,
  of: SecretOf,
  owner: string,
  secret: string,
): string {
  return cursors.sealKept(secretList(of, owner), secret)
}

/** Undefined if no key of this board has sealed it for this owner: the key was lost, and the owner has to create another secret. */
export function openSecret(
  cursors: Pick<CursorSealer, 'openKept'>,
  of: SecretOf,
  owner: string,
  sealed: string,
): string | undefined {
  const secret = cursors.openKept(secretList(of, owner), sealed)
  return typeof secret === 'string' ? secret : undefined
}

/** Distinguishes two webhook secrets without revealing either. */
export function secretTag(key: Uint8Array, owner: string, secret: string): string {
  return createHmac('sha256', key).update(`hook-secret\n${owner}\n${secret}`).digest('base64url').slice(0, 22)
}

/** The same for `data` that holds the secret of a receive URL. It identifies a retry whose bytes are not stored. */
export function secretDataTag(key: Uint8Array, owner: string, data: string): Buffer {
  return createHmac('sha256', key).update(`receiver-data\n${owner}\n${data}`).digest()
}
