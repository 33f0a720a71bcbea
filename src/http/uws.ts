/**
 * The HTTP engine on uWebSockets.js, and the only file that imports it.
 *
 * Tails are written by uws-stream.ts instead of `write`, because of this measurement: 500 bytes to each of 9,000 readers
 * (bench/fanout.bench.ts, 2 cores shared with other work; processor time of the writer per delivery, two runs).
 *
 *   write, no cork                                  28 to 33 us   4 `sendto`, 2 more `write` for its warning on stderr
 *   write, cork, another connection holds the cork  28 to 36 us   4 `sendto`: the cork is a silent no-op
 *   write, cork, outside of any engine callback      9 to 13 us   1 `sendto`
 *   ByteStream (this engine)                        10 to 11 us   1 `sendto`
 *   ByteStream, messages faster than a round         3 us         1 `sendto` for several messages
 *   ByteStream (node:http)                          15 to 16 us   1 `write`
 *   node:net, ready-made chunks                     11 to 13 us   1 `write`
 *
 * A chunk is four pieces (CR LF, size, CR LF, bytes). Without a cork, each is a system call, a TCP segment, and often a wake-up of the
 * reader (`strace -c`: 40,500 `sendto` for 10,000 deliveries, 10,500 in a cork). The loop has one cork. While a request's callback runs,
 * including its promise continuations, the cork belongs to that request's connection.
 */

import type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
} from 'uWebSockets.js'
import { isMainThread } from 'node:worker_threads'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import { cannotListen } from '../listening.ts'
import { BodySpace } from './body-space.ts'
import { ConnectionCount } from './connection-count.ts'
import {
  answerDeadlineMs,
  type ByteStream,
  bodyStallMs,
  type Handler,
  type Header,
  type HttpOptions,
  type HttpServer,
  type SocketHandlers,
  socketIdleSeconds,
  socketMessageBytesMax,
  type WebSocketConnection,
} from './port.ts'
import { UwsSocket } from './uws-socket.ts'
import { CorkTurn, UwsStream, writeHeaders } from './uws-stream.ts'
import { assertHeaders, EngineExchange, type FlatHeaders, isBodyless, peerAddress, statusLine } from './wire.ts'

type Native = typeof import('uWebSockets.js')

/** What the typings omit: the option between port and callback, and the switch that keeps the server from naming itself. */
type Listen = (host: string, port: number, options: number, done: (socket: us_listen_socket | false) => void) => void
type Configure = { readonly _cfg?: (key: string) => void }

/**
 * Bodies up to this size fit into the 16 KiB cork together with their header section. Longer ones use `tryEnd`, which returns what the
 * socket refused: this build loses bytes when a full cork meets a full socket (uWebSockets 6b7f354).
 */
const corkedBodyBytesMax = 12_288

/** Listens with SO_REUSEPORT. The engine has no name for this option. */
const sharedPort = 0

/** The engine copies these members to the native WebSocket. */
type UserData = { readonly socket: UwsSocket }

/** The message names the platform. */
export class EngineMissing extends Error {
  override readonly name = 'EngineMissing'
}

/**
 * Loads the native engine; throws EngineMissing if it has no binary for this machine. UWS_HTTP_MAX_HEADERS_SIZE must be set in the
 * environment first, because it is read once, when the engine loads.
 */
