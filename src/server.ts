/** The server: starts everything in order, stops it in reverse. The only place that wires; a newcomer reads this first. */
import { createHmac } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { queuesOf } from '../actors/kernel/limits.ts'
import type { Refusal } from '../actors/kernel/refusals.ts'
import { shardOf } from '../actors/shard.ts'
import { BlobFiles } from '../storage/blob-files.ts'
import { makeDirectory } from '../storage/disk.ts'
import { lockDirectory } from '../storage/lock.ts'
import { BlobIntake } from './attachments/intake.ts'
import { blobDoor, sweepBlobs } from './attachments/routes.ts'
import { type BoardDirectory, blobsDirectory, openBoardDirectory } from './board-directory.ts'
import { drained, monotonicMs, wallSeconds } from './clock.ts'
import { Voice } from './command/board-signer.ts'
import { News } from './command/live-facts.ts'
import { refused } from './command/reply.ts'
import { Front } from './command/router.ts'
import { BadConfig, type Config, prepareEngineEnvironment } from './config.ts'
import { toldByRegistry } from './delegations/known-by-registry.ts'
import { limitsOf } from './docs/capabilities.ts'
import { describe } from './docs/described.ts'
import { type Figures, nothingCounted, statsData } from './docs/figures.ts'
import { figureDoors } from './docs/figures-routes.ts'
import { documentPaths } from './docs/routes.ts'
import { exportGate } from './export/gate.ts'
import { Exports } from './export/routes.ts'
import { Followers } from './follow/followers.ts'
import { updatesDoors } from './follow/updates-routes.ts'
import { ClientAddresses } from './http/client-address.ts'
import { compatDoor } from './http/compat.ts'
import { embedDoors } from './http/embed.ts'
import { createHttpServer } from './http/engine.ts'
import { pageDoors } from './http/pages.ts'
import { type Exchange, headBytesMax } from './http/port.ts'
import { logFault, portOptions } from './http/port-options.ts'
import { Routes } from './http/routes.ts'
import { Throttle } from './limits/throttle.ts'
import { freePort, hostText } from './listening.ts'
import { checkpointAnswer } from './log/checkpoint.ts'
import { Heads } from './log/heads.ts'
import { type Mark, readMarks } from './log/mark.ts'
import { logDoors } from './log/routes.ts'
import { witnessDoors } from './log/witness/routes.ts'
import { witnessesAnswer } from './log/witnesses.ts'
import { mcpDoors } from './mcp/open.ts'
import { judge } from './moderation/advertising.ts'
import { httpClassifier } from './moderation/classifier.ts'
import { hideBy, resumeScreening } from './moderation/screened.ts'
import { Screening } from './moderation/screening.ts'
import { Counters, log, setLogLevel } from './observe.ts'
import { consistencyPath, openHouse, stopForGood } from './open-house.ts'
import { payDoors } from './payments/routes.ts'
import { Deliveries } from './receive-urls/deliveries.ts'
import { ItemPosts } from './receive-urls/item-posts.ts'
import { receiveDoor } from './receive-urls/routes.ts'
import { release } from './release.ts'
import type { FeedStats } from './threads/feed.ts'
import { startCalling } from './tool-calls/open.ts'
import { Verifier } from './verify/verifier.ts'
import { Postroom } from './webhooks/thread-host.ts'
import { openWorks, type Works } from './works/open.ts'
import { workFeedDoor } from './works/routes.ts'

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
    const marks = readMarks(config)
    const directory = openBoardDirectory({
      path: config.dataDirectory,
      serviceId: config.serviceId,
      publicHost: new URL(address).host,
      shards: config.shards === 0 ? Math.max(1, availableParallelism() >> 1) : config.shards,
      now: wallSeconds(),
    })
    return await startBoard(config, { directory, marks, address, port, unlock: () => lock.release() })
  } catch (error) {
    lock.release()
    throw error
  }
}

type Place = {
  readonly directory: BoardDirectory
  readonly marks: readonly Mark[]
  readonly address: string
  readonly port: number
  readonly unlock: () => void
}

