/** Serves followers the frames of the journals that they missed, from the files, one batch at a time. */
import type { JournalPlace } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Ends, type FrameShares, type JournalDirectories, JournalsOut } from './journals-out.ts'

/** `isForGood`: the follower has journals of another board, so retrying is pointless. */
export type FramesAnswer = FrameShares | { readonly problem: string; readonly isForGood: boolean } | undefined

type Report = (level: 'error', event: string, facts: Readonly<Record<string, unknown>>) => void

/** Readers kept open for followers. Each starts where its follower is, and opening one takes a scan of a segment. */
const openMax = 4

/**
 * `asked`: the places after which frames were last read. `given`: the result; undefined if it had no frames. A batch without
 * frames, which only says that a segment ends, is not cached: the follower asks for the same places next, and would get it
 * forever.
 */
type Open = {
  readonly journals: JournalsOut
  readonly asked: readonly JournalPlace[]
  given: FrameShares | undefined
}

/** Says what cannot be read. Damage affects only the followers that reach it. */
export function framesAfter(places: readonly JournalPlace[], copies: Copies, report: Report): FramesAnswer {
  try {
    return copies.after(places)
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    report('error', 'replication.not_copied', { problem })
    return { problem: 'the leader cannot read its own journals: see its log for the reason', isForGood: false }
  }
}

export class Copies {
  readonly #disk: Disk
  readonly #directories: JournalDirectories
  #ends: Ends
  /** The most recently used one is last. */
  #open: Open[] = []

  constructor(disk: Disk, directories: JournalDirectories, ends: Ends) {
    this.#disk = disk
    this.#directories = directories
    this.#ends = ends
  }

  advance(ends: Ends): void {
    this.#ends = ends
    for (const { journals } of this.#open) journals.advance(ends)
  }

  rewritten(shard: number): void {
    for (const each of this.#open) {
      each.journals.rewritten(shard)
      // It may contain a text that was removed from the files.
      each.given = undefined
    }
  }

  /** The frames after these places, the shards by number and then the log; undefined if there are none. Throws Damage. */
  after(places: readonly JournalPlace[]): FramesAnswer {
    const ends = [...this.#ends.shards, this.#ends.log]
    if (places.length !== ends.length) return otherJournals
    // The stream may have brought it frames that this board has not released yet.
    if (places.some(({ last }, index) => last > ends[index]!))
      return { problem: 'the follower is ahead of what its leader has released', isForGood: false }
    // The follower did not get this answer the first time: it should not have to wait for the files to be read again.
    const again = this.#open.find(({ asked, given }) => given !== undefined && isSame(asked, places))
    if (again !== undefined) return again.given
    const known = this.#open.findIndex(({ journals }) => isSame(journals.places, places))
    const [found] = known === -1 ? [] : this.#open.splice(known, 1)
    const journals = found?.journals ?? this.#begin(places)
    if (!isSame(journals.places, places)) {
      journals.close()
      return otherJournals
    }
    const given = journals.next()
    this.#open.push({ journals, asked: places, given: given?.payload.length === 0 ? undefined : given })
    if (this.#open.length > openMax) this.#open.shift()!.journals.close()
    return given
  }

  close(): void {
    for (const { journals } of this.#open.splice(0)) journals.close()
  }

  #begin(places: readonly JournalPlace[]): JournalsOut {
    const lasts = places.map(({ last }) => last)
    return new JournalsOut(this.#disk, this.#directories, this.#ends, {
      shards: lasts.slice(0, -1),
      log: lasts.at(-1)!,
    })
  }
}

const otherJournals = {
  problem:
    'the journals of the follower differ from those of its leader. Was the leader resharded, or a backup restored? Then create a new follower in an empty directory',
  isForGood: true,
} as const

function isSame(some: readonly JournalPlace[], others: readonly JournalPlace[]): boolean {
  return some.every(({ id, last, chain }, index) => {
    const other = others[index]!
    // A journal without frames has no id yet.
    return last === other.last && chain === other.chain && (id === other.id || other.last === 0)
  })
}
