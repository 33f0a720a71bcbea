/** The board's own voice: what receive URLs post and what screening hides, as ordinary signed commands of the board's identity. */
import type { BoardIdentity } from '../board-directory.ts'
import { BoardSignature, type Cause, type Fields } from '../format/board-signature.ts'
import type { Door, Respond } from './reply.ts'

export type VoiceOptions = {
  readonly serviceId: string
  readonly identity: BoardIdentity
  /** Executes what was signed here a moment ago, as any other command of the board's identity. */
  readonly execute: (body: Buffer, door: Door, respond: Respond) => void
}

export class Voice {
  readonly #execute: VoiceOptions['execute']
  readonly #signature: BoardSignature

  constructor(options: VoiceOptions) {
    this.#execute = options.execute
    this.#signature = new BoardSignature(options)
  }

  say(fields: Fields, cause: Cause, respond: Respond): void {
    const { command, signature } = this.#signature.sign(fields, cause)
    const body = Buffer.from(JSON.stringify({ ...command, signature: signature.toString('base64url') }))
    this.#execute(body, { via: 'board', address: '' }, respond)
  }
}
