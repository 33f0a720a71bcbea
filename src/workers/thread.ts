/**
 * A thread as a plain function of its start data and its platform. `entry.ts` runs it in a worker; a simulation runs many in one process.
 */
import { randomUUID } from 'node:crypto'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { FromThread } from '../../actors/kernel/supervisor.ts'
import type { Platform } from '../platform.ts'

/** Reports an event as a line in the server's log. */
export type Report = (level: 'error' | 'warn' | 'info', event: string, facts: Readonly<Record<string, unknown>>) => void

/** A thread's platform: the machine it runs on, and the ways to communicate with its supervisor. */
export type ThreadPlatform = Pick<Platform, 'clock' | 'random' | 'disk'> & {
  readonly report: Report
  /** Reports facts that others can use before this thread is ready. */
  readonly tellKnown: (facts: Readonly<Record<string, unknown>>) => void
  /** Answers a message where there is no link to carry answers. */
  readonly answer: (body: unknown) => void
}

/** Facts to report immediately, and what to do when asked to stop or given a new link. */
type Running = {
  readonly facts: Readonly<Record<string, unknown>>
  readonly stop: () => void | Promise<void>
  readonly onMessage?: (message: unknown) => void
}

/**
 * Starts a thread's work. A thread created before everything it needs is known does what it can, and then waits for a `word` from its
 * supervisor, as often as it needs one. Other messages wait until it is running.
 */
export type ThreadStarter<Data, Word = never> = (
  data: Data,
  here: ThreadPlatform,
  word: () => Promise<Word>,
) => Running | Promise<Running>

/** The connection to the supervisor, whatever the transport. */
export type SupervisorLine = {
  readonly send: (message: FromThread) => void
  readonly onMessage: (take: (message: unknown) => void) => void
  readonly close: () => void
}

/**
 * Runs a thread until it is stopped. Rejects with the error that ended it before it was ready; `die` gets an error that ends it while
 * stopping.
 */
export async function runThread<Data, Word>(
  starter: ThreadStarter<Data, Word>,
  data: Data,
  machine: Pick<Platform, 'clock' | 'random' | 'disk'>,
  { send, onMessage, close }: SupervisorLine,
  die: (error: unknown) => void,
): Promise<void> {
  let running: Running | undefined
  /** Words that came before they were asked for, and the callback of one that was asked for before it came. */
  const words: Word[] = []
  let giveWord: ((word: Word) => void) | undefined
  /** Messages that came before they could be handled. */
  const early: unknown[] = []
  const take = (message: unknown): void => {
    const { kind } = message as { readonly kind?: string }
    if (kind === 'word') {
      const { word } = message as { readonly word: Word }
      if (giveWord === undefined) words.push(word)
      else giveWord(word)
      giveWord = undefined
    } else if (kind === 'stop' && (running !== undefined || giveWord !== undefined)) {
      Promise.resolve(running?.stop()).then(() => {
        send({ kind: 'stopped' })
        close()
      }, die)
    } else if (running === undefined) early.push(message)
    else running.onMessage?.(message)
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
      if (words.length > 0) return resolve(words.shift()!)
      giveWord = resolve
      for (const message of early.splice(0)) take(message)
    })
  running = await starter(data, here, word)
  send({ kind: 'ready', facts: running.facts })
  for (const message of early.splice(0)) take(message)
}

const faults: Readonly<Record<string, string>> = {
  Damage: 'bytes on the disk of this board are not what was written',
  FailedRead: 'the disk of this board does not return what was written',
}

/**
 * The answer to a read that failed: the caller gets an id that is also in the log, and the thread continues. Only for reads: they change
 * nothing, so nothing is half done.
 */
export function readFault(report: Report, error: unknown): { readonly ok: false; readonly refusal: Refusal } {
  const id = randomUUID()
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  report('error', 'fault', { id, problem: message, stack })
  return {
    ok: false,
    refusal: refusal('internal', `${faults[name] ?? 'an internal error of this board'}, logged as ${id}`),
  }
}

/** Returns the result of `make`, to be sent to followers. If it throws, the error is logged and only that message is lost. */
export function unlessFaulty<Made>(report: Report, make: () => Made): Made | undefined {
  try {
    return make()
  } catch (error) {
    readFault(report, error)
    return undefined
  }
}
