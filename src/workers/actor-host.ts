/**
 * Starts the actor threads (shards, log, feed), connects them, and stops them. Each gets what it needs from the threads started before it.
 * All requests to actors go through here.
 */

import { internalLimits, type Queues } from '../../actors/kernel/limits.ts'
import { type Answered, Link, type Port } from '../../actors/kernel/link.ts'
import type { Refusal } from '../../actors/kernel/refusals.ts'
import { Supervised, type ThreadError, type ThreadUsage } from '../../actors/kernel/supervisor.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { ClosedLog } from '../../actors/log/frame.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import { boardHandle } from '../../actors/records/handles.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import { type FirstRoom, shardOf } from '../../actors/shard.ts'
import { reviewsRoom } from '../../actors/tools/tools.ts'
import type { JournalPlace } from '../../storage/copied-frames.ts'
import { type BoardDirectory, blobsDirectory, searchDirectory, shardDirectory } from '../board-directory.ts'
import type { DraftLetter, Posted, PostedLetter } from '../command/draft-letter.ts'
import type { LiveFacts, PeopleNews } from '../command/live-facts.ts'
import type { Actors, NoAnswer, TakeReply } from '../command/ports.ts'
import { postedAnswer } from '../command/post-draft.ts'
import type { FollowSettings, Placement, ReplicationSettings } from '../config.ts'
import type { FollowTell } from '../follow/topics.ts'
import type { HighWaterMark } from '../log/mark.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { log } from '../observe.ts'
import type { Platform } from '../platform.ts'
import { type ThreadName, threadFile } from '../program.ts'
import type { AnswerOf, ReadAnswer, ReadRequest, Take } from '../reads/read.ts'
import type { FramesAnswer } from '../replication/copies.ts'
import type { Standing } from '../replication/follower.ts'
import type { Ends } from '../replication/journals-out.ts'
import type { SharedSettings } from '../replication/shared-settings.ts'
import { withCause } from '../runtime/slow-turns.ts'
import type { SearchAnswer, SearchAsk } from '../search/search.ts'
import type { ToolsAnswer, ToolsAsk } from '../tools/asks.ts'
import type { BackThread } from './back.ts'
import type { CopiesTell, CopiesThread, FramesAsk } from './copies.ts'
import type { FeedNews, FeedThread, FeedTold, FeedWord, LogBegun } from './feed.ts'
import type { FeedAsk } from './feed-answers.ts'
import type { FollowingAnswer, FollowingAsk, FollowingTell, FollowingThread } from './following.ts'
import { LazyThread, overloaded, type Unanswered } from './lazy-thread.ts'
import type { LogThread, ShardBegun } from './log.ts'
import type { Acknowledged, LogAsk, LogStart, LogWord, Published } from './log-run.ts'
import type { ShardNews, ShardTell } from './private-news.ts'
import type { ReplicationNews, ReplicationTell, ReplicationThread } from './replication.ts'
import type { SearchRequest, SearchTell, SearchThread } from './search.ts'
import type { ShardThread } from './shard.ts'
import type { ShardAsk, ShardStart } from './shard-run.ts'
import { type SharedEnds, sharedEnds, writtenEnds } from './shared-ends.ts'
import { type SharedHold, sharedHold } from './shared-hold.ts'
import { takeFrames } from './take-frames.ts'
import type { ToolsRequest, ToolsTell, ToolsThread } from './tools.ts'

type ActorHostOptions = Pick<Platform, 'clock' | 'disk' | 'startThread' | 'channel' | 'onBytesReleased'> & {
  readonly directory: BoardDirectory
  readonly placement: Placement
  readonly diskReserveBytes: number
  readonly segmentBytesMax: number
  readonly recentEvents: number
  readonly compactSeconds: number
  /** How much of the search index to check against its checksums, per second; if omitted, nothing is checked. */
  readonly scrubBytesPerSecond?: number
  readonly queues: Queues
  /** Rates and quotas are enforced. */
  readonly limitsOn: boolean
  /** High-water marks. None of them may be ahead of the log. */
  readonly marks: readonly HighWaterMark[]
  /** Where the journals are published; if omitted, nowhere. */
  readonly replication?: Publishing | undefined
  /** Followers ask for frames of the journals. */
  readonly hasFollowers?: boolean
  /** Set on a follower: another machine decides, and this one copies its frames. If omitted, this machine decides. */
  readonly following?: Following | undefined
  /** Notified of heads, rooms and people before anyone else. Also supplies the handles that a new shard needs. */
  readonly news: LiveFacts
  /** Listeners that receive all news from the start. A part created later adds itself with `listen`. */
  readonly listeners: readonly ActorListener[]
  /** Called when the process cannot continue. */
  readonly onFatal: (thread: string, error: ThreadError) => void
}

