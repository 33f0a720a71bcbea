/** Rooms as their members see them: roles and invites; every refusal; the same after a restart, a replay and a kill. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { dataOf, type Json, run as runOn, summaryOf, walk } from '../support/answers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [owner, mod, member, guest, stranger, operator] = [
  'room owner',
  'room moderator',
  'room member',
  'room guest',
  'room stranger',
  'board operator',
].map(person) as [Signer, Signer, Signer, Signer, Signer, Signer]

const env = { OPERATORS: operator.id, SHARDS: '2' }
const directory = boardDirectory()
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

const run = (who: Signer, fields: Fields) => runOn(client, who, fields)
const make = (room: string, fields: object = {}, who = owner) => run(who, { operation: 'room.create', room, ...fields })
const setPolicy = (room: string, policy: object, who = owner) =>
  client.command(who, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })
const change = (operation: string, room: string, target: Signer, who = owner) =>
  client.command(who, { operation, room, target: target.id })
const roomOf = async (who: Signer, room: string) => (await run(who, { operation: 'room.get', room })).room as Json

describe('roles', () => {
  test('people join and leave a public room, and each answer gives their current role', async () => {
    await make('club', { members: [member.id] })
    const joined = await run(guest, { operation: 'room.join', room: 'club' })
    expect(joined).toMatchObject({
      room: 'club',
      member: { id: guest.id, role: 'member' },
      receipt: { event_id: expect.stringMatching(/^[0-9a-f]{32}$/) },
    })
    expect(await roomOf(guest, 'club')).toMatchObject({ members: 3, role: 'member', owner: owner.id, moderators: [] })
    expect(summaryOf(await client.command(guest, { operation: 'room.join', room: 'club' }))).toBe('400 conflict room')
    expect(summaryOf(await client.command(owner, { operation: 'room.join', room: 'club' }))).toBe('400 conflict room')
    const left = await run(guest, { operation: 'room.leave', room: 'club' })
    expect(left.member).toEqual({ id: guest.id, role: 'none' })
    expect(summaryOf(await client.command(guest, { operation: 'room.leave', room: 'club' }))).toBe(
      '400 wrong_state room',
    )
    const stays = await client.command(owner, { operation: 'room.leave', room: 'club' })
    expect([summaryOf(stays), stays.text]).toEqual([
      '400 wrong_state room',
      expect.stringContaining('the owner cannot leave: first give the room to someone else with room.owner.transfer'),
    ])
    expect(summaryOf(await client.command(guest, { operation: 'room.join', room: 'nowhere' }))).toBe(
      '400 not_found room',
    )
  })

  test('only the owner adds, removes, promotes and transfers ownership', async () => {
    await make('house')
    for (const operation of [
      'room.member.add',
      'room.member.remove',
      'room.moderator.add',
      'room.moderator.remove',
      'room.owner.transfer',
    ]) {
      expect(summaryOf(await change(operation, 'house', guest, stranger))).toBe('403 forbidden room')
      expect(summaryOf(await change(operation, 'nowhere', guest))).toBe('400 not_found room')
      expect(summaryOf(await client.command(owner, { operation, room: 'house', target: 'ada' }))).toBe(
        '400 invalid_field target',
      )
    }
    expect(summaryOf(await change('room.member.remove', 'house', guest))).toBe('400 not_found target')
    expect(summaryOf(await change('room.moderator.remove', 'house', guest))).toBe('400 not_found target')
    expect(summaryOf(await change('room.member.add', 'house', owner))).toBe('400 conflict target')
    expect(summaryOf(await change('room.member.add', 'house', guest))).toBe('200 ok')
    expect(summaryOf(await change('room.member.add', 'house', guest))).toBe('400 conflict target')
    expect(summaryOf(await change('room.moderator.add', 'house', guest))).toBe('200 ok')
    expect(summaryOf(await change('room.moderator.add', 'house', guest))).toBe('400 conflict target')
    expect(summaryOf(await change('room.member.add', 'house', stranger, guest))).toBe('403 forbidden room')
    expect(await roomOf(owner, 'house')).toMatchObject({ moderators: [guest.id], members: 2, role: 'owner' })
    expect(dataOf(await change('room.moderator.remove', 'house', guest)).member).toEqual({
      id: guest.id,
      role: 'member',
    })
    expect(summaryOf(await change('room.member.remove', 'house', owner))).toBe('400 wrong_state target')
    expect(summaryOf(await change('room.member.remove', 'house', guest))).toBe('200 ok')
    expect(summaryOf(await client.command(guest, { operation: 'room.join', room: 'house' }))).toBe('403 forbidden room')
    expect(summaryOf(await change('room.member.add', 'house', guest))).toBe('200 ok')
    expect(summaryOf(await change('room.owner.transfer', 'house', owner))).toBe('400 conflict target')
    expect(dataOf(await change('room.owner.transfer', 'house', guest)).member).toEqual({ id: guest.id, role: 'owner' })
    expect(summaryOf(await change('room.member.add', 'house', stranger))).toBe('403 forbidden room')
    expect(await roomOf(owner, 'house')).toMatchObject({ owner: guest.id, role: 'member', members: 2 })
  })

  test('a room without an owner is run by the operator, who may give it an owner', async () => {
    expect(summaryOf(await change('room.moderator.add', 'lobby', mod, stranger))).toBe('403 forbidden room')
    expect(summaryOf(await change('room.moderator.add', 'lobby', mod, operator))).toBe('200 ok')
    await client.post(stranger, { room: 'found', text: 'made by a post' })
    expect(await roomOf(stranger, 'found')).not.toHaveProperty('owner')
    expect(summaryOf(await change('room.owner.transfer', 'found', guest, operator))).toBe('200 ok')
    expect(summaryOf(await change('room.owner.transfer', 'found', guest, operator))).toBe('403 forbidden room')
  })

  test('a seventeenth moderator is refused', async () => {
    await make('crowd')
    const many = Array.from({ length: 17 }, (_, n) => person(`moderator ${n}`))
    const answers: string[] = []
    for (const each of many) answers.push(summaryOf(await change('room.moderator.add', 'crowd', each)))
    expect(answers).toEqual([...Array<string>(16).fill('200 ok'), '400 wrong_state room'])
  })

  test('members are listed with roles, in pages, by command and by GET', async () => {
    await make('list', { members: Array.from({ length: 5 }, (_, n) => person(`listed ${n}`).id) })
    await change('room.moderator.add', 'list', person('listed 3'))
    const seen = await walk('members', async (cursor) =>
      dataOf(await client.get(`/api/members?room=list&limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`)),
    )
    const others = Array.from({ length: 5 }, (_, n) => person(`listed ${n}`).id).filter(
      (id) => id !== person('listed 3').id,
    )
    expect(seen).toEqual([
      { id: owner.id, role: 'owner' },
      { id: person('listed 3').id, role: 'moderator' },
      ...others.sort().map((id) => ({ id, role: 'member' })),
    ])
    expect(await run(stranger, { operation: 'room.members', room: 'list', limit: 1 })).toMatchObject({ has_more: true })
    expect(summaryOf(await client.get('/api/members?room=list&cursor=AAAA'))).toBe('400 invalid_field cursor')
    expect(summaryOf(await client.get('/api/members?room=nowhere'))).toBe('400 not_found room')
  })
})

describe('a private room', () => {
  const room = 'cellar'

  test('admits those whom its owner adds, and is visible to nobody else', async () => {
    await make(room, { visibility: 'private', members: [member.id] })
    for (const operation of ['room.join', 'room.leave', 'room.members', 'room.policy.get', 'room.modlog']) {
      expect(summaryOf(await client.command(stranger, { operation, room })), operation).toMatch(/^403 private_room/)
    }
    expect(summaryOf(await change('room.member.add', room, guest, stranger))).toMatch(/^403 private_room/)
    expect(summaryOf(await setPolicy(room, { closed: true }, stranger))).toMatch(/^403 private_room/)
    expect(summaryOf(await client.command(operator, { operation: 'room.members', room }))).toMatch(/^403 private_room/)
    for (const path of ['members', 'modlog', 'room']) {
      expect(summaryOf(await client.get(`/api/${path}?room=${room}`))).toBe('403 private_room room')
    }
    expect(summaryOf(await change('room.member.add', room, guest))).toBe('200 ok')
    expect(summaryOf(await client.post(guest, { room, text: 'inside' }))).toBe('200 ok')
    expect(summaryOf(await change('room.member.remove', room, guest))).toBe('200 ok')
    expect(summaryOf(await client.post(guest, { room, text: 'outside' }))).toBe('403 private_room room')
    expect(summaryOf(await client.command(guest, { operation: 'events.list', room }))).toMatch(/^403 private_room/)
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
    expect(summaryOf(await accept(member, first.code))).toBe('400 conflict data.code')
    expect(dataOf(await accept(stranger, first.code))).toMatchObject({
      room,
      member: { id: stranger.id, role: 'member' },
    })
    bad.push(await accept(person('latecomer'), first.code))
    expect(bad.map(summaryOf)).toEqual(Array(5).fill('403 forbidden'))
    expect(new Set(bad.map(({ text }) => text)).size).toBe(1)
    expect(summaryOf(await client.post(stranger, { room, text: 'let in' }))).toBe('200 ok')
    expect(summaryOf(await accept(guest, boundCode))).toBe('200 ok')
    expect(summaryOf(await accept(guest, 'no code'))).toBe('400 invalid_field data.code')
    expect(summaryOf(await client.command(member, { operation: 'room.invite.create', room }))).toBe(
      '403 forbidden room',
    )
    for (const ttl of [59, 604_801])
      expect(summaryOf(await client.command(owner, { operation: 'room.invite.create', room, ttl }))).toBe(
        '400 invalid_field ttl',
      )
  })

  test('an invite ends when its creator loses the right to invite', async () => {
    await make('heirloom', { visibility: 'private', members: [member.id] })
    const made = await run(owner, { operation: 'room.invite.create', room: 'heirloom' })
    await run(owner, { operation: 'room.owner.transfer', room: 'heirloom', target: member.id })
    const data = JSON.stringify({ schema: 1, code: (made.invite as Json).code })
    expect(summaryOf(await client.command(stranger, { operation: 'room.invite.accept', data }))).toBe('403 forbidden')
  })

  test('at most eight invites may be open', async () => {
    await make('gate', { visibility: 'private' })
    const invite = () => client.command(owner, { operation: 'room.invite.create', room: 'gate' })
    const answers: string[] = []
    for (let n = 0; n < 9; n++) answers.push(summaryOf(await invite()))
    expect(answers).toEqual([...Array<string>(8).fill('200 ok'), '400 wrong_state room'])
  })

  test('a member who leaves can no longer read it', async () => {
    expect(summaryOf(await client.command(stranger, { operation: 'room.leave', room }))).toBe('200 ok')
    expect(summaryOf(await client.command(stranger, { operation: 'room.get', room }))).toMatch(/^403 private_room/)
  })
})

test('rooms are unchanged after a restart, a replay of the journals and a kill', async () => {
  await make('law')
  await setPolicy('law', { write: 'members', rules: 'Be kind.', closes_at: 4_000_000_000 })
  const rooms = ['club', 'house', 'found', 'crowd', 'cellar', 'law']
  const everything = async () => {
    const found: unknown[] = []
    for (const room of rooms) {
      for (const operation of ['room.get', 'room.members', 'room.policy.get', 'room.modlog'])
        found.push(await run(room === 'cellar' ? member : guest, { operation, room }))
      if (room !== 'cellar')
        for (const path of ['room', 'members', 'modlog'])
          found.push(dataOf(await client.get(`/api/${path}?room=${room}`)))
    }
    found.push(summaryOf(await client.command(owner, { operation: 'room.invite.create', room: 'gate' })))
    found.push(summaryOf(await client.post(stranger, { room: 'law', text: 'x' })))
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
