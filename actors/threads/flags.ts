/**
 * Moderators' flags on threads: which are pinned to the top of their room's list, which are closed to replies, and which are
 * listed in another room than the one they were posted to.
 */

import { hex } from '../kernel/hex.ts'
import type { Room } from '../records/board.ts'
import type { Core, Projection } from '../records/core.ts'
import type { FactRecord } from '../records/record.ts'
import type { MoveFacts } from '../rooms/rules.ts'

/** Pinned threads per room. */
export const pinnedMax = 5

/** Facts of the acts of this part; `id` is the root's. */
export type PinFacts = { readonly id: Uint8Array; readonly pinned: boolean }
export type LockFacts = { readonly id: Uint8Array; readonly locked: boolean }

/** Why a thread is not listed in its own room. */
export type Moved = {
  /** Room by name. */
  readonly to: string
  /** Identity id of who moved it. */
  readonly by: string
  /** Unix seconds. */
  readonly at: number
  readonly reason: string
}

type Packed = readonly [
  pinned: readonly (readonly [room: number, roots: readonly number[]])[],
  locked: readonly number[],
  /** Absent in snapshots of older releases. */
  moved?: readonly (readonly [root: number, to: string, by: string, at: number, reason: string])[],
]

/** Called before and after a thread is moved to the list of another room. */
export type MoveWatcher = { moving(root: number): void; moved(root: number): void }

const noRoots: ReadonlySet<number> = new Set()

export class ThreadFlags implements Projection {
  readonly acts: Projection['acts'] = {
    'thread.pin': (act) => this.#pin(act),
    'thread.lock': (act) => this.#lock(act),
    'thread.move': (act) => this.#move(act),
  }
  watcher: MoveWatcher | undefined
  readonly #core: Core
  /** Number of a room -> slots of its pinned roots, newest pin first. */
  readonly #pinned = new Map<number, readonly number[]>()
  readonly #locked = new Set<number>()
  /** Slot of a root -> where it is listed. */
  readonly #moved = new Map<number, Moved>()
  /** Name of a room -> slots of the roots that were moved into it, and of its own that were moved away. */
  readonly #into = new Map<string, Set<number>>()
  readonly #from = new Map<string, Set<number>>()

  constructor(core: Core) {
    this.#core = core
  }

  /** Slots of roots, newest pin first. `room`: its number. */
  pinnedIn(room: number): readonly number[] {
    return this.#pinned.get(room) ?? []
  }

  isPinned(root: number): boolean {
    return this.pinnedIn(this.#core.board.events.room(root)).includes(root)
  }

  isLocked(root: number): boolean {
    return this.#locked.has(root)
  }

  /** Undefined if it is listed in its own room. */
  moveOf(root: number): Moved | undefined {
    return this.#moved.get(root)
  }

  /** The room that lists this thread. A shard that does not hold that room returns the thread's own. */
  roomOf(root: number): Room {
    const { rooms, roomList, events } = this.#core.board
    const moved = this.#moved.get(root)
    return (moved && rooms.get(moved.to)) ?? roomList[events.room(root)]!
  }

  /** Slots of the roots of other rooms that are listed in this one. */
  movedInto({ name }: Room): ReadonlySet<number> {
    return this.#into.get(name) ?? noRoots
  }

  /** Slots of the roots of this room that another one lists. */
  movedFrom({ name }: Room): ReadonlySet<number> {
    return this.#from.get(name) ?? noRoots
  }

  pack(): Packed {
    const moved = [...this.#moved].map(([root, { to, by, at, reason }]) => [root, to, by, at, reason] as const)
    return [[...this.#pinned], [...this.#locked], moved]
  }

  restore([pinned, locked, moved = []]: Packed): void {
    for (const [room, roots] of pinned) this.#pinned.set(room, roots)
    for (const root of locked) this.#locked.add(root)
    for (const [root, to, by, at, reason] of moved) this.#list(root, { to, by, at, reason })
  }

  #pin({ facts: { id, pinned } }: FactRecord<PinFacts>): void {
    this.#setPin(this.#core.board.events.find(id), pinned)
  }

  #setPin(root: number, isPinned: boolean): void {
    const room = this.#core.board.events.room(root)
    const others = this.pinnedIn(room).filter((each) => each !== root)
    this.#pinned.set(room, isPinned ? [root, ...others] : others)
  }

  #lock({ facts: { id, locked } }: FactRecord<LockFacts>): void {
    const root = this.#core.board.events.find(id)
    if (locked) this.#locked.add(root)
    else this.#locked.delete(root)
  }

  /** A pin applies to the list of its own room, and ends when the thread leaves it. */
  #move({ facts: { id, to, reason }, author, at, room }: FactRecord<MoveFacts>): void {
    const root = this.#core.board.events.find(id)
    this.watcher?.moving(root)
    const before = this.#moved.get(root)
    if (before !== undefined) this.#into.get(before.to)?.delete(root)
    this.#from.get(room)?.delete(root)
    this.#moved.delete(root)
    if (this.isPinned(root)) this.#setPin(root, false)
    if (to !== room) this.#list(root, { to, by: hex(author), at, reason })
    this.watcher?.moved(root)
  }

  #list(root: number, moved: Moved): void {
    const { roomList, events } = this.#core.board
    this.#moved.set(root, moved)
    addTo(this.#into, moved.to, root)
    addTo(this.#from, roomList[events.room(root)]!.name, root)
  }
}

function addTo(sets: Map<string, Set<number>>, name: string, root: number): void {
  const set = sets.get(name)
  if (set === undefined) sets.set(name, new Set([root]))
  else set.add(root)
}
