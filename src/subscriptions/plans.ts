/** How writes on subscriptions are executed, by the actor of their identity. A room or thread is looked up before it is followed. */

import { type RefusalCode, refusal } from '../../actors/kernel/refusals.ts'
import { subscriptionsOf } from '../../actors/subscriptions/decide.ts'
import { keyOf } from '../../actors/subscriptions/subscriptions.ts'
import type { Plan, ReadPlans, Services } from '../command/plan.ts'
import type { Verified } from '../command/verified.ts'
import { type AnswerOf, dataOf, ok, type ReadRequest } from '../reads/read.ts'

const ownActor = ({ signer }: { readonly signer: Verified['signer'] }) => ({ actor: subscriptionsOf(signer.id) })

type Place = { readonly room: string; readonly thread: string; readonly seen: number }
type Asked = { readonly args: Place & { readonly barred?: readonly [code: RefusalCode, message: string] } } | undefined

/** Looks up what is to be followed, as far as the signer may read it. The actor refuses, so that a retry stays a retry. */
function lookUp(
  { args, reader }: Pick<ReadRequest, 'args' | 'reader'>,
  { read }: Pick<Services, 'read'>,
  pass: (found: Asked) => void,
): void {
  read({ op: 'subscription.place', args, reader }, (found) => {
    if (found === undefined) return pass(undefined)
    if (found.ok) return pass({ args: dataOf(found) })
    const { code, message } = 'refusal' in found ? found.refusal : found.absent
    pass({ args: { barred: [code, message], room: '', thread: '', seen: 0 } })
  })
}

const roomFollow: Plan<'room.follow'> = {
  to: ownActor,
  ask: ({ command, signer }, services, pass) =>
    lookUp({ args: { room: command.room }, reader: signer.id }, services, pass),
  show: (_verified, { facts: { room, seen } }) => ({ values: { follow: { room, seen } } }),
}

const threadFollow: Plan<'thread.follow'> = {
  to: ownActor,
  ask: ({ command, signer }, services, pass) =>
    lookUp({ args: { event_id: command.event_id }, reader: signer.id }, services, pass),
  show: (_verified, { facts: { room, thread, seen } }) => ({ values: { follow: { room, thread, seen } } }),
}

const roomUnfollow: Plan<'room.unfollow'> = {
  to: ownActor,
  args: ({ command }) => ({ room: command.room, thread: '' }),
  show: (_verified, { facts: { room } }) => ({ values: { follow: { room, following: false } } }),
}

const threadUnfollow: Plan<'thread.unfollow'> = {
  to: ownActor,
  args: ({ command }) => ({ room: '', thread: command.event_id }),
  show: (_verified, { facts: { thread } }) => ({ values: { follow: { thread, following: false } } }),
}

const mute: Plan<'identity.mute'> = {
  to: ownActor,
  check: ({ command, signer }) =>
    command.target === signer.id ? refusal('invalid_field', 'you cannot mute yourself', 'target') : undefined,
  args: ({ command }) => ({ target: command.target }),
  show: (_verified, { facts: { target } }) => ({ values: { mute: { target, muted: true } } }),
}

const unmute: Plan<'identity.unmute'> = {
  to: ownActor,
  args: ({ command }) => ({ target: command.target }),
  show: (_verified, { facts: { target } }) => ({ values: { mute: { target, muted: false } } }),
}

const seen: Plan<'inbox.seen'> = {
  to: ownActor,
  args: ({ data: { rooms = [], threads = [], inbox = 0 } }) => ({
    positions: [
      ...rooms.map(({ room, seen }) => [keyOf({ room, thread: '' }), seen] as const),
      ...threads.map(({ thread, seen }) => [keyOf({ room: '', thread }), seen] as const),
    ],
    inbox,
  }),
  show: (_verified, { facts: { positions, inbox } }) => ({
    values: { moved: positions.length + (inbox === 0 ? 0 : 1) },
  }),
}

export const subscriptionsPlans = {
  'room.follow': roomFollow,
  'room.unfollow': roomUnfollow,
  'thread.follow': threadFollow,
  'thread.unfollow': threadUnfollow,
  'inbox.seen': seen,
  'identity.mute': mute,
  'identity.unmute': unmute,
}

const home = { actor: ({ reader }: ReadRequest) => subscriptionsOf(reader) }

export const subscriptionsReadPlans = {
  'subscription.own': home,
  'subscription.page': home,
  'mutes.list': home,
  'follows.list': {
    /** The reader's actor holds what they follow; the actor of each room knows what is new there. */
    ask: (request, read, pass) =>
      read({ ...request, op: 'subscription.page' }, (found) => {
        if (found === undefined || !found.ok) return pass(found)
        pass({ ...request, found: dataOf(found) })
      }),
    gather: (parts: readonly AnswerOf<'follows.list'>[], until) => {
      const { follows, paging } = parts[0]!.page
      const news = new Map(parts.flatMap((part) => part.news))
      const views = follows.map(({ room, thread, at, seen }, place) => {
        const where = { room, ...(thread === '' ? {} : { thread }) }
        return news.get(place) ?? { ...where, followed_at: at, seen, readable: false }
      })
      return ok({ follows: views, ...paging }, { until })
    },
  },
} satisfies ReadPlans
