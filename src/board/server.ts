/**
 * The server: the list of its parts, started in order and stopped in reverse. All wiring is here; newcomers should read this file first.
 */

import { createHmac } from 'node:crypto'
import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { streamPath } from '../../actors/follow/stream.ts'
import { internalLimits, queuesOf, sizes } from '../../actors/kernel/limits.ts'
import { nameOf } from '../../actors/log/book.ts'
import { shardOf } from '../../actors/shard.ts'
import { BlobFiles } from '../../storage/blob-files.ts'
import { lockDirectory } from '../../storage/lock.ts'
import { BlobIntake } from '../attachments/intake.ts'
import { Takedowns } from '../attachments/takedowns.ts'
import {
  type BoardDirectory,
  blobsDirectory,
  followerFile,
  isLeaderDirectory,
  logDirectory,
  nodesFile,
  openBoardDirectory,
  replicationFile,
  UnusableDirectory,
} from '../board-directory.ts'
import { drained } from '../clock.ts'
import { LiveFacts } from '../command/live-facts.ts'
import { BoardAuthor } from '../command/ports.ts'
import { acceptsFollowers, type Config, type Placement } from '../config.ts'
import { metricsText } from '../docs/figures.ts'
import { BadConfig, prepareEngineEnvironment } from '../environment.ts'
import { completeReshard } from '../exchange.ts'
import { BoardSigner } from '../format/signer.ts'
import { type NeededAttachments, Scrubber } from '../fsck/scrubber.ts'
import { ClientAddresses } from '../http/client-address.ts'
import { ConnectionCount } from '../http/connection-count.ts'
import { createHttpServer, logFault, portOptions } from '../http/engine.ts'
import { type Exchange, type Handler, type HttpServer, headBytesMax, type RouteHandler } from '../http/port.ts'
import { Replies } from '../http/replies.ts'
import { addressToListen, freePort, hostText } from '../listening.ts'
import { type HighWaterMark, readMarks, refuseForeignMark, refuseNewBoard } from '../log/mark.ts'
import type { LogIdentity } from '../log/signed-log.ts'
import { judge } from '../moderation/advertising.ts'
import { AuthorPosts } from '../moderation/author-posts.ts'
import { httpClassifier } from '../moderation/classifier.ts'
import { hideBy, resumeScreening, Screening, ScreeningQueue } from '../moderation/screening.ts'
import { Notices } from '../notices.ts'
import { Counters, DurationHistograms, log, setLogLevel } from '../observe.ts'
import type { Outgoing } from '../outgoing/request.ts'
import { Parts } from '../parts.ts'
import type { Wallet } from '../payments/wallet.ts'
import { machine, type Platform } from '../platform.ts'
import { Throttle } from '../rates/throttle.ts'
import { dataOf, type ReadRequest } from '../reads/read.ts'
import { Deliveries } from '../receive-urls/deliveries.ts'
import { ItemPosts } from '../receive-urls/item-posts.ts'
import type { FollowerFront } from '../replication/follower-front.ts'
import type { keptFromLeading, RefusedLead } from '../replication/may-lead.ts'
import { sharedSettings } from '../replication/shared-settings.ts'
import { chooseBackend } from '../verify/backends.ts'
import { type Checks, ChecksHere, SharedChecks, Verifier } from '../verify/verifier.ts'
import type { ActorHost } from '../workers/actor-host.ts'
import { Clerks } from '../workers/clerks.ts'
import { HttpThreads } from '../workers/http-threads.ts'
import { WebhookThread } from '../workers/webhook-thread.ts'
import { boardRoutes } from './board-routes.ts'
import { CommandRouter } from './command-router.ts'
import { BoardFigures } from './figures-routes.ts'
import { Followers } from './followers.ts'
import { applyLostActs } from './lost-acts.ts'
import { openStreams } from './open-streams.ts'
import { type Calling, startCalling } from './open-tool-calls.ts'
import { openWorks, type Works } from './open-works.ts'
import { exitFatally, type StartedActors, startActors } from './start-actors.ts'

export type RunningServer = {
  readonly address: string
  /** The text of /metrics; undefined if the metrics could not be collected. */
  metrics(): Promise<string | undefined>
  /** The text of /healthz. */
  health(): string
  /** Of a follower that may lead: resolves when its leader is gone, with the last message of the stream. */
  readonly vacant: Promise<number>
  close(): Promise<void>
}

