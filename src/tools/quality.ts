/**
 * What is known about a tool besides its own description: results of probes, reviews, and the standing of the reviewers. Used
 * by the ranking and by the page of a tool.
 */

import type { Entry, Probe, Review } from '../../actors/tools/tools.ts'
import { type Doc, sharedOwnSubject } from './doc.ts'
import { type ProbeStats, qualityOf, type State, type Verdict, type WeighedReview, wilsonLow } from './rank.ts'

/** How long results of probes count. */
const probeSeconds = 30 * 86_400
/** An older probe says nothing about the present. */
const staleProbeSeconds = 7 * 86_400

/** Queries to the directory. */
export type Sources = {
  readonly entry: (id: string) => Entry | undefined
  /** The newest of each author, oldest first. */
  readonly reviews: (subject: string) => readonly Review[]
  /** In [-1, 1]. */
  readonly standing: (identity: string) => number
}

export type Quality = {
  readonly q: number
  readonly verdict: Verdict
  readonly state: State
  readonly probeStats: ProbeStats
  readonly reviews: readonly WeighedReview[]
}

const none: readonly Probe[] = []

const nothing: Quality = {
  q: 0,
  verdict: '',
  state: 'unknown',
  probeStats: { good: 0, all: 0, lastThreeFailed: false },
  reviews: [],
}

export function qualityIn(sources: Sources, doc: Doc, now: number): Quality {
  const entry = sources.entry(doc.id)
  const reviews = reviewsOf(sources, doc)
  const standing = doc.identity === '' ? 0 : sources.standing(doc.identity)
  const probes = entry?.probes ?? none
  if (reviews.length + probes.length === 0 && standing === 0) return nothing
  const weighed = reviews.map(({ kind, at, author }) => ({ kind, at, standing: sources.standing(author) }))
  const probeStats = probeStatsOf(probes, now)
  return {
    ...qualityOf({ reviews: weighed, probeStats, standing }, now),
    state: stateOf(entry, now),
    probeStats,
    reviews: weighed,
  }
}

/** For the board's own tools, a review of the tool itself takes precedence over the same author's review of all of them. */
function reviewsOf({ reviews }: Sources, { subject, isOwn }: Doc): readonly Review[] {
  const own = reviews(subject)
  const shared = isOwn ? reviews(sharedOwnSubject) : []
  return shared.length === 0
    ? own
    : [...shared.filter(({ author }) => own.every((each) => each.author !== author)), ...own]
}

function probeStatsOf(probes: readonly Probe[], now: number): ProbeStats {
  const recent = probes.filter(({ at }) => now - at <= probeSeconds)
  const lastThree = recent.slice(-3)
  return {
    good: recent.filter(({ isGood }) => isGood).length,
    all: recent.length,
    lastThreeFailed: lastThree.length === 3 && lastThree.every(({ isGood }) => !isGood),
  }
}

function stateOf(entry: Entry | undefined, now: number): State {
  const last = entry?.lastProbe
  if (last === undefined) return 'unknown'
  if (now - last.at > staleProbeSeconds) return 'stale'
  if (last.verdict === 'unreachable') return 'down'
  return last.verdict === 'degraded' || last.verdict === 'not_x402' || last.mismatch.length > 0 ? 'degraded' : 'up'
}

/** `probes 19/20 ok (lower bound 0.76)`, or ''. */
export function probeText({ good, all }: ProbeStats): string {
  return all === 0 ? '' : `probes ${good}/${all} ok (lower bound ${wilsonLow(good, all).toFixed(2)})`
}
