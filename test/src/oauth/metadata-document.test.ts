/** Clients that are known by their own address (client ID metadata documents): fetched by the guarded way out, held to their word. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { News } from '../../../src/command/news.ts'
import { Oauth } from '../../../src/oauth/oauth.ts'
import { SignInKeys } from '../../../src/oauth/sign-in-keys.ts'
import type { Answered, NotAnswered, OutgoingRequest } from '../../../src/outgoing/request.ts'

const folder = mkdtempSync(join(tmpdir(), 'broadside-oauth-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const clientId = 'https://client.example/meta/client.json'
const document = {
  client_id: clientId,
  client_name: 'A client by its address',
  redirect_uris: ['https://client.example/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}

type Reached = { readonly status: number; readonly location: string; readonly asked: OutgoingRequest[] }

/** What becomes of an authorization request by this client when its address answers so. */
async function authorize(
  answer: Answered | NotAnswered,
  { client = clientId, redirect = 'https://client.example/callback', mayFetch = true } = {},
): Promise<Reached> {
  const asked: OutgoingRequest[] = []
  const oauth = new Oauth({
    news: new News(),
    address: 'http://board.example',
    serviceId: 'bs-test',
    boardIdentity: '0'.repeat(64),
    actors: { write: (_letter, told) => told({ ok: true, reply: {} }, undefined) },
    read: (_request, told) => told({ ok: true, json: '{}' }),
    front: { execute: (_body, _door, respond) => respond(undefined) },
    wallSeconds: () => 1_790_000_000,
    keys: new SignInKeys(join(folder, 'sign-in.keys')),
    tokenKeyFile: join(folder, 'oauth.key'),
    cookieSecret: 'secret',
    mayFetch: () => mayFetch,
    signedOut: () => Promise.resolve(),
    fault: (error) => {
      throw error
    },
    outgoing: {
      request: (request) => {
        asked.push(request)
        return Promise.resolve(answer)
      },
    },
  })
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: redirect,
    scope: 'board:read',
    resource: 'http://board.example/mcp',
    code_challenge_method: 'S256',
    code_challenge: createHash('sha256').update('x').digest('base64url'),
  })
  const response = await oauth.handle({
    method: 'GET',
    url: `/oauth/authorize?${query}`,
    headers: {},
    body: Buffer.alloc(0),
    address: '127.0.0.1',
  })
  const location = response.headers.find(([name]) => name === 'location')?.[1] ?? ''
  return { status: response.status, location, asked }
}

const answered = (body: object, status = 200): Answered => ({
  ok: true,
  status,
  headers: { 'content-type': ['application/json'] },
  body: Buffer.from(JSON.stringify(body)),
})

test('a client is what its own address says of it, fetched once and bounded', async () => {
  const { status, location, asked } = await authorize(answered(document))
  expect([status, location]).toEqual([
    303,
    expect.stringMatching(/^\/oauth\/interaction\/|http:\/\/board\.example\/oauth\/interaction\//),
  ])
  expect(asked).toMatchObject([{ url: clientId, totalMs: 2_500, answerBytesMax: 65_536 }])
})

test.each<[string, Answered | NotAnswered, object]>([
  ['its address is not to be reached', { ok: false, failure: 'blocked', reason: 'not public', sent: false }, {}],
  ['it answers something else', answered({}, 404), {}],
  ['what is there is a page', { ...answered(document), headers: { 'content-type': ['text/html'] } }, {}],
  ['the document is of another client', answered({ ...document, client_id: 'https://else.example/client.json' }), {}],
  ['the address to go back to is not in it', answered(document), { redirect: 'https://evil.example/callback' }],
  ['it wants a secret', answered({ ...document, token_endpoint_auth_method: 'client_secret_basic' }), {}],
  ['too many are fetched', answered(document), { mayFetch: false }],
  ['its address is plain http', answered(document), { client: 'http://client.example/meta/client.json' }],
])('nobody is sent anywhere when %s', async (_why, answer, more) => {
  const { status, location } = await authorize(answer, more)
  expect([status, location]).toEqual([400, ''])
})
