/** What became of events after they were posted: versions, hides, redactions, votes. */

import type { Core } from '../core.ts'
import type { Part } from '../part.ts'

export class Marks implements Part {
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
