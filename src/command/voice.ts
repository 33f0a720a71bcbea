/**
 * The board's own voice: notices and what receive URLs post, as ordinary signed commands of the board's identity.
 *
 * The nonce is an HMAC over what caused the post, so the same cause gives the same bytes and the same id (a repetition has no
 * second effect), and nobody can guess it.
 */
import { createHmac, sign } from 'node:crypto'
import { boardHandle } from '../../actors/people/handles.ts'
import type { BoardIdentity } from '../board-directory.ts'
import { signingBytes } from '../format/signing.ts'
import type { Door, Respond } from './reply.ts'

export type VoiceOptions = {
  readonly serviceId: string
  readonly identity: BoardIdentity
  /** Executes what was signed here a moment ago, as any other command of the board's identity. */
  readonly execute: (body: Buffer, door: Door, respond: Respond) => void
}

export class Voice {
  readonly #options: VoiceOptions

  constructor(options: VoiceOptions) {
    this.#options = options
  }

  /** `cause` names what it is about, once and for all; `at`: Unix seconds of the cause. */
  say(
    fields: { readonly operation: string } & Readonly<Record<string, string | number | readonly string[]>>,
    { cause, at }: { cause: string; at: number },
    respond: Respond,
  ): void {
    const { serviceId, identity, execute } = this.#options
    const nonce = createHmac('sha256', identity.seed).update(cause).digest('base64url')
    const named = fields.operation === 'post' ? { handle: boardHandle } : {}
    const command = { ...named, ...fields, public_key: identity.publicKey, timestamp: at, nonce }
    const signature = sign(null, signingBytes(serviceId, command), identity.privateKey).toString('base64url')
    execute(Buffer.from(JSON.stringify({ ...command, signature })), { via: 'board', address: '' }, respond)
  }
}
