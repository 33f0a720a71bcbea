/**
 * Lists that more than one actor has a share of: the feed gives what is public, every shard what is private, and here they are
 * merged. A private room is known to its own shard alone, so a reader who asks for everything of their own asks all shards.
 */

import { ok, type ReadAnswer, type Share } from './read.ts'

/** Merges shares by their places, which are texts that sort, the greatest first. `besides`: what else the answer says. */
export function newestFirst<Part extends Share>(
  name: string,
  besides: (shares: readonly Part[]) => object = () => ({}),
): (shares: readonly Part[], until: number) => ReadAnswer {
  return (shares, until) => {
    const { limit } = shares[0]!
    const byPlace = (a: { place: string }, b: { place: string }) => (a.place < b.place ? 1 : -1)
    // Beyond the place where one stopped looking, what the others found may not be all.
    const [reached] = shares.flatMap((share) => share.reached ?? []).sort(byPlace)
    const items = shares
      .flatMap((share) => share.items)
      .filter(({ place }) => reached === undefined || place >= reached.place)
      .sort(byPlace)
    const shown = items.slice(0, limit)
    const last = items.length > limit ? shown.at(-1) : reached
    const more = last === undefined ? { has_more: false } : { next_cursor: last.cursor, has_more: true }
    return ok({ [name]: shown.map(({ item }) => item), ...more, ...besides(shares) }, { until })
  }
}
