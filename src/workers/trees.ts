/**
 * The tree files of all logs of a board, as the feed reads them. The growing log's file is open from the start, a closed log's file from
 * the first proof in it. A file that fails to prove something is repaired from the log's frames and read again.
 */
import type { BookedLog, LogBook } from '../../actors/log/book.ts'
import type { JournalReader } from '../../storage/journal.ts'
import { TreeFileShort } from '../../storage/tree-layout.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { nodesFile } from '../board-directory.ts'
import { Unproved } from '../log/proof.ts'
import type { ThreadPlatform } from './thread.ts'
import { TreeRepair } from './tree-repair.ts'

type Open = { readonly path: string; readonly tree: TreeReader; readonly repair: TreeRepair }

export class Trees {
  readonly #here: ThreadPlatform
  readonly #directory: string
  readonly #book: LogBook
  readonly #log: JournalReader
  readonly #open = new Map<string, Open>()

  /** `directory`: of the log; `log`: its journal. */
  constructor(here: ThreadPlatform, directory: string, book: LogBook, log: JournalReader) {
    this.#here = here
    this.#directory = directory
    this.#book = book
    this.#log = log
  }

  /** The log's tree, at the size of its newest head. */
  of(log: BookedLog): TreeReader {
    const { tree } = this.#open.get(log.name) ?? this.#opened(log)
    tree.advance(log.head.size)
    return tree
  }

  /**
   * Repairs the file that an error is about, then calls `then`. Returns false if it is about no file, or if a recent repair did not help.
   */
  mend(error: unknown, then: () => void): boolean {
    for (const [name, { path, repair }] of this.#open) {
      const isOfIt =
        (error instanceof Unproved && error.log.name === name) ||
        (error instanceof TreeFileShort && error.path === path)
      if (isOfIt) return repair.begin(then)
    }
    return false
  }

  /** Repairs the file that now has this path, if it belongs to a log. */
  mendFile(path: string): void {
    const log = this.#book.logs.find((each) => this.#pathOf(each) === path)
    if (log === undefined) return
    this.#open.get(log.name)?.tree.close()
    this.#opened(log).repair.begin(() => {})
  }

  close(): void {
    for (const { tree } of this.#open.values()) tree.close()
  }

  #pathOf(log: BookedLog): string {
    return nodesFile(this.#directory, this.#book.logs[0] === log ? '' : log.name)
  }

  #opened(log: BookedLog): Open {
    const place = this.#book.logs.indexOf(log)
    const path = this.#pathOf(log)
    const tree = TreeReader.open(this.#here.disk, path)
    const frames = () => {
      const next = this.#book.logs[place + 1]
      return this.#log.scan(log.frames[0]!, next === undefined ? this.#log.through : next.frames[0]! - 1)
    }
    const open = { path, tree, repair: new TreeRepair({ ...this.#here, path, tree, frames }) }
    this.#open.set(log.name, open)
    return open
  }
}
