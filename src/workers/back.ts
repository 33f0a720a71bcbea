/**
 * Runs the only shard of a board and its log in one thread, for machines with few cores. The two communicate by calls, so a post wakes one
 * thread less on its way to the disk and one less on its way back.
 */
import { LogRun, type LogStart } from './log-run.ts'
import { type FromLog, type MessageSink, ShardRun, type ShardStart, type ToLog } from './shard-run.ts'
import type { ThreadStarter } from './thread.ts'

export type BackThread = { readonly shard: ShardStart; readonly log: LogStart }

export const thread: ThreadStarter<BackThread> = ({ shard, log }, here) => {
  let receiveFromLog: (message: FromLog) => void
  let receiveFromShard: ((message: ToLog) => void) | undefined
  const openLog = (through: number): LogRun =>
    new LogRun(log, { through: [through] }, here, (_shard, receive) => {
      receiveFromShard = receive
      return directSink((message) => receiveFromLog(message))
    })
  let opened: LogRun | undefined
  const shardRun = new ShardRun(
    shard,
    here,
    (receive, through) => {
      receiveFromLog = receive
      // The feed builds its state from log and journal while the shard builds its own. In an empty journal the first rooms come first.
      if (through > 0) {
        opened = openLog(through)
        here.tellKnown({ through, ...opened.facts })
      }
      // Until the log begins, the shard's messages may be dropped: it first reads the journal up to its end.
      return directSink((message) => receiveFromShard?.(message))
    },
    true,
  )
  const { through } = shardRun.facts
  const logRun = opened ?? openLog(through)
  logRun.begin([through])
  return {
    facts: { ...shardRun.facts, ...logRun.facts },
    stop: async () => {
      await shardRun.stop()
      await logRun.stop()
    },
  }
}

function directSink<Message>(tell: (message: Message) => void): MessageSink<Message> {
  return { tell, flush: () => {}, close: () => {} }
}
