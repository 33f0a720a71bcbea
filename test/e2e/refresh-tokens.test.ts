/** Refreshing a sign-in on a real board: it counts as a write of the identity, and a reused token ends the sign-in after a restart too. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { opensslSigner } from '../../src/cli/sign.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { callTool, type JsonResponse, OauthClient } from '../support/oauth-client.ts'
import { patience } from '../support/patience.ts'
import { beginSignIn, submitSignature } from '../support/sign-in.ts'

vi.setConfig({ testTimeout: 300_000 })

const few = { writes_per_identity_burst: 8, writes_per_identity_per_minute: 1 }
const env = { BROADSIDE_LIMITS: 'on', LIMITS: JSON.stringify(few) }

test('a client that refreshes endlessly is told to wait, keeps its newest token, and is signed out by any replaced one', async () => {
  const directory = boardDirectory()
  let board = await startBoard({ directory, env })
  const client = new OauthClient(board.address)
  const signer = opensslSigner(randomBytes(32))
  const tokens = [(await client.signIn(signer)).refresh_token]
  let told: JsonResponse = await client.refresh(tokens.at(-1)!)
  while (told.status === 200) {
    tokens.push(String(told.body.refresh_token))
    told = await client.refresh(tokens.at(-1)!)
  }
  expect(told).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } })
  expect(told.body.error_description).toMatch(
    /^a refresh is a write, and this identity .*: wait \d+ seconds \(writes_per_identity_per_minute\)$/,
  )
  expect(Number(told.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(tokens.length).toBeGreaterThan(4)
  expect(tokens.length).toBeLessThanOrEqual(1 + few.writes_per_identity_burst)
  await board.kill()
  board = await startBoard({ directory, env: { BROADSIDE_LIMITS: 'off' }, port: board.port })
  const { status, body } = await client.refresh(tokens.at(-1)!)
  expect(status).toBe(200)
  const whoami = () => callTool(board.address, 'whoami', {}, String(body.access_token))
  expect((await whoami()).status).toBe(200)
  expect(await client.refresh(tokens[0]!)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  expect(await client.refresh(String(body.refresh_token))).toMatchObject({
    status: 400,
    body: { error: 'invalid_grant' },
  })
  await vi.waitFor(async () => expect((await whoami()).status).toBe(401), patience)
  await board.kill()
})

test('a sign-in response leaves the same in the journal however often it is sent', async () => {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env: { BROADSIDE_LIMITS: 'off' } })
  const client = new OauthClient(board.address)
  await client.register()
  const signer = opensslSigner(randomBytes(32))
  const { url, verifier } = client.authorize()
  const begun = await beginSignIn(url, signer.publicKey)
  if (begun instanceof Response) throw new Error(`no sign-in: ${begun.status}`)
  const signature = signer.sign(Buffer.from(String(begun.body.challenge))).toString('base64url')
  const grants = () => {
    const journal = readFileSync(join(directory, 'shard-00', '00000000000000000001.log'), 'latin1')
    return journal.match(/kind\\*":\\*"Grant/g)?.length ?? 0
  }
  const answers = async (count: number) => {
    for (let n = 0; n < count; n++)
      expect((await submitSignature(begun, { public_key: signer.publicKey, signature })).status).toBe(200)
    return grants()
  }
  expect([await answers(1), await answers(20)]).toEqual([1, 1])
  const next = (await (await submitSignature(begun, { public_key: signer.publicKey, signature })).json()) as {
    location: string
  }
  const back = await begun.jar.fetch(new URL(next.location, board.address))
  const code = new URL(back.headers.get('location')!).searchParams.get('code')!
  expect((await client.exchange(code, verifier)).status).toBe(200)
  await board.kill()
})
