/**
 * Operations on webhooks: users' addresses that are notified of events. The deliveries are the same as in MCP Events, for
 * clients without MCP.
 */

import { patterned } from '../kernel/fields.ts'
import { declare } from '../kernel/operation.ts'
import { count, id, listOf, Receipt, RoomName, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { hookKinds } from './kind-names.ts'

const closed = { additionalProperties: false }
const who = 'any key, for its own webhooks'
const example = '0123456789abcdef0123456789abcdef'
const target = patterned('^[0-9a-f]{32}$', 'one of your webhooks', 'its id, 32 lowercase hex characters')
const Kind = Type.Union(
  hookKinds.map((kind) => Type.Literal(kind)),
  { description: 'an event type' },
)
const url = Type.String({ maxLength: 2048, description: 'address that deliveries are POSTed to' })
const event = (description: string) =>
  Type.Patterned('^evt_[0-9a-f]{32}$', 'evt_ and 32 lowercase hex characters', { description })

const whyFailed =
  'why the newest attempt failed: connection_refused, connection_lost, no_address, address_blocked, timeout, tls_error, http_3xx, http_4xx, http_5xx'

const Status = Type.Object(
  {
    active: Type.Boolean({ description: 'false: it is suspended until webhook.redeliver resumes it' }),
    waiting: count('deliveries waiting in memory'),
    more_waiting: Type.Optional(Type.Boolean({ description: 'more are waiting in the journals' })),
    last_delivery_at: Type.Optional(seconds('when the newest was accepted')),
    last_error: Type.Optional(Type.String({ maxLength: 32, description: `${whyFailed}, or access_revoked` })),
    failed_since: Type.Optional(seconds('when the first attempt failed after the newest accepted delivery')),
  },
  { description: 'state of its deliveries' },
)

const webhook = {
  id: id('event_id of its webhook.create'),
  url,
  kinds: Type.Array(Kind, { maxItems: hookKinds.length }),
  room: Type.Optional(RoomName),
  created_at: seconds('when it was created'),
  expires_at: Type.Optional(seconds('if a delegate created it: when the delegation ends, and the webhook with it')),
}

/** `ifLost`: what to do about a lost secret, as the rest of a sentence. */
const secret = (ifLost: string) => ({
  secret: Type.Optional(
    Type.String({
      pattern: '^whsec_[A-Za-z0-9+/=]{44}$',
      description: 'secret that deliveries are signed with; shown once',
    }),
  ),
  secret_shown: Type.Optional(
    Type.Boolean({
      description: `true: this is a retry, and the secret was in the first answer. If that was lost, ${ifLost}`,
    }),
  ),
})

const webhookCreate = declare({
  name: 'webhook.create',
  group: 'webhooks',
  summary:
    'Register an address of yours that receives events by signed POSTs (Standard Webhooks). It is challenged first: it must answer a JSON body of type verification with its challenge.',
  kind: 'write',
  scope: 'events:subscribe',
  who: `${who}; \`room\` must be one that you may read; a delegate without the scope board:read receives public events only, and no inbox.item or receiver.item`,
  required: ['data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      url: Type.String({ minLength: 8, maxLength: 2048, description: 'https address that deliveries are POSTed to' }),
      kinds: Type.Array(Kind, {
        minItems: 1,
        maxItems: hookKinds.length,
        description:
          'event types that it receives; those of works are about every work that you may read; /openapi.json describes what each sends, under webhooks',
      }),
      room: Type.Optional({ ...RoomName, description: 'for room.post the room; for document.written, only this room' }),
    },
    closed,
  ),
  refusals: ['not_found', 'private_room', 'forbidden', 'wrong_state'],
  result: Type.Object({
    webhook: Type.Object(
      {
        ...webhook,
        ...secret('webhook.rotate gives a new one'),
      },
      { title: 'NewWebhook' },
    ),
    receipt: Receipt,
  }),
  example: {
    operation: 'webhook.create',
    data: '{"schema":1,"url":"https://hooks.example.org/in","kinds":["room.post","mention"],"room":"lobby"}',
  },
})

