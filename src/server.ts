/**
 * The server: starts everything in order, stops it in reverse. The only place that wires.
 * A newcomer reads this first.
 */
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { makeDirectory } from '../storage/disk.ts'
import { lockDirectory } from '../storage/lock.ts'
import { type BoardDirectory, openBoardDirectory } from './board-directory.ts'
import { monotonicMs, wallSeconds } from './clock.ts'
import { Deliveries } from './command/deliveries.ts'
import { Front } from './command/front.ts'
import { ItemPosts } from './command/item-posts.ts'
import { News } from './command/news.ts'
import { refused } from './command/reply.ts'
import { hideBy, resumeScreening } from './command/screened.ts'
import { Throttle } from './command/throttle.ts'
import { Voice } from './command/voice.ts'
import { BadConfig, type Config, prepareEngineEnvironment } from './config.ts'
import { explainFailure } from './failure.ts'
import { House } from './house.ts'
import { clientAddress } from './http/client-address.ts'
import { compatDoor } from './http/compat.ts'
import { documentPaths } from './http/documents.ts'
import { handleExport } from './http/export.ts'
import { logDoors } from './http/log.ts'
import { createNodeServer } from './http/node.ts'
import { type Exchange, type HttpServer, headBytesMax } from './http/port.ts'
import { portOptions } from './http/port-options.ts'
import { receiveDoor } from './http/receive.ts'
import { Routes } from './http/routes.ts'
import { Tails } from './http/tail.ts'
import { createUwsServer } from './http/uws.ts'
import { inside, queuesOf, rates, sizes } from './limits.ts'
import { MarkKeeper, readMark } from './mark.ts'
import { Counters, log, setLogLevel } from './observe.ts'
import type { Refusal } from './refusals.ts'
import { release } from './release.ts'
import { judge } from './screening/advertising.ts'
import { httpClassifier } from './screening/classifier.ts'
import { Screening } from './screening/screening.ts'
import type { FeedStats } from './threads/feed.ts'
import { Verifier } from './verify/verifier.ts'
import type { Described } from './views/capabilities.ts'
import { checkpointAnswer } from './views/checkpoint.ts'
import { type Figures, metricsText, statsData } from './views/figures.ts'

export type RunningServer = { readonly address: string; close(): Promise<void> }

const drainMs = 8_000
const flushMs = 500

/** Starts a board; resolves when it answers. Rejects with an error that src/failure.ts explains. */
export async function startServer(config: Config): Promise<RunningServer> {
  setLogLevel(config.logLevel)
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const address = config.baseUrl === '' ? `http://${hostText(config.host)}:${port}` : config.baseUrl
  if (!URL.canParse(address)) {
    throw new BadConfig(
      `"${address}" is no address of a web site. Set HOST to a name or an IP address, or set BASE_URL.`,
    )
  }
  makeDirectory(config.dataDirectory)
  const lock = await lockDirectory(config.dataDirectory)
  try {
    const directory = openBoardDirectory({
      path: config.dataDirectory,
      serviceId: config.serviceId,
      publicHost: new URL(address).host,
      shards: config.shards === 0 ? Math.max(1, availableParallelism() >> 1) : config.shards,
      now: wallSeconds(),
    })
    return await startBoard(config, { directory, address, port, unlock: () => lock.release() })
  } catch (error) {
    lock.release()
    throw error
  }
}

type Place = {
  readonly directory: BoardDirectory
  readonly address: string
  readonly port: number
  readonly unlock: () => void
}

