/**
 * One attempt: what is sent is built now, for this reader, signed now, and sent to where the address leads now.
 *
 * Whatever the target answers, no more than its status is used, and the first bytes where a challenge has to come back.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { CursorSealer } from '../format/cursor.ts'
import type { NotAnswered, Outgoing } from '../outgoing/request.ts'
import type { Payload, PayloadRequest } from '../views/hooks/payload-request.ts'
import type { HookView } from '../views/reads/webhooks.ts'
import type { Pending } from './hook-run.ts'
import { eventId } from './identity.ts'
import { eventErrors } from './mcp-errors.ts'
import type { Outcome, Trouble } from './retry.ts'
import { openSecret, sealPlace } from './seals.ts'
import { signedHeaders } from './signature.ts'

export type Head = { readonly size: number; readonly checkpoint: string }

export type SenderOptions = {
  readonly outgoing: Outgoing
  /** undefined: no answer came. */
  readonly payload: (source: number, request: PayloadRequest) => Promise<Payload | undefined>
  readonly head: () => Promise<Head | undefined>
  readonly cursors: CursorSealer
  readonly generation: string
  readonly serviceId: string
  /** Of this board, for links. */
  readonly address: string
  /** Unix milliseconds. */
  readonly wallMs: () => number
}

export type Sent =
  | {
      readonly kind: 'sent'
      readonly event: string
      /** 0: no answer. */
      readonly status: number
      readonly outcome: Outcome
      /** Of a head of the log its tree size, else number of the item. */
      readonly item: number
    }
  /** Nothing was sent: it could not be built now. */
  | { readonly kind: 'later' }
  | { readonly kind: 'skipped' }
  | { readonly kind: 'barred' }

/** An address that is asked whether it wants what is sent there. */
export type Challenged = { readonly url: string; readonly hook: string; readonly secret: string }

export const bodyBytesMax = 262_144
const connectMs = 3_000
const totalMs = 10_000
const challengeMs = 5_000
const answerBytesMax = 16 * 1024

const troubles: Readonly<Record<NotAnswered['failure'], Trouble>> = {
  timeout: 'timeout',
  refused: 'connection_refused',
  tls: 'tls_error',
  blocked: 'connection_refused',
  too_large: 'http_5xx',
  redirect: 'http_3xx',
  unknown: 'connection_refused',
}

/** What is to be sent; of a head of the log its tree size too. */
type Built = Payload | { readonly data: string; readonly size: number } | undefined
type Answer = {
  readonly status: number
  readonly trouble: Trouble | ''
  readonly retryAfterMs: number
  readonly body: Buffer
}

export class Sender {
  readonly #options: SenderOptions

  constructor(options: SenderOptions) {
    this.#options = options
  }

  /** `marks`: where the hook stands when this is done. */
  async send(view: HookView, pending: Pending, marks: readonly number[]): Promise<Sent> {
    const built: Built = pending.kind === 'log.checkpoint' ? await this.#head() : await this.#build(view, pending)
    if (built === undefined) return { kind: 'later' }
    if ('skip' in built) return { kind: 'skipped' }
    if ('barred' in built) return { kind: 'barred' }
    const { serviceId, cursors, generation } = this.#options
    const { signal, kind } = pending
    const item = 'size' in built ? built.size : pending.signal.item
    const event = eventId(serviceId, kind, { ...signal, item })
    const timestamp = new Date(signal.at * 1000).toISOString()
    const cursor = sealPlace(cursors, view.owner, generation, marks)
    const body = Buffer.from(
      `{"eventId":"${event}","name":"${kind}","timestamp":"${timestamp}","data":${built.data},"cursor":"${cursor}"}`,
    )
    if (body.length > bodyBytesMax) return { kind: 'skipped' }
    const answer = await this.#post(view.url, view.hook, this.#secrets(view), event, body, totalMs)
    return { kind: 'sent', event, status: answer.status, outcome: outcomeOf(answer), item }
  }

  /** Asks an address whether it wants this: it must send back what it was sent. `''`: it does. */
  async challenge({ url, hook, secret }: Challenged): Promise<Trouble | ''> {
    const challenge = randomBytes(24).toString('base64url')
    const body = Buffer.from(JSON.stringify({ type: 'verification', challenge }))
    const id = `msg_verification_${randomBytes(12).toString('hex')}`
    const { trouble, body: echo } = await this.#post(url, hook, [secret], id, body, challengeMs)
    if (trouble !== '') return trouble
    return isEcho(echo, challenge) ? '' : 'challenge_failed'
  }

  /** Tells a subscriber, once and without waiting, that nothing more will come. */
  async terminated(view: HookView): Promise<void> {
    const { code, message } = eventErrors.forbidden
    const error = { code, message, data: { reason: 'Access revoked' } }
    const body = Buffer.from(JSON.stringify({ type: 'terminated', error }))
    await this.#post(
      view.url,
      view.hook,
      this.#secrets(view),
      `msg_terminated_${randomBytes(12).toString('hex')}`,
      body,
      totalMs,
    )
  }

  #build(view: HookView, { source, kind, signal }: Pending): Promise<Built> {
    const { subject, item, at, state } = signal
    const { owner: reader, filter } = view
    return this.#options.payload(source, { kind, subject, item, at, state, reader, filter, handle: '', blocked: [] })
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

  #secrets({ sealed, former, owner }: HookView): string[] {
    const { cursors, wallMs } = this.#options
    const isOverlap = former !== undefined && former.until * 1000 > wallMs()
    return (isOverlap ? [sealed, former.sealed] : [sealed]).map((each) => openSecret(cursors, owner, each))
  }

  async #post(
    url: string,
    hook: string,
    secrets: readonly string[],
    id: string,
    body: Buffer,
    withinMs: number,
  ): Promise<Answer> {
    const timestamp = Math.floor(this.#options.wallMs() / 1000)
    const answer = await this.#options.outgoing.request({
      url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...signedHeaders(secrets, { id, timestamp, body }),
        'x-mcp-subscription-id': hook,
      },
      body,
      connectMs: Math.min(connectMs, withinMs),
      totalMs: withinMs,
      answerBytesMax,
      keepAlive: true,
    })
    if (answer.ok) {
      const { status, headers } = answer
      const retryAfterMs = status < 300 ? 0 : retryAfterOf(headers['retry-after']?.[0], this.#options.wallMs())
      return { status, trouble: troubleOf(status), retryAfterMs, body: answer.body }
    }
    // It took what was sent, and went on talking.
    const isTaken = answer.failure === 'too_large' && answer.status !== undefined && troubleOf(answer.status) === ''
    const trouble = isTaken ? '' : answer.status === undefined ? troubles[answer.failure] : troubleOf(answer.status)
    return { status: answer.status ?? 0, trouble, retryAfterMs: 0, body: Buffer.alloc(0) }
  }
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
