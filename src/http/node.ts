/**
 * The HTTP engine on node:http: runs on any platform, with a stricter parser (llhttp) than the native engine's.
 *
 * Its timeouts match those built into the native engine: a head must arrive within 10 s, and an idle connection is kept open for 10 s. The
 * parser's own refusals (400, 408, 431) are answered here with a small body, since they have no request object.
 */

import type { IncomingMessage, Server } from 'node:http'
import { type AddressInfo, Server as Listener, type Socket } from 'node:net'
import { TurnoverMap } from '../../storage/turnover-map.ts'
import { createServer, ServerResponse } from '../node-http.ts'
import { BodySpace } from './body-space.ts'
import { ConnectionCount } from './connection-count.ts'
import { NodeSocket } from './node-socket.ts'
import {
  answerDeadlineMs,
  type ByteStream,
  type Handler,
  type Header,
  type HttpOptions,
  type HttpServer,
  headBytesMax,
  type SocketHandlers,
  streamBytesHigh,
  type WebSocketConnection,
} from './port.ts'
import {
  assertHeaders,
  EngineExchange,
  type EngineHooks,
  EngineStream,
  headerFieldsMax,
  isBodyless,
  peerAddress,
  statusLine,
} from './wire.ts'

const headTimeoutMs = 10_000
const keepAliveMs = 10_000
/** For a whole request including its body: 256 KiB at the 16 KiB/s that the native engine requires, rounded up. */
const requestTimeoutMs = 20_000
const checkEveryMs = 2_000
/** Unanswered requests per connection; one more disconnects it. */
const pipelinedMax = 128

export async function createNodeServer(handler: Handler, options: HttpOptions): Promise<HttpServer> {
  return new NodeServer(handler, options)
}

class NodeServer implements HttpServer {
  readonly engine = 'node'
  readonly options: HttpOptions
  readonly bodySpace: BodySpace | undefined
  /** Requests not answered yet, oldest first. */
  readonly pending = new TurnoverMap<NodeExchange, true>()
  /**
   * Connections whose last request has arrived, or whose last answer was sent: nothing after it may be processed (RFC 9112 section 9.6).
   */
  readonly closing = new WeakSet<Socket>()
  /** Connections that sent something that is not a request. They end once their earlier requests are answered. */
  readonly #broken = new WeakSet<Socket>()
  /** The unfinished requests of a connection, in order. */
  readonly #unfinished = new WeakMap<Socket, Set<NodeExchange>>()
  draining = false
  #handler: Handler
  #server: Server
  #sockets = new Set<Socket>()
  #sweeper: NodeJS.Timeout

