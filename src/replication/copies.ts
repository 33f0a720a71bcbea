/** Serves followers the frames of the journals that they missed, from the files, one batch at a time. */
import type { JournalPlace } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Ends, type FrameShares, type JournalDirectories, JournalsOut } from './journals-out.ts'

/** `isForGood`: the follower has journals of another board, so retrying is pointless. */
export type FramesAnswer = FrameShares | { readonly problem: string; readonly isForGood: boolean } | undefined

type Report = (level: 'error', event: string, facts: Readonly<Record<string, unknown>>) => void

/** Readers kept open for followers. Each starts where its follower is, and opening one takes a scan of a segment. */
const openMax = 4
/** Bytes of recent answers that are kept. A follower that is a few answers behind another gets those, and needs no reader of its own. */
const recentBytesMax = 8 * 1024 * 1024
const recentMax = 4_096

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
  #open: JournalsOut[] = []
  /**
   * Recent answers, by the places after which they were asked for, oldest first. An answer without frames, which only says that a segment
   * ends, is not kept: the follower asks for the same places next, and would get it forever.
   */
  readonly #recent = new Map<string, FrameShares>()
  #recentBytes = 0

  constructor(disk: Disk, directories: JournalDirectories, ends: Ends) {
    this.#disk = disk
    this.#directories = directories
    this.#ends = ends
  }

  advance(ends: Ends): void {
    this.#ends = ends
    for (const journals of this.#open) journals.advance(ends)
  }

  rewritten(shard: number): void {
    for (const journals of this.#open) journals.rewritten(shard)
    // They may contain a text that was removed from the files.
    this.#recent.clear()
    this.#recentBytes = 0
  }

  /** The frames after these places, the shards by number and then the log; undefined if there are none. Throws Damage. */
  after(places: readonly JournalPlace[]): FramesAnswer {
    const ends = [...this.#ends.shards, this.#ends.log]
    if (places.length !== ends.length) return otherJournals
    // The stream may have brought it frames that this board has not released yet.
    if (places.some(({ last }, index) => last > ends[index]!))
      return { problem: 'the follower is ahead of what its leader has released', isForGood: false }
    // Another follower got this answer, or this one did not get it the first time.
    const key = keyOf(places)
    const recent = this.#recent.get(key)
    if (recent !== undefined) return recent
    const known = this.#open.findIndex((open) => keyOf(open.places) === key)
    const [found] = known === -1 ? [] : this.#open.splice(known, 1)
    const journals = found ?? this.#begin(places)
    if (keyOf(journals.places) !== key) {
      journals.close()
      return otherJournals
    }
    const given = journals.next()
    this.#open.push(journals)
    if (this.#open.length > openMax) this.#open.shift()!.close()
    if (given !== undefined && given.payload.length > 0) this.#keep(key, given)
    return given
  }

  close(): void {
    for (const journals of this.#open.splice(0)) journals.close()
  }

  #keep(key: string, given: FrameShares): void {
    this.#recent.set(key, given)
    this.#recentBytes += given.payload.length
    for (const [oldest, { payload }] of this.#recent) {
      if (this.#recentBytes <= recentBytesMax && this.#recent.size <= recentMax) break
      this.#recent.delete(oldest)
      this.#recentBytes -= payload.length
    }
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

/** The same text for the same places. A journal without frames has no id yet. */
function keyOf(places: readonly JournalPlace[]): string {
  return places.map(({ id, last, chain }) => `${last === 0 ? '' : id} ${last} ${chain}`).join()
}
