/** Attachments: which there are, whose, and in which room. */

import type { Core } from '../core.ts'
import type { Part } from '../part.ts'

export class Blobs implements Part {
  readonly acts: Part['acts'] = {}
  readonly #core: Core

  constructor(core: Core) {
    this.#core = core
  }

  pack(): unknown {
    return null
  }

  restore(_packed: never): void {}
}
