/**
 * The log of another machine, as a follower keeps it; nothing is signed here. Each frame is checked against the records that it covers
 * (already in the shards' journals), against the tree, and against the log's key. It is then appended to this journal unchanged.
 */
import { closeFrameType, decodeLogFrame, entriesOf, type LogFrame, logFrameType } from '../../actors/log/frame.ts'
import type { LogState } from '../../actors/log/log.ts'
import type { Head } from '../../actors/records/answer.ts'
import { frameEntries, PUBLIC } from '../../actors/records/record.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { appendCopied, type CopiedFrames, Diverged } from '../../storage/copied-frames.ts'
import type { Frame, Journal, JournalReader } from '../../storage/journal.ts'
import { leafHash } from '../../storage/merkle.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import type { TreeWriter } from '../../storage/tree.ts'

export type FollowedLogOptions = {
  readonly journal: Journal
  readonly tree: TreeWriter
  /** Of the log that grows. */
  readonly vkey: string
  /** Readers of the shards' journals, by shard number. */
  readonly shards: readonly JournalReader[]
  /** Notifies readers of the log that its journal is durable up to `seq`. */
  readonly published: (seq: number, head: Head, change: number) => void
  /** The state after the newest frame, from `stateAfter`. */
  readonly start: LogState
  /** Whether that frame closed the log. */
  readonly isOver: boolean
}

export class FollowedLog {
  readonly #options: FollowedLogOptions
  readonly #key: VerifierKey
  readonly #covered: number[]
  #size: number
  #change: number
  #checkpoint: string
  /** Whether the newest frame closed the log. The next frame then begins another log, with a different key and tree. */
  #isOver: boolean

  constructor(options: FollowedLogOptions) {
    this.#options = options
    const key = parseVkey(options.vkey)
    if (!key.ok) throw new Error(key.problem)
    this.#key = key.value
    const { size, change, checkpoint, covered } = options.start
    this.#size = size
    this.#change = change
    this.#checkpoint = checkpoint
    this.#covered = [...covered]
    this.#isOver = options.isOver
  }

  get head(): Head {
    return { size: this.#size, checkpoint: this.#checkpoint }
  }

  get change(): number {
    return this.#change
  }

  covered(shard: number): number {
    return this.#covered[shard] ?? 0
  }

  /**
   * Checks and appends. The records that the frames cover are already durable in the shards' journals. Returns whether another log begins,
   * in which case this one must be reopened. If it throws Diverged, nothing was appended.
   */
  take(copied: CopiedFrames): boolean {
    const { journal } = this.#options
    let begins = false
    const fresh = appendCopied(journal, copied, (frames) => {
      for (const frame of frames) {
        if (begins) return
        begins = frame.type !== logFrameType && frame.type !== closeFrameType
        if (begins && !this.#isOver)
          throw new Diverged('the leader abandoned its log and began another: create a new follower')
        if (!begins) this.#check(frame)
      }
    })
    if (fresh.length > 0 && !begins) this.#options.published(journal.nextSeq - 1, this.head, this.#change)
    return begins
  }

  #check(frame: Frame): void {
    const log = decodeLogFrame(frame)
    const wrong = (what: string) => new Diverged(`frame ${frame.seq} of the leader's log ${what}`)
    if (log.firstLeaf !== this.#size || log.firstChange !== this.#change + 1 || this.#isOver)
      throw wrong('does not follow the previous one')
    const entries = [...entriesOf(log)]
    if (log.type === logFrameType && !isSame(entries, this.#entriesOf(log, wrong)))
      throw wrong('has entries that differ from the records that it covers')
    if (entries.length > 0) this.#options.tree.append(entries.map((entry) => leafHash(entry)))
    const { tree } = this.#options
    if (tree.size !== log.size || !tree.root().equals(log.root))
      throw wrong('has a root that does not match its entries')
    if (log.checkpoint !== this.#checkpoint) {
      const opened = openCheckpoint(log.checkpoint, this.#key)
      if (!opened.ok || opened.value.size !== log.size || !opened.value.root.equals(log.root))
        throw wrong('has no checkpoint signed by the key of the log')
    } else if (entries.length > 0) throw wrong('has an old checkpoint')
    this.#size = log.size
    this.#checkpoint = log.checkpoint
    this.#isOver = log.type === closeFrameType
    for (const { shard, last, changes } of log.ranges) {
      this.#covered[shard] = last
      this.#change += changes
    }
  }

  /** The entries of the records that a frame covers, read from the shards' journals. */
  #entriesOf({ ranges }: LogFrame, wrong: (what: string) => Diverged): Buffer[] {
    const entries: Buffer[] = []
    for (const { shard, first, last, changes } of ranges) {
      const reader = this.#options.shards[shard]
      const begun = this.covered(shard) + 1
      if (reader === undefined || first < begun || last < first - 1)
        throw wrong(`covers the wrong frames of shard ${shard}`)
      if (last < first) continue
      reader.advance(last)
      let found = 0
      for (const frame of reader.scan(begun, last)) {
        if ((frame.flags & PUBLIC) === 0) continue
        found++
        entries.push(...frameEntries(frame))
      }
      if (found !== changes) throw wrong(`counts the wrong number of changes of shard ${shard}`)
    }
    return entries
  }
}

function isSame(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.length === others.length && some.every((each, index) => each.equals(others[index]!))
}
