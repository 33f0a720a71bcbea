/** Commands of the board's own identity: what receive URLs post, and what screening hides. */

import type { BoardSigner, Cause, Fields } from '../format/board-signer.ts'
import type { Respond } from '../format/reply.ts'
import type { CommandSource } from './reply.ts'

type CommandPath = {
  /** Executes what was signed here a moment ago, as any other command of the board's identity. */
  executeOwn(body: Buffer, door: CommandSource, respond: Respond): void
}

export class BoardAuthor {
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
