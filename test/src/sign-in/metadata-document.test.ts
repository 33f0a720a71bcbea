/** Clients identified by their own address (client ID metadata documents): fetched by the guarded way out, and checked against it. */
import { expect, test } from 'vitest'
import type { Answered, NotAnswered, OutgoingRequest } from '../../../src/outgoing/request.ts'
import { authorizeUrl, headerOf, jsonAnswer, standaloneOauth } from '../../support/standalone-oauth.ts'

const clientId = 'https://client.example/meta/client.json'
const document = {
  client_id: clientId,
  client_name: 'A client by its address',
  redirect_uris: ['https://client.example/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}

const long = `${clientId}?${'x'.repeat(512)}`

type Reached = { readonly status: number; readonly location: string; readonly asked: readonly OutgoingRequest[] }

/** The outcome of an authorization request by this client when its address answers like this. */
async function authorize(
  answer: Answered | NotAnswered,
  { client = clientId, redirect = 'https://client.example/callback', fetchWait = 0 } = {},
): Promise<Reached> {
  const { get, requests } = standaloneOauth({ answer, fetchWait })
  const response = await get(authorizeUrl({ client_id: client, redirect_uri: redirect }))
  return { status: response.status, location: headerOf(response, 'location'), asked: requests }
}

test('a client is described by its own address, fetched once and within bounds', async () => {
  const { status, location, asked } = await authorize(jsonAnswer(document))
  expect([status, location]).toEqual([
    303,
    expect.stringMatching(/^\/oauth\/interaction\/|http:\/\/board\.example\/oauth\/interaction\//),
  ])
  expect(asked).toMatchObject([{ url: clientId, totalMs: 2_500, answerBytesMax: 65_536 }])
})

test.each<[string, Answered | NotAnswered, object]>([
  ['its address is not to be reached', { ok: false, failure: 'blocked', reason: 'not public', sent: false }, {}],
  ['it answers something else', jsonAnswer({}, 404), {}],
  ['what is there is a page', { ...jsonAnswer(document), headers: { 'content-type': ['text/html'] } }, {}],
  ['the document is of another client', jsonAnswer({ ...document, client_id: 'https://else.example/client.json' }), {}],
  ['the address to go back to is not in it', jsonAnswer(document), { redirect: 'https://evil.example/callback' }],
  ['where it goes back to is no list', jsonAnswer({ ...document, redirect_uris: 'x' }), {}],
  ['it wants a secret', jsonAnswer({ ...document, token_endpoint_auth_method: 'client_secret_basic' }), {}],
  [
    'its address is longer than what is signed can name',
    jsonAnswer({ ...document, client_id: long }),
    { client: long },
  ],
  ['its address is plain http', jsonAnswer(document), { client: 'http://client.example/meta/client.json' }],
])('nobody is redirected when %s', async (_why, answer, more) => {
  const { status, location } = await authorize(answer, more)
  expect([status, location]).toEqual([400, ''])
})

test('when too many are being fetched no address is contacted, and the client is told when to retry', async () => {
  const { get, requests: asked } = standaloneOauth({ answer: jsonAnswer(document), fetchWait: 7 })
  const told = await get(authorizeUrl({ client_id: clientId, redirect_uri: 'https://client.example/callback' }))
  expect([told.status, headerOf(told, 'retry-after'), asked]).toEqual([429, '7', []])
  expect(JSON.parse(String(told.body))).toMatchObject({
    error: 'temporarily_unavailable',
    error_description: 'too many clients are being looked up: wait 7 s',
  })
})
