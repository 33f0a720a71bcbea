import { gzipSync } from 'node:zlib'
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type Fields, newNonce, now, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Get = {
  readonly description: string
  readonly responses: {
    readonly '200': { readonly content: Record<'application/json', { readonly schema: AnySchemaObject }> }
  }
}

const ada = person('ada')
const hello: Fields = { operation: 'post', room: 'lobby', text: 'hello' }

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client
  const stats = async () => (await client.get('/api/stats')).data.stats?.events
  /** A valid signed command with some fields changed after signing. */
  const changed = (fields: object, signedFields: Fields = hello) =>
    JSON.stringify({ ...(JSON.parse(client.sign(ada, signedFields).body) as object), ...fields })

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
    await client.post(ada, { text: 'the only one' })
  })
  afterAll(async () => {
    expect(await stats(), 'a refused command left something').toBe(1)
    client.close()
  })

  test('a write without a signature is 403 unsigned, a public read without one is answered', async () => {
    expect(await client.send(JSON.stringify(hello))).toMatchObject({ status: 403, code: 'unsigned' })
    expect(await client.send('{"operation":"events.list","room":"lobby"}')).toMatchObject({ status: 200 })
  })

  test('a signed command with a bad signature is refused and never treated as unsigned', async () => {
    const read: Fields = { operation: 'events.list', room: 'lobby' }
    const other = JSON.parse(client.sign(person('bob'), read).body) as { signature: string }
    expect(await client.send(changed({ signature: other.signature }, read))).toMatchObject({
      status: 400,
      code: 'bad_signature',
    })
    expect(await client.send(changed({ limit: 3 }, read))).toMatchObject({ status: 400, code: 'bad_signature' })
    expect(await client.send(changed({ text: 'other' }))).toMatchObject({ status: 400, code: 'bad_signature' })
    const elsewhere = client.sign(ada, hello, { serviceId: 'bs-0000000000000000' })
    expect(await client.send(elsewhere.body)).toMatchObject({ status: 400, code: 'bad_signature' })
  })

  test('every missing or non-canonical part of a signature is refused by name', async () => {
    for (const name of ['public_key', 'signature', 'timestamp', 'nonce']) {
      const value = name === 'timestamp' ? 0 : ''
      expect(await client.send(changed({ [name]: value }))).toMatchObject({
        status: 400,
        code: 'missing_field',
        field: name,
      })
    }
    const { signature } = JSON.parse(client.sign(ada, hello).body) as { signature: string }
    const loose = `${signature.slice(0, -1)}${signature.endsWith('A') ? 'B' : 'A'}`
    for (const wrong of [`${signature}==`, signature.slice(0, -1), loose, `+${signature.slice(1)}`]) {
      const answer = await client.send(changed({ signature: wrong }))
      expect([wrong, answer.status, answer.field]).toEqual([
        wrong,
        400,
        answer.code === 'bad_signature' ? 'signature' : answer.field,
      ])
      expect(['bad_signature', 'invalid_field']).toContain(answer.code)
    }
    const zero = Buffer.alloc(32).toString('base64url')
    const small = Buffer.from('0100000000000000000000000000000000000000000000000000000000000000', 'hex').toString(
      'base64url',
    )
    for (const key of [zero, small]) {
      expect(await client.send(changed({ public_key: key }))).toMatchObject({
        status: 400,
        code: 'bad_key',
        field: 'public_key',
      })
    }
  })

  test.each([
    ['', 'invalid_json'],
    ['[]', 'invalid_json'],
    ['{', 'invalid_json'],
    ['null', 'invalid_json'],
    ['{"operation":"post","operation":"post"}', 'invalid_json'],
    ['\ufeff{"operation":"post"}', 'invalid_json'],
    ['{"operation":"post","text":"\\ud800"}', 'invalid_json'],
    ['{"operation":"post","limit":1e400}', 'invalid_json'],
    ['{"operation":"post","limit":9007199254740993}', 'invalid_json'],
    ['{"operation":"post"} x', 'invalid_json'],
    ['['.repeat(100_000), 'invalid_json'],
    ['{"operation":"post","__proto__":1}', 'unknown_field'],
    ['{"operation":"post","txt":"x"}', 'unknown_field'],
    ['{"operation":"post","text":3}', 'invalid_field'],
    ['{"operation":"post","text":null}', 'invalid_field'],
    ['{"text":"x"}', 'missing_field'],
    ['{"operation":"fly"}', 'unknown_operation'],
  ])('the body %.60s is refused as %s', async (body, code) => {
    expect(await client.send(body)).toMatchObject({ status: 400, code })
  })

  test.each([
    ['/api/log/proof?message=00000000000000000000000000000000', 'message', 'contains no event'],
    ['/api/log/consistency?from=2', 'to', 'an integer of at least 1'],
    ['/api/events?colour=red', 'colour', 'it takes room, page, author'],
    ['/api/events?room=%FF', 'room', 'room in the query is not percent-encoded UTF-8'],
    ['/a/xyz', 'id', 'a blob id of 32 lowercase hex characters'],
    ['/c64/!!', 'command', 'canonical base64url'],
  ])('the refusal of GET %s names its own parameter, %s, and the valid values', async (path, field, said) => {
    const answer = await client.get(path)
    expect([answer.status, answer.field, answer.text]).toEqual([400, field, expect.stringContaining(said)])
  })

  test('a stranger is told who may redact an event, including its author', async () => {
    const [{ event_id }] = (await client.get('/api/events?room=lobby')).data.events as unknown as [{ event_id: string }]
    const refused = await client.command(person('eve'), { operation: 'event.redact', event_id, reason: 'x' })
    expect([refused.code, refused.field, refused.text]).toEqual([
      'forbidden',
      'event_id',
      expect.stringContaining('its author'),
    ])
  })

  test('a body of invalid UTF-8 is refused', async () => {
    const body = Buffer.from('{"operation":"post","text":"?"}')
    body[body.indexOf('?')] = 0xff
    expect(await client.send(body)).toMatchObject({ status: 400, code: 'invalid_json' })
  })

  test('a signed command is checked against the rules of its fields', async () => {
    const cases: [Fields, string, string][] = [
      [{ operation: 'post', text: '' }, 'missing_field', 'text'],
      [{ operation: 'post', text: 'nul\0' }, 'invalid_field', 'text'],
      [{ operation: 'post', text: 'é'.repeat(16_385) }, 'too_large', 'text'],
      [{ operation: 'post', text: 'x', room: 'Lobby' }, 'invalid_field', 'room'],
      [{ operation: 'post', text: 'x', room: '-x' }, 'invalid_field', 'room'],
      [{ operation: 'post', text: 'x', page: 'a'.repeat(65) }, 'invalid_field', 'page'],
      [{ operation: 'post', text: 'x', kind: 'two words' }, 'invalid_field', 'kind'],
      [{ operation: 'post', text: 'x', reply_to: 'A'.repeat(32) }, 'invalid_field', 'reply_to'],
      [{ operation: 'post', text: 'x', handle: 'x' }, 'invalid_field', 'handle'],
      [{ operation: 'post', text: 'x', ttl: -1 }, 'invalid_field', 'ttl'],
      [{ operation: 'post', text: 'x', target: 'x' }, 'unknown_field', 'target'],
      [{ operation: 'post', text: 'x', data: '{"schema":2}' }, 'invalid_field', 'data.schema'],
      [{ operation: 'post', text: 'x', data: '{"schema":1,"more":1}' }, 'invalid_field', 'data.more'],
      [{ operation: 'post', text: 'x', request_id: 'é'.repeat(65) }, 'too_large', 'request_id'],
      [{ operation: 'room.create', room: 'x', members: ['a'] }, 'invalid_field', 'members'],
      [{ operation: 'event.get', event_id: 'f'.repeat(32), room: 'lobby' }, 'unknown_field', 'room'],
    ]
    for (const [fields, code, field] of cases) {
      expect([fields, await client.command(ada, fields)]).toMatchObject([fields, { status: 400, code, field }])
    }
  })

  test('a text of exactly 32768 bytes is accepted and returned whole', async () => {
    // On a board that is then discarded, so that the count of events stays one.
    const own = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    const reader = await Client.of(own)
    const text = `${'𝄞'.repeat(8191)}éé`
    expect(Buffer.byteLength(text)).toBe(32_768)
    const { data } = await reader.post(ada, { text })
    expect((await reader.get(`/api/events/${data.event_id}`)).data.event?.text).toBe(text)
    reader.close()
    await own.kill()
  })

  test('checks run in this order: shape, signature, operation and fields, retry memory, time, permission, effect', async () => {
    const stale = { timestamp: 1 }
    // Shape before signature.
    expect(await client.send(changed({ text: 7, signature: 'x' }))).toMatchObject({
      code: 'invalid_field',
      field: 'text',
    })
    // Signature before operation and fields.
    expect(await client.send(changed({ operation: 'fly' }))).toMatchObject({ code: 'bad_signature' })
    expect(await client.send(changed({ room: 'Bad Room' }))).toMatchObject({ code: 'bad_signature' })
    // Operation before its fields, fields before the time window.
    expect(await client.command(ada, { operation: 'fly', room: '!' }, stale)).toMatchObject({
      code: 'unknown_operation',
    })
    expect(await client.command(ada, { ...hello, room: '!' }, stale)).toMatchObject({ code: 'invalid_field' })
    // Retry memory before the time window.
    const nonce = newNonce()
    const own = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    const writer = await Client.of(own)
    await writer.command(ada, { ...hello, request_id: 'order' }, { nonce })
    expect(await writer.command(ada, { ...hello, text: 'b' }, { nonce, ...stale })).toMatchObject({
      code: 'nonce_reused',
    })
    expect(await writer.command(ada, { ...hello, text: 'b', request_id: 'order' }, stale)).toMatchObject({
      code: 'request_id_reused',
    })
    // The time window before permission and effect.
    await writer.command(ada, { operation: 'room.create', room: 'closed', visibility: 'private' })
    const outside = { operation: 'post', room: 'closed', text: 'x' }
    expect(await writer.command(person('bob'), outside, stale)).toMatchObject({ code: 'stale_timestamp' })
    expect(await writer.command(person('bob'), outside)).toMatchObject({ status: 403, code: 'private_room' })
    expect(await writer.post(ada, { room: 'lobby', text: 'x', reply_to: '0'.repeat(32) }, stale)).toMatchObject({
      code: 'stale_timestamp',
    })
    writer.close()
    await own.kill()
  })

  test('a signed read is answered inside its time window and stale outside', async () => {
    const read: Fields = { operation: 'events.list', room: 'lobby' }
    expect((await client.command(ada, read, { timestamp: now() - 200 })).status).toBe(200)
    expect(await client.command(ada, read, { timestamp: now() - 400 })).toMatchObject({
      status: 400,
      code: 'stale_timestamp',
    })
    const signed = client.sign(ada, read)
    for (let round = 0; round < 2; round += 1) expect((await client.send(signed.body)).status).toBe(200)
  })

  test('a time in milliseconds is recognized wherever seconds are expected', async () => {
    const hint = (time: number, factor: string) => `${time} looks like ${factor}`
    const ms = Date.now()
    for (const fields of [hello, { operation: 'events.list', room: 'lobby' }]) {
      const { status, code, text } = await client.command(ada, fields, { timestamp: ms })
      expect([status, code, text]).toEqual([
        400,
        'stale_timestamp',
        expect.stringContaining(hint(ms, 'milliseconds: divide it by 1000')),
      ])
      const micro = await client.command(ada, fields, { timestamp: ms * 1000 })
      expect(micro.text).toContain(hint(ms * 1000, 'microseconds: divide it by 1000000'))
      // A clock that is merely wrong is told nothing about units.
      expect((await client.command(ada, fields, { timestamp: now() + 4_000 })).text).not.toContain('looks like')
    }
    for (const name of ['since', 'until'])
      expect(await client.get(`/v1/export?${name}=${ms}`)).toMatchObject({
        status: 400,
        code: 'invalid_field',
        field: name,
        text: expect.stringContaining('looks like milliseconds'),
      })
    const data = JSON.stringify({ closes_at: ms })
    expect(await client.command(ada, { operation: 'room.policy.set', room: 'lobby', data })).toMatchObject({
      status: 400,
      code: 'invalid_field',
      field: 'data.closes_at',
      text: expect.stringContaining('looks like milliseconds'),
    })
  })

  test('unknown query parameters are answered with the one that was probably meant', async () => {
    for (const [path, meant] of [
      ['/api/events?romo=lobby', 'room'],
      ['/api/updates?cursr=x', 'cursor'],
      ['/v1/export?sicne=1', 'since'],
      ['/tail/lobby?lsat=1', 'last'],
      ['/api/works?kind=oepn', '\\"open\\"'],
      ['/api/tools?type=servce', '\\"service\\"'],
      ['/api/tools?door=open,walet', '\\"wallet\\"'],
      ['/api/updates?kinds=event.psoted', 'event.posted'],
      ['/api/events?order=dsec', '\\"desc\\"'],
    ] as const)
      expect([path, (await client.get(path)).text]).toEqual([path, expect.stringContaining(`did you mean ${meant}?`)])
  })

  test('OPTIONS and HEAD are supported wherever GET is, except where GET does more than read', async () => {
    const { paths } = JSON.parse((await client.get('/openapi.json')).text) as { paths: Record<string, object> }
    const wrong: string[] = []
    const isPlain = (path: string) => !path.startsWith('/oauth/')
    for (const [path] of Object.entries(paths).filter(([path, methods]) => isPlain(path) && 'get' in methods)) {
      const url = board.address + path.replace('{room}', 'lobby').replaceAll(/\{\w+\}/g, 'a'.repeat(32))
      for (const method of ['OPTIONS', 'HEAD'])
        if ((await fetch(url, { method })).status === 405) wrong.push(`${method} ${path}`)
    }
    expect(wrong).toEqual(['HEAD /v1/stream', 'HEAD /c64/{command}'])
  })

  test('a tail tells a private room from one that does not exist, and the agent card is an object, as documented', async () => {
    const { paths } = JSON.parse((await client.get('/openapi.json')).text) as { paths: Record<string, { get: Get }> }
    const made = await client.command(ada, { operation: 'room.create', room: 'inner', visibility: 'private' })
    expect(made.status).toBe(200)
    expect(await client.get('/tail/inner')).toMatchObject({ status: 403, code: 'private_room' })
    expect(await client.get('/tail/no-such-room')).toMatchObject({ status: 400, code: 'not_found' })
    const { description } = paths['/tail/{room}']!.get
    for (const code of ['403 `private_room`', '400 `not_found`']) expect(description).toContain(code)
    const path = '/.well-known/agent-card.json'
    const { schema } = paths[path]!.get.responses['200'].content['application/json']
    const check = new Ajv2020({ strict: false }).compile({ ...schema, additionalProperties: false })
    const card: unknown = JSON.parse((await client.get(path)).text)
    expect([check(card), check.errors, schema.type]).toEqual([true, null, 'object'])
  })

  test('a GET takes a parameter by the name that the operation has for it, or by its own', async () => {
    const { events = [] } = (await client.get('/api/events')).data
    const [event] = events
    const { author, event_id: id } = event!
    for (const [path, name, other, value] of [
      ['/api/log/proof', 'message', 'event_id', id],
      ['/api/reviews', 'subject', 'target', 's_0123456789abcdef'],
      ['/api/tool', 'id', 'target', 's_0123456789abcdef'],
      ['/api/events', 'author', 'target', author.id],
      ['/api/threads', 'author', 'target', author.id],
    ] as const) {
      const [one, same] = [await client.get(`${path}?${name}=${value}`), await client.get(`${path}?${other}=${value}`)]
      const result = ({ status, code, text }: Answer) => [status, code, status === 200 ? JSON.parse(text) : undefined]
      expect([path, ...result(same)]).toEqual([path, ...result(one)])
      expect(['not_found', undefined]).toContain(one.code)
      if (one.field !== undefined) expect([one.field, same.field]).toEqual([name, other])
      const both = await client.get(`${path}?${name}=${value}&${other}=${value}`)
      expect([both.status, both.code, both.field]).toEqual([400, 'invalid_field', name])
      expect(both.text).toContain(`${name} and ${other} are two names of one parameter: give only one of them`)
    }
    const missing = await client.get('/api/log/proof')
    expect([missing.code, missing.field]).toEqual(['missing_field', 'message'])
    expect(missing.text).toContain('/api/log/proof needs message or event_id')
    for (const field of ['message', 'event_id'])
      expect(await client.get(`/api/log/proof?${field}=x`)).toMatchObject({ code: 'invalid_field', field })
    expect(await client.get('/api/updates?rooms=lobby')).toMatchObject({ status: 200 })
    expect(await client.get('/api/updates?rooms=lobby,elsewhere')).toMatchObject({ code: 'not_found', field: 'room' })
    expect(await client.get('/api/updates?rooms=Not%20one')).toMatchObject({ code: 'invalid_field', field: 'rooms' })
    expect(await client.get('/api/updates?rooms=lobby&room=lobby')).toMatchObject({
      code: 'invalid_field',
      field: 'room',
    })
  })

  test('a path with a final slash that it should not have is refused with the path that was meant', async () => {
    const id = '0'.repeat(32)
    for (const path of [
      ...['/v1/command', '/v1/commands', '/v1/stream', '/mcp', '/capabilities', '/for-agents', '/api/rooms'],
      ...['/api/events', '/api/updates', '/embed/v1.js', `/api/events/${id}`, `/api/thread/${id}`, '/api/log/proof'],
      ...['/tail/lobby', '/tail/nowhere', `/a/${id}`],
    ]) {
      const message = `there is nothing at ${path}/: leave out the final slash, as in ${path}`
      const refused = { status: 404, code: 'no_such_path', text: expect.stringContaining(`"${message}"`) }
      expect([path, await client.get(`${path}/`)]).toMatchObject([path, refused])
      expect([path, await client.get(`${path}/?room=lobby`)]).toMatchObject([path, refused])
    }
    const posted = await fetch(`${board.address}/v1/command/`, { method: 'POST', body: '{}' })
    expect([posted.status, await posted.text()]).toEqual([404, expect.stringContaining('as in /v1/command"')])
    expect((await client.get('/api/thread/')).text).toContain('event_id must be')
    for (const path of ['/rooms/', '/docs/', '/room/lobby/', '/tail/lobby/']) {
      const page = await client.get(path, { accept: 'text/html' })
      expect([path, page.status, page.text]).toEqual([
        path,
        404,
        expect.stringContaining(`<a href="${path.slice(0, -1)}">`),
      ])
    }
    const other = await client.get('//elsewhere.example/', { accept: 'text/html' })
    expect([other.status, other.text]).toEqual([404, expect.not.stringContaining('href="//')])
  })

  test('unknown methods, paths and query parameters are refused by name', async () => {
    expect(await client.get('/v1/command')).toMatchObject({ status: 405, headers: { allow: 'POST, OPTIONS' } })
    expect(await client.get('/nothing')).toMatchObject({ status: 404 })
    expect(await client.get('/api/events/%00')).toMatchObject({ status: 400 })
    expect(await client.get('/api/events?room=%zz')).toMatchObject({ status: 400, code: 'invalid_field' })
    expect(await client.get('/api/events?room=lobby&room=lobby')).toMatchObject({ status: 400, code: 'invalid_field' })
    for (const path of ['/api/stats', '/capabilities', '/openapi.json', '/time']) {
      expect([path, await client.get(`${path}?x=1`)]).toMatchObject([
        path,
        { status: 400, code: 'unknown_field', field: 'x' },
      ])
      expect((await client.get(path)).status).toBe(200)
    }
  })

  test('a compressed body is refused as such', async () => {
    const body = gzipSync(client.sign(ada, hello).body)
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const answer = await fetch(`${board.address}/v1/command`, { method: 'POST', headers, body })
    expect(answer.status).toBe(400)
    const { error } = (await answer.json()) as { error: { code: string; message: string } }
    expect(error).toEqual({
      code: 'invalid_json',
      message: 'no Content-Encoding is accepted, and the body has gzip: send the JSON plainly',
    })
  })

  test('cross-origin pages may read the headers that a client needs, and If-None-Match: * gets 304', async () => {
    const { text: vkeys } = await client.get('/log/policy')
    const log = /^log \S+ \S+(\/log\/\w+)$/m.exec(vkeys)![1]
    for (const path of [
      '/capabilities',
      '/for-agents',
      '/embed/v1.js',
      `${log}/checkpoint`,
      '/v1/export',
      '/api/rooms',
    ])
      expect([path, (await client.get(path)).headers['access-control-expose-headers']]).toEqual([
        path,
        'Retry-After, ETag, X-Next-Cursor, Date',
      ])
    for (const path of ['/capabilities', '/api/rooms', '/embed/v1.js', '/'])
      expect([path, (await client.get(path, { 'if-none-match': '*' })).status]).toEqual([path, 304])
  })

  test('cross-origin pages may resume a stream, revalidate an answer and fetch part of a file', async () => {
    const headers = ['last-event-id', 'if-none-match', 'cache-control', 'range', 'if-range', 'content-type']
    for (const path of [
      '/tail/lobby',
      '/api/rooms',
      '/api/updates',
      '/v1/export',
      '/v1/command',
      `/a/${'0'.repeat(32)}`,
    ]) {
      const answer = await fetch(`${board.address}${path}`, {
        method: 'OPTIONS',
        headers: {
          origin: 'https://elsewhere.example',
          'access-control-request-method': 'GET',
          'access-control-request-headers': headers.join(','),
        },
      })
      const allowed = answer.headers.get('access-control-allow-headers')?.split(', ')
      expect([path, answer.status, allowed]).toEqual([path, 200, expect.arrayContaining(headers)])
    }
  })
})

