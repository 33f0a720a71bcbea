/** Posts over keep-alive connections: what they connect to, what they never connect to, and that a connection is reused. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { type Posted, Poster } from '../../../src/outgoing/poster.ts'
import type { Resolve } from '../../../src/outgoing/target.ts'
import { testCertificate, testKey } from '../../support/certificate.ts'
import { patience } from '../../support/patience.ts'

const ways: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
  '/echo': async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    response.end(
      JSON.stringify({ method: request.method, headers: request.headers, body: Buffer.concat(chunks).toString() }),
    )
  },
  '/silent': () => {},
  '/stall': (_request, response) => void response.write('half'),
  '/large': (_request, response) => void response.end(Buffer.alloc(20_000)),
  '/cut': (_request, response) => {
    response.writeHead(200, { 'content-length': '10' })
    response.write('half')
    setImmediate(() => response.socket?.destroy())
  },
  '/reset': (request) => request.socket.resetAndDestroy(),
  '/nonsense': (_request, response) => void response.socket?.end('220 mail.example ready\r\n\r\n'),
  '/moved': (_request, response) => void response.writeHead(307, { location: `http://127.0.0.1:${strayPort}/` }).end(),
  '/old': (_request, response) => void response.socket?.end('HTTP/1.0 200 OK\r\n\r\nall there is'),
  '/busy': (_request, response) => void response.writeHead(503, { 'retry-after': '9' }).end(),
}

let time = 0
let [port, securePort, strayPort, connections, strays] = [0, 0, 0, 0, 0]
const servers: Server[] = []
const sockets = new Set<Socket>()

beforeAll(async () => {
  const serve = (request: IncomingMessage, response: ServerResponse) =>
    (ways[request.url?.split('?')[0] ?? ''] ?? ((_, answer) => answer.writeHead(404).end('none')))(request, response)
  const web = createServer({ keepAliveTimeout: 60_000 }, serve)
  const secure = createTlsServer({ cert: testCertificate, key: testKey, keepAliveTimeout: 60_000 }, serve)
  const stray = createTcpServer((socket) => {
    strays++
    socket.destroy()
  })
  servers.push(web, secure, stray)
  for (const server of servers) {
    server.on('connection', (socket: Socket) => {
      if (server !== stray) connections++
      sockets.add(socket)
    })
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  }
  ;[port, securePort, strayPort] = servers.map((server) => (server.address() as AddressInfo).port) as [
    number,
    number,
    number,
  ]
})

afterAll(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
  for (const each of posters) each.close()
})

const posters: Poster[] = []
function poster(resolve?: Resolve, ca?: string): Poster {
  const made = new Poster({
    ...{
      loopback: true,
      userAgent: 'Broadside/test',
      clock: { ...systemClock, monotonicMs: () => performance.now() + time },
    },
    ...(resolve !== undefined && { resolve }),
    ...(ca !== undefined && { ca }),
  })
  posters.push(made)
  return made
}

function post(by: Poster, url: string, body = '{}', totalMs: number = patience.timeout): Promise<Posted> {
  const target = by.target(url)
  if (typeof target === 'string') throw new Error(target)
  const headers = ['content-type', 'application/json', 'x-a', 'b']
  return new Promise((resolve) =>
    by.post({ target, headers, body, connectMs: totalMs, totalMs, keepsBody: true }, resolve),
  )
}

const text = (posted: Posted) => (posted.ok ? posted.body.toString() : JSON.stringify(posted))

test('a post arrives as it was made, in any characters, and the next one reuses the connection', async () => {
  const by = poster()
  const before = connections
  for (const body of ['{"x":"plain"}', '{"x":"Grüße 🌍"}', '{"x":"ÿ"}']) {
    expect(JSON.parse(text(await post(by, `http://127.0.0.1:${port}/echo?a=1`, body)))).toEqual({
      method: 'POST',
      headers: {
        host: `127.0.0.1:${port}`,
        'user-agent': 'Broadside/test',
        'accept-encoding': 'identity',
        connection: 'keep-alive',
        'content-type': 'application/json',
        'x-a': 'b',
        'content-length': String(Buffer.byteLength(body)),
      },
      body,
    })
  }
  const large = 'ü'.repeat(131_072)
  expect(JSON.parse(text(await post(by, `http://127.0.0.1:${port}/echo`, large))).body).toBe(undefined)
  expect(connections - before).toBe(1)
})

test.each([
  ['/silent', { ok: false, failure: 'timeout', status: 0 }],
  ['/stall', { ok: false, failure: 'timeout', status: 0 }],
  ['/large', { ok: false, failure: 'too_large', status: 200 }],
  ['/cut', { ok: false, failure: 'unknown', status: 200 }],
  ['/reset', { ok: false, failure: 'unknown', status: 0 }],
  ['/nonsense', { ok: false, failure: 'unknown', status: 0 }],
  ['/moved', { ok: false, failure: 'redirect', status: 307 }],
  ['/busy', { ok: true, status: 503, retryAfter: '9' }],
  ['/old', { ok: true, status: 200, body: Buffer.from('all there is') }],
])('a post to %s ends, and no other address is contacted', async (path, ends) => {
  const isTimeout = 'failure' in ends && ends.failure === 'timeout'
  expect(await post(poster(), `http://127.0.0.1:${port}${path}`, '{}', isTimeout ? 150 : undefined)).toMatchObject(ends)
  expect(strays).toBe(0)
})

test('a forbidden address is not called', async () => {
  const strict = new Poster({ loopback: false, userAgent: 'test', clock: systemClock })
  posters.push(strict)
  for (const url of ['http://example.org/', 'https://127.0.0.1/', 'https://[::1]/', 'https://u:p@example.org/', 'no'])
    expect(strict.target(url)).toEqual(expect.any(String))
  const inside = poster(async () => ['127.0.0.1', '10.0.0.1'])
  expect(await post(inside, `http://both.example:${port}/echo`)).toMatchObject({ failure: 'blocked' })
  const nobody = poster(async () => [])
  expect(await post(nobody, 'https://none.example/')).toMatchObject({ failure: 'no_address' })
  const never = poster(() => new Promise(() => {}))
  expect(await post(never, 'https://never.example/', '{}', 50)).toMatchObject({ failure: 'timeout' })
})

test('a name is resolved for each new connection, which serves one name for at most a minute', async () => {
  let answer = ['127.0.0.1']
  let asked = 0
  const by = poster(async () => {
    asked++
    return answer
  })
  const before = connections
  for (const host of ['one.example', 'two.example', 'one.example'])
    expect(await post(by, `http://${host}:${port}/echo`)).toMatchObject({ ok: true })
  expect([connections - before, asked]).toEqual([2, 2])
  // The name moves to a forbidden address: the checked connection is used for its minute, and then nothing is sent.
  answer = ['192.168.1.1']
  expect(await post(by, `http://one.example:${port}/echo`)).toMatchObject({ ok: true })
  time += 60_000
  expect(await post(by, `http://one.example:${port}/echo`)).toMatchObject({ failure: 'blocked' })
  expect(connections - before).toBe(2)
})

test('over TLS the certificate must match the name, and a connection is reused', async () => {
  const by = poster(async () => ['127.0.0.1'], testCertificate)
  const before = connections
  for (let n = 0; n < 3; n++)
    expect(await post(by, `https://tool.example:${securePort}/echo`, '"ü"')).toMatchObject({ ok: true, status: 200 })
  expect(connections - before).toBe(1)
  expect(await post(by, `https://third.example:${securePort}/echo`)).toMatchObject({ failure: 'tls', status: 0 })
  const untrusting = poster(async () => ['127.0.0.1'])
  for (const at of [securePort, port])
    expect(await post(untrusting, `https://tool.example:${at}/echo`)).toMatchObject({ failure: 'tls', status: 0 })
})

test('a keep-alive connection that ends is replaced once; a fresh one that dies is a failure', async () => {
  let count = 0
  const server = createServer((request, response) => {
    request.resume()
    if (++count === 2) request.socket.resetAndDestroy()
    else response.end('fine')
  })
  servers.push(server)
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const by = poster()
  expect(await post(by, url)).toMatchObject({ ok: true })
  expect(await post(by, url)).toMatchObject({ ok: true })
  expect(count).toBe(3)
  count = 1
  expect(await post(poster(), url)).toMatchObject({ ok: false, failure: 'unknown' })
  expect(count).toBe(2)
})
