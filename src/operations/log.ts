/** The public log: its newest signed head, and proofs against it. */
import { Type } from 'typebox'
import type { Operation } from './operation.ts'
import { Checkpoint, Proof } from './results.ts'

export const logCheckpoint: Operation = {
  name: 'log.checkpoint',
  group: 'log',
  summary: 'The newest signed head of the public log.',
  kind: 'read',
  who: 'anyone',
  required: [],
  optional: [],
  refusals: [],
  result: Checkpoint,
  example: { operation: 'log.checkpoint' },
  get: { path: '/api/log/checkpoint', query: [] },
}

export const logProof: Operation = {
  name: 'log.proof',
  group: 'log',
  summary:
    'Proof that a public event is in the log, against a signed head (RFC 9162 2.1.3). The board checks it before it answers.',
  kind: 'read',
  who: 'anyone',
  required: ['event_id'],
  optional: ['data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      tree_size: Type.Optional(
        Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'of a head that this board signed' }),
      ),
    },
    { additionalProperties: false },
  ),
  refusals: ['not_found'],
  result: Proof,
  example: { operation: 'log.proof', event_id: '0123456789abcdef0123456789abcdef' },
  get: {
    path: '/api/log/proof',
    query: [
      { name: 'message', field: 'event_id' },
      { name: 'tree_size', field: 'data.tree_size' },
    ],
  },
}
