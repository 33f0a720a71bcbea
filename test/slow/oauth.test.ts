import { randomBytes, sign } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { privateKeyOf } from '../../storage/ed25519.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { callTool, claimsOf, forgeToken, OauthClient, redirectUri, type Tokens } from '../support/oauth-client.ts'
import { patience } from '../support/patience.ts'
import { beginSignIn, type Interaction, submitSignature } from '../support/sign-in.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const directory = boardDirectory()
let board: Awaited<ReturnType<typeof startBoard>>
let client: Client
const start = async (): Promise<void> => {
  board = await startBoard({ directory, ...(board === undefined ? {} : { port: board.port }) })
  client = await Client.of(board)
}
beforeAll(start)

const fresh = () => opensslSigner(randomBytes(32))
const whoami = (token: string) => callTool(board.address, 'whoami', {}, token)
const keysFile = () => readFileSync(join(directory, 'sign-in.keys'))

async function client1(): Promise<OauthClient> {
  const made = new OauthClient(board.address)
  await made.register()
  return made
}

describe('what a client reads first', () => {
  test('the protected resource is described at both addresses, and the server, with PKCE S256, iss and metadata documents', async () => {
    for (const path of ['', '/mcp']) {
      const found = await (await fetch(`${board.address}/.well-known/oauth-protected-resource${path}`)).json()
      expect(found).toMatchObject({ resource: `${board.address}/mcp`, authorization_servers: [board.address] })
      expect((found as { scopes_supported: string[] }).scopes_supported).not.toContain('offline_access')
    }
    for (const name of ['oauth-authorization-server', 'openid-configuration']) {
      expect(await (await fetch(`${board.address}/.well-known/${name}`)).json()).toMatchObject({
        issuer: board.address,
        code_challenge_methods_supported: ['S256'],
        response_types_supported: ['code'],
        token_endpoint_auth_methods_supported: ['none'],
        client_id_metadata_document_supported: true,
        authorization_response_iss_parameter_supported: true,
        registration_endpoint: `${board.address}/oauth/register`,
        revocation_endpoint: `${board.address}/oauth/revoke`,
      })
    }
  })

  test('a client whose redirect host is not its own, or missing, is not registered', async () => {
    for (const redirect_uris of [[], ['javascript:alert(1)'], ['http://evil.example/cb'], ['https://a.example/#x']]) {
      const made = new OauthClient(board.address)
      expect(await made.register({ redirect_uris, application_type: 'web' }), String(redirect_uris)).toMatchObject({
        status: 400,
      })
    }
  })
})

test('registration has one address: no other spelling of it bypasses its rate limit', async () => {
  const strict = await startBoard({
    directory: boardDirectory(),
    env: { BROADSIDE_LIMITS: 'on', LIMITS: '{"client_registrations_per_address_per_hour":1}' },
  })
  expect((await new OauthClient(strict.address).register()).status).toBe(201)
  expect((await new OauthClient(strict.address).register()).status).toBe(429)
  const { request } = await import('node:http')
  for (const path of ['/oauth/register/', '/oauth/Register', '/oauth/x/../register', '/oauth/authorize/../register']) {
    const status = await new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' }
      // By hand: fetch would normalize the spelling.
      const sent = request({ host: '127.0.0.1', port: strict.port, method: 'POST', path, headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
      sent.on('error', reject).end(JSON.stringify({ redirect_uris: [redirectUri], application_type: 'native' }))
    })
    expect(status, path).toBe(404)
  }
  await strict.kill()
})