const drainMs = 8_000
const flushMs = 500

/**
 * Starts a board; resolves when it answers. `refusedLead`: for a follower that may lead. Rejects with an error that src/failure.ts
 * explains.
 */
export async function startServer(
  config: Config,
  platform: Platform = machine,
  refusedLead?: RefusedLead,
): Promise<RunningServer> {
  setLogLevel(config.logLevel)
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const address = config.baseUrl === '' ? `http://${hostText(config.host)}:${port}` : config.baseUrl
  if (!URL.canParse(address)) {
    throw new BadConfig(
      `"${address}" is not an address of a website. Set HOST to a name or an IP address, or set BASE_URL.`,
    )
  }
  if (acceptsFollowers(config)) {
    // Before a new board gets its permanent name, or an old one reads its files.
    const { replicaKeyIn } = await import('../replication/replica-key.ts')
    replicaKeyIn(platform.disk, config.replicaKeyFile)
  }
  // A new log is permanently named after this address, so nothing is created for a port that is taken.
  if (config.follow === undefined && !isLeaderDirectory(platform.disk, config.dataDirectory))
    await addressToListen(config.host, port)
  platform.disk.makeDirectory(config.dataDirectory)
  const lock = await lockDirectory(config.dataDirectory)
  const parts = new Parts()
  const vacant = Promise.withResolvers<number>()
  let figures: BoardFigures
  let isNew = false
  await parts.start({ name: 'directory lock', stop: () => lock.release() })
  try {
    completeReshard(platform.disk, config.dataDirectory)
    const marks = readMarks(platform.disk, config)
    await refuseConflictingStart(config, platform)
    const followed = await followedBy(config, platform)
    if (followed !== undefined) for (const mark of marks) refuseForeignMark(mark, followed.logs)
    const directory =
      followed?.directory ??
      openBoardDirectory({
        disk: platform.disk,
        path: config.dataDirectory,
        serviceId: config.serviceId,
        publicHost: new URL(address).host,
        shards: config.shards === 0 ? Math.max(1, availableParallelism() >> 1) : config.shards,
        now: platform.clock.wallSeconds(),
        random: platform.random,
        beforeCreating: () => {
          refuseNewBoard(marks, config.dataDirectory)
          isNew = true
        },
      })
    if (isNew) log('info', 'board.created', { directory: directory.path, service_id: directory.facts.service_id })
    const placement = placementOf(config, directory.facts.shards)
    figures = await startBoard(parts, {
      ...platform,
      config,
      directory,
      placement,
      marks,
      address,
      port,
      followed,
      onVacant: vacant.resolve,
      refusedLead,
    })
  } catch (error) {
    if (isNew) log('info', 'board.stays', { directory: config.dataDirectory, note: boardStays })
    lock.release()
    throw await explainOldCopy(error, config, platform)
  }
  let closing: Promise<void> | undefined
  return {
    address,
    metrics: () =>
      new Promise((resolve) =>
        figures.collect((found) => resolve(found === undefined ? undefined : metricsText(found))),
      ),
    health: () => figures.health,
    vacant: vacant.promise,
    close: () => {
      closing ??= stop(parts)
      return closing
    },
  }
}

async function stop(parts: Parts): Promise<void> {
  log('info', 'stopping')
  await parts.stop()
  log('info', 'stopped')
}

type Place = Platform & {
  readonly config: Config
  readonly directory: BoardDirectory
  readonly placement: Placement
  readonly marks: readonly HighWaterMark[]
  /** Public address of the board. */
  readonly address: string
  readonly port: number
  /** Set on a follower. */
  readonly followed?: Followed | undefined
  readonly onVacant?: (after: number) => void
  readonly refusedLead?: RefusedLead | undefined
  /** Replaces the network for tool calls and probes in a simulation. */
  readonly outgoing?: Outgoing
  /** Replaces the file of the wallet in a simulation. */
  readonly wallet?: Wallet
}

