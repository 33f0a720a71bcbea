/** /v1/stream on both engines: commands in, answers and followed rooms out. */
import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { sizes } from '../../actors/kernel/limits.ts'
import { signingBytes } from '../../src/format/signing.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, newNonce, now, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { patience } from '../support/patience.ts'
import { publicFollow, StreamClient } from '../support/stream-client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ada, member, operator] = [person('ada'), person('member'), person('operator')]

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client
  const opened: StreamClient[] = []

  beforeAll(async () => {
    const env = { HTTP_ENGINE: engine, SHARDS: '2', OPERATORS: operator.id, MCP_ORIGINS: 'https://page.example' }
    board = await startBoard({ directory: boardDirectory(), env })
    client = await Client.of(board)
  })
  afterEach(() => {
    for (const each of opened.splice(0)) each.close()
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  const open = async () => {
    const stream = await StreamClient.open(board.address)
    opened.push(stream)
    return stream
  }
  const post = (fields: { readonly [field: string]: string }, by = ada) =>
    client.sign(by, { operation: 'post', ...fields })
  /** A signed updates.get of these rooms. */
  const follow = (rooms: readonly string[], by = member, cursor?: string) =>
    client.sign(by, {
      operation: 'updates.get',
      data: JSON.stringify({ schema: 1, rooms }),
      ...(cursor === undefined ? {} : { cursor }),
    }).body
  const privateRoom = async (members: readonly string[] = [member.id]) => {
    const room = `inner-${newNonce()
      .toLowerCase()
      .replace(/[^a-z0-9]/g, '')}`
    const made = await client.command(ada, { operation: 'room.create', room, visibility: 'private', members })
    expect(made.status, made.text).toBe(200)
    return room
  }

  test('posts of one room are numbered in the order of their messages', async () => {
    const stream = await open()
    const posts = Array.from({ length: 300 }, (_, n) => post({ room: 'in-order', text: `post ${n}` }))
    const ids = posts.map(({ body }) => stream.send(body))
    await stream.until(() => stream.messages.length === posts.length)
    const answers = ids.map((id) => stream.of(id)[0]!)
    expect(answers.map(({ status }) => status)).toEqual(posts.map(() => 200))
    expect(answers.map(({ data }) => data!.event!.seq)).toEqual(posts.map((_, n) => n + 1))
    expect(answers.map(({ data }) => data!.event_id)).toEqual(posts.map(({ eventId }) => eventId))
  })

  test('each answer equals that of the command sent alone', async () => {
    const stream = await open()
    const good = post({ room: 'alike', text: 'one' })
    const bodies = [
      good.body,
      '{"operation":"pots"}',
      '{"operation":"post","text":"unsigned"}',
      good.body.replace('"one"', '"forged"'),
      '{"operation":"events.list","room":"no-such-room"}',
      '{"operation":"events.list","room":"alike"}',
    ]
    for (const body of bodies) {
      const { id: _, status, ...envelope } = await stream.command(body)
      const alone = await client.send(body)
      const { receipt, ...data } = (envelope.data ?? {}) as Record<string, unknown>
      expect(status).toBe(alone.status)
      if (receipt === undefined) expect(envelope).toEqual(JSON.parse(alone.text))
      else expect(data).toEqual({ ...alone.data, receipt: undefined })
    }
  })

  test('a message may have its members in any order, and its refusal says what is wrong', async () => {
    const stream = await open()
    const send = async (text: string) => {
      const before = stream.messages.length
      stream.socket.send(text)
      return stream.until(() => stream.messages[before])
    }
    const { body } = post({ room: 'any-form', text: 'written "in" another\norder' })
    expect(await send(`{ "command" : ${body}, "id" : "x y" }`)).toMatchObject({ id: 'x y', status: 200 })
    const refused = async (text: string) => {
      const { id, status, error } = await send(text)
      return [id, status, error!.code, error!.field]
    }
    for (const text of ['7', 'null', '"text"', '{}{}', ''])
      expect((await refused(text)).slice(1, 3)).toEqual([400, 'invalid_json'])
    expect(await refused('[]')).toEqual(['', 400, 'invalid_json', undefined])
    expect(await refused('{"id":"1","command":')).toEqual(['', 400, 'invalid_json', undefined])
    expect(await refused(`{"command":${body}}`)).toEqual(['', 400, 'missing_field', 'id'])
    expect(await refused(`{"id":7,"command":${body}}`)).toEqual(['', 400, 'invalid_field', 'id'])
    expect(await refused(`{"id":"${'x'.repeat(65)}","command":${body}}`)).toEqual(['', 400, 'invalid_field', 'id'])
    expect(await refused('{"id":"1"}')).toEqual(['1', 400, 'missing_field', 'command'])
    expect(await refused('{"id":"1","comand":{}}')).toEqual(['1', 400, 'unknown_field', 'comand'])
    expect(await refused('{"id":"1","command":7}')).toEqual(['1', 400, 'invalid_field', 'command'])
    for (const more of ['"x"', '{}', '[{}]', '{"a":{"b":"}"}}'])
      for (const kind of ['command', 'follow'])
        expect(await refused(`{"id":"1","${kind}":${body} , "note":${more}}`)).toEqual([
          '1',
          400,
          'unknown_field',
          'note',
        ])
    expect(await refused('{"id":"1","command":{"operation":"post","data":{},"text":"x"}}')).toEqual([
      '1',
      400,
      'invalid_field',
      'data',
    ])
    const braces = post({ room: 'any-form', text: '},' })
    expect(await send(`{"id":"1","command":${braces.body}}`)).toMatchObject({
      id: '1',
      status: 200,
      data: { event: { text: '},', event_id: braces.eventId } },
    })
    expect((await refused(`{"id":"1","command":${body},"command":${body}}`)).slice(0, 3)).toEqual([
      '1',
      400,
      'invalid_json',
    ])
    expect((await refused(`{"id":"1","command":${body}},{}}`)).slice(0, 3)).toEqual(['1', 400, 'invalid_json'])
    expect(await refused(`{"id":"1","follow":${body}}`)).toEqual(['1', 400, 'invalid_field', 'follow'])
    expect(await refused('{"id":"1","unfollow":"none"}')).toEqual(['1', 400, 'not_found', 'unfollow'])
    expect(stream.code).toBeUndefined()
  })

  test('a public room is followed unsigned, and resumed over and over without gaps or duplicates', async () => {
    const room = 'followed'
    await client.send(post({ room, text: 'before' }).body)
    const writing = (async () => {
      for (let n = 0; n < 200; n++) await client.send(post({ room, text: `${n}` }).body)
    })()
    const got: string[] = []
    let cursor: string | undefined
    for (let round = 0; got.length < 200; round++) {
      const stream = await open()
      const id = stream.send(publicFollow([room], cursor), 'follow')
      const wanted = Math.min(1 + (round % 7) * 4, 200 - got.length)
      await stream.until(() => stream.texts(id).length >= wanted)
      stream.close()
      await stream.closed()
      got.push(...stream.texts(id))
      cursor = stream.of(id).at(-1)!.data!.cursor!
      if (round === 0) got.splice(0, got.length, ...Array.from({ length: Number(got.at(-1)) + 1 }, (_, n) => `${n}`))
    }
    await writing
    expect(got).toEqual(Array.from({ length: 200 }, (_, n) => `${n}`))
  })

  test('a follow ends on request, and its id can be reused', async () => {
    const stream = await open()
    const id = stream.send(publicFollow(['quiet']), 'follow')
    await client.send(post({ room: 'quiet', text: 'made' }).body)
    const again = await StreamClient.open(board.address)
    opened.push(again)
    expect(await again.follow(publicFollow(['quiet']))).toMatchObject({ status: 200 })
    again.socket.send(`{"id":"1","follow":${publicFollow(['quiet'])}}`)
    await again.until(() => again.of('1').find(({ error }) => error?.code === 'conflict'))
    again.socket.send('{"id":"9","unfollow":"1"}')
    expect(await again.answer('9')).toMatchObject({ status: 200, ok: true })
    await client.send(post({ room: 'quiet', text: 'unheard' }).body)
    again.socket.send(`{"id":"1","follow":${publicFollow(['quiet'])}}`)
    await again.until(() => again.of('1').length === 3)
    await client.send(post({ room: 'quiet', text: 'heard' }).body)
    await again.until(() => again.texts('1').length === 1)
    expect(again.texts('1')).toEqual(['heard'])
    expect((await stream.answer(id)).status).toBe(400)
  })

  test('following a private room requires a member’s signature', async () => {
    const room = await privateRoom()
    const stream = await open()
    expect((await stream.follow(publicFollow([room]))).error!.code).toBe('private_room')
    expect((await stream.follow(follow([room], person('stranger')))).error!.code).toBe('private_room')
    expect((await stream.follow(follow([room]).replace(/"signature":"../, '"signature":"AA'))).error!.code).toBe(
      'bad_signature',
    )
    const id = stream.send(follow([room]), 'follow')
    await stream.answer(id)
    await client.send(post({ room, text: 'inside' }).body)
    await stream.until(() => stream.texts(id).length === 1)
    expect(stream.texts(id)).toEqual(['inside'])
  })

  test('a private room is resumed over and over without gaps or duplicates', async () => {
    const room = await privateRoom()
    const first = await open()
    let cursor = (await first.follow(follow([room]))).data!.cursor!
    const writing = (async () => {
      for (let n = 0; n < 120; n++) expect((await client.send(post({ room, text: `${n}` }).body)).status).toBe(200)
    })()
    const got: string[] = []
    for (let round = 0; got.length < 120; round++) {
      const stream = await open()
      const id = stream.send(follow([room], member, cursor), 'follow')
      const wanted = Math.min(1 + (round % 5) * 4, 120 - got.length)
      await stream.until(() => stream.texts(id).length >= wanted)
      stream.close()
      await stream.closed()
      got.push(...stream.texts(id))
      cursor = stream.of(id).at(-1)!.data!.cursor!
    }
    await writing
    expect(got).toEqual(Array.from({ length: 120 }, (_, n) => `${n}`))
  })

  test('the end of a membership ends the follow, and nothing is shown after it', async () => {
    const room = await privateRoom()
    const stream = await open()
    const [id, others] = [stream.send(follow([room]), 'follow'), stream.send(follow([room], ada), 'follow')]
    await Promise.all([stream.answer(id), stream.answer(others)])
    await client.send(post({ room, text: 'inside' }).body)
    await stream.until(() => stream.texts(id).length === 1)
    const removed = await client.command(ada, { operation: 'room.member.remove', room, target: member.id })
    expect(removed.status, removed.text).toBe(200)
    await client.send(post({ room, text: 'alone' }).body)
    await stream.until(() => stream.texts(others).includes('alone'))
    await stream.until(() => stream.of(id).some(({ error }) => error?.code === 'private_room'))
    expect(stream.texts(id)).toEqual(['inside'])
    expect(stream.of(id).at(-1)!.error!.code).toBe('private_room')
    expect(stream.code).toBeUndefined()
  })

  test('a rotation, the end of a delegation and a suspension end the follows signed with them', async () => {
    const people = ['mover', 'principal', 'bad'].map((name) => person(`${name} ${engine} ${newNonce()}`))
    const [mover, principal, bad] = people as [typeof ada, typeof ada, typeof ada]
    const room = await privateRoom(people.map(({ id }) => id))
    const first = person(`first ${newNonce()}`)
    const delegation = await createDelegation(client, principal, first)
    const stream = await open()
    const ids = [mover, first, bad].map((by) => stream.send(follow([room], by), 'follow'))
    for (const id of ids) expect((await stream.answer(id)).status).toBe(200)
    const next = person(`next ${newNonce()}`)
    const rotation = { operation: 'identity.rotate', target: next.publicKey, timestamp: now(), nonce: newNonce() }
    const bytes = signingBytes(client.serviceId, { ...rotation, public_key: mover.publicKey })
    const [signature, proof] = [mover, next].map((by) => by.sign(bytes).toString('base64url'))
    const moved = await client.send(JSON.stringify({ ...rotation, public_key: mover.publicKey, signature, proof }))
    expect(moved.status, moved.text).toBe(200)
    const revoked = await client.command(principal, { operation: 'delegation.revoke', target: delegation })
    expect(revoked.status, revoked.text).toBe(200)
    const suspended = await client.command(operator, { operation: 'identity.suspend', target: bad.id, reason: 'test' })
    expect(suspended.status, suspended.text).toBe(200)
    await client.send(post({ room, text: 'after' }).body)
    const codes = ['key_rotated', 'forbidden', 'suspended']
    for (const [n, code] of codes.entries())
      await stream.until(() => stream.of(ids[n]!).find(({ error }) => error?.code === code))
    expect(ids.flatMap((id) => stream.texts(id))).toEqual([])
    expect((await stream.follow(follow([room], bad))).error!.code).toBe('suspended')
  })

  test('the handshake is validated like ordinary HTTP', async () => {
    const key = { 'sec-websocket-key': randomBytes(16).toString('base64'), 'sec-websocket-version': '13' }
    const plain = await client.get('/v1/stream')
    expect([plain.status, plain.code, plain.field]).toEqual([400, 'invalid_field', 'Upgrade'])
    const keyed = await client.get('/v1/stream', key)
    expect([keyed.status, keyed.code, keyed.field]).toEqual([400, 'invalid_field', 'Upgrade'])
    const statusOf = async (options: Parameters<typeof StreamClient.open>[1]) => {
      const found = await StreamClient.open(board.address, options).catch((error: Error) => error)
      if (found instanceof StreamClient) found.close()
      return found instanceof Error ? found.message : 101
    }
    expect(await statusOf({ headers: { origin: 'https://evil.example' } })).toMatch('403')
    expect(await statusOf({ headers: { host: 'evil.example' } })).toMatch('403')
    expect(await statusOf({ headers: { origin: 'https://page.example' } })).toBe(101)
    expect(await statusOf({ headers: { origin: board.address } })).toBe(101)
    expect(await statusOf({ protocolVersion: 8 })).toMatch('400')
    const posted = await fetch(`${board.address}/v1/stream`, { method: 'POST', body: '{}' })
    expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, OPTIONS'])
  })

  test('a message that is not text or over 64 KiB closes the connection with its code', async () => {
    const [binary, large, fitting] = [await open(), await open(), await open()]
    binary.socket.send(Buffer.from('{"id":"1","command":{}}'))
    expect(await binary.closed()).toBe(1003)
    large.socket.send(`{"id":"1","command":{"operation":"${'x'.repeat(sizes.stream_message_bytes)}"}}`)
    expect(await large.closed()).toBe(1009)
    const { body } = post({ room: 'large', text: 'x'.repeat(sizes.text_bytes) })
    fitting.socket.send(`{"id":"1","command":${body}${' '.repeat(sizes.stream_message_bytes - body.length - 21)}}`)
    expect((await fitting.answer('1')).status).toBe(200)
  })

  test('more unanswered messages than a batch has lines close the connection', async () => {
    const stream = await open()
    const { body } = post({ room: 'many', text: 'again' })
    for (let n = 0; n < 4 * sizes.batch_lines; n++) stream.send(body)
    expect(await stream.closed()).toBe(4008)
    await client.get('/healthz')
  })

  test('open connections are counted until they end', async () => {
    const gauge = async (name: string) =>
      Number(new RegExp(`^broadside_${name} (\\d+)$`, 'm').exec((await client.get('/metrics')).text)![1])
    await vi.waitFor(async () => expect(await gauge('sockets_open')).toBe(0), patience)
    const connections = await gauge('connections_open')
    const streams = await Promise.all(Array.from({ length: 20 }, open))
    expect(await gauge('sockets_open')).toBe(20)
    expect(await gauge('connections_open')).toBeGreaterThanOrEqual(connections + 18)
    for (const each of streams) each.close()
    await vi.waitFor(async () => expect(await gauge('sockets_open')).toBe(0), patience)
    await vi.waitFor(async () => expect(await gauge('connections_open')).toBeLessThanOrEqual(connections + 1), patience)
  })
})

test.each(['uws', 'node'])('a %s board that stops answers accepted commands and closes with 1001', async (engine) => {
  const board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
  const client = await Client.of(board)
  const stream = await StreamClient.open(board.address)
  const bodies = Array.from(
    { length: 50 },
    (_, n) => client.sign(ada, { operation: 'post', room: 'last', text: `${n}` }).body,
  )
  for (const body of bodies) stream.send(body)
  await stream.until(() => stream.messages.length > 0)
  await board.stop()
  expect(await stream.closed()).toBe(1001)
  expect(stream.messages.map(({ status }) => status)).toEqual(bodies.map(() => 200))
  client.close()
})
