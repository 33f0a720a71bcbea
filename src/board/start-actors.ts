/** Starts the actors, the heads that their log signs, and the interfaces through which every other part queries them. */

import { queuesOf } from '../../actors/kernel/limits.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import { nameOf } from '../../actors/log/book.ts'
import type { ClosedLog } from '../../actors/log/frame.ts'
import { shardOf } from '../../actors/shard.ts'
import type { BlobFiles } from '../../storage/blob-files.ts'
import { sweepBlobs } from '../attachments/routes.ts'
import { type BoardDirectory, logDirectory, shardDirectories } from '../board-directory.ts'
import { ClockWatch, newestStamp } from '../clock-jumps.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { acceptsFollowers, type Config, type Placement } from '../config.ts'
import { queryRegistry } from '../delegations/plans.ts'
import { explainFailure } from '../failure.ts'
import { checkProofs } from '../log/covered.ts'
import { Heads } from '../log/heads.ts'
import { type HighWaterMark, MarkKeeper } from '../log/mark.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import type { Notices } from '../notices.ts'
import { log } from '../observe.ts'
import type { Parts } from '../parts.ts'
import type { Platform } from '../platform.ts'
import { dataOf } from '../reads/read.ts'
import type { FollowerFront } from '../replication/follower-front.ts'
import type { keptFromLeading, RefusedLead } from '../replication/may-lead.ts'
import { sharedSettings } from '../replication/shared-settings.ts'
import { ActorHost, type Following } from '../workers/actor-host.ts'
import { BufferedNews } from '../workers/buffered-news.ts'
import type { FeedStats } from '../workers/feed-answers.ts'
import { ClockNotice } from './clock-notice.ts'
import { watchDisk } from './disk-notice.ts'
import { ReadRouter } from './read-router.ts'
import { Vacancy } from './vacancy.ts'

export type StartedActors = {
  readonly actorHost: ActorHost
  /** News about works that shards have reported since they started. */
  readonly workNews: BufferedNews
  readonly heads: Heads
  readonly reads: ReadRouter
  /** Every log of the board, oldest first. */
  readonly logs: readonly LogIdentity[]
  /** The closed logs, oldest first; each has a successor. */
  readonly closed: readonly ClosedLog[]
  /** The log that is being appended to. */
  readonly log: LogIdentity
}

/** A board for which another machine decides. */
type Follower = {
  readonly front: FollowerFront
  readonly logs: readonly LogIdentity[]
  readonly keptFromLeading: typeof keptFromLeading
}

type ActorsOptions = Platform & {
  readonly config: Config
  readonly directory: BoardDirectory
  readonly placement: Placement
  /** Public address of the board. */
  readonly address: string
  readonly news: LiveFacts
  readonly notices: Notices
  readonly marks: readonly HighWaterMark[]
  /** Files of attachments. */
  readonly files: BlobFiles
  /** Set if another machine decides. */
  readonly follower?: Follower | undefined
  /** Called when that machine is gone, with the last message of the stream. */
  readonly onVacant?: (after: number) => void
  readonly refusedLead?: RefusedLead | undefined
}

/** Resolves when every actor answers and the front has loaded what it caches from the registry. */
export async function startActors(parts: Parts, options: ActorsOptions): Promise<StartedActors> {
  const { config, clock, random, disk, news, files, address } = options
  checkProofs(disk, config.dataDirectory, options.directory.facts.shards)
  const mark = new MarkKeeper(config, options, options.follower === undefined ? [] : options.marks)
  await parts.start({ name: 'mark', stop: () => mark.close() })
  const workNews = new BufferedNews(['carry', 'at rest', 'requested'])
  const { actorHost, facts } = await startThreads(options, workNews)
  await parts.start({ name: 'actors', stop: () => actorHost.stop() })
  const clockNotice = await clockNoticeOf(options, actorHost, facts.newest)
  await parts.start({ name: 'clock', stop: () => clockNotice.stop() })
  await parts.start({ name: 'disk', stop: watchDisks(options) })
  const heads = new Heads({
    ...config,
    mark,
    clock,
    random,
    disk,
    logs: facts.logs,
    closed: facts.closed,
    publicHost: new URL(address).host,
    consistency: (origin, from, to) => consistencyPath(actorHost, origin, from, to),
    onRollback: exitFatally(options),
  })
  actorHost.listen({ published: ({ head }) => heads.note(head) })
  await parts.start(
    { name: 'heads', start: () => heads.begin(news.head), stop: () => heads.close(news.head) },
    {
      name: 'delegations',
      start: () => news.delegates.begin((answer) => queryRegistry(actorHost, 'delegation.known', answer)),
    },
    { name: 'limits', start: () => news.grants.begin((answer) => queryRegistry(actorHost, 'limits.known', answer)) },
    {
      name: 'attachments',
      start: () =>
        sweepBlobs(files, (room, answer) =>
          actorHost.readPrivate(
            shardOf(room, actorHost.shards),
            { op: 'blob.needed', args: { room }, reader: '' },
            answer,
          ),
        ),
    },
    // Started after the attachments: a file must exist before the record that names it, and the sweep would remove it until then.
    { name: 'following', start: () => actorHost.beginToFollow() },
  )
  const growing = facts.logs.at(-1)!
  const reads = new ReadRouter({
    actors: actorHost,
    news,
    log: growing,
    heads,
    limitsOn: config.limitsOn,
    clock,
  })
  return { actorHost, workNews, heads, reads, logs: facts.logs, closed: facts.closed, log: growing }
}

