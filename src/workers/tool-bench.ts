/** The thread on which own tools run that an input could make slow. It holds nothing: it may be ended at any moment. */
import type { BenchAnswer, BenchAsk } from '../own-tools/bench.ts'
import { benchTools } from '../own-tools/bench-tools.ts'
import { BadInput } from '../own-tools/own-tool.ts'
import type { ThreadStarter } from './thread.ts'

export const thread: ThreadStarter<undefined> = (_data, { answer }) => ({
  facts: {},
  stop: () => {},
  onMessage: (message) => {
    const { id, tool, input } = message as BenchAsk
    const run = async () => benchTools[tool]!(input)
    run().then(
      (output) => answer({ id, output } satisfies BenchAnswer),
      (error: unknown) => {
        // An error that the input did not cause ends this thread, and waiting callers are answered so.
        if (!(error instanceof BadInput)) throw error
        answer({ id, fault: error.message } satisfies BenchAnswer)
      },
    )
  },
})
