/** A third-party tool on loopback, whose behavior a test chooses by its path; and the requests it got. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Sent = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}
export type Way = (sent: Sent, response: ServerResponse, request: IncomingMessage) => unknown

export class ToolServer {
  readonly sent: Sent[] = []
  readonly ways: Record<string, Way>
  readonly #server: Server
  readonly #host: string
  port = 0

  private constructor(ways: Record<string, Way>, host: string) {
    this.ways = ways
    this.#host = host
    this.#server = createServer((request, response) => void this.#take(request, response))
  }

  /** `host`: an address of this machine; each is another site. */
  static async open(ways: Record<string, Way> = {}, host = '127.0.0.1'): Promise<ToolServer> {
    const made = new ToolServer(ways, host)
    await new Promise<void>((ready) => made.#server.listen(0, host, ready))
    made.port = (made.#server.address() as AddressInfo).port
    return made
  }

  url(path: string): string {
    return `http://${this.#host}:${this.port}${path}`
  }

  sentTo(path: string): readonly Sent[] {
    return this.sent.filter(({ url }) => url.split('?')[0] === path)
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url = '', headers } = request
    const sent = { method, url, headers, body: Buffer.concat(chunks).toString() }
    this.sent.push(sent)
    const way = this.ways[url.split('?')[0]!] ?? ((_, answer) => answer.writeHead(404).end('nothing'))
    await way(sent, response, request)
  }
}

export function json(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
