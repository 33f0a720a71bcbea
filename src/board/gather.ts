/**
 * Reads that more than one actor answers: the answers of the feed and of every shard are merged here. A private room is
 * known to its own shard alone, so a reader who asks for everything of their own asks all shards.
 */

import { receiversOf } from '../../actors/receive-urls/decide.ts'
import { registryName } from '../../actors/records/record.ts'
import { salesActor } from '../../actors/sales/sales.ts'
import { oauthName } from '../../actors/sign-in/records.ts'
import { callsActor } from '../../actors/tool-calls/tool-calls.ts'
import { toolsActor } from '../../actors/tools/tools.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import type { ReadRequest } from '../reads/read.ts'

/** Reads that one actor answers in full. Its name follows from the request; no other is asked. */
export const homes: Readonly<Record<string, (request: ReadRequest) => string>> = {
  'delegation.list': () => registryName,
  'delegation.one': () => registryName,
  'delegation.known': () => registryName,
  'oauth.find': () => oauthName,
  'limits.list': () => registryName,
  'receiver.list': ({ reader }) => receiversOf(reader),
  'receiver.items': ({ reader }) => receiversOf(reader),
  'room.invite.maker': ({ args }) => String(args.room),
  'credit.balance': () => marketName,
  'credit.history': () => marketName,
  'call.outcome': () => callsActor,
  'calls.open': () => callsActor,
  'calls.mark': () => callsActor,
  'calls.completed': () => callsActor,
  'sale.find': () => salesActor,
  'tools.due': () => toolsActor,
}

/** Makes the answer from those of the feed and of each shard, in this order. */
export type Gather = (parts: readonly unknown[]) => unknown

/** By the name of the operation, with ` own` appended where all shards are asked only for the reader's own list. */
const gathers: Readonly<Record<string, Gather>> = {
  'blob.usage': (parts) => ({ bytes: (parts as { bytes: number }[]).reduce((sum, { bytes }) => sum + bytes, 0) }),
  'conversations.list': newestFirst('conversations'),
  'docs.list own': newestFirst('docs'),
  'inbox.blocked': (parts) => ({
    blocked: [...new Set((parts as { blocked: string[] }[]).flatMap((part) => part.blocked))],
  }),
  'inbox.get': newestFirst('items'),
  'reports.list': newestFirst('reports'),
}

/** How the answer to this read is merged, where more than one actor has to be asked. */
export function gatherOf({ op, args }: ReadRequest): Gather | undefined {
  return gathers[args.own === undefined ? op : `${op} own`]
}

/** One actor's share of a list: at most one item more than were requested, each with the cursor that continues after it. */
type Share = {
  readonly limit: number
  readonly items: readonly { readonly place: string; readonly cursor: string; readonly item: unknown }[]
  /** It looked this far and no further; absent: to the end, or until it had enough. */
  readonly reached?: { readonly place: string; readonly cursor: string }
}

/** Merges shares by their places, which are texts that sort, the greatest first. */
function newestFirst(name: string): Gather {
  return (parts) => {
    const shares = parts as readonly Share[]
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
    return { [name]: shown.map(({ item }) => item), ...more }
  }
}
