/** How works are carried out: all of them by the market. */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { newRoomFor } from '../command/charging.ts'
import { isGiven } from '../command/check.ts'
import type { Asked, Plan, Services, Shown } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { dataOf } from '../reads/read.ts'
import { type AboutWork, market, reserveArgs, workArgs } from './market-args.ts'

const show = ({ command }: Verified): Shown => ({ read: 'work.get', args: { event_id: command.event_id! } })

const plan = {
  to: market,
  ask: (verified: Verified<AboutWork>, services: Services, pass: (found: Asked<ReturnType<typeof workArgs>>) => void) =>
    pass({ args: workArgs(verified, services) }),
  show,
}

/** Where it is to be asked for, and who reviews it. */
const create: Plan<'work.create'> = {
  to: market,
  check: ({ command }) => requestFault(command),
  ask: (verified, services, pass) => {
    roomOf(verified, services, (room) => {
      if (room === undefined || typeof room !== 'string') return pass(room && { refusal: room })
      reviewerOf(verified, services, (key) => {
        if (key === undefined) return pass(undefined)
        isSeen(room, verified, services, (seen) => {
          if (seen === undefined) return pass(undefined)
          newRoomFor(verified, services, room, (made) => {
            if (made === undefined || 'code' in made) return pass(made && { refusal: made })
            const settle: Asked['settle'] = (answer) => {
              if (answer?.ok !== true || answer.duplicate === true) made.giveBack()
            }
            pass({
              args: reserveArgs(verified, services, room, { reviewerKey: key, seen }),
              settle,
            })
          })
        })
      })
    })
  },
  logged: welcomed,
  show: (_verified, { facts }) => ({ read: 'work.get', args: { event_id: String(facts.work) } }),
}

/** A request is a post of its author. */
function welcomed({ signer, door }: Verified, { welcome }: Services): void {
  welcome(signer.id, door.address)
}

function requestFault(command: Verified['command']): Refusal | undefined {
  const event = isGiven(command.event_id)
  if (!event && !isGiven(command.text))
    return refusal(
      'missing_field',
      'work.create needs text (the request itself) or event_id (a request that you posted)',
      'text',
    )
  const extra = event ? (['text', 'room', 'page'] as const).find((name) => isGiven(command[name])) : undefined
  return extra === undefined
    ? undefined
    : refusal('invalid_field', `with event_id the request is already posted: leave ${extra} out`, extra)
}

/** The room by name; undefined: no answer came. */
function roomOf(verified: Verified, services: Services, then: (room: string | Refusal | undefined) => void): void {
  const { command, signer } = verified
  if (!isGiven(command.event_id)) return then(isGiven(command.room) ? command.room : 'lobby')
  const thing = command.event_id
  services.read({ op: 'locate', args: { thing }, reader: signer.id }, (found) => {
    if (found === undefined) return then(undefined)
    if (!found.ok) return then(refusal('not_found', `there is no event ${thing}`, 'event_id'))
    const { actor } = dataOf(found)
    then(actor.startsWith('@') ? refusal('not_found', `there is no event ${thing}`, 'event_id') : actor)
  })
}

/** A delegate is about to act where all see it: its delegation has to be in the public log first. */
function isSeen(
  room: string,
  { signer }: Verified,
  services: Services,
  then: (seen: boolean | undefined) => void,
): void {
  if (signer.delegate === undefined) return then(false)
  services.read({ op: 'room.get', args: { room }, reader: '' }, (found) => then(found?.ok))
}

/** Public key of the reviewer; '': no identity has this id, or none is named. */
function reviewerOf(
  { data, signer }: Verified<'work.create'>,
  services: Services,
  then: (key: string | undefined) => void,
): void {
  const { reviewer } = data
  if (reviewer === undefined || reviewer === signer.id) return then('')
  services.read({ op: 'identity.get', args: { target: reviewer }, reader: signer.id }, (found) => {
    if (found === undefined) return then(undefined)
    then(found.ok ? dataOf(found).identity.public_key : '')
  })
}

export const workPlans = {
  'work.create': create,
  'work.edit': { ...plan, logged: welcomed },
  'work.raise': plan,
  'work.cancel': plan,
  'work.claim': plan,
  'work.renew': plan,
  'work.release': plan,
  'work.submit': plan,
  'work.accept': plan,
  'work.revise': plan,
  'work.reject': plan,
  'work.dispute': plan,
  'work.concede': plan,
  'work.reopen': plan,
  'work.rule': plan,
}
