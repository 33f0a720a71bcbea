import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { parseProof, provenBits, solveProof } from '../../../src/format/signing.ts'

const commandSha256 = createHash('sha256').update('a command').digest('hex')

test('a solved proof is valid, and its hash starts with the zeros it names', () => {
  for (let bits = 1; bits <= 12; bits += 1) {
    const proof = solveProof(commandSha256, bits)!
    expect(provenBits(proof, commandSha256)).toBeGreaterThanOrEqual(bits)
    const digest = createHash('sha256')
      .update(`broadside-proof-v1\n${commandSha256}\n${proof.split('.')[1]}`)
      .digest()
    const zeros = BigInt(`0x${digest.toString('hex')}`)
      .toString(2)
      .padStart(256, '0')
      .indexOf('1')
    expect(zeros).toBeGreaterThanOrEqual(bits)
  }
})

describe('refused', () => {
  const proof = solveProof(commandSha256, 10)!

  test('a proof with fewer bits than required; more are accepted', () => {
    expect(provenBits(proof, commandSha256)).toBeLessThan(11)
    expect(provenBits(proof, commandSha256)).toBeGreaterThanOrEqual(10)
    expect(provenBits(proof, commandSha256)).toBeGreaterThanOrEqual(3)
  })

  test('a proof that names more bits than it has', () => {
    const [, counter] = proof.split('.')
    expect(provenBits(`40.${counter}`, commandSha256)).toBeLessThan(10)
  })

  test('the proof of another command', () => {
    const other = createHash('sha256').update('another command').digest('hex')
    expect(provenBits(proof, other)).toBeLessThan(10)
  })

  test.each([
    '',
    '10',
    '10.',
    '.5',
    '10.05',
    '010.5',
    '+10.5',
    '10.-5',
    '10.5 ',
    '10.5\n',
    '10.5.5',
    '1e1.5',
    '41.5',
    '0.5',
    '100.5',
    '10.9007199254740992',
    `10.${'1'.repeat(40)}`,
    '10.0x5',
  ])('the text %j, which is no proof', (text) => {
    expect(parseProof(text)).toBeUndefined()
    expect(provenBits(text, commandSha256)).toBeLessThan(1)
  })
})

test('bits and counter are parsed as written', () => {
  expect(parseProof('28.9007199254740991')).toEqual({ bits: 28, counter: 9007199254740991 })
  expect(parseProof('1.0')).toEqual({ bits: 1, counter: 0 })
})

test('the solver starts where it is told, and refuses a target nobody can reach', () => {
  const first = solveProof(commandSha256, 6)!
  const next = solveProof(commandSha256, 6, Number(first.split('.')[1]) + 1)!
  expect(next).not.toBe(first)
  expect(provenBits(next, commandSha256)).toBeGreaterThanOrEqual(6)
  expect(() => solveProof(commandSha256, 41)).toThrow(RangeError)
  expect(() => solveProof(commandSha256, 0)).toThrow(RangeError)
})
