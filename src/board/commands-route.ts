/**
 * POST /v1/commands: up to a thousand commands, one a line (NDJSON), and an answer for each as soon as it is known.
 *
 * Every line is held to the bounds of a single command and counted by itself. A connection that ends leaves what was accepted
 * accepted, and the rest unsent: the same bytes again are safe.
 */

import { ordinaryBodyBytes, sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { LineOrder } from '../command/line-order.ts'
import type { CommandSource } from '../command/verified.ts'
import type { Reply } from '../format/reply.ts'
import {
  type BodyResult,
  type ByteStream,
  bodyStallMs,
  type Exchange,
  type Header,
  type RouteHandler,
} from '../http/port.ts'
import { openHeaders, type Replies } from '../http/replies.ts'
import type { Throttle } from '../rates/throttle.ts'
import { noteCause, withCause } from '../runtime/slow-turns.ts'
import type { CommandRouter } from './command-router.ts'

export type CommandsRouteOptions = {
  readonly front: Pick<CommandRouter, 'execute'>
  readonly throttle: Throttle
  readonly replies: Replies
  readonly addressOf: (exchange: Exchange) => string
  readonly onReply: (status: number) => void
  readonly timers: Pick<Timers, 'soon' | 'later'>
}

const methods = 'POST, OPTIONS'
const lineFeed = 0x0a
const carriageReturn = 0x0d
/** Lines parsed in one turn of the event loop: other clients are served between two such turns. */
const linesPerTurn = 32

const headers: readonly Header[] = [
  ['content-type', 'application/x-ndjson'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ...openHeaders,
]

export function commandsDoor({
  front,
  throttle,
  replies,
  addressOf,
  onReply,
  timers,
}: CommandsRouteOptions): RouteHandler {
  return (exchange) => {
    const { method } = exchange
    if (method === 'OPTIONS') return replies.preflight(exchange, methods)
    if (method !== 'POST') return replies.wrongMethod(exchange, methods)
    const refuse = (found: Refusal) => replies.refuse(exchange, found)
    if (exchange.query !== '')
      return refuse(refusal('invalid_field', 'POST /v1/commands takes no query: each line of the body is one command'))
    const encoding = exchange.header('content-encoding')
    if (encoding !== undefined && encoding !== 'identity')
      return refuse(refusal('invalid_json', 'no Content-Encoding is accepted: send the lines plainly'))
    const address = addressOf(exchange)
    const tooMany = throttle.largeBodyObjection(address)
    noteCause('/v1/commands')
    const take = withCause((result: BodyResult) => {
      if (!result.ok && tooMany !== undefined) {
        throttle.placeRefused('unsigned_commands_per_address_per_minute')
        return refuse(tooMany)
      }
      if (!result.ok) {
        const message = `the body has at least ${result.sentAtLeast} bytes, ${sizes.body_bytes} are allowed: send fewer lines`
        return refuse(refusal('too_large', message))
      }
      const lines = linesOf(result.body)
      if (lines.length > sizes.batch_lines)
        return refuse(refusal('too_large', `the body has more than ${sizes.batch_lines} lines: send fewer at once`))
      if (lines.length === 0)
        return refuse(refusal('missing_field', 'the body has no line: send one command as JSON on each line'))
      onReply(200)
      new Batch({ front, timers }, address, lines, exchange.stream(200, headers)).run()
    })
    exchange.readBody(tooMany === undefined ? sizes.body_bytes : ordinaryBodyBytes, take)
  }
}

type NumberedLine = { readonly number: number; readonly bytes: Buffer }

/** Lines that are not empty, at most one more than may be sent, with their numbers from 1. */
function linesOf(body: Buffer): readonly NumberedLine[] {
  const lines: NumberedLine[] = []
  let start = 0
  for (let number = 1; start < body.length && lines.length <= sizes.batch_lines; number++) {
    const found = body.indexOf(lineFeed, start)
    const next = found < 0 ? body.length : found
    const end = next > start && body[next - 1] === carriageReturn ? next - 1 : next
    if (end > start) lines.push({ number, bytes: body.subarray(start, end) })
    start = next + 1
  }
  return lines
}

class Batch {
  readonly #options: Pick<CommandsRouteOptions, 'front' | 'timers'>
  readonly #address: string
  readonly #lines: readonly NumberedLine[]
  readonly #stream: ByteStream
  readonly #order = new LineOrder()
  readonly #whenGone: (() => void)[] = []
  #begun = 0
  #answered = 0
  #isOver = false
  /** The outcome of a line is unknown: the answer ends as cut, not as complete. */
  #isCut = false
  #stopWaiting: Cancel | undefined
  /** Answers that are not written yet. */
  #told = ''
  #isTelling = false

  constructor(
    options: Pick<CommandsRouteOptions, 'front' | 'timers'>,
    address: string,
    lines: readonly NumberedLine[],
    stream: ByteStream,
  ) {
    this.#options = options
    this.#address = address
    this.#lines = lines
    this.#stream = stream
  }

  run(): void {
    this.#stream.onClose(() => {
      this.#isOver = true
      this.#stopWaiting?.()
      this.#order.giveUp()
      for (const gone of this.#whenGone.splice(0)) gone()
    })
    this.#stream.onDrain(() => {
      this.#stopWaiting?.()
      this.#order.release()
    })
    this.#begin()
  }

  #begin(): void {
    const end = Math.min(this.#begun + linesPerTurn, this.#lines.length)
    while (this.#begun < end && !this.#isOver) this.#execute(this.#lines[this.#begun++]!)
    if (this.#begun < this.#lines.length && !this.#isOver) this.#options.timers.soon(() => this.#begin())
  }

  #execute({ number, bytes }: NumberedLine): void {
    const place = this.#order.place(bytes.toString('latin1'))
    const source: CommandSource = {
      via: 'command',
      address: this.#address,
      place,
      onGone: (callback) => {
        if (this.#isOver) callback()
        else this.#whenGone.push(callback)
      },
    }
    this.#options.front.execute(bytes, source, (reply) => {
      this.#answer(number, reply)
      place.answered()
    })
  }

  /** A reader that takes nothing of its answers is cut off. */
  #hold(): void {
    this.#order.hold()
    this.#stopWaiting?.()
    this.#stopWaiting = this.#options.timers.later(() => this.#stream.close(), bodyStallMs)
  }

  #answer(line: number, reply: Reply | undefined): void {
    this.#answered++
    if (this.#isOver) return
    if (reply === undefined) this.#isCut = true
    else this.#told += `{"line":${line},"status":${reply.status},${reply.body.slice(1)}\n`
    if (this.#isTelling) return
    this.#isTelling = true
    this.#options.timers.soon(() => this.#tell())
  }

  /** Answers come by the turn of an actor: those of one turn of the event loop are one write. */
  #tell(): void {
    this.#isTelling = false
    if (this.#isOver) return
    const text = this.#told
    this.#told = ''
    if (text !== '' && !this.#stream.write(Buffer.from(text))) this.#hold()
    if (this.#answered < this.#lines.length) return
    if (this.#isCut) this.#stream.close()
    else this.#stream.end()
  }
}
