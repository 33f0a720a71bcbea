/**
 * The board as a command sees it: commands, JSON reads, and streams, with errors that say what to do next.
 *
 * Commands use a fixed number of lean connections (connection.ts), first come, first served. Because the board recognizes the same signed
 * bytes (spec 1, "Retries are safe"), a command whose answer was lost is sent again once, unchanged.
 */
import type { IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { request as httpRequest } from '../node-http.ts'
import type { HttpAnswer } from './answer-reader.ts'
import { CommandFailed } from './command-line.ts'
import { Connection, ConnectionFailed, type Endpoint, parseEndpoint } from './connection.ts'
import { inertLine } from './terminal.ts'

/** Proofs, threads, and receipts are far smaller; exports and tails are streamed. */
const bodyBytesMax = 16 * 1024 * 1024
const waitingMax = 100_000
const lineFeed = Buffer.from('\n')

/** The board answered with an error of its own. */
export class Refused extends CommandFailed {
  readonly status: number
  readonly code: string
  readonly retryAfterSeconds: number | undefined
  /** The field that the refusal is about. */
  readonly field: string | undefined
  readonly #reason: string
  constructor(facts: {
    status: number
    code: string
    message: string
    retryAfterSeconds: number | undefined
    field?: string | undefined
  }) {
    super(`The board refused: ${inertLine(facts.message)} (${inertLine(facts.code)})`)
    this.status = facts.status
    this.code = facts.code
    this.retryAfterSeconds = facts.retryAfterSeconds
    this.field = facts.field
    this.#reason = facts.message
  }

  /** As in the board's answer. */
  override get facts() {
    const { code, field, retryAfterSeconds } = this
    return {
      code,
      message: this.#reason,
      ...(field === undefined ? {} : { field }),
      ...(retryAfterSeconds === undefined ? {} : { retry_after: retryAfterSeconds }),
    }
  }
}

/** There is no board at the address, or it went away. */
export class Unreachable extends CommandFailed {
  constructor(url: string, cause: unknown) {
    const reason = cause instanceof Error && cause.message !== '' ? cause.message : String(cause)
    super(
      `No board answers at ${url} (${inertLine(reason)}). Start one with "broadside serve", or name another with --url.`,
      { cause },
    )
  }
}

/** Something answered, but not like a board. */
export class BadAnswer extends CommandFailed {
  constructor(url: string, what: string) {
    super(`${url} does not answer like a board: ${inertLine(what)}. Check the address given with --url.`)
  }
}

export type ClientOptions = { readonly url: string; readonly connections?: number; readonly timeoutMs?: number }

export type Capabilities = {
  readonly serviceId: string
  readonly log: { readonly origin: string; readonly vkey: string }
  /** The complete answer of the board, for `demo` and `bench` to show. */
  readonly all: Record<string, unknown>
}

type Job = {
  readonly request: { readonly method: 'GET' | 'POST'; readonly target: string; readonly body?: Uint8Array }
  readonly resolve: (answer: HttpAnswer) => void
  readonly reject: (error: Error) => void
}

export class BoardClient {
  readonly url: string
  readonly #endpoint: Endpoint
  readonly #connections: Connection[] = []
  readonly #idle: Connection[] = []
  readonly #waiting: Job[] = []

  /** Throws CommandFailed if `url` is not an http(s) address. */
  constructor({ url, connections = 1, timeoutMs = 30_000 }: ClientOptions) {
    try {
      this.#endpoint = parseEndpoint(url)
    } catch (error) {
      throw new CommandFailed((error as Error).message)
    }
    this.url = url.replace(/\/+$/, '')
    for (let i = 0; i < connections; i += 1) {
      const connection = new Connection({ endpoint: this.#endpoint, timeoutMs, bodyBytesMax })
      this.#connections.push(connection)
      this.#idle.push(connection)
    }
  }

  /** Sends one signed command and returns `data` of its answer. Throws Refused, Unreachable, or BadAnswer. */
  async command(body: Uint8Array): Promise<Record<string, unknown>> {
    return this.#data(await this.#send({ method: 'POST', target: '/v1/command', body }))
  }

  /**
   * Sends signed commands in one request. Returns for each the `data` of its answer, the refusal, or undefined if no answer came. Throws
   * Refused, Unreachable, or BadAnswer if the request as a whole got no answer.
   */
  async commands(bodies: readonly Uint8Array[]): Promise<(Record<string, unknown> | Refused | undefined)[]> {
    const body = Buffer.concat(bodies.flatMap((each) => [each, lineFeed]))
    const answer = await this.#send({ method: 'POST', target: '/v1/commands', body })
    if (answer.status !== 200) this.#data(answer)
    const found: (Record<string, unknown> | Refused | undefined)[] = bodies.map(() => undefined)
    for (const text of answer.body.toString('utf8').split('\n').slice(0, -1)) {
      const entry = this.#parsed(text, 200)
      const { line, status } = Object(entry) as { line?: unknown; status?: unknown }
      if (typeof line !== 'number' || typeof status !== 'number' || !(line - 1 in found))
        throw new BadAnswer(this.url, 'a line of /v1/commands answers no command')
      try {
        found[line - 1] = this.#dataOf(entry, status, Number.NaN)
      } catch (error) {
        if (!(error instanceof Refused)) throw error
        found[line - 1] = error
      }
    }
    return found
  }

  /** `data` of a JSON read. Throws Refused, Unreachable or BadAnswer. */
  async read(target: string): Promise<Record<string, unknown>> {
    return this.#data(await this.#send({ method: 'GET', target }))
  }

  /** The body of a read whose answer is not JSON. Throws Refused, Unreachable, or BadAnswer. */
  async readText(target: string): Promise<string> {
    const answer = await this.#send({ method: 'GET', target })
    if (answer.status !== 200) this.#data(answer)
    return answer.body.toString('utf8')
  }

  async capabilities(): Promise<Capabilities> {
    const all = await this.read('/capabilities')
    const log = all.log as { origin?: unknown; vkey?: unknown } | undefined
    if (typeof all.service_id !== 'string' || typeof log?.origin !== 'string' || typeof log.vkey !== 'string') {
      throw new BadAnswer(this.url, '/capabilities names no service_id and log')
    }
    return { serviceId: all.service_id, log: { origin: log.origin, vkey: log.vkey }, all }
  }

  /** Opens a streamed answer (export, tail). The caller reads or destroys it. Throws Refused, Unreachable or BadAnswer. */
  stream(target: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
    const { host, port, isTls, prefix } = this.#endpoint
    const send = isTls ? httpsRequest : httpRequest
    return new Promise((resolve, reject) => {
      const request = send({ host, port, path: prefix + target, headers, agent: false })
      request.once('error', (error) => reject(new Unreachable(this.url, error)))
      request.once('response', (response) => {
        if (response.statusCode === 200) return resolve(response)
        collect(response)
          .then((body) => {
            const header = (name: string): string | undefined => response.headersDistinct[name]?.[0]
            this.#data({ status: response.statusCode ?? 0, header, body })
            throw new BadAnswer(this.url, `status ${response.statusCode} for ${target}`)
          })
          .catch(reject)
      })
      request.end()
    })
  }

  close(): void {
    for (const connection of this.#connections) connection.close()
  }

  #send(request: Job['request']): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= waitingMax) throw new Error('too many requests are waiting in the client')
      this.#waiting.push({ request, resolve, reject })
      this.#next()
    })
  }

  #next(): void {
    const connection = this.#idle.at(-1)
    if (connection === undefined) return
    const job = this.#waiting.shift()
    if (job === undefined) return
    this.#idle.pop()
    this.#carry(connection, job, true)
  }

  #carry(connection: Connection, job: Job, mayRepeat: boolean): void {
    connection.request(job.request).then(
      (answer) => {
        this.#idle.push(connection)
        job.resolve(answer)
        this.#next()
      },
      (error: unknown) => {
        // A keep-alive connection may have been closed just as the request was sent, so try once more on a new one.
        if (mayRepeat && error instanceof ConnectionFailed && error.sent) {
          this.#carry(connection, job, false)
          return
        }
        this.#idle.push(connection)
        job.reject(new Unreachable(this.url, error))
        this.#next()
      },
    )
  }

  #data(answer: HttpAnswer): Record<string, unknown> {
    const parsed = this.#parsed(answer.body.toString('utf8'), answer.status)
    return this.#dataOf(parsed, answer.status, Number(answer.header('retry-after') ?? Number.NaN))
  }

  #parsed(text: string, status: number): unknown {
    try {
      return JSON.parse(text)
    } catch {
      throw new BadAnswer(this.url, `status ${status} with a body that is not JSON`)
    }
  }

  /** `retryHeader`: seconds to wait from outside the envelope; NaN if none. */
  #dataOf(parsed: unknown, status: number, retryHeader: number): Record<string, unknown> {
    const envelope = parsed as { ok?: unknown; data?: unknown; error?: Record<string, unknown> } | null
    if (envelope?.ok === true && typeof envelope.data === 'object' && envelope.data !== null) {
      return envelope.data as Record<string, unknown>
    }
    const error = envelope?.error
    if (envelope?.ok !== false || typeof error?.code !== 'string') {
      throw new BadAnswer(this.url, `status ${status} without the board's envelope`)
    }
    const retryAfter = typeof error.retry_after === 'number' ? error.retry_after : retryHeader
    throw new Refused({
      status,
      code: error.code,
      message: typeof error.message === 'string' ? error.message : 'no reason given',
      retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
      field: typeof error.field === 'string' ? error.field : undefined,
    })
  }
}

async function collect(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > bodyBytesMax) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
