/** /v1/stream against clients that break the protocol, do not read, or take more than their share, on both engines. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'
import { RawConnection } from '../support/raw-http.ts'
import { publicFollow, StreamClient } from '../support/stream-client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9 } as const

/** One masked frame. */
function frame(opcode: number, payload: string | Buffer, { isLast = true, first = 0 } = {}): Buffer {
  const bytes = Buffer.from(payload)
  const mask = Buffer.from([1, 2, 3, 4])
  const length = bytes.length < 126 ? Buffer.from([0x80 | bytes.length]) : Buffer.alloc(3)
  if (bytes.length >= 126) {
    length[0] = 0x80 | 126
    length.writeUInt16BE(bytes.length, 1)
  }
  const masked = bytes.map((byte, at) => byte ^ mask[at % 4]!)
  return Buffer.concat([Buffer.from([(isLast ? 0x80 : 0) | first | opcode]), length, mask, masked])
}

const handshake = (host: string) =>
  `GET /v1/stream HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`

describe.each(randomPart(['uws', 'node']))('on the %s engine', (engine) => {
  let board: Board
  let client: Client
  const opened: { close(): void }[] = []

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
  })
  afterEach(() => {
    for (const each of opened.splice(0)) each.close()
  })
  afterAll(async () => {
    client.close()
    expect(await board.stop()).toMatchObject({ code: 0 })
  })

  const raw = async () => {
    const connection = await RawConnection.open(board.port)
    opened.push({ close: () => connection.socket.destroy() })
    connection.send(handshake(`127.0.0.1:${board.port}`))
    await vi.waitFor(
      () => expect(connection.received.toString('latin1')).toMatch(/^HTTP\/1\.1 101 (?:.|\n|\r)*\r\n\r\n/),
      patience,
    )
    return connection
  }
  const open = async () => {
    const stream = await StreamClient.open(board.address)
    opened.push(stream)
    return stream
  }
  const post = (room: string, text: string) => client.sign(ada, { operation: 'post', room, text }).body
  const isAlive = async () => expect((await client.send(post('alive', 'still'))).status).toBe(200)
  /** Kilobytes of resident memory. */
  const resident = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${board.child.pid}/status`, 'utf8'))![1])

  test('a message in fragments of one byte, with pings in between, is read as one', async () => {
    const connection = await raw()
    const message = Buffer.from('{"id":"cut","command":{"operation":"events.list","room":"no-such-room"}}')
    for (const [at, byte] of message.entries()) {
      const opcode = at === 0 ? opcodes.text : opcodes.continuation
      connection.send(frame(opcode, Buffer.from([byte]), { isLast: at === message.length - 1 }))
      if (at % 20 === 0) connection.send(frame(opcodes.ping, 'there?'))
    }
    await vi.waitFor(
      () => expect(connection.received.toString()).toContain('{"id":"cut","status":400,"ok":false'),
      patience,
    )
  })

  test('frames cut at any byte arrive intact', async () => {
    const connection = await raw()
    const bytes = frame(opcodes.text, '{"id":"slow","command":{"operation":"stats.get"}}')
    for (const byte of bytes) {
      connection.send(Buffer.from([byte]))
      await sleep(1)
    }
    await vi.waitFor(() => expect(connection.received.toString()).toContain('{"id":"slow","status":'), patience)
  })

  test.each([
    ['text that is not UTF-8', frame(opcodes.text, Buffer.from([0x7b, 0xff, 0xfe]))],
    ['an overlong UTF-8 sequence', frame(opcodes.text, Buffer.from([0xc0, 0xaf]))],
    ['a reserved bit', frame(opcodes.text, '{}', { first: 0x40 })],
    ['an unknown opcode', frame(3, '{}')],
    ['a continuation of nothing', frame(opcodes.continuation, '{}')],
    [
      'a message within a message',
      Buffer.concat([frame(opcodes.text, '{', { isLast: false }), frame(opcodes.text, '{}')]),
    ],
    ['a ping in fragments', frame(opcodes.ping, 'a', { isLast: false })],
    ['a length of 2^63 bytes', Buffer.from([0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])],
    ['a length of 1 GiB', Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 1, 2, 3, 4])],
    ['a close frame', frame(opcodes.close, Buffer.from([0x03, 0xe8]))],
  ])('%s ends the connection and nothing else', async (_, bytes) => {
    const connection = await raw()
    connection.send(bytes)
    await vi.waitFor(() => expect(connection.isClosed).toBe(true), patience)
    await isAlive()
  })

  test('endless fragments are cut off before they fill the memory', async () => {
    const connection = await raw()
    const before = resident()
    connection.send(frame(opcodes.text, '{"id":"', { isLast: false }))
    const piece = frame(opcodes.continuation, 'x'.repeat(60_000), { isLast: false })
    for (let n = 0; n < 2_000 && !connection.isClosed; n++) {
      connection.send(piece)
      await new Promise(setImmediate)
    }
    await vi.waitFor(() => expect(connection.isClosed).toBe(true), patience)
    expect(resident() - before).toBeLessThan(64 * 1024)
    await isAlive()
  })

  test('a flood of pings is cut off', async () => {
    const connection = await raw()
    const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frame(opcodes.ping, 'x'.repeat(100))))
    connection.send(pings)
    await vi.waitFor(() => expect(connection.isClosed).toBe(true), patience)
    await isAlive()
  })

  test('a handshake behind a pending request ends only its own connection', async () => {
    const connection = await RawConnection.open(board.port)
    const host = `127.0.0.1:${board.port}`
    connection.send(`GET /api/updates?wait=30 HTTP/1.1\r\nHost: ${host}\r\n\r\n${handshake(host)}`)
    await vi.waitFor(() => expect(connection.isClosed).toBe(true), patience)
    await isAlive()
  })

  test('bytes before the answer to the handshake affect nobody else', async () => {
    const connection = await RawConnection.open(board.port)
    opened.push({ close: () => connection.socket.destroy() })
    const message = frame(opcodes.text, '{"id":"early","command":{"operation":"stats.get"}}')
    connection.send(Buffer.concat([Buffer.from(handshake(`127.0.0.1:${board.port}`)), message]))
    await vi.waitFor(() => expect(connection.received.toString('latin1')).toMatch(/^HTTP\/1\.1 101 /), patience)
    await isAlive()
  })

  test('a client that requests and never reads holds bounded memory, and is cut off', async () => {
    const text = 'y'.repeat(30_000)
    for (let n = 0; n < 60; n++) expect((await client.send(post('heavy', `${n} ${text}`))).status).toBe(200)
    const before = resident()
    const connections = await Promise.all(Array.from({ length: 8 }, raw))
    const read = '{"id":"r","command":{"operation":"events.list","room":"heavy","limit":50}}'
    for (const { socket } of connections) {
      socket.pause()
      for (let n = 0; n < 900; n++) socket.write(frame(opcodes.text, read))
    }
    let most = 0
    await vi.waitFor(async () => {
      most = Math.max(most, resident())
      expect((await client.get('/metrics')).text).toMatch(/^broadside_sockets_open 0$/m)
    }, patience)
    // An answer has 270 KB: 900 of them on 8 connections would be 2 GB.
    expect(most - before).toBeLessThan(200 * 1024)
    await isAlive()
  })

  test('a reader that pauses and resumes gets everything, in order', async () => {
    const stream = await open()
    const id = stream.send(publicFollow(['heavy']), 'follow')
    await stream.answer(id)
    stream.socket.pause()
    const text = 'z'.repeat(20_000)
    for (let n = 0; n < 600; n++) expect((await client.send(post('heavy', `${n} ${text}`))).status).toBe(200)
    stream.socket.resume()
    await stream.until(() => stream.texts(id).length >= 600)
    expect(stream.texts(id)).toEqual(Array.from({ length: 600 }, (_, n) => `${n} ${text}`))
  })

  test('long answers arrive complete at a reader that pauses and resumes', async () => {
    const read = JSON.stringify({ operation: 'events.list', room: 'heavy', limit: 50 })
    // Their cursors differ, because each is sealed separately.
    const { events } = (await client.send(read)).data
    expect(JSON.stringify(events).length).toBeGreaterThan(200_000)
    const stream = await open()
    const ids = Array.from({ length: 30 }, () => stream.send(read))
    for (let n = 0; stream.messages.length < ids.length; n++) {
      if (n % 2 === 0) stream.socket.pause()
      else stream.socket.resume()
      await sleep(50)
    }
    stream.socket.resume()
    for (const id of ids) expect((await stream.answer(id)).data!.events).toEqual(events)
  })

  test('a thousand connections with two follows each get one post, and leave nothing behind', async () => {
    const streams = await Promise.all(Array.from({ length: 1_000 }, open))
    const ids = streams.map((stream) => [1, 2].map(() => stream.send(publicFollow(['alive']), 'follow')))
    await Promise.all(streams.map((stream, n) => stream.answer(ids[n]![1]!)))
    await client.send(post('alive', 'to all'))
    await Promise.all(
      streams.map((stream, n) => stream.until(() => ids[n]!.every((id) => stream.texts(id).includes('to all')))),
    )
    for (const each of streams) each.close()
    await vi.waitFor(
      async () => expect((await client.get('/metrics')).text).toMatch(/^broadside_sockets_open 0$/m),
      patience,
    )
    await isAlive()
  })
})

describe.each(['uws', 'node'])('with limits, on the %s engine', (engine) => {
  const limits = { streams_per_address: 4, waits_per_address: 6, reads_per_address_per_minute: null }
  const env = { HTTP_ENGINE: engine, BROADSIDE_LIMITS: 'on', TRUST_PROXY: 'x-client', LIMITS: JSON.stringify(limits) }

  test('connections count as streams and follows as waits of their network, until they end', async () => {
    const board = await startBoard({ directory: boardDirectory(), env })
    const client = await Client.of(board)
    expect((await client.post(ada, { room: 'lobby', text: 'here' })).status).toBe(200)
    const from = (address: string) => StreamClient.open(board.address, { headers: { 'x-client': address } })
    const streams = await Promise.all(Array.from({ length: 4 }, () => from('192.0.2.1')))
    await expect(from('192.0.2.1')).rejects.toThrow('429')
    const other = await from('192.0.2.2')
    const follows = []
    for (let n = 0; n < 8; n++) follows.push(await streams[n % 4]!.follow(publicFollow(['lobby'])))
    expect(follows.map(({ status, error }) => error?.code ?? status)).toEqual([
      ...Array.from({ length: 6 }, () => 200),
      'rate_limited',
      'rate_limited',
    ])
    expect((await other.follow(publicFollow(['lobby']))).status).toBe(200)
    streams[0]!.socket.send('{"id":"free","unfollow":"1"}')
    await streams[0]!.answer('free')
    expect((await streams[1]!.follow(publicFollow(['lobby']))).status).toBe(200)
    streams[2]!.close()
    await vi.waitFor(async () => (await from('192.0.2.1')).close(), patience)
    // Commands are charged as at POST /v1/command: unsigned ones too.
    const codes = new Set<string | undefined>()
    for (let n = 0; n < 70; n++) codes.add((await other.command('{"operation":"post","text":"x"}')).error?.code)
    expect([...codes]).toEqual(['unsigned', 'rate_limited'])
    for (const each of [...streams, other]) each.close()
    client.close()
    await board.stop()
  })
})

test.each(['uws', 'node'])('after kill -9 of a %s board, repeated commands duplicate nothing', async (engine) => {
  const directory = boardDirectory()
  const first = await startBoard({ directory, env: { HTTP_ENGINE: engine } })
  const client = await Client.of(first)
  const posts = Array.from({ length: 400 }, (_, n) =>
    client.sign(ada, { operation: 'post', room: 'cut', text: `${n}` }),
  )
  const stream = await StreamClient.open(first.address)
  for (const { body } of posts) stream.send(body)
  await stream.until(() => stream.messages.length > 20)
  await first.kill()
  await stream.closed()
  client.close()
  const board = await startBoard({ directory, env: { HTTP_ENGINE: engine } })
  const again = await StreamClient.open(board.address)
  const ids = posts.map(({ body }) => again.send(body))
  await again.until(() => again.messages.length === posts.length)
  expect(again.messages.map(({ status }) => status)).toEqual(posts.map(() => 200))
  expect(ids.map((id) => again.of(id)[0]!.data!.event!.seq)).toEqual(posts.map((_, n) => n + 1))
  for (const { id } of stream.messages) expect(again.of(id)[0]!.data!.receipt!.duplicate).toBe(true)
  again.close()
  await board.stop()
})
