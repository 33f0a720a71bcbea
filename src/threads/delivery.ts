/**
 * The thread that delivers: webhooks and MCP Events, on a core of its own, started by the first hook there is. Wiring only:
 * what it wants to know it asks the main thread, which asks the feed or a shard; what it does stands in src/webhooks/.
 */
import { randomInt } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'
import { inside, rates, sizes } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import { monotonicMs, wallMilliseconds } from '../clock.ts'
import { CursorSealer } from '../format/cursor.ts'
import { Limiter } from '../limits/limiter.ts'
import { Poster } from '../outgoing/poster.ts'
import { release } from '../release.ts'
import { Engine } from '../webhooks/engine.ts'
import { Payloads } from '../webhooks/payload-batches.ts'
import type { HooksAnswer, HooksAsk } from '../webhooks/payloads/answer.ts'
import type { ChangedHooks, HookView } from '../webhooks/reads.ts'
import { type Head, Sender } from '../webhooks/sender.ts'
import type { EngineAsk, HookStatus, VerifyAnswer, VerifyAsk } from '../webhooks/service.ts'
import { DeliveryStore } from '../webhooks/store.ts'
import { report, runThread } from './entry.ts'

export type DeliveryThread = {
  readonly directory: string
  readonly sources: number
  readonly cursorKey: Uint8Array
  readonly generation: string
  readonly serviceId: string
  readonly address: string
  readonly loopback: boolean
  readonly limitsOn: boolean
  /** Of all waits between attempts. */
  readonly scale: number
  readonly suspended: readonly string[]
  readonly headSize: number
  /** Shared: grows before anything new and public is announced. */
  readonly turns: Int32Array
  readonly front: MessagePort
}

/** What it asks the main thread. */
export type DeliveryAsk =
  | readonly ['source', source: number, HooksAsk]
  /** Next place of each source now. */
  | readonly ['now']
  | readonly ['head']
  /** Hooks of a shard, after this number. */
  | readonly ['hooks', shard: number, after: number]
  /** Hooks of an identity, in full where they do not stand as it is known. */
  | readonly ['own', owner: string, known: string]
  /** Ends a hook that was not renewed since it was in this state. */
  | readonly ['end', owner: string, hook: string, epoch: number, wakes: number]

/** What the main thread sends it. */
export type DeliveryTell =
  | readonly ['news', source: number, headSize: number]
  | readonly ['suspended', owner: string, isSuspended: boolean]

export type HooksPage = { readonly hooks: readonly HookView[]; readonly next: number; readonly more: boolean }

const verifiedSeconds = 86_400
const againMs = 500
const asksMax = 4_096
/** Challenges at the same time. */
const challengesMax = 32