  constructor(handler: Handler, options: HttpOptions) {
    this.#handler = handler
    this.options = options
    this.bodySpace = options.bodies && new BodySpace(options.bodies)
    const serverOptions = {
      maxHeaderSize: headBytesMax,
      headersTimeout: headTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: checkEveryMs,
      // node:http's own refusal would continue with the next request of the segment.
      requireHostHeader: false,
      noDelay: true,
      highWaterMark: streamBytesHigh,
      // Older releases of Node ignore this option and pass every request for another protocol to `upgrade`.
      shouldUpgradeCallback: (req: IncomingMessage) => req.url?.split('?')[0] === options.socketPath,
    }
    this.#server = createServer(serverOptions)
    // Beyond its own limit node:http silently drops fields, and framing with them. Accept all and count here.
    this.#server.maxHeadersCount = 0
    this.#server.on('request', (req, res) => this.#serve(req, res))
    // node:http would answer an unknown Expect with 417 and no body. Like the native engine, ignore it.
    this.#server.on('checkExpectation', (req, res) => this.#serve(req, res))
    // node:http hands over the bare socket, for a tunnel. The request is answered like any other method, and the socket closed.
    this.#server.on('connect', (req, socket) => this.#serveBare(req, socket as Socket))
    if (options.socketPath !== undefined)
      this.#server.on('upgrade', (req, socket, head) => this.#serveBare(req, socket as Socket, head))
    this.#server.on('clientError', (error, socket) => this.#refuseUnparsed(error, socket as Socket))
    const { connections = new ConnectionCount(), connectionsMax = Number.POSITIVE_INFINITY, onFull } = options
    this.#server.on('connection', (socket) => {
      if (connections.open >= connectionsMax) {
        socket.destroy()
        onFull?.()
        return
      }
      this.#sockets.add(socket)
      connections.add(1)
      socket.once('close', () => {
        this.#sockets.delete(socket)
        connections.add(-1)
      })
    })
    const deadlineMs = options.deadlineMs ?? answerDeadlineMs
    this.#sweeper = setInterval(() => this.#sweep(deadlineMs), Math.min(1000, deadlineMs / 4))
    this.#sweeper.unref()
  }

  get openConnections(): number {
    return this.#sockets.size
  }

  listen(host: string, port: number, isShared = false): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      // exclusive: cluster workers must not share the port either.
      this.#server.listen({ host, port, backlog: 4096, exclusive: true, reusePort: isShared }, () => {
        this.#server.off('error', reject)
        resolve((this.#server.address() as AddressInfo).port)
      })
    })
  }

  async stopAccepting(): Promise<void> {
    if (this.draining) return
    this.draining = true
    // The method of node:http also closes idle connections and loses the requests that are in flight on them.
    if (this.#server.listening) Listener.prototype.close.call(this.#server)
  }

  async close(): Promise<void> {
    await this.stopAccepting()
    clearInterval(this.#sweeper)
    this.#server.close()
    const closed = [...this.#sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(closed)
    await new Promise((resolve) => setImmediate(resolve))
  }

  /** `head`: bytes after the head of a request that may become a WebSocket. */
  #serveBare(req: IncomingMessage, socket: Socket, head?: Buffer): void {
    // The server's listeners, including its error listener, were removed from this socket.
    socket.on('error', () => socket.destroy())
    const others = this.#unfinished.get(socket)
    // An earlier answer owns the socket, so this request cannot be answered on it. The native engine closes such a connection too.
    if (others !== undefined && others.size > 0) {
      socket.destroy()
      for (const other of [...others]) other.lost()
      others.clear()
      return
    }
    const res = new ServerResponse(req)
    res.shouldKeepAlive = false
    res.assignSocket(socket)
    res.once('finish', () => socket.destroySoon())
    this.#serve(req, res, head)
  }

  #serve(req: IncomingMessage, res: ServerResponse, head?: Buffer): void {
    // node:http emits requests that follow an answered one in the same segment. The connection closes when that answer is sent.
    if (this.closing.has(req.socket) || req.socket.destroyed) return
    if ((this.#unfinished.get(req.socket)?.size ?? 0) >= pipelinedMax) {
      req.socket.destroy()
      return
    }
    const exchange = new NodeExchange(this, req, res, head)
    this.pending.set(exchange, true)
    this.#follow(exchange, req.socket, res)
    try {
      const refused = exchange.read()
      if (refused !== undefined) {
        exchange.refuse(refused.status, refused.code, refused.message)
        return
      }
      if (exchange.isLast) this.closing.add(req.socket)
      const promise = this.#handler(exchange)
      if (promise !== undefined) promise.catch((error: unknown) => exchange.fault(error))
    } catch (error) {
      exchange.fault(error)
    }
  }

  #follow(exchange: NodeExchange, socket: Socket, res: ServerResponse): void {
    const others = this.#unfinished.get(socket) ?? this.#expectLoss(socket)
    this.#unfinished.set(socket, others.add(exchange))
    res.once('close', () => {
      others.delete(exchange)
      if (others.size === 0 && this.#broken.has(socket)) socket.destroySoon()
    })
  }

  /** Tracks the requests of a connection: when it closes, node:http does not report the loss of those behind the first. */
  #expectLoss(socket: Socket): Set<NodeExchange> {
    const unfinished = new Set<NodeExchange>()
    socket.once('close', () => {
      for (const exchange of unfinished) exchange.lost()
    })
    return unfinished
  }

  #refuseUnparsed(error: Error & { code?: string }, socket: Socket): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const newest = [...(this.#unfinished.get(socket) ?? [])].at(-1)
    newest?.release()
    if (newest?.isWhole === true) {
      // Sent now, the refusal would be taken for the answer to a pending request, or end up in the middle of a stream.
      this.#broken.add(socket)
      if (socket.readableEnded) socket.destroy()
      return
    }
    const [status, message]: readonly [number, string] =
      error.code === 'HPE_HEADER_OVERFLOW'
        ? [431, `request line and headers together may have ${headBytesMax} bytes`]
        : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
          ? [408, 'the request did not arrive in time']
          : [400, 'this is not an HTTP/1.1 request']
    if (newest !== undefined) {
      newest.refuse(status, 'bad_request', message)
      return
    }
    const body = this.options.refusal(status, 'bad_request', message)
    const head = `HTTP/1.1 ${statusLine(status)}\r\nContent-Type: application/json\r\nConnection: close\r\n`
    socket.end(`${head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`, () => socket.destroy())
  }

  #sweep(deadlineMs: number): void {
    const now = this.options.now()
    for (const exchange of this.pending.keys()) {
      if (now - exchange.since < deadlineMs) return
      exchange.overdue()
    }
  }
}

type Refused = { readonly status: number; readonly code: string; readonly message: string }

