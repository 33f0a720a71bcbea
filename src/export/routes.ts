/** GET /v1/export: the archive as JSONL, requested from the feed chunk by chunk as the reader's socket accepts it. */

import { createGzip } from 'node:zlib'
import { fields } from '../../actors/kernel/fields.ts'
import { sizes } from '../../actors/kernel/limits.ts'
import { type Refusal, refusal } from '../../actors/kernel/refusals.ts'
import { unitHint } from '../../actors/records/write.ts'
import { faultOf } from '../command/check.ts'
import type { OpenRooms } from '../command/open-rooms.ts'
import type { ByteStream, Exchange, Header } from '../http/port.ts'
import { parseQuery, unknownParameter } from '../http/query.ts'
import { openHeaders } from '../http/replies.ts'
import { takesGzip } from '../http/wire.ts'
import type { ExportChunk, ExportRequest, ExportState } from './chunk.ts'
import type { Enter } from './gate.ts'

/** A stop does not wait for a reader whose socket has accepted nothing for this long. */
const stalledMs = 2_000

type ExportOptions = {
  readonly now: () => number
  readonly rooms: Pick<OpenRooms, 'may'>
  readonly next: (request: ExportRequest, answer: (chunk: ExportChunk | undefined) => void) => void
  readonly refuse: (exchange: Exchange, found: Refusal) => void
  /** Absent if any client may begin. */
  readonly enter?: Enter
}

/** Concurrent chunk requests: other reads of the board wait for at most this many chunks, however many clients download. */
const asksMax = 4

type Next = (request: ExportRequest, isGone: () => boolean, answer: (chunk: ExportChunk | undefined) => void) => void

const base: readonly Header[] = [
  ['content-type', 'application/x-ndjson'],
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
  ...openHeaders,
]

export class Exports {
  readonly #options: ExportOptions
  readonly #open = new Set<ByteStream>()
  readonly #waiting: Parameters<Next>[] = []
  #asking = 0

  constructor(options: ExportOptions) {
    this.#options = options
  }

  /** Exports in progress that their readers are consuming: a stop waits for these. */
  get moving(): number {
    const now = this.#options.now()
    return [...this.#open].filter(({ blockedSince }) => now - (blockedSince ?? now) < stalledMs).length
  }

  handle(exchange: Exchange): void {
    const options = this.#options
    const request = readRequest(exchange.query)
    if ('code' in request) return options.refuse(exchange, request)
    const leave = options.enter?.(exchange, request.limit > 0) ?? (() => {})
    if ('code' in leave) return options.refuse(exchange, leave)
    const gzip = takesGzip(exchange.header('accept-encoding'))
    const next: Next = (...asked) => this.#next(...asked)
    const isGone = () => exchange.ended
    next(request, isGone, (chunk) => {
      if (isGone() || !chunk?.ok) leave()
      if (isGone()) return
      if (chunk === undefined) return exchange.drop()
      if (!chunk.ok) return refuseChunk(options, exchange, request, chunk.refusal)
      const headers: Header[] = [...base, ['vary', 'accept-encoding']]
      if (chunk.nextCursor !== undefined) headers.push(['x-next-cursor', chunk.nextCursor])
      if (gzip) headers.push(['content-encoding', 'gzip'])
      const stream = exchange.stream(200, headers)
      this.#open.add(stream)
      stream.onClose(() => {
        this.#open.delete(stream)
        leave()
      })
      pump(next, request, chunk, stream, gzip ? gzipInto(stream) : stream)
    })
  }

  #next(...asked: Parameters<Next>): void {
    this.#waiting.push(asked)
    this.#go()
  }

  /** Starts requests in turn. Nothing is built for a client that has disconnected. */
  #go(): void {
    while (this.#asking < asksMax) {
      const asked = this.#waiting.shift()
      if (asked === undefined) return
      const [request, isGone, answer] = asked
      if (isGone()) {
        answer(undefined)
        continue
      }
      this.#asking++
      this.#options.next(request, (chunk) => {
        this.#asking--
        answer(chunk)
        this.#go()
      })
    }
  }
}

/** The feed only knows public rooms. For any other room, as with every read, it is first determined whether it is private. */
function refuseChunk(options: ExportOptions, exchange: Exchange, { filter }: ExportRequest, found: Refusal): void {
  const { refuse, rooms } = options
  if (found.field !== 'room' || filter.room === undefined) return refuse(exchange, found)
  rooms.may([filter.room], '', (verdict) => {
    if (exchange.ended) return
    if (verdict === undefined) return exchange.drop()
    refuse(exchange, verdict === 'yes' ? found : verdict)
  })
}

