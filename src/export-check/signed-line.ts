/** The signed bytes of an export line: they must be canonical and have the hash that the line states. */
import { commandId, type SignableCommand, signingBytes } from '../format/signing.ts'

export type Fields = Readonly<Record<string, unknown>>

export type SignatureToCheck = {
  readonly signature: Buffer
  readonly publicKey: Buffer
  readonly message: Buffer
  /** Whose it is, for the error message: "the author's signature". */
  readonly whose: string
}

export type Payload = { readonly command: Fields; readonly serviceId: string; readonly message: Buffer }

/** The signed bytes, which must be canonical and hash to the line's command_sha256. A string says what is wrong. */
export function openPayload(value: Fields): Payload | string {
  if (typeof value.signed_payload !== 'string') return 'there is no signed_payload'
  const message = Buffer.from(value.signed_payload)
  let parsed: Fields
  try {
    parsed = recordOf(JSON.parse(value.signed_payload))
  } catch {
    return 'the signed_payload is not JSON'
  }
  const command = recordOf(parsed.command)
  const serviceId = textOf(parsed.service)
  try {
    // Each command has exactly one encoding; otherwise two readers could interpret the same signed bytes differently.
    if (!signingBytes(serviceId, command as SignableCommand).equals(message)) return notCanonical
  } catch {
    return notCanonical
  }
  const { sha256 } = commandId(message)
  return sha256 === value.command_sha256
    ? { command, serviceId, message }
    : 'command_sha256 is not the hash of the signed bytes'
}

const notCanonical = 'the signed_payload is not in the canonical form of signing bytes'

export function recordOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

/** `data` of a command; without fields if it is not a JSON object. */
export function dataOf({ data }: Fields): Fields {
  try {
    return recordOf(JSON.parse(textOf(data)))
  } catch {
    return {}
  }
}

/** The text, or '' if it is something else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
