/** Moderation as people see it: hides and their authors, reports and their readers, advertisements and what becomes of them. */
import { createHash, createPublicKey, verify } from 'node:crypto'
import { rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { dataOf, type Json, run as runOn, summaryOf, walk } from '../support/answers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const names = ['owner', 'moderator', 'author', 'reader', 'stranger', 'operator'].map((name) =>
  person(`moderated ${name}`),
)
const [owner, mod, author, reader, stranger, operator] = names as [Signer, Signer, Signer, Signer, Signer, Signer]

const directory = boardDirectory()
const env: Record<string, string> = { OPERATORS: operator.id, SHARDS: '3' }
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
})
afterAll(() => client.close())

const run = (who: Signer, fields: Fields) => runOn(client, who, fields)
const posted = async (who: Signer, fields: Readonly<Record<string, string>>) =>
  dataOf(await client.post(who, { text: 'x', ...fields })).event_id as string
const eventOf = async (id: string) => dataOf(await client.get(`/api/events/${id}`)).event as Json
const modlogOf = async (room: string) => dataOf(await client.get(`/api/modlog?room=${room}`)).entries as Json[]
const setPolicy = (who: Signer, room: string, policy: object) =>
  run(who, { operation: 'room.policy.set', room, data: JSON.stringify(policy) })

async function restart(end: () => Promise<unknown>): Promise<void> {
  await end()
  board = await startBoard({ directory, env })
  client.close()
  client = await Client.of(board)
}

describe('the moderation log', () => {
  let event = ''

  beforeAll(async () => {
    await run(owner, { operation: 'room.create', room: 'forum' })
    event = await posted(author, { room: 'forum' })
    await run(owner, { operation: 'room.moderator.add', room: 'forum', target: mod.id })
    await run(mod, { operation: 'room.hide', event_id: event, reason: 'off topic' })
    await run(owner, { operation: 'room.restore', event_id: event, reason: 'on second thought' })
    await setPolicy(owner, 'forum', { rules: 'Stay on topic.' })
    await run(stranger, { operation: 'room.join', room: 'forum' })
    await run(owner, { operation: 'room.member.remove', room: 'forum', target: stranger.id })
    await run(author, { operation: 'event.redact', event_id: event, reason: 'my own mistake' })
  })

  test('says who did what to whom, when and why, newest first; joining is not moderation', async () => {
    const entries = await modlogOf('forum')
    expect(
      entries.map(({ seq, action, target, reason, detail, actor }) => [
        seq,
        action,
        (actor as Json).id,
        target,
        reason ?? detail,
      ]),
    ).toEqual([
      [6, 'event.redact', author.id, event, 'my own mistake'],
      [5, 'room.member.remove', owner.id, stranger.id, undefined],
      [4, 'room.policy.set', owner.id, undefined, '{"rules":"Stay on topic."}'],
      [3, 'room.restore', owner.id, event, 'on second thought'],
      [2, 'room.hide', mod.id, event, 'off topic'],
      [1, 'room.moderator.add', owner.id, mod.id, undefined],
    ])
    expect(await run(stranger, { operation: 'room.modlog', room: 'forum' })).toMatchObject({ entries, has_more: false })
  })

  test('is proved by the signatures in it', async () => {
    for (const { signed_payload, signature, actor, event_id, action } of await modlogOf('forum')) {
      const bytes = Buffer.from(signed_payload as string)
      const { public_key, id } = actor as Record<string, string>
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: public_key! }, format: 'jwk' })
      expect(verify(null, bytes, key, Buffer.from(signature as string, 'base64url'))).toBe(true)
      expect(createHash('sha256').update(Buffer.from(public_key!, 'base64url')).digest('hex')).toBe(id)
      expect(createHash('sha256').update(bytes).digest('hex').slice(0, 32)).toBe(event_id)
      expect((JSON.parse(signed_payload as string) as { command: Json }).command.operation).toBe(action)
    }
  })

  test('is the same for any page size', async () => {
    const whole = await modlogOf('forum')
    for (const limit of [1, 2, 5, 6]) {
      const seen = await walk('entries', async (cursor) =>
        dataOf(
          await client.get(`/api/modlog?room=forum&limit=${limit}${cursor === undefined ? '' : `&cursor=${cursor}`}`),
        ),
      )
      expect(seen).toEqual(whole)
    }
    expect(summaryOf(await client.get('/api/modlog?room=forum&cursor=AAAA'))).toBe('400 invalid_field cursor')
    expect(dataOf(await client.get('/api/modlog?room=lobby'))).toEqual({ room: 'lobby', entries: [], has_more: false })
  })

  test('of a private room is read only by its members', async () => {
    await run(owner, { operation: 'room.create', room: 'backroom', visibility: 'private', members: [reader.id] })
    await setPolicy(owner, 'backroom', { rules: 'hush' })
    expect(await run(reader, { operation: 'room.modlog', room: 'backroom' })).toMatchObject({
      entries: [{ action: 'room.policy.set', detail: '{"rules":"hush"}' }],
    })
    for (const who of [stranger, operator])
      expect(summaryOf(await client.command(who, { operation: 'room.modlog', room: 'backroom' }))).toBe(
        '403 private_room room',
      )
    expect(summaryOf(await client.get('/api/modlog?room=backroom'))).toBe('403 private_room room')
    expect(summaryOf(await client.get('/api/modlog?room=nowhere'))).toBe('400 not_found room')
  })
})

