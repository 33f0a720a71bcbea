/** Up to where writes are answered, and what is reported of the others. */
import { expect, test } from 'vitest'
import { Acknowledgments } from '../../../src/replication/acknowledgments.ts'
import type { Ends } from '../../../src/replication/journals-out.ts'

const ends = (log: number): Ends => ({ log, shards: [log] })

function waiting(waitsForCopy: boolean) {
  const told: Ends[] = []
  const clock = { nowMs: 0 }
  const held = new Acknowledgments({
    ends: ends(1),
    waitsForCopy,
    clock: { monotonicMs: () => clock.nowMs },
    tell: (given) => told.push(given),
  })
  held.stream(ends(1))
  held.started()
  return { held, told, clock }
}

test('writes that no follower has are a problem after two seconds, until one has them', () => {
  const { held, told, clock } = waiting(true)
  clock.nowMs = 60_000
  expect(held.problem).toBeUndefined()
  held.durable(ends(2))
  held.stream(ends(2))
  clock.nowMs += 1_900
  expect(held.problem).toBeUndefined()
  clock.nowMs += 200
  expect(held.problem).toContain('No follower has confirmed')
  held.copy(ends(2))
  expect(held.problem).toBeUndefined()
  expect(told.at(-1)).toEqual(ends(2))
})

test('writes that the stream does not have are a problem of the stream', () => {
  for (const waitsForCopy of [true, false]) {
    const { held, clock } = waiting(waitsForCopy)
    held.durable(ends(2))
    clock.nowMs += 2_100
    expect(held.problem).toContain('The stream has not acknowledged')
  }
})

test('while some writes keep being answered, those in flight are no problem', () => {
  const { held, clock } = waiting(true)
  for (let n = 2; n < 20; n++) {
    held.durable(ends(n + 1))
    held.stream(ends(n + 1))
    held.copy(ends(n))
    clock.nowMs += 1_000
    expect(held.problem).toBeUndefined()
  }
})
