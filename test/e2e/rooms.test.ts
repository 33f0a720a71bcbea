/** Rooms as their people see them: roles, invites, policy; every refusal; the same after a restart, a replay and a kill. */
import { createHash } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { solveProof } from '../../src/format/proof-of-work.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type Fields, now, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

const [owner, mod, member, guest, stranger, operator] = [
  'room owner',
  'room moderator',
  'room member',
  'room guest',
  'room stranger',
  'board operator',
].map(person) as [Signer, Signer, Signer, Signer, Signer, Signer]
type Signer = ReturnType<typeof person>

const env = { OPERATORS: operator.id, SHARDS: '2' }
const directory = boardDirectory()
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

type Json = Readonly<Record<string, unknown>>

function dataOf({ status, text }: Answer): Json {
  if (status !== 200) throw new Error(text)
  return (JSON.parse(text) as { data: Json }).data
}

const run = async (who: Signer, fields: Fields): Promise<Json> => dataOf(await client.command(who, fields))
const make = (room: string, fields: object = {}, who = owner) => run(who, { operation: 'room.create', room, ...fields })
const setPolicy = (room: string, policy: object, who = owner) =>
  client.command(who, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })
const change = (operation: string, room: string, target: Signer, who = owner) =>
  client.command(who, { operation, room, target: target.id })
const roomOf = async (who: Signer, room: string) => (await run(who, { operation: 'room.get', room })).room as Json

/** `status code field`, as a caller tells refusals apart. */
const told = ({ status, code, field }: Answer) => `${status} ${code ?? 'ok'}${field === undefined ? '' : ` ${field}`}`

