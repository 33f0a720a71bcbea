/** The thread of a shard. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { type FromLog, ShardRun, type ShardStart } from './shard-run.ts'
import type { ThreadStarter } from './thread.ts'

export type ShardThread = ShardStart & { readonly log: Port }

export const thread: ThreadStarter<ShardThread> = (data, here) => {
  const run = new ShardRun(
    data,
    here,
    (receive) =>
      new Link({
        port: data.log,
        openMax: 1,
        patienceMs: internalLimits.patienceMs,
        now: here.clock.monotonicMs,
        timers: here.clock,
        onTell: (message) => receive(message as FromLog),
      }),
  )
  return { facts: run.facts, stop: () => run.stop() }
}
