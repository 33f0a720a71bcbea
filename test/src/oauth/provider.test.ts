/** The authorization server does what it says of itself, and says nothing that it does not do. */
import { expect, test } from 'vitest'
import { answered, authorizeUrl, headerOf, oauthAlone } from '../../support/oauth-alone.ts'

const clientId = 'https://client.example/meta/client.json'
const redirectUri = 'https://client.example/callback'
const alone = () =>
  oauthAlone({
    answer: answered({ client_id: clientId, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }),
  })

test('a client that names no way to prove itself is a public one, and is given no secret that no door takes', async () => {
  const { status, body } = await alone().post('/oauth/register', {
    redirect_uris: ['http://127.0.0.1:3999/callback'],
    application_type: 'native',
    client_secret: 'its own',
  })
  const registered = JSON.parse(String(body)) as Record<string, unknown>
  expect([status, registered.token_endpoint_auth_method]).toEqual([201, 'none'])
  expect(Object.keys(registered).filter((name) => name.startsWith('client_secret'))).toEqual([])
})

test('metadata of no list is refused, and why an address over plain http is not taken is said', async () => {
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

test('of the scopes that a client says it will ask for, those that are not known are left out', async () => {
  const register = async (scope: string) => {
    const { status, body } = await alone().post('/oauth/register', { redirect_uris: [redirectUri], scope })
    return [status, (JSON.parse(String(body)) as { scope?: string }).scope]
  }
  expect(await register('openid profile board:read offline_access')).toEqual([201, 'openid board:read'])
  expect(await register('profile email')).toEqual([201, undefined])
})

test.each(['openid-configuration', 'oauth-authorization-server'])('form_post is not offered in %s', async (name) => {
  const { body } = await alone().get(`/.well-known/${name}`)
  expect(JSON.parse(String(body))).toMatchObject({ response_modes_supported: ['query', 'fragment'] })
})

test.each([
  ['by itself', {}],
  ['with another fault', { scope: 'none', code_challenge: '' }],
])('form_post is refused %s, by the way that needs no script', async (_how, more) => {
  const asked = { client_id: clientId, redirect_uri: redirectUri, response_mode: 'form_post', state: 's1' }
  const refused = await alone().get(authorizeUrl({ ...asked, ...more }))
  expect(refused.status).toBe(303)
  const back = new URL(headerOf(refused, 'location'))
  expect(`${back.origin}${back.pathname}`).toBe(redirectUri)
  expect([back.searchParams.get('error'), back.searchParams.get('state')]).toEqual(['unsupported_response_mode', 's1'])
})

test.each(['query', 'fragment'])('%s is taken', async (response_mode) => {
  const begun = await alone().get(authorizeUrl({ client_id: clientId, redirect_uri: redirectUri, response_mode }))
  expect(headerOf(begun, 'location')).toContain('/oauth/interaction/')
})
