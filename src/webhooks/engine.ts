/**
 * The delivery engine: follows what happens in every source (the feed, and each shard for what is private), finds the hooks
 * that asked for it, and has it sent to each in order, one at a time, again and again until it is taken or given up.
 *
 *   source -> signals -> hooks that asked -> queue of each -> lane of its host -> built now -> signed -> sent -> place kept
 *
 * Nothing that is sent is kept: a place in a source is all that a hook owns, so that after a kill, or after a week in which
 * its target was away, the rest is read from the journals again. At least once, in order, the same id each time.
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
import type { DeliveryStore, Place } from './store.ts'
import { SubscriptionIndex, wantedBy } from './subscription-index.ts'
import { HookRun, queueLow } from './subscription-run.ts'

export type EngineOptions = {
  readonly store: DeliveryStore
  readonly sender: Sender
  /** Next place of each source now. Sources: the feed is 0, shard n is n + 1. */
  readonly now: readonly number[]
  /** undefined: no answer came, ask again. */
  readonly ask: (source: number, ask: HooksAsk) => Promise<HooksAnswer | undefined>
  /** Newest size of the log. */
  readonly headSize: () => number
  /**
   * Asks for the end of a hook as it stands: its time has run out, or its owner may not read any more. Once it is known what has become
   * of it `own` is called; where it was refused, or no answer came, it is asked for again.
   */
  readonly end: (run: HookView) => Promise<void>
  readonly isSuspended: (owner: string) => boolean
  /** Unix milliseconds. */
  readonly wallMs: () => number
  readonly chance: () => number
  readonly timers: Timers
  /** Of all waits; 1 but in tests. */
  readonly scale: number
  readonly slots: number
  readonly perHost: number
  readonly headEveryMs: number
  readonly report: (event: string, facts: Readonly<Record<string, unknown>>) => void
}

const sweepEveryMs = 500
const againMs = 500
/** Reads of a record that fail before it is passed over, the last of them after two minutes: what follows it must not wait forever. */
const unreadMax = 8
/** Suspended for so long and never woken, a webhook makes room for others. */
const forgottenMs = 30 * 86_400_000
/** An answer that takes longer keeps others waiting: its host is treated as one that fails. */
const slowMs = 2_000

/** Says whether the target answered as it should. */
type Done = (isGood: boolean) => void

export class Engine {
  readonly #options: EngineOptions
  readonly #runs = new Map<string, HookRun>()
  readonly #byOwner = new Map<string, Set<HookRun>>()
  readonly #interest = new SubscriptionIndex()
  readonly #lanes: HostQueues<HookRun>
  readonly #catchUp: CatchUp
  readonly #places: Map<string, Place>
  readonly #sources: Sources
  readonly #books: PositionWriter
  readonly #endings: SubscriptionExpiry
  /** Those that failed, until they are tried again. */
  readonly #waits: Waits<HookRun>
  /** Owners whose hooks are being asked for. */
  readonly #held = new Set<string>()
  /** All hooks of the start are here: what is read before would never be delivered to those that come after it. */
  #isComplete = false
  readonly #stopSweeping: Cancel
  #closed = false

