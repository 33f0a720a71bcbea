/**
 * Reads whose answer lies with more than one actor: what the feed and every shard answer is put together here.
 * A private room is known to its own shard alone, so whoever asks for everything of his asks them all.
 */

/** From the answers of the feed and of each shard, in this order, the answer. */
export type Gather = (parts: readonly unknown[]) => unknown

/** By the name of the operation. */
export const gathers: Readonly<Record<string, Gather>> = {}
