/** The thread of a shard. */
import type { MessagePort } from 'node:worker_threads'
import { inside } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import { runThread } from './entry.ts'
import { type FromLog, ShardRun, type ShardStart } from './shard-run.ts'

export type ShardThread = ShardStart & { readonly log: MessagePort }

runThread((data: ShardThread, { clock }) => {
  const run = new ShardRun(
    data,
    clock,
    (hear) =>
      new Link({
        port: data.log,
        openMax: 1,
        patienceMs: inside.patienceMs,
        now: clock.monotonicMs,
        timers: clock,
        onTell: (said) => hear(said as FromLog),
      }),
  )
  return { facts: run.facts, stop: () => run.stop() }
})