class NodeExchange extends EngineExchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly remoteAddress: string
  readonly since: number
  #server: NodeServer
  #req: IncomingMessage
  #res: ServerResponse
  readonly headers: string[] = []
  /** Present if the request may become a WebSocket. */
  readonly #head: Buffer | undefined

  constructor(server: NodeServer, req: IncomingMessage, res: ServerResponse, head: Buffer | undefined) {
    super(server)
    this.#server = server
    this.#head = head
    this.#req = req
    this.#res = res
    this.since = server.options.now()
    this.method = req.method ?? ''
    const target = req.url ?? ''
    const mark = target.indexOf('?')
    this.path = mark < 0 ? target : target.slice(0, mark)
    this.query = mark < 0 ? '' : target.slice(mark + 1)
    this.remoteAddress = peerAddress(req.socket.remoteAddress ?? '')
    req.on('error', () => {})
    res.on('error', () => {})
    res.once('close', () => this.lost())
  }

  read(): Refused | undefined {
    const raw = this.#req.rawHeaders
    if (raw.length > 2 * headerFieldsMax) {
      return { status: 431, code: 'bad_request', message: `at most ${headerFieldsMax} header fields` }
    }
    for (let i = 0; i < raw.length; i += 2) this.headers.push((raw[i] ?? '').toLowerCase(), raw[i + 1] ?? '')
    const message =
      this.frame() ??
      (this.#head !== undefined && this.isBodyComing ? 'an upgrade request must not have a body' : undefined)
    if (this.isBodyComing) {
      this.#req.on('data', (chunk: Buffer) => this.onPart(chunk.length, false, () => chunk))
      this.#req.once('end', () => this.onPart(0, true))
    }
    if (message === undefined) return undefined
    return { status: 400, code: 'bad_request', message }
  }

  /** The request has fully arrived, or was answered without waiting for the rest. */
  get isWhole(): boolean {
    return this.#req.complete || this.ended
  }

  /** Whether any answer closes the connection. */
  get isLast(): boolean {
    return this.framing.close
  }

  get isUpgrade(): boolean {
    return this.#head !== undefined
  }

  reply(
    status: number,
    headers: readonly Header[],
    body: Uint8Array | string,
    options?: { readonly close?: boolean },
  ): void {
    statusLine(status)
    assertHeaders(headers)
    if (this.ended) return
    this.end()
    this.whenSent(() => {
      const close = options?.close === true || this.mustClose()
      if (close) this.#server.closing.add(this.#req.socket)
      const flat = flatten(headers, close)
      if (!isBodyless(status)) flat.push('Content-Length', String(Buffer.byteLength(body)))
      this.#res.writeHead(status, flat)
      if (isBodyless(status) || this.method === 'HEAD') this.#res.end()
      else this.#res.end(body)
    })
  }

  stream(status: number, headers: readonly Header[], length?: number): ByteStream {
    statusLine(status)
    assertHeaders(headers)
    const res = this.ended ? undefined : this.#res
    const stream = new NodeStream(res, this.hooks)
    if (res === undefined) return stream
    this.end()
    this.streaming = stream
    const close = this.mustClose()
    if (close) this.#server.closing.add(this.#req.socket)
    const flat = flatten(headers, close)
    if (length !== undefined) flat.push('Content-Length', String(length))
    res.writeHead(status, flat)
    if (this.method === 'HEAD') stream.end()
    else res.flushHeaders()
    // A stream that began before the server stopped accepting did not announce the close; close the connection anyway.
    res.once('finish', () => {
      if (this.#server.draining) this.#req.socket.end()
    })
    return stream
  }

  drop(): void {
    if (this.ended) return
    this.end()
    this.#req.socket.destroy()
  }

  accept(handlers: SocketHandlers): WebSocketConnection | undefined {
    const head = this.#head
    if (this.ended || head === undefined || this.#server.draining) return undefined
    const { socket } = this.#req
    this.end()
    this.#res.detachSocket(socket)
    return new NodeSocket({ request: this.#req, socket, head, handlers, ...this.hooks })
  }
}

function flatten(headers: readonly Header[], close: boolean): string[] {
  const flat: string[] = []
  for (const [name, value] of headers) flat.push(name, value)
  if (close) flat.push('Connection', 'close')
  return flat
}

/**
 * One streamed answer on node:http. Its own buffer shows when a reader is slow: above 64 KiB unsent, `write` is false.
 */
class NodeStream extends EngineStream<ServerResponse> {
  constructor(res: ServerResponse | undefined, hooks: EngineHooks) {
    super(res, hooks)
    res?.on('drain', () => {
      this.blockedSince = undefined
      this.drained()
    })
  }

  write(chunk: Uint8Array): boolean {
    if (this.native === undefined || this.native.writableEnded || chunk.length === 0) return true
    if (this.native.write(chunk)) return true
    this.blockedSince ??= this.hooks.now()
    return false
  }

  end(): void {
    this.native?.end()
  }

  close(): void {
    this.native?.destroy()
  }
}
