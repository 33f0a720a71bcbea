/** Replies that look the same on every route: API answers, refusals, preflights, wrong methods. */

import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { type Reply, refused } from '../format/reply.ts'
import type { Throttle } from '../rates/throttle.ts'
import type { Exchange, Header } from './port.ts'

const noSniff: Header = ['x-content-type-options', 'nosniff']

/**
 * Headers that keep user content inert, by the kind of answer.
 *
 * - page: src/pages/headers.ts, by what pages load.
 * - picture and script: files of this program, in which nothing loads anything.
 * - data (JSON, text): never an active document, wherever it is opened. Other sites may read it, because it is public.
 * - file: a user's attachment (src/attachments/routes.ts): sandboxed, never sniffed.
 *
 * This function is for files of this program that a page loads, or that another site may show as a link preview.
 */
export function ownFileHeaders(type: string): readonly Header[] {
  return [
    ['content-type', type],
    ['content-security-policy', "default-src 'none'; frame-ancestors 'none'; sandbox"],
    noSniff,
    ['cross-origin-resource-policy', 'cross-origin'],
  ]
}

/** Any page may read the answer and these headers: no cookies are used here. */
export const openHeaders: readonly Header[] = [
  ['access-control-allow-origin', '*'],
  ['access-control-expose-headers', 'Retry-After, ETag, X-Next-Cursor, Date'],
]

/** Headers of answers for programs: JSON and plain text. */
export const dataHeaders: readonly Header[] = [
  ...openHeaders,
  noSniff,
  ['content-security-policy', "default-src 'none'; frame-ancestors 'none'"],
]

type RepliesOptions = {
  readonly throttle: Throttle
  /** Client address of a request, by the operator's proxy settings. */
  readonly addressOf: (exchange: Exchange) => string
  readonly onReply: (status: number) => void
}

/** Headers of every API answer: one list, so that an engine validates and joins it once. */
const answerHeaders: readonly Header[] = Object.freeze<Header[]>([
  ['content-type', 'application/json; charset=utf-8'],
  ...dataHeaders,
  ['cache-control', 'no-store'],
])
/** Request headers that the routes read: a page of another site may resume a stream, revalidate a copy and fetch part of a file. */
const preflight: readonly Header[] = [
  ...dataHeaders,
  ['access-control-allow-headers', 'content-type, last-event-id, if-none-match, cache-control, range, if-range'],
  ['access-control-max-age', '600'],
]

export class Replies {
  readonly #options: RepliesOptions

  constructor(options: RepliesOptions) {
    this.#options = options
  }

  /** Without a reply, the connection is closed. */
  send(exchange: Exchange, reply: Reply | undefined, extra: readonly Header[] = []): void {
    if (exchange.ended) return
    if (reply === undefined) return exchange.drop()
    this.#options.onReply(reply.status)
    const { status, retryAfter, body } = reply
    if (retryAfter === undefined && extra.length === 0) return exchange.reply(status, answerHeaders, body)
    const retry: readonly Header[] = retryAfter === undefined ? [] : [['retry-after', String(retryAfter)]]
    exchange.reply(status, [...answerHeaders, ...retry, ...extra], body)
  }

  refuse(exchange: Exchange, found: Refusal, extra: readonly Header[] = []): void {
    this.send(exchange, refused(found), extra)
  }

  preflight(exchange: Exchange, methods: string, extra: readonly Header[] = []): void {
    exchange.reply(200, [...preflight, ['allow', methods], ['access-control-allow-methods', methods], ...extra], '')
  }

  wrongMethod(exchange: Exchange, allow: string, extra: readonly Header[] = []): void {
    this.refuse(exchange, refusal('method_not_allowed', `this path takes ${allow}`), [['allow', allow], ...extra])
  }

  /** Counts a read against the client's network; one over the limit is answered here. */
  isWithinReads(exchange: Exchange): boolean {
    const tooMany = this.#options.throttle.count('reads', { address: this.#options.addressOf(exchange) })
    if (tooMany !== undefined) this.refuse(exchange, tooMany)
    return tooMany === undefined
  }
}
