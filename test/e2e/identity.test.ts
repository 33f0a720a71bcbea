import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseEntry } from '../../actors/records/entry.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, newNonce, now, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ada, ben, eve, operator] = [person('ada'), person('ben'), person('eve'), person('operator')]
const directory = boardDirectory()
const env = { OPERATORS: operator.id, SHARDS: '2' }
let board: Board
let client: Client

type Identity = {
  readonly id: string
  readonly public_key: string
  readonly handle?: string
  readonly profile?: object
  readonly previous_keys?: readonly string[]
  readonly suspended?: { readonly reason: string }
}

async function identity(target: string): Promise<Identity> {
  const answer = await client.send(JSON.stringify({ operation: 'identity.get', target }))
  expect(answer.code).toBe(undefined)
  return answer.data.identity as unknown as Identity
}

/** A rotation signed by the old key and proved by the new one. */
function rotation(from: typeof ada, to: typeof ada, prover = to) {
  const command = { operation: 'identity.rotate', target: to.publicKey, timestamp: now(), nonce: newNonce() }
  const bytes = signingBytes(client.serviceId, { ...command, public_key: from.publicKey })
  return {
    id: createHash('sha256').update(bytes).digest('hex').slice(0, 32),
    body: JSON.stringify({
      ...command,
      public_key: from.publicKey,
      signature: from.sign(bytes).toString('base64url'),
      proof: prover.sign(bytes).toString('base64url'),
    }),
  }
}

/** Ends the board so that its next start either reads snapshots or replays every frame. */
async function again(how: 'stop' | 'kill'): Promise<void> {
  client.close()
  if (how === 'stop') await board.stop()
  else await board.kill()
  board = await startBoard({ directory, env })
  client = await Client.of(board)
}

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

describe('profiles', () => {
  const data = JSON.stringify({
    schema: 1,
    description: 'Reviews Rust. ünïcode',
    capabilities: ['review', 'rust'],
    links: ['https://example.com/ada?x=1'],
  })

  test('a profile is shown wherever the identity is looked up, and can be emptied', async () => {
    const set = await client.command(ada, { operation: 'identity.profile.set', data })
    expect(set.data.identity).toMatchObject({ id: ada.id, profile: { capabilities: ['review', 'rust'] } })
    expect(set.data.receipt).not.toHaveProperty('log_index')
    for (const target of [ada.id, ada.publicKey])
      expect((await identity(target)).profile).toMatchObject({ description: 'Reviews Rust. ünïcode' })
    await client.command(ben, { operation: 'identity.profile.set', data })
    const emptied = await client.command(ben, { operation: 'identity.profile.set', data: '{"schema":1}' })
    expect(emptied.data.identity).not.toHaveProperty('profile')
  })

  test.each([
    ['invalid_field', { capabilities: Array.from({ length: 17 }, (_, n) => `c${n}`) }],
    ['invalid_field', { capabilities: ['Rust'] }],
    ['invalid_field', { capabilities: ['rust', 'rust'] }],
    ['invalid_field', { links: Array(9).fill('https://example.com') }],
    ['invalid_field', { links: ['ftp://example.com'] }],
    ['invalid_field', { links: ['javascript:alert(1)'] }],
    ['invalid_field', { links: ['https://user:secret@example.com'] }],
    ['invalid_field', { links: ['https://[bad'] }],
    ['invalid_field', { bio: 'x' }],
  ])('%s: %j', async (code, part) => {
    const fields = { operation: 'identity.profile.set', data: JSON.stringify({ schema: 1, ...part }) }
    const field = `data.${Object.keys(part)[0]}`
    expect(await client.command(eve, fields)).toMatchObject({ status: 400, code, field })
  })

  test.each([
    ['x', 2049],
    ['é', 1025],
  ])('a description with too many bytes is too_large, in any script: %s', async (letter, count) => {
    const data = JSON.stringify({ schema: 1, description: letter.repeat(count) })
    const answer = await client.command(eve, { operation: 'identity.profile.set', data })
    expect(answer).toMatchObject({ status: 400, code: 'too_large', field: 'data.description' })
    expect(answer.text).toContain(`${Buffer.byteLength(letter) * count} bytes, 2048 are allowed`)
  })
})

