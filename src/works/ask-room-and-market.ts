/**
 * Reads on works whose answer lies with two: the market's shard has the record, and the shard of its private room knows who may
 * read it and how the request begins. Works of public rooms are the feed's alone.
 */

import { shardOf } from '../../actors/shard.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import type { Actors } from '../command/ports.ts'
import { dataOf, type ReadAnswer, type ReadRequest, type Take } from '../reads/read.ts'

type Give = Take

export const workReads: ReadonlySet<string> = new Set(['work.get', 'work.list', 'work.history'])

export function readWorks(actors: Actors, request: ReadRequest, answer: Give): void {
  actors.read(request, (found) => {
    if (found === undefined || found.ok || 'refusal' in found) return answer(found)
    roomOf(actors, request, (room) => {
      if (typeof room !== 'string') return answer(room ?? found)
      actors.readPrivate(marketShard(actors), request, (part) => {
        if (part === undefined || !part.ok) return answer(part === undefined || 'refusal' in part ? part : found)
        const asked = { ...request, op: 'work.complete', args: { room }, found: dataOf(part) } as const
        actors.readPrivate(shardOf(room, actors.shards), asked, answer)
      })
    })
  })
}

function marketShard({ shards }: Actors): number {
  return shardOf(marketName, shards)
}

/** The room that a list names, or that a work is in; undefined: there is none. */
function roomOf(actors: Actors, request: ReadRequest, then: (room: string | ReadAnswer | undefined) => void): void {
  if (request.args.room !== undefined) return then(String(request.args.room))
  actors.readPrivate(marketShard(actors), { ...request, op: 'work.where' }, (where) => {
    if (where === undefined || !where.ok) return then(where === undefined || 'absent' in where ? undefined : where)
    then(dataOf(where).room)
  })
}
