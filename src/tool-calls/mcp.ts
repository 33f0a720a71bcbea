/**
 * Calls a tool of a third-party MCP server over Streamable HTTP through src/outgoing/. A client library would use its own sockets, whose
 * addresses nobody vets. A call needs only these few messages:
 *
 *   2026-07-28: server/discover, then tools/call, independently
 *   before:     initialize, notifications/initialized, then tools/call in the resulting session
 *
 * server/discover, which changes nothing anywhere, reveals which of the two a server speaks.
 */
import { exactJson } from '../format/foreign-json.ts'
import {
  type Answered,
  type NotAnswered,
  type Outgoing,
  type OutgoingRequest,
  totalMsDefault,
} from '../outgoing/request.ts'
import { release } from '../release.ts'

const modern = '2026-07-28'
const legacy = '2025-11-25'
/** It is sent back as a header. */
const versionText = /^[\x21-\x7e]{1,32}$/
const clientInfo = { name: 'broadside', version: release }

type McpAsk = {
  readonly url: string
  /** Name of the tool; '' for the only one that exists. If there are several, their list is the answer. */
  readonly tool: string
  readonly args: Readonly<Record<string, unknown>>
  /** `totalMs`: for all messages together. */
  readonly bounds: Pick<OutgoingRequest, 'connectMs' | 'totalMs' | 'answerBytesMax' | 'signal'>
  /** Monotonic milliseconds. */
  readonly now: () => number
}

type McpAnswer =
  | { readonly ok: true; readonly status: number; readonly result: unknown }
  /** It answered with something other than MCP. */
  | { readonly ok: true; readonly answered: Answered }
  | { readonly ok: false; readonly failed: NotAnswered }

type Message = { readonly id?: unknown; readonly result?: unknown; readonly error?: unknown }
type Session = { readonly version: string; readonly id: string | undefined }

/** Ends a call before its result: the answer was not MCP, or there was none. */
class Ended extends Error {
  readonly answer: McpAnswer

  constructor(answer: McpAnswer) {
    super('the call has ended')
    this.answer = answer
  }
}

export async function callMcp(outgoing: Outgoing, ask: McpAsk): Promise<McpAnswer> {
  const client = new McpClient(outgoing, ask)
  try {
    await client.begin()
    const tool = ask.tool === '' ? await client.onlyTool() : ask.tool
    if (typeof tool !== 'string') return { ok: true, status: 200, result: tool }
    return { ok: true, status: 200, result: await client.ask('tools/call', { name: tool, arguments: ask.args }) }
  } catch (error) {
    if (error instanceof Ended) return error.answer
    throw error
  }
}

class McpClient {
  readonly #outgoing: Outgoing
  readonly #ask: McpAsk
  readonly #deadline: number
  #session: Session = { version: modern, id: undefined }
  #next = 0

  constructor(outgoing: Outgoing, ask: McpAsk) {
    this.#outgoing = outgoing
    this.#ask = ask
    this.#deadline = ask.now() + (ask.bounds.totalMs ?? totalMsDefault)
  }

  async begin(): Promise<void> {
    const found = await this.#send('server/discover', {})
    const message = messageIn(found, this.#next)
    const { supportedVersions } = (message?.result ?? {}) as { supportedVersions?: readonly unknown[] }
    if (found.status === 200 && supportedVersions?.includes(modern)) return
    if (found.status === 401 || found.status === 402 || found.status === 403)
      throw new Ended({ ok: true, answered: found })
    this.#session = { version: legacy, id: undefined }
    const begun = await this.#send('initialize', { protocolVersion: legacy, capabilities: {}, clientInfo })
    const { protocolVersion } = (messageIn(begun, this.#next)?.result ?? {}) as { protocolVersion?: unknown }
    if (typeof protocolVersion !== 'string' || !versionText.test(protocolVersion))
      throw new Ended({ ok: true, answered: begun })
    this.#session = { version: protocolVersion, id: begun.headers['mcp-session-id']?.[0] }
    await this.#send('notifications/initialized', undefined)
  }

  /** The result, or the error as `{error}`: an answer of the tool either way. */
  async ask(method: string, params: Readonly<Record<string, unknown>>): Promise<unknown> {
    const answered = await this.#send(method, params)
    const message = messageIn(answered, this.#next)
    if (message === undefined) throw new Ended({ ok: true, answered })
    return message.error === undefined ? message.result : { error: message.error }
  }

  async onlyTool(): Promise<unknown> {
    const listed = (await this.ask('tools/list', {})) as { tools?: readonly { readonly name?: unknown }[] }
    const [only, ...more] = Array.isArray(listed?.tools) ? listed.tools : []
    return typeof only?.name === 'string' && more.length === 0 ? only.name : listed
  }

  async #send(method: string, params: Readonly<Record<string, unknown>> | undefined): Promise<Answered> {
    const { version, id: session } = this.#session
    const isModern = version === modern
    const meta = {
      'io.modelcontextprotocol/protocolVersion': modern,
      'io.modelcontextprotocol/clientInfo': clientInfo,
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const id = params === undefined ? {} : { id: ++this.#next }
    const sent = params === undefined ? {} : { params: isModern ? { ...params, _meta: meta } : params }
    const answer = await this.#outgoing.request({
      ...this.#ask.bounds,
      totalMs: Math.max(1, this.#deadline - this.#ask.now()),
      url: this.#ask.url,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...(method === 'initialize' ? {} : { 'mcp-protocol-version': version }),
        ...(isModern ? { 'mcp-method': method } : {}),
        ...(isModern && typeof params?.name === 'string' ? { 'mcp-name': headerText(params.name) } : {}),
        ...(session === undefined ? {} : { 'mcp-session-id': session }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', ...id, method, ...sent }),
    })
    if (!answer.ok)
      throw new Ended({ ok: false, failed: method === 'tools/call' ? answer : { ...answer, sent: false } })
    return answer
  }
}

/** A header holds ASCII; other text is sent as base64, in the form that MCP defines. */
function headerText(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

/** The message with this id, from JSON or an event stream. One that parsing would change is none, so that it is passed on as text. */
function messageIn({ headers, body }: Answered, id: number): Message | undefined {
  const text = body.toString('utf8')
  const isStream = (headers['content-type']?.[0] ?? '').toLowerCase().startsWith('text/event-stream')
  const texts = isStream ? text.split(/\r?\n\r?\n/).map(dataOf) : [text]
  // Comments and events without data are not messages.
  for (const each of texts) {
    const message = exactJson(each) as Message | null | undefined
    if (message !== null && typeof message === 'object' && message.id === id) return message
  }
  return undefined
}

function dataOf(event: string): string {
  return event
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
    .join('\n')
}
