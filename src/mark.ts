/**
 * The high-water mark: the newest signed head, kept beside the data directory and not in it.
 *
 * Whoever puts an old copy of the directory back would sign other entries under sizes that are signed already, which
 * breaks the log for ever. The mark knows better than the copy, so the log refuses to start (threads/log.ts asks).
 *
 * The file is the log's verifier key, a line feed, and the signed checkpoint as a note. It is a second opinion: losing it
 * costs the check, never the log, so it is written at a pace and without waiting.
 */
import { open, rename } from 'node:fs/promises'
import { openCheckpoint } from '../storage/checkpoint.ts'
import { fileExists, readWhole } from '../storage/disk.ts'
import { parseVkey } from '../storage/note.ts'
import { log } from './observe.ts'

/** What the mark says of a log, in its file's own text; '' when there is none. */
export function readMark(file: string): string {
  return fileExists(file) ? readWhole(file).toString('utf8') : ''
}

/** The log is not the one that the mark has seen, or is older than it. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack'
}

/**
 * Throws RolledBack when the log with key `vkey` has signed more than it now knows, or something else. A mark of another
 * log, whose key this one cannot sign with, says nothing.
 *
 * @param rootOf root of the log's first `size` entries, for a size it has
 */
export function checkMark(text: string, log: { vkey: string; size: number; rootOf: (size: number) => Buffer }): void {
  if (text === '' || !text.startsWith(`${log.vkey}\n`)) return
  const key = parseVkey(log.vkey)
  if (!key.ok) throw new Error(key.problem)
  const seen = openCheckpoint(text.slice(log.vkey.length + 1), key.value)
  if (!seen.ok) throw new RolledBack(`the mark of this log cannot be read (${seen.problem})`)
  const { size, root } = seen.value
  if (size > log.size)
    throw new RolledBack(`this log has ${log.size} entries, but a head of ${size} was signed and published`)
  if (!log.rootOf(size).equals(root))
    throw new RolledBack(`the first ${size} entries of this log are not those that were signed and published`)
}

export const markPaceMs = 1_000

/** Keeps the mark, at most once in a second. */
export class MarkKeeper {
  readonly #file: string
  readonly #vkey: string
  #wanted = ''
  #kept = ''
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(file: string, vkey: string) {
    this.#file = file
    this.#vkey = vkey
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
      const file = await open(`${this.#file}.tmp`, 'w', 0o600)
      try {
        await file.writeFile(`${this.#vkey}\n${checkpoint}`)
        await file.datasync()
      } finally {
        await file.close()
      }
      await rename(`${this.#file}.tmp`, this.#file)
      this.#kept = checkpoint
    } catch (error) {
      log('warn', 'mark.not_kept', { file: this.#file, problem: String(error) })
    }
  }
}
