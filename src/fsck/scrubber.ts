/**
 * The scrubber: rereads data that is otherwise not read for a long time, at a bounded rate, so that a flipped bit is found while a backup
 * still has the right one. Sealed segments and attachments are checked against their own checksums and names, and damage is reported.
 * Indexes and tree files are derived, and are rebuilt. The search index has its own check (src/workers/search.ts).
 */
import { join, relative } from 'node:path'
import { type Disk, DiskFull, type ReadHandle } from '../../storage/disk.ts'
import { rebuildSegmentIndex } from '../../storage/fsck-journal.ts'
import { indexPath, listSegments, segmentPath } from '../../storage/segment.ts'
import { blobsDirectory, logDirectory, shardDirectories } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import { scrubbedCounter, scrubFoundCounter } from '../docs/figures.ts'
import type { Notices } from '../notices.ts'
import type { Counters, log } from '../observe.ts'
import {
  type Check,
  checkAttachment,
  checkIndex,
  checkTree,
  type Found,
  findingOf,
  isOutOfResources,
  SegmentsCheck,
  type Source,
} from './scrub-checks.ts'

/** The attachments that records need, according to the shards. Undefined if there is no answer now. */
export type NeededAttachments = {
  /** Names of all rooms that ever had one. */
  readonly rooms: () => Promise<readonly string[] | undefined>
  /** SHA-256 of each file that must be kept for this room. */
  readonly filesOf: (room: string) => Promise<readonly string[] | undefined>
}

type ScrubberOptions = {
  readonly disk: Disk
  readonly clock: Pick<Clock, 'later' | 'monotonicMs'>
  /** Of the board. */
  readonly directory: string
  readonly shards: number
  /** 0 to read nothing. */
  readonly bytesPerSecond: number
  readonly attachments: NeededAttachments
  /** The tree file of each log, and how many leaves it must have by now. */
  readonly trees: () => readonly { readonly path: string; readonly leaves: number }[]
  /** Repairs a tree file. */
  readonly repairTree: (path: string) => void
  readonly notices: Notices
  readonly counters: Counters
  readonly report: typeof log
}

const firstMs = 2_000
/** Pause between two passes, so that a small board is not read all day. */
const pauseMs = 3_600_000
/** Delay before querying a shard again that gave no answer. */
const retryMs = 1_000

type Kind = 'segment' | 'index' | 'tree' | 'attachment'
type ScrubbedFile = { readonly path: string; readonly kind: Kind; readonly mend?: () => void }
type FileToCheck = ScrubbedFile & {
  readonly check: Check
  /** If the file does not exist: whether it should. By default it should. */
  readonly isMissing?: () => Promise<boolean>
}

/** The board is stopping. */
class Stopped extends Error {}

export class Scrubber {
  readonly #options: ScrubberOptions
  /** Damaged files that cannot be rebuilt, and where. */
  readonly #damaged = new Map<string, string>()
  /** What this pass has found so far. */
  readonly #found = new Set<string>()
  #isOver = false
  #wake: (() => void) | undefined