/** `isAwaited`: nothing may be shown until the stream has been told that this board no longer waits for it. */
export type Publishing = ReplicationSettings & { readonly isAwaited: boolean }

/** The leader that a follower follows. */
export type Following = {
  readonly settings: FollowSettings
  /** Of this follower. */
  readonly shared: SharedSettings
  /** The leader's logs at the time the follower was created. */
  readonly logs: readonly LogIdentity[]
  /** The current answer to a write that cannot be forwarded. */
  readonly refusal: () => Refusal
  /** The current answer to a read of private data; undefined if the read may be answered. */
  readonly behind: () => Refusal | undefined
}

/** A component that receives notifications from the actor threads. */
export type ActorListener = {
  feedNews?(news: FeedNews): void
  /** LiveFacts of a shard's private rooms. */
  shardNews?(shard: number, news: ShardNews): void
  /** A shard has died. Messages sent to it from now on reach the thread that replaces it. */
  shardLost?(shard: number): void
  /** A shard has restarted and has lost everything it was told. */
  shardRestarted?(shard: number): void
  published?(published: Published): void
  /** Followers may copy the journals further than before. */
  endsMoved?(): void
  /** On a follower: how far it is behind its leader. */
  standing?(standing: Standing): void
  /** On a follower that may lead: its leader has been silent since this message of the stream. */
  vacant?(after: number): void
  /** On a follower: the leader's frames were applied up to these ends. `acts` names the operations of the acts among them. */
  followed?(ends: Ends, acts: ReadonlySet<string>): void
  /** From the thread that publishes the journals. */
  replicationNews?(news: ReplicationNews): void
}

type ActorHostFacts = {
  /** Every log of the board, oldest first; only the last one grows. */
  readonly logs: readonly LogIdentity[]
  readonly closed: readonly ClosedLog[]
  readonly published: Published
  readonly handles: Handles
  readonly people: PeopleNews
  /** For each shard, the time of its newest record in Unix seconds; 0 if it has none. */
  readonly newest: readonly number[]
}
type BegunFacts = Omit<ActorHostFacts, 'newest'>
type Handles = readonly (readonly [identity: string, handle: string])[]

/**
 * The threads that write, while they start: where each shard's journal ends, the facts of the log once it is open and once it signs, and
 * those that each shard reports when ready.
 */
type Writing = {
  readonly ends: readonly Promise<number>[]
  readonly openLog: Promise<Facts>
  readonly log: Promise<Facts>
  readonly feedPort: Port
  readonly starts: readonly Promise<Facts>[]
}

/** What a thread reports when it is ready. */
type Facts = Readonly<Record<string, unknown>>

const wakeEveryMs = 10_000

/** Container hosts allow 10 s in total. */
const stopWithinMs = 8_500
/** The minimum given to threads that are stopped late, when earlier ones took long. */
const leastStopMs = 500

/** Rooms that exist from the first start. log/beginning.ts counts what creating them takes. */
function firstRooms({ identity }: BoardDirectory): readonly FirstRoom[] {
  return [{ name: 'lobby' }, { name: reviewsRoom, keeper: identity.id }]
}

