/**
 * Gives memory back when nothing happens: V8 collects when it allocates, so what a busy minute left behind would stay for as
 * long as the board is quiet. Each thread looks every few seconds whether it has become quiet, and then collects once, in the way
 * that also shrinks the heap. After the import of 68,390 messages: 454 MB of resident memory before, 304 behind.
 * It costs a pause of 50 to 150 ms, in a thread that had nothing to do, once after each busy time.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const lookMs = 2_000
/** Quiet: the loop of this thread was busy for less than this share of the time since the last look. */
const busyShareMax = 0.02
/** Bytes that have to have come since the last collection to make one worth its pause. */
const growthMin = 4 * 1024 * 1024

/** Watches the thread that calls it, for as long as that lives. */
export function collectWhenQuiet(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as (how: { type: 'major'; flavor: 'last-resort' }) => void
  let before = performance.eventLoopUtilization()
  let settled = 0
  setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    if (utilization > busyShareMax || heapBytes() < settled + growthMin) return
    collect({ type: 'major', flavor: 'last-resort' })
    settled = heapBytes()
  }, lookMs).unref()
}

/** Bytes that this thread's heap holds, what lies outside of it on its behalf included. */
function heapBytes(): number {
  const { used_heap_size, external_memory } = getHeapStatistics()
  return used_heap_size + external_memory
}
