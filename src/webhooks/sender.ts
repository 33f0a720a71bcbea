/**
 * One delivery attempt: the payload is built, signed and its address resolved at the time of sending, for this reader.
 *
 * Of the target's answer, only the status is used, and for a challenge the first bytes.
 */

import { timingSafeEqual } from 'node:crypto'
import { BoundedMap } from '../../storage/bounded-map.ts'
import type { CursorSealer, PlacesEpoch } from '../format/cursor.ts'
import type { Posted, Poster, PostFailure, PostTarget } from '../outgoing/poster.ts'
import type { Random } from '../platform.ts'
import { eventId } from './identity.ts'
import { eventErrors } from './mcp-errors.ts'
import type { Give } from './payload-batches.ts'
import type { Payload } from './payloads/payload-request.ts'
import type { Named, Pending } from './pending.ts'
import type { HookView } from './reads.ts'
import type { Outcome, Trouble } from './retry.ts'
import { sealPlace } from './sealed-positions.ts'
import { DeliveryHead, SigningKey, secretKey, signatures } from './signature.ts'

export type Head = { readonly size: number; readonly checkpoint: string }

type SenderOptions = {
  readonly poster: Pick<Poster, 'target' | 'post'>
  /** Requests the payload as of now. */
  readonly payload: (pending: Pending, view: HookView, give: Give) => void
  readonly head: () => Promise<Head | undefined>
  readonly cursors: CursorSealer
  readonly epoch: PlacesEpoch
  readonly serviceId: string
  /** Of this board, for links. */
  readonly address: string
  /** Unix milliseconds. */
  readonly wallMs: () => number
  readonly random: Random
}

export type Sent =
  | {
      readonly kind: 'sent'
      readonly event: string
      /** 0: no answer. */
      readonly status: number
      readonly outcome: Outcome
      /** For a log head its tree size, else the number of the item. */
      readonly item: number
    }
  /** Nothing was sent: it could not be built now. */
  | { readonly kind: 'later' }
  /** Nothing was sent: its source cannot be read. */
  | { readonly kind: 'unreadable' }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'barred' }

/** An address that must confirm that it wants deliveries. */
type Challenged = { readonly url: string; readonly hook: string; readonly secret: string }

/** The target of a delivery. */
type Addressee = { readonly view: HookView; readonly removed: boolean; deliveryHead: DeliveryHead | undefined }

const bodyBytesMax = 262_144
const connectMs = 3_000
const totalMs = 10_000
const challengeMs = 5_000
/** Recently sealed positions: many hooks of one owner have the same. */
const placesMax = 1_024

const troubles: Readonly<Record<PostFailure, Trouble>> = {
  timeout: 'timeout',
  refused: 'connection_refused',
  tls: 'tls_error',
  blocked: 'address_blocked',
  no_address: 'no_address',
  too_large: 'http_5xx',
  redirect: 'http_3xx',
  unknown: 'connection_lost',
}

/** What is to be sent; for a log head, also its tree size. */
type Built = Payload | { readonly data: string; readonly size: number } | undefined
type Answer = {
  readonly status: number
  readonly trouble: Trouble | ''
  readonly retryAfterMs: number
  readonly body: Buffer
}
type Letter = {
  readonly target: PostTarget | undefined
  readonly keys: readonly SigningKey[]
  readonly hook: string
  /** `webhook-id`. */
  readonly id: string
  readonly body: string
  readonly withinMs: number
  readonly keepsBody?: boolean
}

export class Sender {
  readonly #options: SenderOptions
  readonly #places = new BoundedMap<string, string>(placesMax)

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** `marks`: the hook's positions after this delivery. */
  send(to: Addressee, pending: Pending, marks: readonly number[], done: (sent: Sent) => void): void {
    const built = (found: Built) => this.#built(to, pending, marks, found, done)
    if (pending.kind === 'log.checkpoint') void this.#head().then(built)
    else this.#options.payload(pending, to.view, built)
  }

