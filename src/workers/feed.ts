/**
 * The feed's thread: follows the log, answers every public read, proves, exports, and passes live posts to the main thread. Wiring only. It
 * renders on its own core, so the main thread only sends finished bytes.
 */

import { Feed } from '../../actors/feed.ts'
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { takedowns } from '../../actors/moderation/moderation.ts'
import type { Rotation } from '../../actors/people/people.ts'
import { suspensions } from '../../actors/people/people.ts'
import type { Head } from '../../actors/records/answer.ts'
import { nowhere } from '../../actors/records/board.ts'
import { type BoardRecord, RecordType } from '../../actors/records/record.ts'
import { threadMoves } from '../../actors/rooms/rules.ts'
import { State } from '../../actors/state.ts'
import { JournalReader, journalIdIn } from '../../storage/journal.ts'
import type { Snapshot } from '../../storage/snapshot.ts'
import { feedSnapshotsDirectory, logDirectory, shardDirectory } from '../board-directory.ts'
import type { Moved, PeopleNews } from '../command/live-facts.ts'
import type { FollowTell, Live, PublicPush } from '../follow/topics.ts'
import type { SealingKeys } from '../format/cursor.ts'
import { inTurn } from '../runtime/slow-turns.ts'
import { FeedAnswers, type FeedAsk } from './feed-answers.ts'
import type { Published, Rewritten } from './log-run.ts'
import { Publisher } from './publisher.ts'
import { replayProgress } from './replay-progress.ts'
import type { SharedHold } from './shared-hold.ts'
import { SnapshotKeeper } from './snapshots.ts'
import { type Report, readFault, type ThreadPlatform, type ThreadStarter } from './thread.ts'
import { Trees } from './trees.ts'

export type FeedThread = {
  readonly dataDirectory: string
  readonly shards: number
  readonly cursorKey: SealingKeys
  readonly generation: string
  readonly serviceId: string
  readonly hold: SharedHold
  readonly front: Port
  readonly log: Port
}

/** The log has restarted: the new port to it. */
export type LogBegun = { readonly log: Port }

/** What the feed waits for at start, twice: facts about the log once it is open, and once it signs. */
export type FeedWord = {
  readonly through: number
  /** Id of the log's journal, recorded in snapshots. */
  readonly logId: Uint8Array
  /** Verifier keys of all logs, by origin. */
  readonly vkeys: ReadonlyMap<string, string>
}

/** News for the main thread: rooms that changed, handles that were claimed, and live data for a room's followers. */
export type FeedNews =
  | readonly [
      'changed',
      readonly (readonly [room: string, change: number])[],
      readonly (readonly [id: string, handle: string])[],
      PeopleNews,
      PublicPush,
    ]
  | Live

/** Messages to the main thread. A new signed head is sent, with a change that it covers, before anything that shows that head. */
export type FeedTold = FeedNews | readonly ['head', head: Head, change: number]

/** People and files that the main thread must be notified of. */
type NewPeople = {
  moved: Moved[]
  suspended: [identity: string, isSuspended: boolean, hidesPosts: boolean][]
  erased: string[]
  takenDown: [sha256: string, isDown: boolean][]
}
const nothingNew = (): NewPeople => ({ moved: [], suspended: [], erased: [], takenDown: [] })

type Kept = { readonly seq: number; readonly state: State }

/** Applies frames that the log reports durable, answers queries about them, and notifies the main thread of news. */
class FeedFollower {
  readonly #feed: Feed
  readonly #trees: Trees
  readonly #answers: FeedAnswers
  readonly #snapshots: SnapshotKeeper
  readonly #report: Report
  readonly #front: Link
  readonly #linkLog: (port: Port) => Link
  #log: Link
  readonly #publisher: Publisher
  #changed = new Map<string, number>()
  #handles: [string, string][] = []
  #people = nothingNew()
  /** The main thread is notified of news; what an earlier run left is applied silently. */
  #isLive = false
  /** Size of the newest head that the main thread was told of. */
  #shownSize = 0
  /** Changes announced so far. */
  #row = 0
  /** Newest position that the log itself has announced. */
  #durable: number
  /** Queries for a change that the feed has not reached. They wait for the log's next message. */
  #early: [number, FeedAsk][] = []

