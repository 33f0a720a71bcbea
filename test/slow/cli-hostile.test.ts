/**
 * Every command that queries a server, against one that answers anything: whatever it says, the command ends with a sentence and its exit
 * code, and never with a stack trace. The server sits in front of a real board and changes one thing at a time.
 */
import { sign } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { formatCheckpoint } from '../../storage/checkpoint.ts'
import { privateKeyOf, rawPublicKeyOf } from '../../storage/ed25519.ts'
import { formatVkey, KEY_TYPE, keyIdOf, signNote } from '../../storage/note.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

let board: Board
let folder: string
let key: string
let list: string
let exported: string
let eventId: string
let between: Server
let address: string
/** Changes an answer of the board. */
let change: (path: string, body: Buffer, type: string) => Buffer = (_path, body) => body

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'broadside-hostile-'))
  key = join(folder, 'key.json')
  list = join(folder, 'list.jsonl')
  exported = join(folder, 'export.jsonl')
  await run('keygen', key)
  const { id } = JSON.parse(readFileSync(key, 'utf8')) as { id: string }
  board = await startBoard({
    directory: boardDirectory(),
    env: { OPERATORS: id, BROADSIDE_LIMITS: 'off', BROADSIDE_LOOPBACK: '1' },
  })
  const client = await Client.of(board)
  for (let n = 0; n < 3; n++)
    eventId = (await client.post(person('ada'), { room: 'lobby', text: `text ${n}` })).data.event_id!
  client.close()
  writeFileSync(
    list,
    `${JSON.stringify({ id: 'weather-1', kind: 'x402', type: 'service', name: 'Weather', description: 'of today', category: 'weather', url: 'https://weather.example/', price: '0.01' })}\n`,
  )
  between = createServer((request, response) => void pass(request.url!, request.method!, request, response))
  await new Promise<void>((done) => between.listen(0, '127.0.0.1', done))
  address = `http://127.0.0.1:${(between.address() as AddressInfo).port}`
  expect((await run('tools', 'import', list, '--key', key, '--url', board.address)).code).toBe(0)
  expect((await run('export', '--out', exported, '--url', board.address)).code).toBe(0)
})
afterAll(async () => {
  between.close()
  between.closeAllConnections()
  await board.kill()
  rmSync(folder, { recursive: true, force: true })
})

async function pass(
  path: string,
  method: string,
  request: AsyncIterable<Buffer>,
  response: ServerResponse,
): Promise<void> {
  const sent: Buffer[] = []
  for await (const chunk of request) sent.push(chunk)
  const body = Buffer.concat(sent)
  const aborter = new AbortController()
  const answer = await fetch(`${board.address}${path}`, {
    method,
    signal: aborter.signal,
    headers: { 'content-type': 'application/json', accept: path.startsWith('/tail') ? 'text/event-stream' : '*/*' },
    ...(method === 'POST' ? { body } : {}),
  })
  const type = answer.headers.get('content-type') ?? ''
  let bytes: Buffer
  if (path.startsWith('/tail')) {
    const { value } = await answer.body!.getReader().read()
    bytes = Buffer.from(value!)
    aborter.abort()
  } else bytes = Buffer.from(await answer.arrayBuffer())
  const changed = change(path, bytes, type)
  response.writeHead(answer.status, { 'content-type': type, 'content-length': changed.length }).end(changed)
}

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = capturedTerminal()
  const ending = argv[0] === 'tail' ? setInterval(() => process.emit('SIGINT'), 100) : undefined
  const code = await main(argv, terminal)
  clearInterval(ending)
  return { code, ...terminal.said }
}