describe('handles', () => {
  const register = (signer: typeof ada, handle: string) =>
    client.command(signer, { operation: 'identity.register', handle })

  test('a handle that looks like a taken or reserved one is refused', async () => {
    expect((await register(ben, 'will-15')).data.identity).toMatchObject({ handle: 'will-15' })
    for (const handle of [
      'will-15',
      'wi1l-15',
      'wl1i_l5',
      'vvill-is',
      'will_i5',
      'admin',
      'adm1n',
      'br0ads-ide',
      'r00t',
      'm0derat0r',
    ])
      expect([handle, await register(eve, handle)]).toMatchObject([
        handle,
        { status: 400, code: 'name_taken', field: 'handle' },
      ])
    const posted = await client.post(eve, { text: 'hello', handle: 'vvi11-15' })
    expect(posted.data.handle_not_applied).toBe('confusable')
    expect((await client.post(eve, { text: 'hello', handle: 'adrnin' })).data.handle_not_applied).toBe('reserved')
    expect((await client.post(eve, { text: 'hello', handle: 'will-15' })).data.handle_not_applied).toBe('taken')
    expect((await register(eve, 'eve')).data.identity).toMatchObject({ handle: 'eve' })
    expect(await register(eve, 'eve2')).toMatchObject({ code: 'conflict' })
    expect((await register(eve, 'eve')).status).toBe(200)
  })
})

describe('rotation', () => {
  const next = person('ada, second key')
  const third = person('ada, third key')
  let retry: { id: string; body: string }
  let before: string

  test('the id stays, the new key writes as the identity, and the old key is refused', async () => {
    before = (await client.post(ada, { text: 'with the first key', handle: 'ada' })).data.event_id!
    const old = client.sign(ada, { operation: 'post', text: 'sent before, repeated after' })
    const first = await client.send(old.body)
    retry = rotation(ada, next)
    const rotated = await client.send(retry.body)
    expect(rotated.data.identity).toMatchObject({
      id: ada.id,
      public_key: next.publicKey,
      previous_keys: [ada.publicKey],
      handle: 'ada',
    })
    expect(rotated.data.receipt).toMatchObject({ event_id: retry.id })
    expect(rotated.data.receipt?.log_index).toBeTypeOf('number')
    expect(await client.post(ada, { text: 'x' })).toMatchObject({
      status: 400,
      code: 'key_rotated',
      field: 'public_key',
    })
    expect(await client.command(ada, { operation: 'identity.get' })).toMatchObject({ code: 'key_rotated' })
    const posted = (await client.post(next, { text: 'with the second key' })).data.event!
    expect(posted.author).toEqual({ id: ada.id, public_key: next.publicKey, handle: 'ada' })
    expect((await client.get(`/api/events/${posted.event_id}`)).data.event?.author).toEqual(posted.author)
    expect((await client.get(`/api/events/${before}`)).data.event?.author.public_key).toBe(ada.publicKey)
    const repeated = await client.send(old.body)
    expect(repeated.data.receipt).toMatchObject({ event_id: first.data.event_id, duplicate: true })
    for (const target of [ada.id, 'ada', ada.publicKey, next.publicKey])
      expect((await identity(target)).id).toBe(ada.id)
  })

  test('the export of a room has the rotations of its authors, and no others', async () => {
    await client.post(person('who never rotates'), { room: 'elsewhere', text: 'x' })
    const rotationsIn = async (query: string) =>
      (await client.get(`/v1/export${query}`)).text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { type: string; identity?: string })
        .filter(({ type }) => type === 'rotation')
        .map(({ identity }) => identity)
    expect(await rotationsIn('')).toContain(ada.id)
    expect(await rotationsIn('?room=lobby')).toContain(ada.id)
    expect(await rotationsIn('?room=elsewhere')).toEqual([])
  })

  test('repeating the same rotation is recognized as a duplicate', async () => {
    const again = await client.send(retry.body)
    expect(again.data).toMatchObject({ identity: { id: ada.id }, receipt: { event_id: retry.id, duplicate: true } })
  })

  test('the leaf in the public log names the rotation, and no room', async () => {
    const { tree_size } = (await client.get('/api/log/checkpoint')).data
    const entries: string[] = []
    for (let start = 0; start < tree_size!; start += 256) {
      const { text } = await client.get(`/api/log/leaves?start=${start}&end=${Math.min(tree_size!, start + 256)}`)
      entries.push(...(JSON.parse(text) as { data: { entries: string[] } }).data.entries)
    }
    const leaves = entries.map((entry) => parseEntry(Buffer.from(entry, 'base64'))!)
    const found = leaves.filter((leaf) => leaf.get('kind') === 'rotate')
    expect(found.map((leaf) => [leaf.get('event'), leaf.get('room'), leaf.get('seq')])).toEqual([[retry.id, '-', '-']])
  })

  test.each([
    ['bad_signature', 'proof', () => rotation(ben, person('fresh'), person('somebody else'))],
    ['conflict', 'target', () => rotation(ben, next)],
    ['conflict', 'target', () => rotation(ben, ada)],
    ['conflict', 'target', () => rotation(ben, eve)],
    ['conflict', 'target', () => rotation(ben, ben)],
    ['key_rotated', 'public_key', () => rotation(ada, person('fresh'))],
  ])('%s of %s', async (code, field, made) => {
    expect(await client.send(made().body)).toMatchObject({ status: 400, code, field })
  })

  test('a key that acted only in private counts as used, and only that key can see so', async () => {
    const hermit = person('hermit')
    await client.command(hermit, { operation: 'room.create', room: 'cave', visibility: 'private' })
    expect(await client.send(rotation(ben, hermit).body)).toMatchObject({ code: 'conflict', field: 'target' })
    expect((await client.command(hermit, { operation: 'identity.get' })).data.identity).toMatchObject({ id: hermit.id })
    expect(await client.command(ben, { operation: 'identity.get', target: hermit.id })).toMatchObject({
      code: 'not_found',
    })
  })

  test.each(['stop', 'kill'] as const)('it survives a %s, and a second one chains to the same id', async (how) => {
    await again(how)
    const key = how === 'stop' ? next : third
    const fresh = how === 'stop' ? third : person('ada, fourth key')
    expect(await client.post(ada, { text: 'x' })).toMatchObject({ code: 'key_rotated' })
    expect((await client.post(key, { text: 'x' })).data.event?.author.id).toBe(ada.id)
    expect((await client.send(rotation(key, fresh).body)).data.identity).toMatchObject({ public_key: fresh.publicKey })
    expect(await client.post(key, { text: 'x' })).toMatchObject({ code: 'key_rotated' })
    expect((await identity(key.publicKey)).id).toBe(ada.id)
  })
})

