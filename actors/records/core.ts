/**
 * The core of a shard's or the feed's state: what every part may read, and what a part must implement.
 */

import type { Board, Changes, Place, Room } from './board.ts'
import type { Columns } from './columns.ts'
import type { FactRecord, PostRecord } from './record.ts'

export type Core = {
  readonly board: Board
  readonly changes: Changes
  /** Whether this state knows who follows the room or is addressed in it: the feed for public rooms, a shard for its private ones. */
  notifiesOf(room: Pick<Room, 'visibility'>): boolean
}

/** The whole state as deciders see it: every part by its name. Members are declared in actors/state.ts, which imports the parts. */
export interface Parts extends Core {}

/** Where an act came from: its place, and the 16-byte id of its command. */
export type RecordPlace = Place & { readonly id: Uint8Array }

/**
 * A part of the state: what one group of operations must remember, besides rooms, events and authors.
 *
 * A part receives the acts it names and every event, in journal order. It holds nothing that replay would not rebuild. Each
 * shard has one of each part for the rooms it decides; the feed has one of each for everything public.
 */
export interface Projection {
  /** Handlers by the `op` of an act. */
  readonly acts: Readonly<Record<string, (act: FactRecord<never>, place: RecordPlace) => void>>
  /** Called after any act was applied, this part's own or another's. The part that owns the act has already received it. */
  onAct?(act: FactRecord, place: RecordPlace): void
  /** An event was added at `slot`. */
  onEvent?(event: PostRecord, slot: number, place: RecordPlace): void
  /** The actor that decides for the object with this id (32 hex), if this part knows it. */
  actorOf?(id: string): string | undefined
  /** What `restore` takes, as msgpack values; large arrays go into columns. */
  pack(columns: Columns): unknown
  restore(packed: never, columns: Columns): void
}
