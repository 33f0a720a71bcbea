import { createPublicKey, generateKeyPairSync, type KeyObject, verify as opensslVerify, sign } from 'node:crypto'
import { verify as nobleVerify } from '@noble/ed25519'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  chooseBackend,
  createNobleBackend,
  createOpensslBackend,
  createSodiumBackend,
  type Ed25519Backend,
  KeyCache,
  passesSelfTest,
} from '../../../src/verify/backends.ts'
import { readVector, vectors } from '../../support/vectors.ts'
import { craft, groupOrder, smallOrderEncodings, torsion, torsion8 } from './edge-points.ts'

const backends = [createNobleBackend(), createOpensslBackend(), createSodiumBackend()]
const [noble, openssl, sodium] = backends as [Ed25519Backend, Ed25519Backend, Ed25519Backend]

/** What all backends say, or a failure that names those that disagree. */
function verdict(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  const said = backends.map((backend) => [backend.name, backend.verify(signature, message, publicKey)])
  expect(new Set(said.map(([, yes]) => yes)).size, `backends disagree: ${JSON.stringify(said)}`).toBe(1)
  return said[0]![1] as boolean
}

function keyVerdict(publicKey: Uint8Array): boolean {
  const said = backends.map((backend) => [backend.name, backend.checkKey(publicKey)])
  expect(new Set(said.map(([, yes]) => yes)).size, `backends disagree: ${JSON.stringify(said)}`).toBe(1)
  return said[0]![1] as boolean
}

function newSigner(): { key: KeyObject; publicKey: Buffer } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return { key: privateKey, publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(12) }
}

const signer = newSigner()
const message = Buffer.from('{"version":1,"service":"bs-test","command":{"operation":"post"}}')
const signature = sign(undefined, message, signer.key)

describe.skipIf(vectors.isAbsent)(`published vectors${vectors.note}`, () => {
  const read = (name: string) => JSON.parse(readVector(`ed25519/${name}`))
  const hex = (text: string) => Buffer.from(text, 'hex')

  test('all 12 speccheck cases are refused by every backend', () => {
    const cases = read('ed25519-speccheck-cases.json') as { message: string; pub_key: string; signature: string }[]
    expect(cases).toHaveLength(12)
    for (const one of cases) expect(verdict(hex(one.signature), hex(one.message), hex(one.pub_key))).toBe(false)
  })

  test('all 151 Wycheproof tests come out as published, with every backend', () => {
    type Group = {
      publicKey: { pk: string }
      tests: { tcId: number; comment: string; msg: string; sig: string; result: string }[]
    }
    let count = 0
    for (const group of read('wycheproof-ed25519_test.json').testGroups as Group[]) {
      for (const one of group.tests) {
        count += 1
        const said = verdict(hex(one.sig), hex(one.msg), hex(group.publicKey.pk))
        expect(said, `tcId ${one.tcId} ${one.comment}`).toBe(one.result === 'valid')
      }
    }
    expect(count).toBe(151)
  })
})

test('a valid signature is accepted, whatever the length of the message', () => {
  for (const length of [0, 1, 63, 64, 65, 300, 70_000]) {
    const text = Buffer.alloc(length, length)
    expect(verdict(sign(undefined, text, signer.key), text, signer.publicKey)).toBe(true)
  }
})

test('the bytes may be anywhere in a larger buffer', () => {
  const large = Buffer.concat([Buffer.alloc(3), signature, signer.publicKey, message, Buffer.alloc(5)])
  const view = (from: number, length: number) => new Uint8Array(large.buffer, large.byteOffset + from, length)
  expect(verdict(view(3, 64), view(99, message.length), view(67, 32))).toBe(true)
  expect(verdict(view(4, 64), view(99, message.length), view(67, 32))).toBe(false)
})

describe('one bit', () => {
  function flipped(bytes: Uint8Array, bit: number): Buffer {
    const bent = Buffer.from(bytes)
    bent[bit >> 3] = bent[bit >> 3]! ^ (1 << (bit & 7))
    return bent
  }

  test('of the signature: every flip is refused', () => {
    for (let bit = 0; bit < 512; bit += 1) {
      expect(openssl.verify(flipped(signature, bit), message, signer.publicKey)).toBe(false)
      expect(sodium.verify(flipped(signature, bit), message, signer.publicKey)).toBe(false)
      if (bit % 8 === 5) expect(noble.verify(flipped(signature, bit), message, signer.publicKey)).toBe(false)
    }
  })

  test('of the key: every flip is refused', () => {
    for (let bit = 0; bit < 256; bit += 1) {
      expect(verdict(signature, message, flipped(signer.publicKey, bit))).toBe(false)
    }
  })

  test('of the message: every flip is refused', () => {
    for (let bit = 0; bit < message.length * 8; bit += 1) {
      const bent = flipped(message, bit)
      expect(openssl.verify(signature, bent, signer.publicKey)).toBe(false)
      expect(sodium.verify(signature, bent, signer.publicKey)).toBe(false)
      if (bit % 8 === 3) expect(noble.verify(signature, bent, signer.publicKey)).toBe(false)
    }
  })
})

test('random bytes get the same answer from all and never throw', () => {
  const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
  fc.assert(
    fc.property(bytes(64), bytes(32), bytes(20), (junk, key, text) => {
      expect(verdict(junk, text, key)).toBe(false)
      keyVerdict(key)
    }),
    { numRuns: 150 },
  )
})

