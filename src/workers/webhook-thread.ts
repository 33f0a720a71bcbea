/**
 * Starts the delivery thread when the first hook is created or found, links it to the main thread, and answers its queries: the sources,
 * the newest head, the existing hooks.
 */

import { internalLimits, rates } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import { Supervised, type ThreadUsage } from '../../actors/kernel/supervisor.ts'
import type { AnyReadName } from '../../actors/operations.ts'
import { shardOf } from '../../actors/shard.ts'
import { hooksOf } from '../../actors/webhooks/decide.ts'
import { privateScope } from '../../actors/webhooks/kind-names.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { type BoardDirectory, deliveryDirectory } from '../board-directory.ts'
import type { Delegate } from '../command/delegates.ts'
import type { LiveFacts } from '../command/live-facts.ts'
import type { ReadPath } from '../command/ports.ts'
import { CursorSealer, keptKeysOf, type PlacesEpoch } from '../format/cursor.ts'
import { log } from '../observe.ts'
import type { Platform } from '../platform.ts'
import { threadFile } from '../program.ts'
import { Limiter } from '../rates/meters.ts'
import type { AnswerOf } from '../reads/read.ts'
import { dataOf, type ReadRequest } from '../reads/read.ts'
import { McpEvents } from '../webhooks/mcp-events.ts'
import type { HooksAnswer, HooksAsk, Since } from '../webhooks/payloads/answer.ts'
import type { Offer, PayloadRequest } from '../webhooks/payloads/payload-request.ts'
import type { ChangedHooks, HookView } from '../webhooks/reads.ts'
import { type EngineAsk, WebhookService } from '../webhooks/service.ts'
import type { LeaderPositions } from '../webhooks/store.ts'
import type { ActorHost, ActorListener } from './actor-host.ts'
import type { DeliveryAsk, DeliveryTell, DeliveryThread } from './delivery.ts'
import type { FeedNews } from './feed.ts'
import type { ShardNews } from './private-news.ts'

type WebhookThreadOptions = Platform & {
  readonly actorHost: ActorHost
  readonly news: LiveFacts
  readonly directory: BoardDirectory
  readonly address: string
  readonly loopback: boolean
  readonly limitsOn: boolean
  /** Applies to all waits between attempts. */
  readonly deliveryScale: number
  readonly reads: ReadPath
}

const stopWithinMs = 5_000
const restartAfterMs = 10_000
/** Kinds by which blocked users cannot reach the reader. */
const spoken: ReadonlySet<string> = new Set(['reply', 'mention', 'inbox.item'])
const offers: ReadonlySet<string> = new Set(['work.open', 'work.update'])

export class WebhookThread implements ActorListener {
  readonly webhooks: WebhookService
  /** Handlers for the MCP endpoint. */
  readonly events: McpEvents
  readonly #options: WebhookThreadOptions
  #thread: Supervised | undefined
  #link: Link | undefined
  #closed = false

