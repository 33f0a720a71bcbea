/** A room as its creator saw it when it was made: what a retry shows a creator who has left it since. */
import type { Visibility } from '../../actors/records/board.ts'

type RoomWanted = {
  readonly name: string
  readonly visibility: Visibility
  readonly owner: string
  /** Identity ids, the owner perhaps among them. */
  readonly members: readonly string[]
  readonly about: string
}

/** `at`: when it was made, Unix seconds. */
export function roomAsMade({ name, visibility, owner, members, about }: RoomWanted, at: number) {
  return {
    name,
    visibility,
    owner,
    moderators: [],
    members: new Set([owner, ...members]).size,
    ...(about === '' ? {} : { about }),
    closed: false,
    count: 0,
    threads: 0,
    pages: 0,
    created_at: at,
    updated_at: at,
  }
}
