/**
 * The state: what every part of it may look at, and what a part is.
 */

import type { Board, Changes, Place, Room } from './board.ts'
import type { Columns } from './columns.ts'
import type { FactRecord, PostRecord } from './record.ts'

export type Core = {
  readonly board: Board
  readonly changes: Changes
  /** Whether this state answers who follows the room or is addressed in it: the feed for public rooms, a shard for its private ones. */
  tells(room: Pick<Room, 'visibility'>): boolean
}

/** The whole state, as deciders look at it: every part by its name. Filled by actors/state.ts, which stands above the parts. */
export interface Parts extends Core {}

/** Where an act came from: its place, and the 16-byte id of its command. */
export type RecordPlace = Place & { readonly id: Uint8Array }

/**
 * A part of the state: what one group of operations needs to remember, beside rooms, events and authors.
 *
 * A part is given the acts it names and every event, in journal order, and holds nothing that a replay would not give
 * again. A shard has one of each for the rooms it decides over, the feed one of each for everything public.
 */
export interface Projection {
  /** Handlers by the `op` of an act. */
  readonly acts: Readonly<Record<string, (act: FactRecord<never>, place: RecordPlace) => void>>
  /** Any act was applied, this part's own or another's, after the part that owns it was given it. */
  onAct?(act: FactRecord, place: RecordPlace): void
  /** An event was added at `slot`. */
  onEvent?(event: PostRecord, slot: number, place: RecordPlace): void
  /** The actor that decides over the thing with this id (32 hex), where this part knows it. */
  actorOf?(id: string): string | undefined
  /** What `restore` takes, as msgpack values; large arrays go into columns. */
  pack(columns: Columns): unknown
  restore(packed: never, columns: Columns): void
}
