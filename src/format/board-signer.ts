/**
 * Signs as the board's own identity: notices and what receive URLs post are ordinary signed commands.
 *
 * The nonce is an HMAC over the cause of the post. The same cause gives the same bytes and the same id, so a repetition
 * has no second effect, and the nonce cannot be guessed.
 */
import { createHmac, hash } from 'node:crypto'
import { boardHandle } from '../../actors/records/handles.ts'
import type { Signed } from '../../actors/records/record.ts'
import { type Signer, signerFromSeed } from './signer.ts'
import { signingBytes } from './signing.ts'

export type Fields = { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
/** The cause, which is unique, and since when it exists (Unix seconds). */
export type Cause = { readonly cause: string; readonly at: number }

/** The board's own public key, and the seed that it is made from. */
type BoardKeys = { readonly publicKey: string; readonly seed: Buffer }

/** Signs with the board's own key. */
export class BoardSigner {
  readonly #serviceId: string
  readonly #identity: BoardKeys
  #signer: Signer | undefined

  constructor({ serviceId, identity }: { readonly serviceId: string; readonly identity: BoardKeys }) {
    this.#serviceId = serviceId
    this.#identity = identity
  }

  /** A command as it is sent to a board. */
  command(fields: Fields, cause: Cause): Buffer {
    const { command, signature } = this.#sign(fields, cause)
    return Buffer.from(JSON.stringify({ ...command, signature: signature.toString('base64url') }))
  }

  #sign(fields: Fields, { cause, at }: Cause) {
    const { seed, publicKey } = this.#identity
    const nonce = createHmac('sha256', seed).update(cause).digest('base64url')
    const named = fields.operation === 'post' ? { handle: boardHandle } : {}
    const command = { ...named, ...fields, public_key: publicKey, timestamp: at, nonce }
    const bytes = signingBytes(this.#serviceId, command)
    this.#signer ??= signerFromSeed(seed)
    return { command, bytes, signature: this.#signer.sign(bytes) }
  }

  /** The same command, as a letter for an actor that posts it. `sha`: of the signing bytes. */
  signed(fields: Fields, cause: Cause): { readonly sha: Buffer; readonly by: Signed } {
    const { bytes, signature } = this.#sign(fields, cause)
    const key = Buffer.from(this.#identity.publicKey, 'base64url')
    return { sha: hash('sha256', bytes, 'buffer'), by: { key, sig: signature, signed: bytes } }
  }
}
