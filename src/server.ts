/**
 * The server: starts everything in order, stops it in reverse. The only place that wires.
 * A newcomer reads this first.
 */

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { makeDirectory } from '../storage/disk.ts'
import { lockDirectory } from '../storage/lock.ts'
import { openBoardDirectory } from './board-directory.ts'
import { monotonicMs, wallSeconds } from './clock.ts'
import { Front } from './command/front.ts'
import { refused } from './command/reply.ts'
import { Throttle } from './command/throttle.ts'
import { type Config, prepareEngineEnvironment } from './config.ts'
import { House } from './house.ts'
import { clientAddress } from './http/client-address.ts'
import { handleExport } from './http/export.ts'
import { createNodeServer } from './http/node.ts'
import { type Exchange, type HttpOptions, type HttpServer, headBytesMax } from './http/port.ts'
import { ready, readyPaths } from './http/ready-paths.ts'
import { Routes } from './http/routes.ts'
import { Tails } from './http/tail.ts'
import { createUwsServer } from './http/uws.ts'
import { inside, rates, sizes } from './limits.ts'
import { Counters, log, setLogLevel } from './observe.ts'
import type { Refusal } from './refusals.ts'
import type { FeedStats } from './threads/feed.ts'
import { Verifier } from './verify/verifier.ts'
import { capabilities } from './views/capabilities.ts'
import { checkpointAnswer } from './views/checkpoint.ts'
import { type Figures, metricsText, statsData } from './views/figures.ts'
import { openapi } from './views/openapi.ts'

export type RunningServer = { readonly address: string; close(): Promise<void> }

export const releaseName = '1.0.0'
const drainMs = 8_000

