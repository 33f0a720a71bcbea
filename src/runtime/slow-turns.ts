/**
 * Development mode (`SLOW_TURN_MS`): reports every turn of a thread's event loop that takes longer, with what ran in it.
 *
 * A turn is one iteration of the loop, as libuv counts them. Node's async hooks observe what runs in it, and attribute it to the cause
 * noted where the work began. Callbacks of native modules are unknown to them, and are named where they arrive. Without the variable
 * nothing is installed, and each function here is a single comparison.
 */
import { AsyncLocalStorage, createHook, executionAsyncResource } from 'node:async_hooks'
import { performance } from 'node:perf_hooks'
import { getEnvironmentData, setEnvironmentData, threadName } from 'node:worker_threads'

export type SlowTurn = {
  readonly thread: string
  readonly ms: number
  /** Processor time of the thread in that turn; far less than `ms` if the machine was busy with something else. */
  readonly cpu_ms: number
  /** What ran, longest first, excluding nested work. */
  readonly ran: readonly { readonly cause: string; readonly ms: number; readonly times: number }[]
}

type TurnReport = {
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly report: (turn: SlowTurn) => void
}
type TurnOptions = TurnReport & { readonly thread: string; readonly limitMs: number }

/** Where work began; named more precisely as soon as more is known. */
type Cause = { name: string }
/** Work in progress. Nested work is counted separately, not here. */
type Section = { readonly cause: Cause; readonly begin: number; insideMs: number }
type Turn = { readonly loop: number; readonly begin: number; readonly cpuUs: number; end: number; readonly ran: Ran }
type Ran = Map<string, { ms: number; times: number }>

const causesShown = 5

/** The environment data key under which every thread finds the limit. */
const limitName = 'broadside slow turns'

let watch: Watch | undefined

/** Watches this thread, which is the main one, and all threads started later; 0 to watch nothing. */
export function watchTurns(limitMs: number, report: TurnReport): void {
  if (limitMs === 0) return
  setEnvironmentData(limitName, limitMs)
  watch = new Watch({ ...report, thread: 'front', limitMs })
}

/** Watches this thread if the main one is watched. */
export function watchTurnsHere(report: TurnReport): void {
  const limitMs = getEnvironmentData(limitName)
  if (typeof limitMs === 'number') watch = new Watch({ ...report, thread: threadName ?? 'thread', limitMs })
}

/** Runs `work`, and attributes its cost to `cause`, now and in everything it continues with later. */
export function inTurn<Result>(cause: string, work: () => Result): Result {
  return watch === undefined ? work() : watch.run(cause, work)
}

/** Names the work in progress more precisely. Never a text that a user sent. */
export function noteCause(name: string): void {
  watch?.note(name)
}

/** Wraps the callback so that it runs for the current cause, wherever it is called from. */
export function withCause<Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
  return watch === undefined ? callback : watch.bound(callback)
}

/** The functions, each attributed to its name. */
export function eachNamed<Args extends unknown[], Result>(
  functions: Readonly<Record<string, (...args: Args) => Result>>,
): Readonly<Record<string, (...args: Args) => Result>> {
  if (watch === undefined) return functions
  const named = Object.entries(functions).map(
    ([name, each]) => [name, (...args: Args) => inTurn(name, () => each(...args))] as const,
  )
  return Object.fromEntries(named)
}

class Watch {
  readonly #options: TurnOptions
  readonly #causes = new AsyncLocalStorage<Cause>()
  readonly #open: Section[] = []
  #turn: Turn | undefined

  constructor(options: TurnOptions) {
    this.#options = options
    createHook({
      before: () => this.#begin(this.#causes.getStore() ?? { name: executionAsyncResource().constructor.name }),
      after: () => this.#end(),
    }).enable()
  }

  run<Result>(name: string, work: () => Result): Result {
    return this.#within({ name }, work)
  }

  note(name: string): void {
    const cause = this.#causes.getStore() ?? this.#open.at(-1)?.cause
    if (cause !== undefined) cause.name = name
  }

  bound<Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    const cause = this.#causes.getStore()
    return cause === undefined ? callback : (...args) => this.#within(cause, () => callback(...args))
  }

  #within<Result>(cause: Cause, work: () => Result): Result {
    this.#begin(cause)
    try {
      return this.#causes.run(cause, work)
    } finally {
      this.#end()
    }
  }

  #begin(cause: Cause): void {
    const begin = this.#options.now()
    if (this.#open.length === 0) this.#enterTurn(begin)
    this.#open.push({ cause, begin, insideMs: 0 })
  }

  #end(): void {
    const section = this.#open.pop()
    if (section === undefined || this.#turn === undefined) return
    const end = this.#options.now()
    const ms = end - section.begin
    const outer = this.#open.at(-1)
    if (outer !== undefined) outer.insideMs += ms
    this.#turn.end = end
    const ran = this.#turn.ran.get(section.cause.name) ?? { ms: 0, times: 0 }
    ran.ms += ms - section.insideMs
    ran.times++
    this.#turn.ran.set(section.cause.name, ran)
  }

  /** A turn is judged when the next one begins, so that no request waits for the report. */
  #enterTurn(begin: number): void {
    const { loopCount: loop } = performance.nodeTiming.uvMetricsInfo
    if (this.#turn?.loop === loop) return
    const cpuUs = cpuNow()
    if (this.#turn !== undefined) this.#judge(this.#turn, cpuUs)
    this.#turn = { loop, begin, cpuUs, end: begin, ran: new Map() }
  }

  #judge(turn: Turn, cpuUs: number): void {
    const ms = turn.end - turn.begin
    if (ms <= this.#options.limitMs) return
    const ran = [...turn.ran].map(([cause, each]) => ({ cause, ms: tenths(each.ms), times: each.times }))
    ran.sort((a, b) => b.ms - a.ms)
    const { thread, report } = this.#options
    report({ thread, ms: tenths(ms), cpu_ms: tenths((cpuUs - turn.cpuUs) / 1_000), ran: ran.slice(0, causesShown) })
  }
}

function cpuNow(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

function tenths(ms: number): number {
  return Math.round(ms * 10) / 10
}
