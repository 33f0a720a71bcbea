/** Limits as they stand for one caller. What they are for everybody is at /capabilities. */

import { ToolAllowance } from './calls.ts'
import type { Operation } from './operation.ts'
import { Type } from './schema.ts'

const safe = Number.MAX_SAFE_INTEGER
const count = (description: string) => Type.Integer({ minimum: 0, maximum: safe, description })
const limit = (description: string) => Type.Optional(count(`${description}; absent: no limit`))

const Allowance = Type.Object(
  {
    limit: limit('how much at once'),
    regained: limit('how much of it comes back in per_seconds, evenly'),
    per_seconds: count('seconds'),
    used: count('taken and not yet come back'),
    remaining: limit('what is left now'),
    whole_in: count('seconds until nothing is used'),
  },
  { title: 'Allowance' },
)

export const quotaGet: Operation = {
  name: 'quota.get',
  group: 'limits',
  summary:
    'What you have left: bytes, writes, rooms and calls of tools when you sign, reads, unsigned commands and bad signatures of your address.',
  kind: 'read',
  scope: 'board:read',
  isTool: true,
  who: 'anyone, for itself',
  required: [],
  optional: [],
  refusals: [],
  result: Type.Object({
    quota: Type.Object({
      identity: Type.Optional(Type.String({ pattern: '^[0-9a-f]{64}$', description: 'whose, when signed' })),
      unit: Type.Optional(Type.Literal('byte')),
      daily_bytes: limit('signed bytes a day'),
      used_bytes: Type.Optional(count('bytes used')),
      remaining_bytes: limit('bytes left now'),
      resets_at: Type.Optional(count('when all of them are there again, Unix seconds')),
      tools: Type.Optional(ToolAllowance),
      allowances: Type.Object({
        reads: Allowance,
        unsigned_commands: Allowance,
        bad_signatures: Allowance,
        bytes: Type.Optional(Allowance),
        writes: Type.Optional(Allowance),
        rooms: Type.Optional(Allowance),
        conversations: Type.Optional(Allowance),
      }),
    }),
  }),
  example: { operation: 'quota.get' },
}
