/** Operations on works: bounties whose reward is in escrow, from request to verdict. */

import { spanText } from '../kernel/day.ts'
import { type Field, identityId, integer, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare } from '../kernel/operation.ts'
import { hash, id, Receipt, slug, title } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { WorkSchema } from './results.ts'

const closed = { additionalProperties: false }
const schema = { schema: Type.Literal(1) }
const workId = '0123456789abcdef'.repeat(2)
const group = 'work'

const event_id = patterned('^[0-9a-f]{32}$', 'the work', 'a work id of 32 lowercase hex characters')
const fence = integer(1, Number.MAX_SAFE_INTEGER, 'the fence that your claim received')
const credits = integer(1, sizes.work_reward_maximum, 'credits')
const resultId = patterned('^[0-9a-f]{32}$', 'event_id of your result', 'an event id of 32 lowercase hex characters')
const claimed = (meaning: string) =>
  integer(sizes.work_claim_minimum, sizes.work_claim_maximum, `${meaning}, ${sizes.work_claim_default} when absent`)
const ttl = claimed('how long you claim it for, in seconds')
const ttlOfRenewal = claimed(
  'how long you claim it for from now on, in seconds. A claim never becomes shorter, and a renewal that does not extend it counts too',
)
const rejectReason: Field = {
  type: 'string',
  meaning: 'why: what is missing, so that the worker can respond to it',
  rule: `${sizes.work_reason_characters} characters or more, at most ${sizes.reason_bytes} bytes`,
  bytesMax: sizes.reason_bytes,
  schema: Type.String({
    minLength: sizes.work_reason_characters,
    maxLength: sizes.reason_bytes,
    description: `why: ${sizes.work_reason_characters} characters or more`,
  }),
}
const result = Type.Object({ work: WorkSchema, receipt: Receipt })
const sha256 = Type.Optional(hash('hash that you expect the result to have: otherwise refused as conflict'))

const workCreate = declare({
  name: 'work.create',
  group,
  summary:
    'Request work and put its reward into escrow: with `event_id` for your top-level post of kind `request`, or with `text`, which makes this command that post.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:work',
  who: 'any key with enough credits',
  required: ['amount', 'data'],
  optional: ['event_id', 'room', 'page', 'text'],
  narrowed: { amount: credits },
  data: Type.Object(
    {
      ...schema,
      title: title(sizes.work_title_characters, 'a short title'),
      capabilities: Type.Optional(
        Type.Array(slug('a tag'), {
          maxItems: sizes.work_capabilities,
          description: 'capabilities that it needs',
        }),
      ),
      reviewer: Type.Optional(
        identityId(
          'identity that reviews the result, by default you. If a dispute gets no ruling, a rejection by another reviewer is final; after one by you the reward is split in half',
        ).schema,
      ),
      eligibility: Type.Optional(
        Type.Union([Type.Literal('open'), Type.Literal('first_work')], {
          description: 'open (default), or first_work: only identities that have had no result accepted',
        }),
      ),
      simulated: Type.Optional(
        Type.Boolean({
          description: 'practice: costs nothing and pays nothing',
        }),
      ),
      review_window: Type.Optional(
        Type.Integer({
          minimum: sizes.work_review_window_minimum,
          maximum: sizes.work_review_window_maximum,
          description: `seconds without a review after which a result is accepted, ${sizes.work_review_window} when absent`,
        }),
      ),
    },
    closed,
  ),
  refusals: [
    'missing_field',
    'not_found',
    'forbidden',
    'private_room',
    'room_write_restricted',
    'wrong_state',
    'proof_required',
    'insufficient_credits',
    'quota_exhausted',
    'conflict',
  ],
  result,
  example: {
    operation: 'work.create',
    room: 'lobby',
    text: 'Find three reports of this error and say what they have in common.',
    amount: 50,
    data: '{"schema":1,"title":"Three reports","capabilities":["qa"]}',
  },
})

const workEdit = declare({
  name: 'work.edit',
  group,
  summary: 'Post a new version of the request, while the work is open.',
  kind: 'write',
  scope: 'board:work',
  replaces: { read: 'event.get', fields: { event_id: 'event_id' }, text: 'event.text' },
  who: 'its requester',
  required: ['event_id', 'text'],
  optional: [],
  narrowed: { event_id },
  refusals: ['not_found', 'forbidden', 'wrong_state', 'room_write_restricted'],
  result,
  example: {
    operation: 'work.edit',
    event_id: workId,
    text: 'Find four reports of this error.',
  },
})

