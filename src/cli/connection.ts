/**
 * One keep-alive HTTP/1.1 connection that carries one request at a time, at minimal cost per request.
 *
 * An import or a bench runs next to the board on the same cores, and `node:http` spends more on a request than the board spends on a post.
 * This client does less: it writes head and body with one call, and parses the answer with answer-reader.ts. Streams go through `node:http`
 * instead (client.ts).
 */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { AnswerReader, type HttpAnswer, type WholeAnswer } from './answer-reader.ts'

export type Endpoint = {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  readonly prefix: string
}

type HttpRequest = {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly body?: Uint8Array
}

export type ConnectionOptions = {
  readonly endpoint: Endpoint
  /** The request fails if no byte arrives for this long while an answer is pending. */
  readonly timeoutMs: number
  readonly bodyBytesMax: number
}

/** The connection failed, or the peer does not speak acceptable HTTP. `sent`: the request may have arrived. */
export class ConnectionFailed extends Error {
  readonly sent: boolean
  constructor(message: string, options: { sent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.sent = options.sent
  }
}

type Pending = { readonly resolve: (answer: HttpAnswer) => void; readonly reject: (error: Error) => void }

/** Splits `http://host:port/prefix`. Throws a TypeError with a sentence if it is not an http(s) address. */
export function parseEndpoint(url: string): Endpoint {
  const parsed = URL.parse(url)
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) {
    throw new TypeError(`"${url}" is not a board's address; write it like http://127.0.0.1:8787.`)
  }
  const isTls = parsed.protocol === 'https:'
  const port = parsed.port === '' ? (isTls ? 443 : 80) : Number(parsed.port)
  const host = parsed.hostname.replace(/^\[|\]$/g, '')
  return { host, port, isTls, prefix: parsed.pathname.replace(/\/+$/, '') }
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #hostLine: string
  #socket: Socket | undefined
  #pending: Pending | undefined
  #reader: AnswerReader | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { host, port } = options.endpoint
    this.#hostLine = `Host: ${host.includes(':') ? `[${host}]` : host}:${port}\r\n`
  }

  /** Sends one request and returns its answer. Connects if needed. Throws if another request is still pending. */
  request(request: HttpRequest): Promise<HttpAnswer> {
    if (this.#pending !== undefined) throw new Error('one request at a time on a connection')
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
      const socket = this.#socket ?? this.#open()
      socket.write(this.#encode(request))
    })
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #encode({ method, target, body }: HttpRequest): Buffer {
    const start = `${method} ${this.#options.endpoint.prefix}${target} HTTP/1.1\r\n${this.#hostLine}`
    if (body === undefined) return Buffer.from(`${start}\r\n`, 'latin1')
    const head = `${start}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    const bytes = Buffer.allocUnsafe(head.length + body.length)
    bytes.write(head, 'latin1')
    bytes.set(body, head.length)
    return bytes
  }

  #open(): Socket {
    const { host, port, isTls } = this.#options.endpoint
    const socket = isTls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port })
    this.#socket = socket
    this.#reader = undefined
    let isConnected = false
    socket.setNoDelay(true)
    socket.setTimeout(this.#options.timeoutMs)
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      isConnected = true
    })
    socket.on('data', (chunk) => this.#take(socket, chunk))
    socket.on('timeout', () => {
      // An idle connection may time out quietly; a pending request may not.
      this.#fail(socket, new ConnectionFailed(`no answer within ${this.#options.timeoutMs / 1000} s`, { sent: true }))
    })
    socket.on('error', (cause) => {
      this.#fail(socket, new ConnectionFailed(cause.message, { sent: isConnected, cause }))
    })
    socket.on('close', () => {
      this.#fail(socket, new ConnectionFailed('the connection was closed before the answer', { sent: isConnected }))
    })
    return socket
  }

  #fail(socket: Socket, error: ConnectionFailed): void {
    if (socket !== this.#socket) return
    this.#socket = undefined
    this.#reader = undefined
    socket.destroy()
    const pending = this.#pending
    this.#pending = undefined
    pending?.reject(error)
  }

  #take(socket: Socket, chunk: Buffer): void {
    if (socket !== this.#socket) return
    if (this.#pending === undefined) {
      this.#fail(socket, new ConnectionFailed('bytes arrived that no request asked for', { sent: true }))
      return
    }
    this.#reader ??= new AnswerReader(this.#options.bodyBytesMax)
    let whole: WholeAnswer | undefined
    try {
      whole = this.#reader.take(chunk)
    } catch (cause) {
      this.#fail(socket, new ConnectionFailed((cause as Error).message, { sent: true, cause }))
      return
    }
    if (whole === undefined) return
    this.#reader = undefined
    const pending = this.#pending
    this.#pending = undefined
    if (whole.closes) this.close()
    pending.resolve(whole.answer)
  }
}
