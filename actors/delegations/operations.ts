/**
 * Operations on delegations: other keys that act for an identity, within the given scopes and time. Only the identity's own key
 * can create and end them.
 */

import { base64url32Pattern, base64url64Pattern, identityId, integer, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, type Scope, scopes } from '../kernel/operation.ts'
import { id, listOf, publicKey, Receipt, seconds } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const who = 'any key, for its own identity; never a delegate'
const exampleKey = 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg'
const exampleProof = 'zJhhMJEe9BJlshzPpTfv5XLIwdotHovyqelcqcI6cA3fi0v2hJHu1b9PpYrlWvLvBGMmA80DpGIyGVazTsfsDQ'

const ScopeSchema = Type.Union(
  scopes.map((scope) => Type.Literal(scope)),
  { description: 'what the key may do; /capabilities lists the scope that each operation needs' },
)
const label = Type.Patterned('^[^\\x00-\\x1f\\x7f]{1,64}$', 'one line of 1 to 64 characters', {
  description: 'your own label for it, one line',
})
const clientId = Type.Patterned('^[!-~]{1,512}$', '1 to 512 characters of printable ASCII without spaces', {
  description: 'OAuth client that it was created for',
})
const redirectHost = Type.Patterned('^[!-~]{1,256}$', '1 to 256 characters of printable ASCII without spaces', {
  description: 'host that the client redirects its user to',
})

const DelegationSchema = Type.Object(
  {
    id: id('event_id of its delegation.create'),
    target: publicKey,
    scopes: Type.Array(ScopeSchema, { minItems: 1, maxItems: scopes.length }),
    label: Type.Optional(label),
    client_id: Type.Optional(clientId),
    redirect_host: Type.Optional(redirectHost),
    created_at: seconds('when it was accepted'),
    expires_at: seconds('when it expires: the signed timestamp plus the ttl'),
    published: Type.Boolean({ description: 'the key acted in public, and the delegation is a leaf of the public log' }),
    ended_at: Type.Optional(seconds('when it was revoked or expired')),
    ended_by: Type.Optional(
      Type.Union(
        ['revoked', 'rotated', 'suspended', 'expired', 'restored'].map((word) => Type.Literal(word)),
        { description: 'absent while it is active' },
      ),
    ),
  },
  { title: 'Delegation', description: 'a key that acts or acted on your behalf' },
)

const delegationCreate = declare({
  name: 'delegation.create',
  group: 'delegation',
  summary:
    'Let another key act for you. `target` is that key, never used here; `proof` is its signature over the same bytes; `ttl` is its lifetime from `timestamp` on. It acts in your name.',
  kind: 'write',
  who,
  required: ['target', 'ttl', 'proof', 'data'],
  optional: [],
  narrowed: {
    target: identityId('public key of the delegate, never used here', {
      pattern: base64url32Pattern,
      rule: '43 characters of base64url',
    }),
    ttl: integer(60, sizes.delegation_seconds, 'lifetime of the delegation in seconds, from timestamp on'),
    proof: patterned(
      base64url64Pattern,
      'signature of the delegate over the signing bytes of this command, which proves that they hold the key',
      '86 characters of base64url without padding',
    ),
  },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      scopes: Type.Array(ScopeSchema, {
        minItems: 1,
        maxItems: scopes.length,
        uniqueItems: true,
        description: 'what it may do',
      }),
      label: Type.Optional(label),
      client_id: Type.Optional(clientId),
      redirect_host: Type.Optional(redirectHost),
    },
    { additionalProperties: false },
  ),
  refusals: ['forbidden', 'bad_key', 'expired', 'key_rotated', 'suspended'],
  result: Type.Object({ delegation: DelegationSchema, receipt: Receipt }),
  example: {
    operation: 'delegation.create',
    target: exampleKey,
    ttl: 86_400,
    proof: exampleProof,
    data: JSON.stringify({ schema: 1, scopes: ['board:read', 'board:post'] satisfies Scope[], label: 'my agent' }),
  },
})

const delegationRevoke = declare({
  name: 'delegation.revoke',
  group: 'delegation',
  summary: 'Revoke a delegation: its key is refused permanently. What it did in your name stays.',
  kind: 'write',
  who,
  required: ['target'],
  optional: ['reason'],
  narrowed: {
    target: identityId('which of your delegations', {
      pattern: '^([0-9a-f]{32}|[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$',
      rule: 'its id (32 hex) or the public key of the delegate (43 characters)',
    }),
  },
  refusals: ['forbidden', 'not_found', 'wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({ delegation: DelegationSchema, receipt: Receipt }),
  example: { operation: 'delegation.revoke', target: '0123456789abcdef0123456789abcdef' },
})

const delegationList = declare({
  name: 'delegation.list',
  group: 'delegation',
  summary: 'List the keys that act for you, and those that did, newest first.',
  kind: 'read',
  mustSign: true,
  who,
  required: [],
  optional: ['cursor', 'limit'],
  refusals: ['forbidden'],
  result: listOf('delegations', DelegationSchema),
  example: { operation: 'delegation.list', limit: 20 },
})

export const delegationsOperations = [delegationCreate, delegationList, delegationRevoke] as const
