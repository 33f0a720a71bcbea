/**
 * A link: sends requests (asks) and one-way messages (tells) over a port between two threads.
 *
 * `ask` gets an answer and is bounded in number and in time. `tell` is a hint that may be lost. Everything sent in one
 * tick travels as one message, encoded with msgpackr into one buffer that is transferred, never cloned: one postMessage
 * costs as much as thirty short messages. Large answers are sent early instead of being batched, so that nobody waits for
 * the answers of others, and a thread that answers thousands of asks in one tick buffers at most one message of them.
 *
 * Tells and answers arrive in the order in which they were sent.
 *
 * Wire format: [asks, answers, tells, notes] with asks = [id, body][], answers = [id, note index or -1, body][]. A note
 * is shared by a batch of answers (the signed head that covers them all) and sent once.
 */
import { TurnoverMap } from '../../storage/turnover-map.ts'
import { encodeApart, Packr } from './msgpack.ts'
import type { Cancel, Timers } from './timers.ts'

/** One end of a channel between two threads. Messages arrive in order, or not at all once an end is closed. */
export interface Port {
  /** `close`: this end or the other was closed, or the thread that holds it ended. */
  on(event: 'message' | 'close', take: (bytes: Uint8Array) => void): unknown
  /** The buffers in `transfer` are moved, and are unusable here afterward. */
  postMessage(bytes: Uint8Array, transfer: readonly ArrayBuffer[]): void
  close(): void
}

/** A port can be transferred to another thread, once. */
export type Channel = { readonly port1: Port; readonly port2: Port }

/** Why an ask has no answer: the link is full, the other side is gone, or time ran out. */
type Silence = 'overloaded' | 'gone' | 'late'
export type Answered<Body, Note> =
  | { readonly ok: true; readonly body: Body; readonly note: Note | undefined }
  | { readonly ok: false; readonly silence: Silence }

export type LinkOptions = {
  readonly port: Port
  /** Maximum open asks; the next one is `overloaded` immediately. */
  readonly openMax: number
  /** Milliseconds after which an unanswered ask is `late`. */
  readonly patienceMs: number
  /** Monotonic milliseconds. */
  readonly now: () => number
  readonly timers: Timers
  readonly onAsk?: (body: unknown, id: number) => void
  readonly onTell?: (body: unknown) => void
  /** Called before the gathered messages are encoded: after this nothing may be added to them. */
  readonly onFlush?: () => void
  /** Called with the size of each message that has been handled. */
  readonly onReceived?: (bytes: number) => void
}

/**
 * Gathered answers are sent immediately once they reach this many bytes: about a page of posts, which takes longer to make than to send. If
 * all asks of a tick were answered together, each would wait for the last one, and the thread that asked would have nothing to do meanwhile.
 */
const gatheredBytesMax = 16 * 1024

type Open = { readonly answer: (answered: Answered<unknown, unknown>) => void; readonly due: number }
type Wire = [[number, unknown][], [number, number, unknown][], unknown[], unknown[]]

/** Without the records extension, because every message must be decodable on its own. */
const codec = new Packr({ useRecords: false, moreTypes: false })

export class Link {
  readonly #options: LinkOptions
  readonly #open = new TurnoverMap<number, Open>()
  #nextId = 1
  #asks: [number, unknown][] = []
  #answers: [number, number, unknown][] = []
  #tells: unknown[] = []
  #notes: unknown[] = []
  #gatheredBytes = 0
  #flushing = false
  #closed = false
  readonly #stopSweeping: Cancel

  constructor(options: LinkOptions) {
    this.#options = options
    options.port.on('message', (bytes: Uint8Array) => this.#receive(bytes))
    options.port.on('close', () => this.close())
    this.#stopSweeping = options.timers.every(() => this.#expire(), Math.max(50, options.patienceMs / 4))
  }

  /** Open asks, for metrics. */
  get open(): number {
    return this.#open.size
  }

  ask<Body, Note>(body: unknown, answer: (answered: Answered<Body, Note>) => void): void {
    if (this.#closed) return answer({ ok: false, silence: 'gone' })
    if (this.#open.size >= this.#options.openMax) return answer({ ok: false, silence: 'overloaded' })
    const id = this.#nextId++
    this.#open.set(id, {
      answer: answer as (answered: Answered<unknown, unknown>) => void,
      due: this.#options.now() + this.#options.patienceMs,
    })
    this.#asks.push([id, body])
    this.#scheduleFlush()
  }

  tell(body: unknown): void {
    if (this.#closed) return
    this.#tells.push(body)
    this.#scheduleFlush()
  }

  /** Answers ask `id`. Answers given with the same `note` object in one tick share one copy of it. */
  answer(id: number, body: unknown, note?: unknown): void {
    if (this.#closed) return
    // Answers come first in a message, so earlier tells must be sent in a message before this one.
    if (this.#tells.length > 0) this.flush()
    let index = -1
    if (note !== undefined) {
      index = this.#notes.indexOf(note)
      if (index < 0) index = this.#notes.push(note) - 1
    }
    this.#answers.push([id, index, body])
    this.#gatheredBytes += weightOf(body)
    if (this.#gatheredBytes >= gatheredBytesMax) this.flush()
    else this.#scheduleFlush()
  }

  /** Closes the link. Every open ask gets `gone`, because its outcome is unknown here. */
  close(): void {
    if (this.#closed) return
    this.flush()
    this.#closed = true
    this.#stopSweeping()
    this.#options.port.close()
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const { answer } of open) answer({ ok: false, silence: 'gone' })
  }

  /** Sends gathered messages now instead of at the end of the tick. */
  flush(): void {
    if (this.#closed) return
    if (this.#asks.length + this.#answers.length + this.#tells.length === 0) return
    this.#options.onFlush?.()
    const wire: Wire = [this.#asks, this.#answers, this.#tells, this.#notes]
    this.#asks = []
    this.#answers = []
    this.#tells = []
    this.#notes = []
    this.#gatheredBytes = 0
    const bytes = encodeApart(codec, wire)
    this.#options.port.postMessage(bytes, [bytes.buffer])
  }

  #scheduleFlush(): void {
    if (this.#flushing) return
    this.#flushing = true
    this.#options.timers.soon(() => {
      this.#flushing = false
      this.flush()
    })
  }

  #receive(bytes: Uint8Array): void {
    const [asks, answers, tells, notes] = codec.unpack(bytes) as Wire
    // Answers first: an ask to follow something takes effect before the news sent after its answer.
    for (const [id, note, body] of answers) {
      const open = this.#open.get(id)
      if (open === undefined) continue
      this.#open.delete(id)
      open.answer({ ok: true, body, note: note < 0 ? undefined : notes[note] })
    }
    for (const body of tells) this.#options.onTell?.(body)
    for (const [id, body] of asks) this.#options.onAsk?.(body, id)
    this.#options.onReceived?.(bytes.byteLength)
  }

  #expire(): void {
    const now = this.#options.now()
    for (const [id, open] of this.#open) {
      if (open.due > now) break // they are in the order of insertion, and every ask has the same patience
      this.#open.delete(id)
      open.answer({ ok: false, silence: 'late' })
    }
  }
}

/** Approximate size in bytes of the texts and buffers in a body. */
function weightOf(body: unknown): number {
  if (typeof body === 'string') return body.length
  if (typeof body !== 'object' || body === null) return 0
  if (ArrayBuffer.isView(body)) return body.byteLength
  let weight = 0
  for (const name in body) weight += weightOf(body[name as keyof typeof body])
  return weight
}
