/** A raw HTTP client: sends exactly the bytes of a test, split where it says, and parses answers without trusting them. */
import { connect, type Socket } from 'node:net'

export type RawAnswer = {
  readonly status: number
  /** Names in lower case; repeated fields joined by `, `. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
}

export type RawOptions = { readonly host?: string; readonly localAddress?: string; readonly allowHalfOpen?: boolean }

export class RawConnection {
  readonly socket: Socket
  isClosed = false
  #received = Buffer.alloc(0)
  #changed: (() => void)[] = []

  static async open(port: number, options: RawOptions = {}): Promise<RawConnection> {
    const { host = '127.0.0.1', ...rest } = options
    const socket = connect({ host, port, noDelay: true, ...rest })
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('error', reject)
    })
    return new RawConnection(socket)
  }

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake()
    })
    // A FIN is how a server closes; anything after it does not matter to these tests.
    socket.on('end', () => this.#wakeClosed())
    socket.on('close', () => this.#wakeClosed())
  }

  get received(): Buffer {
    return this.#received
  }

  send(bytes: string | Uint8Array): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** Waits until the server has closed its half. */
  async closed(): Promise<void> {
    await this.#until(() => this.isClosed)
  }

  /** The next answer, taken from the front of what arrived. `head`: the answer to a HEAD request has no body. */
  async answer(kind: 'body' | 'head' = 'body'): Promise<RawAnswer> {
    let taken: { answer: RawAnswer; bytes: number } | undefined
    await this.#until(() => {
      taken = parseAnswer(this.#received, kind === 'head')
      return taken !== undefined || this.isClosed
    })
    if (taken === undefined) throw new Error(`closed before an answer: ${JSON.stringify(this.#received.toString())}`)
    this.#received = this.#received.subarray(taken.bytes)
    return taken.answer
  }

  /** Waits for these bytes and returns everything received. */
  async until(text: string): Promise<string> {
    await this.#until(() => this.#received.includes(text) || this.isClosed)
    return this.#received.toString('latin1')
  }

  /** An answer if one arrives complete, undefined if the server closes without. */
  async answerOrClose(): Promise<RawAnswer | undefined> {
    try {
      return await this.answer()
    } catch {
      return undefined
    }
  }

  destroy(): void {
    this.socket.destroy()
  }

  reset(): void {
    this.socket.resetAndDestroy()
  }

  async #until(done: () => boolean): Promise<void> {
    while (!done()) await new Promise<void>((resolve) => this.#changed.push(resolve))
  }

  #wakeClosed(): void {
    this.isClosed = true
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#changed.splice(0)) resolve()
  }
}

/** One request on its own connection. */
export async function rawRequest(port: number, bytes: string | Uint8Array): Promise<RawAnswer | undefined> {
  const connection = await RawConnection.open(port)
  connection.send(bytes)
  const answer = await connection.answerOrClose()
  connection.destroy()
  return answer
}

function parseAnswer(bytes: Buffer, isHead: boolean): { answer: RawAnswer; bytes: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n')
  const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(first)?.[1])
  if (status === 100) {
    const next = parseAnswer(bytes.subarray(end + 4), isHead)
    return next && { answer: next.answer, bytes: next.bytes + end + 4 }
  }
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, colon).toLowerCase()
    const value = line.slice(colon + 1).trim()
    const before = headers.get(name)
    headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }
  const rest = bytes.subarray(end + 4)
  const isEmpty = isHead || status === 204 || status === 304
  const content = isEmpty
    ? { body: Buffer.alloc(0), bytes: 0 }
    : headers.get('transfer-encoding') === 'chunked'
      ? parseChunks(rest)
      : parseCounted(rest, Number(headers.get('content-length') ?? 0))
  if (content === undefined) return undefined
  return { answer: { status, headers, body: Buffer.from(content.body) }, bytes: end + 4 + content.bytes }
}

function parseCounted(bytes: Buffer, length: number): { body: Buffer; bytes: number } | undefined {
  return bytes.length < length ? undefined : { body: bytes.subarray(0, length), bytes: length }
}

function parseChunks(bytes: Buffer): { body: Buffer; bytes: number } | undefined {
  const parts: Buffer[] = []
  let at = 0
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    if (Number.isNaN(size)) throw new Error('the answer has a malformed chunk size')
    const next = lineEnd + 2 + size + 2
    if (bytes.length < next) return undefined
    if (size === 0) return { body: Buffer.concat(parts), bytes: next }
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = next
  }
}

/** The content so far of an unfinished chunked answer: whole chunks and the received part of the last one. */
export function streamedSoFar(received: Buffer): Buffer {
  const parts: Buffer[] = []
  let at = received.indexOf('\r\n\r\n') + 4
  if (at < 4) return Buffer.alloc(0)
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd < 0) break
    const size = Number.parseInt(received.toString('latin1', at, lineEnd), 16)
    if (!(size > 0)) break
    parts.push(received.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
  return Buffer.concat(parts)
}
