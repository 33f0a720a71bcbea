/** What is known of identities beyond their posts: profiles, keys they moved to, suspensions. */

import type { Core } from '../core.ts'
import type { Part } from '../part.ts'

export class People implements Part {
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
