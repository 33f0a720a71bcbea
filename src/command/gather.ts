/**
 * Reads whose answer lies with more than one actor: what the feed and every shard answer is put together here.
 * A private room is known to its own shard alone, so whoever asks for everything of his asks them all.
 */

/** From the answers of the feed and of each shard, in this order, the answer. */
export type Gather = (parts: readonly unknown[]) => unknown

/** By the name of the operation. */
export const gathers: Readonly<Record<string, Gather>> = {
  'reports.list': newestFirst('reports'),
}

/** One actor's share of a list: at most one item more than were asked for, each with the cursor that goes on behind it. */
type Share = {
  readonly limit: number
  readonly items: readonly { readonly place: string; readonly cursor: string; readonly item: unknown }[]
}

/** Puts shares together by their places, which are texts that sort, the greatest first. */
function newestFirst(name: string): Gather {
  return (parts) => {
    const shares = parts as readonly Share[]
    const { limit } = shares[0]!
    const items = shares.flatMap((share) => share.items).sort((a, b) => (a.place < b.place ? 1 : -1))
    const shown = items.slice(0, limit)
    const more = items.length > limit ? { next_cursor: shown.at(-1)!.cursor, has_more: true } : { has_more: false }
    return { [name]: shown.map(({ item }) => item), ...more }
  }
}