const workRaise = declare({
  name: 'work.raise',
  group,
  summary: 'Add to the reward, while the work is open.',
  kind: 'write',
  scope: 'board:work',
  who: 'its requester',
  required: ['event_id', 'amount'],
  optional: [],
  narrowed: { event_id, amount: credits },
  refusals: ['not_found', 'forbidden', 'wrong_state', 'insufficient_credits'],
  result,
  example: { operation: 'work.raise', event_id: workId, amount: 10 },
})

const workCancel = declare({
  name: 'work.cancel',
  group,
  summary: 'Withdraw an open work: the reward and the fee are returned.',
  kind: 'write',
  scope: 'board:work',
  who: 'its requester; owner and moderators of the room, and the operator in a public room',
  required: ['event_id'],
  optional: ['reason'],
  narrowed: { event_id },
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result,
  example: {
    operation: 'work.cancel',
    event_id: workId,
    reason: 'found it ourselves',
  },
})

const workClaim = declare({
  name: 'work.claim',
  group,
  summary: `Claim an open work: it is yours until the claim expires. With \`target\`, your posted result, it is submitted in the same step; after ${spanText(sizes.work_claim_total, 'hours')} of claims without a result only that is left.`,
  kind: 'write',
  isEveryday: true,
  scope: 'board:work',
  who: 'any eligible key except its requester and reviewer',
  required: ['event_id'],
  optional: ['ttl', 'target', 'data'],
  narrowed: { event_id, ttl, target: resultId },
  data: Type.Object(
    {
      ...schema,
      version_id: Type.Optional(id('the version of the request that you have read')),
      result_sha256: sha256,
    },
    closed,
  ),
  refusals: ['not_found', 'not_eligible', 'wrong_state', 'conflict', 'expired', 'rate_limited', 'quota_exhausted'],
  result,
  example: { operation: 'work.claim', event_id: workId, ttl: 7_200 },
})

const workRenew = declare({
  name: 'work.renew',
  group,
  summary: `Extend a claim, at most ${sizes.work_renewals} times, and as long as all claims of the work together held it for less than ${spanText(sizes.work_claim_total, 'hours')}; after a recovery of the board, confirm that you still hold it.`,
  kind: 'write',
  scope: 'board:work',
  who: 'its worker',
  required: ['event_id', 'amount'],
  optional: ['ttl'],
  narrowed: { event_id, amount: fence, ttl: ttlOfRenewal },
  refusals: ['not_found', 'forbidden', 'stale_fence', 'wrong_state', 'expired'],
  result,
  example: { operation: 'work.renew', event_id: workId, amount: 1, ttl: 7_200 },
})

const workRelease = declare({
  name: 'work.release',
  group,
  summary: 'Give up a claim. After a submission or a revision request this means that you accept the rejection.',
  kind: 'write',
  scope: 'board:work',
  who: 'its worker',
  required: ['event_id', 'amount'],
  optional: ['reason'],
  narrowed: { event_id, amount: fence },
  refusals: ['not_found', 'forbidden', 'stale_fence', 'wrong_state'],
  result,
  example: { operation: 'work.release', event_id: workId, amount: 1 },
})

const workSubmit = declare({
  name: 'work.submit',
  group,
  summary:
    'Submit a result: `target` is your reply to the request, in its room. If the reviewer does not respond within the review window, you are paid.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:work',
  who: 'its worker',
  required: ['event_id', 'amount', 'target'],
  optional: ['data'],
  narrowed: { event_id, amount: fence, target: resultId },
  data: Type.Object({ ...schema, result_sha256: sha256 }, closed),
  refusals: ['not_found', 'forbidden', 'stale_fence', 'wrong_state', 'conflict', 'expired'],
  result,
  example: {
    operation: 'work.submit',
    event_id: workId,
    amount: 1,
    target: 'fedcba9876543210'.repeat(2),
  },
})

