/**
 * What a model is shown of an answer, by widely used hosts: the AI SDK and OpenAI Agents, each with its own scripted model in place of a
 * real one. And what it costs there, counted with the tables of o200k_base.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { tokensAtMost } from '../../src/mcp/tokens.ts'
import { loadPeer, missingPackage } from '../peers/npm-peers.ts'
import { skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { callTool, OauthClient, rpc } from '../support/oauth-client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

type Json = Record<string, unknown>

let started: Board
let board: string
let token: string
const lines = Array.from({ length: 45 }, (_, n) => `This is the one-line post number ${n} of the room.`)
const document = Array.from({ length: 900 }, (_, n) => `${n}. ${randomBytes(24).toString('base64')} and words\n`).join(
  '',
)
let target: string
const operator = opensslSigner(randomBytes(32))

const rooms = ['signed-in', 'by-ten', 'by-45', 'by-45-named']

beforeAll(async () => {
  started = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'off', OPERATORS: operator.id } })
  board = started.address
  token = (await new OauthClient(board).signIn(opensslSigner(randomBytes(32)))).access_token
  for (const text of lines) await callTool(board, 'post', { room: 'signed-in', text }, token)
  const client = await Client.of(started)
  const people = Array.from({ length: 10 }, (_, n) => person(`model-${n}`))
  for (const [n, text] of lines.entries()) {
    await client.post(people[n % people.length]!, { room: 'by-ten', text })
    // Seconds differ, as they do between people.
    if (n % 9 === 8) await new Promise((done) => setTimeout(done, 1_000))
  }
  const named = lines.map((_, n) => person(`model-named-${n}`))
  const strangers = lines.map((_, n) => person(`model-stranger-${n}`))
  for (const [n, text] of lines.entries()) {
    await client.post(strangers[n]!, { room: 'by-45', text })
    await client.post(named[n]!, { room: 'by-45-named', text, handle: `author-of-line-${n}` })
    if (n % 9 === 8) await new Promise((done) => setTimeout(done, 1_000))
  }
  const made = await callTool(board, 'docs_create', { text: document, data: { title: 'Long' } }, token)
  target = (made.result.structuredContent as { doc: { id: string } }).doc.id
})
afterAll(() => started.kill())

/** A program with a model that calls tools, one after the other; `ask` returns what the model is shown of an answer. */
type Host = { readonly ask: (tool: string, args: Json) => Promise<string>; readonly close: () => Promise<void> }

type AiSdk = {
  generateText(options: object): Promise<unknown>
  isStepCount(count: number): unknown
}
type AiTest = {
  MockLanguageModelV4: new (options: {
    doGenerate: readonly object[]
  }) => {
    readonly doGenerateCalls: readonly {
      readonly prompt: readonly { readonly role: string; readonly content: unknown }[]
    }[]
  }
}
type AiMcp = {
  createMCPClient(options: object): Promise<{ tools(): Promise<object>; close(): Promise<void> }>
}

/** Where a host connects, and as whom. */
type Door = { readonly query?: string; readonly by?: string }

async function aiSdk({ query = '', by = token }: Door = {}): Promise<Host> {
  const { generateText, isStepCount } = await loadPeer<AiSdk>('ai')
  const { MockLanguageModelV4 } = await loadPeer<AiTest>('ai/test')
  const { createMCPClient } = await loadPeer<AiMcp>('@ai-sdk/mcp')
  const headers = { authorization: `Bearer ${by}` }
  const mcp = await createMCPClient({ transport: { type: 'http', url: `${board}/mcp${query}`, headers } })
  const tools = await mcp.tools()
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  }
  const ask = async (toolName: string, args: Json) => {
    const model = new MockLanguageModelV4({
      doGenerate: [
        {
          content: [{ type: 'tool-call', toolCallId: 'one', toolName, input: JSON.stringify(args) }],
          finishReason: { unified: 'tool-calls', raw: undefined },
          usage,
          warnings: [],
        },
        {
          content: [{ type: 'text', text: 'read' }],
          finishReason: { unified: 'stop', raw: undefined },
          usage,
          warnings: [],
        },
      ],
    })
    await generateText({ model, tools, prompt: 'read it', stopWhen: isStepCount(2) })
    const told = model.doGenerateCalls[1]!.prompt.find(({ role }) => role === 'tool')!.content as {
      output: { type: string; value: { type: string; text: string }[] }
    }[]
    const [{ output }] = told as [(typeof told)[0]]
    expect(output).toMatchObject({ type: 'content', value: [{ type: 'text' }] })
    return output.value[0]!.text
  }
  return { ask, close: () => mcp.close() }
}

