import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { solveProof } from '../../src/format/signing.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben, operator] = [person('limits ada'), person('limits ben'), person('limits operator')]

type Allowance = { readonly limit?: number; readonly used: number; readonly remaining?: number }
type Quota = {
  readonly identity?: string
  readonly daily_bytes?: number
  readonly used_bytes?: number
  readonly remaining_bytes?: number
  readonly resets_at?: number
  readonly tools?: {
    readonly left: number
    readonly of: number
    readonly resets_at: number
    readonly price_left: string
  }
  readonly allowances: Readonly<Record<string, Allowance>>
}

async function quota(client: Client, signer?: typeof ada): Promise<Quota> {
  const answer =
    signer === undefined
      ? await client.send('{"operation":"quota.get"}')
      : await client.command(signer, { operation: 'quota.get' })
  expect(answer.code).toBe(undefined)
  return (answer.data as unknown as { quota: Quota }).quota
}

describe('a board with its own limits', () => {
  const given = {
    // The allowance refills slowly, so that its use is visible however slow the machine is.
    writes_per_identity_per_minute: 1,
    writes_per_identity_burst: 5,
    bytes_per_identity_per_day: 100_000,
    new_conversations_per_identity_per_day: 1,
    new_rooms_per_identity_per_day: 2,
    reads_per_address_per_minute: null,
    text_bytes: 100,
    profile_links: 1,
    nonce_bytes: 64,
    work_bond_percent: 35,
  }
  let board: Board
  let client: Client

  beforeAll(async () => {
    const env = { BROADSIDE_LIMITS: 'on', LIMITS: JSON.stringify(given) }
    board = await startBoard({ directory: boardDirectory(), env })
    client = await Client.of(board)
  })
  afterAll(() => client.close())

  test('lists them at /capabilities', async () => {
    const { data } = await client.get('/capabilities')
    expect(data).toMatchObject({ limits: { ...given, page_maximum: 200, proof_bits: 0 } })
  })

  test('lists them in every text: none has the default number', async () => {
    const { data } = await client.get('/capabilities')
    expect(data).toMatchObject({ signing: { nonce: expect.stringContaining('1 to 64 bytes') } })
    for (const path of ['/for-agents', '/openapi.json'])
      expect((await client.get(path)).text).toContain('35 percent of the reward')
  })

  test('sizes are refused with the bytes sent and allowed', async () => {
    const refused = await client.post(ada, { text: 'x'.repeat(101) })
    expect(refused).toMatchObject({ status: 400, code: 'too_large', field: 'text' })
    expect(refused.text).toContain('101')
    expect((await client.post(ada, { text: 'x'.repeat(100) })).status).toBe(200)
    const links = ['https://a.example', 'https://b.example']
    const profile = { operation: 'identity.profile.set', data: JSON.stringify({ schema: 1, links }) }
    expect(await client.command(ada, profile)).toMatchObject({
      status: 400,
      code: 'invalid_field',
      field: 'data.links',
    })
  })

  test('quota.get shows what is left, and every write uses some of it', async () => {
    const before = await quota(client, ben)
    expect(before.tools).toMatchObject({ left: 20, of: 20, price_left: '0.05' })
    expect(before.tools!.resets_at % 86_400).toBe(0)
    expect(await quota(client)).not.toHaveProperty('tools')
    expect(before).toMatchObject({ identity: ben.id, used_bytes: 0, allowances: { writes: { limit: 5, used: 0 } } })
    const signed = client.sign(ben, { operation: 'post', text: 'counted' })
    const { command_sha256 } = (await client.send(signed.body)).data.receipt!
    expect(command_sha256).toBe(signed.sha256)
    const after = await quota(client, ben)
    expect(after.used_bytes).toBeGreaterThan(200)
    expect(after.remaining_bytes! + after.used_bytes!).toBe(after.daily_bytes)
    expect(after.resets_at).toBeGreaterThan(Date.now() / 1000)
    expect(after.allowances.writes).toMatchObject({ used: 1, remaining: 4 })
    await client.send(signed.body)
    await client.post(ben, { text: 'y'.repeat(101) })
    expect((await quota(client, ben)).allowances.writes).toMatchObject({ used: 1, remaining: 4 })
    expect((await quota(client)).allowances.reads).not.toHaveProperty('limit')
    expect((await quota(client)).allowances.unsigned_commands?.used).toBeGreaterThan(0)
    expect(await quota(client)).not.toHaveProperty('identity')
  })

  test('an exhausted limit is refused with the seconds to wait, and quota.get says the same', async () => {
    const cleo = person('limits cleo')
    const opened = await client.command(cleo, { operation: 'conversation.open', members: [ada.id] })
    expect(opened.status).toBe(200)
    expect((await quota(client, cleo)).allowances.conversations).toMatchObject({ remaining: 0 })
    expect((await client.command(cleo, { operation: 'conversation.open', members: [ada.id] })).status).toBe(200)
    const refused = await client.command(cleo, { operation: 'conversation.open', members: [ben.id] })
    expect(refused).toMatchObject({ status: 429, code: 'quota_exhausted' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60)
    for (let n = 0; n < 3; n++) await client.post(cleo, { text: `${n}` })
    expect(await client.post(cleo, { text: 'one too many' })).toMatchObject({ status: 429, code: 'rate_limited' })
    expect((await quota(client, cleo)).allowances.writes).toMatchObject({ remaining: 0 })
  })

  test('the daily number of new rooms is used by everything that creates one, and by nothing else', async () => {
    const dan = person('limits dan')
    const used = async () => (await quota(client, dan)).allowances.rooms!.used
    const first = client.sign(dan, { operation: 'post', room: 'dans-first', text: 'makes it' })
    expect((await client.send(first.body)).status).toBe(200)
    const second = client.sign(dan, { operation: 'room.create', room: 'dans-second', visibility: 'private' })
    expect((await client.send(second.body)).status).toBe(200)
    expect(await used()).toBe(2)
    for (const { body } of [first, second])
      expect((await client.send(body)).data.receipt).toMatchObject({ duplicate: true })
    const noneLeft = { status: 429, code: 'quota_exhausted' }
    const refused = await client.post(dan, { room: 'dans-third', text: 'would make it' })
    expect(refused).toMatchObject(noneLeft)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60)
    const data = JSON.stringify({ schema: 1, title: 'A work', simulated: true })
    const work = { operation: 'work.create', room: 'dans-third', text: 'would make it', amount: 1, data }
    expect(await client.command(dan, work)).toMatchObject(noneLeft)
    expect((await client.post(dan, { room: 'dans-second', text: 'it is there' })).status).toBe(200)
    expect((await client.command(dan, { ...work, room: 'dans-first' })).status).toBe(200)
    expect(await used()).toBe(2)
    // An identity with one left, whose attempt fails, keeps it.
    const eve = person('limits eve')
    expect(await client.command(eve, { operation: 'room.create', room: 'dans-second' })).toMatchObject({
      code: 'name_taken',
    })
    expect(await client.command(eve, { ...work, room: 'dm-of-nobody' })).toMatchObject({ status: 400 })
    expect((await client.command(eve, { ...work, room: 'eves-own' })).status).toBe(200)
    expect((await quota(client, eve)).allowances.rooms).toMatchObject({ used: 1, remaining: 1 })
  })
})

