/** What the registry knows, for the front to keep: as it is once everything is decided that was asked of it before. */

import { registryName } from '../../actors/records/record.ts'
import { shardOf } from '../../actors/shard.ts'
import { type Actors, whenDecided } from '../command/ports.ts'
import { type AnswerOf, dataOf } from '../reads/read.ts'

/** `op`: the read. `told` takes undefined where the registry gives no answer now. */
export function toldByRegistry<Name extends 'delegation.known' | 'limits.known'>(
  actors: Pick<Actors, 'shards' | 'write' | 'readPrivate'>,
  op: Name,
  told: (found: AnswerOf<Name> | undefined) => void,
): void {
  whenDecided(actors, registryName, (isDecided) => {
    if (!isDecided) return told(undefined)
    const shard = shardOf(registryName, actors.shards)
    actors.readPrivate(shard, { op, args: {}, reader: '' }, (found) => told(found?.ok ? dataOf(found) : undefined))
  })
}
