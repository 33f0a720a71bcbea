/** What the threads know of a clock jump. */
import { expect, test } from 'vitest'
import { sharedHold, storeHold, timeoutsHeldAt } from '../../../src/workers/shared-hold.ts'

const start = 1_790_000_000

test('until the main thread has checked the clocks nothing times out', () => {
  expect(timeoutsHeldAt(sharedHold(), start)).toBe(0)
})

test('the finding of the main thread holds for every thread until the next one', () => {
  const hold = sharedHold()
  storeHold(hold, start, undefined)
  expect(timeoutsHeldAt(hold, start + 1)).toBeUndefined()
  storeHold(hold, start + 86_400, { heldAt: start })
  expect(timeoutsHeldAt(hold, start + 86_401)).toBe(start)
  storeHold(hold, start + 86_402, undefined)
  expect(timeoutsHeldAt(hold, start + 86_403)).toBeUndefined()
})

test.each([86_400, -86_400])('a thread that sees a jump of %i s before the main thread does waits', (by) => {
  const hold = sharedHold()
  storeHold(hold, start, undefined)
  expect(timeoutsHeldAt(hold, start + by)).toBe(start)
})
