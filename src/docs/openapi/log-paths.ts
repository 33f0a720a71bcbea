/** The public log for clients of its standard (C2SP tlog-tiles, tlog-policy), and the routes of a witness. */
import { Type } from '../../../actors/kernel/schema.ts'
import type { Json } from '../../format/plain-schema.ts'
import { pathParameter } from './read-paths.ts'
import { refused } from './responses.ts'

const log = pathParameter(
  'log',
  Type.String({ pattern: '^[0-9]{4}[a-z]$', description: 'name of a log, such as 2026a' }),
)
const level = pathParameter('level', Type.String({ pattern: '^[0-9]{1,2}$', description: 'level of the tile, from 0' }))
const index = pathParameter(
  'index',
  Type.String({
    pattern: '^(x[0-9]{3}/)*[0-9]{3}(\\.p/[0-9]{1,3})?$',
    maxLength: 64,
    description:
      'number of the tile in tlog-tiles form, such as 000, x001/234, or 000.p/17 for a partial one: slashes are not encoded',
  }),
)

const tlog = 'As specified by C2SP tlog-tiles, tlog-policy, signed-note and tlog-witness.'
/** Missing files are answered with 404, as tile clients expect. */
const absent: Json = { '404': { $ref: '#/components/responses/NotThere' } }

export const logPaths: Json = {
  '/log/vkey': { get: text('logKey', 'The verifier key of the current log (C2SP signed-note).') },
  '/log/policy': { get: text('logPolicy', 'The policy that readers of the logs pin (C2SP tlog-policy).') },
  '/log/{log}/checkpoint': {
    get: text('tilesCheckpoint', 'The newest published head of a log, as a signed note.', [log]),
  },
  '/log/{log}/vkey': { get: text('tilesKey', 'The verifier key of one log.', [log]) },
  '/log/{log}/tile/{level}/{index}': {
    get: bytes('tile', 'A tile of hashes.', [log, level, index]),
  },
  '/log/{log}/tile/entries/{index}': {
    get: bytes('entryBundle', 'A bundle of entries; gzip on Accept-Encoding.', [log, index]),
  },
}

export const witnessPaths: Json = {
  '/witness/vkey': { get: text('witnessKey', 'The key with which this board cosigns the heads of other logs.') },
  '/witness/{origin}/checkpoint': {
    get: text('witnessedCheckpoint', 'The newest head of a log that this board has cosigned.', [
      pathParameter(
        'origin',
        Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the origin of the log' }),
      ),
    ]),
  },
  '/witness/add-checkpoint': {
    post: {
      operationId: 'addCheckpoint',
      tags: ['log'],
      summary: 'Request a cosignature for a head of another log (C2SP tlog-witness).',
      description: tlog,
      requestBody: { required: true, content: { 'text/plain': { schema: { type: 'string', maxLength: 131_072 } } } },
      responses: {
        '200': { description: 'The signature lines.', content: { 'text/plain': { schema: { type: 'string' } } } },
        '403': { description: 'It has no signature by a known key.' },
        '404': { description: 'This board does not witness the log.' },
        '409': { description: 'The last cosigned size differs: it is in the body.' },
        '422': { description: 'The proof is invalid.' },
      },
    },
  },
}

function text(operationId: string, summary: string, parameters: readonly Json[] = []): Json {
  return read(operationId, summary, parameters, { 'text/plain': { schema: { type: 'string' } } })
}

function bytes(operationId: string, summary: string, parameters: readonly Json[]): Json {
  return read(operationId, summary, parameters, {
    'application/octet-stream': { schema: { type: 'string', format: 'binary' } },
  })
}

function read(operationId: string, summary: string, parameters: readonly Json[], content: Json): Json {
  return {
    operationId,
    tags: ['log'],
    summary,
    description: tlog,
    parameters,
    responses: {
      '200': { description: 'As specified by the standard.', content },
      ...refused,
      ...(parameters.length === 0 ? {} : absent),
    },
  }
}
