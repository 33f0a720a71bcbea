import { expect, test } from 'vitest'
import { encodeApart, Packr } from '../../../actors/kernel/msgpack.ts'

const codec = new Packr({ useRecords: false, moreTypes: false })

test('a value encoded separately affects no other encoding', () => {
  const kept: [number, Buffer][] = []
  const apart: [number, Uint8Array][] = []
  for (let n = 0; n < 2_000; n++) {
    kept.push([n, codec.pack({ n, text: `kept ${n}` })])
    apart.push([n, encodeApart(codec, { n, text: 'x'.repeat((n * 7919) % 20_000) })])
  }
  expect(kept.map(([, bytes]) => codec.unpack(bytes))).toEqual(kept.map(([n]) => ({ n, text: `kept ${n}` })))
  expect(apart.map(([, bytes]) => (codec.unpack(bytes) as { n: number }).n)).toEqual(apart.map(([n]) => n))
})

test('it has its own memory, and takes none of the buffer that the codecs share', () => {
  const before = codec.pack(1)
  const bytes = encodeApart(codec, ['x'.repeat(1_000)])
  const after = codec.pack(2)
  expect(bytes.byteLength).toBe(bytes.buffer.byteLength)
  expect(after.buffer).toBe(before.buffer)
  expect(after.byteOffset - before.byteOffset).toBeLessThan(64)
})
