/**
 * Signs as the board's own identity.
 *
 * The nonce is an HMAC over what caused the post, so the same cause gives the same bytes and the same id (a repetition has no
 * second effect), and nobody can guess it.
 */
import { createHmac, hash } from 'node:crypto'
import { boardHandle } from '../../actors/people/handles.ts'
import type { Signed } from '../../actors/record.ts'
import type { BoardIdentity } from '../board-directory.ts'
import { type Signer, signerFromSeed } from './signer.ts'
import { signingBytes } from './signing.ts'

export type Fields = { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
/** What it is about, once and for all, and since when (Unix seconds). */
export type Cause = { readonly cause: string; readonly at: number }

export class BoardSignature {
  readonly #serviceId: string
  readonly #identity: BoardIdentity
  #signer: Signer | undefined

  constructor({ serviceId, identity }: { readonly serviceId: string; readonly identity: BoardIdentity }) {
    this.#serviceId = serviceId
    this.#identity = identity
  }

  /** A command, the bytes that are signed, and the signature. */
  sign(fields: Fields, { cause, at }: Cause) {
    const { seed, publicKey } = this.#identity
    const nonce = createHmac('sha256', seed).update(cause).digest('base64url')
    const named = fields.operation === 'post' ? { handle: boardHandle } : {}
    const command = { ...named, ...fields, public_key: publicKey, timestamp: at, nonce }
    const bytes = signingBytes(this.#serviceId, command)
    this.#signer ??= signerFromSeed(seed)
    return { command, bytes, signature: this.#signer.sign(bytes) }
  }

  /** The same words, for a letter that takes them where they are posted. `sha`: of the signing bytes. */
  signed(fields: Fields, cause: Cause): { readonly sha: Buffer; readonly by: Signed } {
    const { bytes, signature } = this.sign(fields, cause)
    const key = Buffer.from(this.#identity.publicKey, 'base64url')
    return { sha: hash('sha256', bytes, 'buffer'), by: { key, sig: signature, signed: bytes } }
  }
}
