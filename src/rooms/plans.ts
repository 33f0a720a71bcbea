/** How writes on rooms are executed: roles, invites, policy, reports. */

import { createHash } from 'node:crypto'
import { refusal } from '../../actors/kernel/refusals.ts'
import { unitHint } from '../../actors/records/write.ts'
import { type Decided, type Plan, type ReadPlans, toEvent } from '../command/plan.ts'
import { newestFirst } from '../reads/gather.ts'
import { dataOf, type ReadRequest } from '../reads/read.ts'

const inRoom = ({ command }: { readonly command: { readonly room: string } }) => ({ actor: command.room })

/** A change of one person's role. */
const roleChange: Plan<
  | 'room.join'
  | 'room.leave'
  | 'room.member.add'
  | 'room.member.remove'
  | 'room.moderator.add'
  | 'room.moderator.remove'
  | 'room.owner.transfer'
> = {
  to: inRoom,
  args: ({ command }) => ({ target: command.target ?? '' }),
  show: (_verified, decided, room) => shownRole(decided, room),
}

function shownRole({ facts }: Decided, room: string) {
  return { values: { room, member: { id: facts.target, role: facts.role } } }
}

const ban: Plan<'room.ban'> = {
  to: inRoom,
  args: ({ command }, { operators, boardIdentity }) => ({
    target: command.target,
    ttl: command.ttl ?? 0,
    isOperators: operators.has(command.target) || command.target === boardIdentity,
  }),
  show: ({ command }, { facts }, room) => {
    const ends = facts.until === 0 ? {} : { expires_at: facts.until }
    return { values: { ban: { room, target: facts.target, banned: true, ...ends, reason: command.reason } } }
  },
}

const unban: Plan<'room.unban'> = {
  to: inRoom,
  args: ({ command }) => ({ target: command.target }),
  show: ({ command }, { facts }, room) => ({
    values: { ban: { room, target: facts.target, banned: false, reason: command.reason ?? '' } },
  }),
}

const dayAsTtl = 86_400

const invite: Plan<'room.invite.create'> = {
  to: inRoom,
  args: ({ command }, { random }) => {
    const secret = random(32).toString('base64url')
    const ttl = command.ttl || dayAsTtl
    return { secret, hash: hashOf(secret), ttl, target: command.target ?? '' }
  },
  show: (_verified, { facts }, room, isDuplicate, { secret }) => {
    const { id, expires, target } = facts
    const code = isDuplicate ? { secret_shown: true } : { code: `${room}.${secret}` }
    const bound = target === '' ? {} : { target }
    return { values: { invite: { id, room, ...bound, expires_at: expires, ...code } } }
  },
}

const acceptance: Plan<'room.invite.accept'> = {
  to: ({ data }) => ({ actor: roomIn(data.code) }),
  args: ({ data }) => ({ hash: hashIn(data.code) }),
  // An invite made by a delegate ends with its delegation. The actor refuses, so that a retry stays a retry.
  ask: ({ data }, { read, news }, pass) => {
    const code = data.code
    read({ op: 'room.invite.maker', args: { room: roomIn(code), hash: hashIn(code) }, reader: '' }, (found) => {
      if (found === undefined || !found.ok) return pass(undefined)
      const { delegation } = dataOf(found)
      pass({ args: { isOver: delegation !== '' && !news.delegates.isActive(delegation) } })
    })
  },
  show: (_verified, decided, room) => shownRole(decided, room),
}

const policy: Plan<'room.policy.set'> = {
  to: inRoom,
  args: ({ data }) => ({ set: data }),
  check: ({ data }) => {
    if (Object.keys(data).length === 0)
      return refusal(
        'missing_field',
        'room.policy.set needs at least one key in data: room.policy.get shows all of them',
        'data',
      )
    const { rules = '', closes_at = 0 } = data
    if (rules.includes('\0')) return refusal('invalid_field', '"rules" must not contain a NUL character', 'data.rules')
    const hint = unitHint(closes_at)
    if (hint === '') return undefined
    return refusal('invalid_field', `"closes_at" in data must be in Unix seconds${hint}`, 'data.closes_at')
  },
  show: (_verified, { facts }, room) => ({ values: { room, policy: facts.policy } }),
}

const report: Plan<'report'> = {
  to: toEvent,
  args: ({ command }) => ({ event: command.event_id }),
  show: (_verified, { facts }) => ({ values: { report: { id: facts.id, event_id: facts.event, state: 'open' } } }),
}

const resolution: Plan<'report.resolve'> = {
  to: ({ command }) => ({ thing: command.target, field: 'target' }),
  args: ({ command }) => ({ report: command.target }),
  show: (_verified, { facts }) => ({ values: { report: { id: facts.report, state: 'resolved' } } }),
}

export const roomsPlans = {
  'room.join': roleChange,
  'room.leave': roleChange,
  'room.member.add': roleChange,
  'room.member.remove': roleChange,
  'room.moderator.add': roleChange,
  'room.moderator.remove': roleChange,
  'room.owner.transfer': roleChange,
  'room.ban': ban,
  'room.unban': unban,
  'room.invite.create': invite,
  'room.invite.accept': acceptance,
  'room.policy.set': policy,
  report,
  'report.resolve': resolution,
}

/** Parts of an invite code: the room's name, a dot, the secret. */
const roomIn = (code: string) => code.slice(0, code.indexOf('.'))
const hashIn = (code: string) => hashOf(code.slice(code.indexOf('.') + 1))

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/** Reports are held by the rooms they are about, an invite by the room it opens, and a private room is known only to its shard. */
export const roomsReadPlans = {
  'rooms.list': {
    gather: newestFirst('rooms'),
    // The feed alone refuses an unsigned request for one's own.
    isShared: ({ args, reader }: ReadRequest) => args.own !== undefined && reader !== '',
  },
  'reports.list': { gather: newestFirst('reports') },
  'reports.summary': { gather: newestFirst('reported') },
  'room.invite.maker': { actor: ({ args }) => String(args.room) },
} satisfies ReadPlans
