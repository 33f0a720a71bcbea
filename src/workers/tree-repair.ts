/** Repairs the tree file of a running board. The request that found the damage waits; all others are served meanwhile. */
import { repairTree } from '../../actors/log/tree.ts'
import type { Disk } from '../../storage/disk.ts'
import type { Frame } from '../../storage/journal.ts'
import type { TreeReader } from '../../storage/tree-reader.ts'
import type { Clock } from '../clock.ts'
import type { Report } from './thread.ts'

/** Longest time that the thread's other work waits. */
const sliceMs = 20
/** After a check that found nothing to repair, or failed, none is made for this long: a check costs two hashes per leaf. */
const pauseMs = 60_000

type TreeRepairOptions = {
  readonly disk: Disk
  readonly report: Report
  readonly path: string
  readonly tree: TreeReader
  /** All current frames of the tree's log. */
  readonly frames: () => Iterable<Frame>
  readonly clock: Clock
}

export class TreeRepair {
  readonly #options: TreeRepairOptions
  #waiting: (() => void)[] = []
  #isRunning = false
  #fruitlessAt = Number.NEGATIVE_INFINITY

  constructor(options: TreeRepairOptions) {
    this.#options = options
  }

  /** Repairs the file, then calls `then`. Returns false if a recent check did not help; then nothing is started or called. */
  begin(then: () => void): boolean {
    const { monotonicMs, soon } = this.#options.clock
    if (!this.#isRunning && monotonicMs() - this.#fruitlessAt < pauseMs) return false
    this.#waiting.push(then)
    if (this.#isRunning) return true
    this.#isRunning = true
    const { disk, report, path, frames } = this.#options
    const startedAt = monotonicMs()
    const steps = repairTree(disk, path, frames())
    const slice = (): void => {
      try {
        const until = monotonicMs() + sliceMs
        let step = steps.next()
        while (!step.done && monotonicMs() < until) step = steps.next()
        if (!step.done) return void soon(slice)
        const { leaves, wrongBytes } = step.value
        const ms = Math.round(monotonicMs() - startedAt)
        report('warn', 'log.tree.mended', { path, leaves, wrong_bytes: wrongBytes, ms })
        this.#end(wrongBytes > 0)
      } catch (error) {
        report('error', 'log.tree.not_mended', {
          path,
          problem: error instanceof Error ? error.message : String(error),
        })
        this.#end(false)
      }
    }
    slice()
    return true
  }

  #end(isFruitful: boolean): void {
    this.#isRunning = false
    if (!isFruitful) this.#fruitlessAt = this.#options.clock.monotonicMs()
    this.#options.tree.forget()
    const waiting = this.#waiting
    this.#waiting = []
    for (const then of waiting) then()
  }
}
