/**
 * The journals of a stopped board as one list: every record once, in an order that has the records of each shard in theirs and those of
 * the signed log in its own, and else goes by time. After the records that a frame of the log covers comes that frame.
 */

import { decodeLogFrame, type LogFrame } from '../../actors/log/frame.ts'
import { fromFrame, PUBLIC } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { logDirectory, readFacts, shardDirectory, UnusableDirectory } from '../board-directory.ts'

/** Payloads are views that the next step overwrites. */
export type Step = { readonly shard: number; readonly frame: Frame } | { readonly head: Frame; readonly log: LogFrame }

export class OldJournals {
  /** Last frame of each shard. */
  readonly ends: readonly number[]
  /** Last frame of the log. */
  readonly logEnd: number
  readonly #disk: Disk
  readonly #path: string

  constructor(disk: Disk, path: string) {
    this.#disk = disk
    this.#path = path
    const { shards } = readFacts(disk, path)
    this.ends = Array.from({ length: shards }, (_, shard) => endOf(disk, shardDirectory(path, shard)))
    this.logEnd = endOf(disk, logDirectory(path))
  }

  /** All frames of the shards. */
  get records(): number {
    return this.ends.reduce((sum, end) => sum + end, 0)
  }

  /** Throws UnusableDirectory where the log does not cover what is public, and Damage. */
  *inOrder(): Generator<Step, void, undefined> {
    const readers = this.ends.map((_, shard) => openThrough(this.#disk, shardDirectory(this.#path, shard)))
    const shards = readers.map((reader, shard) => new Cursor(shard, reader))
    const log = openThrough(this.#disk, logDirectory(this.#path))
    try {
      for (const head of log.scan(1, this.logEnd)) {
        const decoded = decodeLogFrame(head)
        for (const { shard, last } of decoded.ranges)
          for (
            let next = shards[shard]!.next;
            next !== undefined && next.frame.seq <= last;
            next = shards[shard]!.next
          ) {
            yield* earlier(shards, next)
            yield shards[shard]!.take()
          }
        yield { head, log: decoded }
      }
      for (let next = earliest(shards); next !== undefined; next = earliest(shards)) {
        if ((next.frame.flags & PUBLIC) !== 0)
          throw new UnusableDirectory(
            `The log of ${this.#path} does not cover frame ${next.frame.seq} of shard ${next.shard}. Start the board once, stop it, and try again.`,
          )
        yield shards[next.shard]!.take()
      }
    } finally {
      for (const reader of [...readers, log]) reader.close()
    }
  }
}

type Next = { readonly shard: number; readonly frame: Frame /** Unix seconds. */; readonly at: number }

/** The next frame of a shard. The one before is overwritten when it is asked for. */
class Cursor {
  readonly #shard: number
  readonly #frames: Generator<Frame, void, undefined>
  #next: Next | undefined

  constructor(shard: number, reader: JournalReader) {
    this.#shard = shard
    this.#frames = reader.scan(1)
  }

  get next(): Next | undefined {
    if (this.#next !== undefined) return this.#next
    const found = this.#frames.next()
    if (found.done === true) return undefined
    this.#next = { shard: this.#shard, frame: found.value, at: fromFrame(found.value).at }
    return this.#next
  }

  take(): { readonly shard: number; readonly frame: Frame } {
    const taken = this.next!
    this.#next = undefined
    return taken
  }
}

/** What is private has no place in the log: it goes where its time is, as far as the order of its own shard allows. */
function* earlier(shards: readonly Cursor[], { shard, at }: Next): Generator<Step, void, undefined> {
  for (const [other, cursor] of shards.entries())
    while (other !== shard) {
      const next = cursor.next
      if (next === undefined || (next.frame.flags & PUBLIC) !== 0 || next.at >= at) break
      yield cursor.take()
    }
}

function earliest(shards: readonly Cursor[]): Next | undefined {
  return shards.reduce<Next | undefined>((first, { next }) => {
    if (next === undefined) return first
    return first === undefined || next.at < first.at ? next : first
  }, undefined)
}

/** A reader of a journal that nobody writes: all of it may be read. */
export function openThrough(disk: Disk, directory: string): JournalReader {
  const reader = JournalReader.open(disk, directory)
  reader.advance(endOf(disk, directory))
  return reader
}

function endOf(disk: Disk, directory: string): number {
  const end = new JournalEnd(disk, directory)
  end.advance()
  end.close()
  return end.seq
}
