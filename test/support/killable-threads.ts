/** A board whose threads a test ends, one at a time. */

const killerScript = (threads: number) => `
import { isMainThread } from 'node:worker_threads'
if (isMainThread) {
  const workers = []
  let turn = 0
  process.on('worker', (worker) => workers.push(worker))
  process.on('SIGUSR2', () => {
    const shard = turn++ % ${threads}
    const dying = workers[shard]
    const before = workers.length
    process.once('worker', () => { workers[shard] = workers[before] })
    dying.terminate()
  })
}`

/** The first threads of a board write its journals; SIGUSR2 ends the next of this many, as running out of memory would. */
export function killableThreads(threads: number): { readonly NODE_OPTIONS: string } {
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(killerScript(threads))}` }
}
