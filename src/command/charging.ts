/**
 * Whose limits a signed write counts against, and the daily allowance of new rooms per identity. A write is charged only after its
 * signature was verified, so nobody can spend a stranger's quota by naming the stranger's key.
 */

import type { ActorRefusal as Decided, Refusal } from '../../actors/kernel/refusals.ts'
import type { ShardAnswer } from '../../actors/records/answer.ts'
import { overLimitWords } from '../../actors/records/write.ts'
import { noRoomLeftMessage } from '../../actors/rooms/room.ts'
import { type Reply, refused } from '../format/reply.ts'
import { Charge } from '../rates/meters.ts'
import type { Throttle, Writer } from '../rates/throttle.ts'
import { isOperator } from './dispatch.ts'
import type { LiveFacts } from './live-facts.ts'
import type { Asked, Services } from './plan.ts'
import type { NoAnswer } from './ports.ts'
import { fromActor } from './reply.ts'
import type { Verified } from './verified.ts'

/** The sender of a write, and the interface it came through. */
type Sender = Pick<Verified, 'signer' | 'source'>

/** A sign-in at /mcp sends from its host's address, and operators must get through even when their network's quota is used up. */
export function writerOf({ signer, source }: Sender, operators: ReadonlySet<string>): Writer {
  const isHosted = source.signedIn === signer.id && !isOperator(signer, operators)
  const isApart = isHosted || isOperator(signer, operators)
  return { identity: signer.id, address: source.address, isApart, isHosted }
}

/** Whether it matters if nothing of this signer was ever accepted. */
export function mayBeNew({ signer, source }: Sender, { limitsOn }: Pick<Services, 'limitsOn'>): boolean {
  return limitsOn && !signer.isKnown && source.via !== 'board'
}

/** Finds out whether anything of this signer was ever accepted. If the board cannot tell now, the signer does not count as new. */
export function whetherNew(sender: Sender, services: Services, then: (isNew: boolean) => void): void {
  if (!mayBeNew(sender, services)) return then(false)
  const { signer } = sender
  services.read({ op: 'identity.known', args: { target: signer.id }, reader: '' }, (found) => {
    if (found?.ok === true) signer.isKnown = true
    then(found !== undefined && !found.ok && 'absent' in found)
  })
}

/** Settles the charge of a write according to its actor's answer. */
export function settleWrite(
  charge: Charge,
  verified: Sender & Pick<Verified, 'isNew'>,
  answer: ShardAnswer | NoAnswer,
  { throttle, operators }: Pick<Services, 'throttle' | 'operators'>,
): void {
  const { signer, isNew } = verified
  if (answer === undefined) return
  // Anyone can resend a public command, so a duplicate vouches for nobody.
  if (answer.ok && answer.duplicate !== true) throttle.writeAccepted(writerOf(verified, operators))
  if (charge.full === undefined) {
    if (answer.ok && answer.duplicate) charge.giveBack()
    // A refused write stays counted in the minute, because refusing costs the actor as much as deciding.
    else if (!answer.ok && answer.isWritten !== true) throttle.writeRefused(charge)
    else if (answer.ok && isNew === true && signer.isKnown) throttle.notNew(charge)
  }
  if (answer.ok) signer.isKnown = true
}

/** The refusal by an actor because a charge exceeded its limit, reported with the limit and whose it is. */
export function limitReply(found: Decided, charge: Charge, limit: Asked['limit'], throttle: Throttle): Reply {
  const reasons = [{ words: overLimitWords, charge }, ...(limit === undefined ? [] : [limit])]
  const reason = reasons.find(({ words, charge: { full } }) => full !== undefined && words === found.message)
  return reason === undefined ? fromActor(found) : refused(throttle.refusalOf(reason.charge))
}

type Options = { readonly news: LiveFacts; readonly throttle: Throttle; readonly operators: ReadonlySet<string> }

/**
 * Takes one new room from the daily allowance, unless the room is known to exist. The seconds to wait are passed to the room's actor,
 * because only it knows whether the room would be created.
 */
export function takeNewRoom({ news, throttle, operators }: Options, sender: Sender, room: string): Charge {
  if (news.knowsRoom(room) || sender.source.via === 'board') return new Charge()
  return throttle.take('rooms', writerOf(sender, operators))
}

/** What accompanies a letter that may create a room: the allowance is used up only if the letter created the room. */
export function refundUnlessCreated(charge: Charge): Pick<Asked, 'settle' | 'limit'> {
  const settle = (answer: ShardAnswer | NoAnswer): void => {
    const isMade = answer?.ok === true && answer.duplicate !== true && answer.reply.madeRoom === true
    if (!isMade) charge.giveBack()
  }
  return { settle, limit: { words: noRoomLeftMessage, charge } }
}

/** For callers that ask another actor than the room: finds out whether the room exists. `undefined`: no answer came. */
export function newRoomFor(
  verified: Verified,
  services: Services,
  room: string,
  then: (found: Charge | Refusal | undefined) => void,
): void {
  if (services.news.knowsRoom(room)) return then(new Charge())
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
