/**
 * How webhooks are created, ended and woken. All webhooks of one owner are decided by one actor. Before one is created, its
 * address must answer a challenge; its secret is generated here, shown once, and stored sealed.
 */

import { sizes } from '../../actors/kernel/limits.ts'
import type { RefusalCode } from '../../actors/kernel/refusals.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { hooksOf } from '../../actors/webhooks/decide.ts'
import { isPrivateKind, privateScope } from '../../actors/webhooks/kind-names.ts'
import { type HookFacts, rotationOverlapSeconds } from '../../actors/webhooks/webhooks.ts'
import { writerOf } from '../command/charging.ts'
import { isPublicOnly } from '../command/dispatch.ts'
import type { Asked, Found, Plan, Services } from '../command/plan.ts'
import type { DataOf, Verified } from '../command/verified.ts'
import type { ReadRequest } from '../reads/read.ts'
import { webhookView } from './reads.ts'
import type { VerifyAnswer } from './service.ts'
import { freshSecret } from './signature.ts'

type Barred = readonly [code: RefusalCode, message: string, field: string, retryAfter: number]

const ownActor = ({ signer }: Verified) => ({ actor: hooksOf(signer.id) })

/**
 * Notifies the delivery thread, even if no answer came: the change may have been made all the same, and the thread would not
 * learn of it.
 */
const notifying = ({ signer }: Verified, { hooks }: Services): Pick<Asked, 'settle'> => ({
  settle: (answer) => {
    if (answer === undefined) hooks.unsure(signer.id)
    else if (answer.ok) void hooks.changed(signer.id)
  },
})

const create: Plan<'webhook.create'> = {
  to: ownActor,
  check: ({ data, signer }) => faultOf(data, isPublicOnly(signer)),
  ask: (verified, services, pass) => {
    made(verified, services).then(
      (found) => pass(found && { ...found, ...notifying(verified, services) }),
      () => pass(undefined),
    )
  },
  show: (_verified, { at, facts }, _actor, isDuplicate, { secret }) => {
    const { hook, ...chosen } = facts
    const shown = isDuplicate ? { secret_shown: true } : { secret }
    return { values: { webhook: { ...webhookView(hook, chosen, at), ...shown } } }
  },
}

const rotate: Plan<'webhook.rotate'> = {
  to: ownActor,
  args: ({ command, signer }, { hooks, random }) => {
    const secret = freshSecret(random)
    const seen = signer.delegate === undefined ? {} : endOf(signer.delegate)
    const publicOnly = isPublicOnly(signer)
    return { hook: command.target, secret, publicOnly, ...hooks.sealed(signer.id, secret), ...seen }
  },
  ask: (verified, services, pass) => pass({ args: {}, ...notifying(verified, services) }),
  show: (_verified, { at, facts }, _actor, isDuplicate, { secret }) => {
    const shown = isDuplicate ? { secret_shown: true } : { secret }
    return { values: { webhook: { id: facts.hook, ...shown, previous_until: at + rotationOverlapSeconds } } }
  },
}

const remove: Plan<'webhook.delete'> = {
  to: ownActor,
  args: ({ command }) => ({ hook: command.target }),
  ask: (verified, services, pass) => pass({ args: {}, ...notifying(verified, services) }),
  show: (_verified, { facts }) => ({ values: { webhook: { id: facts.hook, deleted: true } } }),
}

const redeliver: Plan<'webhook.redeliver'> = {
  to: ownActor,
  args: ({ command, data }) => ({ hook: command.target, event: data.event ?? '' }),
  ask: (verified, services, pass) => {
    const { command, data, signer } = verified
    const { hooks } = services
    const event = data.event
    if (event === undefined) return pass({ args: {}, ...notifying(verified, services) })
    const barred: Barred = ['not_found', `webhook.deliveries of this webhook shows no ${event}`, 'data.event', 0]
    const find = async (): Promise<Found> => {
      // A delivery to another owner's webhook is not shown.
      const own = await hooks.of(signer.id)
      if (own === undefined) return undefined
      const isOwn = own.some(({ hook, form }) => hook === command.target && form === 'webhook')
      const isKnown = isOwn ? await hooks.hasDelivery(command.target, event) : true
      return isKnown === undefined ? undefined : { args: isKnown ? {} : { barred }, ...notifying(verified, services) }
    }
    find().then(pass, () => pass(undefined))
  },
  show: (_verified, { facts }) => {
    const { hook: id, event } = facts
    return { values: { webhook: { id, ...(event === '' ? {} : { redelivers: event }) } } }
  },
}

export const webhooksPlans = {
  'webhook.create': create,
  'webhook.rotate': rotate,
  'webhook.delete': remove,
  'webhook.redeliver': redeliver,
}

