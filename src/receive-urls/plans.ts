/**
 * How writes on receive URLs are executed: one actor handles all of one creator. The secret of the address is generated here and shown
 * once. The secret that signs deliveries is stored sealed, and the `data` that contained it is not stored.
 */

import { createHash } from 'node:crypto'
import { isAddressOrNetwork } from '../../actors/kernel/networks.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { receiversOf } from '../../actors/receive-urls/decide.ts'
import type { ReceiverFacts } from '../../actors/receive-urls/receive-urls.ts'
import type { Asked, Plan, ReadPlans, Services } from '../command/plan.ts'
import { type DataOf, type Verified, withoutData } from '../command/verified.ts'
import type { Random } from '../platform.ts'
import type { ReadRequest } from '../reads/read.ts'
import { receiverView } from './reads.ts'
import { webhookKey } from './signature.ts'

const ownActor = ({ signer }: Verified) => ({ actor: receiversOf(signer.id) })

const create: Plan<'receiver.create'> = {
  to: ownActor,
  check: ({ command, data }) => faultOf(data, command.room !== undefined && command.room !== ''),
  args: ({ command, data }, { random }) => ({ ...freshSecret(random), ...chosen(data, command.room ?? '') }),
  ask: (verified, services, pass) => {
    const kept = keptOf(verified, services)
    maySpeak(verified, services, (args) => pass(args && { args: { ...args, sealed: kept.sealed }, ...kept.signed }))
  },
  show: ({ signer }, { at, facts }, _actor, isDuplicate, { secret }) => {
    const { receiver: id, ...chosen } = facts
    const delegation = signer.delegate?.id ?? ''
    const made = receiverView({ id, facts: chosen, createdAt: at, count: 0, deletedAt: 0, delegation })
    return { values: { receiver: { ...made, ...address(id, secret, isDuplicate) } } }
  },
}

const rotate: Plan<'receiver.rotate'> = {
  to: ownActor,
  args: ({ command }, { random }) => ({ ...freshSecret(random), receiver: command.target }),
  show: (_verified, { facts }, _actor, isDuplicate, { secret }) => {
    const id = facts.receiver
    return { values: { receiver: { id, ...address(id, secret, isDuplicate) } } }
  },
}

const remove: Plan<'receiver.delete'> = {
  to: ownActor,
  args: ({ command }) => ({ receiver: command.target }),
  show: (_verified, { facts }) => ({ values: { receiver: { id: facts.receiver, deleted: true } } }),
}

export const receiversPlans = {
  'receiver.create': create,
  'receiver.rotate': rotate,
  'receiver.delete': remove,
}

/** Hex: the stored hash of a secret, which has 256 random bits, too many to guess. */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

function freshSecret(random: Random) {
  const secret = random(32).toString('base64url')
  return { secret, hash: secretHash(secret) }
}

function address(id: string, secret: unknown, isDuplicate: boolean) {
  return isDuplicate ? { secret_shown: true } : { url: `/in/${id}/${secret}` }
}

function chosen(data: DataOf<'receiver.create'>, room: string): Omit<ReceiverFacts, 'sealed'> {
  return {
    label: data.label ?? '',
    room,
    dedupe: (data.dedupe_header ?? '').toLowerCase(),
    allow: data.allow_from ?? [],
    post: data.post ?? false,
  }
}

/** The stored form of the secret that signs deliveries, and of the bytes that contain it. */
function keptOf(
  verified: Verified<'receiver.create'>,
  { hooks }: Services,
): { sealed: string; signed: Pick<Asked, 'by'> } {
  const { command, data, signer } = verified
  const { hmac_secret: secret = '' } = data
  if (secret === '') return { sealed: '', signed: {} }
  const { sealed, mark } = hooks.sealedReceived(signer.id, secret, command.data ?? '')
  return { sealed, signed: { by: withoutData(verified, mark) } }
}

function faultOf(data: DataOf<'receiver.create'>, hasRoom: boolean): Refusal | undefined {
  const { hmac_secret: secret = '', allow_from: allowed = [], post = false } = data
  if (post && !hasRoom)
    return refusal('missing_field', 'with "post" each item is posted into a room: name it as room', 'room')
  if (!post && hasRoom)
    return refusal(
      'invalid_field',
      'room is where items are posted: set "post" to true in data, or leave room out',
      'room',
    )
  if (secret !== '' && !/^[\x20-\x7e]*$/.test(secret))
    return refusal('invalid_field', '"hmac_secret" must be printable ASCII', 'data.hmac_secret')
  if (secret !== '' && webhookKey(secret) === undefined)
    return refusal(
      'invalid_field',
      '"hmac_secret" must be whsec_ followed by base64 of 16 to 128 bytes',
      'data.hmac_secret',
    )
  const bad = allowed.find((each) => !isAddressOrNetwork(each))
  if (bad === undefined) return undefined
  const message = `"allow_from" must contain IP addresses and networks such as 192.0.2.0/24, but one is ${JSON.stringify(bad)}`
  return refusal('invalid_field', message, 'data.allow_from')
}

/** The creator must be allowed to post where items are posted. The actor refuses, so that a retry stays a retry. */
function maySpeak({ command, signer }: Verified, services: Services, pass: (args: object | undefined) => void): void {
  const room = command.room ?? ''
  if (room === '') return pass({})
  services.read({ op: 'receiver.room', args: { room }, reader: signer.id }, (found) => {
    if (found === undefined) return pass(undefined)
    if (found.ok) return pass({})
    const { code, message } = 'refusal' in found ? found.refusal : found.absent
    pass({ barred: [code, message] })
  })
}

/** The actor of their creator holds the receive URLs. */
export const receiversReadPlans = {
  'receiver.list': { actor: ({ reader }: ReadRequest) => receiversOf(reader) },
  'receiver.items': { actor: ({ reader }: ReadRequest) => receiversOf(reader) },
} satisfies ReadPlans