async function startBoard(config: Config, { directory, address, port, unlock }: Place): Promise<RunningServer> {
  const news = new News()
  const throttle = new Throttle({ on: config.limitsOn, now: monotonicMs })
  const addressOf = (exchange: Exchange) => clientAddress(exchange, config.trustProxy)
  const refuse = (exchange: Exchange, found: Refusal) => routes.send(exchange, refused(found))
  const tails = new Tails({
    backfill: (request, answer) => house.askFeed(['tail', request, house.seen], answer),
    watch: (room, format, on) => house.tellFeed([on ? 'watch' : 'unwatch', room, format]),
    refuse,
    addressOf,
    streamsPerAddress: config.limitsOn ? rates.streams_per_address : Number.POSITIVE_INFINITY,
    now: monotonicMs,
    queueBytesMax: inside.streamQueueBytes,
    stallMs: inside.streamStallMs,
    lastMax: sizes.tail_last_maximum,
  })
  const { house, facts, mark } = await startHouse(config, { directory, news, tails })
  const verifier = await Verifier.start({
    threads: config.verifyThreads === 0 ? Math.max(1, availableParallelism() >> 1) : config.verifyThreads,
    waitingItemsMax: queuesOf(config.queueMax).signatures,
    report: ({ kind, ...what }) => log('warn', kind, what),
  })
  const screening = new Screening({
    judge: config.screenUrl === '' ? judge : httpClassifier(config.screenUrl),
    hide: (post, reason, done) => hideBy(voice, post, reason, done),
    report: log,
  })
  const front: Front = new Front({
    serviceId: directory.facts.service_id,
    actors: house,
    verify: (signature, key, message, callback) => verifier.verify(signature, key, message, callback),
    throttle,
    news,
    operators: new Set(config.operators),
    wallSeconds,
    screen: (post) => screening.consider(post),
    secret: createHmac('sha256', directory.identity.seed).update('broadside-names-v1').digest(),
    checkpoint: () => checkpointAnswer(directory.facts.origin, facts.vkey, news.head),
  })
  const counters = new Counters()
  const voice = new Voice({
    serviceId: directory.facts.service_id,
    identity: directory.identity,
    execute: (body, door, respond) => front.execute(body, door, respond),
  })
  const isSuspended = (identity: string) => news.isSuspended(identity)
  const itemPosts = new ItemPosts({
    actors: house,
    voice,
    read: (request, answer) => front.read(request, answer),
    isSuspended,
    later: (callback, ms) => setTimeout(callback, ms).unref(),
    report: (facts) => log('warn', 'item_not_posted', facts),
  })
  const { limitsOn } = config
  const deliveries = new Deliveries({
    actors: house,
    limitsOn,
    now: monotonicMs,
    wallSeconds,
    isSuspended,
    post: (item) => itemPosts.post(item),
  })
  const startedAt = monotonicMs()
  /** As the feed last told them: under overload they are a moment old, and the other figures are wanted most. */
  let stats: FeedStats = { rooms: 0, identities: 0, events: 0, change: 0 }
  const figures = async (): Promise<Figures> => ({
    ...stats,
    treeSize: news.head.size,
    streamsOpen: tails.open,
    streamsDropped: tails.dropped,
    connections: http.openConnections,
    openLetters: house.open,
    signaturesWaiting: verifier.waiting,
    uptimeSeconds: Math.floor((monotonicMs() - startedAt) / 1000),
    residentBytes: process.memoryUsage.rss(),
    heaps: [['front', process.memoryUsage().heapUsed + process.memoryUsage().external], ...(await house.heaps())],
    counters: counters.entries(),
  })
  const withFigures = (exchange: Exchange, answer: (figures: Figures) => void): void =>
    house.askFeed<FeedStats>(['stats'], (told) => {
      if (told !== undefined && !('refusal' in told)) stats = told
      figures().then(answer, () => exchange.drop())
    })
  const described = describe(config, { directory, address, vkey: facts.vkey, verifier: verifier.backend })
  const routes = new Routes({
    front,
    news,
    throttle,
    wallSeconds,
    addressOf,
    onReply: (status) => counters.add(`replies_${status}`),
    acting: {
      '/c64/': compatDoor({
        execute: (body, door, respond) => front.execute(body, door, respond),
        addressOf,
        doors: () => routes,
      }),
      '/in/': receiveDoor({
        take: (delivery, respond) => deliveries.take(delivery, respond),
        addressOf,
        doors: () => routes,
      }),
    },
    more: {
      ...documentPaths(described),
      ...logDoors({
        origin: directory.facts.origin,
        vkey: facts.vkey,
        address,
        checkpoint: () => news.head.checkpoint,
        tile: (path, answer) => house.askFeed(['tile', path, house.seen], answer),
        routes: () => routes,
      }),
      '/tail/': (exchange, room) => tails.handle(exchange, room),
      '/v1/export': (exchange) =>
        handleExport(
          { next: (request, answer) => house.askFeed(['export', request, house.seen], answer), refuse },
          exchange,
        ),
      '/api/stats': (exchange) =>
        withFigures(exchange, (found) =>
          routes.send(exchange, { status: 200, body: JSON.stringify({ ok: true, data: statsData(found) }) }),
        ),
      '/metrics': (exchange) =>
        withFigures(exchange, (found) =>
          exchange.reply(200, plain('text/plain; version=0.0.4; charset=utf-8'), metricsText(found)),
        ),
      '/healthz': (exchange) => exchange.reply(200, plain('text/plain; charset=utf-8'), 'ok\n'),
    },
  })
  prepareEngineEnvironment(headBytesMax)
  const create = config.engine === 'uws' ? createUwsServer : createNodeServer
  const http: HttpServer = await create((exchange) => routes.handle(exchange), portOptions())
  await itemPosts.resume()
  await http.listen(config.host, port)
  log('info', 'ready', {
    address,
    engine: http.engine,
    verifier: verifier.backend,
    shards: house.shards,
    service_id: described.serviceId,
    tree_size: news.head.size,
  })

  let closing: Promise<void> | undefined
  resumeScreening(house, screening, config.operators)

  const close = async (): Promise<void> => {
    log('info', 'stopping')
    http.stopAccepting()
    tails.close()
    itemPosts.close()
    await drained(() => house.open + verifier.waiting === 0, drainMs)
    // The last answers are on their way through the sockets, and each of them closes its connection.
    await drained(() => http.openConnections === 0, flushMs)
    await http.close()
    await verifier.close()
    await house.stop()
    mark.note(news.head.checkpoint)
    await mark.close()
    unlock()
    log('info', 'stopped')
  }
  return {
    address,
    close: () => {
      closing ??= close()
      return closing
    },
  }
}

