/** The ranking's arithmetic by worked values, and the six rules as laws over random worlds. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  comparePlaces,
  doorTerm,
  keyOf,
  type ProbeStats,
  penaltyOf,
  probeTerm,
  qualityOf,
  type Ranked,
  reviewTerm,
  scoreOf,
  standingOf,
  type WeighedReview,
  wilsonLow,
} from '../../../src/tools/rank.ts'

const now = 1_800_000_000
const day = 86_400
const plain: Ranked = { r: 1, q: 0, verdict: '', state: 'unknown', isSpam: false, d: 0 }
const score = (ranked: Partial<Ranked>) => scoreOf(keyOf({ ...plain, ...ranked }), false).toFixed(4)
const unseen: ProbeStats = { good: 0, all: 0, lastThreeFailed: false }

test('lower bounds of the Wilson interval', () => {
  const edges = [
    [1, 1, '.2065'],
    [3, 3, '.4385'],
    [5, 5, '.5655'],
    [10, 10, '.7225'],
    [19, 20, '.7639'],
    [20, 20, '.8389'],
    [50, 50, '.9286'],
    [95, 100, '.8882'],
    [10, 20, '.2993'],
    [2, 10, '.0567'],
    [0, 10, '.0000'],
  ] as const
  for (const [good, all, edge] of edges) expect(wilsonLow(good, all).toFixed(4)).toBe(`0${edge}`)
  expect(probeTerm({ ...unseen, good: 4, all: 4 })).toBe(0)
  expect(probeTerm({ ...unseen, good: 0, all: 10 })).toBe(-1)
})

test('scores by hand', () => {
  expect(score({})).toBe('0.9091')
  expect(score({ r: 0.96, q: 0.678 })).toBe('0.9344')
  expect(score({ r: 0.96, q: -1 })).toBe('0.7818')
  expect(score({ r: 0.8, q: 1 })).toBe('0.8182')
  expect(score({ q: -1 })).toBe('0.8182')
  expect(score({ verdict: 'down' })).toBe('0.7727')
  expect(score({ state: 'down' })).toBe('0.7727')
  expect(score({ verdict: 'avoid' })).toBe('0.6818')
  expect(score({ isSpam: true })).toBe('0.6818')
  expect(score({ r: 0.05, q: -1, verdict: 'avoid' })).toBe('0.0010')
})

test('under a door filter the source of the claim counts, and stale ranks lower', () => {
  const fresh = (source: Parameters<typeof doorTerm>[0]) => doorTerm(source, now - day, now)
  const stale = (source: Parameters<typeof doorTerm>[0]) => doorTerm(source, now - 31 * day, now)
  const order = [fresh('measured'), fresh('outside'), stale('measured'), fresh('inferred'), stale('outside')]
  expect([...order, fresh('self_reported')].map((term) => term.toFixed(3))).toEqual([
    '0.100',
    '0.070',
    '0.065',
    '0.040',
    '0.035',
    '0.010',
  ])
  // A health measurement is old after a week.
  expect(doorTerm('measured', now - 8 * day, now)).toBeCloseTo(0.065)
  expect(doorTerm('outside', now - 8 * day, now)).toBeCloseTo(0.07)
})

const review = (kind: WeighedReview['kind'], daysAgo: number, standing = 0): WeighedReview => ({
  kind,
  at: now - daysAgo * day,
  standing,
})
const verdictOf = (reviews: readonly WeighedReview[], probeStats: ProbeStats = unseen) =>
  qualityOf({ reviews, probeStats, standing: 0 }, now).verdict

describe('verdicts', () => {
  test('down: two reports and no later report that it works, or three failed probes', () => {
    expect(verdictOf([review('down', 3)])).toBe('')
    expect(verdictOf([review('down', 3), review('down', 2)])).toBe('down')
    expect(verdictOf([review('down', 3), review('down', 2), review('works', 1)])).toBe('')
    expect(verdictOf([review('works', 4), review('down', 3), review('down', 2)])).toBe('down')
    expect(verdictOf([review('down', 100), review('down', 99)])).toBe('')
    expect(verdictOf([], { good: 0, all: 3, lastThreeFailed: true })).toBe('down')
  })

  test('avoid: two reviewers of standing say so, and they are half of those with an opinion', () => {
    expect(verdictOf([review('avoid', 3), review('avoid', 2)])).toBe('avoid')
    expect(verdictOf([review('avoid', 3), review('avoid', 2, -0.5)])).toBe('')
    expect(
      verdictOf([review('avoid', 3), review('avoid', 2), review('works', 1), review('works', 1), review('works', 1)]),
    ).toBe('')
    expect(verdictOf([review('avoid', 3), review('avoid', 2), review('down', 2), review('down', 1)])).toBe('avoid')
  })

  test('a review that makes the verdict does not also count in the mean', () => {
    const downs = [review('down', 3), review('down', 2)]
    expect(qualityOf({ reviews: downs, probeStats: unseen, standing: 0 }, now)).toEqual({ q: 0, verdict: 'down' })
    expect(qualityOf({ reviews: [downs[0]!], probeStats: unseen, standing: 0 }, now).q).toBeLessThan(0)
    // A verdict based on probes is not made by reviews, so reviews count.
    const probeStats = { good: 0, all: 3, lastThreeFailed: true }
    expect(qualityOf({ reviews: [downs[0]!], probeStats, standing: 0 }, now).q).toBeLessThan(0)
  })

  test('few reviews weigh little, those without standing nothing, and standing grows with settled works', () => {
    expect(reviewTerm([review('works', 1)])).toBeCloseTo(0.5 / 3.5)
    expect(reviewTerm([review('works', 1, 1)])).toBeCloseTo(0.25)
    expect(reviewTerm([review('works', 1, -1)])).toBe(0)
    expect([0, 20, -20, 1000].map((settled) => standingOf(settled, 0).toFixed(2))).toEqual([
      '0.00',
      '0.50',
      '-0.50',
      '0.98',
    ])
  })
})

describe('laws', () => {
  const r = fc.double({ min: 0.000_001, max: 1, noNaN: true })
  const q = fc.double({ min: -1, max: 1, noNaN: true })
  const anyReview = fc.record({
    kind: fc.constantFrom('works', 'mixed', 'down', 'avoid'),
    at: fc.integer({ min: now - 200 * day, max: now }),
    standing: fc.double({ min: -1, max: 1, noNaN: true }),
  }) as fc.Arbitrary<WeighedReview>
  const probeStats = fc
    .record({ good: fc.nat(60), more: fc.nat(60), lastThreeFailed: fc.boolean() })
    .map(({ good, more, lastThreeFailed }): ProbeStats => ({ good, all: good + more, lastThreeFailed }))
  const world = fc.record({ reviews: fc.array(anyReview, { maxLength: 30 }), probeStats, standing: q })

  test('quality is within [-1, 1] and moves a result by at most 0.1 of the best match, whatever is known', () => {
    fc.assert(
      fc.property(world, r, (known, relevance) => {
        const { q: quality } = qualityOf(known, now)
        expect(Math.abs(quality)).toBeLessThanOrEqual(1)
        const moved = keyOf({ ...plain, r: relevance, q: quality }) - keyOf({ ...plain, r: relevance })
        expect(Math.abs(moved)).toBeLessThanOrEqual(0.1 + 1e-12)
      }),
    )
  })

  test('quality alone never lifts a result above one that is better by more than 0.2', () => {
    fc.assert(
      fc.property(r, r, q, q, (one, other, first, second) => {
        fc.pre(one - other > 0.2 + 1e-9)
        expect(keyOf({ ...plain, r: one, q: first })).toBeGreaterThan(keyOf({ ...plain, r: other, q: second }))
      }),
    )
  })

  test('a verdict or spam lowers and never hides: the score stays above 0 and is less than without', () => {
    const verdict = fc.constantFrom('down', 'avoid') as fc.Arbitrary<'down' | 'avoid'>
    fc.assert(
      fc.property(r, q, verdict, fc.boolean(), (relevance, quality, found, isSpam) => {
        const marked = { ...plain, r: relevance, q: quality, verdict: found, isSpam }
        expect(penaltyOf(marked)).toBeGreaterThanOrEqual(0.15)
        expect(keyOf(marked)).toBeLessThan(keyOf({ ...plain, r: relevance, q: quality }))
        expect(scoreOf(keyOf(marked), false)).toBeGreaterThan(0)
        expect(scoreOf(keyOf(marked), true)).toBeLessThanOrEqual(1)
      }),
    )
  })

  test('the board’s earnings are no input: only what is named here changes a key', () => {
    fc.assert(
      fc.property(r, q, fc.nat(), fc.nat(), (relevance, quality, margin, relay_volume) => {
        const ranked = { ...plain, r: relevance, q: quality }
        expect(keyOf({ ...ranked, margin, relay_volume } as Ranked)).toBe(keyOf(ranked))
      }),
    )
  })

  test('positions are a total order: group, key, relevance, price, id', () => {
    const place = fc.record({
      group: fc.constantFrom(0, 1),
      key: fc.constantFrom(0.5, 0.6),
      r: fc.constantFrom(0.5, 0.6),
      price: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
      id: fc.constantFrom('a', 'b'),
    })
    fc.assert(
      fc.property(place, place, place, (a, b, c) => {
        expect(Math.sign(comparePlaces(a, b))).toBe(-Math.sign(comparePlaces(b, a)) + 0)
        if (comparePlaces(a, b) <= 0 && comparePlaces(b, c) <= 0) expect(comparePlaces(a, c)).toBeLessThanOrEqual(0)
        if (a.group < b.group) expect(comparePlaces(a, b)).toBeLessThan(0)
      }),
    )
  })
})