  constructor(options: EngineOptions) {
    this.#options = options
    const { store, now, slots, perHost, wallMs, timers, report } = options
    const kept = store.tails()
    // What was restored from an older copy knows less than these places.
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
    this.#lanes = new HostQueues({ slots, perHost, run: (run, done) => this.#deliver(run, done) })
    this.#catchUp = new CatchUp({
      scan: (source, request) => this.#sources.page(source, () => request),
      tail: (source) => this.#tails[source]!,
      changed: (run) => this.#queued(run),
    })
    this.#books = new PositionWriter({ store, tails: () => this.#tails, wallMs, timers, report })
    this.#waits = new Waits({
      timers,
      due: (run) => run.course.notBefore,
      now: wallMs,
      come: (run) => this.#ready(run),
    })
    this.#endings = new SubscriptionExpiry({ end: options.end, now: wallMs, scale: options.scale })
    this.#stopSweeping = timers.every(() => this.#sweep(), sweepEveryMs)
  }

  get #tails(): readonly number[] {
    return this.#sources.tails
  }

  get count(): number {
    return this.#runs.size
  }

  /** Takes a hook, or what has become of it. */
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
    this.#books.added(run)
    if (run.behind.length > 0) this.#catchUp.add(run)
    if (run.redelivery !== undefined) this.#ready(run)
  }

  /** The hooks of an owner have changed: until it is known how, nothing is sent to them. */
  hold(owner: string): void {
    this.#held.add(owner)
  }

  /** How the hooks of an owner stand here. */
  known(owner: string): string {
    return Array.from(this.#byOwner.get(owner) ?? [], ({ view }) => standing(view)).join()
  }

  /** All hooks of an owner, as they stand now. */
  own(owner: string, { hooks, same }: ChangedHooks): void {
    this.#held.delete(owner)
    const ids = new Set([...hooks, ...same].map(({ hook }) => hook))
    for (const run of this.#byOwner.get(owner) ?? []) if (!ids.has(run.id)) this.#remove(run)
    for (const view of hooks) this.put(view)
    this.standing(owner)
  }

  /** Every hook there is has been put: what the store has of others is forgotten. */
  complete(): void {
    for (const id of this.#places.keys()) this.#books.removed(id)
    this.#places.clear()
    this.#isComplete = true
    for (let source = 0; source < this.#tails.length; source++) this.news(source)
  }

  /** Something may have happened in a source. */
  news(source: number): void {
    if (this.#isComplete) this.#sources.news(source)
  }

  /** What the owner of a hook sees of its deliveries. */
  status(id: string) {
    const run = this.#runs.get(id)
    return run === undefined
      ? undefined
      : { status: statusOf(run.course, this.#options.wallMs()), ...this.#backlog(run) }
  }

  /** Sealed nowhere: everything before is delivered, or of no interest. */
  marks(id: string): readonly number[] | undefined {
    return this.#runs.get(id)?.marks(this.#tails)
  }

  /** An identity may read again, or no more. */
  standing(owner: string): void {
    for (const run of this.#byOwner.get(owner) ?? []) this.#ready(run)
  }

  /** Keeps what is known by now. */
  close(): void {
    this.#closed = true
    this.#sources.close()
    this.#catchUp.close()
    this.#stopSweeping()
    this.#waits.close()
    this.#books.close()
  }

  /** What was recorded and is not in the store yet is written first. */
  flush(): void {
    this.#books.commit()
  }

  /** Deliveries that are queued, of all hooks. Of one that is far behind only the next are. */
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

  /** The newest head, for hooks that want heads and were not sent one a moment ago. */
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
    this.#books.moved(run)
    this.#ready(run)
  }

  /** Puts it into its lane, where there is something to send and nothing in the way. */
  #ready(run: HookRun): void {
    const { owner } = run.view
    if (run.flying || run.removed || run.isOver || this.#closed || this.#held.has(owner)) return
    if (this.#options.isSuspended(owner)) return
    const redelivers = run.redelivery !== undefined
    if (!redelivers && (run.course.suspended || run.queue.length === 0)) return
    this.#waits.remove(run)
    if (!redelivers && run.course.notBefore > this.#options.wallMs()) return this.#waits.add(run)
    run.flying = true
    this.#lanes.add(run.host, run)
  }

  #deliver(run: HookRun, done: Done): void {
    const { owner } = run.view
    if (run.removed || this.#closed) return done(true)
    if (run.isOver || this.#held.has(owner) || this.#options.isSuspended(owner)) {
      run.flying = false
      return done(true)
    }
    const begun = this.#options.wallMs()
    const over: Done = (isGood) => {
      run.flying = false
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

  /** Takes note of what came of an attempt; true: the target answered as it should. */
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
    // After one that was passed over the next such is passed over at once.
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
    else this.#books.moved(run)
    return sent.outcome.kind !== 'failed'
  }

  #settled(run: HookRun): void {
    run.queue.shift()
    this.#books.moved(run)
    // Once when there is room, once when there is nothing left: not for every delivery.
    if (run.behind.length > 0 && (run.queue.length === queueLow || run.queue.length === 0)) this.#catchUp.wake()
  }

  /** Its owner may not read there any more: a subscription ends, a webhook stands still and says why. */
  #barred(run: HookRun): boolean {
    if (run.view.form === 'mcp') {
      this.#options.sender.terminated(run.view)
      this.#end(run)
      return true
    }
    // Of a webhook with several kinds the others continue.
    if (run.view.kinds.some((kind) => kind !== 'room.post' && kind !== 'document.written')) this.#settled(run)
    else
      run.course = { ...run.course, suspended: true, lastError: 'access_revoked', failedSince: this.#options.wallMs() }
    this.#books.moved(run)
    return true
  }

  /** Sends once more what was sent before; one attempt, whatever comes of it. */
  #redeliver(run: HookRun, { number, event }: { number: number; event: string }, over: Done): void {
    this.flush()
    const row = this.#options.store.delivery(run.id, event)
    const redone = (isGood: boolean) => {
      run.redone = number
      this.#books.moved(run)
      over(isGood)
    }
    if (row === undefined) return redone(true)
    const signal = { ...noSignal, ...row, state: row.work }
    const pending: Pending = { source: row.source, signal, kind: row.kind as HookKind, nth: 0, named: undefined }
    this.#options.sender.send(run, pending, run.marks(this.#tails), (sent) => {
      // What was recorded of it now would stay: it is not removed a second time.
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

  /** Deliveries are listed for the owners of plain webhooks alone. */
  #note(run: HookRun, made: Omit<Made, 'now'>): void {
    if (run.view.form === 'webhook') this.#books.delivered(run.id, rowOf({ ...made, now: this.#options.wallMs() }))
  }

  #changed(run: HookRun, view: HookView): void {
    const isWoken = view.wakes > run.view.wakes
    // Its content never changes: its id follows from that.
    run.view = view
    run.deliveryHead = undefined
    if (!isWoken) return
    run.isOver = false
    this.#endings.forget(run)
    run.course = woken(run.course)
    this.#books.moved(run)
    if (run.behind.length > 0) this.#catchUp.add(run)
    this.#ready(run)
  }

  /** Nothing is sent to it any more, unless it turns out to have been renewed at the same moment: then it continues where it was. */
  #end(run: HookRun): void {
    run.isOver = true
    this.#endings.over(run)
  }

  #remove(run: HookRun): void {
    this.#drop(run)
    this.#books.removed(run.id)
  }

  #drop(run: HookRun): void {
    run.removed = true
    this.#runs.delete(run.id)
    const owned = this.#byOwner.get(run.view.owner)
    if (owned?.delete(run) === true && owned.size === 0) this.#byOwner.delete(run.view.owner)
    this.#endings.forget(run)
    this.#waits.remove(run)
    this.#interest.remove(run)
    this.#catchUp.remove(run)
    this.#books.dropped(run)
  }

  /** Ends those whose time has run out, and announces heads that have waited. */
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
