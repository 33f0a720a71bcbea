/**
 * A target of webhooks, in this process: answers challenges, verifies every signature with a third-party library, and records its
 * deliveries. A test can make it fail, answer late or answer wrongly.
 */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { patience } from './patience.ts'

export type ReceivedRequest = {
  readonly path: string
  readonly id: string
  readonly subscription: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: {
    readonly eventId: string
    readonly name: string
    readonly timestamp: string
    readonly data: Readonly<Record<string, unknown>>
    readonly cursor: string
    readonly type?: string
  }
  /** Milliseconds. */
  readonly at: number
  /** Its signature was valid for the secret of its path. */
  readonly verified: boolean
}

export type Responder = (arrived: ReceivedRequest, response: ServerResponse) => void

export class HookTarget {
  readonly #server: Server
  /** Events, oldest first; challenges and control bodies are recorded separately. */
  readonly received: ReceivedRequest[] = []
  readonly challenges: ReceivedRequest[] = []
  readonly control: ReceivedRequest[] = []
  /** By path: the secret that deliveries there are signed with. */
  readonly secrets = new Map<string, string>()
  /** By path: how to answer events; 200 by default. */
  readonly responders = new Map<string, Responder>()
  /** By path: how to answer a challenge; correctly by default. */
  readonly challengeResponders = new Map<string, Responder>()
  #waiting: (() => void)[] = []

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(port = 0): Promise<HookTarget> {
    const server = createServer({ keepAliveTimeout: 60_000 })
    const target = new HookTarget(server)
    server.on('request', (request, response) => {
      // A board of another test may probe this port for a box that used it before. That is not a delivery.
      if (request.headers['webhook-id'] === undefined) return response.writeHead(404).end()
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => target.#take(request.url!, request.headers, Buffer.concat(chunks).toString(), response))
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    // It ends with its test, closed or not.
    server.unref()
    return target
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.port}${path}`
  }

  /** Events that arrived at this path. */
  receivedAt(path: string): ReceivedRequest[] {
    return this.received.filter((each) => each.path === path)
  }

  /** Resolves when the condition holds, which is checked whenever something arrives. On a timeout the error lists what arrived. */
  async waitUntil(holds: () => boolean): Promise<void> {
    const { promise, reject } = Promise.withResolvers<never>()
    const receivedLines = () =>
      this.received.map(({ path, body }) => `${path} ${body.name} ${body.data?.excerpt ?? ''}`)
    const onTimeout = () =>
      reject(new Error(`timed out waiting for a delivery, after:\n${receivedLines().slice(-20).join('\n')}`))
    const timer = setTimeout(onTimeout, patience.timeout)
    try {
      while (!holds()) {
        timer.refresh()
        await Promise.race([promise, new Promise<void>((resolve) => this.#waiting.push(resolve))])
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #take(path: string, headers: IncomingHttpHeaders, text: string, response: ServerResponse): void {
    const body = JSON.parse(text) as ReceivedRequest['body']
    const id = String(headers['webhook-id'])
    const subscription = String(headers['x-mcp-subscription-id'])
    const arrived = {
      path,
      id,
      subscription,
      headers,
      text,
      body,
      at: Date.now(),
      verified: this.#isSignatureValid(path, headers, text),
    }
    if (body.type === 'verification') {
      this.challenges.push(arrived)
      const { challenge } = body as unknown as { challenge: string }
      const echo = this.challengeResponders.get(path) ?? (() => response.end(JSON.stringify({ challenge })))
      echo(arrived, response)
    } else {
      ;(body.type === undefined ? this.received : this.control).push(arrived)
      const answer = this.responders.get(path) ?? (() => response.end())
      answer(arrived, response)
    }
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #isSignatureValid(path: string, headers: IncomingHttpHeaders, text: string): boolean {
    const secret = this.secrets.get(path)
    if (secret === undefined) return false
    try {
      new Webhook(secret).verify(text, headers as Record<string, string>)
      return true
    } catch {
      return false
    }
  }
}

/** Answers with this status. */
export const respondWith =
  (code: number, headers: Readonly<Record<string, string>> = {}): Responder =>
  (_arrived, response) => {
    response.writeHead(code, headers).end()
  }
