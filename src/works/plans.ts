/**
 * How works are carried out: all of them by the market. What only the room knows of the signer, or of the result, is asked before and
 * decided upon by the market, so that a retry is still a retry.
 */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { isGiven } from '../command/check.ts'
import type { AnyPlan, Asked, Doors, Found, Plan, Shown } from '../command/plan.ts'
import type { Verified } from '../command/reply.ts'
import { newRoomFor } from '../rooms/new-room-quota.ts'
import { bindResult } from './bound-result.ts'
import { market, reserveArgs, standingIn, whereIs, workArgs } from './market-args.ts'

const show = ({ command }: Verified): Shown => ({ read: 'work.get', args: { event_id: command.event_id! } })

type Ask = NonNullable<AnyPlan['ask']>

const byItself: Ask = (verified, doors, pass) => pass({ args: workArgs(verified, doors) })

/** With what the room says of the signer. */
const withStanding: Ask = (verified, doors, pass) => {
  whereIs(verified.command.event_id ?? '', doors, (where) => {
    if (where === null) return pass(undefined)
    const args = workArgs(verified, doors)
    if (where === undefined) return pass({ args })
    standingIn(where.room, verified, doors, (standing) =>
      pass(standing === null ? undefined : { args: { ...args, standing } }),
    )
  })
}

/** With what its room says of the result that is handed in. */
const withResult: Ask = (verified, doors, pass) => {
  whereIs(verified.command.event_id ?? '', doors, (where) => {
    if (where === null) return pass(undefined)
    const args = workArgs(verified, doors)
    if (where === undefined) return pass({ args })
    bindResult(verified, doors, where.room, (found) => pass(joined(args, found)))
  })
}

/** A claim, with its result where it comes with one. */
const withStandingAndResult: Ask = (verified, doors, pass) => {
  withStanding(verified, doors, (asked) => {
    if (asked === undefined || 'refusal' in asked || !isGiven(verified.command.target)) return pass(asked)
    whereIs(verified.command.event_id ?? '', doors, (where) => {
      if (where === null || where === undefined) return pass(where === null ? undefined : asked)
      bindResult(verified, doors, where.room, (found) => pass(joined(asked.args, found)))
    })
  })
}

function joined(args: object, found: Found): Found {
  return found === undefined || 'refusal' in found ? found : { ...found, args: { ...args, ...found.args } }
}

const plan = (ask: Ask) => ({ to: market, ask, show })

/** Where it is to be asked for, and who reviews it. */
const create: Plan<'work.create'> = {
  to: market,
  check: ({ command }) => requestFault(command),
  ask: (verified, doors, pass) => {
    roomOf(verified, doors, (room) => {
      if (room === undefined || typeof room !== 'string') return pass(room && { refusal: room })
      reviewerOf(verified, doors, (key) => {
        if (key === undefined) return pass(undefined)
        isSeen(room, verified, doors, (seen) => {
          if (seen === undefined) return pass(undefined)
          newRoomFor(verified, doors, room, (made) => {
            if (made === undefined || 'code' in made) return pass(made && { refusal: made })
            const settle: Asked['settle'] = (answer) => {
              if (answer?.ok !== true || answer.duplicate === true) made.giveBack()
            }
            pass({
              args: reserveArgs(verified, doors, room, { reviewerKey: key, seen }),
              settle,
              undone: () => made.giveBack(),
            })
          })
        })
      })
    })
  },
  show: (_verified, { facts }) => ({ read: 'work.get', args: { event_id: String(facts.work) } }),
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
function roomOf(verified: Verified, doors: Doors, then: (room: string | Refusal | undefined) => void): void {
  const { command, signer } = verified
  if (!isGiven(command.event_id)) return then(isGiven(command.room) ? command.room : 'lobby')
  const thing = command.event_id
  doors.read({ op: 'locate', args: { thing }, reader: signer.id }, (found) => {
    if (found === undefined) return then(undefined)
    if (!found.ok) return then(refusal('not_found', `there is no event ${thing}`, 'event_id'))
    const { actor } = JSON.parse(found.json) as { actor: string }
    then(actor.startsWith('@') ? refusal('not_found', `there is no event ${thing}`, 'event_id') : actor)
  })
}

/** A delegate is about to act where all see it: its delegation has to be in the public log first. */
function isSeen(room: string, { signer }: Verified, doors: Doors, then: (seen: boolean | undefined) => void): void {
  if (signer.delegate === undefined) return then(false)
  doors.read({ op: 'room.get', args: { room }, reader: '' }, (found) => then(found?.ok))
}

/** Public key of the reviewer; '': no identity has this id, or none is named. */
function reviewerOf(
  { data, signer }: Verified<'work.create'>,
  doors: Doors,
  then: (key: string | undefined) => void,
): void {
  const { reviewer } = data
  if (reviewer === undefined || reviewer === signer.id) return then('')
  doors.read({ op: 'identity.get', args: { target: reviewer }, reader: signer.id }, (found) => {
    if (found === undefined) return then(undefined)
    then(found.ok ? (JSON.parse(found.json) as { identity: { public_key: string } }).identity.public_key : '')
  })
}

export const workPlans = {
  'work.create': create,
  'work.edit': plan(byItself),
  'work.raise': plan(byItself),
  'work.cancel': plan(withStanding),
  'work.claim': plan(withStandingAndResult),
  'work.renew': plan(byItself),
  'work.release': plan(byItself),
  'work.submit': plan(withResult),
  'work.accept': plan(byItself),
  'work.revise': plan(byItself),
  'work.reject': plan(byItself),
  'work.dispute': plan(byItself),
  'work.concede': plan(byItself),
  'work.reopen': plan(byItself),
  'work.rule': plan(withStanding),
}
