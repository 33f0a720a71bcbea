/** What the HTTP port promises about errors, disconnecting clients, streams and stopping, on both engines, over real sockets. */

import { createHash } from 'node:crypto'
import { Agent, get as httpGet, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { ByteStream, Exchange } from '../../../src/http/port.ts'
import { describeEngines, get, textHeaders } from '../../support/http-engines.ts'
import { patience } from '../../support/patience.ts'
import { RawConnection, rawRequest, streamedSoFar } from '../../support/raw-http.ts'

describeEngines((engine) => {
  test('a handler that throws or rejects is answered 500 with the id of the error, and the connection remains open', async () => {
    const connection = await RawConnection.open(engine.port)
    for (const [path, id] of [
      ['/throw', 1],
      ['/reject', 2],
    ] as const) {
      connection.send(get(path))
      const answer = await connection.answer()
      expect([answer.status, answer.body.toString()]).toEqual([500, `{"id":${id}}`])
    }
    connection.send(get('/echo'))
    expect((await connection.answer()).status).toBe(200)
    expect(engine.state.faults.map((fault) => (fault as Error).message)).toEqual(['sync fault', 'async fault'])
    connection.destroy()
  })

  test('an upgrade request pipelined after an unanswered request closes only its own connection', async () => {
    for (const first of ['/hold', '/stream', '/echo']) {
      const connection = await RawConnection.open(engine.port)
      connection.send(`${get(first)}${get('/echo').replace('GET', 'CONNECT')}`)
      await vi.waitFor(() => expect(connection.isClosed).toBe(true), patience)
      await engine.expectAlive()
    }
    for (const exchange of engine.state.held) expect(exchange.ended).toBe(true)
  })

  test('header injection throws before a byte is sent, and so does a header that affects framing', async () => {
    const bad = [
      ['X', 'a\r\nSet-Cookie: p=1'],
      ['X', 'a\0'],
      ['X\r\nY', 'a'],
      ['X', '\n'],
      ['Content-Length', '3'],
      ['', 'a'],
    ]
    for (const header of bad as [string, string][]) {
      const own = new RawConnection((await RawConnection.open(engine.port)).socket)
      own.send(get('/hold'))
      await expect.poll(() => engine.state.held.length).toBe(1)
      const exchange = engine.state.held.pop() as Exchange
      expect(() => exchange.reply(200, [header], 'x')).toThrow('header')
      expect(() => exchange.stream(200, [header])).toThrow('header')
      expect(exchange.ended).toBe(false)
      exchange.reply(200, [], 'clean')
      expect((await own.answer()).body.toString()).toBe('clean')
      own.destroy()
    }
  })

  test('connections beyond the limit are closed, those within it continue, and one that ends makes room', async () => {
    let told = 0
    const server = await engine.start((exchange) => exchange.reply(200, textHeaders, 'here'), undefined, {
      connectionsMax: 3,
      onFull: () => told++,
    })
    const port = await server.listen('127.0.0.1', 0)
    const open = async (): Promise<RawConnection> => {
      const connection = await RawConnection.open(port)
      connection.send(get('/'))
      return connection
    }
    const within = await Promise.all([open(), open(), open()])
    for (const each of within) expect((await each.answer()).status).toBe(200)
    for (const each of await Promise.all(Array.from({ length: 20 }, open))) {
      await each.closed()
      expect(each.received).toHaveLength(0)
    }
    await expect.poll(() => told).toBe(20)
    expect(server.openConnections).toBe(3)
    within[0]!.destroy()
    await expect.poll(() => server.openConnections).toBe(2)
    const next = await open()
    for (const each of [next, within[1]!, within[2]!]) {
      if (each !== next) each.send(get('/'))
      expect((await each.answer()).status).toBe(200)
    }
    await server.close()
  })

  test('a client that disconnects before its answer is reported once, and a late answer does nothing', async () => {
    const connection = await RawConnection.open(engine.port)
    connection.send(get('/hold'))
    await expect.poll(() => engine.state.held.length).toBe(1)
    connection.destroy()
    await expect.poll(() => engine.state.aborts).toBe(1)
    const exchange = engine.state.held[0] as Exchange
    expect(exchange.ended).toBe(true)
    exchange.reply(200, textHeaders, 'late')
    let late = 0
    exchange.onAbort(() => late++)
    exchange.stream(200, textHeaders).onClose(() => late++)
    expect(late).toBe(2)
    expect(engine.state.aborts).toBe(1)
  })

  test('a request that nobody answers reaches its deadline: it is answered there, or dropped', async () => {
    const server = await engine.start(() => undefined, 300)
    const port = await server.listen('127.0.0.1', 0)
    const answered = await RawConnection.open(port)
    answered.send(get('/hold?answered'))
    const dropped = await RawConnection.open(port)
    dropped.send(get('/hold'))
    expect((await answered.answer()).status).toBe(429)
    await dropped.closed()
    expect(dropped.received.length).toBe(0)
    answered.destroy()
    await server.close()
  })

  test('drop closes without an answer', async () => {
    const connection = await RawConnection.open(engine.port)
    connection.send(get('/hold'))
    await expect.poll(() => engine.state.held.length).toBe(1)
    engine.state.held[0]?.drop()
    await connection.closed()
    expect(connection.received.length).toBe(0)
    expect(engine.state.aborts).toBe(0)
  })

  test('an answer given inside the callback of another connection arrives complete', async () => {
    const waiting = await RawConnection.open(engine.port)
    waiting.send(get('/hold'))
    await expect.poll(() => engine.state.held.length).toBe(1)
    const other = await engine.start((exchange) => {
      engine.state.held[0]?.reply(200, textHeaders, 'from there')
      exchange.reply(200, textHeaders, 'own')
    })
    const otherPort = await other.listen('127.0.0.1', 0)
    expect((await rawRequest(otherPort, get('/')))?.body.toString()).toBe('own')
    expect((await waiting.answer()).body.toString()).toBe('from there')
    waiting.destroy()
    await other.close()
  })

  test('a long answer arrives complete at a reader that starts late', async () => {
    const connection = await RawConnection.open(engine.port)
    connection.socket.pause()
    connection.send(get('/big'))
    await sleep(100)
    connection.socket.resume()
    const answer = await connection.answer()
    expect(answer.body.equals(Buffer.from('b'.repeat(3_000_000)))).toBe(true)
    connection.send(get('/echo'))
    expect((await connection.answer()).status).toBe(200)
    connection.destroy()
  })

  test('a stream delivers every chunk in order, ends properly, and the connection remains open', async () => {
    const connection = await RawConnection.open(engine.port)
    connection.send(get('/stream'))
    await connection.until('# first')
    const stream = engine.state.streams[0] as ByteStream
    let closes = 0
    stream.onClose(() => closes++)
    const expected = ['# first\n']
    for (let i = 0; i < 200; i++) {
      const chunk = `${i}:${'x'.repeat(i * 7)}\n`
      expected.push(chunk)
      stream.write(Buffer.from(chunk))
      if (i % 20 === 0) await sleep(1)
    }
    stream.end()
    expect((await connection.answer()).body.toString()).toBe(expected.join(''))
    await expect.poll(() => closes).toBe(1)
    connection.send(get('/echo'))
    expect((await connection.answer()).status).toBe(200)
    connection.destroy()
  })

  test('the same bytes reach every stream that they are written to, in one turn of the loop or in the next', async () => {
    const readers = await Promise.all(Array.from({ length: 3 }, () => RawConnection.open(engine.port)))
    for (const reader of readers) {
      reader.send(get('/stream'))
      await reader.until('# first')
    }
    const [first, second, third] = engine.state.streams as [ByteStream, ByteStream, ByteStream]
    const beat = Buffer.from('# beat\n')
    await new Promise<void>((resolve) => {
      setImmediate(() => first.write(beat))
      third.end()
      setImmediate(() => {
        second.write(beat)
        resolve()
      })
    })
    for (const reader of readers.slice(0, 2)) await reader.until('# beat')
    for (const reader of readers) reader.destroy()
  })

  test('N5: a reader that pauses and resumes gets every byte, the last one too, without delaying others', async () => {
    const slow = await RawConnection.open(engine.port)
    slow.send(get('/stream'))
    await slow.until('# first')
    const quick = await RawConnection.open(engine.port)
    quick.send(get('/stream'))
    await quick.until('# first')
    const [stream, other] = engine.state.streams as [ByteStream, ByteStream]
    slow.socket.pause()
    const sent = createHash('sha256').update('# first\n')
    let drains = 0
    stream.onDrain(() => drains++)
    // A stalled reader costs megabytes of kernel buffers before anybody notices.
    for (let i = 0; i < 4000 && stream.blockedSince === undefined; i++) {
      const chunk = Buffer.alloc(10_000, 97 + (i % 26))
      sent.update(chunk)
      if (!stream.write(chunk)) await sleep(1)
    }
    expect(stream.blockedSince).toBeLessThanOrEqual(performance.now())
    expect(stream.write(Buffer.from('queued'))).toBe(false)
    sent.update('queued')
    other.write(Buffer.from('still going'))
    await quick.until('still going')
    expect(other.blockedSince).toBeUndefined()
    drains = 0
    slow.socket.resume()
    await expect.poll(() => stream.blockedSince).toBeUndefined()
    expect(drains).toBeGreaterThan(0)
    stream.write(Buffer.from('the last byte.'))
    sent.update('the last byte.')
    await slow.until('the last byte.')
    expect(createHash('sha256').update(streamedSoFar(slow.received)).digest('hex')).toBe(sent.digest('hex'))
    slow.destroy()
    quick.destroy()
  })

  test('a stream of known length announces it, a reader that pauses gets every byte, and the connection remains open', async () => {
    const [pieces, pieceBytes] = [400, 65_536]
    const length = pieces * pieceBytes - 1
    const sent = createHash('sha256')
    let highest = 0
    const server = await engine.start((exchange) => {
      if (exchange.path === '/after') return exchange.reply(200, textHeaders, 'after')
      const stream = exchange.stream(200, textHeaders, length)
      let next = 0
      const pump = (): void => {
        while (next < pieces) {
          const piece = Buffer.alloc(next === pieces - 1 ? pieceBytes - 1 : pieceBytes, 97 + (next % 26))
          next++
          sent.update(piece)
          if (!stream.write(piece)) break
        }
        highest = next
        if (next === pieces) stream.end()
      }
      stream.onDrain(() => {
        if (next < pieces) pump()
      })
      pump()
    })
    const port = await server.listen('127.0.0.1', 0)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const fetched = (path: string) =>
      new Promise<{ response: IncomingMessage; isReused: boolean }>((done) => {
        const asked = httpGet({ port, path, agent }, (response) => done({ response, isReused: asked.reusedSocket }))
      })
    // Nobody reads it yet.
    const { response } = await fetched('/')
    await sleep(100)
    // It waits for its reader, and holds only what was requested.
    expect(highest).toBeLessThan(pieces)
    expect(response.headers['content-length']).toBe(String(length))
    const got = createHash('sha256')
    let bytes = 0
    for await (const chunk of response as AsyncIterable<Buffer>) {
      got.update(chunk)
      bytes += chunk.length
    }
    expect([bytes, got.digest('hex')]).toEqual([length, sent.copy().digest('hex')])
    const after = await fetched('/after')
    expect(after.isReused).toBe(true)
    after.response.resume()
    agent.destroy()
    const head = await RawConnection.open(port)
    head.send(get('/').replace('GET', 'HEAD'))
    await head.until('\r\n\r\n')
    expect(head.received.toString().toLowerCase()).toContain(`content-length: ${length}`)
    head.destroy()
    await server.close()
  })

  test('a stream whose reader disconnects closes once; one that is cut leaves an incomplete message', async () => {
    const leaving = await RawConnection.open(engine.port)
    leaving.send(get('/stream'))
    await leaving.until('# first')
    let closes = 0
    engine.state.streams[0]?.onClose(() => closes++)
    leaving.destroy()
    await expect.poll(() => closes).toBe(1)
    expect(engine.state.streams[0]?.write(Buffer.from('x'))).toBe(true)
    engine.state.streams[0]?.end()
    engine.state.streams[0]?.close()
    const cut = await RawConnection.open(engine.port)
    cut.send(get('/stream'))
    await cut.until('# first')
    engine.state.streams[1]?.onClose(() => closes++)
    engine.state.streams[1]?.close()
    await cut.closed()
    expect(cut.received.includes('\r\n0\r\n')).toBe(false)
    expect(closes).toBe(2)
  })

  test('after stopAccepting nobody connects, requests in flight are answered, and close frees everything', async () => {
    const held: Exchange[] = []
    const streams: ByteStream[] = []
    const own = await engine.start((exchange) => {
      if (exchange.path === '/stream') streams.push(exchange.stream(200, textHeaders))
      else held.push(exchange)
    })
    const ownPort = await own.listen('127.0.0.1', 0)
    const waiting = await RawConnection.open(ownPort)
    waiting.send(get('/held'))
    const abandoned = await RawConnection.open(ownPort)
    abandoned.send(get('/abandoned'))
    const reader = await RawConnection.open(ownPort)
    reader.send(get('/stream'))
    await expect.poll(() => held.length + streams.length).toBe(3)
    expect(own.openConnections).toBe(3)
    await own.stopAccepting()
    await expect(RawConnection.open(ownPort)).rejects.toThrow('ECONNREFUSED')
    held.find(({ path }) => path === '/held')?.reply(200, textHeaders, 'in flight')
    expect((await waiting.answer()).body.toString()).toBe('in flight')
    await waiting.closed()
    streams[0]?.write(Buffer.from('bye'))
    streams[0]?.end()
    expect((await reader.answer()).body.toString()).toBe('bye')
    let aborts = 0
    held.find(({ path }) => path === '/abandoned')?.onAbort(() => aborts++)
    await own.close()
    await abandoned.closed()
    expect(aborts).toBe(1)
    expect(own.openConnections).toBe(0)
  })

  test('a request on a keep-alive connection after stopAccepting is answered, and its connection closes', async () => {
    const own = await engine.start((exchange) => exchange.reply(200, textHeaders, exchange.path))
    const kept = await RawConnection.open(await own.listen('127.0.0.1', 0))
    kept.send(get('/before'))
    expect((await kept.answer()).body.toString()).toBe('/before')
    await own.stopAccepting()
    kept.send(get('/after'))
    expect((await kept.answer()).body.toString()).toBe('/after')
    await kept.closed()
    await own.close()
  })

  test('two servers never share a port', async () => {
    const second = await engine.start((exchange) => exchange.drop())
    await expect(second.listen('127.0.0.1', engine.port)).rejects.toThrow()
    await second.close()
  })
})
