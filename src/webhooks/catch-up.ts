/**
 * Catching up: hooks that do not follow a source, because they are new or too slow, read it from their own position. Hooks with
 * the same filter share one scan. One page is read at a time, however many hooks wait.
 */
import type { SignalsPage, SignalsRequest } from './payloads/signals.ts'
import { pendingOf } from './pending.ts'
import { signalsFilter, wantedBy } from './subscription-index.ts'
import { type HookRun, queueLow } from './subscription-run.ts'

type CatchUpOptions = {
  readonly scan: (source: number, request: SignalsRequest) => Promise<SignalsPage>
  /** Next position read for all hooks that follow the source. */
  readonly tail: (source: number) => number
  /** Called when its queue or its positions have changed. */
  readonly changed: (run: HookRun) => void
}

type Group = { readonly source: number; readonly filter: Omit<SignalsRequest, 'from'>; readonly runs: Set<HookRun> }

export class CatchUp {
  readonly #options: CatchUpOptions
  /** By source and filter, in the order of their turns. */
  readonly #groups = new Map<string, Group>()
  #working = false
  #closed = false

  constructor(options: CatchUpOptions) {
    this.#options = options
  }

  add(run: HookRun): void {
    const filter = signalsFilter(run.view)
    for (const source of run.behind) {
      const name = `${source} ${filter.room} ${filter.spoken} ${filter.personal}`
      const group = this.#groups.get(name) ?? { source, filter, runs: new Set() }
      this.#groups.set(name, group)
      group.runs.add(run)
    }
    this.wake()
  }

  remove(run: HookRun): void {
    for (const { runs } of this.#groups.values()) runs.delete(run)
  }

  /** There may be room in a queue again. */
  wake(): void {
    if (!this.#working) void this.#work()
  }

  /** Stops reading. */
  close(): void {
    this.#closed = true
  }

  async #work(): Promise<void> {
    this.#working = true
    // Wait a moment, so that hooks that are being added join the first page.
    await Promise.resolve()
    while (!this.#closed) {
      const next = this.#next()
      if (next === undefined) break
      await this.#page(next.group, next.runs)
    }
    this.#working = false
  }

  /** A group with a hook that has room; it is moved to the end of the queue. */
  #next(): { group: Group; runs: HookRun[] } | undefined {
    for (const [name, group] of this.#groups) {
      const runs = [...group.runs].filter(
        ({ queue, course, behind }) => behind.includes(group.source) && queue.length <= queueLow && !course.suspended,
      )
      if (runs.length === 0) {
        if (group.runs.size === 0) this.#groups.delete(name)
        continue
      }
      this.#groups.delete(name)
      this.#groups.set(name, group)
      return { group, runs }
    }
    return undefined
  }

  async #page({ source, filter, runs: all }: Group, runs: readonly HookRun[]): Promise<void> {
    const from = runs.reduce((least, { positions }) => Math.min(least, positions[source]!), Number.MAX_SAFE_INTEGER)
    const page = await this.#options.scan(source, { ...filter, from })
    if (this.#closed) return
    const full = new Set<HookRun>()
    for (const signal of page.signals) {
      const change = pendingOf(source, signal)
      for (const run of runs) {
        if (full.has(run) || run.removed) continue
        if (!run.offer(wantedBy(run.view, change))) full.add(run)
      }
    }
    for (const run of runs) {
      if (run.removed) continue
      if (!full.has(run) && run.caughtUp(source, page.next, this.#options.tail(source))) all.delete(run)
      this.#options.changed(run)
    }
  }
}