export class ActorHost implements Actors {
  readonly shards: number
  readonly #options: ActorHostOptions
  readonly #listeners: ActorListener[]
  readonly #shardThreads: Supervised[] = []
  #logThread: Supervised | undefined
  #feedThread: Supervised | undefined
  readonly #shardLinks: Link[] = []
  #logLink: Link | undefined
  #feedLink: Link | undefined
  /** Full-text search, and the tools directory. */
  readonly #search: LazyThread
  readonly #tools: LazyThread
  /** Publishes the journals; undefined if they are not published. */
  readonly #replication: LazyThread | undefined
  /** Fetches the leader's frames; undefined if this is not a follower. */
  readonly #following: LazyThread | undefined
  #stopWaking: Cancel = () => {}
  #isStarted = false
  /** Where the journals are durable, as last reported by the log. */
  #ends: Ends | undefined
  /** Where the stream has acknowledged the journals, if writes wait for that. */
  #acknowledged: Ends | undefined
  #moreAcknowledged = Promise.withResolvers<void>()
  #logId: Uint8Array = new Uint8Array()
  /** Newest frame that the log has announced. */
  #published = 0
  /** Newest change that the main thread knows of. Reads answer with nothing older. */
  #seen = 0
  /** Incremented before anything new is announced. Threads that share it can tell whether their data is still current. */
  readonly turns = new Int32Array(new SharedArrayBuffer(4))
  readonly #sharedEnds: SharedEnds
  /** Works do not time out until the first clock check is stored here. */
  readonly hold: SharedHold = sharedHold()