let fresh = 0
const commands: Readonly<Record<string, () => string[]>> = {
  post: () => ['post', 'lobby', 'hello', '--key', key],
  'read a room': () => ['read', 'lobby', '--limit', '2'],
  'read a thread': () => ['read', eventId, '--json'],
  tail: () => ['tail', 'lobby', '--format', 'line'],
  import: () => ['import', exported, '--state', join(folder, `state-${++fresh}`), '--seed', 'x'],
  export: () => ['export', '--out', join(folder, `export-${++fresh}.jsonl`)],
  'tools import': () => ['tools', 'import', list, '--key', key],
  'tools relay': () => ['tools', 'relay', 'weather-1', '--key', key, '--payee', `0x${'1'.repeat(40)}`],
  verify: () => ['verify', exported, '--from', address],
  whoami: () => ['whoami', '--key', key],
  'call for a list': () => ['call', 'events.list', 'room=lobby', 'limit=2', '--key', key],
}

/** Why this is not an ending with a sentence; undefined if it is. A stack trace means that nobody foresaw the error. */
function faultOf({ code, err }: { code: number; err: string }): string | undefined {
  if (![0, 1, 2, 3, 4].includes(code)) return `exit code ${code}`
  if (/\n\s+at |TypeError|RangeError|\[object/.test(err)) return err.slice(0, 300)
  return code !== 0 && err === '' ? 'no word of why' : undefined
}

type Place = readonly string[]

/** Every place in a JSON value, as a path of keys. */
function placesIn(value: Json, path: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([name, each]) => placesIn(each, [...path, name]))]
}

function changed(value: Json, [name, ...rest]: Place, to: Json): Json {
  if (name === undefined) return to
  if (Array.isArray(value)) return value.map((each, n) => (String(n) === name ? changed(each, rest, to) : each))
  const members = Object.entries(value as { [key: string]: Json })
  return Object.fromEntries(members.map(([key, each]) => [key, key === name ? changed(each, rest, to) : each]))
}

/** The last cannot be converted to text: that is what it says of itself. */
const replacements: readonly Json[] = [
  null,
  5,
  'x',
  [],
  {},
  -1,
  [null],
  '\u202e\u001b[31m',
  { toString: null, valueOf: null },
]
/** Generic verbs share their code, so a few places of these suffice. */
const alike: readonly string[] = ['whoami', 'call for a list']
/** A third of them, different for each place. */
const some = (place: number) => replacements.filter((_, n) => (n + place) % 3 === 0)
const pathOf = (url: string) => url.replace(/\?.*/, '')

describe('with any value in any place of a JSON answer', () => {
  test.each(Object.keys(commands))('%s ends with a sentence', async (name) => {
    const answers = new Map<string, Json>()
    change = (url, body, type) => {
      if (type.startsWith('application/json')) answers.set(pathOf(url), JSON.parse(body.toString()) as Json)
      return body
    }
    await run(...commands[name]!(), '--url', address)
    const faults: string[] = []
    for (const [path, answer] of answers) {
      // Commands read only what is near the beginning of the capabilities.
      const places = placesIn(answer).filter((place) => path !== '/capabilities' || isRead(place))
      const numbered = [...places.entries()].filter(([n]) => !alike.includes(name) || n % 72 === 0)
      for (const [n, place] of randomPart(numbered))
        for (const to of some(n)) {
          change = (url, body) =>
            pathOf(url) === path
              ? Buffer.from(JSON.stringify(changed(JSON.parse(body.toString()) as Json, place, to)))
              : body
          const fault = faultOf(await run(...commands[name]!(), '--url', address))
          if (fault !== undefined) faults.push(`${path} ${place.join('.')} = ${JSON.stringify(to)}: ${fault}`)
        }
    }
    expect(faults).toEqual([])
  })
})

function isRead(place: Place): boolean {
  const [data, name, member] = place
  if (place.length < 2) return true
  return (
    data === 'data' &&
    ((name === 'log' && place.length < 4) || name === 'service_id' || member === 'tools_import_bytes')
  )
}

