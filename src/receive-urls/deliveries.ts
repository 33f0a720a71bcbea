/**
 * Deliveries to receive URLs, on their way to the actor of the URL's creator: rate limits -> does the URL exist -> sender -> signature ->
 * the actor, which records it -> answer.
 *
 * Every reason for which a URL does not open (unknown, deleted, wrong secret, shown to a delegate that has ended) takes the same path and
 * gives the same answer.
 */

import { createHash } from 'node:crypto'
import { rates, sizes } from '../../actors/kernel/limits.ts'
import { isWithin } from '../../actors/kernel/networks.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { type DeliverArgs, noSuchReceiveUrl, ownLetter } from '../../actors/receive-urls/decide.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'
import { fromActor, readReply } from '../command/reply.ts'
import { type Respond, refused } from '../format/reply.ts'
import { Limiter } from '../rates/meters.ts'
import type { Throttle } from '../rates/throttle.ts'
import { dataOf, ok, type ReadAnswer } from '../reads/read.ts'
import type { Posted } from './item-posts.ts'
import { keptHeaders } from './kept.ts'
import { secretHash } from './plans.ts'
import type { DeliveryRules } from './reads.ts'
import { type Verified, verifyWebhook } from './signature.ts'

export type Delivery = {
  readonly receiver: string
  readonly secret: string
  readonly address: string
  readonly type: string
  /** What is stored of the query. */
  readonly query: string
  /** All headers: lowercase names and values, alternating. */
  readonly fields: readonly string[]
  /** Any header as received, by its lowercase name. */
  readonly header: (name: string) => string | undefined
  readonly body: Buffer
}

type DeliveriesOptions = {
  readonly actors: Actors
  readonly limitsOn: boolean
  readonly throttle: Throttle
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** Unix seconds. */
  readonly wallSeconds: () => number
  /** Called when an item may have arrived at a receive URL whose items are posted. `isDecided` is false if one may still be on its way. */
  readonly post: (receiver: Posted, isDecided: boolean) => void
  /** Whether the delegation with this id is still valid. */
  readonly isThere: (delegation: string) => boolean
}

/** Headers that are signed with a delivery of Standard Webhooks. */
const signedNames: ReadonlySet<string> = new Set(['webhook-id', 'svix-id'])

/** A receive URL that accepted a delivery. */
type OpenedUrl = DeliveryRules & { readonly signedId: string | undefined }

export class Deliveries {
  readonly #options: DeliveriesOptions
  readonly #minutes: Limiter
  readonly #days: Limiter

  constructor(options: DeliveriesOptions) {
    this.#options = options
    const perMinute = (count: number) => new Limiter({ perSecond: count / 60, burst: count }, options.now)
    this.#minutes = perMinute(rates.deliveries_per_receiver_per_minute)
    const perDay = rates.deliveries_per_receiver_per_day
    this.#days = new Limiter({ perSecond: perDay / 86_400, burst: perDay }, options.now)
  }

  take(delivery: Delivery, respond: Respond): void {
    const tooMany = this.#options.throttle.count('deliveries', delivery)
    if (tooMany !== undefined) return respond(refused(tooMany))
    const hash = secretHash(delivery.secret)
    this.#findRules(delivery.receiver, hash, (rules) => {
      if (rules === undefined) return respond(undefined)
      if ('code' in rules) return respond(refused(rules))
      const found = this.#objection(delivery, rules) ?? this.#verified(delivery, rules)
      if ('code' in found) return respond(refused(found))
      // Stored bytes count against the sender's network, as with posts.
      const beyond = this.#options.throttle.bytes(delivery.address, delivery.body.length + delivery.query.length)
      if (beyond !== undefined) return respond(refused(beyond))
      this.#handOver(delivery, { ...rules, signedId: found.id }, hash, respond)
    })
  }

  /** Only the shard of its creator knows a receive URL, so all are queried. */
  #findRules(receiver: string, hash: string, then: (rules: DeliveryRules | Refusal | NoAnswer) => void): void {
    const { actors } = this.#options
    let open = actors.shards
    let best: ReadAnswer<DeliveryRules> | NoAnswer = { ok: false, absent: refusal('not_found', noSuchReceiveUrl) }
    for (let shard = 0; shard < actors.shards; shard++) {
      actors.readPrivate(shard, { op: 'receiver.door', args: { receiver, hash }, reader: '' }, (found) => {
        if (found === undefined || found.ok || 'refusal' in found) best = found
        if (--open > 0) return
        if (best === undefined) return then(undefined)
        if (!best.ok) return then('refusal' in best ? best.refusal : best.absent)
        const rules = dataOf(best)
        const isOver = rules.delegation !== '' && !this.#options.isThere(rules.delegation)
        then(isOver ? refusal('not_found', noSuchReceiveUrl) : rules)
      })
    }
  }

  #objection({ receiver, address }: Delivery, { allow }: DeliveryRules): Refusal | undefined {
    const wait = this.#options.limitsOn ? this.#rate(receiver) : 0
    const slower = 'too many deliveries to this receive URL: wait retry_after seconds'
    if (wait > 0) return refusal('rate_limited', slower, undefined, wait)
    if (allow.length > 0 && !isWithin(address, allow))
      return refusal(
        'forbidden',
        `this receive URL does not accept deliveries from ${address}: its owner allows only certain addresses`,
      )
    return undefined
  }

  #verified({ body, header }: Delivery, { secret }: DeliveryRules): Verified | Refusal {
    if (secret === '') return {}
    const verified = verifyWebhook(secret, { header, body, now: this.#options.wallSeconds() })
    return verified.fault === undefined ? verified : refusal('bad_delivery_signature', verified.fault)
  }

  #rate(receiver: string): number {
    const minute = this.#minutes.take(receiver)
    if (minute > 0) return minute
    const day = this.#days.take(receiver)
    if (day > 0) this.#minutes.giveBack(receiver)
    return day
  }

  #handOver(delivery: Delivery, rules: OpenedUrl, hash: string, respond: Respond): void {
    const { receiver, type, query, fields, body } = delivery
    const { owner, dedupe, secret, signedId } = rules
    // If a header is signed, use the signed one: anyone could add the other header to an earlier delivery.
    const named = signedNames.has(dedupe) ? (signedId ?? delivery.header(dedupe)) : delivery.header(dedupe)
    const value = dedupe === '' ? '' : (named ?? '')
    const args: DeliverArgs = {
      receiver,
      hash,
      type,
      ...(query === '' ? {} : { query }),
      headers: keptHeaders(fields, dedupe),
      body,
      verified: secret !== '',
      // A value that is too long is ignored; the item is stored anyway.
      dedupe: value === '' || Buffer.byteLength(value) > sizes.receiver_dedupe_bytes ? '' : digest(value),
    }
    this.#options.actors.write(ownLetter('receiver.deliver', owner, args), (answer) => {
      // Without an answer, or if this repeats a delivery without one, the item may be stored without having been posted.
      const mayBeThere = answer === undefined || answer.ok
      if (rules.post && mayBeThere) this.#options.post({ receiver, owner }, answer !== undefined)
      if (answer === undefined) return respond(undefined)
      if (!answer.ok) return respond(fromActor(answer.refusal))
      // For a duplicate, these are the bytes of the stored item, not of this delivery.
      const { reply } = answer
      const data = { item: reply.item, bytes: reply.bytes, ...('duplicate' in reply ? { duplicate: true } : {}) }
      respond(readReply(ok(data)))
    })
  }
}

function digest(value: string): string {
  return createHash('sha256').update(value).digest('base64url')
}