/** Starts a board; resolves when it answers. Rejects with a sentence that names the fix. */
export async function startServer(config: Config): Promise<RunningServer> {
  setLogLevel(config.logLevel)
  const startedAt = monotonicMs()
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const address = config.baseUrl === '' ? `http://${hostText(config.host)}:${port}` : config.baseUrl
  makeDirectory(config.dataDirectory)
  const lock = await lockDirectory(config.dataDirectory)
  const directory = openBoardDirectory({
    path: config.dataDirectory,
    serviceId: config.serviceId,
    publicHost: new URL(address).host,
    shards: config.shards === 0 ? Math.max(1, availableParallelism() >> 1) : config.shards,
    now: wallSeconds(),
  })
  const counters = new Counters()
  const throttle = new Throttle({ on: config.limitsOn, now: monotonicMs })

  const { house, facts } = await House.start({
    directory,
    diskReserveBytes: config.diskReserveBytes,
    segmentBytesMax: config.segmentBytesMax,
    onNews: (news) => {
      if (news[0] === 'live') return tails.deliver(news[1], news[2], news[3], news[4])
      for (const [id, handle] of news[2]) front.writes.handles.set(id, handle)
      for (const [room, change] of news[1]) front.writes.noteChange(room, change)
    },
    onPublished: ({ head }) => front.writes.noteHead(head),
    onFatal: (thread, words) => {
      log('error', 'fatal', { thread, problem: words.message, stack: words.stack })
      process.exit(70)
    },
  })
  const verifier = await Verifier.start({
    threads: config.verifyThreads === 0 ? Math.max(1, availableParallelism() >> 1) : config.verifyThreads,
    waitingItemsMax: inside.verifierQueue,
    report: ({ kind, ...what }) => log('warn', kind, what),
  })
  const front = new Front({
    serviceId: directory.facts.service_id,
    actors: house,
    verify: (signature, key, message, callback) => verifier.verify(signature, key, message, callback),
    throttle,
    wallSeconds,
    checkpoint: () => checkpointAnswer(directory.facts.origin, facts.vkey, front.writes.head),
  })
  front.writes.noteHead(facts.published.head)
  front.writes.change = facts.published.change
  for (const [id, handle] of facts.handles) front.writes.handles.set(id, handle)

  const refuse = (exchange: Exchange, found: Refusal) => routes.send(exchange, refused(found))
  const addressOf = (exchange: Exchange) => clientAddress(exchange, config.trustProxy)
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
  const figures = (answer: (figures: Figures) => void): void =>
    house.askFeed<FeedStats>(['stats'], async (stats) =>
      answer({
        ...(stats ?? { rooms: 0, identities: 0, events: 0, change: 0 }),
        treeSize: front.writes.head.size,
        streamsOpen: tails.open,
        streamsDropped: tails.dropped,
        connections: http?.openConnections ?? 0,
        openLetters: house.open,
        signaturesWaiting: verifier.waiting,
        uptimeSeconds: Math.floor((monotonicMs() - startedAt) / 1000),
        residentBytes: process.memoryUsage.rss(),
        heaps: [['front', process.memoryUsage().heapUsed + process.memoryUsage().external], ...(await house.heaps())],
        counters: counters.entries(),
      }),
    )
  const described = {
    serviceId: directory.facts.service_id,
    identity: directory.identity,
    generation: directory.facts.generation,
    release: releaseName,
    address,
    origin: directory.facts.origin,
    vkey: facts.vkey,
    verifier: verifier.backend,
    limitsOn: config.limitsOn,
    createdAt: directory.facts.created_at,
  }
  const routes = new Routes({
    front,
    throttle,
    wallSeconds,
    addressOf,
    onReply: (status) => counters.add(`replies_${status}`),
    more: {
      ...readyPaths({
        '/capabilities': ready(
          'application/json; charset=utf-8',
          JSON.stringify({ ok: true, data: capabilities(described) }),
        ),
        '/openapi.json': ready('application/json; charset=utf-8', JSON.stringify(openapi(described))),
      }),
      '/tail/': (exchange, room) => tails.handle(exchange, room),
      '/v1/export': (exchange) =>
        handleExport(
          { next: (request, answer) => house.askFeed(['export', request, house.seen], answer), refuse },
          exchange,
        ),
      '/api/stats': (exchange) =>
        figures((found) =>
          routes.send(exchange, { status: 200, body: JSON.stringify({ ok: true, data: statsData(found) }) }),
        ),
      '/metrics': (exchange) =>
        figures((found) =>
          exchange.reply(
            200,
            [
              ['content-type', 'text/plain; version=0.0.4; charset=utf-8'],
              ['cache-control', 'no-store'],
            ],
            metricsText(found),
          ),
        ),
      '/healthz': (exchange) =>
        exchange.reply(
          200,
          [
            ['content-type', 'text/plain; charset=utf-8'],
            ['cache-control', 'no-store'],
          ],
          'ok\n',
        ),
    },
  })

  prepareEngineEnvironment(headBytesMax)
  const options: HttpOptions = {
    now: monotonicMs,
    refusal: (_status, code, message) => JSON.stringify({ ok: false, error: { code, message } }),
    onFault: (error) => {
      const id = randomUUID()
      const { message, stack } = error instanceof Error ? error : new Error(String(error))
      log('error', 'fault', { id, problem: message, stack })
      return JSON.stringify({
        ok: false,
        error: { code: 'internal', message: `a fault of this board, logged as ${id}` },
      })
    },
  }
  const http: HttpServer =
    config.engine === 'uws'
      ? await createUwsServer((exchange) => routes.handle(exchange), options)
      : await createNodeServer((exchange) => routes.handle(exchange), options)
  await http.listen(config.host, port)
  log('info', 'ready', {
    address,
    engine: http.engine,
    verifier: verifier.backend,
    shards: house.shards,
    service_id: described.serviceId,
    tree_size: front.writes.head.size,
  })

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    log('info', 'stopping', {})
    http.stopAccepting()
    tails.close()
    await drained(() => house.open + verifier.waiting === 0)
    await http.close()
    await verifier.close()
    await house.stop()
    lock.release()
    log('info', 'stopped', {})
  }
  return {
    address,
    close: () => {
      closing ??= close()
      return closing
    },
  }
}

/** Waits until nothing is under way, at most `drainMs`. */
async function drained(isQuiet: () => boolean): Promise<void> {
  const until = monotonicMs() + drainMs
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
