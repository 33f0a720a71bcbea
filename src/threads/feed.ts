/**
 * The feed's thread: follows the log, answers every public read, proves, exports, and hands live posts to the main thread.
 * Wiring only; it renders on its own core, so that the main thread sends bytes that are ready.
 */
import type { MessagePort } from 'node:worker_threads'
import { type Change, nowhere } from '../../actors/changes.ts'
import { Feed } from '../../actors/feed.ts'
import { inside } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import type { BookedLog } from '../../actors/log/book.ts'
import { parseEntry } from '../../actors/log/entry.ts'
import type { Rotation } from '../../actors/people/people.ts'
import { RecordType } from '../../actors/record.ts'
import type { Head } from '../../actors/shard.ts'
import { State } from '../../actors/state.ts'
import { readBlob } from '../../storage/blob-files.ts'
import { JournalReader, journalIdIn } from '../../storage/journal.ts'
import type { Snapshot } from '../../storage/snapshot.ts'
import type { TilePath } from '../../storage/tile-path.ts'
import { blobsDirectory, feedSnapshotsDirectory, logDirectory, shardDirectory } from '../board-directory.ts'
import { monotonicMs, readingSeconds } from '../clock.ts'
import type { Moved, PeopleNews } from '../command/live-facts.ts'
import { type ExportChunk, type ExportRequest, exportChunk } from '../export/chunks.ts'
import { type Backfill, type BackfillRequest, backfill } from '../follow/backfill.ts'
import { liveText } from '../follow/live.ts'
import { type UpdatesRequest, updatesPage } from '../follow/rows.ts'
import type { TailFormat } from '../follow/stream.ts'
import { CursorSealer } from '../format/cursor.ts'
import { logReads } from '../log/proof.ts'
import { tileBytes } from '../log/tiles.ts'
import type { ReadAnswer, ReadRequest } from '../reads/read.ts'
import { answerRead } from '../reads/reads.ts'
import { inTurn } from '../runtime/slow-turns.ts'
import { answerHooks, type HooksAsk } from '../webhooks/payloads/answer.ts'
import { readFault, runThread, unlessFaulty } from './entry.ts'
import type { Published, Rewritten } from './log.ts'
import { SnapshotKeeper } from './snapshots.ts'
import { Trees } from './trees.ts'

export type FeedThread = {
  readonly dataDirectory: string
  readonly shards: number
  readonly cursorKey: Uint8Array
  readonly generation: string
  readonly serviceId: string
  readonly front: MessagePort
  readonly log: MessagePort
}

/** What the feed has to wait for: the log as it stands open. */
export type FeedWord = {
  readonly through: number
  /** Id of the log's journal: snapshots name it. */
  readonly logId: Uint8Array
  /** Verifier keys of all logs, by origin. */
  readonly vkeys: ReadonlyMap<string, string>
}

export type FeedAsk =
  | readonly ['read', ReadRequest, seen: number]
  | readonly ['export', ExportRequest, seen: number]
  | readonly ['tail', BackfillRequest, seen: number]
  | readonly ['updates', UpdatesRequest, seen: number]
  | readonly ['tile', TileRequest, seen: number]
  | readonly ['hooks', HooksAsk, seen: number]
  | readonly ['stats', nothing: null, seen: number]

/** A tile of the log with this name, such as 2026a. */
export type TileRequest = { readonly log: string; readonly path: TilePath }

export type FeedTell =
  | readonly ['watch', room: string, format: TailFormat]
  | readonly ['unwatch', room: string, format: TailFormat]

/** News for the main thread: which rooms changed, which handles were given, and what the followers of a room read. */
export type FeedNews =
  | readonly [
      'changed',
      readonly (readonly [room: string, change: number])[],
      readonly (readonly [id: string, handle: string])[],
      PeopleNews,
    ]
  | readonly ['live', room: string, format: TailFormat, change: number, bytes: Uint8Array]

/** What the feed sends to the main thread: before anything that shows a new signed head, that head and a change that it covers. */
export type FeedTold = FeedNews | readonly ['head', head: Head, change: number]

export type FeedStats = {
  readonly rooms: number
  readonly identities: number
  readonly events: number
  readonly blobs: number
  readonly documents: number
  /** Tools in the directory. */
  readonly tools: number
  /** When the newest entry of the log was made, Unix seconds; 0 = it has none. */
  readonly checkpointAt: number
  /** By the state that they are in now. */
  readonly works: Readonly<Record<string, number>>
  readonly change: number
}
export type { Backfill, ExportChunk, ReadAnswer }

