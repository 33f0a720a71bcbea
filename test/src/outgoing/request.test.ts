/** The only way out to the network: what it connects to, and what it never connects to, whatever DNS answers. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { createOutgoing, type OutgoingRequest } from '../../../src/outgoing/request.ts'
import type { Resolve } from '../../../src/outgoing/target.ts'
import { testCertificate, testKey } from '../../support/certificate.ts'
import { patience } from '../../support/patience.ts'

/** What a server does with one request, by its path. */
const ways: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
  '/echo': async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, headers } = request
    response.setHeader('set-cookie', 'a=b')
    response.setHeader('www-authenticate', ['Payment id="1"', 'Payment id="2"'])
    response.end(JSON.stringify({ method, headers, body: Buffer.concat(chunks).toString() }))
  },
  '/silent': () => {},
  '/stall': (_request, response) => {
    response.write('half')
  },
  '/large': (_request, response) => {
    response.write(Buffer.alloc(5_000))
    response.end(Buffer.alloc(5_000))
  },
  '/declared': (_request, response) => {
    response.writeHead(200, { 'content-length': '1000000' })
    response.write('x')
  },
  '/head': (_request, response) => {
    response.writeHead(200, Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x-${n}`, 'y'.repeat(1_000)])))
    response.end()
  },
  '/reset': (request) => request.socket.resetAndDestroy(),
  '/cut': (_request, response) => {
    response.writeHead(200, { 'content-length': '10' })
    response.write('half')
    setImmediate(() => response.socket?.destroy())
  },
  '/switch': (_request, response) => {
    response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n')
  },
  '/nonsense': (_request, response) => {
    response.socket?.end('220 mail.example ready\r\n')
  },
}

let web: Server
let secure: Server
let elsewhere: Server
let port: number
let securePort: number
let elsewherePort: number
const sockets = new Set<Socket>()
let strays = 0

beforeAll(async () => {
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url?.split('?')[0] ?? ''
    const status = /^\/redirect\/(\d+)$/.exec(path)?.[1]
    if (status !== undefined)
      response.writeHead(Number(status), { location: `http://127.0.0.1:${elsewherePort}/` }).end()
    else (ways[path] ?? ((_, answer) => answer.writeHead(404).end('none')))(request, response)
  }
  web = createServer({ keepAliveTimeout: 60_000 }, serve)
  secure = createTlsServer({ cert: testCertificate, key: testKey }, serve)
  elsewhere = createTcpServer((socket) => {
    strays++
    socket.destroy()
  })
  const listening = async (server: Server) => {
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    return (server.address() as AddressInfo).port
  }
  web.on('connection', (socket: Socket) => sockets.add(socket))
  ;[port, securePort, elsewherePort] = await Promise.all([listening(web), listening(secure), listening(elsewhere)])
})

afterAll(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of [web, secure, elsewhere]) server.close()
})

const local = createOutgoing({ timers: systemClock, loopback: true, userAgent: 'Broadside/test' })
const ask = (path: string, more: Partial<OutgoingRequest> = {}) =>
  local.request({ url: `http://127.0.0.1:${port}${path}`, ...more })

describe('a request', () => {
  test('arrives as it was made, and its answer has no cookies', async () => {
    const answer = await ask('/echo?a=1', {
      method: 'POST',
      body: '{"x":"ü"}',
      headers: { 'Content-Type': 'application/json' },
    })
    if (!answer.ok) throw new Error(answer.reason)
    expect(JSON.parse(answer.body.toString())).toEqual({
      method: 'POST',
      headers: {
        host: `127.0.0.1:${port}`,
        connection: 'close',
        'content-type': 'application/json',
        'content-length': '10',
        'accept-encoding': 'identity',
        'user-agent': 'Broadside/test',
      },
      body: '{"x":"ü"}',
    })
    expect(answer.headers['set-cookie']).toBeUndefined()
    expect(answer.headers.connection).toBeUndefined()
    expect(answer.headers['www-authenticate']).toEqual(['Payment id="1"', 'Payment id="2"'])
  })

  test.each([
    'Cookie',
    'Host',
    'Connection',
    'Transfer-Encoding',
    'Proxy-Authorization',
    'Upgrade',
    'Content-Length',
    'TE',
  ])('with a header %s is the caller’s bug', async (name) => {
    await expect(ask('/echo', { headers: { [name]: 'x' } })).rejects.toThrow(TypeError)
  })

  test.each(['a\r\nX: y', 'a\nb', 'a\0'])('with a line break or NUL in a header is never sent', async (value) => {
    await expect(ask('/echo', { headers: { 'x-a': value } })).rejects.toThrow()
  })

  test.each([300, 301, 302, 303, 304, 307, 308])('that is answered %i is not redirected', async (status) => {
    expect(await ask(`/redirect/${status}`)).toMatchObject({ ok: false, failure: 'redirect', status, sent: true })
    expect(strays).toBe(0)
  })

  test.each([
    ['/silent', 'timeout'],
    ['/stall', 'timeout'],
    ['/large', 'too_large'],
    ['/declared', 'too_large'],
    ['/head', 'too_large'],
    ['/reset', 'unknown'],
    ['/cut', 'unknown'],
    ['/switch', 'unknown'],
    ['/nonsense', 'unknown'],
  ] as const)('to a server that answers %s fails as %s, and may have arrived', async (path, failure) => {
    const within = (totalMs: number) => ask(path, { totalMs, answerBytesMax: 9_999 })
    let answer = await within(failure === 'timeout' ? 150 : patience.timeout)
    // If it timed out before it had been sent, retry with more time.
    for (let ms = 600; !answer.ok && !answer.sent && ms < 60_000; ms *= 4) answer = await within(ms)
    expect(answer).toMatchObject({ ok: false, failure, sent: true })
  })

  test('fits exactly into its bound', async () => {
    expect(await ask('/large', { answerBytesMax: 10_000 })).toMatchObject({ ok: true })
    expect(await ask('/large', { answerBytesMax: 9_999 })).toMatchObject({ failure: 'too_large' })
  })

  test('to a port where nobody listens is refused, and certainly did not arrive', async () => {
    const server = createTcpServer()
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    const { port: free } = server.address() as AddressInfo
    await new Promise((closed) => server.close(closed))
    const answer = await local.request({ url: `http://127.0.0.1:${free}/` })
    expect(answer).toMatchObject({ ok: false, failure: 'refused', sent: false })
  })

  test('is abandoned when its caller says so', async () => {
    const controller = new AbortController()
    const answer = ask('/silent', { signal: controller.signal })
    controller.abort()
    expect(await answer).toMatchObject({ ok: false, failure: 'timeout' })
  })

  test('to a server that accepts and then sends no TLS ends at the connect timeout', async () => {
    const server = createTcpServer(() => {})
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    const { port: mute } = server.address() as AddressInfo
    const answer = await local.request({ url: `https://127.0.0.1:${mute}/`, connectMs: 150 })
    expect(answer).toMatchObject({ ok: false, failure: 'timeout', sent: false })
    server.close()
  })
})

