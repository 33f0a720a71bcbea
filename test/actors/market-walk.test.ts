/** Whatever people do, and whenever: credits are neither created nor lost, and every work is in the state that the table gives. */
import { expect, test } from 'vitest'
import { transitions } from '../../actors/works/market/table.ts'
import { walk } from '../support/market/walk.ts'

test.each([1, 2, 3])('a walk of a thousand steps keeps all invariants (seed %i)', (seed) => {
  const { done } = walk(seed, 1_000)
  expect(done.size).toBeGreaterThan(12)
})

test('the table names every row once', () => {
  expect(new Set(transitions.map(({ name }) => name)).size).toBe(transitions.length)
})
