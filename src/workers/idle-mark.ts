/** When the owner of a journal saves its durable mark: within a second of the last write, and when it stops. */
import type { Cancel } from '../../actors/kernel/timers.ts'
import { DurableMark } from '../../storage/durable-mark.ts'
import type { Journal } from '../../storage/journal.ts'
import type { ThreadPlatform } from './thread.ts'

/** At most two of these pass between a write and the mark. */
const paceMs = 450

export class IdleMark {
  readonly #here: Pick<ThreadPlatform, 'clock' | 'report'>
  readonly #journal: Journal
  readonly #directory: string
  readonly #mark: DurableMark
  #cancel: Cancel | undefined

  constructor(here: Pick<ThreadPlatform, 'clock' | 'disk' | 'report'>, directory: string, journal: Journal) {
    this.#here = here
    this.#journal = journal
    this.#directory = directory
    this.#mark = new DurableMark(here.disk, directory, journal.id)
  }

  /** Call after a write. */
  after(): void {
    this.#cancel ??= this.#look()
  }

  /** Call when the journal is closed. */
  close(): void {
    this.#cancel?.()
    this.#attempt(() => this.#mark.keep(this.#journal.durableSeq))
    this.#mark.close()
  }

  #look(): Cancel {
    const { nextSeq } = this.#journal
    return this.#here.clock.later(() => {
      this.#cancel = undefined
      // Frames written later imply that those before them are durable.
      if (this.#journal.nextSeq === nextSeq && this.#journal.durableSeq === nextSeq - 1) this.#keep()
      else this.#cancel = this.#look()
    }, paceMs)
  }

  #keep(): void {
    this.#attempt(() => this.#mark.keepLater(this.#journal.durableSeq, (error) => this.#say(error)))
  }

  #attempt(keep: () => void): void {
    try {
      keep()
    } catch (error) {
      this.#say(error)
    }
  }

  #say(error: unknown): void {
    this.#here.report('warn', 'durable_mark.not_kept', { directory: this.#directory, problem: String(error) })
  }
}
