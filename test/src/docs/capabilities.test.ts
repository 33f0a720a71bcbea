/** /capabilities is enough to write a client from: its examples can be reproduced, and what it names exists. */
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { statusOf } from '../../../actors/kernel/refusals.ts'
import { operations } from '../../../actors/operations.ts'
import { capabilities } from '../../../src/docs/capabilities.ts'
import { commandId, type SignableCommand, signingBytes } from '../../../src/format/signing.ts'
import { createNobleBackend } from '../../../src/verify/backends.ts'
import { hasShape, schemaErrors, serviceId, shapes } from '../../support/json-schema.ts'

const described = {
  name: 'Broadside',
  serviceId,
  identity: { id: 'a'.repeat(64), publicKey: 'A'.repeat(43) },
  generation: '0'.repeat(32),
  release: '1.0.0',
  address: 'https://board.example.org',
  origin: 'board.example.org/log',
  vkey: 'board.example.org/log+00000000+AAAA',
  verifier: 'noble',
  blobBytesPerIdentity: 1024,
  proofBits: 0,
  limitsOn: true,
  createdAt: 1_790_000_000,
}
const told = JSON.parse(JSON.stringify(capabilities(described))) as ReturnType<typeof capabilities>

test('it has the keys that the specification lists', () => {
  expect(hasShape('Capabilities', told)).toBe(true)
  expect(told).toMatchObject({
    service_id: serviceId,
    service_identity: { id: described.identity.id, public_key: described.identity.publicKey, handle: 'broadside' },
    name: 'Broadside',
    release: '1.0.0',
    signing: { version: 1 },
    verifier: 'noble',
    log: { origin: described.origin, vkey: described.vkey },
    generation: described.generation,
  })
})

test('it lists every operation with its fields, its refusals and the shape of its answer', () => {
  expect(told.operations.map(({ name }) => name)).toEqual(operations.map(({ name }) => name))
  for (const { name, required, optional, result, refusals } of told.operations) {
    expect(Object.keys(told.command.fields)).toEqual(expect.arrayContaining([...required, ...optional]))
    expect(Object.keys(shapes)).toContain(result.split('/').at(-1))
    expect({ name, refusals: refusals.length > 0 }).toEqual({ name, refusals: true })
  }
})

test('data has the version of its schema, except in the operations that it names', () => {
  const without = operations.filter(({ data }) => data !== undefined && data.properties?.schema === undefined)
  expect(told.command.data).toMatch(
    new RegExp(`, with "schema":1, except for ${without.map(({ name }) => name).join(', ')}$`),
  )
})

test('refusals that any signed command may get are listed for each, and required signatures are marked', () => {
  for (const { name, kind, refusals } of told.operations) {
    const general = ['key_rotated', 'bad_signature', ...(kind === 'write' ? ['suspended', 'unsigned'] : [])]
    expect({ name, refusals }).toEqual({ name, refusals: expect.arrayContaining(general) })
  }
  const signedReads = told.operations.filter(({ kind, signed }) => kind === 'read' && signed === 'required')
  expect(signedReads.map(({ name }) => name).sort()).toEqual([
    'conversations.list',
    'credit.balance',
    'delegation.list',
    'follows.list',
    'inbox.get',
    'limits.list',
    'mutes.list',
    'receiver.items',
    'receiver.list',
    'reports.list',
    'reports.summary',
    'room.read_token',
    'webhook.deliveries',
    'webhook.list',
  ])
  expect(Object.values(told.answers.codes).flat().sort()).toEqual(Object.keys(statusOf).sort())
  const request = shapes.InboxGetRequest as { required?: string[] }
  expect(request.required).toEqual(expect.arrayContaining(['public_key', 'signature', 'timestamp', 'nonce']))
})

test('a board without limits says so with null, and keeps its size limits', () => {
  const { limits } = capabilities({ ...described, limitsOn: false })
  expect(limits).toMatchObject({ text_bytes: 32_768, writes_per_identity_per_minute: null, streams_per_address: null })
  expect(told.limits).toMatchObject({ text_bytes: 32_768, writes_per_identity_per_minute: 120 })
})

describe.each(told.signing.examples.map((example, number) => [number, example] as const))(
  'signing example %i',
  (_, it) => {
    test('is what this board signs', () => {
      const bytes = signingBytes(serviceId, it.command)
      expect(bytes.toString('utf8')).toBe(it.signed_bytes)
      expect(bytes.length).toBe(it.signed_bytes_length)
      expect(commandId(bytes)).toEqual({ eventId: it.event_id, sha256: it.sha256 })
    })

    test('follows from the description beside it', () => {
      const command = it.command as SignableCommand
      const ordered = told.signing.field_order.filter((field) => command[field] !== undefined)
      const json = JSON.stringify(Object.fromEntries(ordered.map((field) => [field, command[field]])))
      const bytes = Buffer.from(
        `${told.signing.prefix}${json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')}}`,
      )
      const secret = createPrivateKey({
        key: {
          kty: 'OKP',
          crv: 'Ed25519',
          d: Buffer.from(it.seed, 'hex').toString('base64url'),
          x: it.command.public_key,
        },
        format: 'jwk',
      })
      expect(createPublicKey(secret).export({ format: 'jwk' }).x).toBe(it.command.public_key)
      expect(sign(null, bytes, secret).toString('base64url')).toBe(it.signature)
      expect(createHash('sha256').update(bytes).digest('hex').slice(0, 32)).toBe(it.event_id)
    })

    test('verifies, and fails with one byte changed', () => {
      const noble = createNobleBackend()
      const key = Buffer.from(it.command.public_key, 'base64url')
      const signature = Buffer.from(it.signature, 'base64url')
      const bytes = Buffer.from(it.signed_bytes)
      expect(noble.verify(signature, bytes, key)).toBe(true)
      bytes[bytes.length - 3]! ^= 1
      expect(noble.verify(signature, bytes, key)).toBe(false)
    })

    test('with its signature is a command that matches the description', () => {
      const { signature } = it
      expect(schemaErrors('Command', { ...it.command, signature })).toEqual([])
    })
  },
)