describe('roles', () => {
  test('people join and leave a public room, and each answer says what somebody is now', async () => {
    await make('club', { members: [member.id] })
    const joined = await run(guest, { operation: 'room.join', room: 'club' })
    expect(joined).toMatchObject({
      room: 'club',
      member: { id: guest.id, role: 'member' },
      receipt: { event_id: expect.stringMatching(/^[0-9a-f]{32}$/) },
    })
    expect(await roomOf(guest, 'club')).toMatchObject({ members: 3, role: 'member', owner: owner.id, moderators: [] })
    expect(told(await client.command(guest, { operation: 'room.join', room: 'club' }))).toBe('400 conflict')
    expect(told(await client.command(owner, { operation: 'room.join', room: 'club' }))).toBe('400 conflict')
    const left = await run(guest, { operation: 'room.leave', room: 'club' })
    expect(left.member).toEqual({ id: guest.id, role: 'none' })
    expect(told(await client.command(guest, { operation: 'room.leave', room: 'club' }))).toBe('400 wrong_state')
    expect(told(await client.command(owner, { operation: 'room.leave', room: 'club' }))).toBe('400 wrong_state')
    expect(told(await client.command(guest, { operation: 'room.join', room: 'nowhere' }))).toBe('400 not_found room')
  })

  test('the owner alone adds, removes, promotes and gives away', async () => {
    await make('house')
    for (const operation of [
      'room.member.add',
      'room.member.remove',
      'room.moderator.add',
      'room.moderator.remove',
      'room.owner.transfer',
    ]) {
      expect(told(await change(operation, 'house', guest, stranger))).toBe('403 forbidden')
      expect(told(await change(operation, 'nowhere', guest))).toBe('400 not_found room')
      expect(told(await client.command(owner, { operation, room: 'house', target: 'ada' }))).toBe(
        '400 invalid_field target',
      )
    }
    expect(told(await change('room.member.remove', 'house', guest))).toBe('400 not_found target')
    expect(told(await change('room.moderator.remove', 'house', guest))).toBe('400 not_found target')
    expect(told(await change('room.member.add', 'house', owner))).toBe('400 conflict target')
    expect(told(await change('room.member.add', 'house', guest))).toBe('200 ok')
    expect(told(await change('room.member.add', 'house', guest))).toBe('400 conflict target')
    expect(told(await change('room.moderator.add', 'house', guest))).toBe('200 ok')
    expect(told(await change('room.moderator.add', 'house', guest))).toBe('400 conflict target')
    expect(told(await change('room.member.add', 'house', stranger, guest))).toBe('403 forbidden')
    expect(await roomOf(owner, 'house')).toMatchObject({ moderators: [guest.id], members: 2, role: 'owner' })
    expect(dataOf(await change('room.moderator.remove', 'house', guest)).member).toEqual({
      id: guest.id,
      role: 'member',
    })
    expect(told(await change('room.member.remove', 'house', owner))).toBe('400 wrong_state target')
    expect(told(await change('room.member.remove', 'house', guest))).toBe('200 ok')
    expect(told(await client.command(guest, { operation: 'room.join', room: 'house' }))).toBe('403 forbidden')
    expect(told(await change('room.member.add', 'house', guest))).toBe('200 ok')
    expect(told(await change('room.owner.transfer', 'house', owner))).toBe('400 conflict target')
    expect(dataOf(await change('room.owner.transfer', 'house', guest)).member).toEqual({ id: guest.id, role: 'owner' })
    expect(told(await change('room.member.add', 'house', stranger))).toBe('403 forbidden')
    expect(await roomOf(owner, 'house')).toMatchObject({ owner: guest.id, role: 'member', members: 2 })
  })

  test('a room without an owner is the operator’s, and the operator may give it away', async () => {
    expect(told(await change('room.moderator.add', 'lobby', mod, stranger))).toBe('403 forbidden')
    expect(told(await change('room.moderator.add', 'lobby', mod, operator))).toBe('200 ok')
    await client.post(stranger, { room: 'found', text: 'made by a post' })
    expect(await roomOf(stranger, 'found')).not.toHaveProperty('owner')
    expect(told(await change('room.owner.transfer', 'found', guest, operator))).toBe('200 ok')
    expect(told(await change('room.owner.transfer', 'found', guest, operator))).toBe('403 forbidden')
  })

  test('the seventeenth moderator is one too many', async () => {
    await make('crowd')
    const many = Array.from({ length: 17 }, (_, n) => person(`moderator ${n}`))
    const answers: string[] = []
    for (const each of many) answers.push(told(await change('room.moderator.add', 'crowd', each)))
    expect(answers).toEqual([...Array<string>(16).fill('200 ok'), '400 wrong_state room'])
  })

  test('members are listed with roles, page by page, by command and by GET', async () => {
    await make('list', { members: Array.from({ length: 5 }, (_, n) => person(`listed ${n}`).id) })
    await change('room.moderator.add', 'list', person('listed 3'))
    const seen: Json[] = []
    let query = 'room=list&limit=2'
    for (;;) {
      const page = dataOf(await client.get(`/api/members?${query}`))
      seen.push(...(page.members as Json[]))
      if (page.has_more !== true) break
      query = `room=list&limit=2&cursor=${page.next_cursor}`
    }
    const others = Array.from({ length: 5 }, (_, n) => person(`listed ${n}`).id).filter(
      (id) => id !== person('listed 3').id,
    )
    expect(seen).toEqual([
      { id: owner.id, role: 'owner' },
      { id: person('listed 3').id, role: 'moderator' },
      ...others.sort().map((id) => ({ id, role: 'member' })),
    ])
    expect(await run(stranger, { operation: 'room.members', room: 'list', limit: 1 })).toMatchObject({ has_more: true })
    expect(told(await client.get('/api/members?room=list&cursor=AAAA'))).toBe('400 invalid_field cursor')
    expect(told(await client.get('/api/members?room=nowhere'))).toBe('400 not_found room')
  })
})

