/** A hand-written OAuth client: registers, requests a code with PKCE, exchanges it. Returns every answer unchanged. */
import { createHash, type KeyObject, randomBytes, sign } from 'node:crypto'
import type { Signer } from '../../src/cli/sign.ts'
import { signIn } from './sign-in.ts'

export type Tokens = { readonly access_token: string; readonly refresh_token: string; readonly scope: string }
export type Json = Record<string, unknown>
export type JsonResponse = { readonly status: number; readonly body: Json; readonly headers: Headers }

export const redirectUri = 'http://127.0.0.1:3999/callback'

const jsonResponse = async (response: Response): Promise<JsonResponse> => ({
  status: response.status,
  body: (await response.json().catch(() => ({}))) as Json,
  headers: response.headers,
})

export class OauthClient {
  readonly board: string
  id = ''

  constructor(board: string) {
    this.board = board
  }

  async register(more: Json = {}): Promise<JsonResponse> {
    const answer = await this.post('/oauth/register', {
      client_name: 'a test',
      redirect_uris: [redirectUri],
      application_type: 'native',
      ...more,
    })
    this.id = String(answer.body.client_id)
    return answer
  }

  /** The address that a user is redirected to, and its PKCE verifier. `more`: null omits a parameter. */
  authorize(more: Readonly<Record<string, string | null>> = {}): { url: URL; verifier: string } {
    const verifier = randomBytes(32).toString('base64url')
    const url = new URL('/oauth/authorize', this.board)
    const parameters = {
      response_type: 'code',
      client_id: this.id,
      redirect_uri: redirectUri,
      state: 's1',
      scope: 'board:read board:post board:work events:subscribe',
      resource: `${this.board}/mcp`,
      code_challenge_method: 'S256',
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      ...more,
    }
    for (const [name, value] of Object.entries(parameters)) if (value !== null) url.searchParams.set(name, value)
    return { url, verifier }
  }

  async code(
    signer: Signer,
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ code: string; verifier: string; back: URL }> {
    const { url, verifier } = this.authorize(more)
    const back = await signIn(url, signer)
    return { code: back.searchParams.get('code')!, verifier, back }
  }

  exchange(code: string, verifier: string, more: Readonly<Record<string, string>> = {}): Promise<JsonResponse> {
    return this.form('/oauth/token', {
      grant_type: 'authorization_code',
      client_id: this.id,
      code,
      code_verifier: verifier,
      redirect_uri: redirectUri,
      resource: `${this.board}/mcp`,
      ...more,
    })
  }

  refresh(token: string, more: Readonly<Record<string, string>> = {}): Promise<JsonResponse> {
    return this.form('/oauth/token', { grant_type: 'refresh_token', client_id: this.id, refresh_token: token, ...more })
  }

  /** The whole flow. */
  async signIn(signer: Signer, more: Readonly<Record<string, string>> = {}): Promise<Tokens> {
    if (this.id === '') await this.register()
    const { code, verifier } = await this.code(signer, more)
    return (await this.exchange(code, verifier)).body as unknown as Tokens
  }

  async form(path: string, fields: Readonly<Record<string, string>>): Promise<JsonResponse> {
    return jsonResponse(await fetch(new URL(path, this.board), { method: 'POST', body: new URLSearchParams(fields) }))
  }

  async post(path: string, body: Json): Promise<JsonResponse> {
    const headers = { 'content-type': 'application/json' }
    return jsonResponse(await fetch(new URL(path, this.board), { method: 'POST', headers, body: JSON.stringify(body) }))
  }
}

const decodePart = (part = '') => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, string>

/** The claims of an access token. */
export const claimsOf = (token: string) => decodePart(token.split('.')[1])

/** The same token, signed again with changed claims and header; undefined removes a claim. */
export function forgeToken(token: string, key: KeyObject, changes: object, header: object = {}): string {
  const parts = [
    { ...decodePart(token.split('.')[0]), ...header },
    { ...claimsOf(token), ...changes },
  ]
  const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`
}

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** One request of protocol 2026-07-28. `headers`: replaces headers, null removes one. `query`: with its `?`. */
export async function rpc(
  board: string,
  method: string,
  params: Json = {},
  {
    token,
    headers = {},
    query = '',
  }: { token?: string; headers?: Readonly<Record<string, string | null>>; query?: string } = {},
): Promise<JsonResponse & { readonly result: Json; readonly error: { code: number; message: string; data?: Json } }> {
  const named =
    typeof params.name === 'string'
      ? { 'mcp-name': params.name }
      : typeof params.uri === 'string'
        ? { 'mcp-name': params.uri }
        : {}
  const all: Record<string, string | null> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...named,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...headers,
  }
  const sent = Object.entries(all).filter((each): each is [string, string] => each[1] !== null)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { _meta: envelope, ...params } })
  const answer = await jsonResponse(await fetch(`${board}/mcp${query}`, { method: 'POST', headers: sent, body }))
  const { result = {}, error = {} } = answer.body as { result?: Json; error?: Json }
  return { ...answer, result, error: error as { code: number; message: string } }
}

/** A tool call of protocol 2026-07-28. */
export const callTool = (board: string, name: string, args: Json = {}, token?: string) =>
  rpc(board, 'tools/call', { name, arguments: args }, token === undefined ? {} : { token })