/** A board for which another machine decides: its directory, the logs that heads are checked against, and what makes its front. */
type Followed = {
  readonly directory: BoardDirectory
  readonly logs: readonly LogIdentity[]
  readonly front: (parts: { readonly notices: Notices; readonly news: LiveFacts }) => FollowerFront
  readonly keptFromLeading: typeof keptFromLeading
}

const boardStays =
  'This start created the board, and nobody has seen anything of it. The next start uses it, with the name that its log has now. To begin anew, for example with another BASE_URL, remove the directory first.'

/** Refuses a start that would contradict the stream of an earlier run. Throws UnusableDirectory. */
async function refuseConflictingStart(
  { follow, replication, dataDirectory }: Config,
  { disk }: Platform,
): Promise<void> {
  const file = replicationFile(dataDirectory)
  if (follow !== undefined || !disk.fileExists(file) || disk.fileExists(followerFile(dataDirectory))) return
  const { streamStateIn } = await import('../replication/writer.ts')
  const state = streamStateIn(disk, dataDirectory)
  if (state?.handsOver)
    throw new UnusableDirectory(
      `A hand-over of ${dataDirectory} has started, and another board may already accept writes. Run broadside hand-over again to complete it.`,
    )
  if (state?.ack === 'quorum' && replication === undefined)
    throw new UnusableDirectory(
      `This board has answered by quorum, so another board may lead now. Start it with REPLICATE, or, if no other board leads, remove ${file}.`,
    )
}

/** The same error, except for an old copy whose missing records other boxes have: it must not be restored, nor may its log be ended. */
async function explainOldCopy(error: unknown, { dataDirectory }: Config, { disk }: Platform): Promise<unknown> {
  if (Object(error).name !== 'RolledBack' || !disk.fileExists(replicationFile(dataDirectory))) return error
  const [{ streamStateIn }, { Halted, staleBoardAdvice }] = await Promise.all([
    import('../replication/writer.ts'),
    import('../replication/halted.ts'),
  ])
  if (streamStateIn(disk, dataDirectory)?.ack !== 'quorum') return error
  return new Halted(`${(error as Error).message}. ${staleBoardAdvice}`)
}

/** Undefined unless the board follows another. Only then are these modules loaded. */
async function followedBy(config: Config, { disk, clock, random }: Platform): Promise<Followed | undefined> {
  const { follow: settings, dataDirectory: path, segmentBytesMax } = config
  if (settings === undefined) return undefined
  if (config.lead !== undefined && isLeaderDirectory(disk, path)) {
    const [{ standDown }, { openStream }] = await Promise.all([
      import('../replication/stand-down.ts'),
      import('../replication/open-stream.ts'),
    ])
    if (!(await standDown({ disk, clock, config, settings: config.lead, openStream, report: log })))
      throw new UnusableDirectory(
        `${path} is the leader. Start it with broadside serve, or hand over leadership first: broadside hand-over.`,
      )
  }
  const [{ openFollower }, { FollowerFront }, { leaderOf }, { keptFromLeading }] = await Promise.all([
    import('../replication/follower-directory.ts'),
    import('../replication/follower-front.ts'),
    import('../replication/leader.ts'),
    import('../replication/may-lead.ts'),
  ])
  const leader = leaderOf(settings, { disk, clock })
  const { directory, logs } = await openFollower({
    disk,
    path,
    random,
    segmentBytesMax,
    leader,
    mayLead: settings.lead !== undefined,
  })
  return { directory, logs, front: (parts) => new FollowerFront({ ...parts, clock, leader }), keptFromLeading }
}

type ReplicaRoutes = {
  readonly routes: Readonly<Record<string, RouteHandler>>
  /** Answers the followers that wait for frames. */
  readonly close: () => void
}