test('with any value in the events of a tail it continues or ends with a sentence', async () => {
  let places: Place[] = []
  let place: Place = []
  let to: Json | undefined
  change = (_url, body) =>
    Buffer.from(
      body.toString().replaceAll(/^data: *(\{.*)$/gm, (line, data: string) => {
        const event = JSON.parse(data) as Json
        if (to === undefined) places = placesIn(event)
        return to === undefined ? line : `data: ${JSON.stringify(changed(event, place, to))}`
      }),
    )
  const tailed = () => run('tail', 'lobby', '--format', 'line', '--url', address)
  expect((await tailed()).out).toContain('text 2')
  expect(places.length).toBeGreaterThan(10)
  const faults: string[] = []
  for (const [n, each] of places.entries())
    for (const replacement of some(n)) {
      place = each
      to = replacement
      const fault = faultOf(await tailed())
      if (fault !== undefined) faults.push(`${place.join('.')} = ${JSON.stringify(to)}: ${fault}`)
    }
  expect(faults).toEqual([])
})

const ok = (body: string) => `HTTP/1.1 200 OK\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const piece = Buffer.alloc(64 * 1024, 'x')

/** Answers to a connection: complete answers that are invalid, and some that never end. */
const garbage: Readonly<Record<string, string | ((socket: Socket) => void)>> = {
  nothing: '',
  'no HTTP': 'SSH-2.0-OpenSSH_9.2\r\n',
  'a page': 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>',
  'an error page': 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad',
  'a place to go to': 'HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n',
  'half of an answer': 'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{',
  'an old answer': 'HTTP/1.0 200 OK\r\n\r\n{}',
  'chunks that are none': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
  'no status': 'HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n',
  'a list': ok('[]'),
  'a number': ok('5'),
  'deep JSON': ok('['.repeat(200_000)),
  'an empty envelope': ok('{"ok":true}'),
  'a refusal without a reason': ok('{"ok":false,"error":{"code":5}}'),
  'a refusal by whatever': ok('{"ok":false,"error":{"code":"x","message":{"toString":null},"retry_after":{}}}'),
  'a head that never ends': (socket) => forever(socket, 'HTTP/1.1 200 OK\r\nX: '),
  'a body that never ends': (socket) => forever(socket, 'HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n'),
  'chunks that never end': (socket) =>
    forever(
      socket,
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      Buffer.from('10\r\nxxxxxxxxxxxxxxxx\r\n'.repeat(3_000)),
    ),
}

function forever(socket: Socket, head: string, each: Buffer = piece): void {
  socket.write(head)
  const more = (): void => {
    while (!socket.destroyed && socket.write(each));
  }
  socket.on('drain', more)
  more()
}

const asking: Readonly<Record<string, () => string[]>> = {
  ...commands,
  mirror: () => ['mirror', join(folder, `mirror-${++fresh}`)],
  'verify by a board': () => ['verify', exported],
}

test.each(Object.entries(garbage))('%s is not a board’s answer, and every command says so', async (_name, answer) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => (typeof answer === 'string' ? socket.end(answer) : answer(socket)))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ask = async (name: string): Promise<void> => {
    const [verb, ...rest] = asking[name]!()
    const line = verb === 'mirror' ? [verb, url, ...rest] : [verb!, ...rest, '--url', url]
    const ran = await run(...line)
    // A tail retries until it is ended, and an export accepts any lines.
    const isStream = name === 'tail' || name === 'export'
    expect([name, isStream || ran.code !== 0, faultOf(ran)]).toEqual([name, true, undefined])
  }
  // An endless answer is read for as long as somebody wants it: an export is any stream of lines.
  const asked = Object.keys(asking).filter((name) => name !== 'export' || typeof answer === 'string')
  // A tail is ended by a signal, which would end the others too.
  await Promise.all(asked.filter((name) => name !== 'tail').map(ask))
  await ask('tail')
  server.close()
})

test('a log that signs an impossible size is mirrored only as far as it has entries', async () => {
  const privateKey = privateKeyOf(Buffer.alloc(32, 7))
  const name = 'log.example/log'
  const key = { name, type: KEY_TYPE.ed25519, publicKey: rawPublicKeyOf(privateKey) }
  const checkpoint = formatCheckpoint({ origin: name, size: Number.MAX_SAFE_INTEGER, root: Buffer.alloc(32) })
  const note = signNote(checkpoint, {
    name,
    keyId: keyIdOf(name, key.type, key.publicKey),
    sign: (text) => sign(null, text, privateKey),
  })
  const server = createServer(({ url }, response) => {
    if (url === '/vkey') response.end(formatVkey(key))
    else if (url === '/checkpoint') response.end(note)
    else response.writeHead(404).end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const ran = await run('mirror', url, join(folder, 'endless'), '--prefix')
  expect([ran.code, faultOf(ran)]).toEqual([1, undefined])
  expect(ran.err).toContain('/tile/entries/000 could not be fetched: it answered 404')
  server.close()
})

describe('a tool with any value as its payee', () => {
  const terms = {
    x402Version: 2,
    accepts: [{ scheme: 'exact', network: 'eip155:8453', amount: '1', payTo: `0x${'2'.repeat(40)}` }],
  }
  const request = Buffer.from(JSON.stringify({ recipient: `0x${'3'.repeat(40)}`, amount: '1' })).toString('base64url')
  const challenge = (more: string) => `Payment id="a", realm="b", method="tempo", intent="charge", request="${more}"`
  let answer: (response: ServerResponse) => void = () => {}
  let tool: Server

  beforeAll(async () => {
    tool = createServer((_request, response) => answer(response))
    await new Promise<void>((done) => tool.listen(0, '127.0.0.1', done))
    process.env.BROADSIDE_LOOPBACK = '1'
    const link = `http://127.0.0.1:${(tool.address() as AddressInfo).port}/`
    change = (url, body) =>
      pathOf(url) === '/api/tool'
        ? Buffer.from(JSON.stringify(changed(JSON.parse(body.toString()) as Json, ['data', 'tool', 'link'], link)))
        : body
  })
  afterAll(() => {
    delete process.env.BROADSIDE_LOOPBACK
    tool.close()
    tool.closeAllConnections()
  })

  const relay = () => run('tools', 'relay', 'weather-1', '--key', key, '--url', address)

  test('is paid if it names an address', async () => {
    answer = (response) => response.writeHead(402).end(JSON.stringify({ ...terms, x402Version: 1 }))
    expect(await relay()).toMatchObject({ code: 0, out: expect.stringContaining(`to 0x${'2'.repeat(40)}.\n`) })
    answer = (response) => response.writeHead(402, { 'www-authenticate': challenge(request) }).end()
    expect(await relay()).toMatchObject({ code: 0, out: expect.stringContaining(`to 0x${'3'.repeat(40)}.\n`) })
  })

  test('is not paid otherwise, with a sentence', async () => {
    const faults: string[] = []
    const sees = async (what: string): Promise<void> => {
      const fault = faultOf(await relay())
      if (fault !== undefined) faults.push(`${what}: ${fault}`)
    }
    for (const place of placesIn(terms as Json))
      for (const to of replacements) {
        const said = JSON.stringify(changed(terms as Json, place, to))
        answer = (response) =>
          response.writeHead(402, { 'payment-required': Buffer.from(said).toString('base64') }).end(said)
        await sees(said)
        const asked = Buffer.from(JSON.stringify({ recipient: to })).toString('base64url')
        answer = (response) => response.writeHead(402, { 'www-authenticate': challenge(asked) }).end()
        await sees(asked)
      }
    for (const [name, ended] of Object.entries<(response: ServerResponse) => void>({
      'it goes away': (response) => response.destroy(),
      'it sends what never ends': (response) =>
        forever(response.socket!, 'HTTP/1.1 402 X\r\nContent-Length: 999999999\r\n\r\n'),
      'it sends elsewhere': (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      'it sends no JSON': (response) => response.writeHead(402, { 'payment-required': '%%%' }).end('<html>'),
    })) {
      answer = ended
      const ran = await relay()
      expect([name, ran.code, ran.err]).toEqual([name, 1, expect.stringContaining('does not name a payee')])
    }
    expect(faults).toEqual([])
  })
})
