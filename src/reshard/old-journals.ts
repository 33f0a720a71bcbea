/**
 * The journals of a stopped board as one list: every record once, in an order that has the records of each shard in theirs and those of
 * the signed log in its own. After the records that a frame of the log covers comes that frame.
 */

import { decodeLogFrame, type LogFrame } from '../../actors/log/frame.ts'
import { PUBLIC } from '../../actors/records/record.ts'
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
    const shards = this.ends.map((_, shard) => openThrough(this.#disk, shardDirectory(this.#path, shard)))
    const log = openThrough(this.#disk, logDirectory(this.#path))
    try {
      const next = this.ends.map(() => 1)
      for (const head of log.scan(1, this.logEnd)) {
        const decoded = decodeLogFrame(head)
        for (const { shard, last } of decoded.ranges) {
          for (const frame of shards[shard]!.scan(next[shard]!, last)) yield { shard, frame }
          next[shard] = Math.max(next[shard]!, last + 1)
        }
        yield { head, log: decoded }
      }
      for (const [shard, end] of this.ends.entries())
        for (const frame of shards[shard]!.scan(next[shard]!, end)) {
          if ((frame.flags & PUBLIC) !== 0)
            throw new UnusableDirectory(
              `The log of ${this.#path} does not cover frame ${frame.seq} of shard ${shard}. Start the board once, stop it, and try again.`,
            )
          yield { shard, frame }
        }
    } finally {
      for (const reader of [...shards, log]) reader.close()
    }
  }
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