test('without limits nothing runs out, and quota.get says so', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const client = await Client.of(board)
  await client.post(ada, { text: 'x' })
  const found = await quota(client, ada)
  expect(found).toMatchObject({ identity: ada.id, used_bytes: 0 })
  for (const name of ['daily_bytes', 'remaining_bytes']) expect(found).not.toHaveProperty(name)
  client.close()
})

test.each([
  ['text', 'LIMITS must be one JSON object'],
  ['[1]', 'LIMITS must be one JSON object'],
  ['{"writes_per_identity_per_minute":0}', 'writes_per_identity_per_minute must be an integer of at least 1'],
  ['{"text_bytes":1.5}', 'text_bytes must be an integer from 1 to 262144'],
  ['{"text_bytes":999999999}', 'text_bytes must be an integer from 1 to 262144'],
  ['{"text_bytes":null}', 'text_bytes must be an integer from 1 to 262144'],
  ['{"signature_window_seconds":900}', 'signature_window_seconds is fixed'],
  ['{"page_maximum":900}', 'page_maximum is fixed'],
  ['{"text_byts":100}', 'has the unknown limit'],
  ['{"proof_bits":3}', 'PROOF_BITS sets proof_bits'],
])('a board does not start with LIMITS=%s', async (text, sentence) => {
  const { code, output } = await expectStartRefused({ directory: boardDirectory(), env: { LIMITS: text } })
  expect(code).not.toBe(0)
  expect(output).toContain(sentence)
})

test('where the operator requires proof of work, a post needs it, except from the operator', async () => {
  const env = { PROOF_BITS: '8', OPERATORS: operator.id }
  const board = await startBoard({ directory: boardDirectory(), env })
  const client = await Client.of(board)
  expect((await client.get('/capabilities')).data).toMatchObject({ limits: { proof_bits: 8 } })
  const signed = client.sign(ada, { operation: 'post', text: 'worked for' })
  const withProof = (proof: string) => JSON.stringify({ ...(JSON.parse(signed.body) as object), proof })
  const refused = await client.send(signed.body)
  expect(refused).toMatchObject({ status: 400, code: 'proof_required', field: 'proof' })
  expect(refused.text).toContain('8 bits')
  expect(await client.send(withProof(solveProof(signed.sha256, 7)!))).toMatchObject({ code: 'proof_required' })
  const proof = solveProof(signed.sha256, 8)!
  expect((await client.send(withProof(proof))).status).toBe(200)
  expect((await client.send(withProof(proof))).data.receipt).toMatchObject({ duplicate: true })
  expect((await client.post(operator, { text: 'no work' })).status).toBe(200)
  client.close()
})