runThread((data: DeliveryThread) => {
  const store = DeliveryStore.open(data.directory, (file, problem) =>
    report('error', 'delivery.damaged', {
      file,
      problem,
      kept_as: `${file}.damaged`,
      effect: 'every webhook begins again where it was made',
    }),
  )
  const cursors = new CursorSealer(data.cursorKey)
  const userAgent = `Broadside/${release} (+${data.address})`
  const poster = new Poster({ loopback: data.loopback, userAgent, now: monotonicMs })
  const suspended = new Set(data.suspended)
  let headSize = data.headSize
  let challenges = 0
  let isStopping = false
  /** There from when it is known where the sources stand. */
  let engine: Engine | undefined

  const front = new Link({
    port: data.front,
    openMax: asksMax,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onAsk: (body, id) => {
      answer(body as EngineAsk).then(
        (found) => front.answer(id, found ?? null),
        (error: unknown) => {
          report('error', 'delivery.fault', { problem: String(error) })
          front.answer(id, null)
        },
      )
    },
    onTell: (body) => hear(body as DeliveryTell),
  })
  /** undefined: no answer came. */
  const ask = <Answer>(asked: DeliveryAsk): Promise<Answer | undefined> =>
    new Promise((resolve) =>
      front.ask<Answer | null, undefined>(asked, (answered) =>
        resolve(answered.ok ? (answered.body ?? undefined) : undefined),
      ),
    )
  const askUntil = async <Answer>(asked: DeliveryAsk): Promise<Answer> => {
    for (;;) {
      const found = await ask<Answer>(asked)
      if (found !== undefined) return found
      // No caller waits for it any more, and no timer is to keep this thread.
      await new Promise((resolve) => isStopping || setTimeout(resolve, againMs))
    }
  }
  const askSource = (source: number, asked: HooksAsk) => ask<HooksAnswer>(['source', source, asked])
  const payloads = new Payloads({
    address: data.address,
    ask: askSource,
    turn: () => Atomics.load(data.turns, 0),
    now: monotonicMs,
    fault: (problem) => report('error', 'delivery.not_built', { problem }),
  })
  const sender = new Sender({
    poster,
    payload: (pending, view, give) => payloads.get(pending, view, give),
    head: () => ask<Head>(['head']),
    cursors,
    generation: data.generation,
    serviceId: data.serviceId,
    address: data.address,
    wallMs: wallMilliseconds,
  })
  const engineAt = (now: readonly number[]) =>
    new Engine({
      store,
      sender,
      now,
      ask: askSource,
      headSize: () => headSize,
      end: async ({ owner, hook, epoch, wakes }) => {
        const said = await ask<object>(['end', owner, hook, epoch, wakes])
        // A refusal (a full disk, a busy shard) has changed nothing.
        if (said !== undefined && !('code' in said)) await changed(await loaded, owner)
      },
      isSuspended: (owner) => suspended.has(owner),
      wallMs: wallMilliseconds,
      chance: () => randomInt(1_000_000) / 1_000_000,
      scale: data.scale,
      slots: inside.deliverySlots,
      perHost: inside.deliverySlotsPerHost,
      headEveryMs: inside.headEveryMs * data.scale,
      report: (event, facts) => report('error', event, facts),
    })
  const perHour = (count: number) =>
    data.limitsOn && Number.isFinite(count)
      ? new Limiter({ perSecond: count / 3_600, burst: count }, monotonicMs)
      : undefined
  const byOwner = perHour(rates.verifications_per_identity_per_hour)
  const byHost = perHour(rates.verifications_per_host_per_hour)

  const verify = async (engine: Engine, { owner, url, hook, secret }: VerifyAsk): Promise<VerifyAnswer> => {
    if (engine.count >= sizes.hooks && engine.marks(hook) === undefined) return { ok: false, full: true }
    const now = () => Math.floor(wallMilliseconds() / 1000)
    if (store.isVerified(owner, url, now())) return { ok: true }
    const wait = byOwner?.take(owner) || byHost?.take(new URL(url).hostname) || 0
    if (wait > 0) return { ok: false, wait }
    if (challenges >= challengesMax) return { ok: false, wait: 1 }
    challenges++
    try {
      const trouble = await sender.challenge({ url, hook, secret })
      if (trouble !== '') return { ok: false, trouble }
    } finally {
      challenges--
    }
    store.verified(owner, url, now() + verifiedSeconds, now())
    return { ok: true }
  }
  /** By owner: what is being asked for, and whether something has changed since it was. */
  const asking = new Map<string, { isOld: boolean; readonly known: Promise<void> }>()
  const changed = (engine: Engine, owner: string): Promise<void> => {
    const under = asking.get(owner)
    if (under !== undefined) {
      under.isOld = true
      return under.known
    }
    engine.hold(owner)
    const ask = async () => {
      let own: ChangedHooks
      do {
        state.isOld = false
        own = await askUntil<ChangedHooks>(['own', owner, engine.known(owner)])
      } while (state.isOld)
      asking.delete(owner)
      engine.own(owner, own)
    }
    const state = { isOld: false, known: Promise.resolve().then(ask) }
    asking.set(owner, state)
    return state.known
  }
  const answer = async (asked: EngineAsk): Promise<unknown> => {
    const engine = await loaded
    switch (asked[0]) {
      case 'verify':
        return verify(engine, asked[1])
      case 'changed':
        await changed(engine, asked[1])
        return true
      case 'status':
        return asked[1].map((id): HookStatus | null => {
          const status = engine.status(id)
          return status === undefined ? null : { ...status, marks: engine.marks(id)! }
        })
      case 'deliveries':
        engine.flush()
        return store.deliveries(asked[1], asked[2], asked[3])
      case 'delivery':
        engine.flush()
        return store.delivery(asked[1], asked[2]) !== undefined
    }
  }
  const hear = (told: DeliveryTell): void => {
    if (told[0] === 'news') {
      headSize = Math.max(headSize, told[2])
      if (told[1] === 0) payloads.forget()
      return engine?.news(told[1])
    }
    if (told[2]) suspended.add(told[1])
    else suspended.delete(told[1])
    engine?.standing(told[1])
  }
  const load = async (): Promise<Engine> => {
    engine = engineAt(await askUntil<readonly number[]>(['now']))
    for (let shard = 0; shard < data.sources - 1; shard++) {
      for (let after = 0, more = true; more; ) {
        const page = await askUntil<HooksPage>(['hooks', shard, after])
        for (const view of page.hooks) engine.put(view)
        after = page.next
        more = page.more
      }
    }
    engine.complete()
    return engine
  }
  const loaded = load()
  return {
    facts: {},
    stop: () => {
      isStopping = true
      engine?.close()
      poster.close()
      front.close()
      store.close()
    },
  }
})
