/** Where a shard puts the rows of events that are old. */

import type { Cancel } from '../../actors/kernel/timers.ts'
import { type EventShelf, type OldFile, oldPlan } from '../../actors/records/old-events.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { DiskFile } from '../../storage/disk.ts'
import { markOf, type RowSource, ShelvedRows } from '../../storage/shelved-rows.ts'
import { ShelfFiles } from './shelf-files.ts'
import type { ThreadPlatform } from './thread.ts'

/** Of 4 KiB each: 8 MiB. */
const blocksInMemory = 2_048
/** Between two steps of making a file beside the work: posts come first. */
const pauseMs = 4

type Place = Pick<ThreadPlatform, 'clock' | 'disk' | 'random' | 'report'> & { readonly directory: string }

export class EventFiles implements EventShelf {
  readonly eventsEach: number
  readonly #place: Place
  readonly #files: ShelfFiles
  readonly #cache = new BoundedMap<number, Uint32Array>(blocksInMemory)
  readonly #open: DiskFile[] = []
  #stopStep: Cancel = () => {}

  constructor(place: Place, eventsEach: number) {
    this.#place = place
    this.#files = new ShelfFiles(place.disk, place.directory, '.events')
    this.eventsEach = eventsEach
  }

  seed(): number {
    return this.#place.random(4).readUInt32LE()
  }

  async put(file: number, made: Generator<void, Buffer>): Promise<OldFile | undefined> {
    const bytes = await this.#stepByStep(made)
    const name = nameOf(file, bytes)
    try {
      await this.#place.disk.writeAtomicLater(this.#files.use(name), bytes)
    } catch (error) {
      return this.#notKept(name, error)
    }
    return this.open(file, name)
  }

  putNow(file: number, made: Generator<void, Buffer>): OldFile | undefined {
    let step = made.next()
    while (step.done !== true) step = made.next()
    const name = nameOf(file, step.value)
    try {
      this.#place.disk.writeAtomic(this.#files.use(name), step.value)
    } catch (error) {
      return this.#notKept(name, error)
    }
    return this.open(file, name)
  }

  open(file: number, name: string): OldFile | undefined {
    const { disk } = this.#place
    const path = this.#files.use(name)
    if (!disk.fileExists(path)) return undefined
    const opened = disk.openFile(path, 'read')
    const rows = this.#rowsIn(opened, file)
    if (rows === undefined) opened.close()
    else this.#open.push(opened)
    return rows && { name, rows }
  }

  /** Removes what no snapshot names that was used. */
  tidy(): void {
    this.#files.tidy()
  }

  close(): void {
    this.#stopStep()
    for (const file of this.#open) file.close()
  }

  #rowsIn(opened: DiskFile, file: number): ShelvedRows | undefined {
    try {
      const layout = { rows: this.eventsEach, words: oldPlan.words }
      return ShelvedRows.open(this.#sourceOf(opened), layout, this.#cache, file)
    } catch (error) {
      this.#place.report('warn', 'events.unreadable', { file: opened.path, problem: String(error) })
      return undefined
    }
  }

  /** The events stay in memory. */
  #notKept(name: string, problem: unknown): undefined {
    this.#place.report('warn', 'events.not_shelved', { name, problem: String(problem) })
  }

  /** A file that cannot be read ends the thread, and the next one makes it again from the journal. */
  #sourceOf(file: DiskFile): RowSource {
    const { disk, report } = this.#place
    return {
      readAt: (into, position) => file.readAt(into, position),
      unsound: (problem) => {
        report('error', 'events.unsound', { file: file.path, problem: problem.message })
        disk.removeUnsynced(file.path)
      },
    }
  }

  #stepByStep(made: Generator<void, Buffer>): Promise<Buffer> {
    const { clock } = this.#place
    return new Promise((resolve) => {
      const step = (): void => {
        const { done, value } = made.next()
        if (done === true) resolve(value)
        else this.#stopStep = clock.later(step, pauseMs)
      }
      step()
    })
  }
}

/** Files of other rows have other names. */
function nameOf(file: number, bytes: Buffer): string {
  return `${String(file).padStart(6, '0')}-${markOf(bytes).toString(16).padStart(8, '0')}`
}
