/**
 * May somebody follow these rooms? Whoever names a room to follow hears at once, as every other reader does, that it is not
 * there (`not_found`) or that it is private and he is no member (`private_room`); waiting would tell him neither.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { NoAnswer } from '../command/ports.ts'
import type { ReadAnswer, ReadRequest } from '../reads/read.ts'

/** `NoAnswer`: nobody could tell. */
type MayRead = 'yes' | Refusal | NoAnswer

/** Names of public rooms kept, so that those who follow them ask nobody. */
const publicMax = 4_096

export class OpenRooms {
  readonly #read: (request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void) => void
  /** A room that is public stays there and stays public. */
  readonly #public = new BoundedMap<string, true>(publicMax)

  constructor(read: (request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void) => void) {
    this.#read = read
  }

  /** One room after the other, to the first that may not be read: a request for many that are not there costs one look. */
  may(rooms: readonly string[], reader: string, answer: (verdict: MayRead) => void): void {
    const at = rooms.findIndex((room) => !this.#public.has(room))
    if (at < 0) return answer('yes')
    this.#read({ op: 'room.get', args: { room: rooms[at]! }, reader }, (found) => {
      if (found === undefined) return answer(undefined)
      if (!found.ok) return answer('refusal' in found ? found.refusal : found.absent)
      const { room } = JSON.parse(found.json) as { room: { name: string; visibility: string } }
      if (room.visibility === 'public') this.#public.set(room.name, true)
      this.may(rooms.slice(at + 1), reader, answer)
    })
  }
}