  constructor(options: ScrubberOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#options.bytesPerSecond === 0) return
    this.#run().catch((error: unknown) => {
      if (!(error instanceof Stopped)) this.#options.report('error', 'scrub.ended', { problem: String(error) })
    })
  }

  stop(): void {
    this.#isOver = true
    this.#wake?.()
  }

  async #run(): Promise<void> {
    await this.#wait(firstMs)
    for (;;) {
      await this.#pass()
      await this.#wait(pauseMs)
    }
  }

  /** Throws Stopped. */
  async #wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.later(resolve, ms)
      this.#wake = () => {
        cancel()
        resolve()
      }
      if (this.#isOver) this.#wake()
    })
    if (this.#isOver) throw new Stopped()
  }

  async #pass(): Promise<void> {
    const { clock, report } = this.#options
    const since = clock.monotonicMs()
    this.#found.clear()
    for await (const file of this.#files()) this.#note(file, await this.#checkFile(file))
    // Forget damaged files that have since been removed for a good reason.
    for (const path of this.#damaged.keys()) if (!this.#found.has(path)) this.#damaged.delete(path)
    this.#updateNotice()
    const seconds = Math.round((clock.monotonicMs() - since) / 1_000)
    report('info', 'scrub.pass', { seconds, damaged: this.#damaged.size })
  }

  async *#files(): AsyncGenerator<FileToCheck, void, undefined> {
    const { directory, shards, trees, repairTree } = this.#options
    for (const journal of [...shardDirectories(directory, shards), logDirectory(directory)])
      yield* this.#journal(journal)
    for (const { path, leaves } of trees())
      yield { path, kind: 'tree', check: checkTree(leaves), mend: () => repairTree(path) }
    yield* this.#attachments(blobsDirectory(directory))
  }

  async *#journal(directory: string): AsyncGenerator<FileToCheck, void, undefined> {
    const { disk } = this.#options
    const firstSeqs = (await this.#listed(directory, 'segment', (path) => listSegments(disk, path, 'log'))) ?? []
    const check = new SegmentsCheck()
    for (const listed of firstSeqs) {
      // No file has the name that must follow the previous segment.
      while (check.nextSeq !== undefined && check.nextSeq < listed)
        yield* this.#segment(directory, check.nextSeq, check)
      // The newest one is still growing.
      if (listed !== firstSeqs.at(-1)) yield* this.#segment(directory, listed, check)
    }
  }

  *#segment(directory: string, firstSeq: number, check: SegmentsCheck): Generator<FileToCheck, void, undefined> {
    const { disk } = this.#options
    const path = segmentPath(directory, firstSeq)
    yield { path, kind: 'segment', check: check.next(firstSeq) }
    // A damaged segment cannot be indexed.
    if (this.#damaged.has(path)) return
    const mend = (): void => rebuildSegmentIndex(disk, directory, firstSeq)
    yield { path: indexPath(directory, firstSeq), kind: 'index', check: checkIndex(disk, directory, firstSeq), mend }
  }

  async *#attachments(directory: string): AsyncGenerator<FileToCheck, void, undefined> {
    const { disk, attachments } = this.#options
    const onDisk = await this.#listed(directory, 'attachment', (path) =>
      listIfPresent(disk, path, disk.listDirectories),
    )
    if (onDisk === undefined) return
    for (const room of new Set([...onDisk, ...(await this.#answer(attachments.rooms))])) {
      const files = await this.#listed(join(directory, room), 'attachment', (path) =>
        listIfPresent(disk, path, disk.listFiles),
      )
      if (files === undefined) continue
      const filesOf = () => this.#answer(() => attachments.filesOf(room))
      const names = new Set([...files.filter((name) => /^[0-9a-f]{64}$/.test(name)), ...(await filesOf())])
      for (const name of names) {
        const path = join(directory, room, name)
        // It may have been deleted and added again since its name was read.
        const isMissing = async () => (await filesOf()).includes(name) && !disk.fileExists(path)
        yield { path, kind: 'attachment', check: checkAttachment(name), isMissing }
      }
    }
  }

  /** Repeats the query until there is an answer. */
  async #answer<Answer>(ask: () => Promise<Answer | undefined>): Promise<Answer> {
    for (;;) {
      const answer = await ask()
      if (answer !== undefined) return answer
      await this.#wait(retryMs)
    }
  }

  /** The contents of a directory. Undefined if it cannot be read, which counts as a finding. */
  async #listed<Name>(
    path: string,
    kind: Kind,
    list: (path: string) => readonly Name[],
  ): Promise<readonly Name[] | undefined> {
    try {
      return await this.#read(() => list(path))
    } catch (error) {
      this.#note({ path, kind }, findingOf(error))
      return undefined
    }
  }

  /** Retries after a while if the machine had no resources left for reading. */
  async #read<Result>(read: () => Result | Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await read()
      } catch (error) {
        if (!isOutOfResources(error)) throw error
        await this.#wait(retryMs)
      }
    }
  }

  async #checkFile(file: FileToCheck): Promise<Found | undefined> {
    try {
      return await this.#read(() => this.#checkFileOnce(file))
    } catch (error) {
      return findingOf(error)
    }
  }

  /** May also reject with an error that `findingOf` accepts. */
  async #checkFileOnce({ path, check, isMissing }: FileToCheck): Promise<Found | undefined> {
    const handle = await this.#options.disk.openForReading(path)
    if (handle === undefined)
      return (await isMissing?.()) === false ? undefined : { problem: 'there is no such file', at: 0 }
    try {
      return await check(this.#paced(path, handle))
    } finally {
      await handle.close()
    }
  }

  #paced(path: string, handle: ReadHandle): Source {
    const { bytesPerSecond, counters } = this.#options
    let position = 0
    return {
      path,
      size: handle.size,
      next: async (wanted) => {
        const bytes = Buffer.allocUnsafe(Math.max(0, Math.min(wanted, handle.size - position)))
        const read = bytes.length === 0 ? 0 : await handle.read(bytes, position)
        position += read
        counters.add(scrubbedCounter, read)
        await this.#wait((read / bytesPerSecond) * 1_000)
        return bytes.subarray(0, read)
      },
    }
  }

  /** Reports each finding once, and repairs derived files. */
  #note({ path, kind, mend }: ScrubbedFile, found: Found | undefined): void {
    const { report, counters, directory } = this.#options
    const wasDamaged = this.#damaged.delete(path)
    if (found !== undefined) {
      const { problem, at } = found
      this.#found.add(path)
      if (!wasDamaged) {
        counters.add(`${scrubFoundCounter}${kind}`)
        report(mend === undefined ? 'error' : 'warn', 'scrub.found', {
          path,
          offset: at,
          kind,
          problem,
          derived: mend !== undefined,
        })
      }
      if (mend === undefined || !this.#mend(path, mend))
        this.#damaged.set(path, kind === 'attachment' ? kind : `${relative(directory, path)} at byte ${at}`)
    }
    this.#updateNotice()
  }

  /** Returns false if it cannot be rebuilt. After a full disk it can be, later. */
  #mend(path: string, mend: () => void): boolean {
    try {
      mend()
      return true
    } catch (error) {
      this.#options.report('error', 'scrub.not_mended', { path, problem: String(error) })
      return error instanceof DiskFull
    }
  }

  #updateNotice(): void {
    const { notices } = this.#options
    if (this.#damaged.size === 0) return notices.end('damage')
    const [first] = this.#damaged.values()
    const more = this.#damaged.size === 1 ? '' : ` and ${this.#damaged.size - 1} more`
    notices.set('damage', `${first}${more}; run broadside fsck --explain on a copy, and keep the newest backup`)
  }
}

/** A room without files has no directory. */
function listIfPresent(disk: Disk, directory: string, list: (directory: string) => string[]): string[] {
  return disk.fileExists(directory) ? list(directory) : []
}
