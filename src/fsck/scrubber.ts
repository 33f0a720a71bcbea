/**
 * The scrubber: reads again what nothing else reads for a long time, at a bounded rate, so that a bit that changed is found while a
 * backup still has the right one. Sealed segments and attachments are compared with what they say of themselves, and are reported;
 * indexes and tree files are derived, and are made again. The search index has a check of its own (src/workers/search.ts).
 */
import { join, relative } from 'node:path'
import { type Disk, isUnreadable, type ReadHandle } from '../../storage/disk.ts'
import { remakeIndex } from '../../storage/fsck-journal.ts'
import { indexPath, listSegments, segmentPath } from '../../storage/segment.ts'
import { blobsDirectory, logDirectory, shardDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import { scrubbedCounter, scrubFoundCounter } from '../docs/figures.ts'
import type { Notices } from '../notices.ts'
import type { Counters, log } from '../observe.ts'
import {
  type Check,
  checkAttachment,
  checkIndex,
  checkSegment,
  checkTree,
  type Found,
  type Source,
} from './scrub-checks.ts'

type ScrubberOptions = {
  readonly disk: Disk
  readonly clock: Pick<Clock, 'later' | 'monotonicMs'>
  /** Of the board. */
  readonly directory: string
  readonly shards: number
  /** 0: nothing is read. */
  readonly bytesPerSecond: number
  /** Makes a tree file right again. */
  readonly mendTree: (path: string) => void
  readonly notices: Notices
  readonly counters: Counters
  readonly report: typeof log
}

const firstMs = 2_000
/** Between two passes: a small board is not read all day. */
const pauseMs = 3_600_000

type Kind = 'segment' | 'index' | 'tree' | 'attachment'
type Looked = { readonly path: string; readonly kind: Kind; readonly check: Check; readonly mend?: () => void }

/** The board stops. */
class Stopped extends Error {}

export class Scrubber {
  readonly #options: ScrubberOptions
  /** Damaged files that nothing makes again, and where. */
  readonly #damaged = new Map<string, string>()
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
    for (const looked of this.#files()) await this.#look(looked)
    const seconds = Math.round((clock.monotonicMs() - since) / 1_000)
    report('info', 'scrub.pass', { seconds, damaged: this.#damaged.size })
  }

  *#files(): Generator<Looked, void, undefined> {
    const { directory, shards, mendTree } = this.#options
    const log = logDirectory(directory)
    for (let shard = 0; shard < shards; shard++) yield* this.#journal(shardDirectory(directory, shard))
    yield* this.#journal(log)
    for (const path of this.#named(log, /^nodes(-.+)?\.bin$/))
      yield { path, kind: 'tree', check: checkTree, mend: () => mendTree(path) }
    yield* this.#attachments(blobsDirectory(directory))
  }

  *#journal(directory: string): Generator<Looked, void, undefined> {
    const { disk } = this.#options
    for (const firstSeq of listSegments(disk, directory, 'log').slice(0, -1)) {
      const path = segmentPath(directory, firstSeq)
      yield { path, kind: 'segment', check: checkSegment }
      // Of a damaged segment no index can be made.
      if (this.#damaged.has(path)) continue
      const mend = (): void => remakeIndex(disk, directory, firstSeq)
      yield { path: indexPath(directory, firstSeq), kind: 'index', check: checkIndex, mend }
    }
  }

  *#attachments(directory: string): Generator<Looked, void, undefined> {
    const { disk } = this.#options
    for (const room of disk.fileExists(directory) ? disk.listDirectories(directory) : [])
      for (const path of this.#named(join(directory, room), /^[0-9a-f]{64}$/))
        yield { path, kind: 'attachment', check: checkAttachment(path.slice(-64)) }
  }

  /** A directory may be gone by now. */
  #named(directory: string, wanted: RegExp): string[] {
    const { disk } = this.#options
    const names = disk.fileExists(directory) ? disk.listFiles(directory) : []
    return names.filter((name) => wanted.test(name)).map((name) => join(directory, name))
  }

  async #look(looked: Looked): Promise<void> {
    const { path, check } = looked
    const handle = await this.#options.disk.openForReading(path)
    if (handle === undefined) return this.#note(looked, undefined)
    try {
      this.#note(looked, await check(this.#paced(path, handle)))
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.#note(looked, { problem: 'the disk does not give it back (EIO)', at: 0 })
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

  /** Tells what was found once, and mends what is derived. */
  #note({ path, kind, mend }: Looked, found: Found | undefined): void {
    const { report, counters, directory } = this.#options
    const wasDamaged = this.#damaged.has(path)
    if (found === undefined) this.#damaged.delete(path)
    if (found !== undefined && !wasDamaged) {
      const { problem, at } = found
      counters.add(`${scrubFoundCounter}${kind}`)
      report(mend === undefined ? 'error' : 'warn', 'scrub.found', {
        path,
        offset: at,
        kind,
        problem,
        derived: mend !== undefined,
      })
      if (mend === undefined)
        this.#damaged.set(path, kind === 'attachment' ? kind : `${relative(directory, path)} at byte ${at}`)
      else this.#mend(path, mend)
    }
    this.#tell()
  }

  #mend(path: string, mend: () => void): void {
    try {
      mend()
    } catch (error) {
      this.#options.report('error', 'scrub.not_mended', { path, problem: String(error) })
    }
  }

  #tell(): void {
    const { notices } = this.#options
    if (this.#damaged.size === 0) return notices.end('damage')
    const [first] = this.#damaged.values()
    const more = this.#damaged.size === 1 ? '' : ` and ${this.#damaged.size - 1} more`
    notices.set('damage', `${first}${more}; run broadside fsck --explain on a copy, and keep the newest backup`)
  }
}
