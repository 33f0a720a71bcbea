/**
 * The high-water mark: the newest signed head, stored next to the data directory and not in it.
 *
 * A board restored from an old copy of the directory would sign different entries under sizes that are already signed, which breaks the log
 * permanently. The mark is newer than the copy, so the log refuses to start (signed-log.ts checks).
 *
 * The file:
 *
 *   <vkey of the log>
 *   after <vkey>            one line for each log that was closed before it, newest first
 *   <signed checkpoint>     a note
 *
 * The mark is a safeguard: losing it loses the check, never the log. So writes are rate limited and nobody waits for them. But what is in
 * its place stops the start if it cannot be read as a mark, or is the mark of another log. It may be the only evidence of an old copy, of a
 * volume that is not mounted, or of another board that MARK_FILE names by mistake, and the next head would overwrite it.
 *
 * A mark inside the directory would be restored along with the copy. If DATA_DIR ends in a slash, some releases wrote it there: such a mark
 * is checked too, and removed once the one next to the directory is as new.
 */
import { dirname, join } from 'node:path'
import type { Cancel } from '../../actors/kernel/timers.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import type { Disk } from '../../storage/disk.ts'
import { parseVkey } from '../../storage/note.ts'
import { type Parsed, unreadable } from '../../storage/parsed.ts'
import type { Clock } from '../clock.ts'
import type { Config } from '../config.ts'
import { log } from '../observe.ts'
import type { Platform } from '../platform.ts'

/** Where a board's mark is. */
export type MarkPlace = Pick<Config, 'dataDirectory' | 'markFile'>

/** A mark left in the data directory. */
function strayMark({ dataDirectory }: MarkPlace): string {
  return join(dataDirectory, '.mark')
}

/** The newest head signed, according to a mark. */
export type HighWaterMark = {
  readonly file: string
  /** Of the mark's log. */
  readonly vkey: string
  /** Of the logs that were closed before it, newest first. */
  readonly closed: readonly string[]
  readonly size: number
  readonly root: Uint8Array
}

/** The mark file's place is taken by something else or cannot be written; the sentence names the fix. */
export class UnusableMark extends Error {
  override readonly name = 'UnusableMark'
}

/** The marks of a board; empty if none was ever saved. Throws UnusableMark. */
export function readMarks(disk: Disk, place: MarkPlace): HighWaterMark[] {
  const directory = dirname(place.markFile)
  if (!disk.fileExists(directory))
    throw new UnusableMark(
      `The mark file is set to ${place.markFile}, but the directory ${directory} does not exist. Create it, or set MARK_FILE to another path.`,
    )
  const files = [place.markFile, strayMark(place)]
  const found = files.filter((file) => disk.fileExists(file))
  return found.map((file) => {
    const mark = disk.stat(file).isFile
      ? parseMark(disk.readWhole(file).toString('utf8'))
      : unreadable('it is not a file')
    if (!mark.ok) throw new UnusableMark(unusable(file, mark.problem))
    return { file, ...mark.value }
  })
}

const unusable = (file: string, problem: string) =>
  `${file} should be the log's mark file, but cannot be parsed (${problem}), and nothing was changed. If it is another file, set MARK_FILE to another path. If it is the mark, it is damaged and cannot detect an old copy of the data directory: if none was restored and broadside fsck finds nothing else, move it away and start again.`

/** Parses a mark, which must be complete and signed by the log that it names. */
export function parseMark(text: string): Parsed<Omit<HighWaterMark, 'file'>> {
  if (text === '') return unreadable('it is empty')
  const [vkey = '', ...lines] = text.split('\n')
  const key = parseVkey(vkey)
  if (!key.ok) return unreadable(`line 1: ${key.problem}`)
  const first = lines.findIndex((line) => !line.startsWith(afterWord))
  const closed = lines.slice(0, first).map((line) => line.slice(afterWord.length))
  for (const [at, each] of closed.entries()) {
    const parsed = parseVkey(each)
    if (!parsed.ok) return unreadable(`line ${at + 2}: ${parsed.problem}`)
  }
  const seen = openCheckpoint(lines.slice(first).join('\n'), key.value)
  if (!seen.ok) return unreadable(`its checkpoint: ${seen.problem}`)
  return { ok: true, value: { vkey, closed, size: seen.value.size, root: seen.value.root } }
}

/** The log is not the one that the mark has seen, or is older than it. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack'
}

/** A log of the board, closed or not. */
export type KnownLog = {
  readonly vkey: string
  readonly size: number
  /** Whether its later entries are known to be lost. */
  readonly isLost?: boolean
  /** Root of its first `size` entries, for a size it has. */
  readonly rootOf: (size: number) => Buffer
  /** The same for a size that it will have once it covers the journals; undefined if it never will, or if that cannot be known. */
  readonly rootBeyond?: (size: number) => Buffer | undefined
}

/**
 * Throws RolledBack if one of these logs has signed more than it now has, or something different, or was closed and followed by a log that
 * is not among them. Throws UnusableMark if none of them is in the mark.
 */