export async function createUwsServer(handler: Handler, options: HttpOptions): Promise<HttpServer> {
  let native: Native
  try {
    native = await import('uWebSockets.js')
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}, Node ${process.versions.node}`
    throw new EngineMissing(`uWebSockets.js has no binary for ${platform}`, { cause })
  }
  return new UwsServer(native, handler, options)
}

class UwsServer implements HttpServer {
  readonly engine = 'uws'
  readonly options: HttpOptions
  readonly bodySpace: BodySpace | undefined
  readonly turn = new CorkTurn()
  /** Requests whose handler returned before they were answered, oldest first. */
  readonly pending = new TurnoverMap<UwsExchange, true>()
  /** Time of the last sweep: the age of a request need not be more precise than the deadline check. */
  coarseNow: number
  draining = false
  readonly #connections: ConnectionCount
  #native: Native
  #app: TemplatedApp
  #handler: Handler
  #listening: us_listen_socket | undefined
  #sweeper: NodeJS.Timeout

  constructor(native: Native, handler: Handler, options: HttpOptions) {
    this.#native = native
    this.#handler = handler
    this.options = options
    this.bodySpace = options.bodies && new BodySpace(options.bodies)
    this.#connections = options.connections ?? new ConnectionCount()
    this.coarseNow = options.now()
    ;(native as unknown as Configure)._cfg?.('999999990007')
    this.#app = native.App()
    this.#app.filter(this.#count)
    this.#app.any('/*', (res, req) => this.#serve(res, req))
    if (options.socketPath !== undefined) this.#takeSockets(options.socketPath)
    const deadlineMs = options.deadlineMs ?? answerDeadlineMs
    this.#sweeper = setInterval(() => this.#sweep(deadlineMs), Math.min(1000, deadlineMs / 4))
    this.#sweeper.unref()
    if (!isMainThread) process.once('exit', this.#abandon)
  }

  get openConnections(): number {
    return this.#connections.open
  }

  listen(host: string, port: number, isShared = false): Promise<number> {
    const { LIBUS_LISTEN_EXCLUSIVE_PORT, us_socket_local_port } = this.#native as Native & {
      LIBUS_LISTEN_EXCLUSIVE_PORT: number
    }
    return new Promise((resolve, reject) => {
      const listen = this.#app.listen.bind(this.#app) as unknown as Listen
      listen(host, port, isShared ? sharedPort : LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
        if (socket === false) {
          reject(cannotListen(host, port))
          return
        }
        this.#listening = socket
        resolve(us_socket_local_port(socket as unknown as Parameters<typeof us_socket_local_port>[0]))
      })
    })
  }

  async stopAccepting(): Promise<void> {
    this.draining = true
    if (this.#listening === undefined) return
    this.#native.us_listen_socket_close(this.#listening)
    this.#listening = undefined
  }

  async close(): Promise<void> {
    await this.stopAccepting()
    clearInterval(this.#sweeper)
    process.off('exit', this.#abandon)
    this.#app.close()
    // Deferred answers find their connection gone; after that, nothing of this server is left in the loop.
    await new Promise((resolve) => setImmediate(resolve))
  }

  /** If a thread exits while the engine has open handles in its loop, libuv aborts the process with an assertion. */
  #abandon = (): void => {
    this.#app.close()
  }

  #count = (socket: HttpResponse, change: number): void => {
    this.#connections.add(change > 0 ? 1 : -1)
    const { connectionsMax = Number.POSITIVE_INFINITY, onFull } = this.options
    if (change < 0 || this.openConnections <= connectionsMax) return
    socket.close()
    onFull?.()
  }

  /** The engine passes requests for this path with a Sec-WebSocket-Key to `upgrade`, and all others to the handler as usual. */
  #takeSockets(path: string): void {
    const enter = (native: WebSocket<UserData>): UwsSocket => {
      const { socket } = native.getUserData()
      this.turn.enter(socket)
      return socket
    }
    this.#app.ws<UserData>(path, {
      maxPayloadLength: socketMessageBytesMax,
      // The stream stops at the first message that its peer does not take, so this bound drops only pongs, never messages.
      maxBackpressure: socketMessageBytesMax,
      idleTimeout: socketIdleSeconds,
      sendPingsAutomatically: false,
      upgrade: (res, req, context) => this.#serve(res, req, context),
      open: (native) => enter(native).opened(native),
      message: (native, bytes, isBinary) => enter(native).message(bytes, isBinary),
      ping: (native) => enter(native).control('ping'),
      pong: (native) => enter(native).control('pong'),
      drain: (native) => enter(native).drained(),
      close: (native) => {
        // The filter reports a connection that became a WebSocket only when it opens, so count its end here.
        this.#connections.add(-1)
        enter(native).closed()
      },
    })
  }

  #serve(res: HttpResponse, req: HttpRequest, context?: us_socket_context_t): void {
    const exchange = new UwsExchange(this, res, context)
    // Must come first: a callback that returns unanswered without this line ends the process.
    res.onAborted(() => exchange.aborted())
    this.turn.enter(exchange)
    try {
      const refused = exchange.read(req)
      if (refused !== undefined) {
        exchange.refuse(400, 'bad_request', refused)
        return
      }
      const promise = this.#handler(exchange)
      if (promise !== undefined) promise.catch((error: unknown) => exchange.fault(error))
    } catch (error) {
      exchange.fault(error)
    }
    if (!exchange.ended) this.pending.set(exchange, true)
  }

  #sweep(deadlineMs: number): void {
    this.coarseNow = this.options.now()
    for (const exchange of this.pending.keys()) {
      if (this.coarseNow - exchange.since < deadlineMs) return
      exchange.overdue()
    }
  }
}

class UwsExchange extends EngineExchange {
  method = ''
  path = ''
  query = ''
  readonly since: number
  #server: UwsServer
  #res: HttpResponse
  #peer: string | undefined
  headers: FlatHeaders = []
  /** The native response must not be touched anymore: aborted, or answered and freed. */
  #gone = false
  /** Present if the request may become a WebSocket. */
  readonly #context: us_socket_context_t | undefined

  constructor(server: UwsServer, res: HttpResponse, context: us_socket_context_t | undefined) {
    super(server)
    this.#server = server
    this.#res = res
    this.#context = context
    this.since = server.coarseNow
  }

  /** Copies the request, which is valid only during the native callback. Returns why it must be refused, if it must. */
  read(req: HttpRequest): string | undefined {
    // Never getMethod or getQuery(key): both rewrite the buffer that the other getters read.
    this.method = req.getCaseSensitiveMethod()
    this.path = req.getUrl()
    this.query = (req.getQuery() as string | undefined) ?? ''
    const headers: string[] = []
    req.forEach((name, value) => {
      headers.push(name, value)
    })
    this.headers = headers
    const refused = this.frame()
    if (this.isBodyComing)
      this.#res.onData((part, isLast) => {
        this.#server.turn.enter(this)
        // The part is detached when this callback returns, so copy it.
        this.onPart(part.byteLength, isLast, () => Buffer.from(new Uint8Array(part)))
      })
    return refused
  }

  /** Read on demand, because it costs a quarter of a small request. Empty if first read when the response is gone. */
  get remoteAddress(): string {
    if (this.#peer === undefined) {
      if (this.#gone) return ''
      this.#peer = peerAddress(Buffer.from(this.#res.getRemoteAddressAsText()).toString('latin1'))
    }
    return this.#peer
  }

  get isUpgrade(): boolean {
    return this.#context !== undefined && this.header('sec-websocket-key') !== undefined
  }

  reply(
    status: number,
    headers: readonly Header[],
    body: Uint8Array | string,
    options?: { readonly close?: boolean },
  ): void {
    const line = statusLine(status)
    assertHeaders(headers)
    if (this.ended) return
    this.end()
    const content = isBodyless(status) ? undefined : body
    this.whenSent(() => {
      const close = options?.close === true || this.mustClose()
      // An answer that closes the connection waits until the engine has parsed the segment. Sent immediately, it does not prevent a later
      // request of the same segment from being executed (observed, in spite of closeConnection). Sent later, the engine closes the
      // connection when it meets a second request while the first is pending.
      if (!close && this.#server.turn.isFree(this)) this.#send(line, headers, content, close)
      else this.#server.turn.defer(() => this.#send(line, headers, content, close))
    })
  }

  stream(status: number, headers: readonly Header[], length?: number): ByteStream {
    const line = statusLine(status)
    assertHeaders(headers)
    const res = this.ended ? undefined : this.#res
    const stream = new UwsStream(res, this.hooks, {
      line,
      headers,
      turn: this.#server.turn,
      close: this.mustClose(),
      isHead: this.method === 'HEAD',
      length,
    })
    if (res === undefined) return stream
    this.end()
    this.streaming = stream
    return stream
  }

  drop(): void {
    if (this.ended) return
    this.end()
    this.#res.close()
  }

  accept(handlers: SocketHandlers): WebSocketConnection | undefined {
    const key = this.header('sec-websocket-key')
    if (this.ended || this.#context === undefined || key === undefined || this.#server.draining) return undefined
    const socket = new UwsSocket({ handlers, ...this.hooks })
    this.end()
    this.#gone = true
    this.#res.upgrade<UserData>({ socket }, key, '', '', this.#context)
    return socket
  }

  /** The native onAborted callback. */
  aborted(): void {
    this.#gone = true
    this.#server.turn.enter(this.#server)
    this.lost()
  }

  #send(line: string, headers: readonly Header[], body: Uint8Array | string | undefined, close: boolean): void {
    if (this.#gone) return
    const res = this.#res
    res.cork(() => {
      res.writeStatus(line)
      writeHeaders(res, headers)
      if (body === undefined || this.method === 'HEAD') {
        if (body !== undefined) res.writeHeader('Content-Length', String(Buffer.byteLength(body)))
        // With any argument, this build adds its own length and never finishes the response. So the client closes a HEAD connection, which
        // it requested or was told of, or else the idle timer does.
        if (close) res.writeHeader('Connection', 'close')
        res.endWithoutBody()
        this.#gone = true
      } else if (body.length <= corkedBodyBytesMax / 3 || Buffer.byteLength(body) <= corkedBodyBytesMax) {
        res.end(body, close)
        this.#gone = true
      } else {
        if (close) res.writeHeader('Connection', 'close')
        this.#sendLong(typeof body === 'string' ? Buffer.from(body) : body)
      }
    })
  }

  #sendLong(body: Uint8Array): void {
    const res = this.#res
    const sendFrom = (offset: number): boolean => {
      if (this.#gone) return true
      const [took, done] = res.tryEnd(body.subarray(offset), body.length)
      if (took || done) this.#gone = true
      return took || done
    }
    if (sendFrom(0)) return
    // The body stays in memory until the reader has taken it; a reader that takes nothing for this long is disconnected.
    const stalled = setTimeout(() => this.#gone || res.close(), bodyStallMs).unref()
    res.onWritable((offset) => {
      stalled.refresh()
      let took = true
      res.cork(() => {
        took = sendFrom(offset)
      })
      return took
    })
  }
}
