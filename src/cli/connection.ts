/**
 * One keep-alive HTTP/1.1 connection that carries one request at a time, at the least cost per request.
 *
 * An import or a bench runs beside the board on the same cores, and `node:http` spends more on a request than
 * the board spends on a post. This client does less: it writes head and body with one call and accepts only
 * answers that state their length (RFC 9112 section 6.3 rule 6); chunked or close-delimited bodies, interim
 * answers (1xx) and bytes after an answer are errors. Streams go through `node:http` instead (client.ts).
 */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

/** An answer's head is a dozen short lines; more than this is not our board. */
const headBytesMax = 16 * 1024
const headEnd = Buffer.from('\r\n\r\n')

export type Endpoint = {
  readonly host: string
  readonly port: number
  readonly isTls: boolean
  readonly prefix: string
}

export type HttpAnswer = { readonly status: number; header(name: string): string | undefined; readonly body: Buffer }

export type HttpRequest = {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly body?: Uint8Array
}

export type ConnectionOptions = {
  readonly endpoint: Endpoint
  /** No byte for this long while an answer is due: the request fails. */
  readonly timeoutMs: number
  readonly bodyBytesMax: number
}

/** The connection failed or the far end is not speaking the HTTP we accept. `sent` = the request may have arrived. */
export class ConnectionFailed extends Error {
  readonly sent: boolean
  constructor(message: string, options: { sent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.sent = options.sent
  }
}

type Pending = { readonly resolve: (answer: HttpAnswer) => void; readonly reject: (error: Error) => void }

/** Splits `http://host:port/prefix`. Throws TypeError with a sentence when it is not an http(s) address. */
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
  #received: Buffer | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { host, port } = options.endpoint
    this.#hostLine = `Host: ${host.includes(':') ? `[${host}]` : host}:${port}\r\n`
  }

  /** Sends one request and gives its answer. Connects when needed. One at a time: a second call while one is open throws. */
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
    this.#received = undefined
    let isConnected = false
    socket.setNoDelay(true)
    socket.setTimeout(this.#options.timeoutMs)
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      isConnected = true
    })
    socket.on('data', (chunk) => this.#take(socket, chunk))
    socket.on('timeout', () => {
      // An idle connection may time out quietly; an awaited answer may not.
      this.#lose(socket, new ConnectionFailed(`no answer within ${this.#options.timeoutMs / 1000} s`, { sent: true }))
    })
    socket.on('error', (cause) => {
      this.#lose(socket, new ConnectionFailed(cause.message, { sent: isConnected, cause }))
    })
    socket.on('close', () => {
      this.#lose(socket, new ConnectionFailed('the connection was closed before the answer', { sent: isConnected }))
    })
    return socket
  }

  #lose(socket: Socket, error: ConnectionFailed): void {
    if (socket !== this.#socket) return
    this.#socket = undefined
    this.#received = undefined
    socket.destroy()
    const pending = this.#pending
    this.#pending = undefined
    pending?.reject(error)
  }

  #take(socket: Socket, chunk: Buffer): void {
    if (socket !== this.#socket) return
    if (this.#pending === undefined) {
      this.#lose(socket, new ConnectionFailed('bytes arrived that no request asked for', { sent: true }))
      return
    }
    const received = this.#received === undefined ? chunk : Buffer.concat([this.#received, chunk])
    let parsed: ParsedAnswer | undefined
    try {
      parsed = parseAnswer(received, this.#options.bodyBytesMax)
    } catch (cause) {
      this.#lose(socket, new ConnectionFailed((cause as Error).message, { sent: true, cause }))
      return
    }
    this.#received = parsed === undefined ? received : undefined
    if (parsed === undefined) return
    const pending = this.#pending
    this.#pending = undefined
    if (parsed.closes) this.close()
    pending.resolve(parsed.answer)
  }
}

type ParsedAnswer = { readonly answer: HttpAnswer; readonly closes: boolean }

const statusLine = /^HTTP\/1\.1 ([2-5]\d\d) ?[^\r\n]*(?=\r\n|$)/

/**
 * The answer in `bytes`, or undefined while some of it is still to come. `bytes` must hold nothing after it.
 * Throws Error with a sentence when it can never become an answer that this client accepts.
 */
export function parseAnswer(bytes: Buffer, bodyBytesMax: number): ParsedAnswer | undefined {
  const end = bytes.subarray(0, headBytesMax).indexOf(headEnd)
  if (end < 0) {
    if (bytes.length >= headBytesMax) throw new Error(`the answer's head is longer than ${headBytesMax} bytes`)
    return undefined
  }
  const head = bytes.toString('latin1', 0, end)
  const status = statusLine.exec(head)?.[1]
  if (status === undefined) throw new Error('the answer does not begin with an HTTP/1.1 status line')
  const header = (name: string): string | undefined => headerOf(head, name)
  if (header('transfer-encoding') !== undefined) throw new Error('the answer has a Transfer-Encoding, not a length')
  const lengthText = header('content-length')
  if (lengthText === undefined || !/^\d{1,15}$/.test(lengthText)) {
    throw new Error('the answer has no Content-Length')
  }
  const length = Number(lengthText)
  if (length > bodyBytesMax) throw new Error(`the answer is ${length} bytes; at most ${bodyBytesMax} are accepted here`)
  const bodyStart = end + headEnd.length
  const missing = bodyStart + length - bytes.length
  if (missing > 0) return undefined
  if (missing < 0) throw new Error('bytes follow the answer')
  const answer = { status: Number(status), header, body: bytes.subarray(bodyStart) }
  return { answer, closes: header('connection')?.toLowerCase() === 'close' }
}

// Compiled once: a fresh RegExp for each header of each answer is a tenth of what a request costs.
const headerPatterns = new Map<string, RegExp>()

/** The only value of a header. Throws when it stands there twice with different values. */
function headerOf(head: string, name: string): string | undefined {
  let pattern = headerPatterns.get(name)
  if (pattern === undefined) {
    pattern = new RegExp(`\\r\\n${name}:[ \\t]*([^\\r\\n]*)`, 'gi')
    headerPatterns.set(name, pattern)
  }
  pattern.lastIndex = 0
  const value = pattern.exec(head)?.[1]?.trimEnd()
  if (value === undefined) return undefined
  for (let next = pattern.exec(head); next !== null; next = pattern.exec(head)) {
    if (next[1]!.trimEnd() !== value) throw new Error(`the answer has two different ${name} headers`)
  }
  return value
}