describe('a private room', () => {
  const room = 'cellar'

  test('lets in whom its owner adds, and shows itself to nobody else', async () => {
    await make(room, { visibility: 'private', members: [member.id] })
    for (const operation of ['room.join', 'room.leave', 'room.members', 'room.policy.get', 'room.modlog']) {
      expect(told(await client.command(stranger, { operation, room })), operation).toMatch(/^403 private_room/)
    }
    expect(told(await change('room.member.add', room, guest, stranger))).toMatch(/^403 private_room/)
    expect(told(await setPolicy(room, { closed: true }, stranger))).toMatch(/^403 private_room/)
    expect(told(await client.command(operator, { operation: 'room.members', room }))).toMatch(/^403 private_room/)
    for (const path of ['members', 'modlog', 'room']) {
      expect(told(await client.get(`/api/${path}?room=${room}`))).toBe('403 private_room')
    }
    expect(told(await change('room.member.add', room, guest))).toBe('200 ok')
    expect(told(await client.post(guest, { room, text: 'inside' }))).toBe('200 ok')
    expect(told(await change('room.member.remove', room, guest))).toBe('200 ok')
    expect(told(await client.post(guest, { room, text: 'outside' }))).toBe('403 private_room room')
    expect(told(await client.command(guest, { operation: 'events.list', room }))).toMatch(/^403 private_room/)
    const { members } = await run(member, { operation: 'room.members', room })
    expect((members as Json[]).map(({ role }) => role)).toEqual(['owner', 'member'])
  })

  test('an invite is shown once, works once, and every bad one is refused in the same words', async () => {
    const signed = client.sign(owner, { operation: 'room.invite.create', room, ttl: 3600 })
    const first = dataOf(await client.send(signed.body)).invite as Json
    expect(first).toMatchObject({ id: signed.eventId, room, expires_at: expect.any(Number) })
    expect(first.code).toMatch(new RegExp(`^${room}\\.[A-Za-z0-9_-]{43}$`))
    const again = dataOf(await client.send(signed.body))
    expect(again.receipt).toMatchObject({ duplicate: true })
    expect(again.invite).toEqual({ id: first.id, room, expires_at: first.expires_at, secret_shown: true })

    const bound = await run(owner, { operation: 'room.invite.create', room, target: guest.id })
    const { code: boundCode, target } = bound.invite as Json
    expect(target).toBe(guest.id)
    const accept = (who: Signer, code: unknown) =>
      client.command(who, { operation: 'room.invite.accept', data: JSON.stringify({ schema: 1, code }) })
    const wrongSecret = `${String(first.code).slice(0, -43)}${'A'.repeat(43)}`
    const bad = [
      await accept(stranger, wrongSecret),
      await accept(stranger, String(first.code).replace(room, 'nowhere')),
      await accept(stranger, String(first.code).replace(room, 'club')),
      await accept(stranger, boundCode),
    ]
    expect(told(await accept(member, first.code))).toBe('400 conflict')
    expect(dataOf(await accept(stranger, first.code))).toMatchObject({
      room,
      member: { id: stranger.id, role: 'member' },
    })
    bad.push(await accept(person('latecomer'), first.code))
    expect(bad.map(told)).toEqual(Array(5).fill('403 forbidden'))
    expect(new Set(bad.map(({ text }) => text)).size).toBe(1)
    expect(told(await client.post(stranger, { room, text: 'let in' }))).toBe('200 ok')
    expect(told(await accept(guest, boundCode))).toBe('200 ok')
    expect(told(await accept(guest, 'no code'))).toBe('400 invalid_field data')
    expect(told(await client.command(member, { operation: 'room.invite.create', room }))).toBe('403 forbidden')
    for (const ttl of [59, 604_801])
      expect(told(await client.command(owner, { operation: 'room.invite.create', room, ttl }))).toBe(
        '400 invalid_field ttl',
      )
  })

  test('eight invites may be open', async () => {
    await make('gate', { visibility: 'private' })
    const invite = () => client.command(owner, { operation: 'room.invite.create', room: 'gate' })
    const answers: string[] = []
    for (let n = 0; n < 9; n++) answers.push(told(await invite()))
    expect(answers).toEqual([...Array<string>(8).fill('200 ok'), '400 wrong_state room'])
  })

  test('who leaves does not read it any more', async () => {
    expect(told(await client.command(stranger, { operation: 'room.leave', room }))).toBe('200 ok')
    expect(told(await client.command(stranger, { operation: 'room.get', room }))).toMatch(/^403 private_room/)
  })
})

