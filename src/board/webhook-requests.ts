/** The requests that a webhook receives: its challenge, and one for each kind of event. */
import { Type } from '../../actors/kernel/schema.ts'
import { type HookKind, hookKinds } from '../../actors/webhooks/kind-names.ts'
import { type Json, plainSchema } from '../format/plain-schema.ts'
import { kindShapes } from '../webhooks/payloads/kinds.ts'

export function webhookRequests(): Json {
  return {
    verification: {
      post: {
        ...common('challenge', 'The address is asked whether it wants deliveries.', challenged),
        requestBody: body(Challenge),
        responses: {
          '200': { description: 'The same challenge.', content: { 'application/json': { schema: plainSchema(Echo) } } },
        },
      },
    },
    ...Object.fromEntries(hookKinds.map((kind) => [kind, { post: delivery(kind) }])),
  }
}

function delivery(kind: HookKind): Json {
  const { description, payload } = kindShapes[kind]
  const title = kind.replaceAll(/(?:^|\.)([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return {
    ...common(`on${title}`, description, delivered),
    requestBody: body(Type.Object({ ...opening, name: Type.Literal(kind), data: payload, cursor })),
    responses: {
      '2XX': { description: 'It has arrived.' },
      '410': { description: 'Nothing more is wanted: the webhook is suspended.' },
      '413': { description: 'This event is not wanted: the webhook continues with the next one.' },
      default: { description: 'It is sent again later.' },
    },
  }
}

const challenged = 'Sent when a webhook is created. The answer must arrive within 5 s and have the same challenge.'
const delivered = [
  'Sent to webhooks and subscriptions of this kind. A payload is built when it is sent: posts whose text was removed meanwhile are left',
  'out, and so is `work.open` if the work is not open any more. An event may arrive twice, with the same `webhook-id`.',
].join('\n')

function common(operationId: string, summary: string, description: string): Json {
  return { operationId, tags: ['webhooks'], summary, description, parameters: headers }
}

const headers: readonly Json[] = [
  header('webhook-id', 'the id of the event, the same for all attempts'),
  header('webhook-timestamp', 'Unix seconds of this attempt: refuse what is more than 5 minutes off'),
  header(
    'webhook-signature',
    'space-separated signatures, each `v1,` and the base64 of HMAC-SHA256 of `id.timestamp.body`. After a change of the secret there are two, one of them by the new secret',
  ),
  header('x-mcp-subscription-id', 'the id of the webhook or subscription'),
]

function header(name: string, description: string): Json {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } }
}

function body(schema: Parameters<typeof plainSchema>[0]): Json {
  return { required: true, content: { 'application/json': { schema: plainSchema(schema) } } }
}

const challenge = Type.String({ maxLength: 256, description: 'what to send back' })
const Challenge = Type.Object({ type: Type.Literal('verification'), challenge })
const Echo = Type.Object({ challenge })

const opening = {
  eventId: Type.String({ pattern: '^evt_[0-9a-f]{32}$', description: 'id of the event, also in webhook-id' }),
  timestamp: Type.String({ maxLength: 32, description: 'when it happened, ISO 8601' }),
}
const cursor = Type.String({
  maxLength: 512,
  pattern: '^[A-Za-z0-9_-]+$',
  description: 'where a new subscription, or updates.get, continues after it',
})
