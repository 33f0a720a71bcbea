/** Operations on limits: the current limits of one caller, and raises by an operator. The general limits are at /capabilities. */

import { bounded, integer } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { factorMaximum, raisedMaximum } from '../kernel/limits-given.ts'
import { declare } from '../kernel/operation.ts'
import { listOf, Receipt } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { ToolAllowance } from '../tool-calls/operations.ts'

const safe = Number.MAX_SAFE_INTEGER
const count = (description: string) => Type.Integer({ minimum: 0, maximum: safe, description })
const limit = (description: string) => Type.Optional(count(`${description}; absent: no limit`))
const hashPattern = '^[0-9a-f]{64}$'

const Allowance = Type.Object(
  {
    limit: limit('how much may be used at once'),
    regained: limit('how much of it is restored in per_seconds, evenly'),
    per_seconds: count('seconds'),
    used: count('used and not yet restored'),
    remaining: limit('what is left now'),
    whole_in: count('seconds until it is fully restored'),
  },
  { title: 'Allowance' },
)

const Held = Type.Object(
  { limit: limit('how many may be open at once'), open: count('how many are open') },
  { title: 'OpenPlaces' },
)

/** Everything that is counted per network. */
const NetworkAllowances = Type.Object(
  {
    network: Type.String({ maxLength: 64, description: 'an IPv4 address, or the /64 or the /48 of an IPv6 one' }),
    allowances: Type.Object({
      reads: Allowance,
      unsigned_commands: Allowance,
      bad_signatures: Allowance,
      writes: Allowance,
      bytes: Allowance,
      new_identities: Allowance,
      request_ids: Allowance,
      rooms: Allowance,
      conversations: Allowance,
      deliveries: Allowance,
      export_starts: Allowance,
      client_registrations: Allowance,
      sign_ins: Allowance,
      probes: Allowance,
      verifications: Allowance,
    }),
    places: Type.Object(
      {
        streams_per_address: Type.Optional(Held),
        waits_per_address: Type.Optional(Held),
        downloads_per_address: Type.Optional(Held),
        exports_per_network: Type.Optional(Held),
      },
      { description: 'what this network has open now, by name of the limit; absent: not counted' },
    ),
  },
  { title: 'NetworkAllowances' },
)

const quotaGet = declare({
  name: 'quota.get',
  group: 'limits',
  summary:
    'What remains of each rate and quota, when it is fully restored, and what is open: for your identity when you sign, and for the network of your address.',
  kind: 'read',
  answeredBy: 'main',
  scope: 'board:read',
  who: 'anyone, for itself',
  required: [],
  optional: [],
  refusals: [],
  result: Type.Object({
    quota: Type.Object({
      identity: Type.Optional(Type.String({ pattern: hashPattern, description: 'the signer, when signed' })),
      unit: Type.Optional(Type.Literal('byte')),
      daily_bytes: limit('signed bytes per day'),
      used_bytes: Type.Optional(count('bytes used')),
      remaining_bytes: limit('bytes left now'),
      resets_at: Type.Optional(count('when the quota is fully restored, Unix seconds')),
      tools: Type.Optional(ToolAllowance),
      allowances: Type.Object({
        reads: Allowance,
        unsigned_commands: Allowance,
        bad_signatures: Allowance,
        bytes: Type.Optional(Allowance),
        writes: Type.Optional(Allowance),
        rooms: Type.Optional(Allowance),
        conversations: Type.Optional(Allowance),
        probes: Type.Optional(Allowance),
      }),
      networks: Type.Array(NetworkAllowances, {
        minItems: 1,
        maxItems: 2,
        description: 'the network of your address, and the larger one around it',
      }),
      counts_apart: Type.Optional(
        Type.Boolean({
          description: 'you are not counted in these networks: you signed in, or an operator raised your limits',
        }),
      ),
      attachment_bytes: Type.Optional(
        Type.Object({
          limit: limit('total bytes that your attachments may use'),
          used: count('bytes of your current attachments'),
          remaining: limit('bytes left'),
        }),
      ),
    }),
  }),
  example: { operation: 'quota.get' },
})

const target = bounded(
  256,
  'whose limits',
  'an identity id of 64 lowercase hex characters, or an address or network such as 192.0.2.0/24 or 2001:db8::/32',
)

const Target = Type.String({ maxLength: 64, description: 'identity id, address or network' })

const Grant = Type.Object(
  {
    id: Type.String({ pattern: '^[0-9a-f]{32}$', description: 'event id of its limits.grant' }),
    target: Target,
    factor: Type.Optional(
      Type.Integer({ minimum: 1, maximum: factorMaximum, description: 'multiplier of the limits' }),
    ),
    exempt: Type.Optional(Type.Literal(true, { description: 'no rate or quota applies' })),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes })),
    granted_by: Type.String({ pattern: hashPattern }),
    created_at: count('Unix seconds'),
    expires_at: count('Unix seconds'),
  },
  { title: 'LimitGrant' },
)

const limitsGrant = declare({
  name: 'limits.grant',
  group: 'limits',
  summary:
    'Raise the rates and quotas of an identity, an address or a network for a time, or lift them. A grant replaces an earlier one. An identity with a grant is counted separately from its network.',
  kind: 'write',
  who: 'operators of this board',
  required: ['target', 'ttl', 'data'],
  optional: ['reason'],
  narrowed: { target, ttl: integer(60, sizes.limit_grant_seconds, 'how long, in seconds') },
  data: Type.Object(
    {
      schema: Type.Literal(1),
      factor: Type.Optional(
        Type.Integer({ minimum: 2, maximum: factorMaximum, description: 'multiplier of the limits; or use exempt' }),
      ),
      exempt: Type.Optional(Type.Literal(true, { description: 'no rate or quota applies; or use factor' })),
    },
    { additionalProperties: false },
  ),
  refusals: ['forbidden'],
  result: Type.Object({ grant: Grant, receipt: Receipt }),
  example: { operation: 'limits.grant', target: '192.0.2.0/24', ttl: 86_400, data: '{"schema":1,"factor":10}' },
})

const limitsRevoke = declare({
  name: 'limits.revoke',
  group: 'limits',
  summary: 'End a grant of higher limits early.',
  kind: 'write',
  who: 'operators of this board',
  required: ['target'],
  optional: ['reason'],
  narrowed: { target },
  refusals: ['forbidden', 'wrong_state'],
  result: Type.Object({
    target: Target,
    revoked: Type.Literal(true),
    receipt: Receipt,
  }),
  example: { operation: 'limits.revoke', target: '192.0.2.0/24' },
})

const limitsList = declare({
  name: 'limits.list',
  group: 'limits',
  summary: 'List the limits that are raised now: by grants, oldest first, and by the settings of the board.',
  kind: 'read',
  mustSign: true,
  who: 'operators of this board',
  required: [],
  optional: ['cursor', 'limit'],
  refusals: ['forbidden'],
  result: listOf('grants', Grant, {
    configured: Type.Array(
      Type.Object({
        target: Target,
        factor: Type.Optional(Type.Integer({ minimum: 1, maximum: factorMaximum })),
        exempt: Type.Optional(Type.Literal(true)),
      }),
      {
        maxItems: 2 * raisedMaximum,
        description: 'set by LIMITS; it applies until the board starts without it',
      },
    ),
  }),
  example: { operation: 'limits.list' },
})

export const limitsOperations = [quotaGet, limitsGrant, limitsRevoke, limitsList] as const
