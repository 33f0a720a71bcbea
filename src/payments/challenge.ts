/** An MPP challenge, and the credential that answers it (`Authorization: Payment`, base64url of JSON). */
import type { Fields } from './x402.ts'

export type Challenge = {
  readonly id: string
  readonly realm: string
  readonly method: string
  readonly intent: string
  /** base64url, as received. */
  readonly request: string
  readonly expires?: string
  readonly digest?: string
  readonly description?: string
  readonly opaque?: string
  /** Name of the header that takes the credential, if not Authorization. */
  readonly header?: string
}

/** The header that carries a credential. */
export function credential(
  challenge: Challenge,
  payload: Fields,
  source: string,
): readonly [name: string, value: string] {
  const { header = 'Authorization', ...echoed } = challenge
  const json = JSON.stringify({ challenge: echoed, payload, source })
  return [header, `Payment ${Buffer.from(json, 'utf8').toString('base64url')}`]
}
