/** Secrets that have to be read again: of webhooks, and of receive URLs. Sealed with the board's key, each bound to its owner. */
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

/** Undefined: no key of this board has sealed it for this owner. The key was lost, and the owner has to make another secret. */
export function openSecret(
  cursors: Pick<CursorSealer, 'openKept'>,
  of: SecretOf,
  owner: string,
  sealed: string,
): string | undefined {
  const secret = cursors.openKept(secretList(of, owner), sealed)
  return typeof secret === 'string' ? secret : undefined
}

/** What tells two secrets of hooks apart without giving either away. */
export function secretTag(key: Uint8Array, owner: string, secret: string): string {
  return createHmac('sha256', key).update(`hook-secret\n${owner}\n${secret}`).digest('base64url').slice(0, 22)
}

/** The same of `data` that holds the secret of a receive URL: what a retry is known by, whose bytes are not kept. */
export function secretDataTag(key: Uint8Array, owner: string, data: string): Buffer {
  return createHmac('sha256', key).update(`receiver-data\n${owner}\n${data}`).digest()
}
