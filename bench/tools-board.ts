/** A board in a process that also measures how long its main thread is blocked: requests and answers are messages. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { startServer } from '../src/board/server.ts'
import { readConfig } from '../src/config.ts'

export type ToolsBoardSaid = { readonly address?: string; readonly heldMs?: number; readonly rssMib?: number }

const resolutionMs = 1
const delay = monitorEventLoopDelay({ resolution: resolutionMs })
const server = await startServer(readConfig())
delay.enable()
process.send!({ address: server.address } satisfies ToolsBoardSaid)
process.on('message', (asked: 'reset' | 'tell') => {
  if (asked === 'reset') delay.reset()
  else {
    const heldMs = Math.max(0, delay.max / 1e6 - resolutionMs)
    process.send!({ heldMs, rssMib: process.memoryUsage.rss() / 2 ** 20 } satisfies ToolsBoardSaid)
  }
})
process.once('disconnect', () => {
  void server.close().then(() => process.exit(0))
})
