/**
 * Renders users' texts as HTML: short plain ones immediately, everything else on a separate thread, with a bounded queue and a deadline
 * after which the thread is replaced. The thread starts with the first text that needs it.
 *
 * The thread's results are cached by text: each text is rendered once, however often its page is requested or the board around it changes.
 * One network may use a quarter of the queue; a network that fills its share waits only for itself.
 */

import { hash } from 'node:crypto'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { threadFile } from '../program.ts'
import type { Pool, StartPool } from '../runtime/thread-pool.ts'
import { type Html, trusted } from './pieces/html.ts'
import { type RenderItem, rendered } from './pieces/rendered.ts'

export type Costed = { readonly item: RenderItem; readonly nodes: number }
/** `busy`: the queue is full, so try again later. `slow`: it took longer than the deadline. */
export type Rendered = Html | 'busy' | 'slow'

type RendererOptions = {
  readonly startPool: StartPool
  readonly timers: Timers
  /** Called if a text took too long, or the thread failed. */
  readonly report?: (event: string, facts: Readonly<Record<string, unknown>>) => void
  readonly deadlineMs?: number
}

/** Nodes of plain text per call that are rendered on the calling thread, 5 ms at most; an ordinary page has fewer. */
export const inlineNodesMax = 800
/** Nodes per task for the thread, unless a single text has more: 15 ms at most. */
const taskNodesMax = 2_000
/** Nodes that may wait in total, a second of work at most, and per network: the most expensive page. */
const waitingNodesMax = 120_000
const waitingNodesOfNetworkMax = 30_000
/** Eighty times the worst known text. */
const deadlineMsDefault = 2_000
const idleMsMax = 300_000
const keptCharsMax = 8 * 1024 * 1024
const memory = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 }

type Asked = Costed & { readonly key: string; readonly give: (made: Rendered) => void }
type Task = { readonly asked: readonly Asked[]; readonly nodes: number; readonly from: string }

const entry = threadFile('renderer')

export class Renderer {
  readonly #options: RendererOptions
  readonly #waiting: Task[] = []
  /** Texts that wait or are being rendered, by key. */
  readonly #pending = new Map<string, Promise<Rendered>>()
  readonly #kept = new Kept()
  #pool: Pool | undefined
  #isRunning = false
  #isClosed = false
  #stopIdling: Cancel | undefined

  constructor(options: RendererOptions) {
    this.#options = options
  }

  /** In the order of the items. `from`: the requesting network. */
  async render(items: readonly Costed[], from: string): Promise<Rendered[]> {
    const areShort = nodesOf(items.filter(isPlain)) <= inlineNodesMax
    const missing: Asked[] = []
    const made = items.map((costed) => {
      if (areShort && isPlain(costed)) return rendered(costed.item)
      const { item, nodes } = costed
      const key = keyOf(item)
      const known = this.#kept.find(key) ?? this.#pending.get(key)
      if (known !== undefined) return known
      const { promise, resolve: give } = Promise.withResolvers<Rendered>()
      this.#pending.set(key, promise)
      missing.push({ item, nodes, key, give })
      return promise
    })
    for (const task of tasksOf(missing, from)) this.#take(task)
    return Promise.all(made)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const task of this.#waiting.splice(0)) this.#settle(task, 'busy')
    await this.#end()
  }

