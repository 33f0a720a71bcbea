/**
 * Sends commands in batches (POST /v1/commands). Commands requested in one turn go together, and while enough batches are in flight, the
 * next one grows. Each command gets its own answer, as from BoardClient.command.
 */
import { type BoardClient, Unreachable } from './client.ts'

type PendingCommand = {
  readonly body: Uint8Array
  readonly resolve: (data: Record<string, unknown>) => void
  readonly reject: (error: unknown) => void
}

type CommandBatchesOptions = {
  readonly client: Pick<BoardClient, 'commands' | 'url'>
  /** What the board accepts in one request. */
  readonly linesMax: number
  readonly bytesMax: number
}

/** While one batch is answered, the next is in transit. */
const openMax = 2
/** Larger batches gain nothing, and delay their first answers until the last. */
const usefulLinesMax = 256

export class CommandBatches {
  readonly #options: CommandBatchesOptions
  #waiting: PendingCommand[] = []
  #open = 0
  #isScheduled = false

  constructor(options: CommandBatchesOptions) {
    this.#options = options
  }

  /** Sends one signed command and returns `data` of its answer. Throws Refused, Unreachable, or BadAnswer. */
  command(body: Uint8Array): Promise<Record<string, unknown>> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ body, resolve, reject })
      if (this.#isScheduled) return
      this.#isScheduled = true
      queueMicrotask(() => {
        this.#isScheduled = false
        this.#send()
      })
    })
  }

  #send(): void {
    while (this.#open < openMax && this.#waiting.length > 0) {
      const batch = this.#next()
      this.#open += 1
      this.#options.client
        .commands(batch.map(({ body }) => body))
        .then(
          (answers) => {
            for (const [at, { resolve, reject }] of batch.entries()) {
              const answer = answers[at]
              if (answer === undefined) reject(new Unreachable(this.#options.client.url, 'a command has no answer'))
              else if (answer instanceof Error) reject(answer)
              else resolve(answer)
            }
          },
          (error: unknown) => {
            for (const { reject } of batch) reject(error)
          },
        )
        .finally(() => {
          this.#open -= 1
          this.#send()
        })
    }
  }

  /** The oldest commands that fit into one batch; a single one always fits. */
  #next(): PendingCommand[] {
    const { linesMax, bytesMax } = this.#options
    let count = 0
    let bytes = 0
    while (count < Math.min(linesMax, usefulLinesMax, this.#waiting.length)) {
      bytes += this.#waiting[count]!.body.length + 1
      if (bytes > bytesMax && count > 0) break
      count += 1
    }
    return this.#waiting.splice(0, count)
  }
}