runThread(async (data: FeedThread, word: () => Promise<FeedWord>) => {
  const watched = new Map<string, Set<TailFormat>>()
  let changed = new Map<string, number>()
  let handles: [string, string][] = []
  let people: { moved: Moved[]; suspended: [string, boolean][] } = { moved: [], suspended: [] }
  let live = false
  /** Size of the newest head that was sent to the main thread. */
  let shownSize = 0
  /** Changes sent so far. */
  let row = 0
  // The snapshot is read while shards and log open their journals: it is most of what this thread has to do.
  const snapshots = new SnapshotKeeper(
    feedSnapshotsDirectory(data.dataDirectory),
    journalIdIn(logDirectory(data.dataDirectory)),
  )
  const kept = unpacked(snapshots.take())
  const { through, logId, vkeys } = await word()
  snapshots.begin(Buffer.from(logId), through)
  const logReader = JournalReader.open(logDirectory(data.dataDirectory))
  const feed = new Feed({
    log: logReader,
    kept,
    shards: Array.from({ length: data.shards }, (_, shard) =>
      JournalReader.open(shardDirectory(data.dataDirectory, shard)),
    ),
    onRecord: (record, _frame, change) => {
      if (!live) return
      tellHead(change)
      if (record.type === RecordType.handleClaimed)
        handles.push([Buffer.from(record.author).toString('hex'), record.handle])
      if (record.type === RecordType.act && record.op === 'identity.rotate')
        people.moved.push(movedOf(feed.state.people.rotations.at(-1)!))
      if (record.type === RecordType.act && /^identity\.(un)?suspend$/.test(record.op))
        people.suspended.push([record.facts.target as string, record.op === 'identity.suspend'])
      changed.set(record.room, change)
      const { changes } = feed.state
      for (; row < changes.count; row++) tell(changes.at(row))
    },
  })
  const trees = new Trees(logDirectory(data.dataDirectory), feed.book, logReader)
  const cursors = new CursorSealer(data.cursorKey)
  const body = (slot: number) => feed.body(feed.state.board.events.shard[slot]!, feed.state.board.events.place[slot]!)
  const blobs = blobsDirectory(data.dataDirectory)
  const context = {
    state: feed.state,
    board: feed.state.board,
    body,
    frame: (shard: number, seq: number) => feed.body(shard, seq),
    blobFile: (room: string, sha256: string) => readBlob(blobs, room, sha256),
    cursors,
    generation: data.generation,
    serviceId: data.serviceId,
    handleOf: (identity: string) => feed.state.board.authors.get(identity)?.handle,
    now: readingSeconds,
    applied: () => feed.applied,
    visibility: 'public' as const,
  }
  /** Newest position of the log that the log itself has named. */
  let durable = through

  /** Goes before whatever shows this head: a link delivers a tell before an answer that was sent after it. */
  const tellHead = (change: number): void => {
    if (feed.head.size <= shownSize) return
    shownSize = feed.head.size
    front.tell(['head', feed.head, change] satisfies FeedTold)
  }
  const follow = (): void => {
    feed.follow(durable)
    // Of a frame whose records are damaged nothing was applied, but its head is signed all the same.
    if (live) tellHead(feed.state.board.change)
    snapshots.after(feed.applied, () => feed.pack())
    if (!live || changed.size + handles.length === 0) return
    const news: FeedNews = ['changed', [...changed], handles, people]
    changed = new Map()
    handles = []
    people = { moved: [], suspended: [] }
    front.tell(news)
  }
  const read = (request: ReadRequest): ReadAnswer => {
    const logRead = logReads[request.op]
    if (logRead === undefined) return answerRead(context, request)
    return logRead({ ...context, ...proving, isCommand: request.isCommand === true }, request)
  }
  const proving = {
    treeOf: (log: BookedLog) => trees.of(log),
    vkeyOf: (log: BookedLog) => vkeys.get(log.origin)!,
    headOf: (log: BookedLog, size: number) => feed.headOf(log, size),
    entries: (log: BookedLog, start: number, end: number) => feed.entries(log, start, end),
  }
  const archiving = {
    leafHashes: (log: BookedLog, start: number, end: number) => feed.leafHashes(log, start, end),
    entries: proving.entries,
    fault: (error: unknown) => readFault(error).refusal.message,
  }
  const tile = ({ log: name, path }: TileRequest): Buffer | null => {
    const log = feed.book.named(name)
    return log === undefined ? null : (tileBytes({ feed, log, tree: trees.of(log) }, path) ?? null)
  }
  /** What takes a walk or a read of the log to know, as of the newest frame that is applied. */
  let ofFrame = { applied: -1, tools: 0, checkpointAt: 0 }
  const counted = () => {
    const { applied, book } = feed
    if (ofFrame.applied !== applied) {
      const log = book.newest
      const { size } = log.head
      const entry = size === 0 ? undefined : parseEntry(feed.entries(log, size - 1, size).subarray(2))
      ofFrame = { applied, tools: feed.state.tools.count, checkpointAt: Number(entry?.get('time') ?? 0) }
    }
    const { tools, checkpointAt } = ofFrame
    return { tools, checkpointAt }
  }
  const answer = (asked: FeedAsk): unknown => {
    switch (asked[0]) {
      case 'read':
        return read(asked[1])
      case 'export':
        return exportChunk({ ...context, ...archiving }, asked[1])
      case 'tail':
        return backfill(context, asked[1])
      case 'updates':
        return updatesPage(context, asked[1])
      case 'hooks':
        return answerHooks(context, asked[1])
      case 'tile':
        return tile(asked[1])
      case 'stats': {
        const { rooms, authors, events, change } = feed.state.board
        const { blobs, documents } = feed.state
        return {
          rooms: rooms.size,
          identities: authors.size,
          events: events.count,
          blobs: blobs.count,
          documents: documents.count,
          ...counted(),
          works: feed.state.market.counts(readingSeconds()),
          change,
        } satisfies FeedStats
      }
    }
  }
  /** Asks that name a change the feed has not reached: they wait for the log's next word. */
  let early: [number, FeedAsk][] = []
  const onAsk = (asked: FeedAsk, id: number): void => {
    const seen = asked[2] ?? 0
    if (seen > feed.state.board.change) follow()
    if (seen > feed.state.board.change) early.push([id, asked])
    else give(asked, id, true)
  }
  /** Answers; a proof that the tree file does not give is tried once more when the file has been mended. */
  const give = (asked: FeedAsk, id: number, mayMend: boolean): void => {
    try {
      front.answer(id, answer(asked))
    } catch (error) {
      if (mayMend && trees.mend(error, () => give(asked, id, false))) return
      front.answer(id, readFault(error))
    }
  }
  const tell = (news: Change): void => {
    if (news.room === nowhere) return
    const { name } = feed.state.board.roomList[news.room]!
    changed.set(name, news.position)
    for (const format of watched.get(name) ?? []) {
      const text = unlessFaulty(() => liveText(context, news, format))
      if (text !== undefined) front.tell(['live', name, format, news.position, Buffer.from(text)] satisfies FeedNews)
    }
  }
  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onAsk: (body, id) => inTurn(causeOf(body as FeedAsk), () => onAsk(body as FeedAsk, id)),
    onTell: (body) => {
      const [kind, room, format] = body as FeedTell
      const formats = watched.get(room) ?? new Set()
      if (kind === 'watch') watched.set(room, formats.add(format))
      else if (formats.delete(format) && formats.size === 0) watched.delete(room)
    },
  })
  const log = new Link({
    port: data.log,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onTell: (body) => {
      const said = body as Published | Rewritten
      if ('rewritten' in said) return feed.reopen(said.rewritten)
      durable = Math.max(durable, said.seq)
      follow()
      const waiting = early
      early = []
      for (const [id, asked] of waiting) onAsk(asked, id)
    },
  })
  follow()
  live = true
  shownSize = feed.head.size
  row = feed.state.changes.count
  const known = feed.state.board.authorList.flatMap(({ id, handle }): [string, string][] =>
    handle === undefined ? [] : [[id, handle]],
  )
  return {
    facts: {
      handles: known,
      people: {
        moved: feed.state.people.rotations.map(movedOf),
        suspended: [...feed.state.people.suspended].map((id): [string, boolean] => [id, true]),
      } satisfies PeopleNews,
      change: feed.state.board.change,
      size: feed.head.size,
    },
    stop: () => {
      front.close()
      log.close()
      snapshots.keep(feed.applied, () => feed.pack())
      trees.close()
    },
  }
})

function unpacked(found: Snapshot | undefined): { readonly seq: number; readonly state: State } | undefined {
  const image = found === undefined ? undefined : State.unpack(found, 'reading')
  return image === undefined ? undefined : { seq: found!.seq, state: image.state }
}

function causeOf([kind, asked]: FeedAsk): string {
  return kind === 'read' ? asked.op : kind
}

function movedOf({ identity, from, to }: Rotation): Moved {
  return { identity, from, to }
}
