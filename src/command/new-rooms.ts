/**
 * The new rooms that an identity has for a day. A room is made by room.create, by the first post into it, and by a work.create
 * that posts its request there: one is taken before the room is asked, and given back where none was made.
 */
import { noRoomLeftWords } from '../../actors/rooms/room.ts'
import type { ShardAnswer } from '../../actors/shard.ts'
import { type Refusal, refusal } from '../refusals.ts'
import type { News } from './news.ts'
import type { Doors } from './plan.ts'
import type { NoAnswer } from './ports.ts'
import type { Verified } from './reply.ts'
import type { Throttle } from './throttle.ts'

export type NewRoom = {
  /** Seconds until there is one left, 0: there is. Told to the room, which alone knows whether it would be made. */
  readonly wait: number
  readonly giveBack: () => void
}

const none: NewRoom = { wait: 0, giveBack: () => {} }

/** Takes one of the day, unless the room is known to be there. */
export function takeNewRoom(
  { news, throttle }: { readonly news: News; readonly throttle: Throttle },
  { signer, door }: Verified,
  room: string,
): NewRoom {
  if (news.hasHeardOf(room) || door.via === 'board') return none
  const wait = throttle.room(signer.id)
  if (wait > 0) return { ...none, wait }
  let isOut = true
  const giveBack = (): void => {
    if (isOut) throttle.giveBackRoom(signer.id)
    isOut = false
  }
  return { wait, giveBack }
}

/** Takes the answer of the actor: only a room that was made, and just now, has used one up. */
export function unlessMade({ giveBack }: NewRoom): (answer: ShardAnswer | NoAnswer) => void {
  return (answer) => {
    const isMade = answer?.ok === true && answer.duplicate !== true && answer.reply.madeRoom === true
    if (!isMade) giveBack()
  }
}

/** For who asks another actor than the room: finds out whether it is there. `undefined`: no answer came. */
export function newRoomFor(
  verified: Verified,
  doors: Doors,
  room: string,
  then: (found: NewRoom | Refusal | undefined) => void,
): void {
  const taken = takeNewRoom(doors, verified, room)
  if (taken === none) return then(none)
  doors.read({ op: 'room.get', args: { room }, reader: verified.signer.id }, (found) => {
    const isThere =
      found?.ok === true || (found !== undefined && 'refusal' in found && found.refusal.code !== 'not_found')
    if (isThere || found === undefined) {
      taken.giveBack()
      return then(found && none)
    }
    then(taken.wait > 0 ? refusal('quota_exhausted', noRoomLeftWords, undefined, taken.wait) : taken)
  })
}
