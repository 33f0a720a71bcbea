/** HEALTH_PORT answers checks of proxies that speak HTTP/1.0, on both engines, from the first moment of a start to the end of a stop. */
import { connect } from 'node:net'
import { describe, expect, test, vi } from 'vitest'
import { withHealthPort } from '../../src/http/health.ts'
import { freePort } from '../../src/listening.ts'
import { type Board, boardDirectory, refusedBoard, startBoard } from '../support/board-process.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

/** All that comes back before the connection ends; '' when nobody listens. */
function told(port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(request))
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
  })
}

const portOf = ({ lines }: Board): number => {
  const line = lines.find((each) => each.includes('"event":"health"'))
  return (JSON.parse(line!) as { port: number }).port
}

describe.each(['uws', 'node'])('on %s', (engine) => {
  test('checks of every kind are answered at once, with the end of the connection', async () => {
    const board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine, HEALTH_PORT: '0' } })
    const port = portOf(board)
    // HAProxy without a path, with one; nginx before 1.29.7; a check that names a host, and one that would stay.
    for (const request of [
      'OPTIONS / HTTP/1.0\r\n\r\n',
      'GET /healthz HTTP/1.0\r\n\r\n',
      'GET /healthz HTTP/1.0\r\nHost: board\r\nConnection: close\r\n\r\n',
      'GET /healthz?x=1 HTTP/1.1\r\nHost: board\r\nConnection: keep-alive\r\n\r\n',
    ]) {
      const answer = await told(port, request)
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
      expect(answer).toMatch(/\r\n\r\nok\n$/)
    }
    expect(await told(port, 'HEAD /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/)
    expect(await told(port, 'GET /api/stats HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /)
    expect(await told(port, 'POST /healthz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 405 /)
    expect(await told(port, 'garbage\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /)
    expect((await board.stop()).code).toBe(0)
    expect(await told(port, 'GET /healthz HTTP/1.0\r\n\r\n')).toBe('')
  })
})

test('it is there before the board is ready and until the board is gone, and says so', async () => {
  const healthPort = await freePort('127.0.0.1')
  const check = async () =>
    (await told(healthPort, 'GET /healthz HTTP/1.0\r\n\r\n')).replace(/\r\n[\s\S]*\r\n\r\n/, ' ')
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const starting = withHealthPort({ host: '127.0.0.1', port: 0, healthPort }, async () => {
    await begun.promise
    return { close: () => ended.promise }
  })
  await vi.waitFor(async () => expect(await check()).toBe('HTTP/1.1 503 Service Unavailable starting\n'))
  begun.resolve()
  const running = await starting
  expect(await check()).toBe('HTTP/1.1 200 OK ok\n')
  const stopping = running.close()
  expect(await check()).toBe('HTTP/1.1 503 Service Unavailable stopping\n')
  ended.resolve()
  await stopping
  expect(await check()).toBe('')
  const failed = withHealthPort({ host: '127.0.0.1', port: 0, healthPort }, () => Promise.reject(new Error('no disk')))
  await expect(failed).rejects.toThrow('no disk')
  expect(await check()).toBe('')
})

test('a port that is taken, and that of the board itself, refuse the start by name', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const taken = await refusedBoard({ directory: boardDirectory(), env: { HEALTH_PORT: String(board.port) } })
  expect([taken.code, taken.words]).toEqual([
    1,
    expect.stringMatching(/HEALTH_PORT must be a port that is free on 127\.0\.0\.1/),
  ])
  const free = await freePort('127.0.0.1')
  const own = await refusedBoard({ directory: boardDirectory(), port: free, env: { HEALTH_PORT: String(free) } })
  expect([own.code, own.words]).toEqual([1, expect.stringContaining('HEALTH_PORT must be another port than PORT')])
  await board.stop()
})
