/** The thread that runs built-in tools that some input could make slow. It holds no state and may be terminated at any moment. */
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
        // An error not caused by the input ends this thread, and waiting callers are told so.
        if (!(error instanceof BadInput)) throw error
        answer({ id, fault: error.message } satisfies BenchAnswer)
      },
    )
  },
})
