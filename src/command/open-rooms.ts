/**
 * May this reader follow these rooms? A reader who names a room is answered at once, as for every other read, that it is not
 * there (`not_found`) or that it is private and they are not a member (`private_room`); waiting would reveal neither.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { dataOf, type ReadCall } from '../reads/read.ts'
import type { NoAnswer } from './ports.ts'

/** `NoAnswer`: it could not be found out. */
type MayRead = 'yes' | Refusal | NoAnswer

/** Names of public rooms kept, so that following them needs no question to another thread. */
const publicMax = 4_096

export class OpenRooms {
  readonly #read: ReadCall
  /** A room that is public stays there and stays public. */
  readonly #public = new BoundedMap<string, true>(publicMax)

  constructor(read: ReadCall) {
    this.#read = read
  }

  /** One room after the other, to the first that may not be read: a request for many that are not there costs one look. */
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
