/** Retry memory is bounded per identity: when it is full, only that identity is refused. */
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ada, ben] = [person('ada'), person('ben')]
const limits = { request_ids_per_identity_per_day: 3, nonces_per_identity_per_10_minutes: 9 }
const env = { SHARDS: '1', BROADSIDE_LIMITS: 'on', LIMITS: JSON.stringify(limits) }

test('an identity without request ids left can post without them, and no other is refused, also after a stop or kill', async () => {
  const directory = boardDirectory()
  let board = await startBoard({ directory, env })
  let client = await Client.of(board)
  const post = (by: typeof ada, request_id: string) => client.post(by, { room: 'lobby', text: request_id, request_id })
  const first = client.sign(ada, { operation: 'post', room: 'lobby', text: 'r0', request_id: 'r0' })
  expect((await client.send(first.body)).status).toBe(200)
  for (const each of ['r1', 'r2']) expect((await post(ada, each)).status).toBe(200)
  for (const end of ['stop', 'kill', undefined] as const) {
    const refused = await post(ada, 'fresh')
    expect(refused).toMatchObject({ status: 429, code: 'quota_exhausted', field: 'request_id' })
    expect(refused.text).toContain('this identity has reached the limit of request ids per 24 h')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(80_000)
    expect((await post(ada, 'r1')).data.receipt).toMatchObject({ duplicate: true })
    expect((await client.send(first.body)).data.receipt).toMatchObject({ duplicate: true })
    expect((await client.post(ada, { room: 'lobby', text: 'without one' })).status).toBe(200)
    expect((await post(ben, `of ben ${end}`)).status).toBe(200)
    if (end === undefined) break
    await board[end]()
    client.close()
    board = await startBoard({ directory, env })
    client = await Client.of(board)
  }
  for (let n = 0; n < 9; n++) await client.post(ada, { room: 'lobby', text: `more ${n}` })
  const spent = await client.post(ada, { room: 'lobby', text: 'one more' })
  expect(spent).toMatchObject({ status: 429, code: 'quota_exhausted' })
  expect(Number(spent.headers['retry-after'])).toBeLessThanOrEqual(600)
  expect((await client.post(ben, { room: 'lobby', text: 'still here' })).status).toBe(200)
  client.close()
})

test('a network has a bounded number of request ids, whatever its keys; another network is unaffected', async () => {
  const shared = { request_ids_per_network_per_day: 4 }
  const directory = boardDirectory()
  const board = await startBoard({
    directory,
    env: { ...env, TRUST_PROXY: 'x-client', LIMITS: JSON.stringify(shared) },
  })
  const client = await Client.of(board)
  const [here, there] = [client.from('192.0.2.1'), client.from('192.0.2.2')]
  const post = (at: Client, name: string, request_id: string) =>
    at.post(person(name), { room: 'lobby', text: request_id, request_id })
  for (let n = 0; n < 4; n++) expect((await post(here, `key ${n}`, 'once')).status).toBe(200)
  // A retry and a refusal use none.
  expect((await post(here, 'key 0', 'once')).data.receipt).toMatchObject({ duplicate: true })
  const refused = await post(here, 'key 5', 'once')
  expect(refused).toMatchObject({ status: 429, code: 'quota_exhausted', field: 'request_id' })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60)
  expect((await here.post(person('key 5'), { room: 'lobby', text: 'without one' })).status).toBe(200)
  expect((await post(there, 'key 5', 'once')).status).toBe(200)
  for (const each of [client, here, there]) each.close()
})

test('request ids and nonces are known per room and per area outside of rooms, as the documents say', async () => {
  const client = await Client.of(await startBoard({ directory: boardDirectory(), env: {} }))
  const nonce = 'only-once-in-each-room'
  const post = (room: string) => client.post(ada, { room, text: 'one', request_id: 'one' }, { nonce })
  const [first, elsewhere] = [await post('here'), await post('there')]
  expect([first.status, elsewhere.status]).toEqual([200, 200])
  expect(elsewhere.data.event_id).not.toBe(first.data.event_id)
  const again = (room: string) => client.post(ada, { room, text: 'one', request_id: 'one' })
  expect((await again('here')).data).toMatchObject({ event_id: first.data.event_id, receipt: { duplicate: true } })
  expect(await client.post(ada, { room: 'here', text: 'two' }, { nonce })).toMatchObject({ code: 'nonce_reused' })
  const profile = { operation: 'identity.register', handle: 'ada', request_id: 'one' }
  expect(await client.command(ada, profile, { nonce })).toMatchObject({ status: 200 })

  const documents = ['/for-agents', '/capabilities', '/openapi.json']
  for (const path of documents) expect((await client.get(path)).text, path).toContain('per identity and per room')
  expect((await client.get('/docs/limits')).text).toContain('a repeat must go to the same room')
  expect((await client.get('/docs/post')).text).toContain('a repeat acts once if it goes to the same room')
  client.close()
})