describe('suspension', () => {
  const suspend = (signer: typeof ada, target: string, operation = 'identity.suspend') =>
    client.command(signer, { operation, target, reason: 'floods' } satisfies Fields)

  test('writes are refused and reads allowed, visibly to everybody, until the suspension ends', async () => {
    expect((await suspend(operator, eve.id)).data).toMatchObject({ suspension: { target: eve.id, suspended: true } })
    expect((await identity('eve')).suspended).toMatchObject({ reason: 'floods' })
    expect(await client.post(eve, { text: 'x' })).toMatchObject({ status: 403, code: 'suspended' })
    expect((await client.command(eve, { operation: 'identity.get' })).status).toBe(200)
    await again('kill')
    expect(await client.post(eve, { text: 'x' })).toMatchObject({ status: 403, code: 'suspended' })
    expect(await suspend(operator, eve.id)).toMatchObject({ status: 400, code: 'wrong_state' })
    const ended = await suspend(operator, eve.id, 'identity.unsuspend')
    expect(ended.data).toMatchObject({ suspension: { target: eve.id, suspended: false } })
    expect((await client.post(eve, { text: 'x' })).status).toBe(200)
    expect(await identity('eve')).not.toHaveProperty('suspended')
    expect(await suspend(operator, eve.id, 'identity.unsuspend')).toMatchObject({ status: 400, code: 'wrong_state' })
    await again('stop')
    expect((await client.post(eve, { text: 'x' })).status).toBe(200)
  })

  test('only operators can suspend, but neither themselves nor the board', async () => {
    expect(await suspend(eve, ben.id)).toMatchObject({ status: 403, code: 'forbidden' })
    expect(await suspend(eve, ben.id, 'identity.unsuspend')).toMatchObject({ status: 403, code: 'forbidden' })
    expect(await suspend(operator, operator.id)).toMatchObject({ status: 400, code: 'invalid_field', field: 'target' })
    const { service_identity: own } = (await client.get('/capabilities')).data as { service_identity?: { id: string } }
    expect(await suspend(operator, own!.id)).toMatchObject({ status: 400, code: 'invalid_field', field: 'target' })
    expect(await suspend(eve, own!.id)).toMatchObject({ status: 403, code: 'forbidden' })
  })
})

test('events are listed by handle, and identities by latest activity', async () => {
  const mine = await client.send(JSON.stringify({ operation: 'identity.events', target: 'eve', limit: 1 }))
  expect(mine.data.events).toMatchObject([{ author: { id: eve.id } }])
  expect(mine.data.has_more).toBe(true)
  expect(await client.send(JSON.stringify({ operation: 'identity.events', target: 'nobody' }))).toMatchObject({
    code: 'not_found',
  })
  await client.post(ben, { text: 'the latest' })
  const listed = (await client.get('/api/identities')).data.identities!
  expect(listed[0]?.id).toBe(ben.id)
  expect((await client.get('/api/identities?query=ev')).data.identities?.map(({ handle }) => handle)).toEqual(['eve'])
})
