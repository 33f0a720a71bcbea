/**
 * The thread that delivers webhooks and MCP Events, on its own core, started when the first hook exists. Wiring only: it queries the main
 * thread, which queries the feed or a shard. The logic is in src/webhooks/.
 */

import { internalLimits, rates, sizes } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { type Clock, pause } from '../clock.ts'
import { CursorSealer, type PlacesEpoch, type SealingKeys } from '../format/cursor.ts'
import { Poster } from '../outgoing/poster.ts'
import type { Random } from '../platform.ts'
import { Limiter } from '../rates/meters.ts'
import { release } from '../release.ts'
import { Engine } from '../webhooks/engine.ts'
import { Payloads } from '../webhooks/payload-batches.ts'
import type { HooksAnswer, HooksAsk } from '../webhooks/payloads/answer.ts'
import type { ChangedHooks, HookView } from '../webhooks/reads.ts'
import { type Head, Sender } from '../webhooks/sender.ts'
import type { EngineAsk, HookStatus, VerifyAnswer, VerifyAsk } from '../webhooks/service.ts'
import { DeliveryStore } from '../webhooks/store.ts'
import type { Report, ThreadPlatform, ThreadStarter } from './thread.ts'

export type DeliveryThread = {
  readonly directory: string
  readonly sources: number
  readonly cursorKey: SealingKeys
  readonly epoch: PlacesEpoch
  readonly serviceId: string
  readonly address: string
  readonly loopback: boolean
  readonly limitsOn: boolean
  /** Applies to all waits between attempts. */
  readonly scale: number
  readonly suspended: readonly string[]
  readonly headSize: number
  /** Shared. Incremented before anything new and public is announced. */
  readonly turns: Int32Array
  readonly front: Port
}

/** What it requests from the main thread. */
export type DeliveryAsk =
  | readonly ['source', source: number, HooksAsk]
  /** The current next place of each source. */
  | readonly ['now']
  | readonly ['head']
  /** A shard's hooks with numbers above this one. */
  | readonly ['hooks', shard: number, after: number]
  /** An identity's hooks, in full unless their version is `known`. */
  | readonly ['own', owner: string, known: string]
  /** Ends a hook that was not renewed since it had this state. */
  | readonly ['end', owner: string, hook: string, epoch: number, wakes: number]

/** What the main thread sends it. */
export type DeliveryTell =
  | readonly ['news', source: number, headSize: number]
  | readonly ['suspended', owner: string, isSuspended: boolean]

type HooksPage = { readonly hooks: readonly HookView[]; readonly next: number; readonly more: boolean }

const verifiedSeconds = 86_400
const againMs = 500
const asksMax = 4_096
/** Concurrent challenges. */
const challengesMax = 32

/** A pending query for an owner's hooks; `isOld` if something has changed since it began. */
type Asking = { isOld: boolean; readonly known: Promise<void> }

/** Its connections to the outside: the file that stores its progress, and the client that posts to targets. */
type Outside = { readonly store: DeliveryStore; readonly poster: Pick<Poster, 'target' | 'post' | 'close'> }

class Deliverer {
  readonly #data: DeliveryThread
  readonly #clock: Clock
  readonly #random: Random
  readonly #report: Report
  readonly #store: DeliveryStore
  readonly #poster: Outside['poster']
  readonly #sender: Sender
  readonly #payloads: Payloads
  readonly #challenges: Challenges
  readonly #front: Link
  readonly #suspended: Set<string>
  readonly #asking = new Map<string, Asking>()
  #headSize: number
  #isStopping = false
  /** Set once the position of every source is known. */
  #engine: Engine | undefined
  readonly #loaded: Promise<Engine>

