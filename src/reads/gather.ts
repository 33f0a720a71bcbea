/**
 * Merges lists of which several actors hold a share: the feed has the public part, every shard its private part. Only its own shard knows a
 * private room, so a reader who requests everything of their own queries all shards.
 */

import { ok, type ReadAnswer, type Share } from './read.ts'

/** Merges shares by their places, which are sortable texts, greatest first. `besides`: additional fields of the answer. */
export function newestFirst<Part extends Share>(
  name: string,
  besides: (shares: readonly Part[]) => object = () => ({}),
): (shares: readonly Part[], until: number) => ReadAnswer {
  return (shares, until) => {
    const { limit } = shares[0]!
    const byPlace = (a: { place: string }, b: { place: string }) => (a.place < b.place ? 1 : -1)
    // Beyond the place where one actor stopped looking, the others' items may be incomplete.
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