/** Endpoints for followers of this board; none if it accepts no followers. */
export async function replicaRoutes(board: OpenBoard): Promise<ReplicaRoutes> {
  const { config } = board
  if (!acceptsFollowers(config)) return { routes: {}, close: () => {} }
  const [{ AwaitedFrames }, { replicaRoute }, { replicaKeyIn }, { streamStateIn }] = await Promise.all([
    import('../replication/awaited-frames.ts'),
    import('../replication/routes.ts'),
    import('../replication/replica-key.ts'),
    import('../replication/writer.ts'),
  ])
  const { actorHost, clock, disk, directory, webhookThread } = board
  const frames = new AwaitedFrames({
    clock,
    frames: (places, answer) => actorHost.framesAfter(places, answer),
  })
  actorHost.listen({ endsMoved: frames.moved })
  return {
    close: () => frames.close(),
    routes: {
      '/replica/': replicaRoute({
        ...board,
        key: replicaKeyIn(disk, config.replicaKeyFile),
        settings: sharedSettings(config),
        epoch: streamStateIn(disk, directory.path)?.epoch ?? 1,
        answered: () => actorHost.answered,
        ends: () => actorHost.ends,
        durable: () => actorHost.durable,
        frames: frames.ask,
        deliveries: () => webhookThread.leaderPositions(),
      }),
    },
  }
}

/** Everything of a board except its port: the actors, and the parts that answer in front of them. */
export async function openBoard(parts: Parts, place: Place) {
  const base = baseOf(place)
  const actors = await startActors(parts, base)
  const verifier = await startVerifier(place)
  await parts.start({ name: 'verifier', stop: () => verifier.close() })
  const services = await servicesOf({ ...base, ...actors, verifier })
  return { ...base, ...actors, verifier, ...services }
}

type OpenBoard = Awaited<ReturnType<typeof openBoard>>

/** Starts what the board does on its own, and continues what an earlier run left open. */
export async function resumeBoard(parts: Parts, board: OpenBoard): Promise<void> {
  const { works, authorPosts, takedowns, webhookThread, calling, itemPosts } = board
  const { disk, directory, boardAuthor, front, clock } = board
  await parts.start(
    {
      name: 'acts of a lost board',
      start: () => applyLostActs({ disk, path: directory.path, boardAuthor, front, later: clock.later, report: log }),
    },
    { name: 'works', start: () => works.resume(), stop: () => works.close() },
    { name: 'author posts', start: () => authorPosts.resume(), stop: () => authorPosts.close() },
    { name: 'takedowns', start: () => takedowns.resume(), stop: () => takedowns.close() },
    { name: 'webhooks', start: () => webhookThread.resume(), stop: () => webhookThread.stop() },
    { name: 'tool calls', start: () => calling.resume(), stop: () => calling.close() },
    { name: 'item posts', start: () => itemPosts.resume(), stop: () => itemPosts.close() },
  )
}

/** Starts the parts in order; they are stopped in reverse. */
async function startBoard(parts: Parts, place: Place): Promise<BoardFigures> {
  const board = await openBoard(parts, place)
  const { config, news, connections, actorHost, verifier, followers, streams, screeningQueue, follower } = board
  const replica = await replicaRoutes(board)
  const { routes, exports, pages, described } = boardRoutes({ ...board, replicaRoutes: replica.routes })
  prepareEngineEnvironment(headBytesMax)
  const handle = (exchange: Exchange) => routes.handle(follower?.front.mark(exchange) ?? exchange)
  const httpThreads = httpThreadsOf(config)
  const http = await startHttp(board, handle, httpThreads)
  await parts.start({ name: 'pages', stop: () => pages.close() }, { name: 'http', stop: () => http.close() })
  const scrubber = scrubberOf(board)
  const isQuiet = () => actorHost.open + verifier.waiting + exports.moving === 0
  await parts.start(
    // The last answers are still in the sockets, and each answer closes its connection.
    { name: 'connections', stop: () => drained(place.clock, () => connections.open === 0, flushMs) },
    { name: 'requests', stop: () => drained(place.clock, isQuiet, drainMs) },
    { name: 'scrubber', start: () => scrubber.start(), stop: () => scrubber.stop() },
  )
  // Works, webhooks, and screening run only on the leader.
  if (follower === undefined) await resumeBoard(parts, board)
  await parts.start(
    { name: 'followers', stop: () => followers.close() },
    { name: 'streams', stop: () => streams.close() },
    { name: 'waiting followers of this board', stop: () => replica.close() },
    { name: 'listener', start: () => http.listen(config.host, place.port), stop: () => http.stopAccepting() },
  )
  actorHost.started()
  log('info', 'ready', {
    address: place.address,
    engine: http.engine,
    http_threads: httpThreads,
    verifier: verifier.backend,
    shards: actorHost.shards,
    placement: place.placement,
    service_id: described.serviceId,
    tree_size: news.head.size,
  })
  if (follower !== undefined) return board.figures
  reportLogName(place, board.log.origin, news.head.size)
  resumeScreening(actorHost, screeningQueue, config.operators, place.clock.wallSeconds())
  return board.figures
}