async function startThreads(options: ActorsOptions, workNews: BufferedNews) {
  const { config, directory, placement, news, notices, marks, files, clock, disk, exit } = options
  const { startThread, channel, onBytesReleased } = options
  const started = await ActorHost.start({
    clock,
    disk,
    startThread,
    channel,
    onBytesReleased,
    directory,
    placement,
    diskReserveBytes: config.diskReserveBytes,
    segmentBytesMax: config.segmentBytesMax,
    recentEvents: config.recentEvents,
    compactSeconds: config.compactSeconds,
    scrubBytesPerSecond: config.scrubBytesPerSecond,
    queues: queuesOf(config.queueMax),
    limitsOn: config.limitsOn,
    replication: config.replication && { ...config.replication, isAwaited: await isAwaited(options) },
    hasFollowers: acceptsFollowers(config),
    following: followingOf(options),
    marks,
    news,
    listeners: [
      workNews,
      ...(options.follower === undefined ? [] : [options.follower.front, vacancyOf(options, () => started.facts.logs)]),
      {
        feedNews: (update) => {
          if (update[0] !== 'changed') return
          for (const [id, handle] of update[2]) news.handles.set(id, handle)
          news.notePeople(update[3])
          for (const [room, change] of update[1]) news.noteChange(room, change)
        },
        shardRestarted: (shard) => news.shardRestarted(shard, directory.facts.shards),
        replicationNews: ({ problem }) => {
          if (problem === undefined) notices.end('replication')
          else notices.set('replication', problem)
        },
      },
      {
        shardNews: (_shard, update) => {
          if (update[0] === 'unneeded') for (const [room, sha256] of update[1]) files.drop(room, sha256)
        },
      },
    ],
    onFatal: (thread, words) => exitFatally({ exit })({ ...words, thread }),
  })
  const { published, handles, people } = started.facts
  news.noteHead(published.head, published.change)
  const tellShards = (known: readonly (readonly [identity: string, handle: string])[]) => {
    for (let shard = 0; shard < started.actorHost.shards; shard++)
      started.actorHost.tellShard(shard, ['handles', known])
  }
  for (const [id, handle] of handles) news.handles.set(id, handle)
  tellShards(news.handles.all())
  news.handles.onNew((identity, handle) => tellShards([[identity, handle]]))
  news.notePeople(people)
  return started
}

/** `logs`: the logs of the board, once they are open. */
function vacancyOf(
  { disk, clock, config, directory, news, notices, onVacant = () => {}, follower, refusedLead }: ActorsOptions,
  logs: () => readonly LogIdentity[],
): Vacancy {
  const { origin } = directory.facts
  const problem = (after?: number): string | undefined => {
    const found = follower?.keptFromLeading({ disk, config, origin, logs: logs(), head: news.head })
    if (found !== undefined || refusedLead === undefined) return found
    return refusedLead.after === after && clock.monotonicMs() < refusedLead.untilMs ? refusedLead.problem : undefined
  }
  return new Vacancy({ problem, notices, onVacant, reported: refusedLead?.problem })
}

/** The newest record of all tells when the board last ran. */
async function clockNoticeOf(
  { disk, clock, directory, notices }: ActorsOptions,
  actorHost: ActorHost,
  shards: readonly number[],
): Promise<ClockNotice> {
  const logged = await new Promise<number>((resolve) =>
    actorHost.askFeed<FeedStats>(['stats', null, 0], (stats) =>
      resolve(stats === undefined || 'refusal' in stats ? 0 : stats.checkpointAt),
    ),
  )
  const newest = newestStamp(logged, shards, clock.wallSeconds())
  const watch = new ClockWatch({ clock, disk, directory: directory.path, newest, report: log })
  return new ClockNotice({ watch, clock, hold: actorHost.hold, notices, report: log })
}

function watchDisks({ disk, clock, config, directory: { path, facts }, notices }: ActorsOptions): Cancel {
  const directories = [...shardDirectories(path, facts.shards), logDirectory(path)]
  return watchDisk({ disk, clock, directories, reserveBytes: config.diskReserveBytes, notices })
}

/** The stored stream state still says that writes wait for acknowledgments, but by the current configuration they do not. */
async function isAwaited({ config: { replication }, disk, directory }: ActorsOptions): Promise<boolean> {
  if (replication === undefined || replication.ack !== 'local') return false
  const { streamStateIn } = await import('../replication/writer.ts')
  return streamStateIn(disk, directory.path)?.ack === 'quorum'
}

function followingOf({ config, follower }: ActorsOptions): Following | undefined {
  const { follow } = config
  if (follow === undefined || follower === undefined) return undefined
  const { front, logs } = follower
  return { settings: follow, shared: sharedSettings(config), logs, refusal: () => front.refusal, behind: front.behind }
}

/** Exit codes of a running board. */
const cannotContinue = 70
const isReplaced = 75

/** The process cannot continue: its supervisor restarts it, and it recovers, or follows the box that has taken over. */
export function exitFatally({ exit }: Pick<Platform, 'exit'>): (error: unknown) => void {
  return (error) => {
    if (Object(error).name === 'Deposed') {
      log('warn', 'replaced', explainFailure(error))
      return exit(isReplaced)
    }
    log('error', 'fatal', explainFailure(error))
    exit(cannotContinue)
  }
}

/** Queries the feed as any client would. */
function consistencyPath(
  actorHost: ActorHost,
  origin: string,
  from: number,
  to: number,
): Promise<Buffer[] | undefined> {
  return new Promise((resolve) =>
    actorHost.read({ op: 'log.consistency', args: { log: nameOf(origin), from, to }, reader: '' }, (found) => {
      if (found === undefined || !found.ok) return resolve(undefined)
      const { consistency_path } = dataOf(found)
      resolve(consistency_path.map((hash) => Buffer.from(hash, 'hex')))
    }),
  )
}
