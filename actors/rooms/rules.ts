/** What holds in a room: roles, policy, invites, the moderation log, reports. */

import type { Core } from '../core.ts'
import type { Part } from '../part.ts'

export class Rules implements Part {
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
