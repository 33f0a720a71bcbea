/**
 * The ranking of results. Pure arithmetic on what is known about a result, following the six rules of the directory:
 *
 * 1. Relevance first: `r` in (0, 1], the best match has 1.
 * 2. Quality (probes, reviews, standing) moves a result by at most 0.1 of that.
 * 3. A verdict lowers a result but never hides it.
 * 4. The board's own earnings are not an input: there is no field for them here.
 * 5. Under an interface filter, it matters who says that the interface exists, and how long ago.
 * 6. A search for where to sign up lists the tools of the board after all others.
 */

import type { DoorSource } from '../../actors/tools/kinds.ts'

export type Verdict = '' | 'down' | 'avoid'
export type State = 'unknown' | 'up' | 'degraded' | 'down' | 'stale'

/** `standing`: of its author, in [-1, 1]. */
export type WeighedReview = {
  readonly kind: 'works' | 'mixed' | 'down' | 'avoid'
  readonly at: number
  readonly standing: number
}

export type ProbeStats = { readonly good: number; readonly all: number; readonly lastThreeFailed: boolean }

/** The inputs of a rank. */
export type Ranked = {
  readonly r: number
  readonly q: number
  readonly verdict: Verdict
  readonly state: State
  readonly isSpam: boolean
  /** Interface term, 0 without an interface filter. */
  readonly d: number
}

export const order =
  'text relevance; then the lower bound of probes, mean review verdict and standing within 0.1 of the best match; down, avoid and spam rank lower and are never hidden; under a door filter its source (measured, outside, inferred, self-reported) and age; own margin and relay volume are never used'

const z = 1.96
const probesMin = 5
const reviewShrinkage = 3
const standingShrinkage = 20
export const qualityWeight = 0.1
const freshReviewSeconds = 90 * 86_400

/** Lower bound of the Wilson interval of `good` in `all` at 95 %. */
export function wilsonLow(good: number, all: number): number {
  if (all === 0) return 0
  const p = good / all
  const z2 = z * z
  const low = (p + z2 / (2 * all) - z * Math.sqrt((p * (1 - p)) / all + z2 / (4 * all * all))) / (1 + z2 / all)
  return Math.max(0, low)
}

/** In [-1, 1]; 0 until there are enough probes. */
export function probeTerm({ good, all }: ProbeStats): number {
  return all < probesMin ? 0 : clamp(2 * wilsonLow(good, all) - 1, -1, 1)
}

/** p/(p + 20), p = settled works and confirmed reviews less upheld disputes. */
export function standingOf(settled: number, upheld: number): number {
  const p = settled - upheld
  return clamp(p / (Math.abs(p) + standingShrinkage), -1, 1)
}

const worth = { works: 1, mixed: 0, down: -1, avoid: -1 } as const

/** Mean verdict of the reviews in [-1, 1], shrunk towards 0 if they are few. */
export function reviewTerm(reviews: readonly WeighedReview[]): number {
  let sum = 0
  let weights = 0
  for (const { kind, standing } of reviews) {
    const weight = clamp(0.5 + 0.5 * standing, 0, 1)
    sum += weight * worth[kind]
    weights += weight
  }
  return sum / (weights + reviewShrinkage)
}

/** The verdict from recent reviews and probes. */
function verdictOf(reviews: readonly WeighedReview[], probeStats: ProbeStats, now: number): Verdict {
  const byReviews = reviewVerdict(reviews, now)
  return byReviews === '' && probeStats.lastThreeFailed ? 'down' : byReviews
}

function reviewVerdict(reviews: readonly WeighedReview[], now: number): Verdict {
  const fresh = reviews.filter(({ at }) => now - at <= freshReviewSeconds)
  const avoids = fresh.filter(({ kind }) => kind === 'avoid')
  const isAvoided = avoids.filter(({ standing }) => standing >= 0).length >= 2 && avoids.length * 2 >= fresh.length
  if (isAvoided) return 'avoid'
  const downs = fresh.filter(({ kind }) => kind === 'down').map(({ at }) => at)
  const lastDown = Math.max(...downs)
  const isBack = fresh.some(({ kind, at }) => kind === 'works' && at > lastDown)
  return downs.length >= 2 && !isBack ? 'down' : ''
}

/** Quality in [-1, 1], and the verdict. A review that determines the verdict is not counted again in the mean. */
export function qualityOf(
  {
    reviews,
    probeStats,
    standing,
  }: { readonly reviews: readonly WeighedReview[]; readonly probeStats: ProbeStats; readonly standing: number },
  now: number,
): { readonly q: number; readonly verdict: Verdict } {
  const made = reviewVerdict(reviews, now)
  const rest = made === '' ? reviews : reviews.filter(({ kind }) => kind !== made)
  const q = clamp(0.5 * probeTerm(probeStats) + 0.3 * reviewTerm(rest) + 0.2 * standing, -1, 1)
  return { q, verdict: verdictOf(reviews, probeStats, now) }
}

const sourceWeights: Readonly<Record<DoorSource, number>> = {
  measured: 1,
  outside: 0.7,
  inferred: 0.4,
  self_reported: 0.1,
}
const staleWeight = 0.35
const staleSeconds = (source: DoorSource) => (source === 'measured' ? 7 : 30) * 86_400

export function isStale(source: DoorSource, checkedAt: number, now: number): boolean {
  return now - checkedAt > staleSeconds(source)
}

/** The maximum of the interface term. */
export const doorMax = 0.1

export function doorTerm(source: DoorSource, checkedAt: number, now: number): number {
  return doorMax * (sourceWeights[source] - (isStale(source, checkedAt, now) ? staleWeight : 0))
}

/** Listings of one host with one description: more than this are a flood, and each of them is ranked lower as spam. */
export const floodMax = 50

export const spamPenalty = 0.25
const penalties = { avoid: 0.25, spam: spamPenalty, down: 0.15 } as const

export function penaltyOf({ verdict, state, isSpam }: Pick<Ranked, 'verdict' | 'state' | 'isSpam'>): number {
  if (verdict === 'avoid') return penalties.avoid
  if (isSpam) return penalties.spam
  return verdict === 'down' || state === 'down' ? penalties.down : 0
}

/** The sort key of a result. */
export function keyOf(ranked: Ranked): number {
  return ranked.r + qualityWeight * ranked.q - penaltyOf(ranked) + ranked.d
}

/** In (0, 1], rounded to four places. */
export function scoreOf(key: number, hasDoor: boolean): number {
  return Math.round(Math.max(0.001, key / (hasDoor ? 1.2 : 1.1)) * 10_000) / 10_000
}

/** The position of a result. `price`: billionths of a dollar, Infinity if unknown. */
export type Place = {
  readonly group: number
  readonly key: number
  readonly r: number
  readonly price: number
  readonly id: string
}

/** Negative if `a` comes before `b`. */
export function comparePlaces(a: Place, b: Place): number {
  if (a.group !== b.group) return a.group - b.group
  if (a.key !== b.key) return b.key - a.key
  if (a.r !== b.r) return b.r - a.r
  if (a.price !== b.price) return a.price - b.price
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value))
}
