/** Who is spoken to: mentions, replies and addressed posts by identity, and conversations. */

import type { Core } from '../core.ts'
import type { Part } from '../part.ts'

export class Direct implements Part {
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
