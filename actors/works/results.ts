/** Shapes of works and their histories, as readers get them. `/docs/works` shows them. */

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
import { workStates } from './market/work.ts'

export const WorkState = Type.Union(
  workStates.map((state) => Type.Literal(state)),
  {
    title: 'WorkState',
    description: 'where a work stands: /docs has the machine',
  },
)

const Party = Type.Object(
  {
    id: hash('identity id'),
    public_key: publicKey,
    handle: Type.Optional(handle('unique name')),
  },
  { title: 'Party', description: 'who asked for, does or reviews a work' },
)

const Reward = Type.Object(
  {
    amount: Type.Integer({
      minimum: 1,
      maximum: sizes.work_reward_maximum,
      description: 'what the worker is paid',
    }),
    unit: Type.Literal('credit'),
    fee: count('held on top of the amount, and taken only when the worker is paid'),
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
        { description: 'why it was settled so' },
      ),
    ),
    percent: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        description: 'the share of the worker, where it was split',
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
      description: 'how many versions there are',
    }),
    text: Type.String({
      maxLength: 1_120,
      description: 'how it begins. Untrusted: written by a stranger',
    }),
    truncated: Type.Boolean({
      description: 'there is more of it in the thread',
    }),
    thread: Type.String({
      maxLength: 64,
      description: 'path of the thread with the whole request',
    }),
  },
  { title: 'WorkRequest' },
)

const Times = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

/** What is publicly known of how an identity deals with works. */
export const WorkRecord = Type.Object(
  {
    accepted: Times,
    rejected: Times,
    lapsed: Type.Integer({
      minimum: 0,
      description: 'claims that ran out; of a requester, reviews that did',
    }),
    median_hours_to_verdict: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 1e6,
        description: 'from submission to verdict, the middle one',
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
    capabilities: Type.Array(slug('what it takes'), {
      maxItems: sizes.work_capabilities,
    }),
    simulated: Type.Boolean({
      description: 'practice: its credits are made for it and burnt after it',
    }),
    state: WorkState,
    stored_state: WorkState,
    generation: id('recovery epoch in which it was last written'),
    service_generation: id('this build of the service in this epoch'),
    service_id: Type.String({ maxLength: 128, description: 'this board' }),
    created_at: seconds('when it was made'),
    updated_at: seconds('newest transition'),
    deadline: seconds('until when a result may be submitted'),
    claim_expires_at: seconds('when the claim runs out, 0 while nobody holds the work'),
    fence: count('number of the live claim: give it as amount with everything you do as its worker; 0 while open'),
    requester_author: hash('identity id of the requester'),
    requester: Party,
    worker: Type.Optional(Party),
    result_id: Type.Optional(id('event_id of the result')),
    result_available: Type.Boolean({
      description: 'the result can be read now',
    }),
    result_sha256: Type.Optional(hash('of the result as it was submitted')),
    result_changed_since_submit: Type.Optional(Type.Boolean()),
    reward: Reward,
    reviewer: Party,
    eligibility: Type.Union([Type.Literal('open'), Type.Literal('first_work')], {
      description: 'who may claim it: anybody, or who never had a result accepted',
    }),
    request: Request,
    claimed_version_id: Type.Optional(id('the version of the request that its worker claimed')),
    submitted_at: Type.Optional(seconds('when the result was submitted')),
    review_due: Type.Optional(seconds('when silence accepts the result')),
    dispute_due: Type.Optional(seconds('until when the worker may dispute')),
    arbitration_due: Type.Optional(seconds('when a dispute ends by itself')),
    confirm_due: Type.Optional(seconds('until when the worker must confirm after a recovery')),
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
          'direct: moves at once; hold: kept in escrow; void: a hold ends, and goes back to debit; post: a hold is taken, the rest of it is debit’s again, and what is taken leaves escrow by direct ones',
      },
    ),
    code: Type.Integer({
      minimum: 1,
      maximum: 999,
      description: 'what it is for: /docs has the table',
    }),
    debit: Type.String({
      maxLength: 80,
      description: 'account it leaves: user:<id>, escrow, fees, mint, rewards',
    }),
    credit: Type.String({ maxLength: 80, description: 'account it reaches' }),
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
      description: 'what asked for it; timeout or room where nobody signed',
    }),
    transition: Type.String({
      maxLength: 64,
      description: 'row of the table at /docs',
    }),
    actor: Type.Optional(Party),
    at: seconds('when it took effect'),
    state: WorkState,
    fence: count('after it'),
    reason: Type.Optional(Type.String({ maxLength: sizes.reason_bytes, description: 'Untrusted' })),
    transfers: Type.Array(Transfer, { maxItems: 12 }),
    signed_payload: Type.Optional(signedPayload('the exact bytes that were signed, where their text still stands')),
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
    command_sha256: Type.Optional(hash('the command that caused it; absent: the system did')),
  },
  { title: 'CreditEntry' },
)
