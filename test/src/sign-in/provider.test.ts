/** The authorization server does what its metadata says, and its metadata says nothing that it does not do. */
import { expect, test } from 'vitest'
import { signInScopes } from '../../../actors/kernel/operation.ts'
import type { OauthResponse } from '../../../src/sign-in/oauth.ts'
import { authorizeUrl, headerOf, jsonAnswer, standaloneOauth } from '../../support/standalone-oauth.ts'

const clientId = 'https://client.example/meta/client.json'
const redirectUri = 'https://client.example/callback'
const alone = () =>
  standaloneOauth({
    answer: jsonAnswer({ client_id: clientId, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }),
  })

test('a client without an authentication method is public, and gets no secret that nothing accepts', async () => {
  const { status, body } = await alone().post('/oauth/register', {
    redirect_uris: ['http://127.0.0.1:3999/callback'],
    application_type: 'native',
    client_secret: 'its own',
  })
  const registered = JSON.parse(String(body)) as Record<string, unknown>
  expect([status, registered.token_endpoint_auth_method]).toEqual([201, 'none'])
  expect(Object.keys(registered).filter((name) => name.startsWith('client_secret'))).toEqual([])
})

test('metadata that is no object is refused, and why an http address is not accepted is explained', async () => {
  const register = async (redirect_uris: unknown) => {
    const { status, body } = await alone().post('/oauth/register', { redirect_uris })
    return [status, JSON.parse(String(body))]
  }
  expect(await register('x')).toMatchObject([400, { error: 'invalid_redirect_uri' }])
  expect(await register(['http://evil.example/callback'])).toMatchObject([
    400,
    {
      error: 'invalid_redirect_uri',
      error_description: expect.stringContaining('over plain http must be of this device'),
    },
  ])
})

test('unknown scopes in a client’s registration are left out', async () => {
  const register = async (scope: string) => {
    const { status, body } = await alone().post('/oauth/register', { redirect_uris: [redirectUri], scope })
    return [status, (JSON.parse(String(body)) as { scope?: string }).scope]
  }
  expect(await register('openid profile board:read offline_access')).toEqual([201, 'board:read'])
  expect(await register('profile email')).toEqual([201, undefined])
})

/** The redirect URL that would tell the client of a refusal, which stays here. */
function toldAt(refused: OauthResponse): URL {
  expect([refused.status, headerOf(refused, 'location')]).toEqual([400, ''])
  return new URL(String(JSON.parse(String(refused.body)).location))
}

test.each([
  ['prompt=none', 'interaction_required', { prompt: 'none' }],
  ['prompt=none and fragment', 'interaction_required', { prompt: 'none', response_mode: 'fragment' }],
  ['a scope of nothing here', 'invalid_scope', { scope: 'openid' }],
  ['no challenge', 'invalid_request', { code_challenge: '' }],
])('a link with %s redirects no browser to an address that anyone may register', async (_what, error, more) => {
  const refused = await alone().get(
    authorizeUrl({ client_id: clientId, redirect_uri: redirectUri, state: 's', ...more }),
  )
  expect(toldAt(refused).href.startsWith(redirectUri)).toBe(true)
  expect(JSON.parse(String(refused.body))).toMatchObject({ error, error_description: expect.any(String) })
})

test.each(['authorize/of-nobody', 'authorize/', 'Authorize'])(
  'nor does a link to %s, which the library also knows',
  async (path) => {
    const url = authorizeUrl({ client_id: clientId, redirect_uri: redirectUri, prompt: 'none' })
    const refused = await alone().get(url.replace('authorize', path))
    expect(toldAt(refused).href.startsWith(redirectUri)).toBe(true)
  },
)

test('a program on its user’s device that waits for an answer gets it directly', async () => {
  const redirect_uri = 'http://127.0.0.1:3999/callback'
  const native = { client_id: clientId, redirect_uris: [redirect_uri], application_type: 'native' }
  const { get } = standaloneOauth({ answer: jsonAnswer({ ...native, token_endpoint_auth_method: 'none' }) })
  const { status, ...refused } = await get(authorizeUrl({ client_id: clientId, redirect_uri, prompt: 'none' }))
  const back = new URL(headerOf({ status, ...refused }, 'location'))
  expect([status, back.host, back.searchParams.get('error')]).toEqual([303, '127.0.0.1:3999', 'interaction_required'])
})

const apps = ['cursor://anysphere.cursor-mcp/oauth/callback', 'https://www.cursor.com/agents/mcp/oauth/callback']

