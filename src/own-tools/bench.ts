/**
 * Runs tools on a thread of their own, one at a time and each within a time limit. A tool that takes longer, or more memory
 * than the thread may have, ends the thread, and a fresh one takes the next. It starts with the first call.
 *
 * One network has a quarter of the places at most: a caller who fills them with work that never ends does not keep others out.
 */

import type { StartThread, Thread } from '../../actors/kernel/supervisor.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { threadFile } from '../program.ts'
import type { Input, Output } from './own-tool.ts'

export type BenchAsk = { readonly id: number; readonly tool: string; readonly input: Input }
export type BenchAnswer = { readonly id: number } & ({ readonly output: Output } | { readonly fault: string })

/** `fault`: what is wrong with the input; `overloaded`: too many wait; the others: it was ended. */
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
/** The job on the thread, what ends it, and the parts of its time that are over. */
type Under = Job & { readonly id: number; stop?: Cancel; parts: number; ended: 'timeout' | 'too_large' }

/**
 * Its time is counted in so many parts, one after the other: while this process stands still, for however long, one part passes and
 * not all of it.
 */
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
  /** The thread is being ended: what comes next needs a fresh one. */
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

  /** Gives the job to the thread, which is ready: its time begins. */
  #hand(): void {
    const under = this.#under!
    this.#watch(under)
    this.#thread!.send({ id: under.id, tool: under.tool, input: under.input } satisfies BenchAsk, [])
  }

  #watch(under: Under): void {
    const part = (): void => {
      if (++under.parts < timeParts) this.#watch(under)
      // An answer that is here already, and was not examined yet, counts.
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
      // It has loaded what it needs: from now on its time is the input's.
      if (message.kind === 'ready') {
        this.#isReady = true
        return this.#hand()
      }
      if (message.kind !== 'answer') return
      const answer = message.body as BenchAnswer
      if (answer.id !== this.#under?.id) return
      this.#finish('output' in answer ? { output: answer.output } : { fault: answer.fault })
    })
    // What an input broke is reported by the end of the thread, which follows.
    thread.onError(() => {})
    thread.onExit(() => {
      this.#thread = undefined
      this.#isReady = false
      const wasEnded = this.#isEnding
      this.#isEnding = false
      // The job before it was answered at the last moment: this one was never on that thread.
      if (wasEnded && this.#under !== undefined && this.#under.stop === undefined) this.#thread = this.#start()
      else this.#finish({ failure: this.#under?.ended ?? 'too_large' })
    })
    return thread
  }
}