  constructor(options: WebhookThreadOptions) {
    this.#options = options
    const { actorHost, directory, loopback, clock } = options
    this.webhooks = new WebhookService({
      actors: actorHost,
      cursors: new CursorSealer(directory.cursorKey),
      cursorKey: keptKeysOf(directory.cursorKey),
      epoch: epochOf(directory),
      loopback,
      wallSeconds: clock.wallSeconds,
      engine: (ask) => this.#ask(ask),
      isRunning: () => this.#thread !== undefined,
      source: (source, ask) => this.#source(source, ask),
      later: (callback, ms) => clock.later(() => this.#closed || callback(), ms),
    })
    const perMinute = rates.subscribe_calls_per_identity_per_minute
    const { reads, news, limitsOn } = options
    this.events = new McpEvents({
      webhooks: this.webhooks,
      read: (request, answer) => reads.read(request, answer),
      isSuspended: (identity) => news.isSuspended(identity),
      endOf: (delegation) => (news.delegates.isActive(delegation) ? news.delegates.find(delegation)!.expires : 0),
      calls: limitsOn ? new Limiter({ perSecond: perMinute / 60, burst: perMinute }, clock.monotonicMs) : undefined,
    })
    actorHost.listen(this)
    news.delegates.onEnd((ended) => this.#delegationsOver(ended))
  }

  /** A delegate's hooks end with the delegation: nothing is sent for them until it is known which remain. */
  #delegationsOver(ended: readonly Delegate[]): void {
    if (this.#thread === undefined) return
    for (const owner of new Set(ended.map(({ identity }) => identity))) void this.webhooks.changed(owner)
  }

  /** Resource usage of each thread by its name: the board's threads, and this one if it is running. */
  async usage(): Promise<[thread: string, usage: ThreadUsage][]> {
    const others = await this.#options.actorHost.usage()
    return this.#thread === undefined ? others : [...others, [this.#thread.name, await this.#thread.usage()]]
  }

  /** Queued deliveries; undefined if the thread does not answer. */
  async backlog(): Promise<number | undefined> {
    return this.#thread === undefined ? 0 : this.#ask<number>(['waiting'])
  }

  /** Where another machine would continue; undefined if there are no deliveries. */
  async leaderPositions(): Promise<LeaderPositions | undefined> {
    return this.#thread === undefined ? undefined : this.#ask<LeaderPositions>(['positions'])
  }

  /** Resumes what an earlier run left. */
  async resume(): Promise<void> {
    const { actorHost } = this.#options
    const counts = await Promise.all(
      Array.from({ length: actorHost.shards }, (_, shard) =>
        this.#shardRead(shard, { op: 'hook.count', args: {}, reader: '' }),
      ),
    )
    if (counts.some((found) => found?.count !== 0)) this.#start()
  }

  /** Something public happened. */
  published(): void {
    this.#tell(['news', 0, this.#options.news.head.size])
  }

  /** Something private happened in a shard. */
  shardNews(shard: number, [kind]: ShardNews): void {
    if (kind === 'moved') this.#tell(['news', shard + 1, 0])
  }

  feedNews(message: FeedNews): void {
    if (message[0] !== 'changed') return
    for (const [identity, isSuspended] of message[3].suspended) this.#tell(['suspended', identity, isSuspended])
    this.published()
  }

  /** A shard was restarted and has lost earlier messages. */
  shardRestarted(shard: number): void {
    if (this.#link === undefined) return
    this.#options.actorHost.tellShard(shard, ['deliver', true])
    this.shardNews(shard, ['moved'])
  }

  async stop(): Promise<void> {
    this.#closed = true
    await this.#thread?.stop(stopWithinMs)
    this.#link?.close()
  }

  #tell(message: DeliveryTell): void {
    this.#link?.tell(message)
  }

  #ask<Answer>(ask: EngineAsk): Promise<Answer | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    if (this.#thread === undefined) this.#start()
    return new Promise((resolve) =>
      this.#link!.ask<Answer | null, undefined>(ask, (answered) =>
        resolve(answered.ok ? (answered.body ?? undefined) : undefined),
      ),
    )
  }

