import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame, FRAME_BYTES_LIMIT, FRAME_HEADER_BYTES, frameRefusal } from '../../storage/frame.ts'
import { seedOf } from '../../storage/segment.ts'

const frames = fc.record({
  type: fc.integer({ min: 1, max: 254 }),
  flags: fc.integer({ min: 0, max: 255 }),
  payload: fc.uint8Array({ minLength: 1, maxLength: 400 }),
})
const seqs = fc.maxSafeNat()
const seeds = fc.integer({ min: 0, max: 2 ** 32 - 1 })
const seed = 0x12345678

test('a frame is decoded as it was written, at any offset', () => {
  fc.assert(
    fc.property(frames, seqs, seqs, fc.nat(50), seeds, (frame, seq, durableSeq, at, seed) => {
      const bytes = Buffer.alloc(at + FRAME_HEADER_BYTES + frame.payload.length)
      expect(encodeFrame(bytes, at, frame, { seq, durableSeq, seed })).toBe(bytes.length)
      const found = decodeFrame(bytes, at, bytes.length, seed)
      expect(found).toEqual({
        ...frame,
        payload: Buffer.from(frame.payload),
        seq,
        durableSeq,
        peerSeq: 0,
        frameBytes: bytes.length - at,
      })
    }),
  )
})

test('what a frame records of another journal is decoded with it, and ignored where it does not fit', () => {
  const distances = fc.oneof(fc.integer({ min: 1, max: 2 ** 23 - 1 }), fc.integer({ min: 2 ** 23, max: 2 ** 30 }))
  const peers = fc.oneof(fc.integer({ min: 1, max: 2 ** 40 - 1 }), fc.integer({ min: 2 ** 40, max: 2 ** 50 }))
  fc.assert(
    fc.property(frames, seqs, distances, peers, (frame, before, distance, peerSeq) => {
      const seq = Math.min(before, 2 ** 52) + distance
      const durableSeq = seq - distance
      const bytes = Buffer.alloc(FRAME_HEADER_BYTES + frame.payload.length)
      encodeFrame(bytes, 0, frame, { seq, durableSeq, peerSeq, seed })
      const fits = distance < 2 ** 23 && peerSeq < 2 ** 40
      const expected = { seq, durableSeq, peerSeq: fits ? peerSeq : 0 }
      expect(decodeFrame(bytes, 0, bytes.length, seed)).toMatchObject(expected)
    }),
  )
})

test('a frame with any bit changed is invalid', () => {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + 9)
  encodeFrame(bytes, 0, { type: 3, flags: 1, payload: Buffer.from('some text') }, { seq: 7, durableSeq: 6, seed })
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(decodeFrame(changed, 0, changed.length, seed).frameBytes).toBeUndefined()
  }
})

test('a frame cut anywhere is short and says how many bytes it needs', () => {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + 5)
  encodeFrame(bytes, 0, { type: 1, flags: 0, payload: Buffer.from('12345') }, { seq: 1, durableSeq: 0, seed })
  for (let end = 0; end < bytes.length; end++) {
    const needs = end < FRAME_HEADER_BYTES ? FRAME_HEADER_BYTES : bytes.length
    expect(decodeFrame(bytes, 0, end, seed)).toMatchObject({ fault: 'short', needs })
  }
})

test('the bytes of a frame match the table in the file that defines the format', () => {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + 1)
  const frame = { type: 2, flags: 0x81, payload: Buffer.from('!') }
  // Another program (Python's zlib) computed the CRCs, the second one with the id 00 01 02 .. 0f.
  encodeFrame(bytes, 0, frame, { seq: 2 ** 32 + 5, durableSeq: 4, seed: 0 })
  const withCrc = (crc: string) => `ffb502810100000005000000010000000400000000000000${crc}21`
  expect(bytes.toString('hex')).toBe(withCrc('1e2cb9c3'))
  const journalId = Uint8Array.from({ length: 16 }, (_, n) => n)
  encodeFrame(bytes, 0, frame, { seq: 2 ** 32 + 5, durableSeq: 4, seed: seedOf(journalId) })
  expect(bytes.toString('hex')).toBe(withCrc('34b72ca3'))
})

test('a frame of another journal is invalid in this one', () => {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES + 1)
  const frame = { type: 1, flags: 0, payload: Buffer.from('x') }
  encodeFrame(bytes, 0, frame, { seq: 1, durableSeq: 0, seed: seedOf(Buffer.alloc(16, 1)) })
  expect(decodeFrame(bytes, 0, bytes.length, seedOf(Buffer.alloc(16, 2)))).toMatchObject({ fault: 'crc' })
  expect(decodeFrame(bytes, 0, bytes.length, 0)).toMatchObject({ fault: 'crc' })
})

test('random bytes and zeros are no frame', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      expect(decodeFrame(Buffer.from(bytes), 0, bytes.length, seed).frameBytes).toBeUndefined()
    }),
  )
  expect(decodeFrame(Buffer.alloc(100), 0, 100, seed)).toMatchObject({ fault: 'magic' })
})

test.each([
  ['no type', { type: 0, flags: 0, payload: Buffer.from('a') }],
  ['the type of a footer', { type: 255, flags: 0, payload: Buffer.from('a') }],
  ['a stub', { type: 1, flags: 0x40, payload: Buffer.alloc(40) }],
  ['an empty payload', { type: 1, flags: 0, payload: Buffer.alloc(0) }],
  ['a key of 15 bytes', { type: 1, flags: 0x80, payload: Buffer.alloc(15) }],
  ['one byte too many', { type: 1, flags: 0, payload: Buffer.alloc(101 - FRAME_HEADER_BYTES) }],
])('a frame with %s cannot be appended', (_, frame) => {
  expect(frameRefusal(frame, 100)).toBeTypeOf('string')
  expect(frameRefusal({ type: 1, flags: 0x80, payload: Buffer.alloc(16) }, 100)).toBeUndefined()
})

test('a length beyond the limit of the format is invalid, however many bytes follow', () => {
  const bytes = Buffer.alloc(100)
  encodeFrame(bytes, 0, { type: 1, flags: 0, payload: Buffer.from('a') }, { seq: 1, durableSeq: 0, seed })
  bytes.writeUInt32LE(FRAME_BYTES_LIMIT, 4)
  expect(decodeFrame(bytes, 0, 100, seed)).toMatchObject({ fault: 'length' })
})
