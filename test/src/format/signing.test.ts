import { createHash, createPrivateKey, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  commandId,
  decodeBytes32,
  decodeBytes64,
  FIELD_ORDER,
  identityId,
  type SignableCommand,
  signingBytes,
} from '../../../src/format/signing.ts'
import { chooseBackend } from '../../../src/verify/backends.ts'

const seed = Buffer.from(Array.from({ length: 32 }, (_, index) => index))
const publicKey = 'A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg'
const pkcs8 = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
const privateKey = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' })

type Vector = {
  name: string
  command: SignableCommand
  bytes: string
  size: number
  sha256: string
  signature: string
}

/** V1 and V2 were published by a service of this kind; D1 and D2 follow from the same rules. */
const vectors: readonly Vector[] = [
  {
    name: 'V1: an emoji, and U+2028 as an escape',
    command: {
      nonce: 'test-nonce',
      timestamp: 1700000000,
      operation: 'post',
      room: 'lobby',
      page: 'main',
      text: 'Hello <🌍>\u2028',
      request_id: 'vector-1',
      public_key: publicKey,
    },
    bytes: `{"version":1,"service":"swarmmemo.com","command":{"operation":"post","room":"lobby","page":"main","text":"Hello <🌍>\\u2028","request_id":"vector-1","public_key":"${publicKey}","timestamp":1700000000,"nonce":"test-nonce"}}`,
    size: 254,
    sha256: '5bc1010d3001e0974eebe7c6fe9507b5def21ccd0168bae3fc4b10099d962b3b',
    signature: 'zJhhMJEe9BJlshzPpTfv5XLIwdotHovyqelcqcI6cA3fi0v2hJHu1b9PpYrlWvLvBGMmA80DpGIyGVazTsfsDQ',
  },
  {
    name: 'V2: a reply with quotes, markup, a newline and data',
    command: {
      operation: 'post',
      data: '{"schema":1,"format":"markdown"}',
      handle: 'vector-bot',
      room: 'lobby',
      page: 'main',
      text: 'Agreed: "cache misses" drop with <code>?limit=50&sort=new</code>.\nSee /api/messages 🌍',
      reply_to: '3f2a9c1e7b6d4f0a8e5c2b1d9a7f6e4c',
      request_id: 'reply-0001',
      public_key: publicKey,
      timestamp: 1790000000,
      nonce: 'n-7f3a9c2e5b1d',
    },
    bytes: `{"version":1,"service":"swarmmemo.com","command":{"operation":"post","room":"lobby","page":"main","text":"Agreed: \\"cache misses\\" drop with <code>?limit=50&sort=new</code>.\\nSee /api/messages 🌍","reply_to":"3f2a9c1e7b6d4f0a8e5c2b1d9a7f6e4c","request_id":"reply-0001","public_key":"${publicKey}","timestamp":1790000000,"nonce":"n-7f3a9c2e5b1d","handle":"vector-bot","data":"{\\"schema\\":1,\\"format\\":\\"markdown\\"}"}}`,
    size: 449,
    sha256: '0185678adbd8b020dc575e8528cab30cd506e5859a260c03b6008ee813784e9a',
    signature: 'N5MGUDtlzKzUrXUstT5wJWwgi8Afqqwo01DzsGKpSkuc3aZa87JjHXZJayewhAV_n0SLuh2iV-VOxhpQ_PgZCQ',
  },
  {
    name: 'D1: event_id and limit',
    command: {
      operation: 'thread.get',
      public_key: publicKey,
      timestamp: 1790000000,
      nonce: 'd-1',
      event_id: '3f2a9c1e7b6d4f0a8e5c2b1d9a7f6e4c',
      limit: 20,
    },
    bytes: `{"version":1,"service":"swarmmemo.com","command":{"operation":"thread.get","public_key":"${publicKey}","timestamp":1790000000,"nonce":"d-1","event_id":"3f2a9c1e7b6d4f0a8e5c2b1d9a7f6e4c","limit":20}}`,
    size: 229,
    sha256: '96a3460c0bb77c2b06f7aa14b00ac5b98de59f69675b3511ef5177f015ec3e8c',
    signature: 'af-D7X92Cg9z3424KTx0w-0Bpjk6Q_iGhn4MkK6YE3xLf0kBA-pQazdp5h9IyPPCy0xzqfJDASDLd0-3KPIbAw',
  },
  {
    name: 'D2: every escape, a raw DEL, and the order of an array',
    command: {
      operation: 'post',
      room: 'lobby',
      page: 'main',
      text: 'tab\tcr\rbs\b ff\f nul-less \u0001\u001f del\u007f slash/ back\\ q" <&> \u2028\u2029',
      request_id: 'd-2',
      public_key: publicKey,
      timestamp: 1790000000,
      nonce: 'd-2',
      attachments: ['b', 'a'],
    },
    bytes: `{"version":1,"service":"swarmmemo.com","command":{"operation":"post","room":"lobby","page":"main","text":"tab\\tcr\\rbs\\b ff\\f nul-less \\u0001\\u001f del\u007f slash/ back\\\\ q\\" <&> \\u2028\\u2029","request_id":"d-2","public_key":"${publicKey}","timestamp":1790000000,"nonce":"d-2","attachments":["b","a"]}}`,
    size: 328,
    sha256: 'de57a325293983b9ef0445b1ddb193928fe2d31e5258728f409e4a65fedcd019',
    signature: 'VObm5l_Fn5tkLo2Kbhf55KBkcqAfOfIstPhaR_bWHtBSM9SvwQLYcPo3x5s8Q0V_L_Ov9b_I6wUjqxZP20MsDg',
  },
]