  #start(): void {
    const { actorHost, news, directory, address, loopback, limitsOn, deliveryScale, clock, startThread } = this.#options
    const thread = new Supervised({
      name: 'delivery',
      file: threadFile('delivery'),
      mayRestart: () => true,
      onEvent: log,
      // A failure here stops only deliveries, which are retried after a while.
      onFatal: (_name, words) => this.#failed(words.message),
      now: clock.monotonicMs,
      timers: clock,
      startThread,
      startData: () => {
        const front = this.#options.channel()
        this.#link?.close()
        this.#link = new Link({
          port: front.port1,
          openMax: internalLimits.waitersMax,
          patienceMs: internalLimits.patienceMs,
          now: clock.monotonicMs,
          timers: clock,
          onAsk: (body, id) => {
            const link = this.#link!
            this.#answer(body as DeliveryAsk).then(
              (found) => link.answer(id, found ?? null),
              () => link.answer(id, null),
            )
          },
        })
        const data: DeliveryThread = {
          directory: deliveryDirectory(directory.path),
          sources: actorHost.shards + 1,
          cursorKey: directory.cursorKey,
          epoch: epochOf(directory),
          serviceId: directory.facts.service_id,
          address,
          loopback,
          limitsOn,
          scale: deliveryScale,
          suspended: [...news.suspended],
          headSize: news.head.size,
          turns: actorHost.turns,
          front: front.port2,
        }
        return { data, transfer: [front.port2] }
      },
    })
    this.#thread = thread
    for (let shard = 0; shard < actorHost.shards; shard++) actorHost.tellShard(shard, ['deliver', true])
    thread.start().catch((error: Error) => this.#failed(error.message))
  }

  #failed(problem: string): void {
    log('error', 'delivery.stopped', { problem })
    this.#link?.close()
    this.#link = undefined
    this.#thread = undefined
    this.#options.clock.later(() => {
      if (!this.#closed && this.#thread === undefined) this.#start()
    }, restartAfterMs)
  }

  async #answer(ask: DeliveryAsk): Promise<unknown> {
    const { actorHost, news } = this.#options
    switch (ask[0]) {
      case 'source':
        return this.#source(ask[1], await this.#informed(ask[1], ask[2]))
      case 'now': {
        const asks = Array.from({ length: actorHost.shards + 1 }, (_, source) =>
          this.#source<Since>(source, ['since', { from: Number.MAX_SAFE_INTEGER, since: 0 }]),
        )
        const found = await Promise.all(asks)
        return found.includes(undefined) ? undefined : found.map((each) => each!.now)
      }
      case 'head':
        return news.head
      case 'hooks': {
        const page = await this.#shardRead(ask[1], { op: 'hook.all', args: { after: ask[2] }, reader: '' })
        if (page === undefined) return undefined
        const { hooks, ...rest } = page
        return { ...rest, hooks: this.#bounded(hooks) }
      }
      case 'own': {
        const shard = shardOf(hooksOf(ask[1]), actorHost.shards)
        const request = { op: 'hook.changed', args: { owner: ask[1], known: ask[2] }, reader: '' } as const
        const found = await this.#shardRead(shard, request)
        if (found === undefined) return undefined
        return { hooks: this.#bounded(found.hooks), same: this.#living(found.same) } satisfies ChangedHooks
      }
      case 'end':
        return this.webhooks.say('hook.end', ask[1], { hook: ask[2], epoch: ask[3], wakes: ask[4] })
    }
  }

  /** The hooks still valid; a delegate's hook without the scope for private data gets only public data. */
  #bounded(hooks: readonly HookView[]): HookView[] {
    const { delegates } = this.#options.news
    return this.#living(hooks).map((hook) => {
      const scopes = hook.delegation === undefined ? undefined : delegates.find(hook.delegation)?.scopes
      return scopes === undefined || scopes.has(privateScope) ? hook : { ...hook, publicOnly: true }
    })
  }

  /** Filters out hooks whose delegation is over, and ends them. */
  #living<Hook extends ChangedHooks['same'][number]>(hooks: readonly Hook[]): Hook[] {
    const { delegates } = this.#options.news
    return hooks.filter(({ delegation, owner, hook, epoch }) => {
      if (delegation === undefined || delegates.isActive(delegation)) return true
      void this.webhooks.say('hook.end', owner, { hook, epoch })
      return false
    })
  }

  /** Adds what the source does not know: readers' handles and blocks, and for works the market's offer. */
  async #informed(source: number, ask: HooksAsk): Promise<HooksAsk> {
    if (ask[0] !== 'payloads') return ask
    const requests = await Promise.all(
      ask[2].map(async (request): Promise<PayloadRequest> => {
        if (offers.has(request.kind) && this.#isApart(source))
          return { ...request, offer: await this.#offerOf(request) }
        if (!spoken.has(request.kind)) return request
        const handle = this.#options.news.handles.get(request.reader) ?? ''
        return { ...request, handle, blocked: await this.#blockedBy(request.reader) }
      }),
    )
    return ['payloads', ask[1], requests]
  }

  /** The source has private rooms, and the market is in a different shard. */
  #isApart(source: number): boolean {
    return source !== 0 && source - 1 !== shardOf(marketName, this.#options.actorHost.shards)
  }

  #offerOf({ subject, filter: { eligible_for }, reader }: PayloadRequest): Promise<Offer | null> {
    const { actorHost } = this.#options
    const args = { event_id: subject, ...(eligible_for === undefined ? {} : { eligible_for }) }
    return new Promise((resolve, reject) =>
      actorHost.readPrivate(
        shardOf(marketName, actorHost.shards),
        { op: 'work.offer', args, reader } as const,
        (found) => {
          if (found?.ok) resolve(dataOf(found))
          else if (found !== undefined && 'absent' in found) resolve(null)
          else reject(new Error('the market did not answer'))
        },
      ),
    )
  }

  #blockedBy(reader: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) =>
      this.#options.reads.read({ op: 'inbox.blocked', args: {}, reader }, (found) => {
        if (found?.ok) resolve(dataOf(found).blocked)
        else reject(new Error('the read of blocked identities failed'))
      }),
    )
  }

  #source<Answer = HooksAnswer>(source: number, ask: HooksAsk): Promise<Answer | undefined> {
    const { actorHost } = this.#options
    return new Promise((resolve) => {
      const take = (found: unknown) =>
        resolve(typeof found === 'object' && found !== null && !('refusal' in found) ? (found as Answer) : undefined)
      if (source === 0) actorHost.askFeed<HooksAnswer>(['hooks', ask, actorHost.seen], take)
      else actorHost.askShard<HooksAnswer>(source - 1, ['hooks', ask], take)
    })
  }

  #shardRead<Name extends AnyReadName>(shard: number, request: ReadRequest<Name>): Promise<AnswerOf<Name> | undefined> {
    return new Promise((resolve) =>
      this.#options.actorHost.readPrivate(shard, request, (found) => resolve(found?.ok ? dataOf(found) : undefined)),
    )
  }
}

function epochOf({ facts: { generation, layout = '' } }: BoardDirectory): PlacesEpoch {
  return { generation, layout }
}
