/** How durations of limits are worded. */
import { expect, test } from 'vitest'
import { spanText } from '../../actors/kernel/day.ts'

test('a duration of whole hours or days is given in these, and any other in seconds', () => {
  expect(spanText(345_600, 'hours')).toBe('96 hours')
  expect(spanText(604_800, 'days')).toBe('7 days')
  expect(spanText(100_000, 'hours')).toBe('100000 seconds')
  expect(spanText(43_200, 'days')).toBe('43200 seconds')
})
