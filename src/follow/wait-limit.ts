/** A request for updates, in the form that every route passes on. */
import { sizes } from '../../actors/kernel/limits.ts'
import type { AnsweredBy } from '../../actors/operations.ts'
import type { CommandSource } from '../command/verified.ts'
import type { UpdatesFilter } from './rows.ts'

export type Poll = UpdatesFilter & {
  /** Cursor of the previous answer, or ''. */
  readonly cursor: string
  readonly waitSeconds: number
  /** Identity id of a signed reader, else ''. */
  readonly reader: string
  /** Public key that signed, else ''. The wait ends if the key becomes invalid. */
  readonly key: string
  readonly address: string
  /** Identity id of a sign-in at /mcp. */
  readonly signedIn?: string
  /** Set if it already has a place among the waiting requests. */
  readonly hasPlace?: true
  /** The field that names the rooms, in the terms of the route used. */
  readonly roomsField: 'room' | 'data.rooms'
  /** Calls back once if the client disconnects before it is answered. */
  readonly onGone: (callback: () => void) => void
}

/** Answered by the main thread when there is news. */
export const updatesRead = 'updates.get' satisfies AnsweredBy<'main'>

/** Turns a checked updates.get request into a poll. */
export function pollOf(
  args: Readonly<Record<string, unknown>>,
  { reader, key = '' }: { readonly reader: string; readonly key?: string },
  source: CommandSource,
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
    address: source.address,
    ...(source.signedIn === undefined ? {} : { signedIn: source.signedIn }),
    roomsField: source.via === 'get' ? 'room' : 'data.rooms',
    onGone: source.onGone ?? (() => {}),
  }
}
