/** The entry point of every worker: runs the thread whose file it is given, on the real machine. */
import { parentPort, workerData } from 'node:worker_threads'
import type { FromThread } from '../../actors/kernel/supervisor.ts'
import { machine } from '../platform.ts'
import { watchTurnsHere } from '../runtime/slow-turns.ts'
import { runThread, type ThreadStarter } from './thread.ts'

const port = parentPort!
const { file, data } = workerData as { readonly file: string; readonly data: unknown }

function send(message: FromThread): void {
  port.postMessage(message)
}

/** Reports what killed this thread, and exits. */
function die(error: unknown): void {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  send({ kind: 'dying', error: { name, message, stack: stack ?? '' } })
  machine.clock.soon(() => process.exit(70))
}

process.on('uncaughtException', die)
process.on('unhandledRejection', die)
watchTurnsHere({
  now: machine.clock.monotonicMs,
  report: (facts) => send({ kind: 'event', level: 'warn', event: 'slow_turn', facts }),
})

async function run(): Promise<void> {
  const { thread } = (await import(file)) as { readonly thread: ThreadStarter<unknown, unknown> }
  const line = {
    send,
    onMessage: (take: (message: unknown) => void) => port.on('message', take),
    close: () => port.close(),
  }
  await runThread(thread, data, machine, line, die)
}
run().catch(die)
