/** Sign-in endpoints for programs in cross-origin pages: they may register, and an unsupported method is reported as such. */

import { expect, test } from 'vitest'
import type { Exchange, Header } from '../../../src/http/port.ts'
import { Throttle } from '../../../src/rates/throttle.ts'
import type { Oauth } from '../../../src/sign-in/oauth.ts'
import { oauthRoutes } from '../../../src/sign-in/routes.ts'
import { authorizeUrl, jsonAnswer, standaloneOauth } from '../../support/standalone-oauth.ts'

type Told = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | string
}

let oauth = { handle: async () => ({ status: 201, headers: [], body: Buffer.from('{}') }) } as unknown as Oauth
let elsewhere: string | undefined
const routes = oauthRoutes({
  elsewhere: () => elsewhere,
  name: 'Broadside',
  address: 'https://board.example',
  load: async () => oauth,
  script: async () => Buffer.alloc(0),
  throttle: new Throttle({ on: false, now: () => 0, factors: { ofIdentity: () => 1, ofAddress: () => 1 } }),
  addressOf: () => '192.0.2.1',
  fault: (error) => {
    throw error
  },
})

const ask = (method: string, path: string, accept?: string) =>
  new Promise<Told>((resolve) => {
    const [pathname, query = ''] = path.split('?')
    const exchange = {
      ...{ method, path: pathname, query, headers: [], header: () => accept, ended: false },
      readBody: (_max: number, read: (result: object) => void) => read({ ok: true, body: Buffer.alloc(0) }),
      reply: (status: number, headers: readonly Header[], body: Buffer | string) =>
        resolve({ status, headers: Object.fromEntries(headers), body }),
    }
    const door = path.startsWith('/oauth/') ? '/oauth/' : path
    routes[door]!(exchange as unknown as Exchange, '')
  })

test('on a follower nobody signs in, and the answer says where to go', async () => {
  elsewhere = 'this is a follower of the board at https://leader.example'
  for (const [method, path] of [
    ['POST', '/oauth/register'],
    ['GET', '/oauth/authorize'],
    ['POST', '/oauth/token'],
  ] as const) {
    const { status, body } = await ask(method, path)
    expect([status, JSON.parse(String(body))]).toMatchObject([403, { error_description: elsewhere }])
  }
  expect((await ask('GET', '/.well-known/oauth-authorization-server')).status).toBe(201)
  elsewhere = undefined
})

test('a page of any origin may ask whether it can register, and register', async () => {
  const asked = await ask('OPTIONS', '/oauth/register')
  expect(asked).toMatchObject({
    status: 204,
    headers: { 'access-control-allow-origin': '*', 'access-control-allow-methods': 'POST, OPTIONS' },
  })
  expect(asked.headers['access-control-allow-headers']).toContain('content-type')
  expect(await ask('POST', '/oauth/register')).toMatchObject({
    status: 201,
    headers: { 'access-control-allow-origin': '*' },
  })
})

test.each([
  ['GET', '/oauth/token', 'POST, OPTIONS'],
  ['GET', '/oauth/register', 'POST, OPTIONS'],
  ['POST', '/oauth/authorize', 'GET, HEAD'],
  ['DELETE', '/oauth/jwks', 'GET, HEAD, OPTIONS'],
  ['PUT', '/oauth/interaction/abcdefghij', 'GET, POST'],
  ['POST', '/.well-known/oauth-authorization-server', 'GET, HEAD, OPTIONS'],
  ['POST', '/.well-known/oauth-protected-resource', 'GET, HEAD, OPTIONS'],
])('%s %s is not supported, and Allow lists the methods that are', async (method, path, allow) => {
  expect(await ask(method, path)).toMatchObject({ status: 405, headers: { allow } })
})

test('unknown paths are reported as such', async () => {
  expect((await ask('GET', '/oauth/nothing')).status).toBe(404)
})

// The engines omit the body of a HEAD response, and send its length.
test.each([
  ['/.well-known/oauth-protected-resource'],
  ['/.well-known/oauth-authorization-server'],
  ['/.well-known/openid-configuration'],
  ['/oauth/jwks'],
  ['/oauth/authorize'],
  ['/oauth/authorize', 'text/html'],
])('HEAD of %s is answered as GET is', async (path, accept?: string) => {
  oauth = standaloneOauth({ answer: jsonAnswer({}) }).oauth
  const got = await ask('GET', path, accept)
  expect(got.body.length).toBeGreaterThan(0)
  expect(await ask('HEAD', path, accept)).toEqual(got)
})

test('a link that would redirect to an unknown address shows the address, and follows it only on confirmation', async () => {
  const client_id = 'https://evil.example/client.json'
  const redirect_uri = 'https://evil.example/callback'
  oauth = standaloneOauth({
    answer: jsonAnswer({ client_id, redirect_uris: [redirect_uri], token_endpoint_auth_method: 'none' }),
  }).oauth
  const { status, headers, body } = await ask(
    'GET',
    authorizeUrl({ client_id, redirect_uri, prompt: 'none' }),
    'text/html',
  )
  expect([status, headers.location]).toEqual([400, undefined])
  expect(String(body)).toMatch(
    /<a href="https:\/\/evil\.example\/callback\?error=interaction_required[^"]*" rel="nofollow noreferrer">evil\.example<\/a>/,
  )
})
