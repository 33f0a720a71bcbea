/** The life of a hook's deliveries: when each attempt is made, and when there are no more. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  afterAttempt,
  attemptsMax,
  type Course,
  freshCourse,
  type Outcome,
  statusOf,
  waitsMs,
  woken,
} from '../../../src/webhooks/retry.ts'

const setting = { form: 'mcp', now: 1_000_000, chance: 0.5, scale: 1 } as const
const failed: Outcome = { kind: 'failed', trouble: 'timeout', retryAfterMs: 0 }

test('an event is sent immediately, after 5 s, 30 s, 2 min, 10 min and 1 h, then the hook is suspended and the event waits', () => {
  let course = freshCourse
  const waits: number[] = []
  for (let attempt = 1; attempt < attemptsMax; attempt++) {
    const step = afterAttempt(course, failed, setting)
    expect([step.settled, step.course.suspended]).toEqual([false, false])
    waits.push(step.course.notBefore - setting.now)
    course = step.course
  }
  expect(waits).toEqual([5_000, 30_000, 120_000, 600_000, 3_600_000])
  const last = afterAttempt(course, failed, setting)
  expect([last.settled, last.course.suspended, last.course.attempts]).toEqual([false, true, 6])
  expect(statusOf(last.course, setting.now)).toEqual({
    active: false,
    lastDeliveryAt: null,
    lastError: 'timeout',
    failedSince: '1970-01-01T00:16:40.000Z',
  })
  expect(woken(last.course)).toMatchObject({ suspended: false, attempts: 0, notBefore: 0 })
})

test('410 and 413 give the event up; five 410 in a row suspend a subscription, one a plain webhook', () => {
  let course = freshCourse
  for (let n = 1; n <= 5; n++) {
    const step = afterAttempt(course, { kind: 'gone' }, setting)
    expect([step.settled, step.course.suspended]).toEqual([true, n === 5])
    course = step.course
  }
  expect(afterAttempt(freshCourse, { kind: 'gone' }, { ...setting, form: 'webhook' }).course.suspended).toBe(true)
  for (const form of ['mcp', 'webhook'] as const) {
    let large = freshCourse
    for (let n = 0; n < 9; n++) {
      const step = afterAttempt(large, { kind: 'too_large' }, { ...setting, form })
      expect([step.settled, step.course.suspended]).toEqual([true, false])
      large = step.course
    }
  }
})

test('a target that asks for time gets it, up to an hour, and its owner is notified', () => {
  const asked = { ...failed, retryAfterMs: 90_000 }
  const { course } = afterAttempt(freshCourse, asked, setting)
  expect(course.notBefore - setting.now).toBe(90_000)
  expect(statusOf(course, setting.now)).toMatchObject({ throttled: true, retryAfterMs: 90_000 })
  expect(afterAttempt(freshCourse, { ...failed, retryAfterMs: 1e9 }, setting).course.notBefore - setting.now).toBe(
    3_600_000,
  )
})

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant<Outcome>({ kind: 'delivered' }),
  fc.constant<Outcome>({ kind: 'gone' }),
  fc.constant<Outcome>({ kind: 'too_large' }),
  fc.record({
    kind: fc.constant('failed' as const),
    trouble: fc.constantFrom('timeout' as const, 'http_5xx' as const),
    retryAfterMs: fc.integer({ min: 0, max: 10_000_000 }),
  }),
)

test('whatever targets answer: waits are bounded and jittered, no event has more than six attempts, success resets all', () => {
  const run = fc.array(fc.tuple(outcome, fc.double({ min: 0, max: 0.999, noNaN: true })), { maxLength: 60 })
  fc.assert(
    fc.property(run, fc.constantFrom('mcp' as const, 'webhook' as const), (steps, form) => {
      let course: Course = freshCourse
      let now = 1_000
      let attempts = 0
      for (const [each, chance] of steps) {
        if (course.suspended) course = woken(course)
        if (attempts === 0) expect(course.attempts).toBe(0)
        const step = afterAttempt(course, each, { form, now, chance, scale: 1 })
        attempts = step.settled || step.course.suspended ? 0 : attempts + 1
        expect(attempts).toBeLessThan(attemptsMax)
        expect(step.settled).toBe(each.kind !== 'failed')
        const wait = step.course.notBefore === 0 ? 0 : step.course.notBefore - now
        if (each.kind === 'failed' && !step.course.suspended) {
          const planned = waitsMs[course.attempts]!
          expect(wait).toBeGreaterThanOrEqual(Math.floor(planned * 0.9))
          expect(wait).toBeLessThanOrEqual(Math.max(planned * 1.1, Math.min(each.retryAfterMs, 3_600_000)) + 1)
        } else expect(wait).toBe(0)
        if (each.kind === 'delivered') expect(step.course).toEqual({ ...freshCourse, deliveredAt: now })
        course = step.course
        now += 1 + wait
      }
    }),
  )
})
