/** What may be followed, and what the feed and the shards push to those who follow it. */
import type { PushedRow } from './rows.ts'
import type { TailFormat } from './stream.ts'

export type Topic =
  /** The tail of a room. `reader`: the member who reads a private one, else ''. */
  | readonly ['tail', room: string, format: TailFormat, reader: string]
  /** Whether the reader is still a member of the private room. */
  | readonly ['member', room: string, reader: string]
  /** The updates of a public room; '' is all of them. */
  | readonly ['room', room: string]
  /** The updates of a reader's private rooms and receivers. */
  | readonly ['reader', reader: string]

export type FollowTell = readonly ['follow' | 'unfollow', Topic]

/** Without bytes: what happened could not be read. Who follows has to come again. */
export type Live = readonly ['live', room: string, format: TailFormat, position: number, bytes: Uint8Array]

/** The rows of everything that happened up to the position `through` in what is followed. */
export type Pushed = {
  readonly through: number
  readonly rows: readonly PushedRow[]
  /** False: there was more than is pushed, or something could not be read. Who follows has to ask. */
  readonly isWhole: boolean
}

/** Identity ids of those whom the reader of a private room has blocked there. */
export type Blocked = readonly (readonly [reader: string, blocked: readonly string[]])[]

/** What the changed public rooms say to those who wait. `followed`: the rooms that it is pushed of; '' is all of them. */
export type PublicPush = Pushed & { readonly followed: readonly string[] }
