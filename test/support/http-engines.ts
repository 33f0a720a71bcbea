/** Both HTTP engines with the same small handler behind them, so that one suite tests both. */
import { afterAll, beforeAll, beforeEach, describe, expect } from 'vitest'
import { createNodeServer } from '../../src/http/node.ts'
import type { ByteStream, Exchange, Handler, HttpOptions, HttpServer } from '../../src/http/port.ts'
import { headBytesMax } from '../../src/http/port.ts'
import { createUwsServer } from '../../src/http/uws.ts'
import { machine } from '../../src/platform.ts'
import { HttpThreads } from '../../src/workers/http-threads.ts'
import { rawRequest } from './raw-http.ts'

// The native engine reads it when it is loaded, which createUwsServer does.
process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(headBytesMax)

export const bodyLimit = 1000
/** Never reached in other tests, however slow the machine. */
const deadlineMs = 60_000
export const textHeaders = [['Content-Type', 'text/plain']] as const

/** What the handler saw and holds, emptied before each test. */
export class HandlerState {
  requests: string[] = []
  bodies: string[] = []
  aborts = 0
  faults: unknown[] = []
  streams: ByteStream[] = []
  held: Exchange[] = []
}

function handle(state: HandlerState, exchange: Exchange): void | Promise<void> {
  const { path } = exchange
  state.requests.push(`${exchange.method} ${path}${exchange.query === '' ? '' : `?${exchange.query}`}`)
  exchange.onAbort(() => {
    state.aborts++
  })
  if (path === '/throw') throw new Error('sync fault')
  if (path === '/reject') return Promise.resolve().then(() => Promise.reject(new Error('async fault')))
  if (path === '/hold') {
    state.held.push(exchange)
    return
  }
  if (path === '/stream') {
    const stream = exchange.stream(200, textHeaders)
    stream.write(Buffer.from('# first\n'))
    state.streams.push(stream)
    return
  }
  if (path === '/peer') return exchange.reply(200, textHeaders, exchange.remoteAddress)
  if (path === '/big') return exchange.reply(200, textHeaders, 'b'.repeat(3_000_000))
  if (path === '/empty') return exchange.reply(204, [], '')
  if (path === '/later') {
    setImmediate(() => exchange.reply(200, textHeaders, 'later'))
    return
  }
  exchange.readBody(bodyLimit, (result) => {
    if (!result.ok) return exchange.reply(400, textHeaders, `sent ${result.sentAtLeast}`)
    state.bodies.push(result.body.toString())
    exchange.reply(200, textHeaders, `${exchange.method} ${path}|${exchange.query}|${result.body}`)
  })
}

export type Engine = {
  readonly name: string
  readonly isUws: boolean
  /** Other threads hold the connections. */
  readonly isInThreads: boolean
  port: number
  state: HandlerState
  /** Another server of this engine; `ownDeadlineMs`: how long a request may stay unanswered there. */
  start(handler: Handler, ownDeadlineMs?: number, more?: Partial<HttpOptions>): Promise<HttpServer>
  /** Fails unless the server still answers. */
  expectAlive(): Promise<void>
}

type Create = (handler: Handler, options: HttpOptions) => Promise<HttpServer>

const inThreads =
  (engine: 'uws' | 'node'): Create =>
  (handler, http) =>
    HttpThreads.start({
      ...machine,
      engine,
      threads: 2,
      handler,
      http,
      bodyBytesMax: 1024 * 1024,
      onFatal: (thread, { message }) => {
        throw new Error(`${thread}: ${message}`)
      },
    })

const creators: readonly (Pick<Engine, 'name' | 'isUws' | 'isInThreads'> & { readonly create: Create })[] = [
  { name: 'uws engine', isUws: true, isInThreads: false, create: createUwsServer },
  { name: 'node engine', isUws: false, isInThreads: false, create: createNodeServer },
  { name: 'uws engine in two threads', isUws: true, isInThreads: true, create: inThreads('uws') },
  { name: 'node engine in two threads', isUws: false, isInThreads: true, create: inThreads('node') },
]

/** Runs the suite once per engine, each on its own server; `alone`: in the thread of the test, not in others. */
export function describeEngines(suite: (engine: Engine) => void, where: 'everywhere' | 'alone' = 'everywhere'): void {
  for (const { name, isUws, isInThreads, create } of creators) {
    if (isInThreads && where === 'alone') continue
    describe(`the ${name}`, () => {
      const engine: Engine = {
        name,
        isUws,
        isInThreads,
        port: 0,
        state: new HandlerState(),
        start: (handler, ownDeadlineMs = deadlineMs, more = {}) =>
          create(handler, { ...options, deadlineMs: ownDeadlineMs, ...more }),
        expectAlive: async () => expect((await rawRequest(engine.port, get('/echo')))?.status).toBe(200),
      }
      const options: Omit<HttpOptions, 'deadlineMs'> = {
        now: () => performance.now(),
        refusal: (status, code, message) => JSON.stringify({ status, code, message }),
        onFault: (error) => `{"id":${engine.state.faults.push(error)}}`,
        onDeadline: (exchange) => {
          if (exchange.query === 'answered') exchange.reply(429, textHeaders, 'too late')
        },
      }
      let server: HttpServer
      beforeAll(async () => {
        server = await engine.start((exchange) => handle(engine.state, exchange))
        engine.port = await server.listen('127.0.0.1', 0)
      })
      beforeEach(() => {
        engine.state = new HandlerState()
      })
      afterAll(() => server.close())
      suite(engine)
    })
  }
}

export function get(path: string, more = ''): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`
}

export function post(path: string, body: string): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
