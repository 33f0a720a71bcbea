/**
 * Checks whether a reader may follow these rooms. As for every other read, the answer is immediate: the room does not exist (`not_found`),
 * or it is private and the reader is not a member (`private_room`). Waiting would reveal neither.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { dataOf, type ReadCall } from '../reads/read.ts'
import type { NoAnswer } from './ports.ts'

/** `NoAnswer`: it could not be determined. */
type MayRead = 'yes' | Refusal | NoAnswer

/** Cached names of public rooms, so that following them needs no request to another thread. */
const publicMax = 4_096

export class OpenRooms {
  readonly #read: ReadCall
  /** Public rooms; they never disappear and stay public. */
  readonly #public = new BoundedMap<string, true>(publicMax)

  constructor(read: ReadCall) {
    this.#read = read
  }

  /** Checks the rooms one after the other, up to the first that may not be read, so a request for many missing rooms costs one lookup. */
  may(rooms: readonly string[], reader: string, answer: (verdict: MayRead) => void): void {
    const at = rooms.findIndex((room) => !this.#public.has(room))
    if (at < 0) return answer('yes')
    this.#read({ op: 'room.get', args: { room: rooms[at]! }, reader }, (found) => {
      if (found === undefined) return answer(undefined)
      if (!found.ok) return answer('refusal' in found ? found.refusal : found.absent)
      const { room } = dataOf(found)
      if (room.visibility === 'public') this.#public.set(room.name, true)
      this.may(rooms.slice(at + 1), reader, answer)
    })
  }
}
