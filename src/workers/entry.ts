/**
 * How every actor thread begins and ends: it says `ready` when it can take letters, and what killed it when it dies.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { FromThread } from '../../actors/kernel/supervisor.ts'
import { machine, type Platform } from '../platform.ts'
import { watchTurnsHere } from '../runtime/slow-turns.ts'

const port = parentPort!

function send(message: FromThread): void {
  port.postMessage(message)
}

/** An event worth a line in the server's log. */
export function report(
  level: 'error' | 'warn' | 'info',
  event: string,
  facts: Readonly<Record<string, unknown>>,
): void {
  send({ kind: 'event', level, event, facts })
}

/**
 * The answer to a read that could not be given: the caller gets an id that the log bears too, and the thread continues.
 * Only for reads: they change nothing, so nothing is half done.
 */
export function readFault(error: unknown): { readonly ok: false; readonly refusal: Refusal } {
  const id = randomUUID()
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  report('error', 'fault', { id, problem: message, stack })
  const what = name === 'Damage' ? 'bytes on the disk of this board are not what was written' : 'a fault of this board'
  return { ok: false, refusal: refusal('internal', `${what}, logged as ${id}`) }
}

/** What `make` gives, to be sent to followers; a fault of it is recorded, and costs only that message. */
export function unlessFaulty<Made>(make: () => Made): Made | undefined {
  try {
    return make()
  } catch (error) {
    readFault(error)
    return undefined
  }
}

/** Sends what others can continue with while this thread is not ready yet. */
export function tellKnown(facts: Readonly<Record<string, unknown>>): void {
  send({ kind: 'known', facts })
}

function die(error: unknown): void {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  send({ kind: 'dying', words: { name, message, stack: stack ?? '' } })
  machine.clock.soon(() => process.exit(70))
}

/** What a thread takes from the machine it runs on. */
export type ThreadPlatform = Pick<Platform, 'clock' | 'random' | 'disk'>

/** What to tell at once, and what to do when asked to stop or given a new link. */
type Running = {
  readonly facts: Readonly<Record<string, unknown>>
  readonly stop: () => void | Promise<void>
  readonly onMessage?: (message: unknown) => void
}

/**
 * Runs the thread. A thread that is born before all is known that it needs does what it can do without it, and waits for
 * `word`: the first message to it.
 */
export function runThread<Data, Word = never>(
  start: (data: Data, here: ThreadPlatform, word: () => Promise<Word>) => Running | Promise<Running>,
): void {
  process.on('uncaughtException', die)
  process.on('unhandledRejection', die)
  watchTurnsHere({ now: machine.clock.monotonicMs, report: (turn) => report('warn', 'slow_turn', turn) })
  const word = async (): Promise<Word> => ((await once(port, 'message')) as [Word])[0]
  const run = async (): Promise<void> => {
    const running = await start(workerData as Data, machine, word)
    port.on('message', (message: { kind: string }) => {
      if (message.kind !== 'stop') return running.onMessage?.(message)
      Promise.resolve(running.stop()).then(() => {
        send({ kind: 'stopped' })
        port.close()
      }, die)
    })
    send({ kind: 'ready', facts: running.facts })
  }
  run().catch(die)
}