const workAccept = declare({
  name: 'work.accept',
  group,
  summary: 'Accept the result: the worker is paid. Also possible after a rejection and during a dispute.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:work',
  who: 'its reviewer, and its requester',
  required: ['event_id'],
  optional: ['data'],
  narrowed: { event_id },
  data: Type.Object(
    {
      ...schema,
      result_sha256: sha256,
      accept_changed: Type.Optional(
        Type.Boolean({
          description: 'true: even if its worker has changed it since; result_sha256 is then its current hash',
        }),
      ),
    },
    closed,
  ),
  refusals: ['not_found', 'not_the_reviewer', 'wrong_state', 'conflict'],
  result,
  example: { operation: 'work.accept', event_id: workId },
})

const workRevise = declare({
  name: 'work.revise',
  group,
  summary: `Ask the worker for another version of the result, at most ${sizes.work_revisions} times.`,
  kind: 'write',
  scope: 'board:work',
  who: 'its reviewer',
  required: ['event_id', 'reason'],
  optional: [],
  narrowed: { event_id },
  refusals: ['not_found', 'not_the_reviewer', 'wrong_state'],
  result,
  example: {
    operation: 'work.revise',
    event_id: workId,
    reason: 'The third report is of another error.',
  },
})

const workReject = declare({
  name: 'work.reject',
  group,
  summary: 'Reject the result. The reward stays in escrow while the worker may dispute.',
  kind: 'write',
  isEveryday: true,
  scope: 'board:work',
  who: 'its reviewer',
  required: ['event_id', 'reason'],
  optional: [],
  narrowed: { event_id, reason: rejectReason },
  refusals: ['not_found', 'not_the_reviewer', 'wrong_state'],
  result,
  example: {
    operation: 'work.reject',
    event_id: workId,
    reason: 'None of the three reports is of this error.',
  },
})

const workDispute = declare({
  name: 'work.dispute',
  group,
  summary: `Dispute a rejection, with a bond of ${sizes.work_bond_percent} percent of the reward. Without a ruling in ${spanText(sizes.work_arbitration_window, 'days')} it comes back with half of the reward, or alone if a reviewer other than the requester rejected it.`,
  kind: 'write',
  scope: 'board:work',
  who: 'its worker',
  required: ['event_id', 'amount', 'reason'],
  optional: [],
  narrowed: { event_id, amount: fence },
  refusals: ['not_found', 'forbidden', 'stale_fence', 'wrong_state', 'insufficient_credits'],
  result,
  example: {
    operation: 'work.dispute',
    event_id: workId,
    amount: 1,
    reason: 'All three name the error code.',
  },
})

const workConcede = declare({
  name: 'work.concede',
  group,
  summary: 'Accept a rejection: the requester is refunded, or the work reopens if they requested that.',
  kind: 'write',
  scope: 'board:work',
  who: 'its worker',
  required: ['event_id', 'amount'],
  optional: ['reason'],
  narrowed: { event_id, amount: fence },
  refusals: ['not_found', 'forbidden', 'stale_fence', 'wrong_state'],
  result,
  example: { operation: 'work.concede', event_id: workId, amount: 1 },
})

const workReopen = declare({
  name: 'work.reopen',
  group,
  summary: 'Request that a rejected work reopens, on the same escrow, if its worker does not dispute.',
  kind: 'write',
  scope: 'board:work',
  who: 'its requester',
  required: ['event_id'],
  optional: [],
  narrowed: { event_id },
  refusals: ['not_found', 'forbidden', 'wrong_state', 'expired'],
  result,
  example: { operation: 'work.reopen', event_id: workId },
})

const workRule = declare({
  name: 'work.rule',
  group,
  summary: 'Decide a dispute: `percent` of the reward goes to the worker, the rest back to the requester.',
  kind: 'write',
  scope: 'board:moderate',
  who: 'an operator of the board in a public room, owner and moderators of the room; never one of the parties',
  required: ['event_id', 'reason', 'data'],
  optional: [],
  narrowed: { event_id },
  data: Type.Object(
    {
      ...schema,
      percent: Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'percentage for the worker',
      }),
    },
    closed,
  ),
  refusals: ['not_found', 'forbidden', 'wrong_state'],
  result,
  example: {
    operation: 'work.rule',
    event_id: workId,
    reason: 'Two of the three reports fit.',
    data: '{"schema":1,"percent":66}',
  },
})

export const worksOperations = [
  workCreate,
  workEdit,
  workRaise,
  workCancel,
  workClaim,
  workRenew,
  workRelease,
  workSubmit,
  workAccept,
  workRevise,
  workReject,
  workDispute,
  workConcede,
  workReopen,
  workRule,
] as const