describe('a sign-in', () => {
  test('is one signature over the bytes of a delegation.create that names the client, its host and its scopes', async () => {
    const oauth = await client1()
    const signer = fresh()
    const begun = (await beginSignIn(oauth.authorize().url, signer.publicKey)) as Interaction
    const { command, service } = JSON.parse(String(begun.body.challenge)) as {
      command: Record<string, string>
      service: string
    }
    expect(service).toBe(client.serviceId)
    expect(command).toMatchObject({ operation: 'delegation.create', public_key: signer.publicKey, ttl: 2_592_000 })
    expect(begun.url.pathname).toContain(command.nonce)
    expect(JSON.parse(command.data!)).toEqual({
      schema: 1,
      scopes: ['board:read', 'board:post', 'board:work', 'events:subscribe'],
      label: 'a test',
      client_id: oauth.id,
      redirect_host: '127.0.0.1:3999',
    })
    const { code, verifier, back } = await oauth.code(signer)
    expect(back.searchParams.get('iss')).toBe(board.address)
    expect(back.searchParams.get('state')).toBe('s1')
    const tokens = (await oauth.exchange(code, verifier)).body as unknown as Tokens & { expires_in: number }
    expect(tokens.expires_in).toBe(3_600)
    expect(claimsOf(tokens.access_token)).toMatchObject({
      sub: signer.id,
      aud: `${board.address}/mcp`,
      iss: board.address,
    })
    expect((await whoami(tokens.access_token)).result.structuredContent).toMatchObject({
      identity: signer.id,
      balance: { available: 0, held: 0 },
      allowance: { tools: { left: 20, of: 20 } },
    })
    const { data } = await client.command(signer, { operation: 'delegation.list' })
    expect((data as { delegations?: object[] }).delegations).toMatchObject([{ client_id: oauth.id, label: 'a test' }])
  })

  test('shows people who asks and where they are redirected, all of it escaped', async () => {
    const oauth = new OauthClient(board.address)
    await oauth.register({ client_name: '<img src=x onerror=alert(1)>\u202e' })
    const begun = (await beginSignIn(oauth.authorize().url)) as Interaction
    const page = await begun.jar.fetch(begun.url)
    const text = await page.text()
    expect(text).toContain('127.0.0.1:3999')
    expect(text).not.toContain('<img src=x')
    expect(text).not.toContain('\u202e')
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(page.headers.get('cache-control')).toBe('no-store')
  })

  test('accepts no other signature, no other browser and no second, different answer; it can be declined', async () => {
    const oauth = await client1()
    const signer = fresh()
    const begun = (await beginSignIn(oauth.authorize().url, signer.publicKey)) as Interaction
    const wrong = fresh()
      .sign(Buffer.from(String(begun.body.challenge)))
      .toString('base64url')
    expect((await submitSignature(begun, { public_key: signer.publicKey, signature: wrong })).status).toBe(400)
    expect((await submitSignature(begun, { public_key: fresh().publicKey, signature: wrong })).status).toBe(400)
    const elsewhere = await fetch(begun.url, { headers: { accept: 'application/json' } })
    expect([elsewhere.status, ((await elsewhere.json()) as { error: string }).error]).toEqual([400, 'invalid_request'])
    const declined = (await (await submitSignature(begun, { deny: true })).json()) as { location: string }
    const back = await begun.jar.fetch(new URL(declined.location))
    expect(new URL(back.headers.get('location')!).searchParams.get('error')).toBe('access_denied')
    expect(keysFile().every((byte) => byte === 0)).toBe(false)
  })

  test('stores its key in one file that nobody else can read, and nothing of it elsewhere', async () => {
    const oauth = await client1()
    const { access_token, refresh_token } = await oauth.signIn(fresh())
    const { delegation } = claimsOf(access_token)
    const bytes = keysFile()
    expect(statSync(join(directory, 'sign-in.keys')).mode & 0o777).toBe(0o600)
    const at = bytes.indexOf(Buffer.from(delegation!, 'hex'))
    const seed = bytes.subarray(at + 16, at + 48)
    const journal = readFileSync(join(directory, 'shard-00', '00000000000000000001.log'))
    expect(journal.includes(seed)).toBe(false)
    expect(journal.includes(refresh_token)).toBe(false)
    // The key is a real one.
    expect(sign(null, Buffer.from('x'), privateKeyOf(seed))).toHaveLength(64)
  })
})