describe('reports', () => {
  const list = async (fields: object = {}) =>
    (await run(operator, { operation: 'reports.list', ...fields })).reports as Json[]

  test('reach the operator from every shard, once for each identity and event, and nobody else', async () => {
    const rooms = ['forum', 'r-one', 'r-two', 'r-three', 'r-four']
    const events: string[] = []
    for (const room of rooms) events.push(await posted(author, { room, text: `bad words in ${room}` }))
    const inside = await posted(reader, { room: 'backroom', text: 'bad words within' })
    const made: Json[] = []
    for (const event_id of events)
      made.push(await run(reader, { operation: 'report', event_id, reason: 'canary-reason' }))
    made.push(await run(owner, { operation: 'report', event_id: inside, reason: 'canary-reason inside' }))
    expect(made[0]).toMatchObject({ report: { event_id: events[0], state: 'open' } })
    expect((made[0]!.receipt as Json).log_index).toBeUndefined()
    const again = { operation: 'report', event_id: events[0]!, reason: 'once more' }
    expect(summaryOf(await client.command(reader, again))).toBe('400 conflict event_id')
    expect(summaryOf(await client.command(stranger, again))).toBe('200 ok')
    for (const event_id of [inside, 'f'.repeat(32)])
      expect(summaryOf(await client.command(stranger, { operation: 'report', event_id, reason: 'x' }))).toBe(
        '400 not_found event_id',
      )
    expect(summaryOf(await client.command(reader, { operation: 'report', event_id: events[1]! }))).toBe(
      '400 missing_field reason',
    )

    const found = await list()
    expect(found.map(({ event_id }) => event_id).sort()).toEqual([...events, events[0]!, inside].sort())
    expect(found.find(({ event_id }) => event_id === events[1])).toEqual({
      id: (made[1]!.report as Json).id,
      event_id: events[1],
      room: 'r-one',
      author: author.id,
      reporter: reader.id,
      reason: 'canary-reason',
      state: 'open',
      created_at: expect.any(Number),
    })
    for (const who of [stranger, owner, reader])
      expect(summaryOf(await client.command(who, { operation: 'reports.list' }))).toBe('403 forbidden')
    expect(summaryOf(await client.send('{"operation":"reports.list"}'))).toBe('403 unsigned')
  })

  test('are listed newest first, the same for any page size', async () => {
    const whole = await list()
    expect(
      [...whole].sort((a, b) => Number(b.created_at) - Number(a.created_at)).map(({ created_at }) => created_at),
    ).toEqual(whole.map(({ created_at }) => created_at))
    for (const limit of [1, 2, 3, 200]) {
      const seen = await walk('reports', (cursor) =>
        run(operator, { operation: 'reports.list', limit, ...(cursor === undefined ? {} : { cursor }) }),
      )
      expect(seen).toEqual(whole)
    }
    const bad = await client.command(operator, { operation: 'reports.list', cursor: 'AAAA' })
    expect(summaryOf(bad)).toBe('400 invalid_field cursor')
  })

  test('are resolved by the operator, once, with a note of what was done', async () => {
    const open = (await list({ kind: 'open' }))[0]!
    const resolve = (who: Signer, target: unknown, data: object = { action: 'dismissed', note: 'not so bad' }) =>
      client.command(who, {
        operation: 'report.resolve',
        target: String(target),
        data: JSON.stringify({ schema: 1, ...data }),
      })
    expect(summaryOf(await resolve(reader, open.id))).toBe('403 forbidden')
    expect(summaryOf(await resolve(operator, 'f'.repeat(32)))).toBe('400 not_found target')
    expect(summaryOf(await resolve(operator, open.id, { action: 'shrugged' }))).toBe('400 invalid_field data.action')
    expect(dataOf(await resolve(operator, open.id)).report).toEqual({ id: open.id, state: 'resolved' })
    expect(summaryOf(await resolve(operator, open.id))).toBe('400 wrong_state target')
    expect((await list({ kind: 'open' })).map(({ id }) => id)).not.toContain(open.id)
    expect(await list({ kind: 'resolved' })).toEqual([
      {
        ...open,
        state: 'resolved',
        resolved: { by: operator.id, at: expect.any(Number), action: 'dismissed', note: 'not so bad' },
      },
    ])
  })

  test('appear nowhere else, and survive a restart, a kill and a replay', async () => {
    const before = await list()
    const paths = ['/api/events', '/v1/export', '/api/modlog?room=forum', '/api/rooms', '/metrics', '/api/identities']
    for (const path of paths) expect((await client.get(path)).text, path).not.toContain('canary-reason')
    await restart(() => board.stop())
    expect(await list()).toEqual(before)
    await restart(() => board.kill())
    expect(await list()).toEqual(before)
    const log = await modlogOf('forum')
    await restart(async () => {
      await board.stop()
      for (const each of ['shard-00/snapshots', 'shard-01/snapshots', 'shard-02/snapshots', 'log/feed-snapshots'])
        rmSync(join(directory, each), { recursive: true, force: true })
    })
    expect(await list()).toEqual(before)
    expect(await modlogOf('forum')).toEqual(log)
    expect(board.lines.join('\n')).not.toContain('canary-reason')
  })
})

