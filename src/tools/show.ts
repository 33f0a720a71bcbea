/** The form in which results are shown: untrusted texts cut and marked, and a sentence that says why a result ranks where it does. */
import { sizes } from '../../actors/kernel/limits.ts'
import { stem } from '../search/stem.ts'
import type { Doc } from './doc.ts'
import { type FieldName, match, type ToolIndex, tokens, type Where } from './index.ts'
import type { Parsed } from './parse.ts'
import { reviewsPath, toolPath } from './path.ts'
import { probeText, type Quality } from './quality.ts'
import { isStale, order, penaltyOf } from './rank.ts'
import type { Found, Page } from './search.ts'

export type Callable = 'callable' | 'relayed' | 'listed only'

/** What is needed besides the document. */
export type Showing = {
  readonly index: ToolIndex
  /** Number of rewarded reviews of this subject. */
  readonly rewarded: (subject: string) => number
  readonly callable: (doc: Doc) => Callable
}

/** `data` of tools.search. */
export function pageJson(showing: Showing, text: string, page: Page, builtAt: number, now: number) {
  const { parsed, matched, results, nextCursor } = page
  return {
    expanded: parsed.expanded,
    filters: parsed.filters,
    index: { built_at: builtAt, docs: { ...showing.index.counts }, match },
    matched,
    next_cursor: nextCursor,
    order,
    parsed_by: 'rules',
    query: parsed.words.join(' '),
    text,
    text_is_untrusted: true,
    results: results.map((found) => ({
      ...docJson(showing, found.doc, found.quality),
      why: whyOf(showing, found, parsed, now),
      score: found.shownScore,
    })),
  }
}

/** A document as shown in every list. */
export function docJson({ rewarded }: Showing, doc: Doc, { state }: Quality) {
  const { type, kind, id, name, summary, category, price, priceText, network, output, protocols, subject } = doc
  return {
    type,
    kind,
    id,
    name,
    description: summary,
    description_is_untrusted: true,
    category,
    url: toolPath(id),
    ...(price === '' ? {} : { price }),
    ...(priceText === '' ? {} : { price_text: priceText }),
    network,
    ...(output === '' ? {} : { output }),
    protocols,
    subject_id: subject,
    review_url: reviewsPath(subject),
    state,
    review_reward: rewardJson(rewarded(subject)),
  }
}

function rewardJson(rewarded: number) {
  const { credit_review_reward: credits, credit_review_rewards_per_subject: of } = sizes
  const left = Math.max(0, of - rewarded)
  return {
    about_credits: credits,
    left,
    of,
    text: `Review this tool: about ${credits} credits, ${left} ${left === 1 ? 'slot' : 'slots'} left`,
    how: '/docs/tools.review',
  }
}

const words: Readonly<Record<Callable, string>> = {
  callable: 'callable from the free daily allowance',
  relayed: 'relayed: the board pays the seller for you, within your allowance',
  'listed only': 'listed only: call it yourself',
}

function whyOf(showing: Showing, found: Found, { words: said, filters }: Parsed, now: number): string {
  const { doc, quality } = found
  const { verdict, probeStats, reviews } = quality
  const isSpam = showing.index.isFlood(doc)
  const parts = [
    matchText(found.where, said),
    doc.price === '' ? 'price unknown' : doc.price === '0' ? 'free' : `price $${doc.price} known`,
    doorText(doc, filters.door, now),
    probeText(probeStats),
    reviewText(reviews),
    quality.state === 'unknown' || quality.state === 'up' ? '' : `state ${quality.state}`,
    verdict === '' ? '' : `verdict ${verdict}`,
    isSpam ? 'one of many of its host with the same description' : '',
    penaltyOf({ ...quality, isSpam }) > 0 ? 'ranked lower for that' : '',
    doc.isOwn ? 'callable here, free' : words[showing.callable(doc)],
  ]
  return parts.filter((part) => part !== '').join('; ')
}

const fieldOrder: readonly FieldName[] = ['name', 'category', 'tags', 'description', 'url']

/** `matched weather in name and category, forecast in description`. */
function matchText(where: Where, said: readonly string[]): string {
  const terms = [...where]
  if (terms.length === 0) return 'passes the filters'
  // The index has stems; the caller is shown their own words.
  const asSaid = new Map(said.flatMap((word) => tokens(word).map((token) => [stem(token), token] as const)))
  const shown = terms.slice(0, 6).map(([term, fields]) => {
    const sorted = fieldOrder.filter((field) => fields.includes(field))
    return `${asSaid.get(term) ?? term} in ${sorted.join(' and ')}`
  })
  return `matched ${shown.join(', ')}`
}

function doorText({ doors }: Doc, wanted: string, now: number): string {
  if (wanted === '') return ''
  const names = wanted.split(',')
  const shown = doors
    .filter((each) => names.includes(each.door))
    .map(({ door, source, checked_at }) => {
      const stale = isStale(source, checked_at, now) ? ', stale' : ''
      return `door ${door} (${source.replace('_', '-')}${stale})`
    })
  return shown.join(', ')
}

function reviewText(reviews: Quality['reviews']): string {
  if (reviews.length === 0) return ''
  const kinds = (['works', 'mixed', 'down', 'avoid'] as const).map((kind) => {
    const count = reviews.filter((each) => each.kind === kind).length
    return count === 0 ? '' : `${count} ${kind}`
  })
  return `reviews: ${kinds.filter((each) => each !== '').join(', ')}`
}