/** With few cores, the main thread holds the connections itself: an extra thread would cost more than it gains. */
function httpThreadsOf({ httpThreads }: Config): number {
  const canShare = process.platform === 'linux'
  if (httpThreads > 1 && !canShare)
    throw new BadConfig(
      `HTTP_THREADS=${httpThreads} needs Linux, where threads can share a port. Set HTTP_THREADS=1, or leave it out.`,
    )
  if (httpThreads !== 0) return httpThreads
  return canShare && availableParallelism() >= httpThreadsFromCores ? 2 : 1
}

async function startHttp(board: OpenBoard, handler: Handler, threads: number): Promise<HttpServer> {
  const { config, clock, connections, figures } = board
  const bodies = { ...internalLimits.arrivingBodies, trustedProxy: config.trustedProxy }
  const http = { ...portOptions(connections, clock), socketPath: streamPath, bodies }
  if (threads === 1) return createHttpServer(config.engine, handler, http)
  const server = await HttpThreads.start({
    ...board,
    engine: config.engine,
    threads,
    handler,
    http,
    bodyBytesMax: sizes.body_bytes,
    onFatal: (thread, words) => exitFatally(board)({ ...words, thread }),
  })
  figures.alsoOf(() => server.usage())
  return server
}

function scrubberOf(board: OpenBoard): Scrubber {
  const { disk, clock, directory, config, notices, counters, actorHost, closed, log: growing, news } = board
  return new Scrubber({
    disk,
    clock,
    directory: directory.path,
    shards: directory.facts.shards,
    bytesPerSecond: config.scrubBytesPerSecond,
    attachments: neededAttachments(actorHost),
    trees: () =>
      [...closed, { origin: growing.origin, size: news.head.size }].map(({ origin, size }, place) => ({
        path: nodesFile(logDirectory(directory.path), place === 0 ? '' : nameOf(origin)),
        leaves: size,
      })),
    repairTree: (path) => actorHost.repairTree(path),
    notices,
    counters,
    report: log,
  })
}

function neededAttachments(actorHost: ActorHost): NeededAttachments {
  const ask = (shard: number, request: ReadRequest<'blob.rooms' | 'blob.needed'>) =>
    new Promise<readonly string[] | undefined>((resolve) =>
      actorHost.readPrivate(shard, request, (found) => resolve(found?.ok === true ? dataOf(found) : undefined)),
    )
  const shards = Array.from({ length: actorHost.shards }, (_, shard) => shard)
  return {
    rooms: async () => {
      const parts = await Promise.all(shards.map((shard) => ask(shard, { op: 'blob.rooms', args: {}, reader: '' })))
      return parts.every((part) => part !== undefined) ? parts.flat() : undefined
    },
    filesOf: (room) => ask(shardOf(room, actorHost.shards), { op: 'blob.needed', args: { room }, reader: '' }),
  }
}

/** The name of a log is signed with each of its heads, so it stays as it was when the log began. */
function reportLogName({ config, address }: Place, origin: string, size: number): void {
  const named = origin.slice(0, origin.indexOf('/'))
  const { hostname } = new URL(`http://${named}`)
  const isPublic = hostname !== 'localhost' && isIP(hostname.replace(/^\[|\]$/g, '')) === 0
  const rotating = 'broadside log rotate closes this log and begins one that is named after BASE_URL.'
  if (config.baseUrl === '' && !isPublic && size <= 1)
    log('info', 'log.named', {
      log: origin,
      note: 'The name of a log is permanent. Set BASE_URL to the public address before anybody uses this board: in a new DATA_DIR, or with broadside log rotate.',
    })
  if (new URL(address).host === named) return
  if (config.baseUrl === '' && isPublic)
    log('warn', 'log.of_another_address', {
      log: origin,
      address,
      note: `BASE_URL is not set, so links and answers name ${address}. Set BASE_URL to the public address of this board, such as https://${named}.`,
    })
  if (config.baseUrl !== '')
    log('warn', 'log.of_another_address', {
      log: origin,
      base_url: config.baseUrl,
      note: isPublic ? `Correct BASE_URL if it is misspelled. If the board has moved: ${rotating}` : rotating,
    })
}

