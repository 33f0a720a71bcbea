/** What the moderators of a room said of its threads: which stand on top of its list, and which take no more replies. */

import type { Core, Projection } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'

/** Pinned threads of one room. */
export const pinnedMax = 5

/** Facts of the acts of this part; `id` is the root's. */
export type PinFacts = { readonly id: Uint8Array; readonly pinned: boolean }
export type LockFacts = { readonly id: Uint8Array; readonly locked: boolean }

type Packed = readonly [
  pinned: readonly (readonly [room: number, roots: readonly number[]])[],
  locked: readonly number[],
]

export class ThreadFlags implements Projection {
  readonly acts: Projection['acts'] = {
    'thread.pin': (act) => this.#pin(act),
    'thread.lock': (act) => this.#lock(act),
  }
  readonly #core: Core
  /** Number of a room -> slots of its pinned roots, newest pin first. */
  readonly #pinned = new Map<number, readonly number[]>()
  readonly #locked = new Set<number>()

  constructor(core: Core) {
    this.#core = core
  }

  /** Slots of roots, newest pin first. `room`: its number. */
  pinnedIn(room: number): readonly number[] {
    return this.#pinned.get(room) ?? []
  }

  isPinned(root: number): boolean {
    return this.pinnedIn(this.#core.board.events.room[root]!).includes(root)
  }

  isLocked(root: number): boolean {
    return this.#locked.has(root)
  }

  pack(): Packed {
    return [[...this.#pinned], [...this.#locked]]
  }

  restore([pinned, locked]: Packed): void {
    for (const [room, roots] of pinned) this.#pinned.set(room, roots)
    for (const root of locked) this.#locked.add(root)
  }

  #pin({ facts: { id, pinned } }: FactRecord<PinFacts>): void {
    const { events } = this.#core.board
    const root = events.find(id)
    const room = events.room[root]!
    const others = this.pinnedIn(room).filter((each) => each !== root)
    this.#pinned.set(room, pinned ? [root, ...others] : others)
  }

  #lock({ facts: { id, locked } }: FactRecord<LockFacts>): void {
    const root = this.#core.board.events.find(id)
    if (locked) this.#locked.add(root)
    else this.#locked.delete(root)
  }
}