async function startBoard(config: Config, { directory, marks, address, port, unlock }: Place): Promise<RunningServer> {
  const news = new News()
  const throttle = new Throttle({ on: config.limitsOn, now: monotonicMs, factors: news.grants })
  const addresses = new ClientAddresses(config.trustedProxy, (event, facts) => log('warn', event, facts))
  const addressOf = (exchange: Exchange) => addresses.of(exchange)
  const refuse = (exchange: Exchange, found: Refusal) => routes.send(exchange, refused(found))
  const read = (...asked: Parameters<Front['read']>) => front.read(...asked)
  const followers = new Followers({ house: () => house, read, directory, news, throttle, refuse, addressOf })
  const files = new BlobFiles(blobsDirectory(directory.path), (file, problem) =>
    log('error', 'blob.not_removed', { file, problem: String(problem) }),
  )
  let heads: Heads | undefined
  let postroom: Postroom | undefined
  const openedWorks = Promise.withResolvers<Works>()
  let isReady = false
  const { house, facts } = await openHouse(config, {
    directory,
    news,
    followers,
    marks,
    files,
    onHead: (head) => heads?.note(head),
    postroom: () => postroom,
    onWorks: (heard) => void openedWorks.promise.then(heard),
  })
  const growing = facts.logs.at(-1)!
  heads = new Heads({
    ...config,
    logs: facts.logs,
    closed: facts.closed,
    publicHost: new URL(address).host,
    consistency: (origin, from, to) => consistencyPath(house, origin, from, to),
    onRollback: (error) => {
      if (isReady) stopForGood(error)
    },
  })
  await heads.begin(news.head)
  await news.delegates.begin((told) => toldByRegistry(house, 'delegation.known', told))
  await news.grants.begin((told) => toldByRegistry(house, 'limits.known', told))
  news.delegates.onEnd((ended) => {
    followers.keysOver()
    postroom?.delegationsOver(ended)
  })
  await sweepBlobs(files, (room, answer) =>
    house.readPrivate(shardOf(room, house.shards), { op: 'blob.needed', args: { room }, reader: '' }, answer),
  )
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
  const delivering = new Postroom({
    ...config,
    house,
    news,
    directory,
    address,
    scale: config.deliveryScale,
    read,
  })
  postroom = delivering
  const works = openWorks({
    house,
    limitsOn: config.limitsOn,
    directory,
    screen: (post) => screening.consider(post),
    news,
  })
  openedWorks.resolve(works)
  const secret = createHmac('sha256', directory.identity.seed).update('broadside-names-v1').digest()
  const verify = (...asked: Parameters<Verifier['verify']>) => verifier.verify(...asked)
  const callers = { ...growing, address, directory, news, actors: house, secret, read, verify }
  const calling = await startCalling(config, callers)
  const front: Front = new Front({
    ...calling,
    hooks: delivering.desk,
    welcome: (identity, from) => works.welcome.greet(identity, from),
    serviceId: directory.facts.service_id,
    actors: house,
    verify,
    throttle,
    news,
    operators: new Set(config.operators),
    proofBits: config.proofBits,
    screen: (post) => screening.consider(post),
    secret,
    boardIdentity: directory.identity.id,
    generation: directory.facts.generation,
    limitsOn: config.limitsOn,
    wallSeconds,
    blobs: new BlobIntake({
      files,
      bytesMax: config.limitsOn ? config.blobBytesPerIdentity : Number.POSITIVE_INFINITY,
      fail: stopForGood,
      fault: logFault,
    }),
    poll: (poll, respond) => followers.updates.poll(poll, respond),
    checkpoint: () => checkpointAnswer(growing, news.head),
    witnesses: () => witnessesAnswer(heads.standing(news.head), wallSeconds()),
  })
  const execute = (...sent: Parameters<Front['executeOwn']>) => front.executeOwn(...sent)
  const voice = new Voice({ serviceId: directory.facts.service_id, identity: directory.identity, execute })
  const counters = new Counters()
  const itemPosts = new ItemPosts({
    actors: house,
    voice,
    read,
    isSuspended: (identity) => news.isSuspended(identity),
    later: (callback, ms) => setTimeout(callback, ms).unref(),
    report: (facts) => log('warn', 'item_not_posted', facts),
  })
  const deliveries = new Deliveries({
    actors: house,
    throttle,
    limitsOn: config.limitsOn,
    now: monotonicMs,
    wallSeconds,
    post: (receiver, isDecided) => itemPosts.post(receiver, isDecided),
    isThere: (delegation) => news.delegates.isThere(delegation),
  })
  const startedAt = monotonicMs()
  /** As the feed last told them: under overload they are a moment old, and the other figures are wanted most. */
  let stats: FeedStats = nothingCounted
  const figures = async (): Promise<Figures> => ({
    ...stats,
    treeSize: news.head.size,
    streamsOpen: followers.tails.open,
    streamsDropped: followers.tails.dropped,
    connections: http.openConnections,
    openLetters: house.open,
    signaturesWaiting: verifier.waiting,
    uptimeSeconds: Math.floor((monotonicMs() - startedAt) / 1000),
    residentBytes: process.memoryUsage.rss(),
    heaps: [['front', process.memoryUsage().heapUsed + process.memoryUsage().external], ...(await delivering.heaps())],
    counters: counters.entries(),
    limited: [...throttle.refusals],
  })
  const tellFigures = (answer: (figures: Figures | undefined) => void): void =>
    house.askFeed<FeedStats>(['stats', null, house.seen], (told) => {
      if (told !== undefined && !('refusal' in told)) stats = told
      figures().then(answer, () => answer(undefined))
    })
  const described = describe(config, { directory, address, log: growing, verifier: verifier.backend })
  const onReply = (status: number): void => counters.add(`replies_${status}`)
  const pages = pageDoors({
    read,
    figures: (answer) => tellFigures((found) => answer(found && statsData(found).stats)),
    now: wallSeconds,
    news,
    throttle,
    addressOf,
    onReply,
    onFault: logFault,
    board: {
      address,
      serviceId: described.serviceId,
      identity: described.identity,
      release,
      ...growing,
      limits: () => limitsOf(described),
      published: () => heads.published(news.head),
    },
  })
  const mcp = mcpDoors({
    config,
    directory,
    described,
    front,
    actors: house,
    news,
    throttle,
    secret,
    addressOf,
    events: delivering.events,
    streams: followers.tails.places,
  })
  const exports = new Exports({
    enter: exportGate({ throttle, addressOf }),
    next: (request, answer) => house.askFeed(['export', request, house.seen], answer),
    rooms: followers.rooms,
    refuse,
    now: monotonicMs,
  })
  const routes = new Routes({
    front,
    news,
    throttle,
    wallSeconds,
    addressOf,
    onReply,
    nowhere: pages.nowhere,
    acting: {
      ...mcp.acting,
      '/c64/': compatDoor({
        execute: (body, door, respond) => front.execute(body, door, respond),
        addressOf,
        doors: () => routes,
      }),
      ...witnessDoors(heads.witness, { throttle, addressOf, doors: () => routes }),
      '/in/': receiveDoor({
        take: (delivery, respond) => deliveries.take(delivery, respond),
        addressOf,
        doors: () => routes,
      }),
      ...payDoors(calling, { address, throttle, addressOf, doors: () => routes }),
    },
    more: {
      ...documentPaths(described),
      ...pages.doors,
      ...mcp.more,
      ...embedDoors(address),
      ...logDoors({
        logs: facts.logs,
        address,
        checkpoint: (origin) => heads.ended(origin) ?? heads.published(news.head),
        policyLines: heads.policyLines,
        tile: (request, answer) => house.askFeed(['tile', request, house.seen], answer),
        routes: () => routes,
      }),
      '/a/': blobDoor({
        find: (request, answer) => house.read(request, answer),
        files,
        throttle,
        addressOf,
        doors: () => routes,
      }),
      ...updatesDoors({
        poll: (poll, respond) => followers.updates.poll(poll, respond),
        throttle,
        addressOf,
        doors: () => routes,
        wallSeconds,
      }),
      '/tail/': (exchange, room) => routes.isWithinReads(exchange) && followers.tails.handle(exchange, room),
      '/v1/export': (exchange) => routes.isWithinReads(exchange) && exports.handle(exchange),
      ...figureDoors({ tell: tellFigures, doors: () => routes }),
      '/work.atom': workFeedDoor({ read, address, throttle, addressOf, doors: () => routes }),
    },
  })
  prepareEngineEnvironment(headBytesMax)
  const http = await createHttpServer(config.engine, (exchange) => routes.handle(exchange), portOptions())
  await works.resume()
  await itemPosts.resume()
  await calling.resume()
  await delivering.resume()
  await http.listen(config.host, port)
  isReady = true
  log('info', 'ready', {
    address,
    engine: http.engine,
    verifier: verifier.backend,
    shards: house.shards,
    service_id: described.serviceId,
    tree_size: news.head.size,
  })

  resumeScreening(house, screening, config.operators)

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    log('info', 'stopping')
    http.stopAccepting()
    followers.close()
    itemPosts.close()
    await calling.close()
    await delivering.stop()
    works.close()
    await drained(() => house.open + verifier.waiting + exports.moving === 0, drainMs)
    // The last answers are on their way through the sockets, and each of them closes its connection.
    await drained(() => http.openConnections === 0, flushMs)
    await http.close()
    await pages.close()
    await verifier.close()
    await house.stop()
    await heads.close(news.head)
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
