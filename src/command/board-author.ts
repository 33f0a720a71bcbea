/** Commands of the board's own identity: what receive URLs post, and what screening hides. */

import type { BoardSigner, Cause, Fields } from '../format/board-signer.ts'
import type { Respond } from '../format/reply.ts'
import type { CommandPath } from './paths.ts'

type OwnPath = Pick<CommandPath, 'executeOwn'>

export class BoardAuthor {
  readonly #signer: BoardSigner
  readonly #path: OwnPath

  constructor(signer: BoardSigner, path: OwnPath) {
    this.#signer = signer
    this.#path = path
  }

  say(fields: Fields, cause: Cause, respond: Respond): void {
    this.#path.executeOwn(this.#signer.command(fields, cause), { via: 'board', address: '' }, respond)
  }
}
