/**
 * What the board itself says: notices and what receive URLs post, as ordinary signed commands of the board's identity.
 *
 * The nonce is an HMAC over what caused the post, so the same cause gives the same bytes and the same id (a repetition has no
 * second effect), and nobody can guess it.
 */
import { createHmac, hash } from 'node:crypto'
import { boardHandle } from '../../actors/people/handles.ts'
import type { Signed } from '../../actors/record.ts'
import type { BoardIdentity } from '../board-directory.ts'
import { type Signer, signerFromSeed } from '../format/signer.ts'
import { signingBytes } from '../format/signing.ts'
import type { Door, Respond } from './reply.ts'

type Fields = { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>
/** What it is about, once and for all, and since when (Unix seconds). */
type Cause = { readonly cause: string; readonly at: number }

/** Signs with the board's own key. */
export class BoardSigner {
  readonly #serviceId: string
  readonly #identity: BoardIdentity
  #signer: Signer | undefined

  constructor(serviceId: string, identity: BoardIdentity) {
    this.#serviceId = serviceId
    this.#identity = identity
  }

  /** A command as it is sent to a board. */
  command(fields: Fields, cause: Cause): Buffer {
    const { command, signature } = this.#sign(fields, cause)
    return Buffer.from(JSON.stringify({ ...command, signature: signature.toString('base64url') }))
  }

  /** The same words, for a letter that takes them where they are posted. `sha`: of the signing bytes. */
  signed(fields: Fields, cause: Cause): { readonly sha: Buffer; readonly by: Signed } {
    const { bytes, signature } = this.#sign(fields, cause)
    const key = Buffer.from(this.#identity.publicKey, 'base64url')
    return { sha: hash('sha256', bytes, 'buffer'), by: { key, sig: signature, signed: bytes } }
  }

  #sign(fields: Fields, { cause, at }: Cause) {
    const identity = this.#identity
    const nonce = createHmac('sha256', identity.seed).update(cause).digest('base64url')
    const named = fields.operation === 'post' ? { handle: boardHandle } : {}
    const command = { ...named, ...fields, public_key: identity.publicKey, timestamp: at, nonce }
    const bytes = signingBytes(this.#serviceId, command)
    this.#signer ??= signerFromSeed(identity.seed)
    return { command, bytes, signature: this.#signer.sign(bytes) }
  }
}

type CommandPath = {
  /** Executes what was signed here a moment ago, as any other command of the board's identity. */
  executeOwn(body: Buffer, door: Door, respond: Respond): void
}

export class Voice {
  readonly #signer: BoardSigner
  readonly #path: CommandPath

  constructor(signer: BoardSigner, path: CommandPath) {
    this.#signer = signer
    this.#path = path
  }

  say(fields: Fields, cause: Cause, respond: Respond): void {
    this.#path.executeOwn(this.#signer.command(fields, cause), { via: 'board', address: '' }, respond)
  }
}
