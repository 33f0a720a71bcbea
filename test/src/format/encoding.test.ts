import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeBase64url, decodeBytes32, decodeBytes64, isHex32, isHex64 } from '../../../src/format/signing.ts'

const encoded = (given: Uint8Array) => Buffer.from(given).toString('base64url')
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

test('keys and signatures of any bytes are encoded and decoded', () => {
  fc.assert(
    fc.property(bytes(32), bytes(64), (key, signature) => {
      expect([...decodeBytes32(encoded(key))!]).toEqual([...key])
      expect([...decodeBytes64(encoded(signature))!]).toEqual([...signature])
    }),
  )
})

test('bytes and text of any length are encoded and decoded', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (given) => {
      expect([...decodeBase64url(encoded(given))!]).toEqual([...given])
    }),
  )
})

describe('each value has exactly one encoding', () => {
  test('of the 64 last characters exactly one decodes to this key, and one to this signature', () => {
    const key = encoded(Buffer.alloc(32, 0xa7))
    const signature = encoded(Buffer.alloc(64, 0xa7))
    const readings = (text: string, decode: (text: string) => Buffer | undefined) =>
      [...alphabet].filter((last) => decode(text.slice(0, -1) + last)?.at(-1) === 0xa7)
    expect(readings(key, decodeBytes32)).toEqual([key.at(-1)])
    expect(readings(signature, decodeBytes64)).toEqual([signature.at(-1)])
    expect([...alphabet].filter((last) => decodeBytes32(key.slice(0, -1) + last) !== undefined)).toHaveLength(16)
    expect([...alphabet].filter((last) => decodeBytes64(signature.slice(0, -1) + last) !== undefined)).toHaveLength(4)
  })

  test('padding, the other alphabet, white space, and other lengths are refused', () => {
    const key = encoded(Buffer.alloc(32, 0xff))
    const others = [
      `${key}=`,
      key.replaceAll('_', '/'),
      ` ${key}`,
      `${key}\n`,
      `${key.slice(0, 20)} ${key.slice(20)}`,
      key.slice(1),
      `A${key}`,
      `${key.slice(0, 42)}é`,
      '',
    ]
    for (const other of others) expect(decodeBytes32(other), other).toBeUndefined()
    const signature = encoded(Buffer.alloc(64, 0xff))
    const bent = [`${signature}==`, signature.replaceAll('_', '/'), `${signature}\n`, signature.slice(1), key, '']
    for (const other of bent) expect(decodeBytes64(other), other).toBeUndefined()
    for (const other of ['AA==', 'A', 'AB', 'A A', 'AA\n', '+/+/'])
      expect(decodeBase64url(other), other).toBeUndefined()
  })

  test('a text of the right length is decoded exactly when encoding gives it back', () => {
    const character = fc.constantFrom(...alphabet, '=', '+', '/', ' ')
    const text = (length: number) => fc.string({ unit: character, minLength: length, maxLength: length })
    const canonical = (given: string) => Buffer.from(given, 'base64url').toString('base64url') === given
    fc.assert(
      fc.property(text(43), text(86), (key, signature) => {
        expect(decodeBytes32(key) !== undefined).toBe(canonical(key))
        expect(decodeBytes64(signature) !== undefined).toBe(canonical(signature))
      }),
    )
  })
})

test('hex ids are lowercase and of one length', () => {
  const id = 'ab'.repeat(16)
  expect([id, id.toUpperCase(), id.slice(1), `${id}0`, `${id}\n`, `${id.slice(1)}g`].map(isHex32)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ])
  expect([id + id, id, (id + id).toUpperCase(), `${id}${id}\n`].map(isHex64)).toEqual([true, false, false, false])
})
