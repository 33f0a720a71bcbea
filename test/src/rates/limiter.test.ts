/** The rate limiter: what it grants and refunds, and what it does with more keys than it has room for. */
import { expect, test } from 'vitest'
import { Limiter } from '../../../src/rates/meters.ts'

class Clock {
  ms = 0
  readonly now = () => this.ms
}

function limiterAt(rate: { perSecond: number; burst: number }): { limiter: Limiter; clock: Clock } {
  const clock = new Clock()
  return { limiter: new Limiter(rate, clock.now), clock }
}

test('a burst is granted immediately, and allowance is regained evenly', () => {
  const { limiter, clock } = limiterAt({ perSecond: 0.5, burst: 3 })
  expect([1, 2, 3, 4].map(() => limiter.take('a'))).toEqual([0, 0, 0, 2])
  expect(limiter.take('b')).toBe(0)
  clock.ms = 2_000
  expect([limiter.take('a'), limiter.take('a')]).toEqual([0, 2])
  expect(limiter.owed('a')).toEqual({ units: 3, seconds: 6 })
  limiter.giveBack('a', 2)
  expect(limiter.owed('a')).toEqual({ units: 1, seconds: 2 })
  expect(limiter.peek('a')).toBe(0)
})

test('a refused request costs nothing', () => {
  const { limiter } = limiterAt({ perSecond: 1, burst: 10 })
  expect(limiter.take('a', 11)).toBeGreaterThan(0)
  expect(limiter.take('a', 10)).toBe(0)
})

test('without a limit nothing is owed', () => {
  const { limiter } = limiterAt({ perSecond: Number.POSITIVE_INFINITY, burst: Number.POSITIVE_INFINITY })
  for (let n = 0; n < 1_000; n++) expect(limiter.take('a', 1e9)).toBe(0)
  expect(limiter.owed('a')).toEqual({ units: 0, seconds: 0 })
})

test('half a unit is half a unit: a wider network is charged in fractions', () => {
  const { limiter } = limiterAt({ perSecond: 1, burst: 2 })
  expect([1, 2, 3, 4].map(() => limiter.take('a', 0.5))).toEqual([0, 0, 0, 0])
  expect(limiter.take('a', 0.5)).toBe(1)
})

test('however many keys are charged, a newcomer is never refused, and earlier keys stay charged', () => {
  // 72 minutes each, like the new rooms of a day.
  const { limiter } = limiterAt({ perSecond: 20 / 86_400, burst: 20 })
  expect(limiter.take('before', 20)).toBe(0)
  let refused = 0
  for (let n = 0; n < 250_000; n++) if (limiter.take(`key ${n}`) > 0) refused++
  expect(refused).toBe(0)
  expect(limiter.take('newcomer')).toBe(0)
  expect(limiter.take('before')).toBeGreaterThan(0)
})

test('slots of keys that owe nothing are reused', () => {
  const { limiter, clock } = limiterAt({ perSecond: 1, burst: 2 })
  for (let n = 0; n < 250_000; n++) limiter.take(`first ${n}`)
  clock.ms = 10_000
  let charged = 0
  for (let n = 0; n < 1_000; n++) {
    limiter.take(`second ${n}`, 2)
    if (limiter.take(`second ${n}`) > 0) charged++
  }
  expect(charged).toBe(1_000)
})