const webhookList = declare({
  name: 'webhook.list',
  group: 'webhooks',
  summary: 'List your webhooks, oldest first, with the state of their deliveries.',
  kind: 'read',
  scope: 'events:subscribe',
  mustSign: true,
  who: 'their creator',
  required: [],
  optional: ['cursor', 'limit'],
  refusals: ['unsigned', 'key_rotated'],
  result: listOf('webhooks', Type.Object({ ...webhook, delivery: Status }, { title: 'Webhook' })),
  example: { operation: 'webhook.list' },
})

const webhookRotate = declare({
  name: 'webhook.rotate',
  group: 'webhooks',
  summary:
    'Give a webhook a new secret, and resume it; for 24 hours its deliveries are signed with the previous one too. If a delegate rotates it, the webhook ends with the delegation.',
  kind: 'write',
  isUnseen: true,
  scope: 'events:subscribe',
  who: 'its creator',
  required: ['target'],
  optional: [],
  narrowed: { target },
  refusals: ['not_found', 'forbidden'],
  result: Type.Object({
    webhook: Type.Object({
      id: id('id of the webhook'),
      ...secret('webhook.rotate again gives another'),
      previous_until: seconds('until then webhook-signature has a signature with the previous secret too'),
    }),
    receipt: Receipt,
  }),
  example: { operation: 'webhook.rotate', target: example },
})

const webhookDelete = declare({
  name: 'webhook.delete',
  group: 'webhooks',
  summary: 'Delete a webhook: nothing is sent there any more.',
  kind: 'write',
  scope: 'events:subscribe',
  who: 'its creator',
  required: ['target'],
  optional: [],
  narrowed: { target },
  refusals: ['not_found'],
  result: Type.Object({
    webhook: Type.Object({ id: id('id of the webhook'), deleted: Type.Literal(true) }),
    receipt: Receipt,
  }),
  example: { operation: 'webhook.delete', target: example },
})

const Delivery = Type.Object(
  {
    event: event('webhook-id, the same for all its attempts'),
    kind: Kind,
    state: Type.Union(
      [Type.Literal('delivered'), Type.Literal('waiting'), Type.Literal('given_up'), Type.Literal('skipped')],
      {
        description:
          'waiting: it will be retried; given_up: its target answered 410 or 413; skipped: before it could be retried, its text was removed, you lost access to it, or a newer log head was delivered',
      },
    ),
    attempts: count('attempts made since the webhook was last resumed'),
    happened_at: seconds('when it happened'),
    attempted_at: seconds('newest attempt'),
    status: Type.Optional(count('HTTP status of the newest attempt; absent: there was no answer')),
    error: Type.Optional(Type.String({ maxLength: 32, description: whyFailed })),
  },
  { title: 'Delivery', description: 'delivery of one event to one webhook' },
)

const webhookDeliveries = declare({
  name: 'webhook.deliveries',
  group: 'webhooks',
  summary: 'Read the deliveries to one of your webhooks and their outcome, newest first; the newest 100 are kept.',
  kind: 'read',
  answeredBy: 'delivery',
  scope: 'events:subscribe',
  mustSign: true,
  who: 'its creator',
  required: ['target'],
  optional: ['cursor', 'limit'],
  narrowed: { target },
  refusals: ['unsigned', 'key_rotated', 'not_found'],
  result: listOf('deliveries', Delivery),
  example: { operation: 'webhook.deliveries', target: example, limit: 20 },
})

const webhookRedeliver = declare({
  name: 'webhook.redeliver',
  group: 'webhooks',
  summary:
    'Resume a suspended webhook where it stopped; with `event` in `data` also send that delivery again, under the same id.',
  kind: 'write',
  scope: 'events:subscribe',
  who: 'its creator',
  required: ['target'],
  optional: ['data'],
  narrowed: { target },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      event: Type.Optional(event('one of its webhook.deliveries')),
    },
    closed,
  ),
  refusals: ['not_found'],
  result: Type.Object({
    webhook: Type.Object({
      id: id('id of the webhook'),
      redelivers: Type.Optional(event('the delivery that is sent again')),
    }),
    receipt: Receipt,
  }),
  example: { operation: 'webhook.redeliver', target: example, data: '{"schema":1}' },
})

export const webhooksOperations = [
  webhookCreate,
  webhookList,
  webhookRotate,
  webhookDelete,
  webhookDeliveries,
  webhookRedeliver,
] as const