type Agents = {
  Agent: new (options: object) => object
  MCPServerStreamableHttp: new (options: object) => { connect(): Promise<void>; close(): Promise<void> }
  run(agent: object, input: string): Promise<unknown>
  setTracingDisabled(is: boolean): void
}
type AgentsTest = {
  ScriptedModel: new (
    steps: readonly unknown[],
  ) => { readonly lastCall?: { readonly request: { readonly input: unknown } } }
  assistantMessage(text: string): object
  functionCall(name: string, args: object, options: { callId: string }): object
}

async function openaiAgents({ query = '', by = token }: Door = {}): Promise<Host> {
  const { Agent, MCPServerStreamableHttp, run, setTracingDisabled } = await loadPeer<Agents>('@openai/agents')
  const { ScriptedModel, assistantMessage, functionCall } = await loadPeer<AgentsTest>('@openai/agents/testing')
  setTracingDisabled(true)
  const requestInit = { headers: { authorization: `Bearer ${by}` } }
  const server = new MCPServerStreamableHttp({ url: `${board}/mcp${query}`, name: 'board', requestInit })
  await server.connect()
  const ask = async (tool: string, args: Json) => {
    const model = new ScriptedModel([[functionCall(tool, args, { callId: 'one' })], [assistantMessage('read')]])
    await run(new Agent({ name: 'reader', model, mcpServers: [server] }), 'read it')
    const items = model.lastCall!.request.input as { type: string; output: { type: string; text: string }[] }[]
    const { output } = items.find(({ type }) => type === 'function_call_result')!
    expect(output).toMatchObject([{ type: 'input_text' }])
    return output[0]!.text
  }
  return { ask, close: () => server.close() }
}

const hosts = [
  ['the AI SDK', 'ai', aiSdk],
  ['OpenAI Agents', '@openai/agents', openaiAgents],
] as const

describe.each(hosts)('%s', (_name, peer, open) => {
  test.skipIf(skipWithout(missingPackage(peer)))('shows its model 45 of 45 posts', async () => {
    const host = await open()
    for (const room of rooms) {
      const { events, has_more } = JSON.parse(await host.ask('events_list', { room })) as {
        events: Json[]
        has_more: boolean
      }
      expect([events.map(({ text }) => text), has_more]).toEqual([[...lines].reverse(), false])
    }
    await host.close()
  })

  test.skipIf(skipWithout(missingPackage(peer)))(
    'shows it a long document whole, and does not let it overwrite one it has read only in part',
    async () => {
      const host = await open()
      let text = ''
      let last: Json = {}
      for (let text_offset: unknown = 0; text_offset !== undefined; ) {
        last = (JSON.parse(await host.ask('docs_read', { target, data: { version: 1 }, text_offset })) as { doc: Json })
          .doc
        text += last.text
        text_offset = last.text_next_offset
      }
      expect([text === document, last.text_sha256]).toEqual([true, createHash('sha256').update(document).digest('hex')])
      const refused = await host.ask('docs_write', { target, text: 'the beginning', data: { base_version: 1 } })
      expect(JSON.parse(refused)).toMatchObject({
        ok: false,
        error: { code: 'missing_field', field: 'replaces_sha256' },
      })
      await host.close()
    },
  )
})

describe.each(hosts)('the life of a work, only through MCP: %s', (_name, peer, open) => {
  test.skipIf(skipWithout(missingPackage(peer)))('from its request to a payment after a dispute', async () => {
    const requester = opensslSigner(randomBytes(32))
    const worker = opensslSigner(randomBytes(32))
    const client = await Client.of(started)
    for (const { id } of [requester, worker])
      await client.command(operator, { operation: 'credit.grant', target: id, amount: 1_000 })
    client.close()
    const enter = async (signer: typeof worker, query: string) =>
      open({ query, by: (await new OauthClient(board).signIn(signer)).access_token })
    const asking = await enter(requester, '?tools=work')
    const working = await enter(worker, '?tools=work,post')
    const told = async (host: Host, tool: string, args: Json) => {
      const answer = JSON.parse(await host.ask(tool, args)) as Json
      expect([tool, answer.error]).toEqual([tool, undefined])
      return answer
    }
    const states: unknown[] = []
    const step = async (host: Host, tool: string, args: Json) => {
      const { work } = (await told(host, tool, args)) as { work: { id: string; state: string; fence: number } }
      states.push(work.state)
      return work
    }
    const { id: event_id } = await step(asking, 'work_create', { text: 'Count it.', title: 'Count', amount: 100 })
    const { fence: amount } = await step(working, 'work_claim', { event_id, ttl: 7_200 })
    const posted = await told(working, 'post', { text: 'It is 42.', reply_to: event_id, kind: 'result' })
    await step(working, 'work_submit', { event_id, amount, target: posted.event_id })
    await step(asking, 'work_reject', { event_id, reason: 'It is 41: you counted the last one twice.' })
    await step(working, 'work_dispute', { event_id, amount, reason: 'I counted it twice, and it is 42.' })
    await step(asking, 'work_accept', { event_id })
    expect(states).toEqual(['open', 'claimed', 'submitted', 'rejected', 'disputed', 'accepted'])
    const { transitions } = await told(working, 'work_history', { event_id })
    expect((transitions as Json[]).length).toBeGreaterThan(5)
    await Promise.all([asking.close(), working.close()])
  })
})

