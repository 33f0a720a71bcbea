/** Secrets that have to be read again: of webhooks, and of receive URLs. Sealed with the board's key, each bound to its owner. */
import { createHmac } from 'node:crypto'
import type { CursorSealer } from './cursor.ts'

type SecretOf = 'hook' | 'receiver'

const secretList = (of: SecretOf, owner: string) => `${of}-secret:${owner}`

export function sealSecret(cursors: Pick<CursorSealer, 'seal'>, of: SecretOf, owner: string, secret: string): string {
  return cursors.seal(secretList(of, owner), secret)
}

/** Throws where it was not sealed here for this owner. */
export function openSecret(cursors: Pick<CursorSealer, 'open'>, of: SecretOf, owner: string, sealed: string): string {
  const secret = cursors.open(secretList(of, owner), sealed)
  if (typeof secret !== 'string') throw new Error(`a secret of a ${of} was not sealed with this key`)
  return secret
}

/** What tells two secrets of hooks apart without giving either away. */
export function secretTag(key: Uint8Array, owner: string, secret: string): string {
  return createHmac('sha256', key).update(`hook-secret\n${owner}\n${secret}`).digest('base64url').slice(0, 22)
}

/** The same of `data` that holds the secret of a receive URL: what a retry is known by, whose bytes are not kept. */
export function secretDataTag(key: Uint8Array, owner: string, data: string): Buffer {
  return createHmac('sha256', key).update(`receiver-data\n${owner}\n${data}`).digest()
}
