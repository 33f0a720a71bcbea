/**
 * A supervised thread: starts it, waits until it is ready, restarts it when it dies, and stops it in an orderly way.
 *
 * Every failure is handled the same way: discard memory and replay files. There is only a restart, and no supervision
 * tree. A thread is given up if it dies more than a few times a minute, if it cannot be restarted, or if its error says
 * that a file cannot be trusted. If the process depends on that thread (shards, log, feed), the process exits, and the
 * service manager restarts it into recovery. Threads that only hold or send derived data (search, tools, delivery) are
 * restarted after a while, and the board continues without them until then.
 */
import type { Port } from './link.ts'
import type { Timers } from './timers.ts'

export type ThreadError = { readonly name: string; readonly message: string; readonly stack: string }

/** What a thread is started with. */
export type ThreadStart = {
  readonly name: string
  readonly data: unknown
  /** The ports in `data`. */
  readonly ports: readonly Port[]
  readonly youngGenerationMb: number
  readonly oldGenerationMb?: number
  readonly stackMb?: number
  /** Does not keep the process alive. */
  readonly isBackground?: boolean
}

/** Resource usage of a thread. `activeSeconds`: how long its event loop has been busy since its start. */
export type ThreadUsage = { readonly heapBytes: number; readonly activeSeconds: number }

/** A thread that was started. */
export interface Thread {
  onMessage(take: (message: FromThread) => void): void
  onError(take: (error: Error) => void): void
  onExit(take: (code: number) => void): void
  /** `ports`: those in the message. */
  send(message: unknown, ports: readonly Port[]): void
  /** Immediately, whatever it is doing. */
  terminate(): Promise<void>
  /** Rejects if the thread is not running. */
  usage(): Promise<ThreadUsage>
}

/** Starts a thread from a file, which exports it as `thread`. Throws the system error. */
export type StartThread = (file: URL, start: ThreadStart) => Thread

type SupervisedOptions = {
  readonly startThread: StartThread
  readonly name: string
  readonly file: URL
  /** Creates the start data of the thread, with new links each time. */
  readonly startData: () => { data: unknown; transfer: readonly Port[] }
  /** Called with what a thread reports before it is ready. */
  readonly onKnown?: (facts: Readonly<Record<string, unknown>>) => void
  /** Called with the facts of a restarted thread. */
  readonly onRestart?: (facts: Readonly<Record<string, unknown>>) => void
  readonly onEvent: (level: 'error' | 'warn' | 'info', event: string, facts: Readonly<Record<string, unknown>>) => void
  /** Called when the thread is given up. The callback decides whether the process can continue without it. */
  readonly onFatal: (name: string, error: ThreadError) => void
  /** Whether this thread may be restarted after this error. */
  readonly mayRestart: (error: ThreadError) => boolean
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Timers
}

/** For every thread: most messages are garbage soon, so a large young generation collects them cheaply. */
const youngGenerationMb = 16
const restartsMax = 3
const restartWindowMs = 60_000

/** What a thread sends to its supervisor. */
export type FromThread =
  | { readonly kind: 'ready'; readonly facts: Readonly<Record<string, unknown>> }
  /** Facts that allow others to continue before it is ready. */
  | { readonly kind: 'known'; readonly facts: Readonly<Record<string, unknown>> }
  | { readonly kind: 'dying'; readonly error: ThreadError }
  | {
      readonly kind: 'event'
      readonly level: 'error' | 'warn' | 'info'
      readonly event: string
      readonly facts: Readonly<Record<string, unknown>>
    }
  /** Its answer to a message. */
  | { readonly kind: 'answer'; readonly body: unknown }
  | { readonly kind: 'stopped' }

export class Supervised {
  readonly #options: SupervisedOptions
  #thread: Thread | undefined
  #stopping = false
  #restarts: number[] = []

  constructor(options: SupervisedOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.name
  }

  get isRunning(): boolean {
    return this.#thread !== undefined
  }

  /**
   * Starts the thread. Resolves with its facts when it is ready; rejects with its error and name if it dies before that
   * or cannot be started.
   */
  async start(): Promise<Readonly<Record<string, unknown>>> {
    const { data, transfer } = this.#options.startData()
    const { name, file, startThread } = this.#options
    const thread = startThread(file, { name, data, ports: transfer, youngGenerationMb })
    this.#thread = thread
    return new Promise((resolve, reject) => {
      let ready = false
      // The first failure is the cause; later ones, until the thread is gone, may be consequences.
      let failure: ThreadError | undefined
      thread.onMessage((message) => {
        if (message.kind === 'dying') failure ??= message.error
        if (message.kind === 'event') this.#options.onEvent(message.level, message.event, message.facts)
        if (message.kind === 'known') this.#options.onKnown?.(message.facts)
        if (message.kind === 'stopped') this.#stopping = true
        if (message.kind !== 'ready') return
        ready = true
        resolve(message.facts)
      })
      thread.onError((error) => {
        failure ??= { name: error.name, message: error.message, stack: error.stack ?? '' }
      })
      thread.onExit(() => {
        if (this.#thread !== thread) return
        this.#thread = undefined
        if (this.#stopping) return
        const cause = failure ?? { name: 'Error', message: `thread ${name} exited without an error`, stack: '' }
        if (ready) this.#died(cause)
        else reject(Object.assign(new Error(cause.message), cause, { thread: this.name }))
      })
    })
  }

  send(message: unknown, ports: readonly Port[] = []): void {
    this.#thread?.send(message, ports)
  }

  /** Sends what the thread waits for while it starts. */
  sendWord(word: unknown): void {
    this.#thread?.send({ kind: 'word', word }, [])
  }

  /** Zeros if it is not running. */
  async usage(): Promise<ThreadUsage> {
    // It may exit during the query.
    return (await this.#thread?.usage().catch(() => undefined)) ?? { heapBytes: 0, activeSeconds: 0 }
  }

  /**
   * Tells the thread to stop and waits until it is gone, for at most `withinMs`. After that it is terminated, or left
   * running if `late` says so.
   */
  async stop(withinMs: number, late: 'terminate' | 'leave' = 'terminate'): Promise<void> {
    const thread = this.#thread
    if (thread === undefined) return
    this.#stopping = true
    const gone = Promise.withResolvers<void>()
    thread.onExit(() => gone.resolve())
    thread.send({ kind: 'stop' }, [])
    const { name, onEvent, timers } = this.#options
    const inTime = timers.later(() => {
      // What it has saved so far stays; what it was writing is lost.
      onEvent('warn', 'thread.not_stopped', { thread: name, within_ms: withinMs })
      if (late === 'leave') gone.resolve()
      else void thread.terminate()
    }, withinMs)
    await gone.promise
    inTime()
  }

  #died(error: ThreadError): void {
    const { name, now, onEvent, onFatal, onRestart, mayRestart } = this.#options
    const at = now()
    this.#restarts = [...this.#restarts.filter((each) => at - each < restartWindowMs), at]
    onEvent('warn', 'thread.died', { thread: name, problem: error.message, restarts: this.#restarts.length })
    if (!mayRestart(error) || this.#restarts.length > restartsMax) return onFatal(name, error)
    this.start().then(
      (facts) => {
        onEvent('info', 'thread.restarted', { thread: name })
        onRestart?.(facts)
      },
      (error: Error) => onFatal(name, { name: error.name, message: error.message, stack: error.stack ?? '' }),
    )
  }
}
