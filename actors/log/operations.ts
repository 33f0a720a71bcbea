/** The operations on the public log: its newest signed head, proofs against it, its growth, and its witnesses. */

import { declare } from '../kernel/operation.ts'
import { Checkpoint, Consistency, Leaves, leavesMax, Proof } from '../kernel/results.ts'
import { Type } from '../kernel/schema.ts'
import { History, LogTitle, Witnesses } from './results.ts'

const logCheckpoint = declare({
  name: 'log.checkpoint',
  group: 'log',
  summary: 'The newest signed head of the public log.',
  kind: 'read',
  answeredBy: 'head',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: [],
  refusals: [],
  result: Checkpoint,
  example: { operation: 'log.checkpoint' },
  get: { path: '/api/log/checkpoint', query: [] },
})

const logProof = declare({
  name: 'log.proof',
  group: 'log',
  summary:
    'Proof that a public event is in the log, against a signed head (RFC 9162 2.1.3). The board checks it before it answers.',
  kind: 'read',
  answeredBy: 'log',
  scope: 'board:read',
  inParts: true,
  who: 'anyone',
  required: ['event_id'],
  optional: ['data'],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      tree_size: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: Number.MAX_SAFE_INTEGER,
          description: 'size of a head that this board signed',
        }),
      ),
      format: Type.Optional(
        Type.Literal('tlog-proof', { description: 'the proof as a self-contained file (C2SP tlog-proof)' }),
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
      { name: 'message', also: 'event_id', field: 'event_id' },
      { name: 'tree_size', field: 'data.tree_size' },
      { name: 'format', field: 'data.format' },
    ],
  },
})

const size = (description: string) => Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description })

/** Needed on a board whose log was rotated, which has several. */
const ofLog = Type.Optional(LogTitle)

const logConsistency = declare({
  name: 'log.consistency',
  group: 'log',
  summary: 'Proof that the log at one size is a prefix of the log at a larger one (RFC 9162 2.1.4).',
  kind: 'read',
  answeredBy: 'log',
  scope: 'board:read',
  who: 'anyone',
  required: ['data'],
  optional: [],
  data: Type.Object(
    { schema: Type.Literal(1), from: size('the smaller size'), to: size('the larger size'), log: ofLog },
    { additionalProperties: false },
  ),
  refusals: ['not_found'],
  result: Consistency,
  example: { operation: 'log.consistency', data: '{"schema":1,"from":1,"to":1}' },
  get: {
    path: '/api/log/consistency',
    query: [
      { name: 'from', field: 'data.from' },
      { name: 'to', field: 'data.to' },
      { name: 'log', field: 'data.log' },
    ],
  },
})

const logLeaves = declare({
  name: 'log.leaves',
  group: 'log',
  summary: `Entries of the log as they were hashed, at most ${leavesMax} from \`start\` up to but excluding \`end\`.`,
  kind: 'read',
  answeredBy: 'log',
  scope: 'board:read',
  who: 'anyone',
  required: ['data'],
  optional: [],
  data: Type.Object(
    {
      schema: Type.Literal(1),
      start: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'index of the first entry' }),
      end: size('index after the last entry'),
      log: ofLog,
    },
    { additionalProperties: false },
  ),
  refusals: ['not_found'],
  result: Leaves,
  example: { operation: 'log.leaves', data: '{"schema":1,"start":0,"end":1}' },
  get: {
    path: '/api/log/leaves',
    query: [
      { name: 'start', field: 'data.start' },
      { name: 'end', field: 'data.end' },
      { name: 'log', field: 'data.log' },
    ],
  },
})

const logHistory = declare({
  name: 'log.history',
  group: 'log',
  summary: 'Every log of this board, with its size over time, for example to draw its growth.',
  kind: 'read',
  answeredBy: 'log',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: [],
  refusals: [],
  result: History,
  example: { operation: 'log.history' },
  get: { path: '/api/log/history', query: [] },
})

const logWitnesses = declare({
  name: 'log.witnesses',
  group: 'log',
  summary: 'The witnesses that are asked to cosign the heads of this log, each with its last answer.',
  kind: 'read',
  answeredBy: 'head',
  scope: 'board:read',
  who: 'anyone',
  required: [],
  optional: [],
  refusals: [],
  result: Witnesses,
  example: { operation: 'log.witnesses' },
  get: { path: '/api/log/witnesses', query: [] },
})

export const logOperations = [logCheckpoint, logProof, logConsistency, logLeaves, logHistory, logWitnesses] as const