/** From this many cores on, the main thread is the bottleneck, so clerks parse for it. */
const clerksFromCores = 4
/** From this many cores on, connections get their own threads. */
const httpThreadsFromCores = 16

/** With one or two cores, an extra thread costs more than it gains. */
function placementOf({ placement }: Config, shards: number): Placement {
  if (placement === 'back' && shards > 1) {
    throw new BadConfig(
      `PLACEMENT=back runs one shard and the log in one thread, and this board has ${shards} shards. Set PLACEMENT=threads, or leave it out.`,
    )
  }
  if (placement !== 'auto') return placement
  const cores = availableParallelism()
  if (cores >= clerksFromCores) return 'clerks'
  return shards === 1 && cores <= 2 ? 'back' : 'threads'
}

/** Parts that others may need and that need no start. */
function baseOf(place: Place) {
  const { config, directory, clock } = place
  const news = new LiveFacts(clock)
  const throttle = new Throttle({ on: config.limitsOn, now: clock.monotonicMs, factors: news.grants })
  const addresses = new ClientAddresses(config.trustedProxy, (event, facts) => log('warn', event, facts))
  const addressOf = (exchange: Exchange) => addresses.of(exchange)
  const counters = new Counters()
  const notices = new Notices()
  const { followed } = place
  const follower = followed && { ...followed, front: followed.front({ notices, news }) }
  const durations = new DurationHistograms()
  const replies = new Replies({ throttle, addressOf, onReply: (status) => counters.reply(status) })
  const files = new BlobFiles(place.disk, blobsDirectory(directory.path), (file, problem) =>
    log('error', 'blob.not_removed', { file, problem: String(problem) }),
  )
  const connections = new ConnectionCount()
  const secret = createHmac('sha256', directory.identity.seed).update('broadside-names-v1').digest()
  return {
    ...place,
    news,
    throttle,
    addressOf,
    counters,
    notices,
    durations,
    replies,
    files,
    connections,
    secret,
    follower,
  }
}

/** A JavaScript backend takes milliseconds per signature, so signatures are never checked in the main thread. */
async function startVerifier({ config, directory, placement, clock, ...machine }: Place): Promise<Checks> {
  const cores = availableParallelism()
  const threads = config.verifyThreads === 0 ? Math.max(1, cores >> 1) : config.verifyThreads
  const { signatures: waitingMax } = queuesOf(config.queueMax)
  if (placement === 'clerks')
    return Clerks.start({
      ...machine,
      clock,
      threads,
      waitingMax,
      serviceId: directory.facts.service_id,
      proofBits: config.proofBits,
      onFatal: (thread, words) => exitFatally(machine)({ ...words, thread }),
    })
  const start = () =>
    Verifier.start({
      startPool: machine.startPool,
      threads,
      waitingItemsMax: waitingMax,
      report: ({ kind, ...what }) => log('warn', kind, what),
    })
  if (placement !== 'back' || config.verifyThreads !== 0) return start()
  const backend = chooseBackend()
  if (backend.name === 'noble') return start()
  const here = new ChecksHere(backend)
  if (cores === 1) return here
  const startBeside = () =>
    start().catch((error: Error) => {
      log('warn', 'verifier_lost', { message: error.message })
      throw error
    })
  return new SharedChecks(here, startBeside, clock)
}

type Base = ReturnType<typeof baseOf> & StartedActors & { readonly verifier: Checks }

