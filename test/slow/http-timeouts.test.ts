/**
 * What the engines do with slow clients: closed within 15 s, while others are served. The waits are real, and the same in whichever thread
 * an engine runs.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { ByteStream } from '../../src/http/port.ts'
import { describeEngines, get, textHeaders } from '../support/http-engines.ts'
import { RawConnection } from '../support/raw-http.ts'

const waitMs = 900_000

describeEngines((engine) => {
  test(
    'N2, N3: silent, slow and idle connections are closed, the others continue',
    async () => {
      const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n'
      const openings = ['', get('/echo').slice(0, 20), `${head}part`, get('/echo')]
      const connections = await Promise.all(
        openings.map(async (bytes) => {
          const connection = await RawConnection.open(engine.port)
          if (bytes !== '') connection.send(bytes)
          return connection
        }),
      )
      const closed = Promise.all(connections.map((connection) => connection.closed()))
      await engine.expectAlive()
      await closed
      await engine.expectAlive()
    },
    waitMs,
  )

  test(
    'an idle stream stays open, and so does a reader that caught up after a full socket',
    async () => {
      const streams: ByteStream[] = []
      const server = await engine.start((exchange) => {
        const stream = exchange.stream(200, textHeaders)
        stream.write(Buffer.from('# first\n'))
        streams.push(stream)
      })
      const port = await server.listen('127.0.0.1', 0)
      const idle = await RawConnection.open(port)
      idle.send(get('/idle'))
      await idle.until('# first')
      const late = await RawConnection.open(port)
      late.send(get('/late'))
      await late.until('# first')
      late.socket.pause()
      const stream = streams[1] as ByteStream
      for (let i = 0; i < 2000 && stream.blockedSince === undefined; i++) {
        if (!stream.write(Buffer.alloc(10_000, 97))) await sleep(1)
      }
      expect(stream.blockedSince).toBeDefined()
      await sleep(4000)
      late.socket.resume()
      await sleep(16_000)
      streams[0]?.write(Buffer.from('still here'))
      stream.write(Buffer.from('still here'))
      await idle.until('still here')
      await late.until('still here')
      expect([idle.isClosed, late.isClosed]).toEqual([false, false])
      await server.close()
    },
    waitMs,
  )
}, 'alone')
