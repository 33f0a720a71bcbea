/**
 * Watches the servers of the stream for what stops nothing yet: one that is away, so that writes wait when another one fails,
 * and a clock that differs from that of this machine, so that the board refuses honest clients.
 */

import type { Cancel } from '../../actors/kernel/timers.ts'
import { windowSeconds } from '../../actors/records/write.ts'
import type { Clock } from '../clock.ts'
import type { StreamHealth } from './stream.ts'

type ServerWatchOptions = {
  readonly clock: Pick<Clock, 'every' | 'monotonicMs' | 'wallSeconds'>
  /** Undefined while the stream is not open. */
  readonly health: () => Promise<StreamHealth | undefined>
  /** What happens if another server fails too, as a sentence. */
  readonly outageEffect: string
  /** Called with each new problem, and with undefined once there is none. */
  readonly tell: (problem: string | undefined) => void
}

const checkEveryMs = 5_000
/** A server that restarts is not reported. */
const awayMs = 30_000
/** Well below the `windowSeconds` that a timestamp may differ. */
const apartSeconds = 60

export class ServerWatch {
  readonly #options: ServerWatchOptions
  readonly #cancel: Cancel
  /** Since when each server is away. */
  #away = new Map<string, number>()
  #isAsking = false
  #told = ''

  constructor(options: ServerWatchOptions) {
    this.#options = options
    this.#cancel = options.clock.every(() => this.#checkNow(), checkEveryMs)
  }

  stop(): void {
    this.#cancel()
  }

  #checkNow(): void {
    if (this.#isAsking) return
    this.#isAsking = true
    const done = () => {
      this.#isAsking = false
    }
    // What keeps the servers from answering also keeps them from taking what is published, and that is reported.
    void this.#options
      .health()
      .then((health) => this.#judge(health), done)
      .then(done)
  }

  #judge(health: StreamHealth | undefined): void {
    if (health !== undefined) this.#tell([...this.#awayFor(health), ...this.#clockOf(health)])
  }

  #awayFor({ away }: StreamHealth): string[] {
    const { clock, outageEffect } = this.#options
    const now = clock.monotonicMs()
    this.#away = new Map(away.map((name) => [name, this.#away.get(name) ?? now]))
    return away
      .filter((name) => now - this.#away.get(name)! >= awayMs)
      .map(
        (name) =>
          `The NATS server ${name} is away or lacks messages: see its log. If another one fails too: ${outageEffect}`,
      )
  }

  #clockOf({ leader, wallSeconds }: StreamHealth): string[] {
    if (wallSeconds === undefined) return []
    const apart = this.#options.clock.wallSeconds() - wallSeconds
    if (Math.abs(apart) < apartSeconds) return []
    return [
      `The clock of this machine is more than a minute ${apart > 0 ? 'ahead of' : 'behind'} that of the NATS server ${leader}. Correct the wrong one: the board refuses commands whose timestamp is ${windowSeconds} seconds from its clock.`,
    ]
  }

  #tell(problems: readonly string[]): void {
    const problem = problems.join(' ')
    if (problem === this.#told) return
    this.#told = problem
    this.#options.tell(problem === '' ? undefined : problem)
  }
}
