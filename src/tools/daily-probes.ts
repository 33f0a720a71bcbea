/**
 * The daily round: it probes, without a request, listings whose hosts name their owners (actors/tools/rounds.ts
 * says at which, and when). That it looks is on disk before it does, so that no restart makes it look twice in a day.
 *
 * A few machines at a time, each once in a while, and what was missed while the board was down at no greater pace.
 */

import { allowances } from '../../actors/kernel/limits.ts'
import { internalLetter } from '../../actors/records/internal-letter.ts'
import type { RoundArgs } from '../../actors/tools/decide.ts'
import { toolsActor } from '../../actors/tools/tools.ts'
import type { Actors } from '../command/ports.ts'
import type { ToolProber } from './probe.ts'
import type { DueTool } from './reads.ts'

export type LabRoundOptions = {
  readonly looks: ToolProber
  readonly actors: Pick<Actors, 'write'>
  /** Keeps the times of probes secret. */
  readonly seed: string
  /** Between two probes of one machine. */
  readonly gapSeconds: number
  /** Calls back later; keeps no process alive. */
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

/** Between two questions whether something is due, when nothing was. */
const everyMs = 2_000
/** Machines that are probed side by side. */
const lanes = 4

export class LabRound {
  readonly #options: LabRoundOptions
  #closed = false

  constructor(options: LabRoundOptions) {
    this.#options = options
  }

  begin(): void {
    this.#after(everyMs)
  }

  close(): void {
    this.#closed = true
  }

  #after(ms: number): void {
    const { later, report } = this.#options
    later(() => {
      if (this.#closed) return
      this.#step().then(
        (looked) => this.#after(looked ? 0 : everyMs),
        (error: unknown) => {
          report({ round: 'failed', problem: String(error) })
          this.#after(everyMs)
        },
      )
    }, ms)
  }

  /** Whether anything was due, and probed. */
  async #step(): Promise<boolean> {
    const { looks, seed, gapSeconds } = this.#options
    const due = await looks.ask('tools.due', { seed, gap: gapSeconds, most: lanes })
    const looked = await Promise.allSettled((due ?? []).map((each) => this.#look(each)))
    for (const each of looked) if (each.status === 'rejected') throw each.reason
    return looked.some((each) => each.status === 'fulfilled' && each.value)
  }

  async #look({ tool, host, owner }: DueTool): Promise<boolean> {
    const id = await this.#begun(tool, owner)
    if (id === undefined || this.#closed) return false
    await this.#options.looks.take({ id, tool, host, identity: owner, leave: () => 'standing' })
    return true
  }

  /** The id of a probe that is on disk now; undefined: it is not to be made. */
  #begun(target: string, owner: string): Promise<string | undefined> {
    const { actors, gapSeconds } = this.#options
    const args: RoundArgs = { target, gapSeconds, looksMax: allowances.tool_looks_per_board_per_day }
    return new Promise((resolve) =>
      actors.write(internalLetter('tools.round', toolsActor, owner, args), (answered) =>
        resolve(answered?.ok === true ? answered.reply.id : undefined),
      ),
    )
  }
}
