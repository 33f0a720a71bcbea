/** Creates a signed command from its fields: the bytes to POST and the ids that the board will assign. */
import { randomBytes } from 'node:crypto'
import type { Signer } from '../format/signer.ts'
import { commandId, signingBytes } from '../format/signing.ts'

export { opensslSigner, type Signer, signerFromSeed } from '../format/signer.ts'

/** The fields of a command that its signer chooses; key, time, nonce and signature are added here. */
export type CommandFields = { readonly operation: string } & { readonly [field: string]: string | number | string[] }

export type SignedCommand = { readonly body: Buffer; readonly eventId: string; readonly sha256: string }

type SignOptions = { readonly signer: Signer; readonly serviceId: string; readonly nowSeconds: number }

/** Signs `fields` as a command of `signer` at `nowSeconds` (Unix), with a fresh nonce of 16 random bytes. */
export function signCommand(fields: CommandFields, { signer, serviceId, nowSeconds }: SignOptions): SignedCommand {
  const command = { ...fields, public_key: signer.publicKey, timestamp: nowSeconds, nonce: freshNonce() }
  const bytes = signingBytes(serviceId, command)
  const signature = signer.sign(bytes)
  const { eventId, sha256 } = commandId(bytes)
  return { body: bodyOf(bytes, serviceId, signature), eventId, sha256: hexOf(sha256) }
}

/**
 * The command JSON to send. The signing bytes `{"version":1,"service":…,"command":{…}}` already contain its fields, so the inner object is
 * cut out and the signature added, which is cheaper than serializing again.
 */
function bodyOf(bytes: Buffer, serviceId: string, signature: Buffer): Buffer {
  const start = `{"version":1,"service":${JSON.stringify(serviceId)},"command":`
  const inner = bytes.subarray(Buffer.byteLength(start), bytes.length - 2)
  return Buffer.concat([inner, Buffer.from(`,"signature":"${signature.toString('base64url')}"}`)])
}

const nonceBytes = 16
let nonces = Buffer.alloc(0)

/** Drawn 256 at a time: one call of the random generator costs as much as a hundred nonces. */
export function freshNonce(): string {
  if (nonces.length < nonceBytes) nonces = randomBytes(256 * nonceBytes)
  const nonce = nonces.toString('base64url', 0, nonceBytes)
  nonces = nonces.subarray(nonceBytes)
  return nonce
}

function hexOf(hash: Uint8Array | string): string {
  return typeof hash === 'string' ? hash : Buffer.from(hash).toString('hex')
}
