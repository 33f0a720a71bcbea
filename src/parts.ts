/** The parts of a running program: each starts after those it needs, and they stop in reverse order. */
import { log } from './observe.ts'

type Part = {
  readonly name: string
  readonly start?: () => unknown
  readonly stop?: () => unknown
}

export class Parts {
  readonly #started: Part[] = []

  /** Starts the parts one after the other. Rejects with the error of the first that cannot start. */
  async start(...parts: readonly Part[]): Promise<void> {
    for (const part of parts) {
      await part.start?.()
      this.#started.push(part)
      log('debug', 'part.started', { part: part.name })
    }
  }

  async stop(): Promise<void> {
    for (let part = this.#started.pop(); part !== undefined; part = this.#started.pop()) {
      await part.stop?.()
      log('debug', 'part.stopped', { part: part.name })
    }
  }
}
