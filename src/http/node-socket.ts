/** One WebSocket on node:http, using the library ws. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { socketMessageBytesMax } from './port.ts'
import { EngineSocket, type EngineSocketOptions } from './wire.ts'

/** A peer that does not answer the close frame within this time is disconnected. */
const closeTimeoutMs = 5_000

const acceptorOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: socketMessageBytesMax,
  closeTimeout: closeTimeoutMs,
  // A pong for every ping would pile up for a peer that does not read them.
  autoPong: false,
}
const acceptor = new WebSocketServer(acceptorOptions)

type NodeSocketOptions = EngineSocketOptions & {
  readonly request: IncomingMessage
  readonly socket: Socket
  /** Bytes that arrived with the request's head. */
  readonly head: Buffer
}

export class NodeSocket extends EngineSocket<WebSocket> {
  readonly #socket: Socket

  constructor(options: NodeSocketOptions) {
    super(options)
    this.#socket = options.socket
    acceptor.handleUpgrade(options.request, options.socket, options.head, (native) => this.#opened(native))
  }

  send(messages: readonly string[]): number {
    let taken = 0
    this.#socket.cork()
    while (taken < messages.length && this.native !== undefined && this.blockedSince === undefined) {
      this.native.send(messages[taken++]!)
      this.#noteBlocked()
    }
    this.#socket.uncork()
    return taken
  }

  ping(): void {
    if (this.blockedSince !== undefined) return
    this.native?.ping()
    this.#noteBlocked()
  }

  end(code: number, reason: string): void {
    if (this.blockedSince === undefined) this.native?.close(code, reason)
    else this.native?.terminate()
    this.closed()
  }

  #opened(native: WebSocket): void {
    this.native = native
    const { handlers } = this.options
    native.on('message', (data: Buffer, isBinary) => this.guard(() => handlers.message(data, isBinary)))
    native.on('ping', (data: Buffer) => {
      if (this.blockedSince === undefined) {
        native.pong(data)
        this.#noteBlocked()
      }
      this.guard(handlers.ping)
    })
    native.on('pong', () => this.guard(handlers.pong))
    // A protocol error of the peer: ws sends the close frame that names it.
    native.on('error', () => {})
    native.once('close', () => this.closed())
    this.#socket.on('drain', () => {
      if (this.native !== undefined) this.unblock()
    })
  }

  #noteBlocked(): void {
    if (this.#socket.writableNeedDrain) this.blockedSince = this.options.now()
  }
}