  constructor(data: DeliveryThread, { clock, random, report }: ThreadPlatform, { store, poster }: Outside) {
    this.#report = report
    this.#clock = clock
    this.#random = random
    const { epoch, serviceId, address } = data
    this.#data = data
    this.#suspended = new Set(data.suspended)
    this.#headSize = data.headSize
    this.#store = store
    this.#poster = poster
    this.#payloads = new Payloads({
      address,
      ask: (source, asked) => this.#ask<HooksAnswer>(['source', source, asked]),
      turn: () => Atomics.load(data.turns, 0),
      now: clock.monotonicMs,
      soon: clock.soon,
      fault: (problem) => report('error', 'delivery.not_built', { problem }),
    })
    this.#sender = new Sender({
      poster: this.#poster,
      payload: (pending, view, give) => this.#payloads.get(pending, view, give),
      head: () => this.#ask<Head>(['head']),
      cursors: new CursorSealer(data.cursorKey),
      epoch,
      serviceId,
      address,
      wallMs: clock.wallMilliseconds,
      random,
    })
    this.#challenges = new Challenges(this.#store, this.#sender, clock, data.limitsOn)
    this.#front = new Link({
      port: data.front,
      openMax: asksMax,
      patienceMs: internalLimits.patienceMs,
      now: clock.monotonicMs,
      timers: clock,
      onAsk: (body, id) => this.#onAsk(body as EngineAsk, id),
      onTell: (body) => this.#receive(body as DeliveryTell),
    })
    this.#loaded = this.#load()
  }

  stop(): void {
    this.#isStopping = true
    this.#engine?.close()
    this.#poster.close()
    this.#front.close()
    this.#store.close()
  }

  async #load(): Promise<Engine> {
    const engine = this.#engineAt(await this.#askUntil<readonly number[]>(['now']))
    this.#engine = engine
    for (let shard = 0; shard < this.#data.sources - 1; shard++) {
      for (let after = 0, more = true; more; ) {
        const page = await this.#askUntil<HooksPage>(['hooks', shard, after])
        for (const view of page.hooks) engine.put(view)
        after = page.next
        more = page.more
      }
    }
    engine.complete()
    return engine
  }

  #engineAt(now: readonly number[]): Engine {
    const { scale } = this.#data
    return new Engine({
      store: this.#store,
      sender: this.#sender,
      now,
      ask: (source, asked) => this.#ask<HooksAnswer>(['source', source, asked]),
      headSize: () => this.#headSize,
      end: async ({ owner, hook, epoch, wakes }) => {
        const answered = await this.#ask<object>(['end', owner, hook, epoch, wakes])
        // A refusal (full disk, busy shard) changed nothing.
        if (answered !== undefined && !('code' in answered)) await this.#changed(await this.#loaded, owner)
      },
      isSuspended: (owner) => this.#suspended.has(owner),
      wallMs: this.#clock.wallMilliseconds,
      timers: this.#clock,
      chance: () => this.#random(4).readUInt32LE() / 2 ** 32,
      scale,
      slots: internalLimits.deliverySlots,
      perHost: internalLimits.deliverySlotsPerHost,
      headEveryMs: internalLimits.headIntervalMsMin * scale,
      report: (event, facts) => this.#report('error', event, facts),
    })
  }

  /** Undefined if no answer came. */
  #ask<Answer>(asked: DeliveryAsk): Promise<Answer | undefined> {
    return new Promise((resolve) =>
      this.#front.ask<Answer | null, undefined>(asked, (answered) =>
        resolve(answered.ok ? (answered.body ?? undefined) : undefined),
      ),
    )
  }

  async #askUntil<Answer>(asked: DeliveryAsk): Promise<Answer> {
    for (;;) {
      const found = await this.#ask<Answer>(asked)
      if (found !== undefined) return found
      // Nobody waits for it anymore, and no timer may keep this thread alive.
      await (this.#isStopping ? new Promise(() => {}) : pause(this.#clock, againMs))
    }
  }

  #changed(engine: Engine, owner: string): Promise<void> {
    const under = this.#asking.get(owner)
    if (under !== undefined) {
      under.isOld = true
      return under.known
    }
    engine.hold(owner)
    const ask = async () => {
      let own: ChangedHooks
      do {
        state.isOld = false
        own = await this.#askUntil<ChangedHooks>(['own', owner, engine.known(owner)])
      } while (state.isOld)
      this.#asking.delete(owner)
      engine.own(owner, own)
    }
    const state: Asking = { isOld: false, known: Promise.resolve().then(ask) }
    this.#asking.set(owner, state)
    return state.known
  }

  #onAsk(asked: EngineAsk, id: number): void {
    this.#answer(asked).then(
      (found) => this.#front.answer(id, found ?? null),
      (error: unknown) => {
        this.#report('error', 'delivery.fault', { problem: String(error) })
        this.#front.answer(id, null)
      },
    )
  }

  async #answer(asked: EngineAsk): Promise<unknown> {
    const engine = await this.#loaded
    switch (asked[0]) {
      case 'verify':
        return this.#challenges.verify(engine, asked[1])
      case 'changed':
        await this.#changed(engine, asked[1])
        return true
      case 'status':
        return asked[1].map((id): HookStatus | null => {
          const status = engine.status(id)
          return status === undefined ? null : { ...status, marks: engine.marks(id)! }
        })
      case 'waiting':
        return engine.waiting
      case 'positions':
        engine.flush()
        return this.#store.leaderPositions()
      case 'deliveries':
        return engine.deliveries(asked[1], asked[2], asked[3])
      case 'delivery':
        engine.flush()
        return this.#store.delivery(asked[1], asked[2]) !== undefined
    }
  }

  #receive(message: DeliveryTell): void {
    if (message[0] === 'news') {
      this.#headSize = Math.max(this.#headSize, message[2])
      if (message[1] === 0) this.#payloads.forget()
      return this.#engine?.news(message[1])
    }
    if (message[2]) this.#suspended.add(message[1])
    else this.#suspended.delete(message[1])
    this.#engine?.standing(message[1])
  }
}

