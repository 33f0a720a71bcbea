/**
 * The high-water mark: the newest signed head, kept beside the data directory and not in it.
 *
 * Whoever puts an old copy of the directory back would sign other entries under sizes that are signed already, which
 * breaks the log for ever. The mark knows better than the copy, so the log refuses to start (signed-log.ts asks).
 *
 * The file:
 *
 *   <vkey of the log>
 *   after <vkey>            one line for each log that was closed before it, newest first
 *   <signed checkpoint>     a note
 *
 * It is a second opinion: losing it costs the check, never the log, so it is written at a pace and without waiting.
 *
 * A mark in the directory would be put back with the copy. Boards whose DATA_DIR ended in a slash once kept theirs there: it is
 * asked too, and removed when what it knows stands beside the directory.
 */
import { dirname, join } from 'node:path'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { fileExists, readWhole, removeFile, syncDirectory } from '../../storage/disk.ts'
import { parseVkey } from '../../storage/note.ts'
import type { Config } from '../config.ts'
import { keepText } from '../kept-text.ts'
import { log } from '../observe.ts'

/** Where a board's mark is. */
export type MarkPlace = Pick<Config, 'dataDirectory' | 'markFile'>

/** A mark that was left in the data directory; undefined: that is no place but the one that MARK_FILE names. */
function strayMark({ dataDirectory, markFile }: MarkPlace): string | undefined {
  const stray = join(dataDirectory, '.mark')
  return stray === markFile ? undefined : stray
}

/** What is known of a board's log, each in the text of its file; none: no mark was ever kept. */
export function readMarks(place: MarkPlace): string[] {
  const files = [place.markFile, strayMark(place)].filter((file) => file !== undefined)
  return files.filter(fileExists).map((file) => readWhole(file).toString('utf8'))
}

/** The log is not the one that the mark has seen, or is older than it. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack'
}

/** A log of the board, closed or not. */
export type KnownLog = {
  readonly vkey: string
  readonly size: number
  /** Root of its first `size` entries, for a size it has. */
  readonly rootOf: (size: number) => Buffer
}

/**
 * Throws RolledBack when one of these logs has signed more than it now knows, or something else, or was closed and followed
 * by a log that is not among them. A mark of another board, whose keys none of them has, says nothing.
 */
export function checkMark(text: string, logs: readonly KnownLog[]): void {
  if (text === '') return
  const [vkey = '', ...lines] = text.split('\n')
  const first = lines.findIndex((line) => !line.startsWith(afterWord))
  const closed = lines.slice(0, first).map((line) => line.slice(afterWord.length))
  const log = logs.find((each) => each.vkey === vkey)
  if (log === undefined) {
    const known = closed.find((each) => logs.some(({ vkey: own }) => own === each))
    if (known === undefined) return
    throw new RolledBack(`the log of ${known} was closed, and ${vkey} follows it, which this directory does not know`)
  }
  const key = parseVkey(vkey)
  if (!key.ok) throw new Error(key.problem)
  const seen = openCheckpoint(lines.slice(first).join('\n'), key.value)
  if (!seen.ok) throw new RolledBack(`the mark of this log cannot be read (${seen.problem})`)
  const { size, root } = seen.value
  if (size > log.size)
    throw new RolledBack(`this log has ${log.size} entries, but a head of ${size} was signed and published`)
  if (!log.rootOf(size).equals(root))
    throw new RolledBack(`the first ${size} entries of this log are not those that were signed and published`)
}

const afterWord = 'after '

/** `vkeys`: of the board's logs, oldest first; the checkpoint is of the last one. */
export function markText(vkeys: readonly string[], checkpoint: string): string {
  const [newest, ...closed] = vkeys.toReversed()
  return `${newest}\n${closed.map((vkey) => `${afterWord}${vkey}\n`).join('')}${checkpoint}`
}

export const markPaceMs = 1_000

/** Keeps the mark, at most once in a second. */
export class MarkKeeper {
  readonly #file: string
  /** A mark of this board that stands where it must not, until this one is on the disk. */
  #stray: string | undefined
  readonly #vkeys: readonly string[]
  #wanted = ''
  #kept = ''
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  /** `vkeys`: of the board's logs, oldest first. They agree with every mark that there is. */
  constructor(place: MarkPlace, vkeys: readonly string[]) {
    this.#file = place.markFile
    this.#stray = strayMark(place)
    this.#vkeys = vkeys
  }

  /** A head that is signed and durable. */
  note(checkpoint: string): void {
    this.#wanted = checkpoint
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#writing = this.#write()
    }, markPaceMs).unref()
  }

  /** Writes what is not written yet. */
  async close(): Promise<void> {
    clearTimeout(this.#timer)
    await this.#writing
    await this.#write()
  }

  async #write(): Promise<void> {
    const checkpoint = this.#wanted
    if (checkpoint === this.#kept) return
    try {
      await keepText(this.#file, markText(this.#vkeys, checkpoint))
      this.#kept = checkpoint
      this.#dropStray()
    } catch (error) {
      log('warn', 'mark.not_kept', { file: this.#file, problem: String(error) })
    }
  }

  #dropStray(): void {
    const stray = this.#stray
    if (stray === undefined) return
    if (fileExists(stray)) {
      syncDirectory(dirname(this.#file))
      removeFile(stray)
    }
    this.#stray = undefined
  }
}
