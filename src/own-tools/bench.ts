/**
 * Runs tools on a separate thread, one at a time and each within a time limit. If a tool exceeds it, or the thread's memory limit, the
 * thread is terminated, and a new one takes the next job. The thread starts with the first call.
 *
 * One network may hold at most a quarter of the queue: a caller who fills it with endless work does not keep others out.
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
type Under = Job & { readonly id: number; stop?: Cancel; parts: number; ended: 'timeout' | 'too_large' }

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
  readonly #waiting: Job[] = []
  #thread: Thread | undefined
  #isReady = false
  /** The thread is being terminated: the next job needs a new one. */
  #isEnding = false
  #under: Under | undefined
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
    this.#go()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#thread?.terminate()
  }

  #go(): void {
    const job = this.#under === undefined ? this.#waiting.shift() : undefined
    if (job === undefined) return
    this.#under = { ...job, id: ++this.#next, parts: 0, ended: 'too_large' }
    if (this.#isReady) this.#hand()
    else this.#thread ??= this.#start()
  }

  /** Gives the job to the thread, which is ready: its time starts now. */
  #hand(): void {
    const under = this.#under!
    this.#watch(under)
    this.#thread!.send({ id: under.id, tool: under.tool, input: under.input } satisfies BenchAsk, [])
  }

  #watch(under: Under): void {
    const part = (): void => {
      if (++under.parts < timeParts) this.#watch(under)
      // An answer that has arrived, and was not processed yet, counts.
      else this.#timers.soon(() => this.#end(under))
    }
    under.stop = this.#timers.later(part, this.#limitMs / timeParts)
  }

  #end(under: Under): void {
    if (this.#under !== under) return
    under.ended = 'timeout'
    this.#isReady = false
    this.#isEnding = true
    void this.#thread?.terminate()
  }

  #finish(result: BenchResult): void {
    const under = this.#under
    if (under === undefined) return
    under.stop?.()
    this.#under = undefined
    under.done(result)
    this.#go()
  }

  #start(): Thread {
    const start = { name: 'tool-bench', data: undefined, ports: [], ...memory, isBackground: true }
    const thread = this.#startThread(entry, start)
    thread.onMessage((message) => {
      // It has loaded what it needs: from now on the time counts as the input's.
      if (message.kind === 'ready') {
        this.#isReady = true
        return this.#hand()
      }
      if (message.kind !== 'answer') return
      const answer = message.body as BenchAnswer
      if (answer.id !== this.#under?.id) return
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
      if (wasEnded && this.#under !== undefined && this.#under.stop === undefined) this.#thread = this.#start()
      else this.#finish({ failure: this.#under?.ended ?? 'too_large' })
    })
    return thread
  }
}