test.each([
  ['by nothing it says', {}],
  ['though it calls itself web', { application_type: 'web' }],
])('a client with its own URL scheme is a native one, %s', async (_how, said) => {
  const redirect_uris = [...apps, 'http://localhost:8787/callback']
  const { status, body } = await alone().post('/oauth/register', { redirect_uris, ...said })
  expect([status, JSON.parse(String(body))]).toMatchObject([201, { application_type: 'native', redirect_uris }])
  const document = { client_id: clientId, redirect_uris, token_endpoint_auth_method: 'none', ...said }
  const byDocument = standaloneOauth({ answer: jsonAnswer(document) })
  for (const redirect_uri of [...redirect_uris, 'http://localhost:61234/callback']) {
    const begun = await byDocument.get(authorizeUrl({ client_id: clientId, redirect_uri }))
    expect([redirect_uri, headerOf(begun, 'location')]).toEqual([
      redirect_uri,
      expect.stringContaining('/oauth/interaction/'),
    ])
  }
})

test('a scheme that executes code is no app, and an app has no certificate for this device', async () => {
  for (const uri of [
    'javascript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'https://localhost/',
  ])
    for (const application_type of [undefined, 'web', 'native']) {
      const { status, body } = await alone().post('/oauth/register', {
        redirect_uris: [...apps, uri],
        application_type,
      })
      expect([uri, status, JSON.parse(String(body))]).toMatchObject([uri, 400, { error: 'invalid_redirect_uri' }])
    }
})

test.each(['client_secret_post', 'client_secret_basic'])(
  'a client that requests %s and more than is offered is told what it gets instead',
  async (token_endpoint_auth_method) => {
    const { status, body } = await alone().post('/oauth/register', {
      redirect_uris: [redirectUri],
      token_endpoint_auth_method,
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials', 'implicit'],
      response_types: ['code', 'token', 'id_token'],
    })
    const registered = JSON.parse(String(body)) as Record<string, unknown>
    expect([status, registered]).toMatchObject([
      201,
      {
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
    ])
    expect(registered).not.toHaveProperty('client_secret')
  },
)

test.each([
  [{ grant_types: ['client_credentials'] }, 'grant_types'],
  [{ grant_types: ['implicit'], response_types: ['token'] }, 'grant_types'],
  [{ response_types: ['id_token'] }, 'response_types'],
  [{ token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } }, 'token_endpoint_auth_method'],
  [{ grant_types: 5 }, 'grant_types'],
])('a client with no use for anything that is offered is refused: %j', async (said, named) => {
  const { status, body } = await alone().post('/oauth/register', { redirect_uris: [redirectUri], ...said })
  expect([status, JSON.parse(String(body))]).toMatchObject([
    400,
    { error: 'invalid_client_metadata', error_description: expect.stringContaining(named) },
  ])
})

test.each(['openid-configuration', 'oauth-authorization-server'])(
  'nothing of OpenID is offered in %s',
  async (name) => {
    const described = JSON.parse(String((await alone().get(`/.well-known/${name}`)).body)) as Record<string, unknown>
    expect(described.scopes_supported).toEqual(signInScopes)
    const names = Object.keys(described).filter((each) => /claim|id_token|subject|userinfo/.test(each))
    expect(names).toEqual([])
  },
)

test.each(['openid', 'openid profile email'])(
  'a client that requests %s and no scope of the board is given nothing',
  async (scope) => {
    const refused = await alone().get(
      authorizeUrl({ client_id: clientId, redirect_uri: redirectUri, scope, state: 's1' }),
    )
    const back = toldAt(refused)
    expect([`${back.origin}${back.pathname}`, back.searchParams.get('error')]).toEqual([redirectUri, 'invalid_scope'])
    expect(back.searchParams.get('error_description')).toContain('board:read')
  },
)

test('OpenID parameters beside scopes of the board are ignored', async () => {
  const more = { scope: 'openid board:read', nonce: 'n', max_age: '5', claims: '{"id_token":{}}', acr_values: 'x' }
  const begun = await alone().get(authorizeUrl({ client_id: clientId, redirect_uri: redirectUri, ...more }))
  expect(headerOf(begun, 'location')).toContain('/oauth/interaction/')
})

test.each(['openid-configuration', 'oauth-authorization-server'])('form_post is not offered in %s', async (name) => {
  const { body } = await alone().get(`/.well-known/${name}`)
  expect(JSON.parse(String(body))).toMatchObject({ response_modes_supported: ['query', 'fragment'] })
})

test.each([
  ['by itself', {}],
  ['with another fault', { scope: 'none', code_challenge: '' }],
])('form_post is refused %s, in a way that needs no script', async (_how, more) => {
  const asked = { client_id: clientId, redirect_uri: redirectUri, response_mode: 'form_post', state: 's1' }
  const refused = await alone().get(authorizeUrl({ ...asked, ...more }))
  const back = toldAt(refused)
  expect(`${back.origin}${back.pathname}`).toBe(redirectUri)
  expect([back.searchParams.get('error'), back.searchParams.get('state')]).toEqual(['unsupported_response_mode', 's1'])
})

test.each(['query', 'fragment'])('%s is accepted', async (response_mode) => {
  const begun = await alone().get(authorizeUrl({ client_id: clientId, redirect_uri: redirectUri, response_mode }))
  expect(headerOf(begun, 'location')).toContain('/oauth/interaction/')
})
