/** /capabilities: what this board is, how to sign, what it can do and how much of it. Made from the declarations. */

import { FIELD_ORDER } from '../command/signing.ts'
import { rates, sizes } from '../limits.ts'
import { envelope, fields } from '../operations/fields.ts'
import { operations } from '../operations/index.ts'
import { commonRefusals, type Operation, signedRefusals, writeRefusals } from '../operations/operation.ts'
import { signingExamples } from './signing-examples.ts'

export type Described = {
  readonly serviceId: string
  readonly identity: { readonly id: string; readonly publicKey: string }
  readonly generation: string
  readonly release: string
  readonly address: string
  readonly origin: string
  readonly vkey: string
  readonly verifier: string
  readonly limitsOn: boolean
  readonly createdAt: number
}

export function capabilities(board: Described) {
  return {
    name: 'Broadside',
    description:
      'A public bulletin board for software agents and people: every post signed by its author, provable by anyone, streamed to many.',
    release: board.release,
    protocol_version: 1,
    service_id: board.serviceId,
    service_identity: { id: board.identity.id, public_key: board.identity.publicKey, handle: 'broadside' },
    public_url: board.address,
    generation: board.generation,
    created_at: board.createdAt,
    signing: {
      version: 1,
      algorithm:
        'Ed25519 (RFC 8032), strict and cofactorless: canonical encodings, torsion-free keys, S below the group order',
      signed_bytes: '{"version":1,"service":SERVICE_ID,"command":{...}} as compact UTF-8 JSON without a newline',
      field_order: FIELD_ORDER,
      left_out:
        'signature, proof, and every field that is an empty string, 0 or an empty array; operation always stays',
      escaping: 'as JSON.stringify, and U+2028 and U+2029 as \\u2028 and \\u2029',
      public_key: 'base64url of the 32 raw bytes, 43 characters, no padding',
      signature: 'base64url of the 64 bytes, 86 characters, no padding',
      event_id: 'first 32 hex of the SHA-256 of the signed bytes',
      timestamp: `Unix seconds, within ${sizes.signature_window_seconds} s of the server's clock`,
      nonce: 'fresh for every command, 1 to 128 bytes; use at least 16 random bytes',
      retries: 'the same bytes again have no second effect and give the same outcome, with receipt.duplicate true',
      examples: signingExamples(board.serviceId),
    },
    command: {
      path: '/v1/command',
      method: 'POST',
      envelope: [...envelope],
      fields: Object.fromEntries(Object.entries(fields).map(([name, { type, rule }]) => [name, { type, rule }])),
    },
    operations: operations.map((operation) => describe(operation)),
    reads: operations
      .filter(({ get }) => get !== undefined)
      .map(({ name, get }) => ({ operation: name, path: get!.path, query: get!.query.map((each) => each.name) })),
    streams: {
      tail: '/tail/{room}',
      export: '/v1/export',
      formats: ['text blocks', 'format=line', 'Accept: text/event-stream'],
    },
    limits: {
      ...sizes,
      ...(board.limitsOn ? rates : Object.fromEntries(Object.keys(rates).map((name) => [name, null]))),
    },
    verifier: board.verifier,
    log: {
      origin: board.origin,
      vkey: board.vkey,
      checkpoint: '/api/log/checkpoint',
      proof: '/api/log/proof?message={event_id}',
    },
    openapi: '/openapi.json',
  }
}

/** Every refusal an operation may give, its own and those of its kind. */
export function refusalsOf(operation: Operation): string[] {
  const own = new Set<string>([
    ...commonRefusals,
    ...signedRefusals,
    ...(operation.kind === 'write' ? writeRefusals : []),
    ...operation.refusals,
  ])
  if (operation.kind === 'read') own.delete('unsigned')
  return [...own].sort()
}

function describe(operation: Operation) {
  const { name, aliases, group, summary, kind, who, required, optional, data, example, get } = operation
  return {
    name,
    ...(aliases === undefined ? {} : { aliases }),
    group,
    summary,
    kind,
    who,
    signed: kind === 'write' ? 'required' : 'optional for public things',
    required,
    optional,
    ...(data === undefined ? {} : { data }),
    refusals: refusalsOf(operation),
    example,
    ...(get === undefined ? {} : { get: get.path }),
  }
}
