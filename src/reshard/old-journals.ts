/**
 * The journals of a stopped board as one list: every record once, with the records of each shard and of the signed log in their own order,
 * otherwise by time. Each frame of the log follows the records that it covers.
 */

import { decodeLogFrame, type LogFrame } from '../../actors/log/frame.ts'
import { fromFrame, PUBLIC } from '../../actors/records/record.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { logDirectory, readFacts, shardDirectory, UnusableDirectory } from '../board-directory.ts'

/** Payloads are views, overwritten by the next step. */
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

  /** Number of frames in all shards. */
  get records(): number {
    return this.ends.reduce((sum, end) => sum + end, 0)
  }

  /** Throws UnusableDirectory if the log does not cover everything public, and Damage. */
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

/** The next frame of a shard. Requesting it overwrites the previous one. */
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

/** Private records have no place in the log: they are ordered by time, as far as the order of their own shard allows. */
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

/** A reader of a journal that nobody is writing, so all of it may be read. */
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
