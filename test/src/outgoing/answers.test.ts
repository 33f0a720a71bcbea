/** Where an answer ends, whatever a server says about it: raw bytes of a real server, read over a connection that may be reused. */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { type Posted, Poster } from '../../../src/outgoing/poster.ts'
import { patience } from '../../support/patience.ts'

/** What the server answers to each request, in these pieces; `end`: whether it then closes. */
type Said = { readonly pieces: readonly string[]; readonly end: boolean }
let said: Said = { pieces: [], end: false }
let server: Server
let connections = 0
const sockets = new Set<Socket>()
const poster = new Poster({ loopback: true, userAgent: 'test', clock: systemClock })

beforeAll(async () => {
  server = createServer((socket) => {
    connections++
    sockets.add(socket)
    socket.setNoDelay(true)
    socket.on('error', () => undefined)
    socket.on('data', () => {
      const { pieces, end } = said
      const next = (at: number): void => {
        if (at < pieces.length) socket.write(Buffer.from(pieces[at]!, 'latin1'), () => setImmediate(next, at + 1))
        else if (end) socket.end()
      }
      next(0)
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
})

afterAll(() => {
  poster.close()
  for (const socket of sockets) socket.destroy()
  server.close()
})

let name = 0

/** Two posts to a host of their own; whether the second one reused the connection of the first. */
async function answered(
  text: string,
  { end = false, cut = text.length } = {},
): Promise<[first: Posted, isKept: boolean]> {
  said = { pieces: [text.slice(0, cut), text.slice(cut)].filter((piece) => piece !== ''), end }
  const target = poster.target(`http://n${name++}.localhost:${(server.address() as AddressInfo).port}/`)
  if (typeof target === 'string') throw new Error(target)
  const totalMs = patience.timeout
  const post = () =>
    new Promise<Posted>((resolve) =>
      poster.post({ target, headers: [], body: '{}', connectMs: totalMs, totalMs, keepsBody: true }, resolve),
    )
  const first = await post()
  const before = connections
  await post()
  return [first, connections === before]
}

type Fine = [what: string, text: string, body: string, isKept: boolean, end: boolean]
const fine: Fine[] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'hello', true, false],
  ['no body', 'HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n', '', true, false],
  ['no reason', 'HTTP/1.1 202\r\ncontent-length:0\r\n\r\n', '', true, false],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n',
    'abc0123456789',
    true,
    false,
  ],
  [
    'trailers',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n',
    'a',
    true,
    false,
  ],
  [
    'an interim answer before it',
    'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
    'x',
    true,
    false,
  ],
  ['the end of the connection', 'HTTP/1.1 200 OK\r\n\r\nall there is', 'all there is', false, true],
  ['an old protocol', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok', 'ok', false, false],
  ['close', 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok', 'ok', false, false],
  ['a second left', 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok', 'ok', false, false],
  ['more than was asked', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n', 'ok', false, false],
]

test.each<Fine>(fine)(
  'an answer ends by %s, and the connection is reused only if that is unambiguous',
  async (_what, text, body, kept, end) => {
    for (const cut of [text.length, Math.floor(text.length / 2), 12]) {
      const [posted, isKept] = await answered(text, { end, cut })
      expect(posted).toMatchObject({ ok: true, body: Buffer.from(body) })
      expect(isKept).toBe(kept)
    }
  },
)

test.each([
  '220 mail.example ready\r\n\r\n',
  'HTTP/2 200 OK\r\n\r\n',
  'HTTP/1.1 20 OK\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n',
  'HTTP/1.1 200 OK\r\nno field\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n',
  'HTTP/1.1 200 OK\r\nContent-',
])('%j is not a valid answer', async (text) => {
  expect((await answered(text, { end: true }))[0]).toMatchObject({ ok: false, failure: 'unknown' })
})

test.each([
  ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(200_000)}`, 0],
  ['a large head', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}\r\nContent-Length: 0\r\n\r\n`, 0],
  ['fields without end', `HTTP/1.1 200 OK\r\n${'a:\r\n'.repeat(60_000)}`, 0],
  ['a reason without end', `HTTP/1.1 200 ${'y'.repeat(1_000_000)}`, 0],
  ['a chunk without end', `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'y'.repeat(1_000_000)}`, 200],
  ['interim answers without end', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(2_000), 0],
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n', 200],
  ['chunks', `HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n${'x'.repeat(20_000)}`, 201],
  ['a body without end', `HTTP/1.1 500 No\r\n\r\n${'x'.repeat(20_000)}`, 500],
])('an answer is read up to its bound and no further: %s', async (_what, text, status) => {
  expect((await answered(text))[0]).toMatchObject({ ok: false, failure: 'too_large', status })
})
