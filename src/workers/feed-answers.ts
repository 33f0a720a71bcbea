/** The feed thread's answers about public data: reads, exports, tails, proofs, statistics. */

import type { Feed } from '../../actors/feed.ts'
import type { BookedLog } from '../../actors/log/book.ts'
import { parseEntry } from '../../actors/records/entry.ts'
import { readBlob } from '../../storage/blob-files.ts'
import { type Disk, isUnreadable } from '../../storage/disk.ts'
import type { TilePath } from '../../storage/tile-path.ts'
import { blobsDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import type { ExportRequest } from '../export/chunk.ts'
import { exportChunk } from '../export/chunks.ts'
import { type BackfillRequest, backfill } from '../follow/backfill.ts'
import { type UpdatesRequest, updatesPage } from '../follow/rows.ts'
import { CursorSealer, type SealingKeys } from '../format/cursor.ts'
import { logReads, type ProofContext } from '../log/proof.ts'
import { tileBytes } from '../log/tiles.ts'
import { type ReadAnswer, type ReadContext, type ReadRequest, strictContext } from '../reads/read.ts'
import { answerHooks, type HooksAsk } from '../webhooks/payloads/answer.ts'
import { answerRead } from './reads.ts'
import { type SharedHold, timeoutsHeldAt } from './shared-hold.ts'
import { type Report, readFault } from './thread.ts'
import type { Trees } from './trees.ts'

export type FeedAsk =
  | readonly ['read', ReadRequest, seen: number]
  | readonly ['export', ExportRequest, seen: number]
  | readonly ['tail', BackfillRequest, seen: number]
  | readonly ['updates', UpdatesRequest, seen: number]
  | readonly ['tile', TileRequest, seen: number]
  | readonly ['hooks', HooksAsk, seen: number]
  /** The tree file with this path does not have the content that was written. */
  | readonly ['mend', path: string, seen: number]
  | readonly ['stats', nothing: null, seen: number]
  | readonly ['reached', nothing: null, seen: number]

/** A tile of the log with this name, such as 2026a. */
type TileRequest = { readonly log: string; readonly path: TilePath }

export type FeedStats = {
  readonly rooms: number
  readonly identities: number
  readonly events: number
  readonly blobs: number
  readonly documents: number
  /** Tools in the directory. */
  readonly tools: number
  /** When the newest entry of the log was made, in Unix seconds; 0 if there is none. */
  readonly checkpointAt: number
  /** Number of works by their current state. */
  readonly works: Readonly<Record<string, number>>
  readonly change: number
}
type FeedAnswersOptions = {
  readonly feed: Feed
  readonly trees: Trees
  /** Verifier keys of all logs, by origin. */
  readonly vkeys: ReadonlyMap<string, string>
  readonly dataDirectory: string
  readonly cursorKey: SealingKeys
  readonly generation: string
  readonly serviceId: string
  readonly hold: SharedHold
  readonly clock: Clock
  readonly disk: Disk
  readonly report: Report
}

export class FeedAnswers {
  readonly context: ReadContext & { readonly applied: () => number }
  readonly #feed: Feed
  readonly #report: Report
  readonly #trees: Trees
  readonly #proving: Pick<ProofContext, 'treeOf' | 'vkeyOf' | 'headOf' | 'entries'>
  readonly #timeoutsHeldAt: () => number | undefined
  /** How many disk reads have failed and been replaced by something else in an answer. */
  #failedReads = 0
  /** Values that need a scan or a read of the log, cached for the newest applied frame. */
  #ofFrame = { applied: -1, tools: 0, checkpointAt: 0 }

  constructor(options: FeedAnswersOptions) {
    const { feed, trees, vkeys, dataDirectory, cursorKey, generation, serviceId, clock, disk } = options
    const { state } = feed
    const { events } = state.board
    const blobs = blobsDirectory(dataDirectory)
    this.#feed = feed
    this.#report = options.report
    this.#timeoutsHeldAt = () => timeoutsHeldAt(options.hold, clock.wallSeconds())
    this.#trees = trees
    this.context = {
      state,
      board: state.board,
      body: (slot) => feed.body(events.shard(slot), events.place(slot)),
      prefetch: (slots) => {
        if (disk.readsAreSlow()) feed.prefetch(slots)
      },
      frame: (shard, seq) => feed.body(shard, seq),
      blobFile: (room, sha256) => readBlob(disk, blobs, room, sha256),
      cursors: new CursorSealer(cursorKey),
      generation,
      serviceId,
      handleOf: (identity) => state.board.authors.get(identity)?.handle,
      now: clock.readingSeconds,
      fault: this.#fault,
      applied: () => feed.applied,
      visibility: 'public',
    }
    this.#proving = {
      treeOf: (log) => trees.of(log),
      vkeyOf: (log) => vkeys.get(log.origin)!,
      headOf: (log, size) => feed.headOf(log, size),
      entries: (log, start, end) => feed.entries(log, start, end),
    }
  }

  /** Throws the error that prevents an answer. */
  answer(asked: FeedAsk): unknown {
    this.#feed.state.market.timeoutsHeldAt = this.#timeoutsHeldAt()
    switch (asked[0]) {
      case 'read':
        return this.#read(asked[1])
      case 'reached':
        return null
      case 'export':
        return exportChunk({ ...this.context, ...this.#archiving }, asked[1])
      case 'tail':
        return backfill(strictContext(this.context), asked[1])
      case 'updates':
        return updatesPage(strictContext(this.context), asked[1])
      case 'hooks':
        return answerHooks(strictContext(this.context), asked[1])
      case 'tile':
        return this.#tile(asked[1])
      case 'mend':
        return this.#trees.mendFile(asked[1])
      case 'stats':
        return this.#stats()
    }
  }

  #read(request: ReadRequest): ReadAnswer {
    const logRead = logReads[request.op]
    const failedBefore = this.#failedReads
    const answer =
      logRead === undefined
        ? answerRead(this.context, request)
        : logRead({ ...this.context, ...this.#proving, isCommand: request.isCommand === true }, request)
    if (!answer.ok || this.#failedReads === failedBefore) return answer
    // The failed read may succeed a moment later, so this answer must not be cached.
    return { ...answer, until: this.context.now() }
  }

  readonly #fault = (error: unknown): string => {
    if (isUnreadable(error)) this.#failedReads++
    return readFault(this.#report, error).refusal.message
  }

  get #archiving() {
    return {
      leafHashes: (log: BookedLog, start: number, end: number) => this.#feed.leafHashes(log, start, end),
      entries: this.#proving.entries,
      recordsOf: (seq: number) => this.#feed.recordsOf(seq),
      fault: this.#fault,
    }
  }

  #tile({ log: name, path }: TileRequest): Buffer | null {
    const feed = this.#feed
    const log = feed.book.named(name)
    return log === undefined ? null : (tileBytes({ feed, log, tree: this.#trees.of(log) }, path) ?? null)
  }

  #stats(): FeedStats {
    const { board, blobs, documents, market } = this.#feed.state
    const { tools, checkpointAt } = this.#counted()
    return {
      rooms: board.rooms.size,
      identities: board.authors.size,
      events: board.events.count,
      blobs: blobs.count,
      documents: documents.count,
      tools,
      checkpointAt,
      works: market.counts(this.context.now()),
      change: board.change,
    }
  }

  #counted(): { readonly tools: number; readonly checkpointAt: number } {
    const { applied, book, state } = this.#feed
    if (this.#ofFrame.applied !== applied) {
      const log = book.newest
      const { size } = log.head
      const entry = size === 0 ? undefined : parseEntry(this.#feed.entries(log, size - 1, size).subarray(2))
      this.#ofFrame = { applied, tools: state.tools.count, checkpointAt: Number(entry?.get('time') ?? 0) }
    }
    return this.#ofFrame
  }
}
