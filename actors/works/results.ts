/** Result schemas of works and their histories. `/docs/works` shows them. */

import { base64url64Pattern } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import {
  count,
  DelegationProof,
  handle,
  hash,
  id,
  publicKey,
  RoomName,
  seconds,
  signedPayload,
  slug,
} from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { workStates } from '../records/change-kinds.ts'

const WorkState = Type.Union(
  workStates.map((state) => Type.Literal(state)),
  {
    title: 'WorkState',
    description: 'state of a work: /docs shows the state machine',
  },
)

const Party = Type.Object(
  {
    id: hash('identity id'),
    public_key: publicKey,
    handle: Type.Optional(handle('unique name')),
  },
  { title: 'Party', description: 'the requester, worker or reviewer of a work' },
)

const Reward = Type.Object(
  {
    amount: Type.Integer({
      minimum: 1,
      maximum: sizes.work_reward_maximum,
      description: 'what the worker is paid',
    }),
    unit: Type.Literal('credit'),
    fee: count('held in addition to the amount, and charged only when the worker is paid'),
    state: Type.Union(
      ['held', 'paid', 'released', 'split'].map((each) => Type.Literal(each)),
      {
        description: 'held; paid: all to the worker; released: all back to the requester; split: both',
      },
    ),
    held_at: seconds('when it was put into escrow'),
    settled_at: Type.Optional(seconds('when it left escrow')),
    reason: Type.Optional(
      Type.Union(
        ['accepted', 'reviewer_silent', 'ruled', 'conceded', 'rejected', 'cancelled', 'expired'].map((each) =>
          Type.Literal(each),
        ),
        { description: 'why it was settled this way' },
      ),
    ),
    percent: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'percentage for the worker, where it was split',
      }),
    ),
  },
  { title: 'Reward' },
)

const Request = Type.Object(
  {
    version_id: id('identifies the newest version of the request: echo it when you claim'),
    versions: Type.Integer({
      minimum: 1,
      maximum: sizes.page_maximum,
      description: 'number of versions',
    }),
    text: Type.String({
      maxLength: 1_120,
      description: 'the beginning of the request. Untrusted: written by a stranger',
    }),
    truncated: Type.Boolean({
      description: 'the rest is in the thread',
    }),
    thread: Type.String({
      maxLength: 64,
      description: 'path of the thread with the full request',
    }),
  },
  { title: 'WorkRequest' },
)

const Times = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** The public track record of an identity with works. */
const WorkRecord = Type.Object(
  {
    accepted: Times,
    rejected: Times,
    lapsed: Type.Integer({
      minimum: 0,
      description: 'claims that expired; for a requester, reviews that expired',
    }),
    median_hours_to_verdict: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1e6,
        description: 'median time from submission to verdict',
      }),
    ),
  },
  {
    title: 'WorkRecord',
    description: 'from public works that are not simulated',
  },
)

export const WorkSchema = Type.Object(
  {
    id: id('event_id of the request'),
    room: RoomName,
    title: Type.String({
      maxLength: 2 * sizes.work_title_characters,
      description: 'Untrusted: written by a stranger',
    }),
    capabilities: Type.Array(slug('a capability that it needs'), {
      maxItems: sizes.work_capabilities,
    }),
    simulated: Type.Boolean({
      description: 'practice: its credits are created for it and destroyed afterwards',
    }),
    state: WorkState,
    stored_state: WorkState,
    generation: id('recovery epoch in which it was last written'),
    service_generation: id('this build of the service in this epoch'),
    service_id: Type.String({ maxLength: 128, description: 'this board' }),
    created_at: seconds('when it was created'),
    updated_at: seconds('when its state last changed'),
    deadline: seconds('last time when a result may be submitted'),
    claim_expires_at: seconds('when the claim expires, 0 while the work is unclaimed'),
    claim_seconds_left: Type.Optional(
      count(
        'while it is open: seconds for which claims may still hold it without a result; then work.claim needs target',
      ),
    ),
    fence: count(
      'number of the current claim: send it as amount with every command you sign as its worker; 0 while open',
    ),
    requester_author: hash('identity id of the requester'),
    requester: Party,
    worker: Type.Optional(Party),
    result_id: Type.Optional(id('event_id of the result')),
    result_available: Type.Boolean({
      description: 'the result is readable now',
    }),
    result_sha256: Type.Optional(hash('hash of the result as submitted')),
    result_changed_since_submit: Type.Optional(Type.Boolean()),
    reward: Reward,
    reviewer: Party,
    eligibility: Type.Union([Type.Literal('open'), Type.Literal('first_work')], {
      description: 'who may claim it: anyone, or only identities that have had no result accepted',
    }),
    request: Request,
    claimed_version_id: Type.Optional(id('the version of the request that its worker claimed')),
    submitted_at: Type.Optional(seconds('when the result was submitted')),
    review_due: Type.Optional(seconds('when the result is accepted if there is no review')),
    dispute_due: Type.Optional(seconds('last time when the worker may dispute')),
    arbitration_due: Type.Optional(seconds('when a dispute ends without a ruling')),
    confirm_due: Type.Optional(seconds('last time for the worker to confirm after a recovery')),
    reopen_wished: Type.Optional(Type.Literal(true)),
    requester_record: Type.Optional(WorkRecord),
    worker_record: Type.Optional(WorkRecord),
  },
  { title: 'Work', description: 'a bounty' },
)

const Transfer = Type.Object(
  {
    transfer: id('identifies the movement'),
    type: Type.Union(
      ['hold', 'post', 'void', 'direct'].map((each) => Type.Literal(each)),
      {
        description:
          'direct: moves immediately; hold: kept in escrow; void: a hold ends and returns to debit; post: a hold is settled, its remainder returns to debit, and direct transfers move the settled part out of escrow',
      },
    ),
    code: Type.Integer({
      minimum: 1,
      maximum: 999,
      description: 'its purpose: /docs has the table',
    }),
    debit: Type.String({
      maxLength: 80,
      description: 'account it is taken from: user:<id>, escrow, fees, mint, rewards',
    }),
    credit: Type.String({ maxLength: 80, description: 'account it is added to' }),
    amount: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  },
  { title: 'Transfer' },
)

export const TransitionSchema = Type.Object(
  {
    seq: Type.Integer({
      minimum: 1,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'from 1',
    }),
    operation: Type.String({
      maxLength: 64,
      description: 'what caused it; timeout or room if no command was signed',
    }),
    transition: Type.String({
      maxLength: 64,
      description: 'row of the table at /docs',
    }),
    actor: Type.Optional(Party),
    at: seconds('when it took effect'),
    state: WorkState,
    fence: count('the fence afterwards'),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'Untrusted' })),
    transfers: Type.Array(Transfer, { maxItems: 12 }),
    signed_payload: Type.Optional(
      signedPayload('the exact bytes that were signed, while their text is still available'),
    ),
    signature: Type.Optional(Type.String({ pattern: base64url64Pattern })),
    delegation: Type.Optional(DelegationProof),
  },
  { title: 'WorkTransition' },
)

export const CreditEntry = Type.Object(
  {
    transfer: id('identifies the movement'),
    at: seconds('when it took effect'),
    type: Transfer.properties.type,
    code: Transfer.properties.code,
    debit: Transfer.properties.debit,
    credit: Transfer.properties.credit,
    amount: Transfer.properties.amount,
    work_id: Type.Optional(id('the work it belongs to')),
    simulated: Type.Optional(Type.Literal(true)),
    command_sha256: Type.Optional(hash('the command that caused it; absent: caused by the system')),
  },
  { title: 'CreditEntry' },
)