test('another length of signature or key is refused, one byte more or less or none at all', () => {
  const longer = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(1)])
  for (const bent of [signature.subarray(0, 63), longer(signature), Buffer.alloc(0)]) {
    expect(verdict(bent, message, signer.publicKey)).toBe(false)
  }
  for (const bent of [signer.publicKey.subarray(0, 31), longer(signer.publicKey), Buffer.alloc(0)]) {
    expect(verdict(signature, message, bent)).toBe(false)
    expect(keyVerdict(bent)).toBe(false)
  }
})

describe('torsion', () => {
  test('key torsion-free, R = rB + T with T of order 8: noble alone says true, all of ours say false', () => {
    expect(torsion8.multiply(4n, false).is0()).toBe(false)
    expect(torsion8.multiply(8n, false).is0()).toBe(true)
    const made = craft({ a: 0x1234567n, r: 0x89abcdefn, keyTorsion: 0, nonceTorsion: 1, message })
    expect(keyVerdict(made.publicKey)).toBe(true)
    expect(nobleVerify(made.signature, message, made.publicKey, { zip215: false })).toBe(true)
    expect(verdict(made.signature, message, made.publicKey)).toBe(false)
  })

  test('of all 64 pairs of torsion in key and R, only the pair without any is accepted', () => {
    for (let keyTorsion = 0; keyTorsion < 8; keyTorsion += 1) {
      for (let nonceTorsion = 0; nonceTorsion < 8; nonceTorsion += 1) {
        const made = craft({ a: 77n + BigInt(keyTorsion), r: 991n, keyTorsion, nonceTorsion, message })
        expect(keyVerdict(made.publicKey)).toBe(keyTorsion === 0)
        expect(verdict(made.signature, message, made.publicKey)).toBe(keyTorsion === 0 && nonceTorsion === 0)
      }
    }
  })

  test('any scalars without torsion are accepted', () => {
    const scalar = fc.bigInt({ min: 1n, max: groupOrder - 1n })
    fc.assert(
      fc.property(scalar, scalar, (a, r) => {
        const made = craft({ a, r, keyTorsion: 0, nonceTorsion: 0, message })
        expect(verdict(made.signature, message, made.publicKey)).toBe(true)
      }),
      { numRuns: 30 },
    )
  })
})

test('R = identity is refused, though OpenSSL alone would accept it', () => {
  const made = craft({ a: 12_345n, r: 0n, keyTorsion: 0, nonceTorsion: 0, message })
  const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), made.publicKey])
  const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
  expect(opensslVerify(undefined, message, key, made.signature)).toBe(true)
  expect(verdict(made.signature, message, made.publicKey)).toBe(false)
})

test('R of small order is refused, however it is encoded', () => {
  for (const encoding of smallOrderEncodings()) {
    const bent = Buffer.concat([encoding, signature.subarray(32)])
    expect(verdict(bent, message, signer.publicKey)).toBe(false)
  }
})

test('S + L, the same scalar encoded too large, is refused', () => {
  const scalars = { a: 4_242n, r: 31_337n, keyTorsion: 0, nonceTorsion: 0, message }
  const made = craft(scalars)
  expect(verdict(made.signature, message, made.publicKey)).toBe(true)
  const tooLarge = craft({ ...scalars, sPlus: groupOrder })
  expect(tooLarge.publicKey).toEqual(made.publicKey)
  expect(verdict(tooLarge.signature, message, tooLarge.publicKey)).toBe(false)
})

test('none of the 14 encodings of small-order points is a key', () => {
  const encodings = smallOrderEncodings()
  expect(new Set(encodings.map((encoding) => encoding.toString('hex'))).size).toBe(14)
  for (const encoding of encodings) {
    expect(keyVerdict(encoding)).toBe(false)
    expect(verdict(signature, message, encoding)).toBe(false)
  }
  for (let i = 0; i < 8; i += 1) expect(keyVerdict(torsion(i).toBytes())).toBe(false)
})

test('y = p + 3 to p + 18 are no keys: each would be a second encoding of the key y - p', () => {
  for (let low = 0xf0; low <= 0xff; low += 1) {
    for (const high of [0x7f, 0xff]) {
      const bytes = Buffer.alloc(32, 0xff)
      bytes[0] = low
      bytes[31] = high
      expect(keyVerdict(bytes)).toBe(false)
    }
  }
})

describe('choice', () => {
  test('every backend passes the self-test, and each can be requested by name', () => {
    for (const backend of backends) {
      expect(passesSelfTest(backend)).toBe(true)
      expect(chooseBackend(backend.name).name).toBe(backend.name)
    }
  })

  test('libsodium is chosen where it loads', () => {
    expect(chooseBackend().name).toBe('sodium')
  })

  test('a backend that accepts everything, or nothing, or small-order keys, fails the self-test', () => {
    expect(passesSelfTest({ ...openssl, verify: () => true })).toBe(false)
    expect(passesSelfTest({ ...openssl, verify: () => false })).toBe(false)
    expect(passesSelfTest({ ...openssl, checkKey: () => true })).toBe(false)
  })
})

describe('the cache of keys', () => {
  test('examines each key once, holds no more than its bound, and evicts the least recently used', () => {
    const examined: number[] = []
    const cache = new KeyCache((key) => {
      examined.push(key[0]!)
      return key[0]! * 2
    }, 3)
    const ask = (first: number) => cache.get(Buffer.alloc(32, first))
    expect([1, 2, 3, 1].map(ask)).toEqual([2, 4, 6, 2])
    expect(examined).toEqual([1, 2, 3])
    ask(4) // evicts 2: 1 was used since
    expect(cache.size).toBe(3)
    ask(1)
    ask(3)
    expect(examined).toEqual([1, 2, 3, 4])
    ask(2)
    expect(examined).toEqual([1, 2, 3, 4, 2])
  })
})
