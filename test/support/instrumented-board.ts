/** A board that counts the work of its main thread. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { boardDirectory } from './board-process.ts'
import type { WorkCount } from './instrumented-server.ts'

export type InstrumentedBoard = {
  readonly address: string
  /** The work of the main thread since the last call. */
  count(): Promise<WorkCount>
  stop(): Promise<void>
}

export async function startInstrumentedBoard(env: Readonly<Record<string, string>> = {}): Promise<InstrumentedBoard> {
  const child = fork(new URL('./instrumented-server.ts', import.meta.url), [boardDirectory()], {
    env: { PATH: process.env.PATH, SHARDS: '1', LOG_LEVEL: 'warn', ...env },
    execArgv: [],
  })
  process.once('exit', () => child.kill('SIGKILL'))
  const [{ address }] = (await once(child, 'message')) as [{ address: string }]
  return {
    address,
    async count() {
      const answer = once(child, 'message')
      child.send('count')
      return (await answer)[0] as WorkCount
    },
    async stop() {
      const ended = once(child, 'exit')
      child.send('stop')
      await ended
    },
  }
}