test('with limits on, an identity that writes too fast is told how long to wait, and its retries are still answered', async () => {
  const board = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'on' } })
  const client = await Client.of(board)
  const first = client.sign(ada, hello)
  await client.send(first.body)
  // The allowance refills with time: on a slow machine it takes more commands until one is refused.
  const limited: Answer[] = []
  for (let round = 0; round < 20 && limited.length === 0; round++) {
    const answers = await Promise.all(Array.from({ length: 80 }, (_, n) => client.post(ada, { text: `${n}` })))
    limited.push(...answers.filter(({ status }) => status !== 200))
  }
  expect(limited.length).toBeGreaterThan(0)
  for (const { status, code, headers } of limited) {
    expect([status, code]).toEqual([429, 'rate_limited'])
    expect(headers['retry-after']).toMatch(/^[1-9][0-9]*$/)
  }
  expect(await client.send(first.body)).toMatchObject({ status: 200, data: { receipt: { duplicate: true } } })
  expect((await client.post(person('bob'), { text: 'another identity' })).status).toBe(200)

  // Unsigned commands and invalid signatures have separate limits, and each refusal names its own.
  const refusedOf = async (body: string) => {
    const texts = new Set<string>()
    for (let round = 0; round < 20 && texts.size === 0; round++) {
      const sent = await Promise.all(Array.from({ length: 100 }, () => client.send(body)))
      for (const { status, text } of sent) if (status === 429) texts.add(text.replace(/\d+/g, ''))
    }
    return [...texts]
  }
  const unsigned = await refusedOf('{"operation":"log.checkpoint"}')
  expect(unsigned).toHaveLength(1)
  expect(unsigned[0]).toContain(
    'too many unsigned or invalid commands from this address: wait retry_after seconds, or sign',
  )
  expect((await client.post(person('cleo'), { text: 'signed' })).status).toBe(200)
  const elsewhere = client.sign(ada, hello, { serviceId: 'bs-0000000000000000' })
  const bad = await refusedOf(elsewhere.body)
  expect(bad).toHaveLength(1)
  expect(bad[0]).toContain('too many bad signatures from this address')
  client.close()
})
