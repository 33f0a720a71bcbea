/**
 * Cached answers: bytes stored by URL, with the change number at which they were generated, so that a hot URL costs neither a message to
 * another thread nor a rendering. An answer is valid as long as nothing that it depends on has changed. The cache is bounded in bytes and
 * evicts the least recently used answers first. Answers that never change while the board runs are generated once.
 */

import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip as gzipCallback } from 'node:zlib'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import type { Exchange, Header, RouteHandler } from './port.ts'
import { takesGzip } from './wire.ts'

export type Ready = {
  readonly body: Buffer
  readonly etag: string
  /** File name if the body is a file; undefined for JSON. */
  readonly file: string | undefined
  /** The one room that it depends on; undefined for the whole board. */
  readonly room: string | undefined
  /** Newest change when it was requested. */
  readonly change: number
  /** Unix seconds at which a text that it shows expires; 0 = never. */
  readonly until: number
}

/** Newest change of a room, or of the whole board. */
type Newest = (room: string | undefined) => number

/** Whether nothing that the answer depends on has changed. `now`: Unix seconds. */
export function isCurrent({ room, change, until }: Ready, newest: Newest, now: number): boolean {
  return newest(room) <= change && (until === 0 || until > now)
}

/** A power of two. */
const askedMax = 16_384

/** Hashes of recently requested addresses; newer ones overwrite older ones. Two addresses may have the same hash. */
class Asked {
  readonly #hashes = new Uint32Array(askedMax)

  /** Whether the address was there before. */
  add(url: string): boolean {
    let hash = 0x811c9dc5
    for (let n = 0; n < url.length; n++) hash = Math.imul(hash ^ url.charCodeAt(n), 0x01000193)
    const place = (hash ^ (hash >>> 15)) & (askedMax - 1)
    if (this.#hashes[place] === hash >>> 0) return true
    this.#hashes[place] = hash
    return false
  }
}

export class ReadyAnswers {
  readonly #kept = new TurnoverMap<string, Ready>()
  /** Recently requested addresses. An address that is requested only once, by a crawler for example, takes no space from the others. */
  readonly #asked = new Asked()
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The cached answer, if it is still valid. */
  find(url: string, newest: Newest, now: number): Ready | undefined {
    const ready = this.#kept.get(url)
    if (ready === undefined) return undefined
    this.#kept.delete(url)
    if (!isCurrent(ready, newest, now)) {
      this.#bytes -= cost(url, ready)
      this.#asked.add(url)
      return undefined
    }
    this.#kept.set(url, ready)
    return ready
  }

  /** Caches the answer if its address was requested before. */
  keep(url: string, ready: Ready): void {
    const before = this.#kept.get(url)
    if (before === undefined && !this.#asked.add(url)) return
    if (before !== undefined) this.#bytes -= cost(url, before)
    this.#kept.delete(url)
    const bytes = cost(url, ready)
    if (bytes > this.#bytesMax / 8) return
    // A copy, because the body may be part of a larger message from another thread.
    this.#kept.set(url, { ...ready, body: Buffer.from(ready.body) })
    this.#bytes += bytes
    for (const [oldest, answer] of this.#kept) {
      if (this.#bytes <= this.#bytesMax) break
      this.#kept.delete(oldest)
      this.#bytes -= cost(oldest, answer)
    }
  }
}

export function etagOf(body: Buffer | string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`
}

/** Whether the client has the version that this tag names, or accepts any: tags are compared weakly (RFC 9110, 13.1.2). */
export function isHeld(exchange: Exchange, etag: string): boolean {
  const header = exchange.header('if-none-match')
  if (header === undefined) return false
  const strong = (tag: string): string => tag.trim().replace(/^W\//, '')
  return header.split(',').some((each) => strong(each) === '*' || strong(each) === strong(etag))
}

function cost(url: string, { body }: Ready): number {
  return url.length * 2 + body.length + 256
}

/** Headers of a text that must not be cached. */
export function plain(type: string): readonly (readonly [string, string])[] {
  return [
    ['content-type', type],
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
  ]
}

const gzip = promisify(gzipCallback)

/** Below this, compression is not worth its headers. */
const packedBytesMin = 1_024
/** Types worth compressing; images and fonts are compressed already. */
const shrinks = /^(?:text\/|application\/json|image\/svg\+xml)/

type Form = { readonly body: Buffer; readonly headers: readonly Header[]; readonly etag: string }
type Made = { readonly plain: Form; readonly packed: Promise<Form> | undefined }

/**
 * Answers whose bytes stay the same while the board runs: generated at their first request, compressed once, and tagged. `headers`: all
 * except the tag, the encoding, and Vary.
 */
export function fixedAnswer(headers: readonly Header[], render: () => Buffer | string): RouteHandler {
  let made: Made | undefined
  return (exchange) => {
    made ??= make(Buffer.from(render()), headers)
    const { plain, packed } = made
    if (packed === undefined || !takesGzip(exchange.header('accept-encoding'))) return send(exchange, plain)
    packed.then(
      (form) => send(exchange, form),
      () => send(exchange, plain),
    )
  }
}

function make(body: Buffer, headers: readonly Header[]): Made {
  const etag = etagOf(body)
  const isText = headers.some(([name, value]) => name === 'content-type' && shrinks.test(value))
  if (!isText || body.length < packedBytesMin) return { plain: { body, headers, etag }, packed: undefined }
  const varied: readonly Header[] = [...headers, ['vary', 'accept-encoding']]
  // Not on the main thread, where the longest of them would take 15 ms.
  const packed = gzip(body, { level: 9 }).then(
    (bytes): Form => ({
      body: bytes,
      headers: [...varied, ['content-encoding', 'gzip']],
      etag: etag.replace(/"$/, '-gzip"'),
    }),
  )
  return { plain: { body, headers: varied, etag }, packed }
}

function send(exchange: Exchange, { body, headers, etag }: Form): void {
  if (exchange.ended) return
  const tagged: readonly Header[] = [...headers, ['etag', etag]]
  if (isHeld(exchange, etag)) exchange.reply(304, tagged, '')
  else exchange.reply(200, tagged, body)
}

/** Media type of metrics for Prometheus (text format 0.0.4). */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'
