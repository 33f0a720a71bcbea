/**
 * An event that a delegate signed: the delegation beside it must name the delegate, cover what was done, and hold at the time.
 * Whether its signer is the author is asked by the caller, who knows of rotations; whether it had ended, by the whole file.
 */

import { operationByName } from '../../actors/operations.ts'
import { decodeBytes32, decodeBytes64 } from '../format/encoding.ts'
import { commandId } from '../format/signing.ts'
import { type Fields, openPayload, type Payload, recordOf, type SignatureToCheck, textOf } from './signed-line.ts'

/** Clocks of signers may be this far off. */
const windowSeconds = 300

type OpenedDelegation = {
  readonly id: string
  /** The identity's own key. */
  readonly publicKey: string
  readonly key: Buffer
  readonly signature: SignatureToCheck
}

/** A text says what is wrong. */
export function openDelegation(event: Fields, { command, serviceId }: Payload): OpenedDelegation | string {
  const given = recordOf(event.delegation)
  const text = textOf(given.signed_payload)
  const { sha256 } = commandId(Buffer.from(text))
  const opened = openPayload({ signed_payload: text, command_sha256: sha256 })
  if (typeof opened === 'string') return `of the delegation, ${opened}`
  const { command: made, message } = opened
  if (made.operation !== 'delegation.create') return 'the signed bytes of the delegation are for another operation'
  if (opened.serviceId !== serviceId) return 'the delegation belongs to another board'
  if (given.id !== sha256.slice(0, 32)) return 'the delegation’s id is not the hash of its signed bytes'
  if (made.target !== command.public_key) return 'the delegation is for another key than the one that signed'
  const { scopes } = dataOf(made)
  const scope = operationByName.get(String(command.operation))?.scope
  if (scope === undefined || !Array.isArray(scopes) || !scopes.includes(scope))
    return `the delegation does not cover ${String(command.operation)}`
  const from = Number(made.timestamp)
  const at = Number(event.created_at)
  if (!(at >= from - windowSeconds)) return 'the delegation was made after the event'
  if (!(at < from + Number(made.ttl))) return 'the delegation had expired before the event'
  const publicKey = textOf(made.public_key)
  const key = decodeBytes32(publicKey)
  const signature = decodeBytes64(textOf(given.signature))
  if (key === undefined || signature === undefined) return 'key or signature of the delegation is not base64url'
  const whose = 'the identity’s signature over the delegation'
  return { id: String(given.id), publicKey, key, signature: { signature, publicKey: key, message, whose } }
}

function dataOf({ data }: Fields): Fields {
  try {
    return recordOf(JSON.parse(String(data)))
  } catch {
    return {}
  }
}
