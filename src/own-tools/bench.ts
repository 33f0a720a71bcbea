/**
 * Runs tools on a separate thread, one at a time and each within a time limit. If a tool exceeds it, or the thread's memory limit, the
 * thread is terminated, and a new one takes the next job. The thread starts with the first call.
 *
 * One network may hold at most a quarter of the queue, and networks take turns: a caller who sends endless work neither keeps others out
 * nor makes them wait for more than one of its jobs.
 */

import type { StartThread, Thread } from '../../actors/kernel/supervisor.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { threadFile } from '../program.ts'
import type { Input, Output } from './own-tool.ts'

export type BenchAsk = { readonly id: number; readonly tool: string; readonly input: Input }
export type BenchAnswer = { readonly id: number } & ({ readonly output: Output } | { readonly fault: string })

/** `fault`: what is wrong with the input. `overloaded`: too many are waiting. The others: it was terminated. */
export type BenchResult =
  | { readonly output: Output }
  | { readonly fault: string }
  | { readonly failure: 'overloaded' | 'timeout' | 'too_large' }

type Job = {
  readonly tool: string
  readonly input: Input
  /** The network that it came from. */
  readonly from: string
  readonly done: (result: BenchResult) => void
}
/** The job on the thread, how to cancel its time limit, and how many parts of its time have passed. */
type RunningJob = Job & { readonly id: number; stop?: Cancel; parts: number; ended: 'timeout' | 'too_large' }

/** Its time is counted in this many consecutive parts. However long this process is suspended, only one part passes. */
const timeParts = 8

const entry = threadFile('tool-bench')
const memory = { oldGenerationMb: 96, youngGenerationMb: 16, stackMb: 4 }

type BenchOptions = {
  readonly limitMs: number
  readonly waitingMax: number
  readonly timers: Timers
  readonly startThread: StartThread
}

export class Bench {
  readonly #limitMs: number
  readonly #waitingMax: number
  readonly #timers: Timers
  readonly #startThread: StartThread
  #waiting: Job[] = []
  /** The network that had the last turn. */
  #served = ''
  #thread: Thread | undefined
  #isReady = false
  /** The thread is being terminated: the next job needs a new one. */
  #isEnding = false
  #running: RunningJob | undefined
  #next = 0
  #closed = false

  constructor({ limitMs, waitingMax, timers, startThread }: BenchOptions) {
    this.#startThread = startThread
    this.#timers = timers
    this.#limitMs = limitMs
    this.#waitingMax = waitingMax
  }

  run(job: Job): void {
    const own = this.#waiting.filter(({ from }) => from === job.from).length
    const isFull = this.#waiting.length >= this.#waitingMax || own >= this.#waitingMax / 4
    if (isFull || this.#closed) return job.done({ failure: 'overloaded' })
    this.#waiting.push(job)
    this.#startNext()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.terminate()
  }

  #startNext(): void {
    const job = this.#running === undefined ? this.#takeNext() : undefined
    if (job === undefined) return
    this.#running = { ...job, id: ++this.#next, parts: 0, ended: 'too_large' }
    if (this.#isReady) this.#send()
    else this.#thread ??= this.#start()
  }

  /** The other jobs of the network that had the last turn go behind those of all others. */
  #takeNext(): Job | undefined {
    const hadTurn = ({ from }: Job) => from === this.#served
    this.#waiting = [...this.#waiting.filter((job) => !hadTurn(job)), ...this.#waiting.filter(hadTurn)]
    const next = this.#waiting.shift()
    this.#served = next?.from ?? this.#served
    return next
  }

  /** Gives the job to the thread, which is ready: its time starts now. */
  #send(): void {
    const running = this.#running!
    this.#watch(running)
    this.#thread!.send({ id: running.id, tool: running.tool, input: running.input } satisfies BenchAsk, [])
  }

  #watch(running: RunningJob): void {
    const part = (): void => {
      if (++running.parts < timeParts) this.#watch(running)
      // An answer that has arrived, and was not processed yet, counts.
      else this.#timers.soon(() => this.#end(running))
    }
    running.stop = this.#timers.later(part, this.#limitMs / timeParts)
  }

  #end(running: RunningJob): void {
    if (this.#running !== running) return
    running.ended = 'timeout'
    this.#isReady = false
    this.#isEnding = true
    void this.#thread?.terminate()
  }

  #finish(result: BenchResult): void {
    const running = this.#running
    if (running === undefined) return
    running.stop?.()
    this.#running = undefined
    running.done(result)
    this.#startNext()
  }

  #start(): Thread {
    const start = { name: 'tool-bench', data: undefined, ports: [], ...memory, isBackground: true }
    const thread = this.#startThread(entry, start)
    thread.onMessage((message) => {
      // It has loaded what it needs: from now on the time counts as the input's.
      if (message.kind === 'ready') {
        this.#isReady = true
        return this.#send()
      }
      if (message.kind !== 'answer') return
      const answer = message.body as BenchAnswer
      if (answer.id !== this.#running?.id) return
      this.#finish('output' in answer ? { output: answer.output } : { fault: answer.fault })
    })
    // The thread's exit, which follows, reports what an input broke.
    thread.onError(() => {})
    thread.onExit(() => {
      this.#thread = undefined
      this.#isReady = false
      const wasEnded = this.#isEnding
      this.#isEnding = false
      // The previous job was answered at the last moment, so this one was never on that thread.
      if (wasEnded && this.#running !== undefined && this.#running.stop === undefined) this.#thread = this.#start()
      else this.#finish({ failure: this.#running?.ended ?? 'too_large' })
    })
    return thread
  }
}