test.each(vectors)('$name: same bytes, same hash, same signature', (vector) => {
  const bytes = signingBytes('swarmmemo.com', { ...vector.command, signature: vector.signature, proof: '8.1' })
  expect(bytes.toString()).toBe(vector.bytes)
  expect(bytes).toHaveLength(vector.size)
  expect(commandId(bytes)).toEqual({ sha256: vector.sha256, eventId: vector.sha256.slice(0, 32) })
  expect(sign(undefined, bytes, privateKey).toString('base64url')).toBe(vector.signature)
  const verified = chooseBackend().verify(decodeBytes64(vector.signature)!, bytes, decodeBytes32(publicKey)!)
  expect(verified).toBe(true)
})

test('the identity of the test seed is the published one', () => {
  expect(identityId(decodeBytes32(publicKey)!)).toBe('56475aa75463474c0285df5dbf2bcab73da651358839e9b77481b2eab107708c')
})

test('the field order is the published one, complete', () => {
  expect(FIELD_ORDER.join(' ')).toBe(
    'operation room page text kind reply_to to request_id public_key timestamp nonce handle visibility members ' +
      'target amount ttl event_id cursor limit query before reason data filename media_type attachments',
  )
})

describe('omission', () => {
  test('empty strings, zeros and empty arrays share one signature with absent fields', () => {
    const plain = signingBytes('s', { operation: 'post', text: 'x' })
    const padded = { operation: 'post', text: 'x', room: '', amount: 0, members: [], handle: undefined }
    expect(signingBytes('s', padded)).toEqual(plain)
    expect(plain.toString()).toBe('{"version":1,"service":"s","command":{"operation":"post","text":"x"}}')
  })

  test('operation stays even when empty; an array of an empty string is not empty', () => {
    expect(signingBytes('s', { operation: '' }).toString()).toBe(
      '{"version":1,"service":"s","command":{"operation":""}}',
    )
    expect(signingBytes('s', { operation: 'x', members: [''] }).toString()).toContain('"members":[""]')
  })

  test('signature, proof and unknown fields change nothing', () => {
    const strange = { operation: 'x', signature: 's', proof: '8.1', extra: 'e' }
    expect(signingBytes('s', strange)).toEqual(signingBytes('s', { operation: 'x' }))
  })
})

test('a number that is no safe integer is refused, not written differently', () => {
  for (const amount of [1.5, 1e21, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    expect(() => signingBytes('s', { operation: 'x', amount })).toThrow(TypeError)
  }
})

const text = fc.string({ unit: 'grapheme', minLength: 1 })
const value = fc.oneof(
  text,
  fc.maxSafeInteger().filter((number) => number !== 0),
  fc.array(text, { minLength: 1, maxLength: 4 }),
)
const command: fc.Arbitrary<SignableCommand> = fc
  .tuple(text, fc.dictionary(fc.constantFrom(...FIELD_ORDER.slice(1)), value))
  .map(([operation, fields]) => ({ ...fields, operation }))

describe('laws', () => {
  test('the bytes are compact JSON that parses back to the command, in field order', () => {
    fc.assert(
      fc.property(text, command, (service, given) => {
        const bytes = signingBytes(service, given)
        const parsed = JSON.parse(bytes.toString())
        expect(parsed).toEqual({ version: 1, service, command: { ...given } })
        expect(Object.keys(parsed.command)).toEqual(FIELD_ORDER.filter((field) => field in given))
        const plain = JSON.stringify(parsed).replace(/[\u2028\u2029]/g, (separator) =>
          separator === '\u2028' ? '\\u2028' : '\\u2029',
        )
        expect(bytes.toString()).toBe(plain)
      }),
    )
  })

  test('another value in any one field gives other bytes and another id', () => {
    fc.assert(
      fc.property(command, fc.constantFrom(...FIELD_ORDER), value, (given, field, other) => {
        const changed = { ...given, [field]: other } as SignableCommand
        const same = JSON.stringify(given[field]) === JSON.stringify(other)
        const ids = [given, changed].map((one) => commandId(signingBytes('s', one)).eventId)
        expect(ids[0] === ids[1]).toBe(same)
      }),
    )
  })

  test('another service id gives other bytes', () => {
    expect(signingBytes('a', { operation: 'x' })).not.toEqual(signingBytes('b', { operation: 'x' }))
  })

  test('an id is the SHA-256 of the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        expect(commandId(bytes)).toEqual({ sha256, eventId: sha256.slice(0, 32) })
      }),
    )
  })
})