  private constructor(options: ActorHostOptions) {
    this.#options = options
    this.#listeners = [...options.listeners]
    this.shards = options.directory.facts.shards
    this.#sharedEnds = sharedEnds(this.shards)
    const { path, cursorKey } = options.directory
    const following = () => ({
      dataDirectory: path,
      shards: this.shards,
      through: this.#published,
      logId: this.#logId,
    })
    const { scrubBytesPerSecond = 0 } = options
    this.#search = this.#late(
      'search',
      (front) => ({ ...following(), scrubBytesPerSecond, front }) satisfies SearchThread,
    )
    if (options.replication !== undefined) this.#replication = this.#publishing(options.replication)
    else if (options.hasFollowers) this.#replication = this.#copying()
    if (options.following !== undefined) this.#following = this.#follow(options.following)
    this.#tools = this.#late('tools', (front) => ({ ...following(), cursorKey, front }) satisfies ToolsThread)
  }

  static async start(options: ActorHostOptions): Promise<{ actorHost: ActorHost; facts: ActorHostFacts }> {
    const host = new ActorHost(options)
    const writing = options.placement === 'back' ? host.#startBack() : host.#startThreads()
    const feed = host.#startFeed(writing.feedPort)
    const facts = host.#begin(writing, feed)
    // Await all of them, so that a thread that fails to start is noticed in any case.
    const { openLog, log, starts } = writing
    const [begun, , , , ...begunShards] = await Promise.all([facts, openLog, log, feed, ...starts])
    // Texts that an earlier run indexed may be redacted in this one.
    if (options.disk.fileExists(searchDirectory(options.directory.path))) host.#search.wake()
    const newest = begunShards.map((shard) => shard.newest as number)
    return { actorHost: host, facts: { ...begun, newest } }
  }

  /** The board now answers, to followers too: from here on a write may wait for them. */
  started(): void {
    this.#isStarted = true
    // Only the thread that publishes waits for this.
    if (this.#options.replication !== undefined) this.#replication?.tell('started' satisfies ReplicationTell)
  }

  /** Adds a component that is notified by the actors from now on. */
  listen(listener: ActorListener): void {
    this.#listeners.push(listener)
  }

  /**
   * All threads are created at once and do what they can; each is then told what it needs to know from those before it. The log is opened
   * early, so that shards and feed build their state at the same time, and signs once the shards have theirs.
   */
  async #begin({ ends, openLog, log, starts }: Writing, feed: Promise<Facts>): Promise<BegunFacts> {
    const through = await Promise.all(ends)
    this.#logThread?.sendWord({ through } satisfies LogWord)
    this.#tellFeed(await openLog)
    const shards = await Promise.all(starts)
    this.#logThread?.sendWord({ through: shards.map((shard) => shard.through as number) } satisfies LogWord)
    const logFacts = await log
    const published: Published = {
      seq: logFacts.seq as number,
      head: logFacts.head as Head,
      change: logFacts.change as number,
    }
    this.#seen = published.change
    this.#published = published.seq
    this.#logId = logFacts.logId as Uint8Array
    if (this.#waitsForStream) await this.#acknowledgedStart(published.seq)
    else if (this.#options.replication?.isAwaited) await this.#acknowledgedStart(0)
    const { logs, closed } = logFacts as Pick<ActorHostFacts, 'logs' | 'closed'>
    this.#tellFeed(logFacts)
    const { handles, people } = (await feed) as Pick<ActorHostFacts, 'handles' | 'people'>
    return { logs, closed, published, handles, people }
  }

  #tellFeed(log: Facts): void {
    const { logs } = log as Pick<ActorHostFacts, 'logs'>
    const vkeys = new Map(logs.map(({ origin, vkey }) => [origin, vkey]))
    this.#feedThread!.sendWord({
      through: log.seq as number,
      logId: log.logId as Uint8Array,
      vkeys,
    } satisfies FeedWord)
  }

  write<Reply extends Facts>(letter: WriteLetter<object, Reply>, answer: TakeReply<Reply>): void {
    const { following } = this.#options
    if (following !== undefined) return answer({ ok: false, refusal: following.refusal() }, undefined)
    const link = this.#shardLinks[shardOf(letter.to, this.shards)]!
    const given = withCause((answered: Answered<ShardAnswer<Reply>, Head>) => {
      if (!answered.ok) answer(refusalOf(answered), undefined)
      else this.#take(answered.body, answered.note, answer)
    })
    link.ask(['write', letter], given)
  }

  post(letter: DraftLetter, answer: TakeReply<Posted>): void {
    const { following } = this.#options
    if (following !== undefined) return answer({ ok: false, refusal: following.refusal() }, undefined)
    const link = this.#shardLinks[shardOf(letter[0], this.shards)]!
    const given = withCause((answered: Answered<ShardAnswer<Posted> | PostedLetter, Head>) => {
      if (!answered.ok) return answer(refusalOf(answered), undefined)
      const { body, note } = answered
      this.#take('ok' in body ? body : postedAnswer(body), note, answer)
    })
    link.ask(['post', letter], given)
  }

  #take<Reply extends Facts>(body: ShardAnswer<Reply>, head: Head | undefined, answer: TakeReply<Reply>): void {
    if (body.ok) this.#noteNews(head, body.change ?? 0)
    answer(body, head)
  }

  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void {
    this.askFeed<ReadAnswer<AnswerOf<Name>>>(['read', request, this.#seen], answer)
  }

  readPrivate<Name extends AnyReadName>(shard: number, request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void {
    this.askShard<ReadAnswer<AnswerOf<Name>>>(shard, ['read', request], answer)
  }

  askShard<Answer>(shard: number, ask: ShardAsk, answer: (answer: Answer | Unanswered | NoAnswer) => void): void {
    const behind = isOfReader(ask) ? this.#options.following?.behind() : undefined
    if (behind !== undefined) return answer({ ok: false, refusal: behind })
    this.#shardLinks[shard]!.ask(ask, given(answer))
  }

  tellShard(shard: number, tell: ShardTell): void {
    this.#shardLinks[shard]!.tell(tell)
  }

  askFeed<Answer>(ask: FeedAsk, answer: (answer: Answer | Unanswered | NoAnswer) => void): void {
    this.#feedLink!.ask(ask, given(answer))
  }

  /** Repairs the tree file with this path, or rebuilds it if it is missing. Throws the disk error if the repair cannot start. */
  repairTree(path: string): void {
    const { disk } = this.#options
    if (!disk.fileExists(path)) disk.openFile(path, 'create').close()
    // The log's new entries already go to this file. The feed adds the earlier ones once it has applied them all.
    const repair = given<number>((through) => {
      if (typeof through === 'number') this.askFeed(['mend', path, through], () => {})
    })
    this.#logLink!.ask(['tree'] satisfies LogAsk, repair)
  }

  tellFeed(tell: FollowTell): void {
    this.#feedLink!.tell(tell)
  }

  /** Queries the search index. Its answer covers at least this frame of the log. The first query starts the thread. */
  search(ask: SearchAsk, through: number, answer: (answer: SearchAnswer | NoAnswer) => void): void {
    this.#published = Math.max(this.#published, through)
    this.#search.ask<SearchAnswer>([ask, through] satisfies SearchRequest, withCause(answer))
  }

  /** Queries the tools directory. Its answer covers at least this frame of the log. The first query starts the thread. */
  askTools(ask: ToolsAsk, through: number, answer: (answer: ToolsAnswer | NoAnswer) => void): void {
    this.#published = Math.max(this.#published, through)
    this.#tools.ask<ToolsAnswer>([ask, through] satisfies ToolsRequest, withCause(answer))
  }

  get seen(): number {
    return this.#seen
  }

  /**
   * Must run before anything that shows this head is passed on, from any source. The feed applies each frame of the log as a whole, so
   * after any change covered by a head it shows nothing older.
   */
  #noteNews(head: Head | undefined, change: number): void {
    this.noteChange(change)
    if (head !== undefined) this.#options.news.noteHead(head, change)
  }

  noteChange(change: number): void {
    if (change <= this.#seen) return
    this.#seen = change
    Atomics.add(this.turns, 0, 1)
  }

  /** Requests in progress, for metrics. */
  get open(): number {
    return this.openAtShards + (this.#feedLink?.open ?? 0)
  }

  /** How many of them a shard still has to answer. */
  get openAtShards(): number {
    return this.#shardLinks.reduce((sum, { open }) => sum + open, 0)
  }

  /** Resource usage of each thread, by its name. */
  async usage(): Promise<[thread: string, usage: ThreadUsage][]> {
    const threads = [
      ...this.#shardThreads,
      this.#logThread,
      this.#feedThread,
      this.#search.running,
      this.#tools.running,
      this.#replication?.running,
      this.#following?.running,
    ].filter((thread) => thread !== undefined)
    return Promise.all(
      threads.map(async (thread): Promise<[string, ThreadUsage]> => [thread.name, await thread.usage()]),
    )
  }

  /** Stops everything but the log, and then the log, each after it has finished the work it accepted. */
  async stop(): Promise<void> {
    this.#stopWaking()
    const until = this.#options.clock.monotonicMs() + stopWithinMs
    const left = (): number => Math.max(leastStopMs, until - this.#options.clock.monotonicMs())
    await this.#following?.stop(left())
    // Threads that save a snapshot do so at the same time.
    const keeping = [this.#search, this.#tools, this.#feedThread, ...this.#shardThreads]
    await Promise.all(keeping.map((thread) => thread?.stop(left())))
    await this.#logThread?.stop(left())
    await this.#replication?.stop(left())
    for (const link of [
      ...this.#shardLinks,
      this.#logLink,
      this.#feedLink,
      this.#search,
      this.#tools,
      this.#replication,
      this.#following,
    ])
      link?.close()
  }

  /** Runs each shard and the log in its own thread. */
  #startThreads(): Writing {
    const shards = Array.from({ length: this.shards }, (_, shard) => this.#startShard(shard))
    const { port1, port2: feedPort } = this.#options.channel()
    const log = this.#startLog(
      shards.map(({ logPort }) => logPort),
      port1,
    )
    return {
      ends: shards.map(({ through }) => through),
      ...log,
      feedPort,
      starts: shards.map(({ start }) => start),
    }
  }

  /** Runs the only shard and the log in one thread. */
  #startBack(): Writing {
    let feedPort: Port | undefined
    const end = Promise.withResolvers<number>()
    const openLog = Promise.withResolvers<Facts>()
    const onKnown = (facts: Facts): void => {
      end.resolve(Number(facts.through))
      if ('logId' in facts) openLog.resolve(facts)
    }
    const thread = this.#supervise({
      name: 'back',
      file: threadFile('back'),
      startData: () => {
        const toFeed = this.#options.channel()
        feedPort = toFeed.port2
        const shard = this.#shardStart(0)
        const log = this.#logStart(toFeed.port1)
        const data: BackThread = { shard, log }
        return { data, transfer: [shard.front, log.front, log.feed] }
      },
      onKnown,
      onRestart: () => {
        this.#feedThread?.send({ log: feedPort! } satisfies LogBegun, [feedPort!])
        for (const each of this.#listeners) each.shardRestarted?.(0)
      },
    })
    this.#shardThreads[0] = thread
    const start = thread.start()
    start.then(onKnown, openLog.reject)
    return { ends: [end.promise], openLog: openLog.promise, log: start, feedPort: feedPort!, starts: [start] }
  }

  /** The options for starting a shard, with a new link to it. */
  #shardStart(number: number): ShardStart {
    const { directory, diskReserveBytes, compactSeconds, segmentBytesMax, recentEvents, queues, limitsOn, following } =
      this.#options
    const front = this.#options.channel()
    if (this.#shardLinks[number] !== undefined) for (const each of this.#listeners) each.shardLost?.(number)
    this.#shardLinks[number] = this.#link(front.port1, (body) => {
      for (const each of this.#listeners) each.shardNews?.(number, body as ShardNews)
    })
    // Before anyone can query it. The board's handle is valid in every shard; only in public does it have to be claimed.
    this.tellShard(number, ['handles', [[directory.identity.id, boardHandle], ...this.#options.news.handles.all()]])
    return {
      number,
      shards: this.shards,
      directory: shardDirectory(directory.path, number),
      dataDirectory: directory.path,
      blobs: blobsDirectory(directory.path),
      cursorKey: directory.cursorKey,
      generation: directory.facts.generation,
      layout: directory.facts.layout,
      serviceId: directory.facts.service_id,
      delegationsEnded: directory.facts.delegations_ended ?? 0,
      identity: directory.identity,
      diskReserveBytes,
      segmentBytesMax,
      recentEvents,
      compactSeconds,
      queues,
      limitsOn,
      waitsForStream: this.#waitsForStream,
      isFollower: following !== undefined,
      firstRooms:
        following === undefined
          ? firstRooms(directory).filter(({ name }) => shardOf(name, this.shards) === number)
          : [],
      ends: this.#sharedEnds,
      hold: this.hold,
      front: front.port2,
    }
  }

  /** `through`: where its journal ends, available as soon as it is open. */
  #startShard(number: number): { logPort: Port; through: Promise<number>; start: Promise<Facts> } {
    let logPort: Port | undefined
    const through = Promise.withResolvers<number>()
    const onKnown = (facts: Facts): void => through.resolve(Number(facts.through))
    const thread = this.#supervise({
      name: `shard-${number}`,
      file: threadFile('shard'),
      startData: () => {
        const toLog = this.#options.channel()
        logPort = toLog.port2
        const data: ShardThread = { ...this.#shardStart(number), log: toLog.port1 }
        return { data, transfer: [data.front, toLog.port1] }
      },
      onKnown,
      onRestart: () => {
        this.#logThread?.send({ shard: number, port: logPort! } satisfies ShardBegun, [logPort!])
        for (const each of this.#listeners) each.shardRestarted?.(number)
      },
    })
    this.#shardThreads[number] = thread
    const start = thread.start()
    start.then(onKnown, () => {})
    return { logPort: logPort!, through: through.promise, start }
  }

  /** The options for starting the log, with a new link to it. */
  #logStart(feed: Port): LogStart {
    const { directory, segmentBytesMax } = this.#options
    const front = this.#options.channel()
    this.#logLink = this.#link(front.port1, (body) => {
      const message = body as Published | CopiesTell
      if (!('seq' in message)) return this.#receiveEnds(message)
      const published = message
      this.#noteNews(published.head, published.change)
      this.#published = Math.max(this.#published, published.seq)
      this.#search.tell(this.#published satisfies SearchTell)
      this.#tools.tell(this.#published satisfies ToolsTell)
      for (const each of this.#listeners) each.published?.(published)
    })
    if (this.#acknowledged !== undefined && this.#waitsForStream)
      this.#logLink.tell({ acknowledged: this.#acknowledged } satisfies Acknowledged)
    return {
      dataDirectory: directory.path,
      origin: directory.facts.origin,
      segmentBytesMax,
      marks: this.#options.marks,
      publishing: this.#options.replication?.ack ?? (this.#options.hasFollowers ? 'local' : undefined),
      followed: this.#options.following?.logs,
      ends: this.#sharedEnds,
      front: front.port2,
      feed,
    }
  }

  #startLog(toShards: Port[], feed: Port): Pick<Writing, 'openLog' | 'log'> {
    const openLog = Promise.withResolvers<Facts>()
    const data: LogThread = { ...this.#logStart(feed), toShards }
    this.#logThread = this.#supervise({
      name: 'log',
      file: threadFile('log'),
      startData: () => ({ data, transfer: [data.front, feed, ...toShards] }),
      onKnown: openLog.resolve,
      mayRestart: () => false,
    })
    const log = this.#logThread.start()
    log.catch(openLog.reject)
    return { openLog: openLog.promise, log }
  }

  #startFeed(logPort: Port): Promise<Facts> {
    const { directory } = this.#options
    const front = this.#options.channel()
    this.#feedLink = this.#link(front.port1, (body) => {
      const message = body as FeedTold
      if (message[0] === 'head') this.#noteNews(message[1], message[2])
      else for (const each of this.#listeners) each.feedNews?.(message)
    })
    const data: FeedThread = {
      dataDirectory: directory.path,
      shards: this.shards,
      cursorKey: directory.cursorKey,
      generation: directory.facts.generation,
      serviceId: directory.facts.service_id,
      hold: this.hold,
      front: front.port2,
      log: logPort,
    }
    this.#feedThread = this.#supervise({
      name: 'feed',
      file: threadFile('feed'),
      startData: () => ({ data, transfer: [front.port2, logPort] }),
      mayRestart: () => false,
    })
    return this.#feedThread.start()
  }

  #publishing({ isAwaited, ...settings }: Publishing): LazyThread {
    const { path, facts } = this.#options.directory
    const onMessage = (body: unknown): void => {
      const news = body as ReplicationNews | Acknowledged
      if ('acknowledged' in news) return this.#receiveAcknowledged(news)
      for (const each of this.#listeners) each.replicationNews?.(news)
      if (news.fatal !== undefined)
        this.#options.onFatal('replication', { name: news.fatal, message: news.problem ?? '', stack: '' })
    }
    return this.#late(
      'replication',
      (front) =>
        ({
          dataDirectory: path,
          serviceId: facts.service_id,
          settings,
          ends: this.#ends!,
          from: this.#acknowledged ?? this.#ends!,
          isAwaited,
          isStarted: this.#isStarted,
          front,
        }) satisfies ReplicationThread,
      onMessage,
    )
  }

  #copying(): LazyThread {
    const { path } = this.#options.directory
    return this.#late('copies', (front) => ({ dataDirectory: path, ends: this.#ends!, front }) satisfies CopiesThread)
  }

  /** The log's first message says where the journals end, and so starts the thread that publishes them. Followers start the other one. */
  #receiveEnds(message: CopiesTell): void {
    if (!('rewritten' in message)) this.#ends = message
    if (this.#ends !== undefined && this.#options.replication !== undefined) this.#replication?.wake()
    this.#replication?.tell(message)
    if (!this.#waitsForStream) this.#noteEnds()
  }

  #noteEnds(): void {
    for (const each of this.#listeners) each.endsMoved?.()
  }

  get #waitsForStream(): boolean {
    return (this.#options.replication?.ack ?? 'local') !== 'local'
  }

  /** Waits until the stream has everything on disk up to this frame of the log. Nothing is shown before that. */
  async #acknowledgedStart(through: number): Promise<void> {
    while ((this.#acknowledged?.log ?? -1) < through) {
      await this.#moreAcknowledged.promise
    }
    // Every write waits for this thread, so it is restarted if it was given up after failures.
    this.#stopWaking = this.#options.clock.every(() => this.#replication?.wake(), wakeEveryMs)
  }

  #receiveAcknowledged(message: Acknowledged): void {
    this.#acknowledged = message.acknowledged
    this.#noteEnds()
    if (this.#waitsForStream) {
      this.#logLink?.tell(message)
      this.#logLink?.flush()
    }
    this.#moreAcknowledged.resolve()
    this.#moreAcknowledged = Promise.withResolvers()
  }

  /** Where the journals are durable on this machine. Undefined if not known yet. */
  get durable(): Ends | undefined {
    return this.#ends
  }

  /** How far followers may copy the journals. Undefined if not known yet, or if there are no followers. */
  get ends(): Ends | undefined {
    return this.#waitsForStream ? this.#acknowledged : this.#ends
  }

  /** A follower that has reached these ends shows everything that has been answered up to now. */
  get answered(): Ends {
    return writtenEnds(this.#sharedEnds)
  }

  /** Returns the frames that a follower of this board lacks, after these places. */
  framesAfter(places: readonly JournalPlace[], answer: (found: FramesAnswer | 'busy') => void): void {
    if (this.ends === undefined || this.#replication === undefined) return answer('busy')
    this.#replication.ask<FramesAnswer | null>(['frames', places] satisfies FramesAsk, (found) =>
      answer(found !== null && found !== undefined && 'refusal' in found ? 'busy' : (found ?? undefined)),
    )
  }

  /**
   * On a follower: starts fetching frames. Nobody queries this thread, so it is restarted periodically if it was given up after failures.
   */
  beginToFollow(): void {
    const following = this.#following
    if (following === undefined) return
    following.wake()
    this.#stopWaking = this.#options.clock.every(() => following.wake(), wakeEveryMs)
  }

  #follow({ settings, shared }: Following): LazyThread {
    const { directory, diskReserveBytes } = this.#options
    const { path, facts } = directory
    const start = (front: Port) =>
      ({
        dataDirectory: path,
        serviceId: facts.service_id,
        settings,
        shared,
        diskReserveBytes,
        front,
      }) satisfies FollowingThread
    const onMessage = (body: unknown): void => {
      const message = body as FollowingTell
      for (const each of this.#listeners)
        if ('vacantAfter' in message) each.vacant?.(message.vacantAfter)
        else each.standing?.(message)
    }
    return this.#late('following', start, onMessage, (body, give) => this.#followingAsk(body as FollowingAsk, give))
  }

  #followingAsk([, shares]: FollowingAsk, give: (answer: FollowingAnswer) => void): void {
    takeFrames({ shards: this.#shardLinks, log: this.#logLink! }, shares, (taken) => {
      if (!taken.ok) return give(taken)
      give({ ok: true, places: taken.places })
      this.noteChange(taken.change)
      // The feed answers once it shows this change and has notified the main thread.
      this.askFeed(['reached', null, taken.change], () => {
        for (const each of this.#listeners) each.followed?.(taken.ends, taken.acts)
      })
      if (taken.isOver) this.#options.onFatal('log', anotherLog)
    })
  }

  #late(
    name: ThreadName,
    data: (front: Port) => unknown,
    onTell?: (body: unknown) => void,
    onAsk?: (body: unknown, give: (answer: unknown) => void) => void,
  ): LazyThread {
    return new LazyThread({
      name,
      file: threadFile(name),
      data,
      channel: this.#options.channel,
      link: (port) => this.#link(port, onTell, onAsk),
      now: this.#options.clock.monotonicMs,
      supervise: (options) => this.#supervise(options),
    })
  }

  #link(
    port: Port,
    onTell?: (body: unknown) => void,
    onAsk?: (body: unknown, give: (answer: unknown) => void) => void,
  ): Link {
    const link: Link = new Link({
      port,
      openMax: this.#options.queues.openAsks,
      patienceMs: internalLimits.patienceMs,
      now: this.#options.clock.monotonicMs,
      timers: this.#options.clock,
      onReceived: this.#options.onBytesReleased,
      ...(onTell === undefined ? {} : { onTell }),
      ...(onAsk === undefined ? {} : { onAsk: (body, id) => onAsk(body, (answer) => link.answer(id, answer)) }),
    })
    return link
  }

  #supervise(options: {
    name: string
    file: URL
    startData: () => { data: unknown; transfer: readonly Port[] }
    onKnown?: (facts: Facts) => void
    onRestart?: (facts: Facts) => void
    mayRestart?: (error: ThreadError) => boolean
    onFatal?: (name: string, error: ThreadError) => void
  }): Supervised {
    return new Supervised({
      mayRestart: mayBeForgotten,
      onFatal: this.#options.onFatal,
      startThread: this.#options.startThread,
      ...options,
      onEvent: log,
      now: this.#options.clock.monotonicMs,
      timers: this.#options.clock,
    })
  }
}

/** After a failed sync, nothing read back can be trusted; and damage does not go away by reading again. */
function mayBeForgotten({ name }: ThreadError): boolean {
  return !['SyncFailed', 'Damage', 'Poisoned'].includes(name)
}

/** Wraps the callback for an answer from a link. */
function given<Answer>(answer: (answer: Answer | Unanswered | NoAnswer) => void) {
  return withCause((answered: Answered<Answer, undefined>) => answer(answered.ok ? answered.body : refusalOf(answered)))
}

/** Requests for private data have a reader. */
function isOfReader([kind, asked]: ShardAsk): boolean {
  return kind !== 'hooks' && asked.reader !== ''
}

const anotherLog: ThreadError = {
  name: 'LogRotated',
  message: 'the leader closed its log and began another: restart this follower',
  stack: '',
}

/** A link that was full refused immediately: a refusal. In any other case the outcome is unknown, so the caller gets no answer. */
function refusalOf({ silence }: Extract<Answered<unknown, unknown>, { ok: false }>): Unanswered | NoAnswer {
  return silence === 'overloaded' ? overloaded : undefined
}