/** Has addresses prove that they want deliveries. Limited per hour and in concurrency. */
class Challenges {
  readonly #store: DeliveryStore
  readonly #sender: Sender
  readonly #clock: Clock
  readonly #byOwner: Limiter | undefined
  readonly #byHost: Limiter | undefined
  #open = 0

  constructor(store: DeliveryStore, sender: Sender, clock: Clock, limitsOn: boolean) {
    this.#clock = clock
    this.#store = store
    this.#sender = sender
    const perHour = (count: number) =>
      limitsOn && Number.isFinite(count)
        ? new Limiter({ perSecond: count / 3_600, burst: count }, clock.monotonicMs)
        : undefined
    this.#byOwner = perHour(rates.verifications_per_identity_per_hour)
    this.#byHost = perHour(rates.verifications_per_host_per_hour)
  }

  async verify(engine: Engine, { owner, url, hook, secret }: VerifyAsk): Promise<VerifyAnswer> {
    if (engine.count >= sizes.hooks && engine.marks(hook) === undefined) return { ok: false, full: true }
    const now = this.#clock.wallSeconds
    if (this.#store.isVerified(owner, url, now())) return { ok: true }
    const wait = this.#byOwner?.take(owner) || this.#byHost?.take(new URL(url).hostname) || 0
    if (wait > 0) return { ok: false, wait }
    if (this.#open >= challengesMax) return { ok: false, wait: 1 }
    this.#open++
    try {
      const trouble = await this.#sender.challenge({ url, hook, secret })
      if (trouble !== '') return { ok: false, trouble }
    } finally {
      this.#open--
    }
    this.#store.verified(owner, url, now() + verifiedSeconds, now())
    return { ok: true }
  }
}

export function delivering(data: DeliveryThread, here: ThreadPlatform, outside: Outside): ReturnType<typeof thread> {
  const deliverer = new Deliverer(data, here, outside)
  return { facts: {}, stop: () => deliverer.stop() }
}

export const thread: ThreadStarter<DeliveryThread> = (data, here) => {
  const { directory, loopback, address } = data
  const store = DeliveryStore.open(directory, (file, problem) =>
    here.report('error', 'delivery.damaged', {
      file,
      problem,
      kept_as: `${file}.damaged`,
      effect: 'every webhook restarts from where it was created',
    }),
  )
  const userAgent = `Broadside/${release} (+${address})`
  return delivering(data, here, { store, poster: new Poster({ loopback, userAgent, clock: here.clock }) })
}
