/**
 * POST /v1/command, one command, and POST /v1/commands: up to a thousand commands, one per line (NDJSON), each answered as soon as its
 * outcome is known.
 *
 * Every line has the bounds of a single command and is counted on its own. If the connection ends, accepted lines stay accepted and the
 * rest are not sent. Sending the same bytes again is safe.
 */

import { ordinaryBodyBytes, sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel, Timers } from '../../actors/kernel/timers.ts'
import { LineOrder } from '../command/line-order.ts'
import type { CommandSource } from '../command/verified.ts'
import { printable } from '../format/printable.ts'
import { bodyOf, type Reply } from '../format/reply.ts'
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

type CommandsRouteOptions = {
  readonly front: Pick<CommandRouter, 'execute'>
  readonly throttle: Throttle
  readonly replies: Replies
  readonly addressOf: (exchange: Exchange) => string
  readonly onReply: (status: number) => void
  readonly timers: Pick<Timers, 'soon' | 'later'>
}

const methods = 'POST, OPTIONS'
const braceOpen = 0x7b
const lineFeed = 0x0a
const carriageReturn = 0x0d
/** Lines parsed in one turn of the event loop; other clients are served between turns. */
const linesPerTurn = 32

const headers: readonly Header[] = [
  ['content-type', 'application/x-ndjson'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ...openHeaders,
]

/** How one of the two paths treats the body of a POST. */
type Way = {
  readonly path: string
  /** Messages for refusals: where a query belongs instead, and what to send if the body is too large. */
  readonly noQuery: string
  readonly tooLarge: string
  /** A reason to refuse before reading the body. */
  readonly objection?: () => Refusal | undefined
  readonly take: (body: Buffer, address: string) => void
}

/** Answers requests with another method, a query, a body that is too large, or a body that this network may not send now. */
function readCommands(
  exchange: Exchange,
  { throttle, replies, addressOf }: Pick<CommandsRouteOptions, 'throttle' | 'replies' | 'addressOf'>,
  { path, noQuery, tooLarge, objection, take }: Way,
): void {
  const { method } = exchange
  if (method === 'OPTIONS') return replies.preflight(exchange, methods)
  if (method !== 'POST') return replies.wrongMethod(exchange, methods)
  const refuse = (found: Refusal) => replies.refuse(exchange, found)
  if (exchange.query !== '') return refuse(refusal('invalid_field', `POST ${path} takes no query: ${noQuery}`))
  const found = objection?.()
  if (found !== undefined) return refuse(found)
  const address = addressOf(exchange)
  noteCause(path)
  const tooMany = throttle.largeBodyObjection(address)
  const taken = withCause((result: BodyResult) => {
    if (result.ok) return take(result.body, address)
    if (tooMany !== undefined) {
      throttle.placeRefused('unsigned_commands_per_address_per_minute')
      return refuse(tooMany)
    }
    const message = `the body has at least ${result.sentAtLeast} bytes, ${sizes.body_bytes} are allowed${tooLarge}`
    refuse(refusal('too_large', message))
  })
  exchange.readBody(tooMany === undefined ? sizes.body_bytes : ordinaryBodyBytes, taken)
}

/** Undefined if the body is not encoded. */
function encodingOf(exchange: Exchange): string | undefined {
  const encoding = exchange.header('content-encoding')
  return encoding === 'identity' ? undefined : encoding
}

/** POST /v1/command: one command, and its answer. */
export function commandRoute(options: Omit<CommandsRouteOptions, 'onReply' | 'timers'>): RouteHandler {
  const { front, replies } = options
  return (exchange) =>
    readCommands(exchange, options, {
      path: '/v1/command',
      noQuery: 'everything goes into the JSON body',
      tooLarge: '',
      take: (body, address) => {
        // An encoded body does not begin with a brace, so a plain command needs no look at its headers.
        const encoding = body[0] === braceOpen ? undefined : encodingOf(exchange)
        if (encoding !== undefined) {
          const message = `no Content-Encoding is accepted, and the body has ${printable(encoding, 32)}: send the JSON plainly`
          return replies.refuse(exchange, refusal('invalid_json', message))
        }
        const source: CommandSource = { via: 'command', address, onGone: (callback) => exchange.onAbort(callback) }
        front.execute(body, source, (reply) => replies.send(exchange, reply))
      },
    })
}

export function commandsRoute(options: CommandsRouteOptions): RouteHandler {
  const { replies, onReply } = options
  return (exchange) =>
    readCommands(exchange, options, {
      path: '/v1/commands',
      noQuery: 'each line of the body is one command',
      tooLarge: ': send fewer lines',
      objection: () =>
        encodingOf(exchange) === undefined
          ? undefined
          : refusal('invalid_json', 'no Content-Encoding is accepted: send the lines plainly'),
      take: (body, address) => {
        const refuse = (found: Refusal) => replies.refuse(exchange, found)
        const lines = linesOf(body)
        if (lines.length > sizes.batch_lines)
          return refuse(refusal('too_large', `the body has more than ${sizes.batch_lines} lines: send fewer at once`))
        if (lines.length === 0)
          return refuse(refusal('missing_field', 'the body has no line: send one command as JSON on each line'))
        onReply(200)
        new Batch(options, address, lines, exchange.stream(200, headers)).run()
      },
    })
}

type NumberedLine = { readonly number: number; readonly bytes: Buffer }

/** The nonempty lines with their numbers from 1: at most one more than may be sent. */
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
  /** The outcome of a line is unknown, so the connection is cut instead of ending the answer normally. */
  #isCut = false
  #stopWaiting: Cancel | undefined
  /** Answers that are not written yet. */
  #unsent = ''
  #isWriteScheduled = false

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

  /** Disconnects a reader that takes none of its answers within the time limit. */
  #hold(): void {
    this.#order.hold()
    this.#stopWaiting?.()
    this.#stopWaiting = this.#options.timers.later(() => this.#stream.close(), bodyStallMs)
  }

  #answer(line: number, reply: Reply | undefined): void {
    this.#answered++
    if (this.#isOver) return
    if (reply === undefined) this.#isCut = true
    else this.#unsent += `{"line":${line},"status":${reply.status},${bodyOf(reply).slice(1)}\n`
    if (this.#isWriteScheduled) return
    this.#isWriteScheduled = true
    this.#options.timers.soon(() => this.#write())
  }

  /** Answers arrive in actor turns; those of one turn of the event loop are combined into one write. */
  #write(): void {
    this.#isWriteScheduled = false
    if (this.#isOver) return
    const text = this.#unsent
    this.#unsent = ''
    if (text !== '' && !this.#stream.write(Buffer.from(text))) this.#hold()
    if (this.#answered < this.#lines.length) return
    if (this.#isCut) this.#stream.close()
    else this.#stream.end()
  }
}
