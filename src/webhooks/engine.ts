/**
 * The delivery engine: follows every source (the feed, and each shard for private content), finds the hooks subscribed to a
 * change, and delivers to each in order, one at a time, with retries until the target accepts it or the engine gives up.
 *
 *   source -> signals -> subscribed hooks -> queue of each -> queue of its host -> build -> sign -> send -> store the position
 *
 * Payloads are not stored. A hook has only a position in each source, so after a kill, or a week in which its target was away,
 * the rest is read from the journals again. Deliveries are at least once, in order, with the same id each time.
 */

import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import type { HookKind } from '../../actors/webhooks/kind-names.ts'
import { CatchUp } from './catch-up.ts'
import { SubscriptionExpiry, Waits } from './expiry.ts'
import { HostQueues } from './host-queues.ts'
import type { HooksAnswer, HooksAsk } from './payloads/answer.ts'
import type { Signal } from './payloads/signals.ts'
import { noSignal, type Pending, pendingOf } from './pending.ts'
import { type Made, PositionWriter, rowOf } from './position-writer.ts'
import { type ChangedHooks, type HookView, standing } from './reads.ts'
import { afterAttempt, statusOf, woken } from './retry.ts'
import type { Sender, Sent } from './sender.ts'
import { Sources } from './sources.ts'
import type { DeliveryStore, NumberedDelivery, Place } from './store.ts'
import { SubscriptionIndex, wantedBy } from './subscription-index.ts'
import { HookRun, queueLow } from './subscription-run.ts'

export type EngineOptions = {
  readonly store: DeliveryStore
  readonly sender: Sender
  /** The current next position of each source. Sources: the feed is 0, shard n is n + 1. */
  readonly now: readonly number[]
  /** Undefined if no answer came; ask again. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** Newest size of the log. */
  readonly headSize: () => number
  /**
   * Requests the end of a hook in this state: it has expired, or its owner may not read any more. `own` is called once the
   * outcome is known. If it was refused, or no answer came, it is requested again.
   */
  readonly end: (run: HookView) => Promise<void>
  readonly isSuspended: (owner: string) => boolean
  /** Unix milliseconds. */
  readonly wallMs: () => number
  readonly chance: () => number
  readonly timers: Timers
  /** Multiplies all waits; 1 except in tests. */
  readonly scale: number
  readonly slots: number
  readonly perHost: number
  readonly headEveryMs: number
  readonly report: (event: string, facts: Readonly<Record<string, unknown>>) => void
}

const sweepEveryMs = 500
const againMs = 500
/** Failed reads of a record before it is skipped, the last of them after two minutes: what follows must not wait forever. */
const unreadMax = 8
/** A webhook that was suspended this long and never woken makes room for others. */
const forgottenMs = 30 * 86_400_000
/** A slower answer delays other deliveries: its host is treated as one that fails. */
const slowMs = 2_000

/** Reports whether the target answered correctly. */
type Done = (isGood: boolean) => void

export class Engine {
  readonly #options: EngineOptions
  readonly #runs = new Map<string, HookRun>()
  readonly #byOwner = new Map<string, Set<HookRun>>()
  readonly #interest = new SubscriptionIndex()
  readonly #hostQueues: HostQueues<HookRun>
  readonly #catchUp: CatchUp
  readonly #places: Map<string, Place>
  readonly #sources: Sources
  readonly #positions: PositionWriter
  readonly #expiry: SubscriptionExpiry
  /** Hooks that failed, until their retry. */
  readonly #waits: Waits<HookRun>
  /** Owners whose hooks are being fetched again. */
  readonly #held = new Set<string>()
  /** All hooks present at the start have been added. Sources are not read before, because hooks added later would miss what was read. */
  #isComplete = false
  readonly #stopSweeping: Cancel
  #closed = false