describe('names', () => {
  test('are resolved once, and no other address is connected to when the answer changes (DNS rebinding)', async () => {
    let asked = 0
    const resolve: Resolve = async () => (asked++ === 0 ? ['127.0.0.1'] : ['10.0.0.1'])
    const outgoing = createOutgoing({ timers: systemClock, loopback: true, userAgent: 'test', resolve })
    expect(await outgoing.request({ url: `http://rebinds.example:${port}/echo` })).toMatchObject({
      ok: true,
      status: 200,
    })
    expect(asked).toBe(1)
    // The second request resolves anew, and its answer is checked again.
    expect(await outgoing.request({ url: `http://rebinds.example:${port}/echo` })).toMatchObject({ failure: 'blocked' })
  })

  test('are not resolved for a caller that gave up before: an unhandled lookup would end the process', async () => {
    const asked: string[] = []
    const resolve: Resolve = async (name) => {
      asked.push(name)
      throw new Error('nobody hears of this')
    }
    const outgoing = createOutgoing({ timers: systemClock, loopback: true, userAgent: 'test', resolve })
    const answer = await outgoing.request({ url: 'https://tool.example/', signal: AbortSignal.abort() })
    expect([answer, asked]).toEqual([{ ok: false, failure: 'timeout', reason: 'it was canceled', sent: false }, []])
    outgoing.close()
  })

  test('without an address are refused, and one without an answer times out', async () => {
    const none = createOutgoing({ timers: systemClock, loopback: true, userAgent: 'test', resolve: async () => [] })
    expect(await none.request({ url: 'https://none.example/' })).toMatchObject({ failure: 'refused', sent: false })
    const never = createOutgoing({
      timers: systemClock,
      loopback: true,
      userAgent: 'test',
      resolve: () => new Promise(() => {}),
    })
    const answer = await never.request({ url: 'https://never.example/', connectMs: 50 })
    expect(answer).toMatchObject({ failure: 'timeout', sent: false })
  })
})

describe('TLS', () => {
  const trusting = createOutgoing({
    timers: systemClock,
    loopback: true,
    userAgent: 'test',
    resolve: async () => ['127.0.0.1'],
    ca: testCertificate,
  })

  test('connects to the checked address with the certificate of the name', async () => {
    expect(await trusting.request({ url: `https://tool.example:${securePort}/echo` })).toMatchObject({ ok: true })
    expect(await trusting.request({ url: `https://other.example:${securePort}/echo` })).toMatchObject({ ok: true })
    const wrong = await trusting.request({ url: `https://third.example:${securePort}/echo` })
    expect(wrong).toMatchObject({ ok: false, failure: 'tls', sent: false })
  })

  test('fails before anything is sent if the certificate is untrusted or there is no TLS', async () => {
    const outgoing = createOutgoing({
      timers: systemClock,
      loopback: true,
      userAgent: 'test',
      resolve: async () => ['127.0.0.1'],
    })
    for (const at of [securePort, port]) {
      const answer = await outgoing.request({ url: `https://tool.example:${at}/echo` })
      expect(answer).toMatchObject({ ok: false, failure: 'tls', sent: false })
    }
  })
})

test('a request that dies before an answer is not sent again', async () => {
  let count = 0
  const server = createServer((request) => {
    count++
    request.socket.resetAndDestroy()
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  expect(await local.request({ url })).toMatchObject({ ok: false, failure: 'unknown', sent: true })
  expect(count).toBe(1)
  local.close()
  server.close()
})
