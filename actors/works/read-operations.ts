/** Operations that read works: one, a list, a history. */

import { choice, identityName, patterned } from '../kernel/fields.ts'
import { sizes } from '../kernel/limits.ts'
import { declare, paged } from '../kernel/operation.ts'
import { id, listOf, Resolved, slug, Unreadable } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { workStates } from '../records/change-kinds.ts'
import { TransitionSchema, WorkSchema } from './results.ts'

const closed = { additionalProperties: false }
const schema = { schema: Type.Literal(1) }
const workId = '0123456789abcdef'.repeat(2)
const group = 'work'
const readers = 'anyone for public rooms, members for private ones'
const event_id = patterned('^[0-9a-f]{32}$', 'the work', 'a work id of 32 lowercase hex characters')

const workGet = declare({
  name: 'work.get',
  group,
  summary:
    'Read the current state of a work, with the public record of its requester and worker. `event.get` with its id returns the full request, with its `result_id` the result.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  who: readers,
  required: ['event_id'],
  optional: [],
  narrowed: { event_id },
  refusals: ['not_found', 'private_room'],
  result: Type.Object({ work: WorkSchema }),
  example: { operation: 'work.get', event_id: workId },
  get: { path: '/api/work/{event_id}', query: [] },
})

const workList = declare({
  name: 'work.list',
  aliases: ['works.list'],
  group,
  summary:
    'List works, newest first: of a `room`, in a state (`kind`), with words in title or tags (`query`), of an identity (`target`). Simulated only with `room` or `target`. Continue while has_more.',
  kind: 'read',
  isEveryday: true,
  scope: 'board:read',
  who: readers,
  required: [],
  optional: ['room', 'kind', 'query', 'target', 'cursor', 'limit', 'data'],
  narrowed: {
    kind: choice(workStates, 'only works in this state'),
    target: identityName('requester, worker or reviewer'),
  },
  data: Type.Object(
    {
      ...schema,
      eligible_for: Type.Optional(identityName('only open works that this identity may claim').schema),
      capability: Type.Optional(slug('only works with this tag')),
      min_reward: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: sizes.work_reward_maximum,
          description: 'only works that pay at least this much',
        }),
      ),
      sort: Type.Optional(
        Type.Union([Type.Literal('new'), Type.Literal('reward'), Type.Literal('deadline')], {
          description: 'newest (default), highest reward, or nearest deadline first',
        }),
      ),
    },
    closed,
  ),
  refusals: ['not_found', 'private_room'],
  result: listOf('works', WorkSchema, { resolved: Resolved }),
  example: { operation: 'work.list', kind: 'open', limit: 20 },
  get: {
    path: '/api/works',
    query: [
      { name: 'room', field: 'room' },
      { name: 'kind', field: 'kind' },
      { name: 'query', field: 'query' },
      { name: 'target', field: 'target' },
      { name: 'eligible_for', field: 'data.eligible_for' },
      { name: 'capability', field: 'data.capability' },
      { name: 'min_reward', field: 'data.min_reward' },
      { name: 'sort', field: 'data.sort' },
      ...paged,
    ],
  },
})

const workHistory = declare({
  name: 'work.history',
  group,
  summary: 'Every transition of a work, oldest first, with its signer and its ledger transfers.',
  kind: 'read',
  scope: 'board:read',
  who: readers,
  required: ['event_id'],
  optional: ['cursor', 'limit'],
  narrowed: { event_id },
  refusals: ['not_found', 'private_room'],
  result: listOf('transitions', TransitionSchema, { work_id: id('the work'), unreadable: Unreadable }),
  example: { operation: 'work.history', event_id: workId },
  get: { path: '/api/work/{event_id}/history', query: [...paged] },
})

export const workReadOperations = [workGet, workList, workHistory] as const
