/**
 * A thread, as a plain function of what it is started with and of what it is handed. `entry.ts` runs it in a worker; a
 * simulation runs many in one process.
 */
import { randomUUID } from 'node:crypto'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { FromThread } from '../../actors/kernel/supervisor.ts'
import type { Platform } from '../platform.ts'

/** An event worth a line in the server's log. */
export type Report = (level: 'error' | 'warn' | 'info', event: string, facts: Readonly<Record<string, unknown>>) => void

/** What a thread is handed: the machine it runs on, and the ways to speak to its supervisor. */
export type ThreadPlatform = Pick<Platform, 'clock' | 'random' | 'disk'> & {
  readonly report: Report
  /** Says what others can continue with while this thread is not ready yet. */
  readonly tellKnown: (facts: Readonly<Record<string, unknown>>) => void
  /** Answers a message, where it is not a link that carries answers. */
  readonly answer: (body: unknown) => void
}

/** What to tell at once, and what to do when asked to stop or given a new link. */
type Running = {
  readonly facts: Readonly<Record<string, unknown>>
  readonly stop: () => void | Promise<void>
  readonly onMessage?: (message: unknown) => void
}

/**
 * Starts a thread's work. One that is born before all is known that it needs does what it can do without it, and waits for
 * `word`: the first message to it.
 */
export type ThreadStarter<Data, Word = never> = (
  data: Data,
  here: ThreadPlatform,
  word: () => Promise<Word>,
) => Running | Promise<Running>

/** The way to the supervisor, whatever carries it. */
export type SupervisorLine = {
  readonly send: (message: FromThread) => void
  readonly onMessage: (take: (message: unknown) => void) => void
  readonly close: () => void
}

/** Runs a thread until it is stopped. Rejects with what ended it before it was ready; `die` gets what ends it on its way out. */
export async function runThread<Data, Word>(
  starter: ThreadStarter<Data, Word>,
  data: Data,
  machine: Pick<Platform, 'clock' | 'random' | 'disk'>,
  { send, onMessage, close }: SupervisorLine,
  die: (error: unknown) => void,
): Promise<void> {
  let running: Running | undefined
  let giveWord: ((word: Word) => void) | undefined
  /** What came before it could be taken. */
  const early: unknown[] = []
  const take = (message: unknown): void => {
    const isStop = (message as { readonly kind?: string }).kind === 'stop'
    if (running === undefined && giveWord === undefined) early.push(message)
    else if (isStop) {
      Promise.resolve(running?.stop()).then(() => {
        send({ kind: 'stopped' })
        close()
      }, die)
    } else if (running !== undefined) running.onMessage?.(message)
    else {
      giveWord?.(message as Word)
      giveWord = undefined
    }
  }
  onMessage(take)
  const { clock, random, disk } = machine
  const here: ThreadPlatform = {
    clock,
    random,
    disk,
    report: (level, event, facts) => send({ kind: 'event', level, event, facts }),
    tellKnown: (facts) => send({ kind: 'known', facts }),
    answer: (body) => send({ kind: 'answer', body }),
  }
  const word = (): Promise<Word> =>
    new Promise((resolve) => {
      giveWord = resolve
      for (const message of early.splice(0)) take(message)
    })
  running = await starter(data, here, word)
  send({ kind: 'ready', facts: running.facts })
  for (const message of early.splice(0)) take(message)
}

const faults: Readonly<Record<string, string>> = {
  Damage: 'bytes on the disk of this board are not what was written',
  FailedRead: 'the disk of this board does not give back what was written',
}

/**
 * The answer to a read that could not be given: the caller gets an id that the log bears too, and the thread continues.
 * Only for reads: they change nothing, so nothing is half done.
 */
export function readFault(report: Report, error: unknown): { readonly ok: false; readonly refusal: Refusal } {
  const id = randomUUID()
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  report('error', 'fault', { id, problem: message, stack })
  return { ok: false, refusal: refusal('internal', `${faults[name] ?? 'a fault of this board'}, logged as ${id}`) }
}

/** What `make` gives, to be sent to followers; a fault of it is recorded, and costs only that message. */
export function unlessFaulty<Made>(report: Report, make: () => Made): Made | undefined {
  try {
    return make()
  } catch (error) {
    readFault(report, error)
    return undefined
  }
}
