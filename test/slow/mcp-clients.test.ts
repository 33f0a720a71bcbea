/**
 * The MCP endpoint and the sign-in against third-party programs: the official client in both eras and through the whole of OAuth, the
 * Inspector, mcp-remote, and the conformance suites of both protocol versions.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import {
  Client as McpClient,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { opensslSigner } from '../../src/cli/sign.ts'
import { missingPackage, skipWithout } from '../peers/peers.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { OauthClient } from '../support/oauth-client.ts'
import { patience } from '../support/patience.ts'
import { signIn } from '../support/sign-in.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

let address: string
let client: Client
let url: URL
let token: string
const signer = opensslSigner(randomBytes(32))
const scratch = mkdtempSync(join(tmpdir(), 'broadside-mcp-'))

beforeAll(async () => {
  const board = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LOOPBACK: '1' } })
  address = board.address
  client = await Client.of(board)
  url = new URL(`${address}/mcp`)
  await client.post(signer, { text: 'something to read' })
  token = (await new OauthClient(address).signIn(signer)).access_token
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

type Ran = { readonly code: number | null; readonly text: string }

function run(file: string, args: readonly string[], until?: (text: string) => boolean): Promise<Ran> {
  const env = { ...process.env, MCP_REMOTE_CONFIG_DIR: scratch, NO_COLOR: '1', FORCE_COLOR: '0' }
  const child = spawn(process.execPath, [resolve('test/peers/node_modules', file), ...args], { env, cwd: scratch })
  let text = ''
  const take = (chunk: Buffer): void => {
    text += chunk.toString()
    if (until?.(text) === true) child.kill()
  }
  child.stdout.on('data', take)
  child.stderr.on('data', take)
  return new Promise((done) => child.once('close', (code) => done({ code, text })))
}

describe('the official client', () => {
  test.each(['auto', 'legacy'] as const)('%s: lists, calls and reads', async (mode) => {
    const mcp = new McpClient({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    await mcp.connect(new StreamableHTTPClientTransport(url))
    expect((await mcp.listTools()).tools).toHaveLength(operations.filter(({ isEveryday }) => isEveryday).length + 2)
    const read = await mcp.callTool({ name: 'events_list', arguments: { room: 'lobby' } })
    expect(read.structuredContent).toMatchObject({ events: [{ text: 'something to read' }] })
    expect((await mcp.readResource({ uri: 'board://rooms' })).contents).toHaveLength(1)
    expect((await mcp.getPrompt({ name: 'summarise-room', arguments: { room: 'lobby' } })).messages).toHaveLength(1)
    await mcp.close()
  })

  test.each(['', '?tools=all'])(
    'signs in at /mcp%s from the 401 on, without a browser, and is cut off within a second of its revocation',
    async (query) => {
      const saved: { client?: never; tokens?: never; verifier?: string; asked?: URL } = {}
      const provider: OAuthClientProvider = {
        redirectUrl: 'http://127.0.0.1:3999/callback',
        clientMetadata: {
          client_name: 'the official client',
          redirect_uris: ['http://127.0.0.1:3999/callback'],
          token_endpoint_auth_method: 'none',
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
        },
        state: () => 'state',
        clientInformation: () => saved.client,
        saveClientInformation: (found) => void Object.assign(saved, { client: found }),
        tokens: () => saved.tokens,
        saveTokens: (found) => void Object.assign(saved, { tokens: found }),
        redirectToAuthorization: (asked) => void Object.assign(saved, { asked }),
        saveCodeVerifier: (verifier) => void Object.assign(saved, { verifier }),
        codeVerifier: () => saved.verifier!,
      }
      const own = opensslSigner(randomBytes(32))
      const mcp = new McpClient({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
      const transport = new StreamableHTTPClientTransport(new URL(url.href + query), { authProvider: provider })
      await mcp.connect(transport)
      const post = () => mcp.callTool({ name: 'post', arguments: { text: 'signed in' } })
      await expect(post()).rejects.toThrow()
      await transport.finishAuth((await signIn(saved.asked!, own)).searchParams)
      expect((await post()).structuredContent).toMatchObject({ event: { author: { id: own.id }, via: 'mcp' } })
      const whoami = await mcp.callTool({ name: 'whoami', arguments: {} })
      const { delegation } = whoami.structuredContent as { delegation: string }
      // A wait that is open when the sign-in ends.
      const waiting = mcp.callTool({ name: 'updates_get', arguments: { data: { wait: 50 } } })
      // Once requests sent after it have been answered, twice, the wait has begun.
      for (let n = 0; n < 2; n++) await mcp.callTool({ name: 'quota_get', arguments: {} })
      await client.command(own, { operation: 'delegation.revoke', target: delegation })
      const ended = await waiting
      expect(ended).toMatchObject({ isError: true, structuredContent: { error: { code: 'forbidden' } } })
      await expect(post()).rejects.toThrow()
      await mcp.close()
    },
  )
})

describe.skipIf(skipWithout(missingPackage('@modelcontextprotocol/inspector')))('the Inspector', () => {
  const inspector = '@modelcontextprotocol/inspector/clients/launcher/build/index.js'
  const args = (...more: string[]) => ['--cli', url.href, '--transport', 'http', '--format', 'json', ...more]

  test.each(['modern', 'legacy'])('%s: discovers, lists and calls', async (era) => {
    const list = await run(inspector, args('--protocol-era', era, '--method', 'tools/list'))
    expect([list.code, list.text]).toEqual([0, expect.stringContaining('"events_list"')])
    const called = await run(
      inspector,
      args('--protocol-era', era, '--method', 'tools/call', '--tool-name', 'events_list', '--tool-arg', 'room=lobby'),
    )
    expect([called.code, called.text]).toEqual([0, expect.stringContaining('something to read')])
  })

  test('begins a session and calls with a token', async () => {
    const begun = await run(inspector, args('--method', 'initialize'))
    expect([begun.code, begun.text]).toEqual([0, expect.stringContaining('broadside')])
    const whoami = await run(
      inspector,
      args(
        '--header',
        `Authorization: Bearer ${token}`,
        '--protocol-era',
        'modern',
        '--method',
        'tools/call',
        '--tool-name',
        'whoami',
      ),
    )
    expect([whoami.code, whoami.text]).toEqual([0, expect.stringContaining(signer.id)])
  })
})

describe.skipIf(skipWithout(missingPackage('mcp-remote')))('mcp-remote', () => {
  const shared = () => [url.href, '--allow-http', '--transport', 'http-only']

  test('lists through initialize', async () => {
    const ran = await run(
      'mcp-remote/dist/client.js',
      [...shared(), '--protocol', 'legacy', '--header', `Authorization: Bearer ${token}`],
      (text) => text.includes('events_list'),
    )
    expect(ran.text).toContain('events_list')
  })

  test('signs in on its own when a tool requires it, with a stand-in for the browser, and posts', async () => {
    const opened = join(scratch, 'opened')
    const browser = join(scratch, 'browser.sh')
    writeFileSync(opened, '')
    writeFileSync(browser, `#!/bin/sh\necho "$1" >> ${opened}\n`, { mode: 0o755 })
    const { PATH = '' } = process.env
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [resolve('test/peers/node_modules/mcp-remote/dist/proxy.js'), ...shared(), '--auth-timeout', '240'],
      env: { PATH, HOME: scratch, MCP_REMOTE_CONFIG_DIR: join(scratch, 'signing-in'), BROWSER: browser },
      stderr: 'ignore',
    })
    const mcp = new McpClient({ name: 'test', version: '1' })
    await mcp.connect(transport)
    const own = opensslSigner(randomBytes(32))
    // What a person would do in the browser that was opened.
    const signing = vi
      .waitFor(() => new URL(readFileSync(opened, 'utf8').split('\n')[0]!), patience)
      .then(async (asked) => fetch(await signIn(asked, own)))
    const post = () => mcp.callTool({ name: 'post', arguments: { text: 'through a proxy', request_id: 'once' } })
    const first = await post().catch(() => undefined)
    expect((await signing).status).toBe(200)
    // The call that triggered the sign-in may have been answered with it: call again, under the same request_id.
    const posted = first?.isError === undefined && first !== undefined ? first : await post()
    expect(posted.structuredContent).toMatchObject({ event: { author: { id: own.id }, via: 'mcp' } })
    await mcp.close()
  })
})

/** Scenarios, and how many of their checks pass; those that fail need tools made for the suite. */
const suites = [
  ['@modelcontextprotocol/conformance', '2026-07-28', 'http-header-validation', 0],
  ['@modelcontextprotocol/conformance', '2026-07-28', 'tools-list', 0],
  ['@modelcontextprotocol/conformance', '2026-07-28', 'caching', 0],
  ['@modelcontextprotocol/conformance', '2026-07-28', 'dns-rebinding-protection', 0],
  ['@modelcontextprotocol/conformance', '2026-07-28', 'server-stateless', 4],
  ['conformance-2025', '2025-11-25', 'server-initialize', 0],
  ['conformance-2025', '2025-11-25', 'ping', 0],
  ['conformance-2025', '2025-11-25', 'tools-list', 0],
  ['conformance-2025', '2025-11-25', 'dns-rebinding-protection', 0],
] as const

describe.each(suites)('%s %s', (name, version, scenario, failures) => {
  test.skipIf(skipWithout(missingPackage(name)))(`${scenario}`, async () => {
    const args = ['server', '--url', url.href, '--spec-version', version, '--scenario', scenario]
    const { text } = await run(`${name}/dist/index.js`, args)
    expect(text).toMatch(new RegExp(`Passed: \\d+/\\d+, ${failures} failed, 0 warnings`))
  })
})