type Chunk = Extract<ExportChunk, { ok: true }>

/** Destination of the chunks: the reader directly, or through a compressor. */
type Sink = Pick<ByteStream, 'write' | 'onDrain' | 'end'>

function gzipInto(stream: ByteStream): Sink {
  const gzip = createGzip({ level: 6 })
  gzip.on('data', (bytes: Buffer) => {
    if (!stream.write(bytes)) gzip.pause()
  })
  gzip.on('end', () => stream.end())
  stream.onDrain(() => gzip.resume())
  stream.onClose(() => gzip.destroy())
  return {
    write: (bytes) => gzip.write(bytes),
    onDrain: (callback) => gzip.on('drain', callback),
    end: () => gzip.end(),
  }
}

/**
 * Writes chunk after chunk as the sink accepts them. The next one is built in parallel, so at most one waits in addition to what the sink
 * holds.
 */
function pump(next: Next, request: ExportRequest, first: Chunk, stream: ByteStream, sink: Sink): void {
  let isOpen = true
  let isFull = false
  let hasFailed = false
  let made: Chunk | undefined
  stream.onClose(() => {
    isOpen = false
  })
  const ask = (state: ExportState): void =>
    next(
      { ...request, state },
      () => !isOpen,
      (chunk) => {
        if (!isOpen) return
        if (!chunk?.ok) return fail()
        made = chunk
        if (!isFull) write(chunk)
      },
    )
  /** The reader first gets what has already been built. */
  const fail = (): void => {
    if (isFull) hasFailed = true
    else stream.close()
  }
  const write = ({ bytes, state }: Chunk): void => {
    made = undefined
    isFull = bytes.length > 0 && !sink.write(bytes)
    if (state === undefined) sink.end()
    else ask(state)
  }
  sink.onDrain(() => {
    isFull = false
    if (hasFailed) return stream.close()
    if (made !== undefined) write(made)
  })
  write(first)
}

const parameters = ['stream', 'room', 'since', 'until', 'cursor', 'limit']

function readRequest(text: string): ExportRequest | Refusal {
  const query = parseQuery(text, sizes.url_query_bytes)
  if ('code' in query) return query
  for (const name of query.keys()) {
    if (!parameters.includes(name)) return unknownParameter('/v1/export', parameters, name)
  }
  const stream = query.get('stream')
  if (stream !== undefined && stream !== 'ledger' && stream !== 'board')
    return refusal('invalid_field', 'stream must be ledger or board, or left out for messages', 'stream')
  const filters = ['room', 'since', 'until', ...(stream === 'board' ? ['cursor', 'limit'] : [])]
  const filtered = filters.find((name) => query.has(name))
  if (stream !== undefined && filtered !== undefined)
    return refusal(
      'invalid_field',
      stream === 'ledger'
        ? 'the ledger is exported whole, or by cursor and limit: leave the other parameters out'
        : 'the board is exported whole: leave the other parameters out',
      filtered,
    )
  const room = query.get('room')
  const roomFault = room === undefined ? undefined : faultOf('room', fields.room, room)
  if (roomFault !== undefined) return roomFault
  const cursor = query.get('cursor')
  const cursorFault = cursor === undefined ? undefined : faultOf('cursor', fields.cursor, cursor)
  if (cursorFault !== undefined) return cursorFault
  const numbers: Record<string, number> = {}
  for (const [name, max] of [
    ['since', Number.MAX_SAFE_INTEGER],
    ['until', Number.MAX_SAFE_INTEGER],
    ['limit', sizes.page_maximum],
  ] as const) {
    const value = query.get(name)
    if (value === undefined) continue
    const min = name === 'limit' ? 1 : 0
    if (!/^(0|[1-9][0-9]{0,15})$/.test(value) || Number(value) > max || Number(value) < min)
      return refusal('invalid_field', `${name} must be an integer from ${min} to ${max}`, name)
    const hint = name === 'limit' ? '' : unitHint(Number(value))
    if (hint !== '') return refusal('invalid_field', `${name} must be in Unix seconds${hint}`, name)
    numbers[name] = Number(value)
  }
  return {
    filter: {
      ...(room === undefined ? {} : { room }),
      ...(numbers.since === undefined ? {} : { since: numbers.since }),
      ...(numbers.until === undefined ? {} : { until: numbers.until }),
    },
    limit: numbers.limit ?? (cursor === undefined ? 0 : sizes.page_default),
    cursor: cursor ?? '',
    ...(stream === undefined ? {} : { stream }),
  }
}
