/** The journals of a follower that is not running. They accept what the stream has, with the same checks as in a running follower. */
import { appendCopied, type CopiedFrames, type JournalPlace, placeOf } from '../../storage/copied-frames.ts'
import type { Disk } from '../../storage/disk.ts'
import { FRAME_BYTES_LIMIT } from '../../storage/frame.ts'
import { type Journal, JournalReader } from '../../storage/journal.ts'
import { listSegments } from '../../storage/segment.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { type BoardFacts, logDirectory, shardDirectories, UnusableDirectory } from '../board-directory.ts'
import type { FollowedLog } from '../log/followed-log.ts'
import type { HighWaterMark } from '../log/mark.ts'
import { type LogIdentity, SignedLog } from '../log/signed-log.ts'
import type { Random } from '../platform.ts'
import { emptyShare, type JournalShare } from './batch.ts'

type Options = {
  readonly disk: Disk
  readonly path: string
  readonly random: Random
  readonly segmentBytesMax: number
  readonly facts: BoardFacts
  /** The logs of the leader, as far as it has named them. */
  readonly logs: readonly LogIdentity[]
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/**
 * Opens the log in a directory, without checking marks. `followed`: the leader's logs, for a follower. Throws
 * UnusableDirectory, and what SignedLog.open throws.
 */
export function openLogIn(
  { disk, path, segmentBytesMax, facts, report }: Omit<Options, 'random' | 'logs'>,
  followed?: readonly LogIdentity[],
): SignedLog {
  return SignedLog.open({
    disk,
    dataDirectory: path,
    origin: facts.origin,
    segmentBytesMax,
    report,
    followed,
    begin: () => {
      throw new UnusableDirectory(`The log of the board is missing in ${path}.`)
    },
  })
}

export class CopiedJournals {
  readonly #options: Options
  readonly #shards: readonly Journal[]
  readonly #readers: readonly JournalReader[]
  #signed: SignedLog
  #followed: FollowedLog

  /** The caller holds the lock of the directory. Throws UnusableDirectory, and what opening a journal throws. */
  constructor(options: Options) {
    const { disk, path, random, segmentBytesMax, facts } = options
    this.#options = options
    const directories = shardDirectories(path, facts.shards)
    this.#shards = directories.map((directory) =>
      openWhole({ disk, directory, random, segmentBytesMax, frameBytesMax: FRAME_BYTES_LIMIT, isCopy: true }),
    )
    this.#readers = directories.map((directory) => JournalReader.open(disk, directory))
    this.#signed = this.#openLog()
    this.#followed = this.#follow()
  }

  /** Where they end, the shards by number and then the log. */
  get places(): readonly JournalPlace[] {
    return [...this.#shards, this.#signed.journal].map(placeOf)
  }

  /** The shares of a message without frames: where the journals end, and where a segment has just ended. */
  get marks(): readonly JournalShare[] {
    const { disk, path, facts } = this.#options
    const shards = shardDirectories(path, facts.shards)
    const directories = [...shards, logDirectory(path)]
    return this.places.map((place, index) => {
      const next = place.last + 1
      const isRolled = next > 1 && listSegments(disk, directories[index]!, 'log').at(-1) === next
      return emptyShare(place, isRolled ? [next] : [])
    })
  }

  /** The log that grows. */
  get log(): LogIdentity {
    return this.#signed.identities.at(-1)!
  }

  /** Appends what is new; it is durable on return. Throws Diverged, in which case nothing was changed. */
  take(shares: readonly CopiedFrames[]): void {
    for (const [shard, journal] of this.#shards.entries()) appendCopied(journal, shares[shard]!)
    // A new log has another key and tree.
    if (this.#followed.take(shares.at(-1)!)) this.#openAgain()
  }

  /** Throws RolledBack if one of these marks records more than the log here. */
  checkMarks(marks: readonly HighWaterMark[]): void {
    this.#openAgain()
    this.#signed.checkMarks(marks)
  }

  close(): void {
    this.#signed.close()
    for (const each of [...this.#readers, ...this.#shards]) each.close()
  }

  #openAgain(): void {
    this.#signed.close()
    this.#signed = this.#openLog()
    this.#followed = this.#follow()
  }

  #openLog(): SignedLog {
    return openLogIn(this.#options, this.#options.logs)
  }

  #follow(): FollowedLog {
    return this.#signed.follower({ shards: this.#readers, published: () => {} })
  }
}
