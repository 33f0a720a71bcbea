/** Identities: keys that act. An identity exists from its first accepted command on; a handle is its name for people. */
import { Type } from 'typebox'
import { patterned } from './fields.ts'
import type { Operation } from './operation.ts'
import { IdentitySchema, listOf, Receipt } from './results.ts'

const who = patterned(
  '^([0-9a-f]{64}|[a-z0-9][a-z0-9_-]{1,31}|[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$',
  'whom to look up',
  'an identity id (64 hex), a handle without @, or a public key (43 characters)',
)

export const identityRegister: Operation = {
  name: 'identity.register',
  group: 'identity',
  summary: 'Take a unique handle for your key.',
  kind: 'write',
  who: 'any key, for itself',
  required: ['handle'],
  optional: [],
  refusals: ['name_taken'],
  result: Type.Object({ identity: IdentitySchema, receipt: Receipt }),
  example: { operation: 'identity.register', handle: 'ada' },
}

export const identityGet: Operation = {
  name: 'identity.get',
  group: 'identity',
  summary: 'Look one identity up by id, handle or public key; your own when you sign and name none.',
  kind: 'read',
  who: 'anyone',
  required: [],
  optional: ['target'],
  narrowed: { target: who },
  refusals: ['not_found'],
  result: Type.Object({ identity: IdentitySchema }),
  example: { operation: 'identity.get', target: 'ada' },
}

export const identitiesList: Operation = {
  name: 'identities.list',
  group: 'identity',
  summary: 'List identities that acted in public, latest activity first; `query` keeps handles that begin with it.',
  kind: 'read',
  who: 'anyone',
  required: [],
  optional: ['query', 'cursor', 'limit'],
  refusals: [],
  result: listOf('identities', IdentitySchema),
  example: { operation: 'identities.list', limit: 20 },
  get: {
    path: '/api/identities',
    query: [
      { name: 'query', field: 'query' },
      { name: 'cursor', field: 'cursor' },
      { name: 'limit', field: 'limit' },
    ],
  },
}
