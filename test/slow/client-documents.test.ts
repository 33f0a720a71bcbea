/**
 * An unregistered client: its id is the address of a document about itself (client ID metadata document), which the board reads there over
 * real TLS before anybody signs in. The whole flow for one, and every document that is rejected.
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { localAuthority, localCertificate, localKey } from '../support/certificate.ts'
import { callTool, OauthClient, type Tokens } from '../support/oauth-client.ts'
import { beginSignIn, type Interaction, signIn } from '../support/sign-in.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const redirect_uri = 'https://app.example/signed-in'
/** How often each path was requested. */
const asked = new Map<string, number>()
let origin = ''
let plainOrigin = ''
let trusting: Board
const listen: RequestListener = ({ url = '' }, response) => {
  asked.set(url, (asked.get(url) ?? 0) + 1)
  const about = (more: object = {}) =>
    JSON.stringify({
      client_id: `${origin}${url}`,
      client_name: 'An <i>app</i> by its address',
      redirect_uris: [redirect_uri],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...more,
    })
  const json = { 'content-type': 'application/json' }
  if (url === '/slow.json') response.writeHead(200, json).write('{')
  else if (url === '/large.json') response.writeHead(200, json).end(about({ tos: 'x'.repeat(65_536) }))
  else if (url === '/other.json') response.writeHead(200, json).end(about({ client_id: `${origin}/app.json` }))
  else if (url === '/moved.json') response.writeHead(302, { location: `${origin}/app.json` }).end()
  else if (url === '/typed.json') response.writeHead(200, { 'content-type': 'text/html' }).end(about())
  else if (url === '/secret.json')
    response.writeHead(200, json).end(about({ token_endpoint_auth_method: 'client_secret_post' }))
  else response.writeHead(200, json).end(about())
}
const secure = createServer({ cert: localCertificate, key: localKey }, listen)
const plain = createHttpServer(listen)

const boardThat = (env: Record<string, string>) => startBoard({ directory: boardDirectory(), env })

beforeAll(async () => {
  for (const server of [secure, plain]) await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  origin = `https://localhost:${(secure.address() as AddressInfo).port}`
  plainOrigin = `http://localhost:${(plain.address() as AddressInfo).port}`
  trusting = await boardThat({ BROADSIDE_LOOPBACK: '1', NODE_EXTRA_CA_CERTS: authorityFile() })
})
afterAll(() => {
  for (const server of [secure, plain]) {
    server.closeAllConnections()
    server.close()
  }
})

function authorityFile(): string {
  const file = join(boardDirectory(), 'authority.pem')
  writeFileSync(file, localAuthority)
  return file
}

function clientAt(path: string, board = trusting): OauthClient {
  const client = new OauthClient(board.address)
  client.id = `${path.startsWith('/') ? origin : ''}${path}`
  return client
}

test('it signs a person in, redirects to its own host, calls in their name, and uses its refresh token', async () => {
  const client = clientAt('/app.json')
  const signer = opensslSigner(randomBytes(32))
  const { url, verifier } = client.authorize({ redirect_uri })
  const begun = (await beginSignIn(url, signer.publicKey)) as Interaction
  expect(begun.body).toMatchObject({ client_id: client.id, redirect_host: 'app.example', client_is_untrusted: true })
  const page = await (await begun.jar.fetch(begun.url)).text()
  expect(page).toContain('<strong>app.example</strong>')
  expect(page).toContain(`<code>${client.id}</code> (its own address`)
  expect(page).toContain('An &#60;i&#62;app&#60;/i&#62; by its address')
  const back = await signIn(url, signer)
  expect(`${back.origin}${back.pathname}`).toBe(redirect_uri)
  const { body } = await client.exchange(back.searchParams.get('code')!, verifier, { redirect_uri })
  const { access_token, refresh_token } = body as unknown as Tokens
  const posted = await callTool(trusting.address, 'post', { text: 'from an app by its address' }, access_token)
  expect(posted.result).toMatchObject({ structuredContent: { event: { author: { id: signer.id }, via: 'mcp' } } })
  const whoami = await callTool(trusting.address, 'whoami', {}, access_token)
  expect(whoami.result).toMatchObject({ structuredContent: { identity: signer.id, client_id: client.id } })
  expect((await client.refresh(refresh_token)).status).toBe(200)
  // Fetched once for the whole flow.
  expect(asked.get('/app.json')).toBe(1)
})

test.each([
  ['its document is too large', '/large.json'],
  ['its document names another client', '/other.json'],
  ['its address only points to another', '/moved.json'],
  ['what is there is no JSON by its type', '/typed.json'],
  ['it wants a secret, which nobody gave it', '/secret.json'],
  ['its address never ends to answer', '/slow.json'],
])('nobody signs in, or is redirected, when %s', async (_why, path) => {
  const refused = (await beginSignIn(clientAt(path).authorize({ redirect_uri }).url)) as Response
  expect([refused.status, refused.headers.get('location')]).toEqual([400, null])
  expect(await refused.json()).toMatchObject({
    error: expect.stringMatching(/^invalid_(client|client_metadata|request)$/),
  })
  expect(asked.get(path)).toBe(1)
})

test('a board without limits fetches for any number of requests', async () => {
  for (let n = 0; n < 12; n++) {
    const begun = await beginSignIn(clientAt(`/many-${n}.json`).authorize({ redirect_uri }).url)
    expect([n, begun instanceof Response ? begun.status : 303]).toEqual([n, 303])
  }
})

test('nobody is redirected to another place than the document names', async () => {
  for (const elsewhere of [
    'https://evil.example/signed-in',
    `${redirect_uri}/more`,
    'http://127.0.0.1:3999/callback',
  ]) {
    const refused = (await beginSignIn(clientAt('/app.json').authorize({ redirect_uri: elsewhere }).url)) as Response
    expect([refused.status, refused.headers.get('location')]).toEqual([400, null])
  }
})

test('an address with http, a dot segment or a fragment is not even requested', async () => {
  for (const id of [`${plainOrigin}/plain.json`, `${origin}/a/../plain.json`, `${origin}/x#y`]) {
    const refused = (await beginSignIn(clientAt(id).authorize({ redirect_uri }).url)) as Response
    expect([id, refused.status, refused.headers.get('location')]).toEqual([id, 400, null])
  }
  expect([asked.get('/plain.json'), asked.get('/x')]).toEqual([undefined, undefined])
})

test('a board that may not reach its own machine does not, and one that does not know the certificate authority trusts nothing', async () => {
  const boards = await Promise.all([
    boardThat({ NODE_EXTRA_CA_CERTS: authorityFile() }),
    boardThat({ BROADSIDE_LOOPBACK: '1' }),
  ])
  for (const board of boards)
    for (const path of ['/private.json', `${origin.replace('localhost', '127.0.0.1')}/private.json`]) {
      const refused = (await beginSignIn(clientAt(path, board).authorize({ redirect_uri }).url)) as Response
      expect([refused.status, refused.headers.get('location')]).toEqual([400, null])
    }
  expect(asked.get('/private.json')).toBeUndefined()
  await Promise.all(boards.map((board) => board.kill()))
})
