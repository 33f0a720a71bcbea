/**
 * A board in a process that counts the work of its main thread: how often each block of JavaScript is run (V8's precise coverage). The
 * count is the same on a fast machine and on a slow one. Native code (parsing JSON, hashing, regular expressions) is not counted: the size
 * of the answer bounds it. Started by `instrumented-board.ts` with a data directory.
 */
import { Session } from 'node:inspector/promises'
import { startServer } from '../../src/board/server.ts'
import { readConfig } from '../../src/config.ts'

/** `files`: the busiest ones, to find the cause. */
export type WorkCount = { readonly steps: number; readonly files: readonly (readonly [file: string, steps: number])[] }

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
const server = await startServer({ ...readConfig(process.argv[2]), port: 0, limitsOn: false })

/** Steps since the last call. */
async function countWork(): Promise<WorkCount> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const files = result
    .filter(({ url }) => /\/(src|actors|storage|node_modules)\//.test(url))
    .map(({ url, functions }): [string, number] => {
      const ranges = functions.flatMap((each) => each.ranges)
      return [url.split('/').slice(-3).join('/'), ranges.reduce((sum, { count }) => sum + count, 0)]
    })
  files.sort(([, a], [, b]) => b - a)
  return { steps: files.reduce((sum, [, steps]) => sum + steps, 0), files: files.slice(0, 5) }
}

process.on('message', async (message) => {
  if (message === 'count') process.send!(await countWork())
  if (message !== 'stop') return
  await server.close()
  process.exit(0)
})
process.on('disconnect', () => process.exit(1))
process.send!({ address: server.address })
