/**
 * When to retry and when to stop: the life cycle of a hook's deliveries as one pure function.
 *
 * The first attempt of an event is made immediately, then after 5 s, 30 s, 2 min, 10 min and 1 h, each plus or minus 10
 * percent. When the last has failed, the hook is suspended and the event waits. 410 and 413 drop the event. Five 410 in a row
 * suspend a subscription, one a plain webhook.
 */
import type { HookForm } from '../../actors/webhooks/webhooks.ts'

/** Milliseconds before the second attempt and those after it. */
export const waitsMs: readonly number[] = [5_000, 30_000, 120_000, 600_000, 3_600_000]
export const attemptsMax = waitsMs.length + 1
const jitter = 0.1
/** The longest that a target may delay the next attempt with Retry-After. */
const retryAfterMaxMs = 3_600_000
const goneInRowMax = 5

/** The values of `lastError`: never anything that the target sent. */
export type Trouble =
  | 'connection_refused'
  /** The connection ended without an answer. */
  | 'connection_lost'
  /** The name of the host has no address. */
  | 'no_address'
  /** The host is not on the public Internet: nothing is ever sent to it. */
  | 'address_blocked'
  | 'timeout'
  | 'tls_error'
  | 'http_3xx'
  | 'http_4xx'
  | 'http_5xx'
  | 'challenge_failed'
  | 'access_revoked'

export type Outcome =
  | { readonly kind: 'delivered' }
  /** 410. */
  | { readonly kind: 'gone' }
  /** 413. */
  | { readonly kind: 'too_large' }
  | { readonly kind: 'failed'; readonly trouble: Trouble; readonly retryAfterMs: number }

export type Course = {
  /** Failed attempts of the event at the head of the queue. */
  readonly attempts: number
  /** Unix milliseconds of the first failure since the last success, 0 = none. */
  readonly failedSince: number
  readonly lastError: Trouble | ''
  /** Unix milliseconds of the last success, 0 = none yet. */
  readonly deliveredAt: number
  readonly goneInRow: number
  readonly suspended: boolean
  /** Unix milliseconds before which nothing is tried. */
  readonly notBefore: number
  readonly throttled: boolean
}

export const freshCourse: Course = {
  attempts: 0,
  failedSince: 0,
  lastError: '',
  deliveredAt: 0,
  goneInRow: 0,
  suspended: false,
  notBefore: 0,
  throttled: false,
}

type Step = {
  readonly course: Course
  /** The event is finished, delivered or not; otherwise it stays at the head of the queue. */
  readonly settled: boolean
}

type Setting = {
  readonly form: HookForm
  /** Unix milliseconds. */
  readonly now: number
  /** From 0 to 1, exclusive of 1. */
  readonly chance: number
  /** Multiplies all waits; 1 except in tests. */
  readonly scale: number
}

export function afterAttempt(course: Course, outcome: Outcome, { form, now, chance, scale }: Setting): Step {
  if (outcome.kind === 'delivered') return { course: { ...freshCourse, deliveredAt: now }, settled: true }
  if (outcome.kind !== 'failed') {
    const goneInRow = outcome.kind === 'gone' ? course.goneInRow + 1 : course.goneInRow
    const suspended = outcome.kind === 'gone' && (form === 'webhook' || goneInRow >= goneInRowMax)
    const failing = { failedSince: course.failedSince || now, lastError: 'http_4xx' as const }
    return {
      course: { ...course, ...failing, attempts: 0, goneInRow, suspended, notBefore: 0, throttled: false },
      settled: true,
    }
  }
  const attempts = course.attempts + 1
  const failing = {
    ...course,
    attempts,
    failedSince: course.failedSince || now,
    lastError: outcome.trouble,
    goneInRow: 0,
    throttled: outcome.retryAfterMs > 0,
  }
  if (attempts >= attemptsMax) return { course: { ...failing, suspended: true, notBefore: 0 }, settled: false }
  const planned = waitsMs[attempts - 1]! * (1 - jitter + 2 * jitter * chance)
  const wait = Math.max(planned, Math.min(outcome.retryAfterMs, retryAfterMaxMs)) * scale
  return { course: { ...failing, notBefore: now + Math.ceil(wait) }, settled: false }
}

/** Its owner has requested it: a suspended hook resumes, and the waiting event gets all its attempts again. */
export function woken(course: Course): Course {
  return { ...course, attempts: 0, goneInRow: 0, suspended: false, notBefore: 0, throttled: false }
}

/** The status shown to the owner. */
export function statusOf(course: Course, now: number) {
  const { suspended, deliveredAt, lastError, failedSince, throttled, notBefore } = course
  return {
    active: !suspended,
    lastDeliveryAt: deliveredAt === 0 ? null : new Date(deliveredAt).toISOString(),
    lastError: lastError === '' ? null : lastError,
    ...(failedSince === 0 ? {} : { failedSince: new Date(failedSince).toISOString() }),
    ...(throttled && notBefore > now ? { throttled: true, retryAfterMs: notBefore - now } : {}),
  }
}
export type DeliveryStatus = ReturnType<typeof statusOf>