async function startHouse(
  config: Config,
  { directory, news, tails }: { directory: BoardDirectory; news: News; tails: Tails },
) {
  const markFile = config.markFile === '' ? `${config.dataDirectory}.mark` : config.markFile
  let mark: MarkKeeper | undefined
  const started = await House.start({
    directory,
    diskReserveBytes: config.diskReserveBytes,
    segmentBytesMax: config.segmentBytesMax,
    queues: queuesOf(config.queueMax),
    onNews: (told) => {
      if (told[0] === 'live') return tails.deliver(told[1], told[2], told[3], told[4])
      for (const [id, handle] of told[2]) news.handles.set(id, handle)
      for (const [room, change] of told[1]) news.noteChange(room, change)
    },
    mark: readMark(markFile),
    onPublished: ({ head }) => {
      news.noteHead(head)
      mark?.note(head.checkpoint)
    },
    onFatal: (thread, words) => {
      log('error', 'fatal', explainFailure({ ...words, thread }))
      process.exit(70)
    },
  })
  const { published, handles } = started.facts
  news.noteHead(published.head)
  news.change = Math.max(news.change, published.change)
  for (const [id, handle] of handles) news.handles.set(id, handle)
  mark = new MarkKeeper(markFile, started.facts.vkey)
  mark.note(published.head.checkpoint)
  return { ...started, mark }
}

function describe(
  config: Config,
  facts: { directory: BoardDirectory; address: string; vkey: string; verifier: string },
): Described {
  const { directory, address, vkey, verifier } = facts
  return {
    serviceId: directory.facts.service_id,
    identity: directory.identity,
    generation: directory.facts.generation,
    release,
    address,
    origin: directory.facts.origin,
    vkey,
    verifier,
    limitsOn: config.limitsOn,
    createdAt: directory.facts.created_at,
  }
}

function plain(type: string): readonly (readonly [string, string])[] {
  return [
    ['content-type', type],
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
  ]
}

/** Waits until nothing is under way, at most so long. */
async function drained(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const until = monotonicMs() + withinMs
  while (!isQuiet() && monotonicMs() < until) await new Promise((resolve) => setTimeout(resolve, 5))
}

/** A port that is free now: the log's origin names it, so it is chosen before anything is made. */
function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, host, () => {
      const bound = probe.address()
      probe.close(() => resolve(typeof bound === 'object' && bound !== null ? bound.port : 0))
    })
  })
}

function hostText(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