  #built(to: Addressee, pending: Pending, marks: readonly number[], built: Built, done: (sent: Sent) => void): void {
    if (built === undefined || to.removed) return done({ kind: 'later' })
    if ('fault' in built) return done({ kind: 'unreadable' })
    if ('skip' in built) return done({ kind: 'skipped' })
    if ('barred' in built) return done({ kind: 'barred' })
    const { wallMs } = this.#options
    const { view } = to
    const isHead = 'size' in built
    const item = isHead ? built.size : pending.signal.item
    if (!isHead) pending.named ??= this.#name(pending, item)
    const { event, opening } = pending.named ?? this.#name(pending, item)
    const body = `${opening}${built.data},"cursor":"${this.#cursor(view.owner, marks)}"}`
    // A text has at most three bytes per UTF-16 unit.
    if (body.length > bodyBytesMax / 3 && Buffer.byteLength(body) > bodyBytesMax) return done({ kind: 'skipped' })
    to.deliveryHead ??= this.#deliveryHead(view)
    const { deliveryHead } = to
    const letter = { target: deliveryHead.target, keys: deliveryHead.keys(wallMs()), hook: view.hook, id: event, body }
    this.#post({ ...letter, withinMs: totalMs }, (answer) =>
      done({ kind: 'sent', event, status: answer.status, outcome: outcomeOf(answer), item }),
    )
  }

  /** Challenges an address to confirm that it wants this: it must send back what it was sent. Returns `''` if it did. */
  async challenge({ url, hook, secret }: Challenged): Promise<Trouble | ''> {
    const challenge = this.#options.random(24).toString('base64url')
    const body = JSON.stringify({ type: 'verification', challenge })
    const id = `msg_verification_${this.#options.random(12).toString('hex')}`
    const keys = [new SigningKey(secretKey(secret)!)]
    const letter = { target: this.#target(url), keys, hook, id, body, withinMs: challengeMs, keepsBody: true }
    const { trouble, body: echo } = await new Promise<Answer>((resolve) => this.#post(letter, resolve))
    if (trouble !== '') return trouble
    return isEcho(echo, challenge) ? '' : 'challenge_failed'
  }

  /** Notifies a subscriber, once and without waiting, that nothing more will come. */
  terminated(view: HookView): void {
    const { wallMs } = this.#options
    const { code, message } = eventErrors.forbidden
    const error = { code, message, data: { reason: 'Access revoked' } }
    const deliveryHead = this.#deliveryHead(view)
    this.#post(
      {
        target: deliveryHead.target,
        keys: deliveryHead.keys(wallMs()),
        hook: view.hook,
        id: `msg_terminated_${this.#options.random(12).toString('hex')}`,
        body: JSON.stringify({ type: 'terminated', error }),
        withinMs: totalMs,
      },
      () => {},
    )
  }

  #deliveryHead(view: HookView): DeliveryHead {
    return new DeliveryHead(this.#target(view.url), view, this.#options.cursors)
  }

  #target(url: string): PostTarget | undefined {
    const target = this.#options.poster.target(url)
    return typeof target === 'string' ? undefined : target
  }

  #name({ signal, kind }: Pending, item: number): Named {
    const event = eventId(this.#options.serviceId, kind, { ...signal, item })
    const timestamp = new Date(signal.at * 1000).toISOString()
    return { event, opening: `{"eventId":"${event}","name":"${kind}","timestamp":"${timestamp}","data":` }
  }

  #cursor(owner: string, marks: readonly number[]): string {
    const name = `${owner} ${marks.join(' ')}`
    const known = this.#places.get(name)
    if (known !== undefined) return known
    const { cursors, epoch } = this.#options
    const sealed = sealPlace(cursors, owner, epoch, marks)
    this.#places.set(name, sealed)
    return sealed
  }

  async #head(): Promise<Built> {
    const head = await this.#options.head()
    if (head === undefined) return undefined
    const { address, wallMs } = this.#options
    const { size, checkpoint } = head
    const [origin] = checkpoint.split('\n')
    const links = { web: `${address}/log`, api: `${address}/api/log/checkpoint` }
    const data = { origin, tree_size: size, checkpoint, created_at: Math.floor(wallMs() / 1000), links }
    return { data: JSON.stringify(data), size }
  }

  #post({ target, keys, hook, id, body, withinMs, keepsBody = false }: Letter, done: (answer: Answer) => void): void {
    if (target === undefined) return done({ status: 0, trouble: troubles.blocked, retryAfterMs: 0, body: nothing })
    const timestamp = Math.floor(this.#options.wallMs() / 1000)
    const headers = [
      ...['content-type', 'application/json', 'webhook-id', id, 'webhook-timestamp', String(timestamp)],
      ...['webhook-signature', signatures(keys, { id, timestamp, body }), 'x-mcp-subscription-id', hook],
    ]
    const post = { target, headers, body, connectMs: Math.min(connectMs, withinMs), totalMs: withinMs, keepsBody }
    this.#options.poster.post(post, (posted) => done(answerOf(posted, this.#options.wallMs())))
  }
}

const nothing = Buffer.alloc(0)

function answerOf(posted: Posted, now: number): Answer {
  const { status } = posted
  if (posted.ok) {
    const retryAfterMs = status < 300 ? 0 : retryAfterOf(posted.retryAfter, now)
    return { status, trouble: troubleOf(status), retryAfterMs, body: posted.body }
  }
  // A target that accepted the delivery and then kept sending, or broke off, has accepted it.
  const trouble = status === 0 ? troubles[posted.failure] : troubleOf(status)
  return { status, trouble, retryAfterMs: 0, body: nothing }
}

function outcomeOf({ status, trouble, retryAfterMs }: Answer): Outcome {
  if (status === 410) return { kind: 'gone' }
  if (status === 413) return { kind: 'too_large' }
  return trouble === '' ? { kind: 'delivered' } : { kind: 'failed', trouble, retryAfterMs }
}

function troubleOf(status: number): Trouble | '' {
  if (status >= 200 && status < 300) return ''
  return status >= 500 ? 'http_5xx' : status >= 400 ? 'http_4xx' : 'http_3xx'
}

/** Seconds, or a date. */
function retryAfterOf(text: string | undefined, now: number): number {
  if (text === undefined) return 0
  const ms = /^[0-9]{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isFinite(ms) && ms > 0 ? ms : 0
}

function isEcho(body: Buffer, challenge: string): boolean {
  let echoed: unknown
  try {
    echoed = (JSON.parse(body.toString('utf8')) as { challenge?: unknown } | null)?.challenge
  } catch {
    return false
  }
  const sent = Buffer.from(challenge)
  const came = Buffer.from(typeof echoed === 'string' ? echoed : '')
  return came.length === sent.length && timingSafeEqual(came, sent)
}
