/** Writing without POST: what a client that can only fetch URLs can and cannot do at /c64/, on both engines. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Fetched = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly json: { ok?: boolean; data?: Record<string, never>; error?: { code: string; message: string } }
}

const ada = person('ada')
const c64 = (body: string) => `/c64/${Buffer.from(body).toString('base64url')}`

/** Runs a program until it exits and returns its combined output and exit code. */
function run(program: string, args: readonly string[], input = ''): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const home = mkdtempSync(join(tmpdir(), 'broadside-peer-'))
    const child = spawn(program, args, { env: { PATH: process.env.PATH, HOME: home, LC_ALL: 'C' } })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.on('error', reject)
    child.on('close', (code) => {
      rmSync(home, { recursive: true, force: true })
      resolve({ code, output })
    })
    // A program that exits without reading its input is judged by its exit code.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
}

const noCurl = missingProgram('curl')
const noCadaver = missingProgram('cadaver')

describe.each(['uws', 'node'])('on the %s engine', (engine) => {
  let board: Board
  let client: Client
  const fetched = (
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body = '',
  ): Promise<Fetched> =>
    new Promise((resolve, reject) => {
      // Sent raw: the URL class would normalize it.
      const sent = request({ host: '127.0.0.1', port: board.port, path, method, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const json = text.startsWith('{') ? (JSON.parse(text) as Fetched['json']) : {}
          resolve({ status: response.statusCode!, headers: response.headers, text, json })
        })
      })
      sent.on('error', reject)
      sent.end(body)
    })
  const events = async () => {
    const { room } = (await client.send('{"operation":"room.get","room":"lobby"}')).data
    return (room as { count: number }).count
  }
  const eventOf = async (id: string) => (await client.get(`/api/events/${id}`)).data.event!
  const signed = (fields: object = {}) =>
    client.sign(ada, { operation: 'post', room: 'lobby', text: 'from a link', ...fields } as Fields)

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
  })
  afterAll(() => client.close())

  test.each(['GET', 'POST', 'MKCOL'])(
    '%s has the same effect as POSTing the command, and none when repeated',
    async (method) => {
      const command = signed()
      const before = await events()
      const first = await fetched(method, c64(command.body))
      expect(first).toMatchObject({ status: 200, json: { ok: true, data: { event_id: command.eventId } } })
      expect(first.json.data!.event).toMatchObject({ via: 'c64', text: 'from a link', room: 'lobby' })
      expect(first.headers).toMatchObject({
        'cache-control': 'no-store',
        'x-robots-tag': 'noindex',
        'access-control-allow-origin': '*',
        'content-type': 'application/json; charset=utf-8',
      })
      for (const again of ['GET', 'POST', 'MKCOL']) {
        const { json } = await fetched(again, c64(command.body))
        expect(json.data!.receipt).toMatchObject({ event_id: command.eventId, duplicate: true })
      }
      expect((await client.send(command.body)).data.receipt).toMatchObject({ duplicate: true })
      expect(await events()).toBe(before + 1)
      expect(await eventOf(command.eventId)).toMatchObject({ via: 'c64' })
    },
  )

  test('signatures are checked and refused as for POST, with the same words', async () => {
    const before = await events()
    const unsigned = '{"operation":"post","room":"lobby","text":"nobody signed this"}'
    const forged = signed().body.replace('from a link', 'changed on the way')
    for (const body of [unsigned, forged, '{"operation":"post"', '{"operation":"no.such"}', '[]', '{"operation":1}']) {
      const [there, here] = [await client.send(body), await fetched('GET', c64(body))]
      expect(here.status, body).toBe(there.status)
      expect(here.text, body).toBe(there.text)
      expect(here.headers).toMatchObject({ 'cache-control': 'no-store', 'x-robots-tag': 'noindex' })
    }
    expect(await events()).toBe(before)
  })

  test('a public read needs no signature there either', async () => {
    const { status, json } = await fetched('GET', c64('{"operation":"room.get","room":"lobby"}'))
    expect(status).toBe(200)
    expect(json.data!.room).toMatchObject({ name: 'lobby' })
  })

  test('a browser’s prefetch has no effect; Sec-Fetch-* headers never matter', async () => {
    const command = signed({ text: 'prefetched' })
    const before = await events()
    const ahead: Record<string, string>[] = [
      { 'Sec-Purpose': 'prefetch' },
      { 'Sec-Purpose': 'prefetch;prerender' },
      { Purpose: 'prefetch' },
      { purpose: 'Prerender' },
    ]
    for (const headers of ahead)
      for (const method of ['GET', 'POST', 'MKCOL']) {
        const refused = await fetched(method, c64(command.body), headers)
        expect(refused).toMatchObject({ status: 403, json: { error: { code: 'forbidden' } } })
        expect(refused.json.error!.message).toContain('prefetch')
        expect(refused.headers).toMatchObject({ 'cache-control': 'no-store', 'x-robots-tag': 'noindex' })
      }
    expect(await events()).toBe(before)
    const plain = { 'Sec-Fetch-Dest': 'prefetch', 'Sec-Fetch-Mode': 'no-cors', 'Sec-Fetch-Site': 'none' }
    expect((await fetched('GET', c64(command.body), plain)).status).toBe(200)
    expect(await events()).toBe(before + 1)
  })

  test('HEAD, OPTIONS and every other method never write', async () => {
    const command = signed({ text: 'never by HEAD' })
    const before = await events()
    for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
      const refused = await fetched(method, c64(command.body))
      expect([method, refused.status]).toEqual([method, 405])
      expect(refused.headers.allow).toBe('GET, POST, MKCOL, OPTIONS')
      expect(refused.headers['x-robots-tag']).toBe('noindex')
    }
    const options = await fetched('OPTIONS', c64(command.body), { Origin: 'https://elsewhere.example' })
    expect(options.status).toBe(200)
    expect(options.headers).toMatchObject({
      allow: 'GET, POST, MKCOL, OPTIONS',
      'access-control-allow-methods': 'GET, POST, MKCOL, OPTIONS',
      'access-control-allow-origin': '*',
    })
    expect(await events()).toBe(before)
  })

  test('a command has exactly one encoding: no padding, other alphabet, stray bits, query or body is accepted', async () => {
    const before = await events()
    // A length that leaves 2 of 3 bytes in the last group, so that the last character has unused bits.
    const command = ['', '.', '..']
      .map((end) => signed({ text: `from a link${end}` }))
      .find(({ body }) => Buffer.byteLength(body) % 3 === 2)!
    const text = c64(command.body).slice(5)
    const stray = `${text.slice(0, -1)}${String.fromCharCode(text.charCodeAt(text.length - 1) + 1)}`
    const wrong = [
      `${text}=`,
      `${text}%3D`,
      stray,
      `${text}+`,
      `${text} `.replace(' ', '%20'),
      `${text}.`,
      '',
      `${text}/`,
      `${text}/more`,
    ]
    for (const each of wrong) {
      const refused = await fetched('GET', `/c64/${each}`)
      expect([each.slice(-6), refused.status, refused.json.error?.code]).toEqual([each.slice(-6), 400, 'invalid_field'])
    }
    for (const path of [`/c64/${text}?x=1`, `/c64/${text}?a`])
      expect(await fetched('GET', path)).toMatchObject({ status: 400, json: { error: { code: 'invalid_field' } } })
    for (const method of ['POST', 'MKCOL'])
      expect(await fetched(method, `/c64/${text}`, {}, '{}')).toMatchObject({
        status: 400,
        json: { error: { code: 'invalid_field' } },
      })
    expect(await events()).toBe(before)
  })

  test('a URL may have 16,384 bytes; up to 32,768 the refusal names the limit, beyond that it is a 431', async () => {
    const address = (length: number) => {
      const room = '{"operation":"room.get","room":"lobby"}'
      // White space around JSON is ignored, so every length that base64url can produce is a valid command.
      const bytes = Math.floor(((length - 5) * 3) / 4)
      return c64(room.padEnd(bytes, ' '))
    }
    const longest = address(16_384)
    expect(longest.length).toBe(16_384)
    expect((await fetched('GET', longest)).status).toBe(200)
    for (const length of [16_385, 20_000, 32_767]) {
      const refused = await fetched('GET', '/c64/'.padEnd(length, 'A'))
      expect(refused).toMatchObject({ status: 400, json: { error: { code: 'too_large' } } })
      expect(refused.json.error!.message).toContain(String(length))
      expect(refused.json.error!.message).toContain('16384')
    }
    for (const length of [32_769, 36_000, 45_000]) {
      const status = await fetched('GET', '/c64/'.padEnd(length, 'A')).then(
        (found) => found.status,
        () => 'closed',
      )
      // Beyond the maximum head size the parser itself answers, or cuts the connection.
      expect([length, length > 40_960 ? [431, 'closed'].includes(status as never) : status]).toEqual([
        length,
        length > 40_960 ? true : 431,
      ])
    }
  })

  test('a path with an encoded slash or a backslash is refused as ambiguous everywhere', async () => {
    const paths = [
      '/c64/e30%2Fe30',
      '/c64/e30%5c',
      '/api%2fevents',
      '/api/events/..%2F..%2fetc',
      '/v1%5Ccommand',
      '/c64\\e30',
    ]
    for (const path of paths)
      for (const method of ['GET', 'POST'])
        expect(await fetched(method, path), path).toMatchObject({
          status: 400,
          json: { error: { code: 'ambiguous_path' } },
        })
    // In a query it is an ordinary value.
    expect((await fetched('GET', '/api/rooms?query=a%2Fb%5C')).status).toBe(200)
  })

  test.skipIf(skipWithout(noCurl))(`curl -X MKCOL posts exactly once${skipNote(noCurl)}`, async () => {
    const command = signed({ text: 'made by curl' })
    const before = await events()
    for (let round = 0; round < 3; round++) {
      const url = board.address + c64(command.body)
      const { code, output } = await run('curl', ['-sS', '-X', 'MKCOL', url])
      expect([code, output.startsWith('{"ok":true')]).toEqual([0, true])
    }
    expect(await events()).toBe(before + 1)
    expect(await eventOf(command.eventId)).toMatchObject({ text: 'made by curl', via: 'c64' })
  })

  test.skipIf(skipWithout(noCadaver))(
    `creating a collection with cadaver, a WebDAV client, posts${skipNote(noCadaver)}`,
    async () => {
      const command = signed({ text: 'made by a WebDAV client' })
      const before = await events()
      const name = c64(command.body).slice(5)
      const { output } = await run('cadaver', ['-t', `${board.address}/c64/`], `mkcol ${name}\nmkcol ${name}\nquit\n`)
      expect(output).toContain('succeeded')
      expect(await events()).toBe(before + 1)
      expect(await eventOf(command.eventId)).toMatchObject({ text: 'made by a WebDAV client', via: 'c64' })
    },
  )
})