  constructor(options: EngineOptions) {
    this.#options = options
    const { store, now, slots, perHost, wallMs, timers, report } = options
    const kept = store.tails()
    // If the journals were restored from an older copy, they end before the stored positions.
    this.#sources = new Sources({
      ask: options.ask,
      timers,
      tails: now.map((next, source) => Math.min(kept?.[source] ?? next, next)),
      isSpokenTo: () => this.#interest.isSpokenTo,
      route: (source, signal) => this.#route(source, signal),
      onEnd: (source) => {
        if (source === 0) this.#heads()
      },
    })
    this.#places = store.places()
    this.#hostQueues = new HostQueues({ slots, perHost, run: (run, done) => this.#deliver(run, done) })
    this.#catchUp = new CatchUp({
      scan: (source, request) => this.#sources.page(source, () => request),
      tail: (source) => this.#tails[source]!,
      changed: (run) => this.#queued(run),
    })
    this.#positions = new PositionWriter({ store, tails: () => this.#tails, wallMs, timers, report })
    this.#waits = new Waits({
      timers,
      due: (run) => run.course.notBefore,
      now: wallMs,
      onDue: (run) => this.#ready(run),
    })
    this.#expiry = new SubscriptionExpiry({ end: options.end, now: wallMs, scale: options.scale })
    this.#stopSweeping = timers.every(() => this.#sweep(), sweepEveryMs)
  }

  get #tails(): readonly number[] {
    return this.#sources.tails
  }

  get count(): number {
    return this.#runs.size
  }

  /** Adds a hook, or updates it. */
  put(view: HookView): void {
    const known = this.#runs.get(view.hook)
    if (known !== undefined && known.view.epoch === view.epoch) return this.#changed(known, view)
    if (known !== undefined) this.#drop(known)
    const run = new HookRun(
      view,
      this.#places.get(view.hook),
      this.#tails,
      this.#isComplete ? undefined : this.#options.now,
    )
    this.#places.delete(view.hook)
    this.#runs.set(view.hook, run)
    const owned = this.#byOwner.get(view.owner)
    if (owned === undefined) this.#byOwner.set(view.owner, new Set([run]))
    else owned.add(run)
    this.#interest.add(run)
    this.#positions.added(run)
    if (run.behind.length > 0) this.#catchUp.add(run)
    if (run.redelivery !== undefined) this.#ready(run)
  }

  /** The hooks of an owner have changed: nothing is sent to them until it is known how. */
  hold(owner: string): void {
    this.#held.add(owner)
  }

  /** The state of an owner's hooks, as known here. */
  known(owner: string): string {
    return Array.from(this.#byOwner.get(owner) ?? [], ({ view }) => standing(view)).join()
  }

  /** Replaces all hooks of an owner with their current state. */
  own(owner: string, { hooks, same }: ChangedHooks): void {
    this.#held.delete(owner)
    const ids = new Set([...hooks, ...same].map(({ hook }) => hook))
    for (const run of this.#byOwner.get(owner) ?? []) if (!ids.has(run.id)) this.#remove(run)
    for (const view of hooks) this.put(view)
    this.standing(owner)
  }

  /** All existing hooks have been put: the stored positions of any others are dropped. */
  complete(): void {
    for (const id of this.#places.keys()) this.#positions.removed(id)
    this.#places.clear()
    this.#isComplete = true
    for (let source = 0; source < this.#tails.length; source++) this.news(source)
  }

  /** Something may have happened in a source. */
  news(source: number): void {
    if (this.#isComplete) this.#sources.news(source)
  }

  /** The status of a hook's deliveries, as shown to its owner. */
  status(id: string) {
    const run = this.#runs.get(id)
    return run === undefined
      ? undefined
      : { status: statusOf(run.course, this.#options.wallMs()), ...this.#backlog(run) }
  }

  /** The hook's positions, unsealed: everything before them is delivered, or does not concern it. */
  marks(id: string): readonly number[] | undefined {
    return this.#runs.get(id)?.marks(this.#tails)
  }

  /** Newest first, those below `n`. One that waited and was passed over since, as its text is gone, is not sent any more. */
  deliveries(id: string, below: number, limit: number): NumberedDelivery[] {
    this.flush()
    const run = this.#runs.get(id)
    const rows = this.#options.store.deliveries(id, below, limit)
    return rows.map((row) =>
      row.state === 'waiting' && run?.isPast(row) === true ? { ...row, state: 'skipped' } : row,
    )
  }

  /** The suspension of an identity may have begun or ended. */
  standing(owner: string): void {
    for (const run of this.#byOwner.get(owner) ?? []) this.#ready(run)
  }

  /** Stops, and stores what is known so far. */
  close(): void {
    this.#closed = true
    this.#sources.close()
    this.#catchUp.close()
    this.#stopSweeping()
    this.#waits.close()
    this.#positions.close()
  }

  /** Writes what was recorded and is not in the store yet. */
  flush(): void {
    this.#positions.commit()
  }

  /** Number of queued deliveries, of all hooks. A hook that is far behind has only the next few queued. */
  get waiting(): number {
    return [...this.#runs.values()].reduce((sum, { queue }) => sum + queue.length, 0)
  }

  #backlog({ queue, behind }: HookRun) {
    return { waiting: queue.length, more: behind.length > 0 }
  }

  #route(source: number, signal: Signal): void {
    const change = pendingOf(source, signal)
    for (const run of this.#interest.of(signal)) {
      if (run.behind.length > 0 && run.behind.includes(source)) continue
      const wanted = wantedBy(run.view, change)
      if (wanted.length === 0) continue
      if (!run.offer(wanted)) this.#catchUp.add(run)
      this.#queued(run)
    }
  }

  /** Queues the newest head for hooks that want heads and were not sent one a moment ago. */
  #heads(): void {
    const size = this.#options.headSize()
    const now = this.#options.wallMs()
    for (const run of this.#interest.heads) {
      if (run.headSize >= size || now < run.headNotBefore) continue
      if (run.queue.some(({ kind }) => kind === 'log.checkpoint')) continue
      run.headNotBefore = now + this.#options.headEveryMs
      const signal = { ...noSignal, position: this.#tails[0]!, at: Math.floor(now / 1000), item: size }
      run.queue.push({ source: 0, signal, kind: 'log.checkpoint', nth: 0, named: undefined })
      this.#queued(run)
    }
  }

  #queued(run: HookRun): void {
    this.#positions.moved(run)
    this.#ready(run)
  }

  /** Adds the hook to the queue of its host, if there is something to send and nothing prevents it. */
  #ready(run: HookRun): void {
    const { owner } = run.view
    if (run.inFlight || run.removed || run.isOver || this.#closed || this.#held.has(owner)) return
    if (this.#options.isSuspended(owner)) return
    const redelivers = run.redelivery !== undefined
    if (!redelivers && (run.course.suspended || run.queue.length === 0)) return
    this.#waits.remove(run)
    if (!redelivers && run.course.notBefore > this.#options.wallMs()) return this.#waits.add(run)
    run.inFlight = true
    this.#hostQueues.add(run.host, run)
  }

  #deliver(run: HookRun, done: Done): void {
    const { owner } = run.view
    if (run.removed || this.#closed) return done(true)
    if (run.isOver || this.#held.has(owner) || this.#options.isSuspended(owner)) {
      run.inFlight = false
      return done(true)
    }
    const begun = this.#options.wallMs()
    const over: Done = (isGood) => {
      run.inFlight = false
      if (!run.removed) this.#ready(run)
      done(isGood && this.#options.wallMs() - begun < slowMs)
    }
    const redelivery = run.redelivery
    const first = run.queue[0]
    if (redelivery !== undefined) this.#redeliver(run, redelivery, over)
    else if (first === undefined) over(true)
    else
      this.#options.sender.send(run, first, run.marks(this.#tails, 1), (sent) =>
        over(run.removed || run.queue[0] !== first || this.#attempted(run, first, sent)),
      )
  }

  /** Records the outcome of an attempt; returns true if the target answered correctly. */
  #attempted(run: HookRun, pending: Pending, sent: Sent): boolean {
    const { wallMs, chance, scale } = this.#options
    if (sent.kind === 'later') {
      run.course = { ...run.course, notBefore: wallMs() + againMs }
      return true
    }
    if (sent.kind === 'unreadable' && run.unread < unreadMax) {
      run.course = { ...run.course, notBefore: wallMs() + againMs * 2 ** run.unread++ }
      return true
    }
    // After a record was skipped, the next unreadable one is skipped at its first failure.
    if (sent.kind !== 'unreadable') run.unread = 0
    if (sent.kind === 'barred') return this.#barred(run)
    if (sent.kind === 'skipped' || sent.kind === 'unreadable') {
      this.#settled(run)
      return true
    }
    const step = afterAttempt(run.course, sent.outcome, { form: run.view.form, now: wallMs(), chance: chance(), scale })
    this.#note(run, { pending, sent, settled: step.settled, attempts: run.course.attempts + 1 })
    run.course = step.course
    if (sent.outcome.kind === 'delivered' && pending.kind === 'log.checkpoint') run.headSize = sent.item
    if (step.settled) this.#settled(run)
    else this.#positions.moved(run)
    return sent.outcome.kind !== 'failed'
  }

  #settled(run: HookRun): void {
    run.queue.shift()
    this.#positions.moved(run)
    // Wake it once when there is room and once when the queue is empty, not for every delivery.
    if (run.behind.length > 0 && (run.queue.length === queueLow || run.queue.length === 0)) this.#catchUp.wake()
  }

  /** The owner may not read there any more: a subscription ends, a webhook is suspended and shows why. */
  #barred(run: HookRun): boolean {
    if (run.view.form === 'mcp') {
      this.#options.sender.terminated(run.view)
      this.#end(run)
      return true
    }
    // A webhook with several kinds continues with the others.
    if (run.view.kinds.some((kind) => kind !== 'room.post' && kind !== 'document.written')) this.#settled(run)
    else
      run.course = { ...run.course, suspended: true, lastError: 'access_revoked', failedSince: this.#options.wallMs() }
    this.#positions.moved(run)
    return true
  }

  /** Repeats an earlier delivery, with a single attempt, whatever its outcome. */
  #redeliver(run: HookRun, { number, event }: { number: number; event: string }, over: Done): void {
    this.flush()
    const row = this.#options.store.delivery(run.id, event)
    const redone = (isGood: boolean) => {
      run.redone = number
      this.#positions.moved(run)
      over(isGood)
    }
    if (row === undefined) return redone(true)
    const signal = { ...noSignal, ...row, state: row.work }
    const pending: Pending = { source: row.source, signal, kind: row.kind as HookKind, nth: 0, named: undefined }
    this.#options.sender.send(run, pending, run.marks(this.#tails), (sent) => {
      // A record written now would stay forever: the hook is not removed a second time.
      if (run.removed) return over(true)
      const isLater = sent.kind === 'later' || (sent.kind === 'unreadable' && run.unread < unreadMax)
      if (isLater) {
        const waitMs = sent.kind === 'later' ? againMs : againMs * 2 ** run.unread++
        return void this.#options.timers.later(() => over(true), waitMs)
      }
      if (sent.kind === 'sent')
        this.#note(run, { pending, sent, settled: true, attempts: row.attempts + 1, before: row })
      redone(sent.kind !== 'sent' || sent.outcome.kind !== 'failed')
    })
  }

  /** Deliveries are listed only for the owners of plain webhooks. */
  #note(run: HookRun, made: Omit<Made, 'now'>): void {
    if (run.view.form === 'webhook') this.#positions.delivered(run.id, rowOf({ ...made, now: this.#options.wallMs() }))
  }

  #changed(run: HookRun, view: HookView): void {
    const isWoken = view.wakes > run.view.wakes
    // Its content never changes, because its id is derived from it.
    run.view = view
    run.deliveryHead = undefined
    if (!isWoken) return
    run.isOver = false
    this.#expiry.forget(run)
    run.course = woken(run.course)
    this.#positions.moved(run)
    if (run.behind.length > 0) this.#catchUp.add(run)
    this.#ready(run)
  }

  /** Stops sending to it, unless it was renewed at the same moment: then it continues where it was. */
  #end(run: HookRun): void {
    run.isOver = true
    this.#expiry.over(run)
  }

  #remove(run: HookRun): void {
    this.#drop(run)
    this.#positions.removed(run.id)
  }

  #drop(run: HookRun): void {
    run.removed = true
    this.#runs.delete(run.id)
    const owned = this.#byOwner.get(run.view.owner)
    if (owned?.delete(run) === true && owned.size === 0) this.#byOwner.delete(run.view.owner)
    this.#expiry.forget(run)
    this.#waits.remove(run)
    this.#interest.remove(run)
    this.#catchUp.remove(run)
    this.#positions.dropped(run)
  }

  /** Ends hooks that have expired, and sends heads that have waited. */
  #sweep(): void {
    const now = this.#options.wallMs()
    for (const run of this.#runs.values()) {
      const { view, course } = run
      const hasRunOut = view.expires !== 0 && view.expires * 1000 <= now
      const isForgotten = course.suspended && now - course.failedSince > forgottenMs
      if (hasRunOut || isForgotten || run.isOver) this.#end(run)
    }
    this.#heads()
  }
}
