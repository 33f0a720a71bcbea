/** Threads of this machine that run the tasks of one file: piscina, behind an interface that a simulation can replace. */
import { Piscina } from 'piscina'

type PoolOptions = {
  readonly threads: number
  /** Tasks given to one thread at a time. */
  readonly tasksPerThread: number
  /** What each thread finds in its `workerData`. */
  readonly data?: unknown
  readonly memory?: {
    readonly maxOldGenerationSizeMb: number
    readonly maxYoungGenerationSizeMb: number
    readonly stackSizeMb: number
  }
}

export interface Pool {
  /** Runs an exported function of the file. Rejects with its error, if its thread died, or if `signal` aborts, which ends the thread. */
  run<Answer>(
    name: string,
    task: unknown,
    options?: { readonly transfer?: readonly ArrayBuffer[]; readonly signal?: AbortSignal },
  ): Promise<Answer>
  /** Number of live threads. */
  readonly threads: number
  /** Called if a thread died. It is replaced, unless the new one fails to start. */
  onError(take: (error: Error) => void): void
  end(): Promise<void>
}

/** Starts the threads of a file. They are not ready yet, so the first tasks wait for one. */
export type StartPool = (file: URL, options: PoolOptions) => Promise<Pool>

export class ThreadPool implements Pool {
  readonly #piscina: Piscina
  #take: (error: Error) => void = () => {}

  constructor(file: URL, { threads, tasksPerThread, data, memory }: PoolOptions) {
    this.#piscina = new Piscina({
      filename: file.href,
      minThreads: threads,
      maxThreads: threads,
      concurrentTasksPerWorker: tasksPerThread,
      idleTimeout: Number.POSITIVE_INFINITY,
      atomics: 'disabled',
      recordTiming: false,
      workerData: data,
      ...(memory === undefined ? {} : { resourceLimits: memory }),
    })
    // Without a listener, the event would end the process. The tasks of that thread report the reason.
    this.#piscina.on('error', (error: Error) => this.#take(error))
  }

  run<Answer>(name: string, task: unknown, { transfer, signal }: Parameters<Pool['run']>[2] = {}): Promise<Answer> {
    return this.#piscina.run(task, {
      name,
      ...(transfer === undefined ? {} : { transferList: [...transfer] }),
      ...(signal === undefined ? {} : { signal }),
    })
  }

  get threads(): number {
    return this.#piscina.threads.length
  }

  onError(take: (error: Error) => void): void {
    this.#take = take
  }

  async end(): Promise<void> {
    await this.#piscina.destroy()
  }
}