function faultOf({ kinds, room }: DataOf<'webhook.create'>, publicOnly: boolean): Refusal | undefined {
  if (new Set(kinds).size !== kinds.length)
    return refusal('invalid_field', '"kinds" names a kind twice: leave the repeated one out', 'data.kinds')
  if (kinds.includes('room.post') && room === undefined)
    return refusal('invalid_field', 'room.post is about one room: name it as "room" in data', 'data.room')
  if (room !== undefined && !kinds.includes('room.post') && !kinds.includes('document.written'))
    return refusal(
      'invalid_field',
      '"room" applies to room.post and document.written: leave it out for other kinds',
      'data.room',
    )
  const closed = publicOnly ? kinds.find(isPrivateKind) : undefined
  return closed === undefined
    ? undefined
    : refusal('forbidden', `${closed} needs the scope ${privateScope} too, which this delegation lacks`, 'data.kinds')
}

/**
 * Everything that can be found out before sending the letter to the actor. The actor returns the refusal, so that a retry is
 * still a retry.
 */
async function made(verified: Verified<'webhook.create'>, services: Services): Promise<Asked | undefined> {
  const { data, signer, sha } = verified
  const { hooks, random } = services
  const { url, kinds, room } = data
  const secret = freshSecret(random)
  const facts: Omit<HookFacts, 'hook' | 'marks'> = {
    form: 'webhook',
    url,
    kinds,
    filter: room === undefined ? {} : { room },
    ...hooks.sealed(signer.id, secret),
    ...endOf(signer.delegate),
  }
  const reader = isPublicOnly(signer) ? '' : signer.id
  const wish = { url, room, reader, owner: signer.id, hook: sha.toString('hex', 0, 16), secret }
  const barred = await barredBy(wish, verified, services)
  if (barred === undefined) return undefined
  const place = await hooks.places([])
  if (place === undefined) return undefined
  const args = { ...facts, marks: place.marks, secret, limit: sizes.hooks_per_identity }
  return { args: barred === 'none' ? args : { ...args, barred } }
}

/** A webhook created by a delegate ends with its delegation, whose end is known. */
function endOf(delegate: Verified['signer']['delegate']): Pick<HookFacts, 'expires' | 'delegation'> {
  return delegate === undefined ? { expires: 0 } : { expires: delegate.expires, delegation: delegate.id }
}

type Wish = {
  readonly url: string
  readonly room: string | undefined
  /** Who must be able to read the room; `''`: everyone. */
  readonly reader: string
  readonly owner: string
  readonly hook: string
  readonly secret: string
}

async function barredBy(
  { room, reader, ...wish }: Wish,
  verified: Verified,
  { hooks, read, throttle, operators }: Services,
): Promise<Barred | 'none' | undefined> {
  const fault = hooks.addressFault(wish.url)
  if (fault !== undefined) return ['invalid_field', `"url" in data: ${fault}`, 'data.url', 0]
  if (room !== undefined) {
    const request: ReadRequest = { op: 'room.get', args: { room }, reader }
    const found = await new Promise<Parameters<Parameters<Services['read']>[1]>[0]>((resolve) => read(request, resolve))
    if (found === undefined) return undefined
    if (!found.ok) {
      const { code, message } = 'refusal' in found ? found.refusal : found.absent
      const needed =
        code === 'private_room' && reader === '' ? `; following it needs the scope ${privateScope} too` : ''
      return [code, `${message}${needed}`, 'data.room', 0]
    }
  }
  const live = await hooks.count(wish.owner)
  if (live === undefined) return undefined
  // An address is not challenged if the actor would refuse the webhook anyway.
  if (live >= sizes.hooks_per_identity) return 'none'
  const charge = throttle.take('verifications', writerOf(verified, operators))
  if (charge.full !== undefined) {
    const { code, message, retryAfter = 0 } = throttle.refusalOf(charge)
    return [code, message, 'data.url', retryAfter]
  }
  const answer = await hooks.verify(wish)
  return answer === undefined ? undefined : verdict(answer)
}

function verdict(answer: VerifyAnswer): Barred | 'none' {
  if (answer.ok) return 'none'
  if ('full' in answer)
    return ['overloaded', 'this board has as many webhooks as it can serve: try again later', 'data.url', 3_600]
  if ('wait' in answer)
    return [
      'rate_limited',
      'too many addresses were verified for you: wait retry_after seconds',
      'data.url',
      answer.wait,
    ]
  if (answer.trouble === 'address_blocked')
    return ['invalid_field', '"url" in data: its host is not on the public Internet', 'data.url', 0]
  if (answer.trouble === 'no_address')
    return ['wrong_state', '"url" in data: its host has no address, so it was not challenged', 'data.url', 0]
  const message = `the address did not answer its challenge (${answer.trouble}): answer the JSON body {"type":"verification","challenge":"…"} with 200 and {"challenge":"…"} with the same text`
  return ['wrong_state', message, 'data.url', 0]
}