  constructor(
    data: FeedThread & ThreadPlatform,
    { through, vkeys }: FeedWord,
    kept: Kept | undefined,
    snapshots: SnapshotKeeper,
  ) {
    const { clock, disk } = data
    this.#report = data.report
    const log = JournalReader.open(disk, logDirectory(data.dataDirectory))
    this.#durable = through
    this.#snapshots = snapshots
    const progress = replayProgress(data, 'log', through)
    this.#feed = new Feed({
      onFollowed: (seq) => {
        if (!this.#isLive) progress(seq)
      },
      log,
      kept,
      leaf: (of, index) => this.#trees.of(of).leaf(index),
      shards: Array.from({ length: data.shards }, (_, shard) =>
        JournalReader.open(disk, shardDirectory(data.dataDirectory, shard)),
      ),
      onRecord: (record, _frame, change) => {
        if (this.#isLive) this.#note(record, change)
      },
    })
    snapshots.holds(this.#feed.state.board.change)
    this.#trees = new Trees(data, logDirectory(data.dataDirectory), this.#feed.book, log)
    this.#answers = new FeedAnswers({ feed: this.#feed, trees: this.#trees, vkeys, ...data })
    this.#publisher = new Publisher(data.report, this.#answers.context, (live) =>
      this.#front.tell(live satisfies FeedNews),
    )
    const common = { openMax: 1, patienceMs: internalLimits.patienceMs, now: clock.monotonicMs, timers: clock }
    this.#front = new Link({
      ...common,
      port: data.front,
      onAsk: (body, id) => inTurn(causeOf(body as FeedAsk), () => this.#onAsk(body as FeedAsk, id)),
      onTell: (body) => this.#publisher.receive(body as FollowTell),
    })
    this.#linkLog = (port) =>
      new Link({ ...common, port, onTell: (body) => this.#onLog(body as Published | Rewritten) })
    this.#log = this.#linkLog(data.log)
  }

  /** The log has restarted and uses a new link. */
  relink(port: Port): void {
    this.#log.close()
    this.#log = this.#linkLog(port)
  }

  /** Applies what the log had when it was opened. */
  replay(): void {
    this.#feed.follow(this.#durable)
  }

  /** Applies what the log has signed since; from then on the main thread is notified of news. */
  begin(through: number): Readonly<Record<string, unknown>> {
    this.#durable = Math.max(this.#durable, through)
    this.#follow()
    const { state, head } = this.#feed
    const { authors } = state.board
    this.#isLive = true
    this.#shownSize = head.size
    this.#row = state.changes.count
    return {
      handles: [...authors.handles].map(([number, handle]): [string, string] => [authors.idOf(number), handle]),
      people: {
        moved: state.people.rotations.map(movedOf),
        suspended: [...state.people.suspended].map(([id, { hidesPosts = false }]): [string, boolean, boolean] => [
          id,
          true,
          hidesPosts,
        ]),
        erased: [...state.people.erased],
        takenDown: [...state.moderation.takenDown].map((sha256): [string, boolean] => [sha256, true]),
      } satisfies PeopleNews,
      change: state.board.change,
      size: head.size,
    }
  }

  close(): void {
    this.#front.close()
    this.#log.close()
    this.#snapshots.keep(this.#feed.applied, () => this.#feed.pack())
    this.#trees.close()
  }

  #follow(): void {
    this.#feed.follow(this.#durable)
    // If a frame's records are damaged, none of them were applied, but its head is signed all the same.
    if (this.#isLive) this.#tellHead(this.#feed.state.board.change)
    this.#snapshots.after(this.#feed.applied, (isLive) => this.#feed.pack(isLive), this.#feed.state.board.change)
    if (!this.#isLive || this.#changed.size + this.#handles.length === 0) return
    const pushed = { ...this.#publisher.take(), followed: this.#publisher.followed(this.#changed.keys()) }
    const news: FeedNews = ['changed', [...this.#changed], this.#handles, this.#people, pushed]
    this.#changed = new Map()
    this.#handles = []
    this.#people = nothingNew()
    this.#front.tell(news)
  }

  /** Notes a record that was just applied. */
  #note(record: BoardRecord, change: number): void {
    const { board, changes, people } = this.#feed.state
    this.#tellHead(change)
    if (record.type === RecordType.handleClaimed)
      this.#handles.push([Buffer.from(record.author).toString('hex'), record.handle])
    if (record.type === RecordType.act && record.op === 'identity.rotate')
      this.#people.moved.push(movedOf(people.rotations.at(-1)!))
    if (suspensions.is(record)) {
      const { target, hide_posts = false } = record.facts
      this.#people.suspended.push([target, record.op !== 'identity.unsuspend', hide_posts])
      if (record.op === 'identity.erase') this.#people.erased.push(target)
    }
    if (takedowns.is(record)) this.#people.takenDown.push([record.facts.target, record.facts.ended !== true])
    this.#changed.set(record.room, change)
    if (threadMoves.is(record)) for (const room of [record.facts.from, record.facts.to]) this.#changed.set(room, change)
    for (; this.#row < changes.count; this.#row++) {
      const row = changes.at(this.#row)
      if (row.room !== nowhere) this.#changed.set(board.roomList[row.room]!.name, row.position)
      this.#publisher.publish(row)
    }
  }

  /** Must precede anything that shows this head. A link delivers messages sent before an answer ahead of that answer. */
  #tellHead(change: number): void {
    const { head } = this.#feed
    if (head.size <= this.#shownSize) return
    this.#shownSize = head.size
    this.#front.tell(['head', head, change] satisfies FeedTold)
  }

  #onLog(message: Published | Rewritten): void {
    if ('rewritten' in message) return this.#feed.reopen(message.rewritten)
    this.#durable = Math.max(this.#durable, message.seq)
    this.#follow()
    const waiting = this.#early
    this.#early = []
    for (const [id, asked] of waiting) this.#onAsk(asked, id)
  }

  #onAsk(asked: FeedAsk, id: number): void {
    const seen = asked[2] ?? 0
    const { board } = this.#feed.state
    if (seen > board.change) this.#follow()
    if (seen > board.change) this.#early.push([id, asked])
    else this.#give(asked, id, true)
  }

  /** Answers. If the tree file does not yield a proof, it is repaired and the query is tried once more. */
  #give(asked: FeedAsk, id: number, mayMend: boolean): void {
    try {
      this.#front.answer(id, this.#answers.answer(asked))
    } catch (error) {
      if (mayMend && this.#trees.mend(error, () => this.#give(asked, id, false))) return
      this.#front.answer(id, readFault(this.#report, error))
    }
  }
}

function unpacked(found: Snapshot): Kept | undefined {
  const image = State.unpack(found, 'reading')
  return image === undefined ? undefined : { seq: found.seq, state: image.state }
}

function causeOf([kind, asked]: FeedAsk): string {
  return kind === 'read' ? asked.op : kind
}

function movedOf({ identity, from, to }: Rotation): Moved {
  return { identity, from, to }
}

export const thread: ThreadStarter<FeedThread, FeedWord> = async (data, here, word) => {
  // The snapshot is loaded while shards and log open their journals: that is most of this thread's start.
  const snapshots = new SnapshotKeeper(
    here,
    feedSnapshotsDirectory(data.dataDirectory),
    journalIdIn(here.disk, logDirectory(data.dataDirectory)),
  )
  const kept = snapshots.take(unpacked)
  const opened = await word()
  snapshots.begin(Buffer.from(opened.logId), opened.through)
  const follower = new FeedFollower({ ...data, ...here }, opened, kept, snapshots)
  follower.replay()
  const { through } = await word()
  return {
    facts: follower.begin(through),
    stop: () => follower.close(),
    onMessage: (message) => follower.relink((message as LogBegun).log),
  }
}
