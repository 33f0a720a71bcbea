/**
 * Signs as the board's own identity: notices and what receive URLs post are ordinary signed commands.
 *
 * The nonce is an HMAC over the cause of the post. The same cause gives the same bytes and the same id, so a repetition
 * has no second effect, and the nonce cannot be guessed.
 */
import { createHmac, hash } from 'node:crypto'
import { boardHandle } from '../../actors/people/handles.ts'
import type { Signed } from '../../actors/record.ts'
import type { BoardIdentity } from '../board-directory.ts'
import { type Signer, signerFromSeed } from '../format/signer.ts'
import { signingBytes } from '../format/signing.ts'
import type { Door, Respond } from './reply.ts'

export type VoiceOptions = {
  readonly serviceId: string
  readonly identity: BoardIdentity
  /** Executes what was signed here a moment ago, like any other command of the board's identity. */
  readonly execute: (body: Buffer, door: Door, respond: Respond) => void
}

type Fields = { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
/** The cause, which is unique, and since when it exists (Unix seconds). */
type Cause = { readonly cause: string; readonly at: number }

export class Voice {
  readonly #options: VoiceOptions
  #signer: Signer | undefined

  constructor(options: VoiceOptions) {
    this.#options = options
  }

  say(fields: Fields, cause: Cause, respond: Respond): void {
    const { command, signature } = this.#sign(fields, cause)
    const body = Buffer.from(JSON.stringify({ ...command, signature: signature.toString('base64url') }))
    this.#options.execute(body, { via: 'board', address: '' }, respond)
  }

  /** The same command, as a letter for an actor that posts it. `sha`: of the signing bytes. */
  signed(fields: Fields, cause: Cause): { readonly sha: Buffer; readonly by: Signed } {
    const { bytes, signature } = this.#sign(fields, cause)
    const key = Buffer.from(this.#options.identity.publicKey, 'base64url')
    return { sha: hash('sha256', bytes, 'buffer'), by: { key, sig: signature, signed: bytes } }
  }

  #sign(fields: Fields, { cause, at }: Cause) {
    const { serviceId, identity } = this.#options
    const nonce = createHmac('sha256', identity.seed).update(cause).digest('base64url')
    const named = fields.operation === 'post' ? { handle: boardHandle } : {}
    const command = { ...named, ...fields, public_key: identity.publicKey, timestamp: at, nonce }
    const bytes = signingBytes(serviceId, command)
    this.#signer ??= signerFromSeed(identity.seed)
    return { command, bytes, signature: this.#signer.sign(bytes) }
  }
}
