/** What a challenge that fails is called: each way to fail has its own name, and only what was connected to is called a connection. */

import { randomBytes } from 'node:crypto'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { CursorSealer } from '../../../src/format/cursor.ts'
import { Poster } from '../../../src/outgoing/poster.ts'
import type { Resolve } from '../../../src/outgoing/target.ts'
import { Sender } from '../../../src/webhooks/sender.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const posters: Poster[] = []
const breaking = createServer((socket: Socket) => void socket.once('data', () => socket.resetAndDestroy()))
const closed = createServer()
const portOf = (server: typeof breaking) => (server.address() as { port: number }).port
let [breakingPort, closedPort] = [0, 0]

beforeAll(async () => {
  for (const server of [breaking, closed])
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', () => ready()))
  ;[breakingPort, closedPort] = [portOf(breaking), portOf(closed)]
  await new Promise((done) => closed.close(done))
})
afterAll(() => {
  breaking.close()
  for (const poster of posters) poster.close()
})

function challenge(url: string, loopback: boolean, resolve: Resolve = async () => ['127.0.0.1']) {
  const poster = new Poster({ loopback, userAgent: 'test', clock: systemClock, resolve })
  posters.push(poster)
  const sender = new Sender({
    poster,
    payload: () => {},
    head: async () => undefined,
    cursors: new CursorSealer(randomBytes(32)),
    epoch: { generation: 'g', layout: '' },
    serviceId: 'bs-0',
    address: 'http://board.example',
    wallMs: () => 0,
    random: randomBytes,
  })
  return sender.challenge({ url, hook: '0'.repeat(32), secret })
}

test('a challenge that reached nobody says whether there was no address, a forbidden one, or no answer', async () => {
  expect(await challenge('https://hooks.example.invalid/x', false, async () => [])).toBe('no_address')
  expect(await challenge('https://inside.example/x', false, async () => ['10.0.0.1'])).toBe('address_blocked')
  expect(await challenge('https://localhost/x', false)).toBe('address_blocked')
  expect(await challenge(`http://127.0.0.1:${closedPort}/x`, true)).toBe('connection_refused')
  expect(await challenge(`http://127.0.0.1:${breakingPort}/x`, true)).toBe('connection_lost')
})
