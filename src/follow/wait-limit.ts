/** A request for updates, as every route hands it in. */
import { sizes } from '../../actors/kernel/limits.ts'
import type { AnsweredBy } from '../../actors/operations.ts'
import type { CommandSource } from '../command/verified.ts'
import type { UpdatesFilter } from './rows.ts'

export type Poll = UpdatesFilter & {
  /** Cursor of the answer before, or ''. */
  readonly cursor: string
  readonly waitSeconds: number
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
  /** Public key that signed, else '': with it the wait ends. */
  readonly key: string
  readonly address: string
  /** Identity id of a sign-in at /mcp. */
  readonly signedIn?: string
  /** It has its place among those who wait. */
  readonly hasPlace?: true
  /** What names the rooms in the terms of the route that was used. */
  readonly roomsField: 'room' | 'data.rooms'
  /** Calls back once when the client goes away before it is answered. */
  readonly onGone: (callback: () => void) => void
}

/** Answered when there is news, by the main thread. */
export const updatesRead = 'updates.get' satisfies AnsweredBy<'main'>

/** A checked request of updates.get as a poll. */
export function pollOf(
  args: Readonly<Record<string, unknown>>,
  { reader, key = '' }: { readonly reader: string; readonly key?: string },
  door: CommandSource,
): Poll {
  const { cursor = '', wait = 0, rooms = [], kinds = [], limit = sizes.page_default } = args
  return {
    cursor: cursor as string,
    waitSeconds: wait as number,
    rooms: rooms as readonly string[],
    kinds: kinds as readonly string[],
    limit: limit as number,
    reader,
    key,
    address: door.address,
    ...(door.signedIn === undefined ? {} : { signedIn: door.signedIn }),
    roomsField: door.via === 'get' ? 'room' : 'data.rooms',
    onGone: door.onGone ?? (() => {}),
  }
}
