/** The log's thread, when it has its own. */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { LogRun, type LogStart, type LogWord } from './log-run.ts'
import type { ToLog } from './shard-run.ts'
import type { ThreadStarter } from './thread.ts'

export type LogThread = LogStart & { readonly toShards: readonly Port[] }

/** A shard has restarted: the port to its new thread. */
export type ShardBegun = { readonly shard: number; readonly port: Port }

export const thread: ThreadStarter<LogThread, LogWord> = async (data, here, word) => {
  const ports = [...data.toShards]
  const opened = await word()
  const run = new LogRun(
    data,
    opened,
    here,
    (shard, receive) =>
      new Link({
        port: ports[shard]!,
        openMax: 1,
        patienceMs: internalLimits.patienceMs,
        now: here.clock.monotonicMs,
        timers: here.clock,
        onTell: (message) => receive(message as ToLog),
      }),
  )
  here.tellKnown(run.facts)
  const { through } = await word()
  run.begin(through)
  return {
    facts: run.facts,
    stop: () => run.stop(),
    onMessage: (message) => {
      const { shard, port } = message as ShardBegun
      ports[shard] = port
      run.relink(shard)
    },
  }
}
