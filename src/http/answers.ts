/**
 * Cached answers: bytes kept by URL, with the change number they were made at, so that a hot URL costs no message to
 * another thread and no rendering. An answer is valid as long as nothing that it depends on has changed. The cache is
 * bounded in bytes; the least recently used answers are dropped first.
 */
import { hash } from 'node:crypto'
import type { Exchange } from './port.ts'

export type Ready = {
  readonly body: Buffer
  readonly etag: string
  /** Name of the file that the body is; undefined: JSON. */
  readonly file: string | undefined
  /** The one room that it depends on; undefined: the whole board. */
  readonly room: string | undefined
  /** Newest change when it was requested. */
  readonly change: number
  /** Unix seconds from which it shows a text that is gone; 0 = never. */
  readonly until: number
}

/** Newest change of a room, or of the whole board. */
type Newest = (room: string | undefined) => number

/** Nothing that it was made from has changed. `now`: Unix seconds. */
export function isCurrent({ room, change, until }: Ready, newest: Newest, now: number): boolean {
  return newest(room) <= change && (until === 0 || until > now)
}

export class ReadyAnswers {
  readonly #kept = new Map<string, Ready>()
  readonly #bytesMax: number
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** The kept answer, if it is still right. */
  find(url: string, newest: Newest, now: number): Ready | undefined {
    const ready = this.#kept.get(url)
    if (ready === undefined) return undefined
    this.#kept.delete(url)
    if (!isCurrent(ready, newest, now)) {
      this.#bytes -= cost(url, ready)
      return undefined
    }
    this.#kept.set(url, ready)
    return ready
  }

  keep(url: string, ready: Ready): void {
    const before = this.#kept.get(url)
    if (before !== undefined) this.#bytes -= cost(url, before)
    this.#kept.delete(url)
    const bytes = cost(url, ready)
    if (bytes > this.#bytesMax / 8) return
    this.#kept.set(url, ready)
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

/** The reader has what this tag names, or accepts anything: tags are compared weakly (RFC 9110, 13.1.2). */
export function isHeld(exchange: Exchange, etag: string): boolean {
  const header = exchange.header('if-none-match')
  if (header === undefined) return false
  const strong = (tag: string): string => tag.trim().replace(/^W\//, '')
  return header.split(',').some((each) => strong(each) === '*' || strong(each) === strong(etag))
}

function cost(url: string, { body }: Ready): number {
  return url.length * 2 + body.length + 256
}

/** Headers of a text that is valid for this moment alone. */
export function plain(type: string): readonly (readonly [string, string])[] {
  return [
    ['content-type', type],
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
  ]
}