describe('abuse', () => {
  test('PKCE: plain and none are refused, and so is another verifier', async () => {
    const oauth = await client1()
    for (const more of [{ code_challenge_method: 'plain' }, { code_challenge: null, code_challenge_method: null }]) {
      const refused = await beginSignIn(oauth.authorize(more).url)
      const location = (refused as Response).headers.get('location')!
      expect(new URL(location).searchParams.get('error')).toBe('invalid_request')
    }
    const { code } = await oauth.code(fresh())
    expect(await oauth.exchange(code, 'x'.repeat(43))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const unproven = await oauth.exchange((await oauth.code(fresh())).code, '')
    expect(unproven).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('a code is for the address that it was sent to', async () => {
    const oauth = await client1()
    for (const redirect_uri of [
      'http://127.0.0.1:4001/callback',
      `${redirectUri}/more`,
      'https://evil.example/callback',
    ]) {
      const { code, verifier } = await oauth.code(fresh())
      const taken = await oauth.exchange(code, verifier, { redirect_uri })
      expect(taken, redirect_uri).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    }
  })

  test('other ways to a token are closed: passwords, secrets, tokens in the address, other people’s sign-outs', async () => {
    const oauth = await client1()
    for (const grant_type of [
      'password',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:device_code',
      'implicit',
    ])
      expect(await oauth.form('/oauth/token', { grant_type, client_id: oauth.id }), grant_type).toMatchObject({
        status: 400,
        body: { error: 'unsupported_grant_type' },
      })
    for (const response_type of ['token', 'id_token', 'code token', 'none']) {
      const refused = (await beginSignIn(oauth.authorize({ response_type }).url)) as Response
      const back = new URL(refused.headers.get('location')!)
      expect(`${back.search}${back.hash}`, response_type).toContain('error=unsupported_response_type')
    }
    const { access_token, refresh_token } = await oauth.signIn(fresh())
    const other = await client1()
    await oauth.form('/oauth/revoke', { token: refresh_token, client_id: other.id })
    expect((await whoami(access_token)).status).toBe(200)
    expect((await oauth.refresh(refresh_token)).status).toBe(200)
  })

  test('a token is valid only as issued: for this board, by it, in its time, for its one sign-in', async () => {
    const oauth = await client1()
    const signer = fresh()
    const { access_token } = await oauth.signIn(signer)
    const others = await oauth.signIn(fresh())
    // Signed with the board's own key, so that only the change can be refused.
    const key = privateKeyOf(Buffer.from(readFileSync(join(directory, 'keys', 'oauth.key'), 'utf8').trim(), 'hex'))
    const made = (changes: object, typ = {}) => forgeToken(access_token, key, changes, typ)
    expect((await whoami(made({}))).status).toBe(200)
    const now = Math.floor(Date.now() / 1000)
    for (const changes of [
      { aud: 'https://else.example/mcp' },
      { aud: board.address },
      { aud: undefined },
      { iss: 'https://else.example' },
      { iss: `${board.address}/` },
      { exp: now - 1 },
      { nbf: now + 600 },
      { sub: claimsOf(others.access_token).sub },
      { delegation: claimsOf(others.access_token).delegation },
      { delegation: undefined },
    ])
      expect((await whoami(made(changes))).status, JSON.stringify(changes)).toBe(401)
    expect((await whoami(made({}, { typ: 'JWT' }))).status).toBe(401)
    // Claims beyond the sign-in's scopes grant nothing.
    const more = made({ scope: 'board:read board:post board:work events:subscribe board:moderate' })
    expect((await whoami(more)).result.structuredContent).toMatchObject({
      scopes: ['board:read', 'board:post', 'board:work', 'events:subscribe'],
    })
  })

  test('redirects: only the registered address, on any loopback port', async () => {
    const oauth = await client1()
    for (const redirect_uri of [
      `${redirectUri}/more`,
      `${redirectUri}?x=1`,
      'http://127.0.0.1.evil.example:3999/callback',
      'https://127.0.0.1:3999/callback',
      'http://localhost:3999/callback',
    ]) {
      const refused = (await beginSignIn(oauth.authorize({ redirect_uri }).url)) as Response
      expect([redirect_uri, refused.status, refused.headers.get('location')]).toEqual([redirect_uri, 400, null])
    }
    expect(await beginSignIn(oauth.authorize({ redirect_uri: 'http://127.0.0.1:4001/callback' }).url)).toHaveProperty(
      'jar',
    )
  })

  test('resource: a token is valid only for this board', async () => {
    const oauth = await client1()
    const refused = (await beginSignIn(oauth.authorize({ resource: 'https://else.example/mcp' }).url)) as Response
    expect(new URL(refused.headers.get('location')!).searchParams.get('error')).toBe('invalid_target')
    const { code, verifier } = await oauth.code(fresh())
    const body = await oauth.exchange(code, verifier, { resource: 'https://else.example/mcp' })
    expect(body).toMatchObject({ status: 400, body: { error: 'invalid_target' } })
  })

  test('a code is used once; its second use revokes everything issued for the first', async () => {
    const oauth = await client1()
    const { code, verifier } = await oauth.code(fresh())
    const { access_token } = (await oauth.exchange(code, verifier)).body as unknown as Tokens
    expect((await whoami(access_token)).status).toBe(200)
    expect(await oauth.exchange(code, verifier)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    await vi.waitFor(async () => expect((await whoami(access_token)).status).toBe(401), patience)
  })

  test('a code of one client is worthless to another', async () => {
    const [oauth, other] = [await client1(), await client1()]
    const { code, verifier } = await oauth.code(fresh())
    expect(await other.exchange(code, verifier)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('a refresh token is used once; its use after the next one ends the whole sign-in', async () => {
    const oauth = await client1()
    const first = await oauth.signIn(fresh())
    const second = (await oauth.refresh(first.refresh_token)).body as unknown as Tokens
    expect(second.refresh_token).not.toBe(first.refresh_token)
    expect((await whoami(second.access_token)).status).toBe(200)
    // Not the same bytes as before: the thief cannot know them.
    const scope = { scope: 'board:read' }
    const reused = await oauth.refresh(first.refresh_token, scope)
    expect(reused).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(await oauth.refresh(second.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    await vi.waitFor(async () => expect((await whoami(second.access_token)).status).toBe(401), patience)
  })

  test('the same refresh, several at once or again shortly after, has one answer, and the sign-in goes on', async () => {
    const oauth = await client1()
    const { refresh_token } = await oauth.signIn(fresh())
    const atOnce = await Promise.all(Array.from({ length: 4 }, () => oauth.refresh(refresh_token)))
    const later = await oauth.refresh(refresh_token)
    for (const each of [...atOnce, later]) expect(each).toMatchObject({ status: 200, body: atOnce[0]!.body })
    const tokens = later.body as unknown as Tokens
    expect((await whoami(tokens.access_token)).status).toBe(200)
    expect((await oauth.refresh(tokens.refresh_token)).status).toBe(200)
  })

  test('a refresh token of another client, or for more than was granted, is refused', async () => {
    const [oauth, other] = [await client1(), await client1()]
    const { refresh_token } = await oauth.signIn(fresh(), { scope: 'board:read' })
    expect(await other.refresh(refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    const more = await oauth.refresh(refresh_token, { scope: 'board:read board:moderate' })
    expect(more).toMatchObject({ status: 400, body: { error: 'invalid_scope' } })
  })

  test('foreign tokens, changed ones, ones in the query and none at all open nothing', async () => {
    const oauth = await client1()
    const { access_token, refresh_token } = await oauth.signIn(fresh())
    const [head, body, signature] = access_token.split('.')
    const claim = (changes: object) =>
      Buffer.from(JSON.stringify({ ...claimsOf(access_token), ...changes })).toString('base64url')
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url')
    const other = privateKeyOf(randomBytes(32))
    const forged = `${head}.${claim({ aud: 'https://else.example/mcp' })}`
    const tokens = [
      `${head}.${claim({ sub: 'f'.repeat(64) })}.${signature}`,
      `${none}.${body}.`,
      `${forged}.${sign(null, Buffer.from(forged), other).toString('base64url')}`,
      refresh_token,
      'x',
    ]
    for (const token of tokens) expect((await whoami(token)).status).toBe(401)
    const query = await fetch(`${board.address}/mcp?access_token=${access_token}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami' } }),
    })
    expect(query.status).toBe(401)
  })
})

describe('an end', () => {
  test('of the delegation ends access and refresh within a second, and the key is overwritten', async () => {
    const oauth = await client1()
    const signer = fresh()
    const { access_token, refresh_token } = await oauth.signIn(signer)
    const { delegation } = claimsOf(access_token)
    expect(keysFile().includes(Buffer.from(delegation!, 'hex'))).toBe(true)
    expect(await client.command(signer, { operation: 'delegation.revoke', target: delegation! })).toMatchObject({
      status: 200,
    })
    expect((await whoami(access_token)).status).toBe(401)
    expect((await callTool(board.address, 'rooms_list', {}, access_token)).status).toBe(401)
    expect(await oauth.refresh(refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    expect(keysFile().includes(Buffer.from(delegation!, 'hex'))).toBe(false)
  })

  test('of the process ends nothing: tokens, used codes and clients are unchanged after a kill', async () => {
    const oauth = await client1()
    const signer = fresh()
    const { code, verifier } = await oauth.code(signer)
    const { access_token, refresh_token } = (await oauth.exchange(code, verifier)).body as unknown as Tokens
    const unused = await oauth.code(signer)
    await board.kill()
    await start()
    expect((await whoami(access_token)).result.structuredContent).toMatchObject({ identity: signer.id })
    expect((await oauth.refresh(refresh_token)).status).toBe(200)
    expect((await oauth.exchange(unused.code, unused.verifier)).status).toBe(200)
    expect(await oauth.exchange(unused.code, unused.verifier)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    })
    expect((await whoami(access_token)).status).toBe(200)
  })

  test('after a restart erases the key immediately, before anybody has requested a sign-in', async () => {
    const oauth = await client1()
    const signer = fresh()
    const { delegation } = claimsOf((await oauth.signIn(signer)).access_token)
    await board.kill()
    await start()
    expect(keysFile().includes(Buffer.from(delegation!, 'hex'))).toBe(true)
    await client.command(signer, { operation: 'delegation.revoke', target: delegation! })
    expect(keysFile().includes(Buffer.from(delegation!, 'hex'))).toBe(false)
  })
})
