/** Files for the rows of a shard's old events. */

import type { Cancel } from '../../actors/kernel/timers.ts'
import { type EventShelf, type OldFile, oldPlan } from '../../actors/records/old-events.ts'
import { BlockCache } from '../../storage/block-cache.ts'
import type { DiskFile } from '../../storage/disk.ts'
import { markEnding, markOf, type RowSource, ShelvedRows, shelvedBlockBytes } from '../../storage/shelved-rows.ts'
import { oldEventsSuffix } from '../board-directory.ts'
import { ShelfFiles } from './shelf-files.ts'
import type { ThreadPlatform } from './thread.ts'

/** Blocks of 4 KiB: 8 MiB in total. */
const blocksInMemory = 2_048
/** Pause between two steps of writing a file in the background, so that posts come first. */
const pauseMs = 4

type Place = Pick<ThreadPlatform, 'clock' | 'disk' | 'random' | 'report'> & { readonly directory: string }

export class EventFiles implements EventShelf {
  readonly eventsEach: number
  readonly #place: Place
  readonly #files: ShelfFiles
  readonly #cache = new BlockCache(blocksInMemory, shelvedBlockBytes)
  readonly #open: DiskFile[] = []
  /** Files opened so far. Each gets its own number in the cache. */
  #opened = 0
  #isRestored = false
  #isClosed = false
  #stopStep: Cancel = () => {}

  constructor(place: Place, eventsEach: number) {
    this.#place = place
    this.#files = new ShelfFiles(place.disk, place.directory, oldEventsSuffix)
    this.eventsEach = eventsEach
  }

  readsAreSlow(): boolean {
    return this.#place.disk.readsAreSlow()
  }

  seed(): number {
    return this.#place.random(4).readUInt32LE()
  }

  async put(file: number, made: Generator<void, Buffer>): Promise<OldFile | undefined> {
    const bytes = await this.#stepByStep(made)
    const name = nameOf(file, bytes)
    this.#files.use(name)
    try {
      await this.#place.disk.writeAtomicLater(this.#files.path(name), bytes)
    } catch (error) {
      return this.#notKept(name, error)
    }
    return this.#isClosed ? undefined : this.open(name)
  }

  putNow(file: number, made: Generator<void, Buffer>): OldFile | undefined {
    let step = made.next()
    while (step.done !== true) step = made.next()
    const name = nameOf(file, step.value)
    this.#files.use(name)
    try {
      this.#place.disk.writeAtomic(this.#files.path(name), step.value)
    } catch (error) {
      return this.#notKept(name, error)
    }
    return this.open(name)
  }

  open(name: string): OldFile | undefined {
    if (!this.#place.disk.fileExists(this.#files.path(name))) return undefined
    const rows = this.#rowsOf(name)
    if (rows === undefined) return undefined
    this.#files.use(name)
    return { name, rows }
  }

  /** See ShelfFiles. */
  restored(isUsed: boolean): void {
    if (!isUsed) for (const file of this.#open.splice(0)) file.close()
    this.#files.restored(isUsed)
    this.#isRestored = true
  }

  close(): void {
    this.#isClosed = true
    this.#stopStep()
    for (const file of this.#open) file.close()
  }

  /** Undefined if the file cannot be read, or is a different one. */
  #rowsOf(name: string): ShelvedRows | undefined {
    const path = this.#files.path(name)
    let file: DiskFile | undefined
    let rows: ShelvedRows | undefined
    try {
      file = this.#place.disk.openFile(path, 'read')
      const layout = { rows: this.eventsEach, words: oldPlan.words }
      const found = ShelvedRows.open(this.#sourceOf(file), layout, this.#cache, this.#opened++)
      if (found !== undefined && !name.endsWith(markEnding(found.mark)))
        throw new Error('it is not the file that had this name')
      rows = found
    } catch (error) {
      this.#place.report('warn', 'events.unreadable', { file: path, problem: String(error) })
    }
    if (file !== undefined)
      if (rows === undefined) file.close()
      else this.#open.push(file)
    return rows
  }

  /** Reports a failure. The events stay in memory. */
  #notKept(name: string, problem: unknown): undefined {
    this.#place.report('warn', 'events.not_shelved', { name, problem: String(problem) })
  }

  /** If a file turns out to be damaged, the thread exits, and its successor rebuilds the file from the journal. */
  #sourceOf(file: DiskFile): RowSource {
    const { clock, disk, report } = this.#place
    return {
      readAt: (into, position) => file.readAt(into, position),
      prefetch: (position, bytes) => file.prefetch(position, bytes),
      onDamage: (problem) => {
        report('error', 'events.unsound', { file: file.path, problem: problem.message })
        if (disk.fileExists(file.path)) disk.removeUnsynced(file.path)
        // If the damage is found while restoring a snapshot, that snapshot is not used.
        if (this.#isRestored)
          clock.soon(() => {
            throw problem
          })
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

/** Files with different rows have different names. */
function nameOf(file: number, bytes: Buffer): string {
  return `${String(file).padStart(6, '0')}${markEnding(markOf(bytes))}`
}
