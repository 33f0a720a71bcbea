/**
 * The new rooms that an identity has for a day. A room is made by room.create, by the first post into it, and by a work.create
 * that posts its request there: one is taken before the room is asked, and given back where none was made.
 */

import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { noRoomLeftWords } from '../../actors/rooms/room.ts'
import { Charge } from '../rates/meters.ts'
import type { Throttle } from '../rates/throttle.ts'
import { writerOf } from './charging.ts'
import type { LiveFacts } from './live-facts.ts'
import type { Asked, Services } from './plan.ts'
import type { NoAnswer } from './ports.ts'
import type { Verified } from './reply.ts'

type Options = { readonly news: LiveFacts; readonly throttle: Throttle; readonly operators: ReadonlySet<string> }

/**
 * Takes one of the day, unless the room is known to exist. The seconds to wait are passed to the room, which alone knows whether
 * it would be made.
 */
export function takeNewRoom({ news, throttle, operators }: Options, verified: Verified, room: string): Charge {
  if (news.hasHeardOf(room) || verified.door.via === 'board') return new Charge()
  return throttle.take('rooms', writerOf(verified, operators))
}

/** What a letter that may make a room is sent with: only a room that was made, and just now, has used one up. */
export function unlessMade(charge: Charge): Pick<Asked, 'settle' | 'limit'> {
  const settle = (answer: ShardAnswer | NoAnswer): void => {
    const isMade = answer?.ok === true && answer.duplicate !== true && answer.reply.madeRoom === true
    if (!isMade) charge.giveBack()
  }
  return { settle, limit: { words: noRoomLeftWords, charge } }
}

/** For who asks another actor than the room: finds out whether it is there. `undefined`: no answer came. */
export function newRoomFor(
  verified: Verified,
  services: Services,
  room: string,
  then: (found: Charge | Refusal | undefined) => void,
): void {
  if (services.news.hasHeardOf(room)) return then(new Charge())
  const taken = takeNewRoom(services, verified, room)
  services.read({ op: 'room.get', args: { room }, reader: verified.signer.id }, (found) => {
    const isThere =
      found?.ok === true || (found !== undefined && 'refusal' in found && found.refusal.code !== 'not_found')
    if (isThere || found === undefined) {
      taken.giveBack()
      return then(found && new Charge())
    }
    then(taken.full === undefined ? taken : services.throttle.refusalOf(taken))
  })
}
