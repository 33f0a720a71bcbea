/**
 * Bytes as text on the wire: base64url and hex, one text for each value and no other.
 *
 * Node's decoder takes padding, `+/`, spaces and stray bits in the last character, so two
 * texts could name one key. Here a text that is not the one the encoder writes is no text
 * at all (RFC 4648, 3.5 and 5).
 */
import { hash } from 'node:crypto'

/** 258 bits in 43 characters: the last one carries 4 bits of the key and two zeros. */
const key43 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/
/** 516 bits in 86 characters: the last one carries 2 bits of the signature and four zeros. */
const signature86 = /^[A-Za-z0-9_-]{85}[AQgw]$/
const hex32 = /^[0-9a-f]{32}$/
const hex64 = /^[0-9a-f]{64}$/

/** 43 characters to 32 bytes; undefined when the text is not canonical. */
export function decodeBytes32(text: string): Buffer | undefined {
  return key43.test(text) ? Buffer.from(text, 'base64url') : undefined
}

/** 86 characters to 64 bytes; undefined when the text is not canonical. */
export function decodeBytes64(text: string): Buffer | undefined {
  return signature86.test(text) ? Buffer.from(text, 'base64url') : undefined
}

/** Any length, the empty text included; undefined when the text is not canonical. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/** An event id: 32 lowercase hex characters. */
export function isHex32(text: string): boolean {
  return hex32.test(text)
}

/** An identity id or a whole SHA-256: 64 lowercase hex characters. */
export function isHex64(text: string): boolean {
  return hex64.test(text)
}

/** Who a key is: hex SHA-256 of its 32 raw bytes. */
export function identityId(publicKey: Uint8Array): string {
  return hash('sha256', publicKey, 'hex')
}