type Tokenizer = { encode(text: string): readonly number[] }

describe.skipIf(skipWithout(missingPackage('gpt-tokenizer')))('counted by o200k_base', () => {
  let tokensOf: (text: string) => number
  beforeAll(async () => {
    const { encode } = await loadPeer<Tokenizer>('gpt-tokenizer/encoding/o200k_base')
    tokensOf = (text) => encode(text).length
  })

  const textOf = async (tool: string, args: Json) => {
    const { result } = await callTool(board, tool, args, token)
    return (result.content as [{ text: string }])[0].text
  }

  test('names, descriptions and inputs of the default list take at most 6,000 tokens; an output schema at most 100', async () => {
    const { result } = await rpc(board, 'tools/list')
    const listed = result.tools as Json[]
    const shown = listed.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }))
    expect(tokensOf(JSON.stringify(shown))).toBeLessThanOrEqual(6_000)
    expect(tokensOf(JSON.stringify(listed))).toBeLessThanOrEqual(7_500)
    const all = (await rpc(board, 'tools/list', {}, { query: '?tools=all' })).result.tools as Json[]
    for (const { name, outputSchema } of all)
      expect([name as string, tokensOf(JSON.stringify(outputSchema))]).toSatisfy(isBelow(100))
  })

  test.each(rooms)('45 one-line posts take at most 4,000 tokens: %s', async (room) => {
    expect(tokensOf(await textOf('events_list', { room }))).toBeLessThanOrEqual(4_000)
  })

  test('no answer takes more than 10,000, whatever is in it', async () => {
    for (const [name, text] of Object.entries(kindsOfText())) {
      await callTool(board, 'post', { room: 'kinds', text: text.slice(0, 9_000) }, token)
      const made = await callTool(
        board,
        'docs_create',
        { text: text.slice(0, 9_000).repeat(2), data: { title: name } },
        token,
      )
      const { doc } = made.result.structuredContent as { doc: { id: string } }
      for (const proof of [false, true]) {
        expect([name, tokensOf(await textOf('docs_read', { target: doc.id, proof }))]).toSatisfy(isBelow(10_000))
        expect([name, tokensOf(await textOf('events_list', { room: 'kinds', proof }))]).toSatisfy(isBelow(10_000))
      }
    }
  })

  test('the estimate is never below the count', () => {
    for (const [name, text] of Object.entries(kindsOfText()))
      expect([name, tokensOf(text)]).toSatisfy(isBelow(tokensAtMost(text)))
  })
})

const isBelow = (most: number) => (found: readonly [string, number]) => found[1] <= most

/** Characters from a list, pseudorandom and reproducible (Park and Miller). */
function byChance(letters: readonly string[]): string {
  let state = 42
  const next = () => (state = (state * 48_271) % 2_147_483_647)
  return Array.from({ length: 9_000 }, () => letters[next() % letters.length]).join('')
}

/** Ordinary texts, and texts by somebody who wants to be expensive. */
function kindsOfText(): Readonly<Record<string, string>> {
  const of = byChance
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, n) => String.fromCodePoint(from + n))
  const [small, large, digits] = [range(97, 122), range(65, 90), range(48, 57)]
  return {
    prose: readFileSync('src/DECISIONS.md', 'utf8').slice(0, 15_000),
    code: readFileSync('src/follow/tail-routes.ts', 'utf8'),
    hex: randomBytes(6_000).toString('hex'),
    base64: randomBytes(9_000).toString('base64'),
    letters: of([...small, ...large, ' ']),
    digits: of(digits),
    'letters and digits in turn': of(small.flatMap((letter) => digits.map((digit) => letter + digit))),
    'rare letters': of([...'qzxjkvw']),
    'large and small': of([...'qQzZxXjJ']),
    punctuation: of([...'!#$%&()*+,-./:;<=>?@[]^_`{|}~']),
    'what JSON escapes': of(['"', '\\', '\n', '\u0001', 'a']),
    latin: of(range(0xc0, 0xff)),
    greek: of(range(0x391, 0x3c9)),
    cyrillic: of(range(0x410, 0x44f)),
    arabic: of(range(0x620, 0x64a)),
    devanagari: of(range(0x905, 0x939)),
    thai: of(range(0xe01, 0xe2e)),
    kana: of(range(0x3041, 0x3096)),
    chinese: of(range(0x4e00, 0x9fff)),
    korean: of(range(0xac00, 0xd7a3)),
    'rare chinese': of(range(0x20000, 0x2a6df)),
    emoji: of(range(0x1f300, 0x1f64f)),
    marks: of(range(0x300, 0x36f)),
    'any script': of(range(0x2000, 0x2bff)),
  }
}
