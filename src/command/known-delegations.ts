/**
 * All delegations as the registry knows them once everything is decided that was asked of it before: a command whose answer was
 * lost may still lie in its mailbox, and a read overtakes those.
 */
import type { ToldDelegation } from '../../actors/people/delegations.ts'
import { registryName } from '../../actors/record.ts'
import { shardOf } from '../../actors/shard.ts'
import { internalLetter } from './own-letter.ts'
import type { Actors } from './ports.ts'

/** `told` takes undefined where the registry gives no answer now. */
export function knownDelegations(
  actors: Pick<Actors, 'shards' | 'write' | 'readPrivate'>,
  told: (found: readonly ToldDelegation[] | undefined) => void,
): void {
  // Of no delegation at all: it is refused and changes nothing, behind whatever was sent before it.
  const behind = internalLetter('delegation.publish', registryName, nobody, { id: '' })
  actors.write(behind, (answer) => {
    // Its mailbox was full, and the letter was not in it.
    if (answer === undefined || (!answer.ok && answer.refusal.code === 'overloaded')) return told(undefined)
    const shard = shardOf(registryName, actors.shards)
    actors.readPrivate(shard, { op: 'delegation.known', args: {}, reader: '' }, (found) =>
      told(found?.ok ? (JSON.parse(found.json) as ToldDelegation[]) : undefined),
    )
  })
}

const nobody = '0'.repeat(64)
