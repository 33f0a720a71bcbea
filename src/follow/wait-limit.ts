/**
 * Those who wait for news: how many may, and how they are answered. A waiter is a request whose answer is put off;
 * a client that disconnects leaves nothing to clean up.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import type { AnsweredBy } from '../../actors/operations.ts'
import type { CommandSource } from '../command/reply.ts'
import type { Position, UpdatesFilter } from './rows.ts'

/** A follower's request, as every route hands it in. */
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
  /** What names the rooms in the terms of the route that was used. */
  readonly roomsField: 'room' | 'data.rooms'
  /** Calls back once when the client goes away before it is answered. */
  readonly onGone: (callback: () => void) => void
}

/** What an answer is made of; `cursor` text is made from the marks. */
export type Found = { readonly updates: readonly string[]; readonly marks: readonly Position[]; readonly more: boolean }

/** Answers given before the thread looks at other work: about 10 ms. Each brings a new request, which the others wait for. */
const slice = 500

/** Gives answers in slices, so that a post to thousands who wait does not hold up other clients. */
export class Outbox {
  #waiting: (() => void)[] = []
  #scheduled = false

  put(give: () => void): void {
    this.#waiting.push(give)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      const now = this.#waiting.splice(0, slice)
      for (const give of now) give()
      if (this.#waiting.length > 0) this.#schedule()
    })
  }
}

export function isBefore(a: Position, b: Position): boolean {
  return a.next < b.next || (a.next === b.next && a.taken < b.taken)
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
