/** A third-party tool on loopback, whose behavior a test chooses by its path; and the requests it got. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ToolRequest = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}
export type ToolHandler = (sent: ToolRequest, response: ServerResponse, request: IncomingMessage) => unknown

export class ToolServer {
  readonly requests: ToolRequest[] = []
  readonly handlers: Record<string, ToolHandler>
  readonly #server: Server
  readonly #host: string
  port = 0

  private constructor(handlers: Record<string, ToolHandler>, host: string) {
    this.handlers = handlers
    this.#host = host
    this.#server = createServer((request, response) => void this.#receive(request, response))
  }

  /** `host`: an address of this machine; each is another site. */
  static async open(handlers: Record<string, ToolHandler> = {}, host = '127.0.0.1'): Promise<ToolServer> {
    const made = new ToolServer(handlers, host)
    await new Promise<void>((ready) => made.#server.listen(0, host, ready))
    made.port = (made.#server.address() as AddressInfo).port
    return made
  }

  url(path: string): string {
    return `http://${this.#host}:${this.port}${path}`
  }

  requestsTo(path: string): readonly ToolRequest[] {
    return this.requests.filter(({ url }) => url.split('?')[0] === path)
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method = '', url = '', headers } = request
    const sent = { method, url, headers, body: Buffer.concat(chunks).toString() }
    this.requests.push(sent)
    const handler = this.handlers[url.split('?')[0]!] ?? ((_, answer) => answer.writeHead(404).end('nothing'))
    await handler(sent, response, request)
  }
}

export function respondJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