  #take(task: Task): void {
    const own = this.#waiting.filter(({ from }) => from === task.from)
    const isFull =
      nodesOf(this.#waiting) + task.nodes > waitingNodesMax || nodesOf(own) + task.nodes > waitingNodesOfNetworkMax
    if (isFull || this.#isClosed) return this.#settle(task, 'busy')
    this.#waiting.push(task)
    if (!this.#isRunning) void this.#run()
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    this.#stopIdling?.()
    for (let task = this.#waiting.shift(); task !== undefined; task = this.#waiting.shift()) {
      const made = await this.#onThread(task)
      // One of them was too slow; run them separately to find out which.
      if (made === 'slow' && task.asked.length > 1 && !this.#isClosed) this.#waiting.unshift(...apart(task))
      else this.#settle(task, made)
    }
    this.#isRunning = false
    this.#stopIdling = this.#options.timers.later(() => void this.#end(), idleMsMax)
  }

  #settle({ asked }: Task, made: readonly string[] | 'busy' | 'slow'): void {
    for (const [n, { key, give }] of asked.entries()) {
      this.#pending.delete(key)
      const each = typeof made === 'string' ? made : trusted(made[n]!)
      if (each !== 'busy') this.#kept.keep(key, each)
      give(each)
    }
  }

  async #onThread({ asked, nodes }: Task): Promise<readonly string[] | 'busy' | 'slow'> {
    const { report, timers, startPool, deadlineMs = deadlineMsDefault } = this.#options
    try {
      this.#pool ??= await begin(startPool)
    } catch (error) {
      report?.('renderer.not_started', { problem: String(error) })
      return 'busy'
    }
    const late = new AbortController()
    // An answer that has arrived but was not processed yet still counts.
    const inTime = timers.later(() => timers.soon(() => late.abort()), deadlineMs)
    try {
      const items = asked.map(({ item }) => item)
      return await this.#pool.run<string[]>('renderAll', items, { signal: late.signal })
    } catch (error) {
      report?.('renderer.slow', { texts: asked.length, nodes, problem: String(error) })
      await this.#end()
      return this.#isClosed ? 'busy' : 'slow'
    } finally {
      inTime()
    }
  }

  async #end(): Promise<void> {
    this.#stopIdling?.()
    const pool = this.#pool
    this.#pool = undefined
    await pool?.end()
  }
}

/** Starts the thread: its modules are loaded one per turn, and the first text's deadline begins when it can work. */
async function begin(startPool: StartPool): Promise<Pool> {
  const pool = await startPool(entry, { threads: 1, tasksPerThread: 1, memory })
  await pool.run('ready', undefined)
  return pool
}

function tasksOf(asked: readonly Asked[], from: string): Task[] {
  const tasks: { asked: Asked[]; nodes: number; from: string }[] = []
  for (const each of asked) {
    const last = tasks.at(-1)
    if (last === undefined || last.nodes + each.nodes > taskNodesMax)
      tasks.push({ asked: [each], nodes: each.nodes, from })
    else {
      last.asked.push(each)
      last.nodes += each.nodes
    }
  }
  return tasks
}

function apart({ asked, from }: Task): Task[] {
  return asked.map((each) => ({ asked: [each], nodes: each.nodes, from }))
}

/** Markdown and comparisons need libraries that only the thread has. */
function isPlain({ item: { kind } }: Costed): boolean {
  return kind === 'text' || kind === 'verbatim'
}

function nodesOf(costed: readonly Pick<Costed, 'nodes'>[]): number {
  return costed.reduce((sum, { nodes }) => sum + nodes, 0)
}

/** Everything the HTML depends on, and nothing else. */
function keyOf(item: RenderItem): string {
  return hash('sha256', JSON.stringify(item), 'base64')
}

/** Rendered texts by key; the least recently used are evicted first. */
class Kept {
  readonly #byKey = new Map<string, Html | 'slow'>()
  #chars = 0

  find(key: string): Html | 'slow' | undefined {
    const found = this.#byKey.get(key)
    if (found === undefined) return undefined
    this.#byKey.delete(key)
    this.#byKey.set(key, found)
    return found
  }

  keep(key: string, made: Html | 'slow'): void {
    this.#byKey.set(key, made)
    this.#chars += costOf(made)
    for (const [oldest, each] of this.#byKey) {
      if (this.#chars <= keptCharsMax) break
      this.#byKey.delete(oldest)
      this.#chars -= costOf(each)
    }
  }
}

/** Even a short text costs its entry. */
function costOf(made: Html | 'slow'): number {
  return 200 + (made === 'slow' ? 0 : made.text.length)
}
