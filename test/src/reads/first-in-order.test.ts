import fc from 'fast-check'
import { expect, test } from 'vitest'
import { firstInOrder } from '../../../src/reads/first-in-order.ts'

test('the first items are those of the whole list in order', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50)), fc.integer({ min: 1, max: 20 }), (items, count) => {
      expect(firstInOrder(items, count, (a, b) => a - b)).toEqual(items.toSorted((a, b) => a - b).slice(0, count))
    }),
  )
})

test('items that are equal stay in the order in which they came', () => {
  const items = ['b1', 'a1', 'b2', 'a2', 'b3']
  expect(firstInOrder(items, 4, (a, b) => a.charCodeAt(0) - b.charCodeAt(0))).toEqual(['a1', 'a2', 'b1', 'b2'])
})

test('of many items, nearly all are compared once', () => {
  const items = Array.from({ length: 10_000 }, (_, n) => (n * 7_919) % 10_007)
  let compared = 0
  firstInOrder(items, 10, (a, b) => {
    compared++
    return a - b
  })
  expect(compared).toBeLessThan(1.1 * items.length)
})