export function checkMark(mark: HighWaterMark, logs: readonly KnownLog[]): void {
  const { vkey, closed, size, root } = mark
  refuseForeignMark(mark, logs)
  const log = logs.find((each) => each.vkey === vkey)
  if (log === undefined) {
    const known = closed.find((each) => logs.some(({ vkey: own }) => own === each))
    if (logs.some(({ vkey: own, isLost }) => own === known && isLost)) return
    throw new RolledBack(`the log of ${known} was closed, and ${vkey}, which follows it, is unknown in this directory`)
  }
  if (size > log.size && (log.isLost || log.rootBeyond?.(size)?.equals(root))) return
  if (size > log.size)
    throw new RolledBack(`this log has ${log.size} entries, but a head of ${size} was signed and published`)
  if (!log.rootOf(size).equals(root))
    throw new RolledBack(`the first ${size} entries of this log are not those that were signed and published`)
}

/** Throws UnusableMark if the mark names none of these logs, which are the board's. */
export function refuseForeignMark(
  { file, vkey, closed, size }: HighWaterMark,
  logs: readonly Pick<KnownLog, 'vkey'>[],
): void {
  if (logs.some((log) => log.vkey === vkey || closed.includes(log.vkey))) return
  throw new UnusableMark(
    `${file} is the mark of the log ${originIn(vkey)} with ${size} entries, which this board does not have. If DATA_DIR or MARK_FILE names another board’s place, correct it. If this board is to be here instead of that one, move the mark away and start again.`,
  )
}

/** Throws UnusableMark if a mark shows that another board was here. Call before a board is created. */
export function refuseNewBoard([mark]: readonly HighWaterMark[], dataDirectory: string): void {
  if (mark === undefined) return
  throw new UnusableMark(
    `There is no board in ${dataDirectory}, but according to ${mark.file} its log ${originIn(mark.vkey)} has ${mark.size} entries, and nothing was changed. If its volume is not mounted, mount it; if DATA_DIR is wrong, correct it. To create a new board here, move the mark away and start again.`,
  )
}

/** The name of the log that a verifier key belongs to. */
function originIn(vkey: string): string {
  return vkey.slice(0, vkey.indexOf('+'))
}

const afterWord = 'after '

/** `vkeys`: of the board's logs, oldest first. The checkpoint belongs to the last one. */
export function markText(vkeys: readonly string[], checkpoint: string): string {
  const [newest, ...closed] = vkeys.toReversed()
  return `${newest}\n${closed.map((vkey) => `${afterWord}${vkey}\n`).join('')}${checkpoint}`
}

/**
 * Whether a mark has seen more than this head of the last of these logs. A machine that was emptied and follows again is behind its mark
 * for a while.
 */
export function knowsMore(
  { vkey, closed, size }: HighWaterMark,
  vkeys: readonly string[],
  checkpoint: string,
): boolean {
  const at = vkeys.indexOf(vkey)
  if (at === -1) return closed.some((each) => vkeys.includes(each))
  return at === vkeys.length - 1 && size > Number(checkpoint.split('\n')[1])
}

export const markPaceMs = 1_000

/** Saves the mark, at most once per second and one write at a time: two concurrent writes could mix their halves. */
export class MarkKeeper {
  readonly #disk: Disk
  readonly #file: string
  /** A mark of this board in the wrong place, until the current one is on disk. */
  #stray: string | undefined
  #wanted = ''
  #kept = ''
  readonly #later: Clock['later']
  #cancel: Cancel | undefined
  #writing: Promise<void> = Promise.resolve()
  readonly #known: readonly HighWaterMark[]

  /** `known`: marks found by a follower. They stay until its log has caught up with them. */
  constructor(
    place: MarkPlace,
    { disk, clock }: Pick<Platform, 'disk' | 'clock'>,
    known: readonly HighWaterMark[] = [],
  ) {
    this.#known = known
    this.#disk = disk
    this.#later = clock.later
    this.#file = place.markFile
    this.#stray = strayMark(place)
  }

  /**
   * Call for each head that is signed and durable. `vkeys`: of the board's logs, oldest first. They agree with every mark that was checked.
   */
  note(vkeys: readonly string[], checkpoint: string): void {
    if (this.#known.some((mark) => knowsMore(mark, vkeys, checkpoint))) return
    this.#wanted = markText(vkeys, checkpoint)
    this.#cancel ??= this.#later(() => {
      this.#cancel = undefined
      this.#writing = this.#writing.then(() => this.#write())
    }, markPaceMs)
  }

  /** Writes what has not been written yet. */
  async close(): Promise<void> {
    this.#cancel?.()
    await this.#writing
    await this.#write()
  }

  async #write(): Promise<void> {
    const text = this.#wanted
    if (text === this.#kept) return
    try {
      await this.#disk.replaceLater(this.#file, text)
      this.#kept = text
      this.#dropStray()
    } catch (error) {
      log('warn', 'mark.not_kept', { file: this.#file, problem: String(error) })
    }
  }

  #dropStray(): void {
    const stray = this.#stray
    if (stray === undefined) return
    if (this.#disk.fileExists(stray)) {
      this.#disk.syncDirectory(dirname(this.#file))
      this.#disk.removeFile(stray)
    }
    this.#stray = undefined
  }
}
