/** A third-party MCP server on loopback, of @modelcontextprotocol/server: its tools answer, fail, hang, and answer too much. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** `modern`: 2026-07-28, each request on its own. `sessions`: 2025-11-25, with its own transport, answers as event streams. */
export type McpKind = 'modern' | 'sessions'

const accepts = [{ scheme: 'exact', network: 'eip155:8453', amount: '2500', payTo: `0x${'11'.repeat(20)}` }]

export class McpTools {
  /** Requests received: a method of the protocol, followed by the name of the tool. */
  readonly asked: string[] = []
  /** Headers of the last request. */
  headers: IncomingMessage['headers'] = {}
  readonly #sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  readonly #modern = createMcpHandler(() => server(this.isAlone))
  #server: Server | undefined
  /** It has only one tool. */
  isAlone = false
  port = 0

  static async open(): Promise<McpTools> {
    const tools = new McpTools()
    tools.#server = createServer((request, response) => void tools.#take(request, response))
    await new Promise<void>((ready) => tools.#server!.listen(0, '127.0.0.1', ready))
    tools.port = (tools.#server.address() as AddressInfo).port
    return tools
  }

  url(kind: McpKind | 'moved'): string {
    return `http://127.0.0.1:${this.port}/${kind}`
  }

  close(): void {
    this.#server?.close()
    this.#server?.closeAllConnections()
  }

  async #take(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = Buffer.concat(await message.toArray()).toString()
    const kind = message.url!.slice(1)
    this.headers = message.headers
    if (kind === 'moved') {
      response.writeHead(307, { location: this.url('modern') }).end()
      return
    }
    const { method = '', params } = JSON.parse(body) as { method?: string; params?: { name?: string } }
    this.asked.push(params?.name === undefined ? method : `${method} ${params.name}`)
    const headers = new Headers(message.headers as Record<string, string>)
    const request = new Request(`http://${message.headers.host}${message.url}`, { method: 'POST', headers, body })
    const answer = await (kind === 'modern' ? this.#modern.fetch(request) : this.#inSession(request))
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    for await (const chunk of answer.body ?? []) response.write(chunk)
    response.end()
  }

  async #inSession(request: Request): Promise<Response> {
    const known = this.#sessions.get(request.headers.get('mcp-session-id') ?? '')
    if (known !== undefined) return known.handleRequest(request)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void this.#sessions.set(id, transport),
    })
    await server(this.isAlone).connect(transport)
    return transport.handleRequest(request)
  }
}

function server(isAlone: boolean): McpServer {
  const made = new McpServer({ name: 'somebody', version: '1.0.0' })
  const numbers = z.object({ a: z.number(), b: z.number() })
  made.registerTool('add', { description: 'Adds', inputSchema: numbers }, async ({ a, b }) => ({
    content: [{ type: 'text', text: `${a + b}` }],
  }))
  if (isAlone) return made
  const text = (value: string, isError = false) => ({ content: [{ type: 'text' as const, text: value }], isError })
  made.registerTool('fail', { description: 'Fails' }, async () => text('the kettle is empty', true))
  made.registerTool('huge', { description: 'Answers too much' }, async () => text('x'.repeat(1_200_000)))
  made.registerTool('hang', { description: 'Never answers' }, () => new Promise<never>(() => {}))
  made.registerTool('paid', { description: 'Wants to be paid' }, async () => ({
    ...text('payment required', true),
    structuredContent: { x402Version: 2, accepts },
  }))
  return made
}
