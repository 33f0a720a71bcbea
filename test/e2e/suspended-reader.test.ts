/** A suspended identity reads what is public and its own account, but no private room, however it asks. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { run as runOn, summaryOf } from '../support/answers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, newNonce, person } from '../support/client.ts'
import { createFields, docIdsOf, docOf } from '../support/documents.ts'
import { StreamReader } from '../support/stream-reader.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [operator, owner] = [person('operator'), person('owner')]

describe.each(['uws', 'node'])('a suspended member of a private room on the %s engine', (engine) => {
  const member = person(`member ${engine} ${newNonce()}`)
  let board: Board
  let client: Client
  const inside = { root: '', document: '', open: '' }

  const run = (by: typeof owner, fields: Fields) => runOn(client, by, fields)
  const suspend = () => run(operator, { operation: 'identity.suspend', target: member.id, reason: 'test' })
  const unsuspend = () => run(operator, { operation: 'identity.unsuspend', target: member.id, reason: 'test' })
  const secretsIn = (value: unknown): boolean => JSON.stringify(value).includes('sealed')

  beforeAll(async () => {
    board = await startBoard({
      directory: boardDirectory(),
      env: { HTTP_ENGINE: engine, SHARDS: '2', OPERATORS: operator.id },
    })
    client = await Client.of(board)
    await run(owner, { operation: 'room.create', room: 'den', visibility: 'private', members: [member.id] })
    inside.root = (await client.post(owner, { room: 'den', to: member.id, text: 'sealed words' })).data.event_id!
    inside.open = (await client.post(owner, { room: 'lobby', to: member.id, text: 'open words' })).data.event_id!
    const made = await client.command(owner, createFields('sealed plan', { room: 'den' }))
    inside.document = docOf(made).id
    await run(owner, { operation: 'conversation.open', members: [member.id], text: 'sealed message' })
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  const reads = (): Fields[] => [
    { operation: 'room.get', room: 'den' },
    { operation: 'room.members', room: 'den' },
    { operation: 'room.pages', room: 'den' },
    { operation: 'events.list', room: 'den' },
    { operation: 'events.list', room: 'den', query: 'words' },
    { operation: 'threads.list', room: 'den' },
    { operation: 'docs.list', room: 'den' },
    { operation: 'docs.read', target: inside.document },
    { operation: 'work.list', room: 'den' },
    { operation: 'event.get', event_id: inside.root },
    { operation: 'thread.get', event_id: inside.root },
    { operation: 'room.read_token', room: 'den' },
    { operation: 'updates.get', data: '{"schema":1,"rooms":["den"]}' },
    { operation: 'updates.get' },
  ]

  test('gets 403 suspended from each of its reads, and 200 again once the suspension ends', async () => {
    for (const fields of reads()) await run(member, fields)
    await suspend()
    for (const fields of reads()) {
      const reply = await client.command(member, fields)
      expect([fields, reply]).toMatchObject([fields, { status: 403, code: 'suspended' }])
    }
    await unsuspend()
    for (const fields of reads()) await run(member, fields)
  })

  test('gets nothing of it from lists of everything addressed to them, but what is public', async () => {
    const lists: Fields[] = ['inbox.get', 'conversations.list'].map((operation) => ({ operation }))
    lists.push({ operation: 'rooms.list', data: '{"schema":1,"own":true}' })
    const all = async () => Promise.all(lists.map((fields) => run(member, fields)))
    const [inboxBefore, ...othersBefore] = await all()
    expect(secretsIn(inboxBefore)).toBe(true)
    expect(othersBefore).toMatchObject([{ conversations: [{}] }, { rooms: [{ name: 'den' }] }])
    await suspend()
    const [inbox, conversations, rooms] = await all()
    expect(JSON.stringify(inbox)).toContain(inside.open)
    expect(secretsIn(inbox)).toBe(false)
    expect(conversations).toMatchObject({ conversations: [] })
    expect(rooms).toMatchObject({ rooms: [] })
    await unsuspend()
  })

  test('gets of other rooms and events what everybody gets', async () => {
    await suspend()
    for (const [fields, expected] of [
      [{ operation: 'room.get', room: 'nothing-of-this-name' }, '400 not_found room'],
      [{ operation: 'event.get', event_id: 'd'.repeat(32) }, '400 not_found event_id'],
      [{ operation: 'docs.read', target: 'd'.repeat(32) }, '400 not_found target'],
      [{ operation: 'work.get', event_id: 'd'.repeat(32) }, '400 not_found event_id'],
    ] as const)
      expect([fields, summaryOf(await client.command(member, fields))]).toEqual([fields, expected])
    await unsuspend()
  })

  test('reads unlisted documents, and has its own in its list', async () => {
    const unlisted = async (by: typeof owner) =>
      docOf(await client.command(by, createFields('x', { visibility: 'unlisted' }))).id
    const [own, other] = [await unlisted(member), await unlisted(owner)]
    const inDen = docOf(await client.command(member, createFields('sealed, by the member', { room: 'den' }))).id
    const list = async () =>
      docIdsOf(await client.command(member, { operation: 'docs.list', data: '{"schema":1,"own":true}' }))
    expect((await list()).sort()).toEqual([own, inDen].sort())
    await suspend()
    expect(await list()).toEqual([own])
    for (const target of [own, other]) await run(member, { operation: 'docs.read', target })
    await unsuspend()
    expect((await list()).sort()).toEqual([own, inDen].sort())
  })

  test('reads public rooms and its own account', async () => {
    await suspend()
    await run(member, { operation: 'event.get', event_id: inside.open })
    await run(member, { operation: 'events.list', room: 'lobby' })
    await run(member, { operation: 'quota.get' })
    await run(member, { operation: 'credit.balance', target: member.id })
    await unsuspend()
  })

  test('reads its own identity, which has not acted in public, and is told of an unknown one what everybody is', async () => {
    const quiet = person(`quiet ${engine} ${newNonce()}`)
    await run(owner, { operation: 'room.member.add', room: 'den', target: quiet.id })
    await client.post(quiet, { room: 'den', text: 'sealed, by one who is not known in public' })
    await run(operator, { operation: 'identity.suspend', target: quiet.id, reason: 'test' })
    expect(await run(quiet, { operation: 'identity.get' })).toMatchObject({ identity: { id: quiet.id } })
    expect(secretsIn((await client.command(quiet, { operation: 'identity.events' })).text)).toBe(false)
    for (const operation of ['identity.get', 'identity.events']) {
      const fields = { operation, target: 'd'.repeat(64) }
      expect((await client.command(quiet, fields)).text).toBe((await client.send(JSON.stringify(fields))).text)
    }
  })

  test('a command that is sent again shows nothing of what happened since', async () => {
    const commands = [
      { operation: 'conversation.open', members: [owner.id], text: 'hello' },
      { operation: 'room.create', room: `own-${engine}`, visibility: 'private', members: [owner.id] },
      { operation: 'post', room: 'den', text: 'one' },
    ].map((fields) => client.sign(member, fields))
    for (const { body } of commands) expect((await client.send(body)).status).toBe(200)
    const voted = commands[2]!.eventId
    await run(member, { operation: 'room.moderator.add', room: `own-${engine}`, target: owner.id })
    await suspend()
    await run(owner, { operation: 'vote', event_id: voted, data: '{"schema":1,"value":1}' })
    const again = await Promise.all(commands.map(({ body }) => client.send(body)))
    expect(again.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(again.map(({ data }) => data)).toMatchObject([
      { receipt: { duplicate: true } },
      { receipt: { duplicate: true }, room: { moderators: [] } },
      { receipt: { duplicate: true }, event: { votes: { up: 0 } } },
    ])
    expect(again[0]!.data).not.toHaveProperty('conversation')
    await unsuspend()
  })

  test('an open tail and a waiting updates.get end at once, and the token opens none', async () => {
    const { tail } = (await client.command(member, { operation: 'room.read_token', room: 'den' })).data as unknown as {
      readonly tail: string
    }
    const reader = new StreamReader(board.address, tail)
    await reader.until((all) => all.includes('sealed words'))
    const { cursor } = await run(member, { operation: 'updates.get' })
    const waiting = client.command(member, {
      operation: 'updates.get',
      cursor: String(cursor),
      data: '{"schema":1,"wait":50}',
    })
    await suspend()
    expect(await waiting).toMatchObject({ status: 403, code: 'suspended' })
    await client.post(owner, { room: 'den', text: 'sealed afterwards' })
    expect(await reader.until((all) => all.includes('suspended'))).not.toContain('afterwards')
    expect(await client.get(tail)).toMatchObject({ status: 403, code: 'private_room', field: 'token' })
    await unsuspend()
  })
})
