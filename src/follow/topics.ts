/** The topics that can be followed, and what the feed and the shards push to their followers. */
import type { PushedRow } from './rows.ts'
import type { TailFormat } from './stream.ts'

export type Topic =
  /** The tail of a room. `reader`: the member who reads a private room, else ''. */
  | readonly ['tail', room: string, format: TailFormat, reader: string]
  /** Whether the reader is still a member of the private room. */
  | readonly ['member', room: string, reader: string]
  /** The updates of a public room; '' for all rooms. */
  | readonly ['room', room: string]
  /** The updates of a reader's private rooms and receivers. */
  | readonly ['reader', reader: string]

export type FollowTell = readonly ['follow' | 'unfollow', Topic]

/** Without bytes: the event could not be read, and followers have to reconnect. */
export type Live = readonly ['live', room: string, format: TailFormat, position: number, bytes: Uint8Array]

/** The rows of everything that happened in followed topics up to the position `through`. */
export type Pushed = {
  readonly through: number
  readonly rows: readonly PushedRow[]
  /** False if there was more than is pushed, or something could not be read: followers have to query. */
  readonly isWhole: boolean
}

/** Identity ids of those whom the reader of a private room has blocked there. */
export type Blocked = readonly (readonly [reader: string, blocked: readonly string[]])[]

/** Updates of changed public rooms for waiting requests. `followed`: the rooms included; '' for all. */
export type PublicPush = Pushed & { readonly followed: readonly string[] }
