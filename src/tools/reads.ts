/** Reads of the tools directory that the feed answers: a listing as it was signed, and the reviews of a subject. */

import { refusal } from '../../actors/kernel/refusals.ts'
import { commandIn, dataIn, fromFrame } from '../../actors/records/record.ts'
import { type Listing, listingIn } from '../../actors/tools/listing.ts'
import type { toolsReview } from '../../actors/tools/search-operations.ts'
import { eventOf } from '../reads/event-view.ts'
import {
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  opened,
  paging,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Reads,
  unending,
  withinPage,
} from '../reads/read.ts'

export const toolsReads = {
  'tools.listing': listing,
  /** How far the index must have come to know what is known here. */
  'tools.begin': ({ applied }) => known({ through: applied!() }),
  'tools.reviews': reviews,
  'tools.recent_reviews': recentReviews,
  'tools.due': due,
} satisfies Reads

/** The board's own view of a listed tool; the board's own tools are not included. */
export type FoundListing = {
  readonly listing: Listing
  readonly subject: string
  readonly host: string
  /** Identity id, or '' if it was imported and has no owner. */
  readonly owner: string
  readonly verified: boolean
  /** It is currently listed in the directory. */
  readonly listed: boolean
}

function listing({ state, frame }: ReadContext, { args }: ReadRequest): KnownAnswer<FoundListing> {
  const entry = state.tools.find(String(args.target))
  if (entry === undefined)
    return {
      ok: false,
      absent: refusal('not_found', `there is no listing ${args.target}: tools.search finds them`, 'target'),
    }
  const { id, subject, host, owner, shard, seq, row } = entry
  const found: FoundListing = {
    listing: listingIn(fromFrame(frame(shard, seq)), id, row),
    subject,
    host,
    owner,
    verified: owner !== '' && state.tools.isOwnerOf(host, owner),
    listed: state.tools.isListed(entry),
  }
  return known(found)
}

/** A listing that the daily round may probe now. */
export type DueTool = { readonly tool: string; readonly host: string; readonly owner: string }

function due({ state, now }: ReadContext, { args }: ReadRequest): KnownAnswer<readonly DueTool[]> {
  const walk = { seed: String(args.seed), gapSeconds: Number(args.gap), now: now() }
  const entries = state.tools.due(walk, Number(args.most))
  return known(entries.map(({ id, host, owner }): DueTool => ({ tool: id, host, owner })))
}

/** A review that counts, for the board's own use. */
export type RecentReview = { readonly subject: string; readonly author: string; readonly at: number }

/**
 * Reviews from the last `seconds` before the newest post, however long the board has been down since, that may still be
 * rewarded: their author was not rewarded for this subject yet, nor were `most` others.
 */
function recentReviews(
  { state, board: { events } }: ReadContext,
  { args }: ReadRequest,
): KnownAnswer<{ reviews: readonly RecentReview[] }> {
  const since = events.newestAt - Number(args.seconds)
  const reviews: RecentReview[] = []
  for (const { subject, author, at } of state.tools.reviews.all()) {
    if (at < since) continue
    const rewarded = state.market.given.rewarded.get(subject) ?? []
    if (!rewarded.includes(author) && rewarded.length < Number(args.most)) reviews.push({ subject, author, at })
  }
  return known({ reviews })
}

function reviews(context: ReadContext, { args }: ReadRequest): ReadAnswer {
  const subject = String(args.target)
  const name = `tools.reviews:${subject}`
  const cursor = opened(context, name, args)
  if (cursor === undefined) return badCursor
  const { state, board, body, handleOf } = context
  const limit = limitOf(args)
  const standing = state.tools.reviews.of(subject)
  // Newest first, by the slot of the post: slots only grow.
  const slots = standing
    .map((review) => ({ review, slot: board.events.find(Buffer.from(review.id, 'hex')) }))
    .filter(({ slot }) => cursor.from === undefined || slot < cursor.from)
    .sort((a, b) => b.slot - a.slot)
  const shown = slots.slice(0, limit)
  const next = slots.length > limit ? shown.at(-1)!.slot : undefined
  const { views, cut, missing } = withinPage(context, shown, ({ review: { id, author, kind, at }, slot }) => {
    const { by } = eventOf(body(slot))
    const command = commandIn(by.signed)
    const { text } = command
    const { evidence } = dataIn<typeof toolsReview>(command)
    const handle = handleOf(author)
    const more = evidence === undefined ? {} : { evidence }
    const named = handle === undefined ? {} : { author_handle: handle }
    return {
      event_id: id,
      subject_id: subject,
      author,
      ...named,
      kind,
      text,
      ...more,
      text_is_untrusted: true,
      created_at: at,
    }
  })
  const count = (kind: string) => standing.filter((each) => each.kind === kind).length
  const counts = { works: count('works'), mixed: count('mixed'), down: count('down'), avoid: count('avoid') }
  // A review has no `ttl`.
  const more = paging(context, name, cut?.slot ?? next)
  return ok({ subject_id: subject, counts, reviews: views, ...missing, ...more }, { until: unending })
}
