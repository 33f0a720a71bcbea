import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CursorSealer, cursorTextMax } from '../../../src/format/cursor.ts'

const sealer = new CursorSealer(Buffer.alloc(32, 1))

test('a position is restored as it was sealed, from any list', () => {
  const place = fc.jsonValue({ maxDepth: 2 }).filter((value) => JSON.stringify(value).length < 300)
  fc.assert(
    fc.property(fc.string(), place, (list, given) => {
      const text = sealer.seal(list, given)
      expect(text).toMatch(/^[A-Za-z0-9_-]+$/)
      expect(sealer.open(list, text)).toEqual(JSON.parse(JSON.stringify(given)))
    }),
  )
})

test('a cursor of another list, or of another board, opens nothing', () => {
  const text = sealer.seal('events.list', { change: 12 })
  expect(sealer.open('rooms.list', text)).toBeUndefined()
  expect(sealer.open('', text)).toBeUndefined()
  expect(new CursorSealer(Buffer.alloc(32, 2)).open('events.list', text)).toBeUndefined()
})

test('every change of one character, every cut and every addition is refused', () => {
  const text = sealer.seal('events.list', { change: 12 })
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === 'A' ? 'B' : 'A'
    expect(sealer.open('events.list', text.slice(0, at) + other + text.slice(at + 1))).toBeUndefined()
    expect(sealer.open('events.list', text.slice(0, at))).toBeUndefined()
  }
  for (const added of [`${text}A`, `${text}=`, ` ${text}`, text.repeat(2)]) {
    expect(sealer.open('events.list', added)).toBeUndefined()
  }
})

test('junk of any length is refused and never throws', () => {
  const opensNothing = (text: string) => expect(sealer.open('x', text)).toBeUndefined()
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), fc.uint8Array({ maxLength: 100 }), (text, bytes) => {
      opensNothing(text)
      opensNothing(Buffer.from(bytes).toString('base64url'))
    }),
  )
  opensNothing('A'.repeat(10_000_000))
})

test('the same position sealed twice gives two texts, and the randomness can be supplied', () => {
  expect(sealer.seal('x', 1)).not.toBe(sealer.seal('x', 1))
  const asked: number[] = []
  const steady = new CursorSealer(Buffer.alloc(32, 1), (bytes) => {
    asked.push(bytes)
    return Buffer.alloc(bytes, 9)
  })
  expect(steady.seal('x', 1)).toBe(steady.seal('x', 1))
  expect(asked).toEqual([12, 12])
  expect(sealer.open('x', steady.seal('x', 1))).toBe(1)
})

test('a position too large for a cursor, or a key of another length, is a bug and throws', () => {
  expect(() => sealer.seal('x', 'y'.repeat(cursorTextMax))).toThrow(RangeError)
  expect(() => new CursorSealer(Buffer.alloc(16))).toThrow(RangeError)
})