describe('policy', () => {
  const defaults = {
    write: 'open',
    reply: 'anyone',
    rules: '',
    promotion: 'allow',
    front_page: true,
    top_level_per_day: 0,
    posts_per_minute: 0,
    closed: false,
    closes_at: 0,
    max_events: 0,
    proof_bits: 0,
    ttl_max: 0,
    archive: true,
  }

  test('a key left out keeps its value; unknown keys, no keys and wrong values are refused', async () => {
    await make('law')
    expect(await run(stranger, { operation: 'room.policy.get', room: 'law' })).toEqual({
      room: 'law',
      policy: defaults,
    })
    const set = dataOf(await setPolicy('law', { write: 'members', rules: 'Be kind.' }))
    expect(set.policy).toEqual({ ...defaults, write: 'members', rules: 'Be kind.' })
    const next = dataOf(await setPolicy('law', { top_level_per_day: 7 }))
    expect(next.policy).toEqual({ ...defaults, write: 'members', rules: 'Be kind.', top_level_per_day: 7 })
    expect((await roomOf(stranger, 'law')).policy).toEqual(next.policy)
    expect(told(await setPolicy('law', {}))).toBe('400 missing_field data')
    for (const wrong of [
      { schema: 1, write: 'open' },
      { write: 'nobody' },
      { reply: 'open' },
      { promotion: 'ban' },
      { top_level_per_day: 1001 },
      { proof_bits: 29 },
      { closed: 'yes' },
      { front_page: null },
      { rules: 'a\0b' },
    ])
      expect(told(await setPolicy('law', wrong)), JSON.stringify(wrong)).toBe('400 invalid_field data')
    expect(told(await setPolicy('law', { rules: 'ä'.repeat(1025) }))).toBe('400 too_large data')
    expect(told(await setPolicy('law', { rules: 'ä'.repeat(1024) }))).toBe('200 ok')
    expect(told(await client.command(owner, { operation: 'room.policy.set', room: 'law' }))).toBe(
      '400 missing_field data',
    )
  })

  test('a moderator may take the room off the first page and set nothing else', async () => {
    await make('mild')
    await change('room.moderator.add', 'mild', mod)
    expect(told(await setPolicy('mild', { front_page: false }, mod))).toBe('200 ok')
    for (const more of [{ front_page: true }, { front_page: false, closed: true }, { write: 'owner' }])
      expect(told(await setPolicy('mild', more, mod))).toBe('403 forbidden data')
    expect(told(await setPolicy('mild', { front_page: false }, stranger))).toBe('403 forbidden')
    expect(told(await setPolicy('mild', { front_page: false }, operator))).toBe('200 ok')
    expect(told(await setPolicy('mild', { closed: true }, operator))).toBe('403 forbidden data')
  })

  test('write says who begins threads, reply who replies', async () => {
    await make('stage', { members: [member.id] })
    await change('room.moderator.add', 'stage', mod)
    const post = (who: Signer, fields: object = {}) => client.post(who, { room: 'stage', text: 'x', ...fields })
    const root = (await post(stranger)).data.event_id!
    const outcome = async (fields: object) => {
      const found: string[] = []
      for (const who of [owner, mod, member, stranger]) found.push(told(await post(who, fields)))
      return found
    }
    const noThread = '403 room_write_restricted room'
    const noReply = '403 room_reply_restricted reply_to'
    await setPolicy('stage', { write: 'members' })
    expect(await outcome({})).toEqual(['200 ok', '200 ok', '200 ok', noThread])
    expect(await outcome({ reply_to: root })).toEqual(Array(4).fill('200 ok'))
    await setPolicy('stage', { write: 'owner', reply: 'members' })
    expect(await outcome({})).toEqual(['200 ok', noThread, noThread, noThread])
    expect(await outcome({ reply_to: root })).toEqual(['200 ok', '200 ok', '200 ok', noReply])
    await setPolicy('stage', { write: 'open', reply: 'none' })
    expect(await outcome({})).toEqual(Array(4).fill('200 ok'))
    expect(await outcome({ reply_to: root })).toEqual(Array(4).fill(noReply))
    await run(stranger, { operation: 'room.join', room: 'stage' })
    await setPolicy('stage', { write: 'members' })
    expect(told(await post(stranger))).toBe('200 ok')
  })

  test('a closed room is read and takes nothing, until it is opened again', async () => {
    await make('shop')
    const post = (who: Signer) => client.post(who, { room: 'shop', text: 'x' })
    await post(stranger)
    await setPolicy('shop', { closed: true })
    for (const who of [owner, stranger]) expect(told(await post(who))).toBe('400 wrong_state room')
    expect(await roomOf(stranger, 'shop')).toMatchObject({ closed: true, count: 1 })
    expect(dataOf(await client.get('/api/events?room=shop')).events).toHaveLength(1)
    await setPolicy('shop', { closed: false, closes_at: now() - 1 })
    expect(told(await post(owner))).toBe('400 wrong_state room')
    expect(((dataOf(await client.get('/api/rooms?query=shop')).rooms as Json[])[0] as Json).closed).toBe(true)
    await setPolicy('shop', { closes_at: now() + 3600 })
    expect(told(await post(owner))).toBe('200 ok')
    await setPolicy('shop', { closes_at: now() + 2 })
    await vi.waitFor(async () => expect(told(await post(stranger))).toBe('400 wrong_state room'), { timeout: 20_000 })
    const { room } = dataOf(await client.get('/api/room?room=shop'))
    expect((room as Json).closed).toBe(true)
    await setPolicy('shop', { closes_at: 0 })
    expect(told(await post(stranger))).toBe('200 ok')
  })

  test('a full room takes no more posts', async () => {
    await make('box')
    await setPolicy('box', { max_events: 2 })
    const post = (who: Signer) => client.post(who, { room: 'box', text: 'x' })
    expect([told(await post(stranger)), told(await post(owner)), told(await post(owner))]).toEqual([
      '200 ok',
      '200 ok',
      '400 wrong_state room',
    ])
  })

  test('counts of one identity say how long to wait, and spare those who run the room', async () => {
    await make('calm')
    await change('room.moderator.add', 'calm', mod)
    const post = (who: Signer, fields: object = {}) => client.post(who, { room: 'calm', text: 'x', ...fields })
    await setPolicy('calm', { top_level_per_day: 2 })
    const root = (await post(stranger)).data.event_id!
    await post(stranger)
    const third = await post(stranger)
    expect(told(third)).toBe('429 quota_exhausted')
    const wait = (JSON.parse(third.text) as { error: { retry_after: number } }).error.retry_after
    expect(third.headers['retry-after']).toBe(String(wait))
    expect(Math.abs((now() + wait) % 86_400) % 86_399).toBeLessThan(2)
    expect(told(await post(stranger, { reply_to: root }))).toBe('200 ok')
    for (const who of [owner, owner, owner, mod, mod, mod]) expect(told(await post(who))).toBe('200 ok')

    await setPolicy('calm', { top_level_per_day: 0, posts_per_minute: 1 })
    expect(told(await post(guest, { reply_to: root }))).toBe('200 ok')
    const soon = await post(guest)
    expect(told(soon)).toBe('429 rate_limited')
    expect(Number(soon.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(soon.headers['retry-after'])).toBeLessThanOrEqual(60)
    expect(told(await post(mod))).toBe('200 ok')
    expect(told(await client.post(guest, { room: 'club', text: 'elsewhere' }))).toBe('200 ok')
  })

  test('a room may ask for a short life, or for a proof of work', async () => {
    await make('brief')
    await setPolicy('brief', { ttl_max: 60 })
    for (const fields of [{}, { ttl: 61 }])
      expect(told(await client.post(owner, { room: 'brief', text: 'x', ...fields }))).toBe('400 invalid_field ttl')
    expect(told(await client.post(owner, { room: 'brief', text: 'x', ttl: 60 }))).toBe('200 ok')
    await setPolicy('brief', { ttl_max: 0, proof_bits: 8 })
    const signed = client.sign(stranger, { operation: 'post', room: 'brief', text: 'worked for' })
    const withProof = (proof: string) => client.send(JSON.stringify({ ...JSON.parse(signed.body), proof }))
    const bare = await client.send(signed.body)
    expect(told(bare)).toBe('400 proof_required proof')
    expect(bare.text).toContain('8 bits')
    const other = createHash('sha256').update('another command').digest('hex')
    for (const short of [solveProof(signed.sha256, 4)!, solveProof(other, 8)!, 'nonsense'])
      expect(told(await withProof(short)), short).toBe('400 proof_required proof')
    expect(told(await withProof(solveProof(signed.sha256, 8)!))).toBe('200 ok')
  })
})

describe('in a room that is not archived', () => {
  test('posts stay out of the export', async () => {
    await make('vapour')
    await setPolicy('vapour', { archive: false })
    await client.post(stranger, { room: 'vapour', text: 'not for keeps' })
    const lines = (await client.get('/v1/export')).text
    expect(lines).not.toContain('not for keeps')
    expect(dataOf(await client.get('/api/events?room=vapour')).events).toHaveLength(1)
  })
})

test('after a restart, a replay of the journals and a kill, all of it is as it was', async () => {
  const rooms = ['club', 'house', 'found', 'crowd', 'cellar', 'law', 'mild', 'stage', 'shop', 'calm']
  const everything = async () => {
    const found: unknown[] = []
    for (const room of rooms) {
      for (const operation of ['room.get', 'room.members', 'room.policy.get', 'room.modlog'])
        found.push(await run(room === 'cellar' ? member : guest, { operation, room }))
      if (room !== 'cellar')
        for (const path of ['room', 'members', 'modlog'])
          found.push(dataOf(await client.get(`/api/${path}?room=${room}`)))
    }
    found.push(told(await client.command(owner, { operation: 'room.invite.create', room: 'gate' })))
    found.push(told(await client.post(stranger, { room: 'law', text: 'x' })))
    return found
  }
  const before = await everything()
  expect(before.at(-2)).toBe('400 wrong_state room')
  const restart = async (end: () => Promise<unknown>) => {
    await end()
    board = await startBoard({ directory, env })
    client.close()
    client = await Client.of(board)
  }
  await restart(() => board.stop())
  expect(await everything()).toEqual(before)
  await restart(() => board.kill())
  expect(await everything()).toEqual(before)
  await restart(async () => {
    await board.stop()
    for (const each of ['shard-00/snapshots', 'shard-01/snapshots', 'log/feed-snapshots'])
      rmSync(join(directory, each), { recursive: true, force: true })
  })
  expect(await everything()).toEqual(before)
})
