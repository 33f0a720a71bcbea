/** The list of one's own rooms: what it has for each role, for nobody else, on every placement, and after a restart and a replay. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { dataOf, type Json, run as runOn, summaryOf, walk } from '../support/answers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, newNonce, now, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const own = { operation: 'rooms.list', data: '{"schema":1,"own":true}' }
const operator = person('own rooms operator')

describe.each([
  ['back', 1, 'node'],
  ['threads', 3, 'uws'],
  ['clerks', 2, 'node'],
])('with PLACEMENT=%s and %i shards on %s', (placement, shards, engine) => {
  const env = { PLACEMENT: placement, SHARDS: `${shards}`, HTTP_ENGINE: engine, OPERATORS: operator.id }
  const directory = boardDirectory()
  const [ada, ben, cem, dot] = ['ada', 'ben', 'cem', 'dot'].map((name) => person(`own rooms ${name}`)) as [
    Signer,
    Signer,
    Signer,
    Signer,
  ]
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({ directory, env })
    client = await Client.of(board)
  })
  afterAll(() => client.close())

  const run = (who: Signer, fields: Fields) => runOn(client, who, fields)
  const change = (who: Signer, operation: string, room: string, target: Signer) =>
    run(who, { operation, room, target: target.id })
  const roomsOf = (who: Signer, more: object = {}) =>
    walk('rooms', async (cursor) => run(who, { ...own, ...more, ...(cursor === undefined ? {} : { cursor }) }))
  /** As `name role`, sorted. */
  const rolesOf = async (who: Signer) => (await roomsOf(who)).map(({ name, role }) => `${name} ${role}`).sort()

  test('it has the public and private rooms of its signer, with role and newest activity, as room.get has them', async () => {
    expect(await roomsOf(ada)).toEqual([])
    for (const [room, visibility] of [
      ['garden', 'public'],
      ['cellar', 'private'],
      ['attic', 'private'],
    ] as const)
      await run(ada, { operation: 'room.create', room, visibility, members: [ben.id], text: `about ${room}` })
    await change(ada, 'room.moderator.add', 'attic', ben)
    const first = await client.post(ada, { room: 'cellar', text: 'one' })
    await client.post(ben, { room: 'cellar', text: 'two', reply_to: first.data.event_id! })
    const edit = JSON.stringify({ schema: 1, supersedes: first.data.event_id })
    await run(ada, { operation: 'post', room: 'cellar', text: 'one, edited', data: edit })
    await client.post(cem, { room: 'elsewhere', text: 'not theirs' })
    expect(await rolesOf(ada)).toEqual(['attic owner', 'cellar owner', 'garden owner'])
    expect(await rolesOf(ben)).toEqual(['attic moderator', 'cellar member', 'garden member'])
    const found = await roomsOf(ben)
    for (const each of found) {
      const { policy: _, ...room } = (await run(ben, { operation: 'room.get', room: String(each.name) })).room as Json
      expect(each).toEqual(room)
    }
    expect(found.find(({ name }) => name === 'cellar')).toMatchObject({
      ...{ visibility: 'private', last_seq: 3, count: 2, threads: 1, about: 'about cellar', members: 2 },
      owner: ada.id,
    })
    expect((await roomsOf(ben, { query: 'tti' })).map(({ name }) => name)).toEqual(['attic'])
  })

  test('a conversation is only in its own list', async () => {
    await run(ada, { operation: 'conversation.open', members: [ben.id], text: 'between us' })
    expect(await rolesOf(ben)).toEqual(['attic moderator', 'cellar member', 'garden member'])
    expect((await run(ben, { operation: 'conversations.list' })).conversations).toHaveLength(1)
  })

  test('it follows every way into a room, every change of role, and every way out', async () => {
    const { code } = (await run(ada, { operation: 'room.invite.create', room: 'cellar' })).invite as { code: string }
    expect(await rolesOf(cem)).toEqual([])
    await run(cem, { operation: 'room.invite.accept', data: JSON.stringify({ schema: 1, code }) })
    await run(cem, { operation: 'room.join', room: 'garden' })
    await change(ada, 'room.member.add', 'attic', cem)
    expect(await rolesOf(cem)).toEqual(['attic member', 'cellar member', 'garden member'])
    await change(ada, 'room.owner.transfer', 'cellar', cem)
    await run(cem, { operation: 'room.leave', room: 'garden' })
    await run(ben, { operation: 'room.ban', room: 'attic', target: cem.id, reason: 'rude' })
    expect(await rolesOf(cem)).toEqual(['cellar owner'])
    expect(await rolesOf(ada)).toEqual(['attic owner', 'cellar member', 'garden owner'])
    await change(cem, 'room.member.remove', 'cellar', ben)
    await change(ada, 'room.moderator.remove', 'attic', ben)
    expect(await rolesOf(ben)).toEqual(['attic member', 'garden member'])
    // By the owner alone, to someone whom the board does not know.
    await change(cem, 'room.owner.transfer', 'cellar', dot)
    await run(cem, { operation: 'room.leave', room: 'cellar' })
    expect([await rolesOf(cem), await rolesOf(dot)]).toEqual([[], ['cellar owner']])
  })

  test('nobody learns anything about the rooms of others', async () => {
    const unsigned = await client.send(JSON.stringify(own))
    expect([summaryOf(unsigned), unsigned.text]).toEqual([
      '403 unsigned',
      expect.stringContaining('sign the command to list your own rooms'),
    ])
    // Neither a member who is out again nor a stranger is answered otherwise than someone new.
    const texts = [cem, operator, person('own rooms stranger')].map(
      async (who) => (await client.command(who, own)).text,
    )
    expect(new Set(await Promise.all(texts))).toEqual(new Set(['{"ok":true,"data":{"rooms":[],"has_more":false}}']))
    const { next_cursor: cursor } = await run(ada, { ...own, limit: 1 })
    for (const [who, more] of [
      [ben, {}],
      [ada, { query: 'a' }],
    ] as const)
      expect(summaryOf(await client.command(who, { ...own, ...more, cursor: String(cursor) }))).toBe(
        '400 invalid_field cursor',
      )
    const publicList = { operation: 'rooms.list', cursor: String(cursor) }
    expect(summaryOf(await client.command(ada, publicList))).toBe('400 invalid_field cursor')
    const listed = await walk('rooms', (next) =>
      run(ada, { operation: 'rooms.list', ...(next === undefined ? {} : { cursor: next }) }),
    )
    expect(listed.map(({ visibility, role }) => `${visibility} ${role}`)).toEqual(listed.map(() => 'public undefined'))
  })

  test('a delegate gets it with the scope board:read alone, until its delegation ends', async () => {
    const [reader, writer] = [person(`reader ${newNonce()}`), person(`writer ${newNonce()}`)]
    const target = await createDelegation(client, ada, reader, { scopes: ['board:read'] })
    await createDelegation(client, ada, writer, { scopes: ['board:post'] })
    expect(await rolesOf(reader)).toEqual(await rolesOf(ada))
    expect(summaryOf(await client.command(writer, own))).toBe('403 forbidden operation')
    await run(ada, { operation: 'delegation.revoke', target })
    expect(summaryOf(await client.command(reader, own))).toBe('403 forbidden public_key')
  })

  test('an identity that has moved to another key keeps its list, and the former key gets none', async () => {
    const next = person(`own rooms next ${newNonce()}`)
    const signing = { timestamp: now(), nonce: newNonce() }
    const fields = { operation: 'identity.rotate', target: next.publicKey }
    const bytes = signingBytes(client.serviceId, { ...fields, public_key: dot.publicKey, ...signing })
    const proof = next.sign(bytes).toString('base64url')
    dataOf(await client.send(JSON.stringify({ ...JSON.parse(client.sign(dot, fields, signing).body), proof })))
    expect(summaryOf(await client.command(dot, own))).toBe('400 key_rotated public_key')
    expect(await rolesOf(next)).toEqual(['cellar owner'])
  })

  test('it has no private room of an identity that is suspended or erased', async () => {
    const eve = person(`own rooms eve ${newNonce()}`)
    await change(ada, 'room.member.add', 'attic', eve)
    const operate = (operation: string) => run(operator, { operation, target: eve.id, reason: 'x' })
    for (const [operation, roles] of [
      ['identity.suspend', []],
      ['identity.unsuspend', ['attic member']],
      ['identity.erase', []],
    ] as const) {
      await operate(operation)
      expect([operation, await rolesOf(eve)]).toEqual([operation, roles])
    }
  })

  test('all of it is on pages of any size, latest activity first, and long descriptions end a page early', async () => {
    const many = person(`own rooms many ${newNonce()}`)
    const made: string[] = []
    for (let n = 0; n < 23; n++) {
      const room = `many-${n}`
      const visibility = n % 3 === 0 ? 'public' : 'private'
      await run(many, { operation: 'room.create', room, visibility, text: `${n} ${'x'.repeat(30_000)}` })
      made.push(room)
    }
    await client.post(many, { room: 'many-4', text: 'the latest' })
    const all = await roomsOf(many, { limit: 200 })
    expect(all.map(({ name }) => name).sort()).toEqual([...made].sort())
    expect(all.map(({ updated_at }) => updated_at)).toEqual(
      all.map(({ updated_at }) => Number(updated_at)).sort((a, b) => b - a),
    )
    const names = (rooms: readonly Json[], shard: number) =>
      rooms
        .filter(({ name, visibility }) => visibility === 'private' && shardOf(String(name), shards) === shard)
        .map(({ name }) => name)
    const privates = made.filter((_, n) => n % 3 !== 0 && n !== 4).reverse()
    for (let shard = 0; shard < shards; shard++)
      expect(names(all, shard)).toEqual(['many-4', ...privates].filter((name) => shardOf(name, shards) === shard))
    expect(await roomsOf(many, { limit: 3 })).toEqual(all)
    const { rooms, has_more } = await run(many, { ...own, limit: 200 })
    expect([(rooms as Json[]).length < 23, has_more]).toEqual([true, true])
  })

  test('after a restart, a kill, and a replay of the journals it is the same', async () => {
    const everything = () => Promise.all([ada, ben, cem, operator].map((who) => roomsOf(who)))
    const before = await everything()
    const restart = async (end: () => Promise<unknown>) => {
      await end()
      board = await startBoard({ directory, env })
      client.close()
      client = await Client.of(board)
      expect(await everything()).toEqual(before)
      // What follows changes the restored list as it changes one that was never stored.
      const late = person(`own rooms late ${newNonce()}`)
      await change(ada, 'room.member.add', 'attic', late)
      expect(await rolesOf(late)).toEqual(['attic member'])
      await run(late, { operation: 'room.leave', room: 'attic' })
      expect(await rolesOf(late)).toEqual([])
    }
    await restart(() => board.stop())
    await restart(() => board.kill())
    await restart(async () => {
      await board.stop()
      const ofShards = Array.from({ length: shards }, (_, n) => `shard-0${n}/snapshots`)
      for (const each of [...ofShards, 'log/feed-snapshots'])
        rmSync(join(directory, each), { recursive: true, force: true })
    })
  })
})
