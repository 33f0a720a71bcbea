/**
 * The interface of the rest of the board to hooks. It checks who may have one and from which position, has addresses challenged
 * by the delivery thread, and notifies that thread when the hooks of an owner have changed.
 */

import { forCaller, type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { AnsweredBy, AnyReadName } from '../../actors/operations.ts'
import { type InternalWriteName, internalLetter } from '../../actors/records/internal-operations.ts'
import { shardOf } from '../../actors/shard.ts'
import { hasRunOut, hooksOf } from '../../actors/webhooks/decide.ts'
import { type Actors, type NoAnswer, whenDecided } from '../command/ports.ts'
import type { CursorSealer, PlacesEpoch } from '../format/cursor.ts'
import { sealSecret, secretDataTag, secretTag } from '../format/sealed-secrets.ts'
import { addressFault } from '../outgoing/target.ts'
import { type AnswerOf, dataOf, ok, type ReadAnswer, type ReadRequest, type Take } from '../reads/read.ts'
import type { HooksAsk, Since } from './payloads/answer.ts'
import type { HookView } from './reads.ts'
import type { DeliveryStatus, Trouble } from './retry.ts'
import type { NumberedDelivery } from './store.ts'

declare module '../command/plan.ts' {
  interface Services {
    readonly hooks: WebhookService
  }
}

export type VerifyAsk = { readonly owner: string; readonly url: string; readonly hook: string; readonly secret: string }
export type VerifyAnswer =
  | { readonly ok: true }
  | { readonly ok: false; readonly trouble: Trouble }
  /** Too many challenges: seconds to wait. */
  | { readonly ok: false; readonly wait: number }
  /** This board delivers to as many as it can. */
  | { readonly ok: false; readonly full: true }

/** Requests to the delivery thread. */
export type EngineAsk =
  | readonly ['verify', VerifyAsk]
  /** The hooks of an identity have changed. */
  | readonly ['changed', owner: string]
  | readonly ['status', ids: readonly string[]]
  | readonly ['deliveries', hook: string, below: number, limit: number]
  | readonly ['delivery', hook: string, event: string]
  /** The number of queued deliveries. */
  | readonly ['waiting']
  /** Where another box would continue. */
  | readonly ['positions']

export type HookStatus = {
  readonly status: DeliveryStatus
  readonly waiting: number
  readonly more: boolean
  readonly marks: readonly number[]
}

type WebhookServiceOptions = {
  readonly actors: Actors
  readonly cursors: CursorSealer
  readonly cursorKey: Uint8Array
  readonly epoch: PlacesEpoch
  /** BROADSIDE_LOOPBACK=1. */
  readonly loopback: boolean
  /** Unix seconds. */
  readonly wallSeconds: () => number
  /** Asks the delivery thread, and starts it on first use. Undefined if no answer came. */
  readonly engine: <Answer>(ask: EngineAsk) => Promise<Answer | undefined>
  readonly isRunning: () => boolean
  /** Asks a source: the feed is 0, shard n is n + 1. */
  readonly source: <Answer>(source: number, ask: HooksAsk) => Promise<Answer | undefined>
  /** Calls back after that many milliseconds, unless deliveries have been stopped. */
  readonly later: (callback: () => void, ms: number) => void
}

const againMs = 1_000

/** Only the delivery thread can answer this. */
const deliveriesRead: AnsweredBy<'delivery'> = 'webhook.deliveries'

export class WebhookService {
  readonly #options: WebhookServiceOptions
  /**
   * Owners for whom an answer was lost. True: another was lost while that one is being checked, and its command may be decided
   * after the check.
   */
  readonly #unsure = new Map<string, boolean>()

  constructor(options: WebhookServiceOptions) {
    this.#options = options
  }

  get sources(): number {
    return this.#options.actors.shards + 1
  }

  get cursors(): CursorSealer {
    return this.#options.cursors
  }

  get epoch(): PlacesEpoch {
    return this.#options.epoch
  }

  get wallSeconds(): () => number {
    return this.#options.wallSeconds
  }

  /** Why nothing is ever sent to this address, as a sentence. */
  addressFault(url: string): string | undefined {
    if (url.includes('#')) return 'a webhook address must not have a fragment'
    return addressFault(url, this.#options.loopback)
  }

  verify(ask: VerifyAsk): Promise<VerifyAnswer | undefined> {
    return this.#options.engine<VerifyAnswer>(['verify', ask])
  }

  sealed(owner: string, secret: string): { sealed: string; tag: string } {
    const { cursors, cursorKey } = this.#options
    return { sealed: sealSecret(cursors, 'hook', owner, secret), tag: secretTag(cursorKey, owner, secret) }
  }

  /** The secret of a receive URL, sealed, and a mark to recognize the command's `data`, which contains it. */
  sealedReceived(owner: string, secret: string, data: string): { sealed: string; mark: Buffer } {
    const { cursors, cursorKey } = this.#options
    return {
      sealed: sealSecret(cursors, 'receiver', owner, secret),
      mark: secretDataTag(cursorKey, owner, data),
    }
  }

  /** The positions in every source from which to deliver: the given ones, or the current ones, but nothing older than `since`. */
  async places(marks: readonly number[], since = 0): Promise<{ marks: number[]; truncated: boolean } | undefined> {
    const found = await Promise.all(
      Array.from({ length: this.sources }, (_, source) =>
        this.#options.source<Since>(source, ['since', { from: marks[source] ?? Number.MAX_SAFE_INTEGER, since }]),
      ),
    )
    const whole = found.filter((each) => each !== undefined)
    if (whole.length < found.length) return undefined
    return {
      marks: whole.map(({ next, now }, source) => (marks[source] === undefined ? now : Math.min(next, now))),
      truncated: whole.some(({ truncated }, source) => truncated && marks[source] !== undefined),
    }
  }

  /** The live hooks of an identity. */
  async of(owner: string): Promise<HookView[] | undefined> {
    const found = await this.#read(hooksOf(owner), { op: 'hook.of', args: { owner }, reader: '' })
    if (found === undefined || !found.ok) return undefined
    const now = this.#options.wallSeconds()
    const { hooks } = dataOf(found)
    return hooks.filter((each) => !hasRunOut({ facts: each }, now))
  }

  /** The number of live hooks of an identity. */
  async count(owner: string): Promise<number | undefined> {
    const found = await this.#read(hooksOf(owner), { op: 'hook.ends', args: { owner }, reader: '' })
    if (found === undefined || !found.ok) return undefined
    const { ends } = dataOf(found)
    const now = this.#options.wallSeconds()
    return ends.filter((expires) => !hasRunOut({ facts: { expires } }, now)).length
  }

  /**
   * Sends a letter to the actor of an identity's hooks; returns the refusal, or its answer. If no answer came, it may have been
   * done: the delivery thread checks on its own, because a retry would not report that change.
   */
  async say(
    op: InternalWriteName,
    owner: string,
    args: object,
  ): Promise<Refusal | Readonly<Record<string, unknown>> | undefined> {
    const letter = internalLetter(op, hooksOf(owner), owner, args)
    return new Promise((resolve) =>
      this.#options.actors.write(letter, (answer) => {
        if (answer === undefined) {
          resolve(undefined)
          this.unsure(owner)
        } else resolve(answer.ok ? answer.reply : forCaller(answer.refusal))
      }),
    )
  }

  /** The hooks of an identity have changed: nothing more is delivered based on the old ones. */
  async changed(owner: string): Promise<void> {
    await this.#options.engine(['changed', owner])
  }

  /** The same after a lost answer: the request may have been done, or may still be waiting to be decided. */
  unsure(owner: string): void {
    const isUnderWay = this.#unsure.has(owner)
    this.#unsure.set(owner, isUnderWay)
    if (!isUnderWay) this.#findOut(owner)
  }

  #findOut(owner: string): void {
    const { actors, later } = this.#options
    whenDecided(actors, hooksOf(owner), (isDecided) => {
      if (!isDecided) return later(() => this.#findOut(owner), againMs)
      if (this.#unsure.get(owner)) {
        this.#unsure.set(owner, false)
        return this.#findOut(owner)
      }
      this.#unsure.delete(owner)
      void this.changed(owner)
    })
  }

  async status(ids: readonly string[]): Promise<readonly (HookStatus | null)[]> {
    if (!this.#options.isRunning() || ids.length === 0) return ids.map(() => null)
    return (await this.#options.engine<(HookStatus | null)[]>(['status', ids])) ?? ids.map(() => null)
  }

  /** Whether a delivery of this event to the hook was made or tried, and is remembered; undefined if no answer came. */
  hasDelivery(hook: string, event: string): Promise<boolean | undefined> {
    return this.#options.engine<boolean>(['delivery', hook, event])
  }

  /** Answers the read if it needs more than the actor knows; returns false if it does not. */
  read(request: ReadRequest, answer: Take): boolean {
    const found =
      request.op === 'webhook.list'
        ? this.#list(request)
        : request.op === deliveriesRead
          ? this.#deliveries(request)
          : undefined
    found?.then(answer, () => answer(undefined))
    return found !== undefined
  }

  async #list(request: ReadRequest): Promise<ReadAnswer | NoAnswer> {
    const found = await this.#read(hooksOf(request.reader), { ...request, op: 'webhook.list' })
    if (found === undefined || !found.ok) return found
    const page = dataOf(found)
    const status = await this.status(page.webhooks.map(({ id }) => id))
    const webhooks = page.webhooks.map((each, n) => ({ ...each, delivery: shownStatus(status[n] ?? undefined) }))
    return ok({ ...page, webhooks })
  }

  async #deliveries({ args, reader }: ReadRequest): Promise<ReadAnswer | NoAnswer> {
    const hook = String(args.target)
    const own = await this.of(reader)
    if (own === undefined) return undefined
    if (!own.some((each) => each.hook === hook && each.form === 'webhook'))
      return {
        ok: false,
        refusal: refusal('not_found', `you have no webhook ${hook}: webhook.list shows yours`, 'target'),
      }
    const list = `webhook.deliveries:${hook}`
    const below = args.cursor === undefined ? Number.MAX_SAFE_INTEGER : this.cursors.open(list, String(args.cursor))
    if (typeof below !== 'number') {
      const message = 'this cursor does not belong to this list: start again without one'
      return { ok: false, refusal: refusal('invalid_field', message, 'cursor') }
    }
    const limit = Number(args.limit ?? 50)
    const found = await this.#options.engine<NumberedDelivery[]>(['deliveries', hook, below, limit + 1])
    if (found === undefined) return undefined
    const shown = found.slice(0, limit)
    const last = found.length > limit ? shown.at(-1) : undefined
    const more =
      last === undefined ? { has_more: false } : { next_cursor: this.cursors.seal(list, last.n), has_more: true }
    return ok({ deliveries: shown.map(deliveryView), ...more })
  }

  #read<Name extends AnyReadName>(
    actor: string,
    request: ReadRequest<Name>,
  ): Promise<ReadAnswer<AnswerOf<Name>> | NoAnswer> {
    const { actors } = this.#options
    return new Promise((resolve) => actors.readPrivate(shardOf(actor, actors.shards), request, resolve))
  }
}

/** The delivery status of a webhook, as shown to its owner. */
function shownStatus(found: HookStatus | undefined) {
  if (found === undefined) return { active: true, waiting: 0 }
  const { status, waiting, more } = found
  const seconds = (text: string | null | undefined) => (text == null ? undefined : Math.floor(Date.parse(text) / 1000))
  const deliveredAt = seconds(status.lastDeliveryAt)
  const failedSince = seconds(status.failedSince)
  return {
    active: status.active,
    waiting,
    ...(more ? { more_waiting: true } : {}),
    ...(deliveredAt === undefined ? {} : { last_delivery_at: deliveredAt }),
    ...(status.lastError === null ? {} : { last_error: status.lastError }),
    ...(failedSince === undefined ? {} : { failed_since: failedSince }),
  }
}

function deliveryView({ event, kind, at, state, attempts, status, error, attemptedAt }: NumberedDelivery) {
  return {
    event,
    kind,
    state,
    attempts,
    happened_at: at,
    attempted_at: attemptedAt,
    ...(status === 0 ? {} : { status }),
    ...(error === '' ? {} : { error }),
  }
}
