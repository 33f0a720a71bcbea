/** Real clients: what they request, what they are granted, and how they log out. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { callTool, claimsOf, OauthClient } from '../support/oauth-client.ts'
import { beginSignIn, signIn } from '../support/sign-in.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const directory = boardDirectory()
let started: Board
let board: string

beforeAll(async () => {
  started = await startBoard({ directory, env: { BROADSIDE_LIMITS: 'off' } })
  board = started.address
})
afterAll(() => started.kill())

const fresh = () => opensslSigner(randomBytes(32))
const whoami = (token: string) => callTool(board, 'whoami', {}, token)
const hasKey = (token: string) =>
  readFileSync(join(directory, 'sign-in.keys')).includes(Buffer.from(claimsOf(token).delegation!, 'hex'))

test('Cursor registers as usual, signs in with its own URL scheme, calls, and continues', async () => {
  const redirect_uri = 'cursor://anysphere.cursor-mcp/oauth/callback'
  const redirect_uris = [
    redirect_uri,
    'https://www.cursor.com/agents/mcp/oauth/callback',
    'http://localhost:8787/callback',
  ]
  const cursor = new OauthClient(board)
  expect(await cursor.register({ client_name: 'Cursor', redirect_uris, application_type: undefined })).toMatchObject({
    status: 201,
    body: { application_type: 'native', redirect_uris },
  })
  const signer = fresh()
  const { url, verifier } = cursor.authorize({ redirect_uri })
  expect(await beginSignIn(url)).toMatchObject({ body: { redirect_host: 'cursor:', client_name: 'Cursor' } })
  const back = await signIn(url, signer)
  expect(back.href.startsWith(`${redirect_uri}?code=`)).toBe(true)
  const { body } = await cursor.exchange(back.searchParams.get('code')!, verifier, { redirect_uri })
  expect((await whoami(String(body.access_token))).result).toMatchObject({ structuredContent: { identity: signer.id } })
  expect((await cursor.refresh(String(body.refresh_token))).status).toBe(200)
})

test('a client that was refused the secret it requested signs in without one', async () => {
  const client = new OauthClient(board)
  const asked = { token_endpoint_auth_method: 'client_secret_post', grant_types: ['authorization_code', 'implicit'] }
  expect(await client.register(asked)).toMatchObject({
    status: 201,
    body: { token_endpoint_auth_method: 'none', grant_types: ['authorization_code'] },
  })
  const { access_token } = await client.signIn(fresh())
  expect((await whoami(access_token)).status).toBe(200)
})

test.each([
  [null, 'board:read board:post board:work events:subscribe', {}],
  ['', 'board:read board:post board:work events:subscribe', {}],
  ['foo', 'board:read', { scope: 'profile board:read' }],
  ['openid board:read', 'board:read', {}],
])('a client that requests the scope %s gets %s', async (scope, granted, registered) => {
  const oauth = new OauthClient(board)
  await oauth.register(registered)
  const { url, verifier } = oauth.authorize({ scope })
  const code = (await signIn(url, fresh())).searchParams.get('code')!
  const { status, body } = await oauth.exchange(code, verifier)
  expect([status, body.scope]).toEqual([200, granted])
  expect(body).not.toHaveProperty('id_token')
})

test('a client that requests only openid is given nothing, and no delegation is created', async () => {
  const oauth = new OauthClient(board)
  await oauth.register()
  const refused = (await beginSignIn(oauth.authorize({ scope: 'openid' }).url)) as Response
  const back = new URL(refused.headers.get('location')!)
  expect([back.searchParams.get('error'), back.searchParams.get('code')]).toEqual(['invalid_scope', null])
})

test.each(['access_token', 'refresh_token'] as const)(
  'logging out with the %s ends the sign-in and erases its key',
  async (name) => {
    for (const hint of [{}, { token_type_hint: 'access_token' }, { token_type_hint: 'refresh_token' }]) {
      const oauth = new OauthClient(board)
      const tokens = await oauth.signIn(fresh())
      expect(hasKey(tokens.access_token)).toBe(true)
      const revoke = () => oauth.form('/oauth/revoke', { token: tokens[name], client_id: oauth.id, ...hint })
      // Twice: the second one has nothing left to do (RFC 7009, 2.2).
      for (let n = 0; n < 2; n++) expect((await revoke()).status).toBe(200)
      expect((await whoami(tokens.access_token)).status).toBe(401)
      expect(await oauth.refresh(tokens.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
      expect(hasKey(tokens.access_token)).toBe(false)
    }
  },
)

test('nobody is logged out by another client, a changed token or an unknown token', async () => {
  const [oauth, other] = [new OauthClient(board), new OauthClient(board)]
  await other.register()
  const { access_token } = await oauth.signIn(fresh())
  const [head, body, signature] = access_token.split('.')
  const others = JSON.stringify({ ...claimsOf(access_token), client_id: other.id })
  const changed = `${head}.${Buffer.from(others).toString('base64url')}.${signature}`
  for (const [token, client_id] of [
    [access_token, other.id],
    [changed, other.id],
    [`${head}.${body}.`, oauth.id],
    ['x.y.z', oauth.id],
    ['nothing', oauth.id],
  ] as const)
    expect([token, (await oauth.form('/oauth/revoke', { token, client_id })).status]).toEqual([token, 200])
  expect((await oauth.form('/oauth/revoke', { token: access_token, client_id: 'nobody' })).status).toBe(401)
  expect((await oauth.form('/oauth/revoke', { token: access_token })).status).toBe(400)
  expect((await whoami(access_token)).status).toBe(200)
})

test('a sign-in uses cookies, which the pages on privacy say', async () => {
  const oauth = new OauthClient(board)
  await oauth.register()
  const begun = await fetch(oauth.authorize().url, { redirect: 'manual' })
  expect(begun.headers.getSetCookie()).not.toEqual([])
  for (const path of ['/faq', '/contact'])
    expect(await (await fetch(board + path)).text()).toContain(
      'Cookies are set only when a program signs in with your key: they identify that sign-in, and last at most until you close the browser.',
    )
})
