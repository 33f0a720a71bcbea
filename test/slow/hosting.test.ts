/** A board behind real proxies, each with its file from src/hosting, on both engines. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect as http2Connect } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { rates } from '../../actors/kernel/limits.ts'
import { freePort } from '../../src/listening.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type BlobJson, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Client, type Fields, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { type ProxyName, ProxyProgram, proxies, siteName } from '../support/proxy.ts'
import { randomPart } from '../support/random-part.ts'
import { type RawConnection, rawRequest } from '../support/raw-http.ts'
import { runProgram } from '../support/run-program.ts'
import { fillSampleBoard, type SampleBoard } from '../support/sample-board.ts'
import { publicFollow, StreamClient } from '../support/stream-client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const writer = person('writer behind a proxy')
/** Unsigned requests from one address: few enough to run out of, and slow to come back. All other limits are off. */
const limits = {
  ...Object.fromEntries(Object.keys(rates).map((name) => [name, null])),
  unsigned_commands_per_address_per_minute: 4,
}

const names = Object.keys(proxies) as ProxyName[]
const missing = names.map((name) => missingProgram(name)).find((note) => note !== undefined)

describe
  .skipIf(skipWithout(missing))
  .each(names.flatMap((name) => randomPart([[name, 'uws'] as const, [name, 'node'] as const])))(
  `%s before a board on %s${skipNote(missing)}`,
  (name, engine) => {
    let board: Board
    let proxy: ProxyProgram
    let shown: SampleBoard
    /** Signs for the board; queries it directly. */
    let client: Client

    beforeAll(async () => {
      const env = { HTTP_ENGINE: engine, TRUST_PROXY: 'X-Forwarded-For', BASE_URL: `https://${siteName}` }
      const port = await freePort('127.0.0.1')
      const limited = { ...env, BROADSIDE_LIMITS: 'on', LIMITS: JSON.stringify(limits) }
      board = await startBoard({ directory: boardDirectory(), port, env: limited })
      // The address that it announces is that of the proxy.
      board.address = `http://127.0.0.1:${port}`
      shown = await fillSampleBoard(board.address)
      client = shown.client
      proxy = await ProxyProgram.start(name, board.port)
    })
    afterAll(async () => {
      client?.close()
      await proxy?.stop()
      await board?.stop()
    })

    /** `data` of an answer, as a test expects it. */
    const send = async <Data>(body: string): Promise<{ status: number; data: Data }> => {
      const got = await proxy.request('/v1/command', { method: 'POST', body })
      return { status: got.status, data: (JSON.parse(got.body.toString()) as { data: Data }).data }
    }
    const command = <Data = unknown>(fields: Fields) => send<Data>(client.sign(writer, fields).body)
    const events = async () => (await client.get('/api/stats')).data.stats!.events

    test('every page and every answer is the same as without it', async () => {
      const paths = [
        ...shown.paths,
        '/capabilities',
        '/openapi.json',
        '/api/rooms',
        '/api/log/checkpoint',
        '/log/vkey',
        '/robots.txt',
        '/embed/v1.js',
      ]
      const steady = (text: string) =>
        text.replace(/<time[^>]*>[^<]*<\/time>/g, '').replace(/data-live-change="\d+"|cursor=[\w-]+/g, '')
      const isSame = async (path: string) => {
        const direct = await client.get(path)
        const { status, body, headers } = await proxy.request(path)
        expect([path, status, steady(body.toString())]).toEqual([path, direct.status, steady(direct.text)])
        expect([path, headers['content-security-policy']]).toEqual([path, direct.headers['content-security-policy']])
      }
      // Content with the current time differs if a second ends between two requests.
      for (const path of paths) await vi.waitFor(() => isSame(path), patience)
      const packed = await proxy.request('/api/events?limit=200', { headers: { 'accept-encoding': 'gzip' } })
      expect(packed.headers['content-encoding']).toBe('gzip')
      expect(JSON.parse(gunzipSync(packed.body).toString())).toEqual(
        JSON.parse((await proxy.request('/api/events?limit=200')).body.toString()),
      )
      const again = await proxy.request('/api/events?limit=200', {
        headers: { 'accept-encoding': 'gzip', 'if-none-match': packed.headers.etag! },
      })
      expect(again.status).toBe(304)
      // A path is not normalized on its way.
      expect((await proxy.request('//api//rooms')).status).toBe(404)
      const moved = await rawRequest(proxy.httpPort, `GET /room/lobby?x=1 HTTP/1.1\r\nHost: ${siteName}\r\n\r\n`)
      expect([moved?.status, moved?.headers.get('location')]).toEqual([308, `https://${siteName}/room/lobby?x=1`])
    })

    test('pages are served over HTTP/2 too', async () => {
      const session = http2Connect(`https://127.0.0.1:${proxy.port}`, {
        rejectUnauthorized: false,
        servername: siteName,
      })
      const stream = session.request({ ':path': '/room/lobby', ':authority': siteName })
      let text = ''
      let status: number | undefined
      stream.on('response', (headers) => {
        status = headers[':status']
      })
      for await (const chunk of stream.setEncoding('utf8')) text += chunk
      session.close()
      expect([status, text.includes('<h1>')]).toEqual([200, true])
    })

    test('posts are accepted by POST, in a URL of 16 KiB, and by MKCOL; too long a body is refused', async () => {
      const posted = await command({ operation: 'post', text: 'through a proxy' })
      expect(posted.status).toBe(200)
      const long = client.sign(writer, { operation: 'post', text: 'x'.repeat(11_500) })
      const url = `/c64/${Buffer.from(long.body).toString('base64url')}`
      expect(url.length).toBeGreaterThan(15_000)
      expect((await proxy.request(url)).status).toBe(200)
      const made = client.sign(writer, { operation: 'post', text: 'by MKCOL' })
      const { status } = await proxy.request(`/c64/${Buffer.from(made.body).toString('base64url')}`, {
        method: 'MKCOL',
      })
      expect(status).toBe(200)
      // Caddy closes the connection, which some clients notice before they read the answer. So does HAProxy, based on the length alone.
      const length = 3 * 1024 * 1024
      const body = name === 'haproxy' ? { headers: { 'content-length': `${length}` } } : { body: 'x'.repeat(length) }
      const tooLong = proxy.request('/v1/command', { method: 'POST', ...body })
      const refused = await (name === 'caddy' ? tooLong.catch(() => ({ status: 413 })) : tooLong)
      expect(refused.status).toBe(413)
    })

    test('an attachment of 1 MiB is stored, served whole and in parts, and not again if unchanged', async () => {
      const bytes = randomBytes(1024 * 1024)
      const { status, data } = await command<{ blob: BlobJson }>(putFields(bytes))
      expect(status).toBe(200)
      const { url, sha256 } = data.blob
      const whole = await proxy.request(url!)
      expect([whole.status, whole.headers['content-length'], whole.body.equals(bytes)]).toEqual([200, '1048576', true])
      const part = await proxy.request(url!, { headers: { range: 'bytes=1000000-' } })
      expect([part.status, part.body.equals(bytes.subarray(1_000_000))]).toEqual([206, true])
      expect((await proxy.request(url!, { headers: { 'if-none-match': `"${sha256}"` } })).status).toBe(304)
    })

    test('a tail arrives live, as text, compressed or not, and as events; a client that leaves frees its slot', async () => {
      const open = async () => (await client.get('/api/stats')).data.stats!.streams_open!
      const before = await open()
      for (const headers of [{}, { 'accept-encoding': 'gzip' }, { accept: 'text/event-stream' }] as Record<
        string,
        string
      >[]) {
        const tail = await follow(proxy.port, '/tail/lobby?last=0', headers)
        for (let n = 0; n < 3; n++) {
          const text = `told ${n} ${randomBytes(8).toString('hex')}`
          await command({ operation: 'post', text })
          await tail.until(text)
        }
        expect(await open()).toBe(before! + 1)
        tail.leave()
        await vi.waitFor(async () => expect(await open()).toBe(before), { timeout: 300_000, interval: 100 })
      }
    })

    test('a WebSocket takes commands and shows what it follows', async () => {
      const stream = await StreamClient.open(`https://127.0.0.1:${proxy.port}`, {
        headers: { host: siteName, origin: `https://${siteName}` },
        rejectUnauthorized: false,
      })
      const id = stream.send(publicFollow(['lobby']), 'follow')
      expect((await stream.answer(id)).status).toBe(200)
      const { body } = client.sign(writer, { operation: 'post', room: 'lobby', text: 'by a WebSocket' })
      expect((await stream.command(body)).status).toBe(200)
      await stream.until(() => stream.texts(id).includes('by a WebSocket'))
      stream.close()
    })

    test('a long poll waits, and ends with what it waited for', async () => {
      const { body } = await proxy.request('/api/updates')
      const { cursor } = (JSON.parse(body.toString()) as { data: { cursor: string } }).data
      const waiting = proxy.request(`/api/updates?cursor=${cursor}&wait=25`)
      await sleep(300)
      const posted = await command<{ event_id: string }>({ operation: 'post', text: 'what was waited for' })
      const { status, body: told } = await waiting
      expect(status).toBe(200)
      expect(told.toString()).toContain(posted.data.event_id)
    })

    test('each client is counted by its own address, and its claims about it are ignored', async () => {
      const ask = async (from: string, headers = {}) => {
        const { status } = await proxy.request('/v1/command', {
          method: 'POST',
          body: '{"operation":"quota.get"}',
          from,
          headers,
        })
        return status
      }
      const first = [await ask('127.0.0.2')]
      while (first.at(-1) === 200 && first.length < 20) first.push(await ask('127.0.0.2'))
      expect(first.at(-1)).toBe(429)
      const lies = [
        { 'x-forwarded-for': '9.9.9.9' },
        { forwarded: 'for=9.9.9.9' },
        { 'x-real-ip': '9.9.9.9' },
        { 'x-forwarded-for': '9.9.9.9, 127.0.0.3' },
      ]
      for (const headers of lies) expect([headers, await ask('127.0.0.2', headers)]).toEqual([headers, 429])
      expect(await ask('127.0.0.3')).toBe(200)
      // Nor does a false claim count against the address it names.
      for (let n = 0; n < 8; n++) await ask('127.0.0.4', { 'x-forwarded-for': '127.0.0.5', forwarded: 'for=127.0.0.5' })
      expect(await ask('127.0.0.5')).toBe(200)
    })

    test('HTTP/1.0 is served, and three pipelined requests are answered in order', async () => {
      // HAProxy passes the version on, and uws answers that with 505.
      const isServed = name !== 'haproxy' || engine === 'node'
      const old = await proxy.raw()
      old.send(`GET /time HTTP/1.0\r\nHost: ${siteName}\r\n\r\n`)
      expect((await old.answer()).status).toBe(isServed ? 200 : 505)
      await old.closed()
      if (name === 'nginx') {
        const nameless = await proxy.raw()
        nameless.send('GET /healthz HTTP/1.0\r\n\r\n')
        expect((await nameless.answer()).body.toString()).toBe('ok\n')
      }
      const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ${siteName}\r\n\r\n`
      const line = await proxy.raw()
      line.send(get('/api/stats') + get('/api/rooms') + get('/api/log/checkpoint'))
      for (const word of ['"stats"', '"rooms"', '"checkpoint"'])
        expect((await line.answer()).body.toString()).toContain(word)
      line.destroy()
      const commands = ['one', 'two', 'three'].map((text) => client.sign(writer, { operation: 'post', text }))
      const posts = await proxy.raw()
      posts.send(
        commands
          .map(
            ({ body }) =>
              `POST /v1/command HTTP/1.1\r\nHost: ${siteName}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
          )
          .join(''),
      )
      for (const { eventId } of commands) expect((await posts.answer()).body.toString()).toContain(eventId)
      posts.destroy()
    })

    test('nothing that the engine would take for a second request passes', async () => {
      const before = await events()
      const hiding = [
        ': x\r\nContent-Length: LENGTH\r\n',
        ': x\r\nTransfer-Encoding: chunked\r\n',
        'Content-Length: LENGTH\r\n: x\r\nTransfer-Encoding: chunked\r\n',
        'Content-Length: LENGTH\r\nContent-Length: 0\r\n',
        'Content-Length: 0\r\nTransfer-Encoding: chunked\r\n',
        'Transfer-Encoding: gzip\r\nContent-Length: LENGTH\r\n',
        'Content-Length : LENGTH\r\n',
        'X-Fold: a\r\n Content-Length: LENGTH\r\n',
      ]
      const methods = ['GET', 'POST', 'OPTIONS', 'MKCOL', 'HEAD', 'PUT', 'DELETE']
      const bodies = [
        (inner: string) => inner,
        (inner: string) => `0\r\n\r\n${inner}`,
        (inner: string) => `g\r\n${inner}`,
      ]
      for (const method of methods) {
        for (const head of hiding) {
          for (const [at, bodyOf] of bodies.entries()) {
            // Two proper requests by RFC 9112: chunks take precedence over a length (6.3), and a folded line is part of its field (5.2).
            const isTwo =
              at === 1 ? head.startsWith('Content-Length: 0\r\nTransfer') : at === 0 && head.startsWith('X-Fold')
            // Caddy drops the field without a name, and also sees two requests: each is forwarded separately, with its own address.
            const isTwoToCaddy = name === 'caddy' && at === 1 && head.includes(': x\r\nTransfer-Encoding: chunked')
            // nginx refuses both.
            if (isTwoToCaddy || (name !== 'nginx' && isTwo)) continue
            const { body } = client.sign(writer, { operation: 'post', text: `${method} ${head}` })
            const inner = `POST /v1/command HTTP/1.1\r\nHost: ${siteName}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
            const sent = bodyOf(inner)
            const connection = await proxy.raw()
            connection.send(
              `${method} /time HTTP/1.1\r\nHost: ${siteName}\r\n${head.replaceAll('LENGTH', String(sent.length))}\r\n${sent}`,
            )
            // Refused as a whole, or answered: the rest belonged to it, and no command comes out of it.
            await Promise.race([connection.answerOrClose(), sleep(1_000)])
            connection.destroy()
          }
        }
      }
      expect(await events()).toBe(before)
    })

    test('a chunked body is forwarded with one length, and a broken one not at all', async () => {
      const { body } = client.sign(writer, { operation: 'post', text: 'in chunks' })
      const head = `POST /v1/command HTTP/1.1\r\nHost: ${siteName}\r\nTransfer-Encoding: chunked\r\n\r\n`
      const good = await proxy.raw()
      good.send(`${head}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
      expect((await good.answer()).status).toBe(200)
      good.destroy()
      const before = await events()
      for (const chunks of [`g\r\n${body}\r\n0\r\n\r\n`, `${body.length.toString(16)}\r\n${body}XX0\r\n\r\n`]) {
        const broken: RawConnection = await proxy.raw()
        broken.send(head + chunks)
        expect([400, ...(name === 'caddy' ? [502] : [])]).toContain((await broken.answerOrClose())?.status ?? 400)
        broken.destroy()
      }
      expect(await events()).toBe(before)
    })
  },
)

/** A stream through a proxy, and its result. */
async function follow(port: number, path: string, headers: Readonly<Record<string, string>>) {
  let text = ''
  let wake = (): void => {}
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, servername: siteName, rejectUnauthorized: false, agent: false }
    const sent = httpsRequest({ ...options, headers: { host: siteName, ...headers } }, resolve)
    sent.on('error', reject)
    sent.end()
  })
  expect([response.statusCode, response.headers['content-encoding']]).toEqual([200, undefined])
  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    wake()
  })
  response.on('error', () => {})
  return {
    async until(words: string): Promise<void> {
      while (!text.includes(words))
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    },
    leave: () => response.destroy(),
  }
}

const noVerifier = missingProgram('systemd-analyze')
test.skipIf(skipWithout(noVerifier))(`the systemd unit is valid${skipNote(noVerifier)}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'broadside-unit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const unit = readFileSync(new URL('../../src/hosting/broadside.service', import.meta.url), 'utf8')
  const file = join(folder, 'broadside.service')
  writeFileSync(file, unit.replace('/usr/local/bin/broadside', '/bin/true'))
  const { code, output, errors } = await runProgram(folder, 'systemd-analyze', ['verify', '--man=no', file], {})
  // It reports problems in other units of the machine too.
  expect([code, `${output}${errors}`.split('\n').filter((line) => line.includes('broadside'))]).toEqual([0, []])
  // By default, systemd gives up after five starts that fail within 10 s. A start that is refused takes about one.
  expect(unit).toMatch(/^Restart=always$/m)
  expect(unit).toMatch(/^StartLimitIntervalSec=0$/m)
})
