/** The thread on which own tools run that an input could make slow. It holds nothing: it may be ended at any moment. */
import { parentPort } from 'node:worker_threads'
import type { BenchAnswer, BenchAsk, BenchReady } from '../own-tools/bench.ts'
import { benchTools } from '../own-tools/bench-tools.ts'
import { BadInput } from '../own-tools/own-tool.ts'

const port = parentPort!

port.postMessage('ready' satisfies BenchReady)
port.on('message', ({ id, tool, input }: BenchAsk) => {
  const run = async () => benchTools[tool]!(input)
  run().then(
    (output) => port.postMessage({ id, output } satisfies BenchAnswer),
    (error: unknown) => {
      // An error that the input did not cause ends this thread, and waiting callers are answered so.
      if (!(error instanceof BadInput)) throw error
      port.postMessage({ id, fault: error.message } satisfies BenchAnswer)
    },
  )
})