describe('in a room that moderates promotion', () => {
  const room = 'market'
  const advert = 'BUY NOW: limited offer, 50% off, free shipping! https://shop.example/x'
  let boardId = ''

  beforeAll(async () => {
    boardId = (dataOf(await client.get('/capabilities')).service_identity as Json).id as string
    await run(owner, { operation: 'room.create', room })
    await run(owner, { operation: 'room.moderator.add', room, target: mod.id })
    await setPolicy(owner, room, { promotion: 'moderate' })
  })

  const hidden = (id: string) => vi.waitFor(async () => expect((await eventOf(id)).hidden).toBe(true), patience)

  test('an advertisement is accepted, and then hidden by the board in the room’s name', async () => {
    const id = await posted(author, { room, text: advert })
    const plain = await posted(author, { room, text: 'Has anybody measured this?' })
    const reply = await posted(reader, { room, text: 'https://only.example/link', reply_to: plain })
    await hidden(id)
    await hidden(reply)
    const event = await eventOf(id)
    expect(event).toMatchObject({ type: 'tombstone', hidden: true, hidden_by: 'room' })
    expect(event.reason).toMatch(/^Advertising: sales-words/)
    expect(event).not.toHaveProperty('text')
    expect((await eventOf(plain)).hidden).toBe(false)
    const [, first] = await modlogOf(room)
    expect(first).toMatchObject({ action: 'room.hide', target: id, reason: event.reason, actor: { id: boardId } })
    expect(await run(owner, { operation: 'room.restore', event_id: id, reason: 'a friend of ours' })).toBeDefined()
    expect((await eventOf(id)).hidden).toBe(false)
  })

  test('moderators, private rooms and other rooms are left alone', async () => {
    const spared = [
      await posted(owner, { room, text: advert }),
      await posted(mod, { room, text: advert }),
      await posted(author, { room: 'forum', text: advert }),
    ]
    const marker = await posted(author, { room, text: 'https://marker.example' })
    await hidden(marker)
    for (const id of spared) expect((await eventOf(id)).hidden).toBe(false)
  })

  test('after a kill unscreened posts are screened at the restart, and restored ones stay', async () => {
    const before = await modlogOf(room)
    await restart(() => board.kill())
    const marker = await posted(author, { room, text: 'https://marker.example/two' })
    await hidden(marker)
    expect((await modlogOf(room)).slice(1)).toEqual(before)
  })

  describe('a classifier of the operator’s own', () => {
    let server: Server
    const asked: Json[] = []
    let answer: string | undefined = '{"score":0.95,"rule":"model","words":"it sounds like selling"}'

    beforeAll(async () => {
      server = createServer((request, response) => {
        const chunks: Buffer[] = []
        request.on('data', (chunk: Buffer) => chunks.push(chunk))
        request.on('end', () => {
          asked.push(JSON.parse(Buffer.concat(chunks).toString()) as Json)
          if (answer === undefined) response.writeHead(500).end()
          else response.end(answer)
        })
      })
      await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
      env.SCREEN_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
      await restart(() => board.stop())
    })
    afterAll(() => server.close().closeAllConnections())

    test('replaces the rules: 0.95 hides a post and leaves a reply', async () => {
      const root = await posted(author, { room, text: 'harmless, says a person' })
      await hidden(root)
      expect((await eventOf(root)).reason).toMatch(/^Advertising: model, it sounds like selling/)
      const thread = await posted(owner, { room, text: 'a thread' })
      const reply = await posted(author, { room, text: 'a reply', reply_to: thread })
      await vi.waitFor(() => expect(asked.map(({ event_id }) => event_id)).toContain(reply), patience)
      await hidden(await posted(author, { room, text: 'and one more' }))
      expect((await eventOf(reply)).hidden).toBe(false)
      expect(asked.find(({ event_id }) => event_id === reply)).toMatchObject({ room, text: 'a reply', is_reply: true })
    })

    test('that fails leaves the post, and the log says so', async () => {
      answer = undefined
      const id = await posted(author, { room, text: advert })
      await vi.waitFor(
        () => expect(board.lines.some((line) => line.includes('screening.failed') && line.includes(id))).toBe(true),
        patience,
      )
      expect((await eventOf(id)).hidden).toBe(false)
    })

    test('that answers late meets the current policy: the rule is read again when hiding', async () => {
      answer = '{"score":1}'
      const waiting: (() => unknown)[] = []
      server.removeAllListeners('request')
      server.on('request', (_, response) => waiting.push(() => response.end(answer)))
      const isSaid = (event: string, id: string) =>
        board.lines.some((line) => line.includes(event) && line.includes(id))
      for (;;) {
        const id = await posted(author, { room, text: 'to be judged late' })
        await vi.waitUntil(() => waiting.length > 0, patience)
        await setPolicy(owner, room, { promotion: 'allow' })
        for (const answerNow of waiting.splice(0)) answerNow()
        await vi.waitUntil(() => isSaid('screening.kept', id) || isSaid('screening.failed', id), patience)
        expect((await eventOf(id)).hidden).toBe(false)
        if (isSaid('screening.kept', id)) break
        // So late that the board did not wait for it: another post.
        await setPolicy(owner, room, { promotion: 'moderate' })
      }
    })
  })
})
