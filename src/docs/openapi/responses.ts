/** The refusals that every documented path may answer with, and their shape. */
import { type RefusalCode, statusOf } from '../../../actors/kernel/refusals.ts'
import type { Json, Shapes } from '../../format/plain-schema.ts'

const refusalRef = { $ref: '#/components/schemas/Refusal' }

/** The refusals listed next to the 200 of every path. */
export const refused: Json = {
  '400': { $ref: '#/components/responses/BadRequest' },
  '403': { $ref: '#/components/responses/Forbidden' },
  '429': { $ref: '#/components/responses/TooManyRequests' },
}

/** The 200 of a path that returns `data` of this shape in the envelope. */
export function success(description: string, data: Json): Json {
  return {
    description,
    content: {
      'application/json': {
        schema: {
          type: 'object',
          required: ['ok', 'data'],
          properties: { ok: { type: 'boolean', const: true }, data },
        },
      },
    },
  }
}

/** `components.responses` and `components.headers`; the error's shape goes to `shapes`. */
export function responses(shapes: Shapes): { readonly responses: Json; readonly headers: Json } {
  shapes.add('Refusal', {
    type: 'object',
    description: 'why a request had no effect',
    required: ['ok', 'error'],
    properties: {
      ok: { type: 'boolean', const: false },
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: {
          code: { type: 'string', enum: Object.keys(statusOf) },
          message: { type: 'string', maxLength: 4096, description: 'what was wrong and what would be valid' },
          field: {
            type: 'string',
            maxLength: 128,
            description: 'the field or parameter at fault; data.KEY for a key inside data',
          },
          details: {
            type: 'object',
            description:
              'what the caller needs to continue: for a conflict of docs.write the newest version, its text, and the text of the base as `base`; for a rate or quota the name of the limit, its scope (`identity` or `network`), and whose it is',
          },
          retry_after: { type: 'integer', minimum: 1, description: 'seconds to wait, as in the Retry-After header' },
        },
      },
    },
  })
  return {
    responses: {
      BadRequest: response(400, 'The request is invalid, or its subject does not exist.', {
        code: 'missing_field',
        message: 'post needs text: 1 to 32768 bytes of UTF-8 without NUL',
        field: 'text',
      }),
      Forbidden: response(403, 'A private room, or an operation that this caller may not use.', {
        code: 'private_room',
        message: 'this room is private: only its members can read it, with signed commands',
      }),
      TooManyRequests: {
        ...response(429, 'An allowance is used up, or the board is busy: wait, then send the same again.', {
          code: 'rate_limited',
          message: 'too many reads from this address: wait retry_after seconds',
          retry_after: 3,
          details: {
            limit: 'reads_per_address_per_minute',
            of: 'network',
            network: '192.0.2.1',
            at_once: 1_200,
            regained: 1_200,
            per_seconds: 60,
          },
        }),
        headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
      },
      NotThere: {
        description: 'It does not exist, or not yet.',
        content: {
          'application/json': {
            schema: refusalRef,
            example: { ok: false, error: { code: 'no_such_path', message: 'this log has no such checkpoint' } },
          },
        },
      },
    },
    headers: {
      RetryAfter: { description: 'Seconds to wait.', required: true, schema: { type: 'integer', minimum: 1 } },
    },
  }
}

function response(status: 400 | 403 | 429, meaning: string, error: Json): Json {
  return {
    description: `${meaning} Codes: ${codes(status)
      .map((code) => `\`${code}\``)
      .join(', ')}.`,
    content: { 'application/json': { schema: refusalRef, example: { ok: false, error } } },
  }
}

function codes(status: number): RefusalCode[] {
  return (Object.keys(statusOf) as RefusalCode[]).filter((code) => statusOf[code] === status)
}
