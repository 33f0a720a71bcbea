/**
 * Merges lists of which several actors hold a share: the feed has the public part, every shard its private part. Only its own shard knows a
 * private room, so a reader who requests everything of their own queries all shards.
 */

import {
  AnswerSize,
  badCursor,
  type KnownAnswer,
  known,
  limitOf,
  ok,
  type ReadAnswer,
  type ReadContext,
  type ReadRequest,
  type Share,
  withinPage,
} from './read.ts'

/** An item, and its place in the list as a sortable text. */
export type Item = { readonly place: string; readonly item: unknown }
/** Items, newest first; `reached`: where it stopped looking. */
export type Found = { readonly items: readonly Item[]; readonly reached?: string }

/** This actor's share of a list: what comes after the cursor, newest first, one more than requested. `list`: its name, for cursors. */
export function share(
  context: ReadContext,
  { args }: ReadRequest,
  list: string,
  find: (below: string, count: number) => Found,
): KnownAnswer<Share> {
  const below = args.cursor === undefined ? '~' : context.cursors.open(list, String(args.cursor))
  if (typeof below !== 'string') return badCursor
  const limit = limitOf(args)
  const cursor = (place: string) => context.cursors.seal(list, place)
  const sought = find(below, limit + 1)
  const { views: items, cut } = withinPage(context, sought.items, ({ place, item }) => ({
    place,
    cursor: cursor(place),
    item,
  }))
  const reached = cut?.place ?? sought.reached
  const found = {
    limit,
    items,
    ...(reached === undefined ? {} : { reached: { place: reached, cursor: cursor(reached) } }),
  }
  // Only signed commands request this, and their answers are not cached.
  return known(found, { until: context.now() })
}

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
    const shown: typeof items = []
    const size = new AnswerSize()
    for (const each of items.slice(0, limit)) {
      if (size.isFull) break
      size.add(each.item)
      shown.push(each)
    }
    const last = items.length > shown.length ? shown.at(-1) : reached
    const more = last === undefined ? { has_more: false } : { next_cursor: last.cursor, has_more: true }
    return ok({ [name]: shown.map(({ item }) => item), ...more, ...besides(shares) }, { until })
  }
}
