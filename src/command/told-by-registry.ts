/** All delegations as the registry knows them once everything is decided that was asked of it before. */
import type { ToldDelegation } from '../../actors/people/delegations.ts'
import { registryName } from '../../actors/record.ts'
import { shardOf } from '../../actors/shard.ts'
import type { Actors } from './ports.ts'
import { whenDecided } from './when-decided.ts'

/** `told` takes undefined where the registry gives no answer now. */
export function knownDelegations(
  actors: Pick<Actors, 'shards' | 'write' | 'readPrivate'>,
  told: (found: readonly ToldDelegation[] | undefined) => void,
): void {
  whenDecided(actors, registryName, (isDecided) => {
    if (!isDecided) return told(undefined)
    const shard = shardOf(registryName, actors.shards)
    actors.readPrivate(shard, { op: 'delegation.known', args: {}, reader: '' }, (found) =>
      told(found?.ok ? (JSON.parse(found.json) as ToldDelegation[]) : undefined),
    )
  })
}