/** What the capabilities do besides answering. Each service is given the ones above it. */
async function servicesOf(base: Base) {
  const { config, directory, actorHost, news, clock } = base
  const followers = new Followers(base)
  const webhookThread = new WebhookThread({ ...config, ...base })
  const screeningQueue = new ScreeningQueue(log)
  const signer = new BoardSigner({ serviceId: directory.facts.service_id, identity: directory.identity })
  const works = openWorks({
    actorHost,
    workNews: base.workNews,
    limitsOn: config.limitsOn,
    directory,
    screening: screeningQueue,
    news,
    clock,
  })
  const calling = await startCalling(config, base)
  const front = frontOf(base, { followers, webhookThread, screeningQueue, works, calling })
  const boardAuthor = new BoardAuthor(signer, front)
  new Screening({
    queue: screeningQueue,
    judge: config.screenUrl === '' ? judge : httpClassifier(config.screenUrl),
    hide: (post, reason, done) => hideBy(boardAuthor, post, reason, done),
    later: clock.later,
    soon: clock.soon,
    report: log,
  })
  const authorPosts = new AuthorPosts({
    actors: actorHost,
    news,
    board: directory.identity.id,
    later: clock.later,
    report: (facts) => log('warn', 'author_posts.not_marked', facts),
  })
  const takedowns = new Takedowns({
    actors: actorHost,
    news,
    files: base.files,
    board: directory.identity.id,
    later: clock.later,
    report: (facts) => log('warn', 'takedown.not_done', facts),
  })
  const { itemPosts, deliveries } = receivingOf(base, boardAuthor)
  const { connections, verifier, counters, throttle, notices } = base
  const { tails } = followers
  const streams = openStreams(base, { followers, front })
  const parts = { actorHost, news, tails, streams, connections, verifier, webhookThread, counters, throttle, notices }
  const diskFree = () => base.disk.freeBytes(base.directory.path)
  const behindSeconds = () => base.follower?.front.behindSeconds
  const figures = new BoardFigures({
    ...parts,
    durations: base.durations,
    diskFree,
    now: clock.monotonicMs,
    later: clock.later,
    behindSeconds,
  })
  const answering = { followers, webhookThread, screeningQueue, authorPosts, takedowns, works, calling }
  return { ...answering, streams, front, boardAuthor, itemPosts, deliveries, figures }
}

type Answering = {
  readonly followers: Followers
  readonly webhookThread: WebhookThread
  readonly screeningQueue: ScreeningQueue
  readonly works: Works
  readonly calling: Calling
}

function frontOf(base: Base, { followers, webhookThread, screeningQueue, works, calling }: Answering): CommandRouter {
  const { config, directory, actorHost, news, throttle, reads, verifier, secret, files } = base
  const pendingMax = 1.5 * config.queueMax * actorHost.shards
  return new CommandRouter({
    calls: calling.calls,
    tools: calling.tools,
    hooks: webhookThread.webhooks,
    welcome: works.welcome,
    serviceId: directory.facts.service_id,
    actors: actorHost,
    reads,
    updates: followers.updates,
    verifier,
    isOverloaded: () => verifier.waiting + actorHost.openAtShards >= pendingMax,
    clerks: verifier instanceof Clerks ? verifier : undefined,
    throttle,
    news,
    operators: new Set(config.operators),
    proofBits: config.proofBits,
    screening: screeningQueue,
    secret,
    boardIdentity: directory.identity.id,
    generation: directory.facts.generation,
    limitsOn: config.limitsOn,
    random: base.random,
    soon: base.clock.soon,
    wallSeconds: base.clock.wallSeconds,
    now: base.clock.monotonicMs,
    durations: base.durations,
    forward: base.follower?.front.forward,
    blobs: new BlobIntake({
      files,
      bytesMax: config.limitsOn ? config.blobBytesPerIdentity : Number.POSITIVE_INFINITY,
      fail: exitFatally(base),
      fault: logFault,
    }),
  })
}

/** Handles what arrives at receive URLs. */
function receivingOf({ config, actorHost, news, reads, throttle, clock }: Base, boardAuthor: BoardAuthor) {
  const itemPosts = new ItemPosts({
    actors: actorHost,
    voice: boardAuthor,
    read: (request, answer) => reads.read(request, answer),
    isSuspended: (identity) => news.isSuspended(identity),
    later: clock.later,
    report: (facts) => log('warn', 'item_not_posted', facts),
  })
  const deliveries = new Deliveries({
    actors: actorHost,
    throttle,
    limitsOn: config.limitsOn,
    now: clock.monotonicMs,
    wallSeconds: clock.wallSeconds,
    post: (receiver, isDecided) => itemPosts.post(receiver, isDecided),
    isThere: (delegation) => news.delegates.isActive(delegation),
  })
  return { itemPosts, deliveries }
}
