/**
 * The client of the benches: many keep-alive connections, each with one pending request, at the lowest cost we know.
 *
 * It runs beside the board on the same cores, so the board lacks whatever it spends. A request is one prepared buffer and one write; all
 * connections read into one buffer; only status and Content-Length of an answer are parsed.
 */
import { connect, type Socket } from 'node:net'

const head = Buffer.from('\r\n\r\n')
const lengthField = /\r\ncontent-length: (\d+)/i
/** Shared by all: bytes are processed before the next read can happen. */
const shared = Buffer.allocUnsafeSlow(256 * 1024)

export type Outcome = {
  readonly seconds: number
  /** Milliseconds from write to the last byte of the answer, ascending. */
  readonly latencies: Float64Array
  readonly statuses: Readonly<Record<number, number>>
  readonly bodyBytes: number
  /** Milliseconds from write to answer for answers other than 200, ascending; only for a paced load. */
  readonly refusals?: Float64Array
}

type Answered = (lane: Lane, status: number, bodyBytes: number) => void

class Lane {
  readonly #socket: Socket
  readonly #answered: Answered
  /** The beginning of a head that arrived in pieces. */
  #piece: Buffer | undefined
  #status = 0
  #length = 0
  /** Bytes of the body still to come. */
  #missing = 0
  sentAt = 0

  constructor(port: number, answered: Answered, failed: (error: Error) => void) {
    this.#answered = answered
    const callback = (size: number, bytes: Uint8Array): boolean => {
      this.#take(bytes as Buffer, size)
      return true
    }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer: shared, callback } })
    this.#socket.on('error', failed)
    this.#socket.on('close', () => failed(new Error('the board closed a connection')))
  }

  connected(): Promise<void> {
    return new Promise((resolve) => this.#socket.once('connect', resolve))
  }

  send(request: Buffer): void {
    this.sentAt = performance.now()
    this.#socket.write(request)
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #take(bytes: Buffer, size: number): void {
    if (this.#missing > 0) {
      this.#missing -= size
      if (this.#missing === 0) this.#answered(this, this.#status, this.#length)
      return
    }
    const start = this.#piece === undefined ? bytes : Buffer.concat([this.#piece, bytes.subarray(0, size)])
    const end = start === bytes ? size : start.length
    const headEnd = start.indexOf(head)
    if (headEnd < 0 || headEnd + 4 > end) {
      this.#piece = Buffer.from(start.subarray(0, end))
      return
    }
    this.#piece = undefined
    const text = start.toString('latin1', 0, headEnd)
    const found = lengthField.exec(text)
    if (found === null) throw new Error(`an answer without Content-Length: ${text}`)
    this.#status = Number(text.slice(9, 12))
    this.#length = Number(found[1])
    this.#missing = headEnd + 4 + this.#length - end
    if (this.#missing === 0) this.#answered(this, this.#status, this.#length)
  }
}

/** Sends all requests in order, `inFlight` at a time, over as many connections. Rejects if a connection fails. */
export function sendAll(port: number, inFlight: number, requests: readonly Buffer[]): Promise<Outcome> {
  return sendChains(
    port,
    inFlight,
    requests.map((request) => [request]),
  )
}

/** The same with chains of requests: each in a chain is sent after the answer to the previous one. */
export async function sendChains(
  port: number,
  inFlight: number,
  chains: readonly (readonly Buffer[])[],
): Promise<Outcome> {
  let next = 0
  let open = Math.min(inFlight, chains.length)
  let bodyBytes = 0
  let done = 0
  const latencies = new Float64Array(chains.reduce((sum, { length }) => sum + length, 0))
  const statuses: Record<number, number> = {}
  const lanes: Lane[] = []
  const rest = new Map<Lane, Iterator<Buffer>>()
  const begin = (lane: Lane): void => {
    const chain = chains[next++]!.values()
    rest.set(lane, chain)
    lane.send(chain.next().value!)
  }
  let seconds = 0
  try {
    await new Promise<void>((resolve, reject) => {
      const answered: Answered = (lane, status, bytes) => {
        latencies[done++] = performance.now() - lane.sentAt
        statuses[status] = (statuses[status] ?? 0) + 1
        bodyBytes += bytes
        const { value } = rest.get(lane)!.next()
        if (value !== undefined) lane.send(value)
        else if (next < chains.length) begin(lane)
        else if (--open === 0) resolve()
      }
      for (let i = 0; i < open; i++) lanes.push(new Lane(port, answered, reject))
      Promise.all(lanes.map((lane) => lane.connected())).then(() => {
        seconds = performance.now()
        for (const lane of lanes) begin(lane)
      }, reject)
    })
    seconds = (performance.now() - seconds) / 1000
  } finally {
    for (const lane of lanes) lane.close()
  }
  return { seconds, latencies: latencies.sort(), statuses, bodyBytes }
}

/**
 * Sends the requests at a steady rate, whether or not earlier ones were answered: the latency of a request that waits for a connection
 * counts from when it was due, to the millisecond of the client's timer. Rejects if a connection fails.
 */
export async function sendPaced(
  port: number,
  { connections, perSecond }: { readonly connections: number; readonly perSecond: number },
  requests: readonly Buffer[],
): Promise<Outcome> {
  let due = 0
  let sent = 0
  let done = 0
  let bodyBytes = 0
  const latencies = new Float64Array(requests.length)
  const dueAt = new Float64Array(requests.length)
  const statuses: Record<number, number> = {}
  const refusals: number[] = []
  const lanes: Lane[] = []
  const idle: Lane[] = []
  const asked = new Map<Lane, number>()
  let timer: NodeJS.Timeout | undefined
  let start = 0
  const pass = (lane: Lane) => {
    asked.set(lane, sent)
    lane.send(requests[sent++]!)
  }
  try {
    await new Promise<void>((resolve, reject) => {
      const answered: Answered = (lane, status, bytes) => {
        const now = performance.now()
        latencies[done++] = now - dueAt[asked.get(lane)!]!
        if (status !== 200) refusals.push(now - lane.sentAt)
        statuses[status] = (statuses[status] ?? 0) + 1
        bodyBytes += bytes
        if (sent < due) pass(lane)
        else idle.push(lane)
        if (done === requests.length) resolve()
      }
      for (let i = 0; i < connections; i++) lanes.push(new Lane(port, answered, reject))
      const tick = () => {
        const now = performance.now()
        for (const end = Math.min(requests.length, ((now - start) * perSecond) / 1000); due < end; due++)
          dueAt[due] = now
        // The connection idle longest: a board closes those that are idle for ten seconds.
        while (sent < due && idle.length > 0) pass(idle.shift()!)
      }
      Promise.all(lanes.map((lane) => lane.connected())).then(() => {
        idle.push(...lanes)
        start = performance.now()
        timer = setInterval(tick, 1)
      }, reject)
    })
  } finally {
    clearInterval(timer)
    for (const lane of lanes) lane.close()
  }
  const seconds = (performance.now() - start) / 1000
  return { seconds, latencies: latencies.sort(), statuses, bodyBytes, refusals: Float64Array.from(refusals).sort() }
}

/** The bytes of one request. */
export function requestBytes(target: string, body?: Uint8Array): Buffer {
  if (body === undefined) return Buffer.from(`GET ${target} HTTP/1.1\r\nHost: bench\r\n\r\n`)
  const start = `POST ${target} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(start), body])
}
