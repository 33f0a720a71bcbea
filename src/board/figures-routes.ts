/** Metrics of the running board and their routes: for people, for Prometheus, and for health checks. */

import { refusal } from '../../actors/kernel/refusals.ts'
import type { ThreadUsage } from '../../actors/kernel/supervisor.ts'
import type { Clock } from '../clock.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import { unanswered } from '../command/reply.ts'
import { type Figures, metricsText, nothingCounted, type Stats, statsData } from '../docs/figures.ts'
import type { Tails } from '../follow/tail-routes.ts'
import { metricsType, plain } from '../http/answers.ts'
import { isForwarded } from '../http/client-address.ts'
import type { ConnectionCount } from '../http/connection-count.ts'
import type { Exchange, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import type { Notices } from '../notices.ts'
import type { Counters, DurationHistograms } from '../observe.ts'
import type { Throttle } from '../rates/throttle.ts'
import { dataOf } from '../reads/read.ts'
import type { Streams } from '../stream/routes.ts'
import type { Checks } from '../verify/verifier.ts'
import type { ActorHost } from '../workers/actor-host.ts'
import type { FeedStats } from '../workers/feed-answers.ts'
import type { WebhookThread } from '../workers/webhook-thread.ts'

type BoardFiguresOptions = {
  readonly actorHost: ActorHost
  readonly news: LiveFacts
  readonly tails: Tails
  readonly streams: Pick<Streams, 'open'>
  readonly connections: ConnectionCount
  readonly verifier: Checks
  readonly webhookThread: WebhookThread
  readonly counters: Counters
  readonly notices: Notices
  readonly throttle: Throttle
  readonly durations: Pick<DurationHistograms, 'entries'>
  /** Free bytes on the disk with the data directory. */
  readonly diskFree: () => number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly later: Clock['later']
  /** How far a follower is behind; undefined on other boards, and before the leader was heard. */
  readonly behindSeconds: () => number | undefined
}

/** How long a request for metrics waits for an actor. */
const reportsWithinMs = 1_000

export class BoardFigures {
  readonly #options: BoardFiguresOptions
  readonly #startedAt: number
  /** The feed's last report. Under overload it is slightly stale, but that is when the other metrics are needed most. */
  #stats: FeedStats = nothingCounted
  /** Usage of threads that are started later. */
  #others: () => Promise<[thread: string, usage: ThreadUsage][]> = async () => []
  /** Open reports by shard, as last reported. */
  #reports: readonly number[] = []

  constructor(options: BoardFiguresOptions) {
    this.#options = options
    this.#startedAt = options.now()
  }

  /** The body of the health check. */
  get health(): string {
    return this.#options.notices.health
  }

  /** Includes the usage of these threads too. */
  alsoOf(usage: () => Promise<[thread: string, usage: ThreadUsage][]>): void {
    this.#others = usage
  }

  stats(answer: (stats: Stats) => void): void {
    this.#count(() => answer(this.#shown()))
  }

  /** Answers undefined if the metrics could not be collected. */
  collect(answer: (figures: Figures | undefined) => void): void {
    this.#count(() => this.#now().then(answer, () => answer(undefined)))
  }

  #count(done: () => void): void {
    const { actorHost } = this.#options
    actorHost.askFeed<FeedStats>(['stats', null, actorHost.seen], (stats) => {
      if (stats !== undefined && !('refusal' in stats)) this.#stats = stats
      done()
    })
  }

  #shown(): Stats {
    const { news, tails, now } = this.#options
    const uptimeSeconds = Math.floor((now() - this.#startedAt) / 1000)
    return { ...this.#stats, treeSize: news.head.size, streamsOpen: tails.open, uptimeSeconds }
  }

  /**
   * Reports are stored with their rooms. A shard that does not answer in time, for example while its writes wait for others, counts as last
   * reported.
   */
  async #openReports(): Promise<number> {
    const { actorHost, later } = this.#options
    const shards = Array.from({ length: actorHost.shards }, (_, shard) => shard)
    const counts = await Promise.all(
      shards.map(
        (shard) =>
          new Promise<number>((resolve) => {
            const asBefore = (): void => resolve(this.#reports[shard] ?? 0)
            const giveUp = later(asBefore, reportsWithinMs)
            actorHost.readPrivate(shard, { op: 'reports.open', args: {}, reader: '' }, (found) => {
              giveUp()
              if (found?.ok === true) resolve(dataOf(found))
              else asBefore()
            })
          }),
      ),
    )
    this.#reports = counts
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async #now(): Promise<Figures> {
    const { actorHost, news, tails, streams, connections, verifier, webhookThread, counters, throttle, durations } =
      this.#options
    const memory = process.memoryUsage()
    const processor = process.cpuUsage()
    const front = {
      heapBytes: memory.heapUsed + memory.external,
      activeSeconds: performance.eventLoopUtilization().active / 1_000,
    }
    return {
      ...this.#shown(),
      change: this.#stats.change,
      streamsDropped: tails.dropped,
      socketsOpen: streams.open,
      connections: connections.open,
      openLetters: actorHost.open,
      openReports: await this.#openReports(),
      deliveriesWaiting: (await webhookThread.backlog()) ?? 0,
      feedLag: Math.max(0, news.change - this.#stats.change),
      signaturesWaiting: verifier.waiting,
      behindSeconds: this.#options.behindSeconds(),
      residentBytes: memory.rss,
      processorSeconds: (processor.user + processor.system) / 1_000_000,
      diskFreeBytes: this.#options.diskFree(),
      threads: [['front', front], ...(await this.#others()), ...(await webhookThread.usage())],
      durations: durations.entries(),
      counters: counters.entries(),
      notices: this.#options.notices.names,
      limited: [...throttle.refusals],
    }
  }
}

type FigureRoutesOptions = {
  readonly figures: BoardFigures
  readonly replies: Replies
  /** Whether /metrics is served here instead of at its own port. */
  readonly hasMetrics: boolean
  /** Lower-case name of the header that a proxy in front of the board sets; '' if there is none. */
  readonly proxyHeader: string
}

export function figureRoutes(options: FigureRoutesOptions): Readonly<Record<string, RouteHandler>> {
  const { figures, replies, hasMetrics, proxyHeader } = options
  const sendMetrics = (exchange: Exchange): void =>
    figures.collect((found) => {
      if (found === undefined) replies.refuse(exchange, unanswered)
      else exchange.reply(200, plain(metricsType), metricsText(found))
    })
  return {
    '/api/stats': (exchange) =>
      figures.stats((found) =>
        replies.send(exchange, { status: 200, body: JSON.stringify({ ok: true, data: statsData(found) }) }),
      ),
    // They are for the host only, and a request that came through a proxy is from elsewhere.
    '/metrics': (exchange) =>
      !hasMetrics || isForwarded(exchange, proxyHeader)
        ? replies.refuse(exchange, refusal('no_such_path', 'metrics are available only on the host of this board'))
        : sendMetrics(exchange),
    '/healthz': (exchange) => exchange.reply(200, plain('text/plain; charset=utf-8'), figures.health),
  }
}
