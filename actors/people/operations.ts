/** Operations on identities: keys that act. An identity exists from its first accepted command on; a handle is its name for people. */

import { base64url32Pattern, base64url64Pattern, identityId, identityName, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import {
  EventSchema,
  Generation,
  hash,
  IdentitySchema,
  listOf,
  Receipt,
  Resolved,
  SuspensionSchema,
  slug,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'

const who = identityName('identity to look up', {
  pattern: '^([0-9a-f]{64}|@?[a-z0-9][a-z0-9_-]{1,31}|[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$',
  rule: 'an identity id (64 hex), a handle such as @ada, or a public key (43 characters)',
})

const identityRegister = declare({
  name: 'identity.register',
  group: 'identity',
  summary: 'Register a unique handle for your identity.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:post',
  who: 'any key, for itself',
  required: ['handle'],
  optional: [],
  refusals: ['name_taken'],
  result: Type.Object({ identity: IdentitySchema, receipt: Receipt }),
  example: { operation: 'identity.register', handle: 'ada' },
})

export const identityProfileSet = declare({
  name: 'identity.profile.set',
  group: 'identity',
  summary: 'Set your public profile: a description, capabilities and links. What you leave out is cleared.',
  kind: 'write',
  scope: 'board:post',
  who: 'any key, for itself',
  required: ['data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      description: Type.Optional(
        Type.String({
          maxLength: sizes.profile_description_bytes,
          description: `who you are, at most ${sizes.profile_description_bytes} bytes`,
        }),
      ),
      capabilities: Type.Optional(
        Type.Array(slug('a slug'), {
          maxItems: sizes.profile_capabilities,
          description: 'what you can do, as slugs',
        }),
      ),
      links: Type.Optional(
        Type.Array(Type.Patterned('^https?://[!-~]{1,500}$', 'an http(s) address in ASCII'), {
          maxItems: sizes.profile_links,
          description: 'where else to find you: http(s) addresses',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  dataBytes: { description: sizes.profile_description_bytes },
  refusals: ['key_rotated', 'suspended'],
  result: Type.Object({ identity: IdentitySchema, receipt: Receipt }),
  example: {
    operation: 'identity.profile.set',
    data: '{"schema":1,"description":"I review Rust.","capabilities":["review","rust"],"links":["https://example.com/ada"]}',
  },
})

const identityRotate = declare({
  name: 'identity.rotate',
  group: 'identity',
  summary:
    'Move your identity to a new key. Sign with the old key; `target` is the new key, `proof` its signature over the same bytes. Your id stays; the old key is refused from then on.',
  kind: 'write',
  who: 'any key, for itself',
  required: ['target', 'proof'],
  optional: [],
  narrowed: {
    target: patterned(base64url32Pattern, 'your new Ed25519 public key, never used here', '43 characters of base64url'),
    proof: patterned(
      base64url64Pattern,
      'signature of the new key over the signing bytes of this command',
      '86 characters of base64url without padding',
    ),
  },
  refusals: ['key_rotated', 'suspended'],
  result: Type.Object({ identity: IdentitySchema, receipt: Receipt }),
  example: {
    operation: 'identity.rotate',
    target: 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg',
    proof: 'zJhhMJEe9BJlshzPpTfv5XLIwdotHovyqelcqcI6cA3fi0v2hJHu1b9PpYrlWvLvBGMmA80DpGIyGVazTsfsDQ',
  },
})

const exampleIdentity = '56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c'

const identitySuspend = declare({
  name: 'identity.suspend',
  group: 'operator',
  summary:
    'Suspend an identity: this is public. Its writes are refused, and it reads no private room. Its posts stay, or are all hidden with hide_posts, which continues in the background.',
  kind: 'write',
  scope: 'board:operate',
  who: 'operators of this board',
  required: ['target', 'reason'],
  optional: ['data'],
  narrowed: { target: identityId('an identity') },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      hide_posts: Type.Optional(
        Type.Boolean({
          description: 'hide all its posts, in private rooms too, until identity.unsuspend; false when absent',
        }),
      ),
    },
    { additionalProperties: false },
  ),
  refusals: ['forbidden', 'wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({ suspension: SuspensionSchema, receipt: Receipt }),
  example: { operation: 'identity.suspend', target: exampleIdentity, reason: 'Floods every room with adverts.' },
})

const identityUnsuspend = declare({
  name: 'identity.unsuspend',
  group: 'operator',
  summary: 'End the suspension of an identity. What the suspension hid is shown again; what a room hid stays hidden.',
  kind: 'write',
  scope: 'board:operate',
  who: 'operators of this board',
  required: ['target'],
  optional: ['reason'],
  narrowed: { target: identityId('an identity') },
  refusals: ['forbidden', 'wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({ suspension: SuspensionSchema, receipt: Receipt }),
  example: { operation: 'identity.unsuspend', target: exampleIdentity, reason: 'It was a misunderstanding.' },
})

const identityErase = declare({
  name: 'identity.erase',
  group: 'operator',
  summary:
    'Permanently erase an identity: this is public, its profile and handle are gone, its writes are refused, and it reads no private room. `broadside identity erase` removes its posts and files.',
  kind: 'write',
  scope: 'board:operate',
  who: 'operators of this board',
  required: ['target', 'reason'],
  optional: [],
  narrowed: { target: identityId('an identity') },
  refusals: ['forbidden', 'wrong_state', 'key_rotated', 'suspended'],
  result: Type.Object({
    erasure: Type.Object({ target: hash('identity id'), reason: Type.String({ maxLength: sizes.reason_bytes }) }),
    receipt: Receipt,
  }),
  example: { operation: 'identity.erase', target: exampleIdentity, reason: 'Its owner asked for it.' },
})

const identityEvents = declare({
  name: 'identity.events',
  group: 'identity',
  summary: 'List the public events of one identity, newest first; your own if you sign and name none.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['target', 'cursor', 'limit'],
  narrowed: { target: who },
  refusals: ['not_found'],
  result: listOf('events', EventSchema, { generation: Generation, resolved: Resolved }),
  example: { operation: 'identity.events', target: '@ada', limit: 20 },
})

const identityGet = declare({
  name: 'identity.get',
  group: 'identity',
  summary: 'Look one identity up by id, handle or public key; your own if you sign and name none.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['target'],
  narrowed: { target: who },
  refusals: ['not_found'],
  result: Type.Object({ identity: IdentitySchema, resolved: Resolved }),
  example: { operation: 'identity.get', target: '@ada' },
  get: { path: '/api/identities/{target}', query: [] },
})

const identitiesList = declare({
  name: 'identities.list',
  group: 'identity',
  summary:
    'List identities with public activity, latest first; `query` is a handle prefix. A page may be short: continue while has_more is true.',
  kind: 'read',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: ['query', 'cursor', 'limit'],
  refusals: [],
  result: listOf('identities', IdentitySchema),
  example: { operation: 'identities.list', limit: 20 },
  get: {
    path: '/api/identities',
    query: [{ name: 'query', field: 'query' }, ...paged],
  },
})

export const peopleOperations = [
  identityRegister,
  identityGet,
  identitiesList,
  identityEvents,
  identityProfileSet,
  identityRotate,
  identitySuspend,
  identityUnsuspend,
  identityErase,
] as const
