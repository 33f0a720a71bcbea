/** What a board uses of the machine it runs on. A simulation injects its own. */
import { randomBytes } from 'node:crypto'
import { MessageChannel, MessagePort, Worker } from 'node:worker_threads'
import type { Channel, Port } from '../actors/kernel/link.ts'
import type { FromThread, StartThread, Thread, ThreadStart, ThreadUsage } from '../actors/kernel/supervisor.ts'
import type { Disk } from '../storage/disk.ts'
import { machineDisk } from '../storage/machine-disk.ts'
import { type Clock, systemClock } from './clock.ts'
import { entryFile } from './program.ts'
import type { StartPool } from './runtime/thread-pool.ts'
import { youngGarbage } from './runtime/young-garbage.ts'

export type Random = (bytes: number) => Buffer

export type Platform = {
  readonly clock: Clock
  /** Unpredictable bytes. */
  readonly random: Random
  /** SQLite's files and the directory lock always use the real machine. */
  readonly disk: Disk
  readonly startThread: StartThread
  /** Connects two threads. */
  readonly channel: () => Channel
  /**
   * Called with the number of bytes outside the heap that the main thread has released: a message has been handled, or a page has been
   * rendered.
   */
  readonly onBytesReleased: (bytes: number) => void
  readonly startPool: StartPool
  /** Ends the process immediately. */
  readonly exit: (code: number) => void
}

/** A thread of this process. */
class WorkerThread implements Thread {
  readonly #worker: Worker

  constructor(
    file: URL,
    { name, data, ports, youngGenerationMb, oldGenerationMb, stackMb, isBackground = false }: ThreadStart,
  ) {
    this.#worker = new Worker(entryFile(file), {
      name,
      workerData: { file: file.href, data },
      transferList: ownPorts(ports),
      resourceLimits: {
        maxYoungGenerationSizeMb: youngGenerationMb,
        ...(oldGenerationMb === undefined ? {} : { maxOldGenerationSizeMb: oldGenerationMb }),
        ...(stackMb === undefined ? {} : { stackSizeMb: stackMb }),
      },
    })
    if (isBackground) this.#worker.unref()
  }

  onMessage(take: (message: FromThread) => void): void {
    this.#worker.on('message', take)
  }

  onError(take: (error: Error) => void): void {
    this.#worker.on('error', take)
  }

  onExit(take: (code: number) => void): void {
    this.#worker.on('exit', take)
  }

  send(message: unknown, ports: readonly Port[]): void {
    this.#worker.postMessage(message, ownPorts(ports))
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate()
  }

  async usage(): Promise<ThreadUsage> {
    const { used_heap_size, external_memory } = await this.#worker.getHeapStatistics()
    const { active } = this.#worker.performance.eventLoopUtilization()
    return { heapBytes: used_heap_size + external_memory, activeSeconds: active / 1_000 }
  }
}

/** All ports given to another thread here are ends of `channel`. */
function ownPorts(ports: readonly Port[]): MessagePort[] {
  return ports.filter((port) => port instanceof MessagePort)
}

export const machine: Platform = {
  clock: systemClock,
  random: (bytes) => randomBytes(bytes),
  disk: machineDisk,
  startThread: (file, start) => new WorkerThread(file, start),
  channel: () => new MessageChannel(),
  onBytesReleased: youngGarbage(),
  // Loaded on demand, because most threads never need it.
  startPool: async (file, options) => new (await import('./runtime/thread-pool.ts')).ThreadPool(file, options),
  exit: (code) => process.exit(code),
}
