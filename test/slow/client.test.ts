/**
 * The clients at real boards: the examples of /for-agents as they are served, the package, wrong clocks, cut connections, and follows over
 * a restart of the board, in JavaScript, in Python and in a browser.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { SignedCommand } from '../../src/client/broadside.ts'
import {
  BoardError,
  connect,
  createKey,
  importKey,
  NoAnswer,
  verifyExport,
  verifyProof,
} from '../../src/client/broadside.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { missingBrowser, openPage } from '../support/browser.ts'
import { Client, type EventJson } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const project = resolve(import.meta.dirname, '../..')
const missing = missingProgram('python3')
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
})
afterAll(() => client.close())

async function textsOf(room: string): Promise<(string | undefined)[]> {
  const { events } = (await client.get(`/api/events?room=${room}&order=asc&limit=200`)).data as unknown as {
    events: EventJson[]
  }
  return events.map(({ text }) => text)
}

/** Forwards to the board. `spoil` may end a POST in place of its answer, which the board has sent in full. */
async function between(
  to: Board,
  spoil: (answer: Buffer, response: ServerResponse, path: string) => boolean,
): Promise<string> {
  const server = createServer((near: IncomingMessage, response) => {
    const { method, url, headers } = near
    delete headers['accept-encoding']
    const far = request({ port: to.port, method: method!, path: url!, headers }, async (answer) => {
      const body = await buffer(answer)
      if (method === 'POST' && spoil(body, response, url!)) return
      response.writeHead(answer.statusCode!, { 'content-type': answer.headers['content-type'] }).end(body)
    })
    near.pipe(far)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A folder with the file that the board serves. */
async function home(name: string, savedAs = name): Promise<string> {
  const folder = scratchDirectory()
  writeFileSync(join(folder, savedAs), (await client.get(`/client/${name}`)).text)
  return folder
}

async function exampleIn(language: string): Promise<string> {
  const page = (await client.get('/for-agents')).text
  return new RegExp(`^\`\`\`${language}\n(.*?)\n\`\`\`$`, 'ms').exec(page)![1]!
}

const languages = [
  ['JavaScript', 'javascript', 'broadside.js', 'broadside.mjs', process.execPath, ['agent.mjs'], undefined],
  ['Python', 'py', 'broadside.py', 'broadside.py', 'python3', ['agent.py'], missing],
  ['Python without packages', 'py', 'broadside.py', 'broadside.py', 'python3', ['-S', 'agent.py'], missing],
] as const

test.skipIf(skipWithout(missing)).each(languages)(
  `the example in %s does what it says${skipNote(missing)}`,
  async (_, language, served, savedAs, program, args, lacking) => {
    if (lacking !== undefined) return
    const folder = await home(served, savedAs)
    writeFileSync(join(folder, args.at(-1)!), await exampleIn(language))
    const before = await textsOf('lobby')
    const { code, output, errors } = await runProgram(folder, program, args)
    expect([code, errors], output).toEqual([0, ''])
    expect((await textsOf('lobby')).slice(before.length)).toEqual([
      language === 'py' ? 'Hello from Python.' : 'Hello from JavaScript.',
      'A better reply.',
      'one',
      'two',
    ])
    const { id, seed } = JSON.parse(readFileSync(join(folder, 'me.json'), 'utf8')) as { id: string; seed: string }
    expect(output).toMatch(/^posted [0-9a-f]{32}\n(true|True)\n/)
    expect(output).toContain(`${id.slice(0, 8)} A better reply.`)
    expect(output.match(/^event\.posted lobby (one|two)$/gm)).toEqual([
      'event.posted lobby one',
      'event.posted lobby two',
    ])
    expect(output).toMatch(/^invalid_field room invalid_field: .+$/m)
    expect(output).not.toContain(seed)
  },
)

test('the served client is the one in the package, by the hash in /capabilities', async () => {
  const { clients } = (await client.get('/capabilities')).data as unknown as {
    clients: { url: string; sha256: string }[]
  }
  for (const [name, file] of [
    ['broadside.js', 'broadside.js'],
    ['v1.js', 'broadside.js'],
    ['broadside.py', 'broadside.py'],
  ] as const) {
    const { text, headers } = await client.get(`/client/${name}`)
    expect(text).toBe(readFileSync(join(project, 'dist/src/client', file), 'utf8'))
    expect(text).not.toContain('sourceMappingURL')
    expect(headers).toMatchObject({ 'access-control-allow-origin': '*', 'x-content-type-options': 'nosniff' })
    const sha256 = createHash('sha256').update(text).digest('hex')
    expect(clients).toContainEqual({ url: `${board.address}/client/${name}`, sha256 })
    if (name.endsWith('.js')) expect(text).not.toMatch(/^(import|export \{.*\} from) /m)
  }
})

test('the packed package exports the client with types, and needs no other package', async () => {
  const folder = scratchDirectory()
  const packed = await runProgram(folder, 'npm', [
    'pack',
    project,
    '--json',
    '--ignore-scripts',
    '--pack-destination',
    folder,
  ])
  expect(packed.code, packed.errors).toBe(0)
  const [{ filename }] = JSON.parse(packed.output) as [{ filename: string }]
  mkdirSync(join(folder, 'node_modules/broadside'), { recursive: true })
  const unpack = ['-xzf', filename, '--strip-components=1', '-C', 'node_modules/broadside']
  expect((await runProgram(folder, 'tar', unpack)).code).toBe(0)
  writeFileSync(
    join(folder, 'agent.mts'),
    `import { BoardError, connect } from 'broadside/client'
const board = await connect('${board.address}', { key: 'me.json' })
const { event } = await board.post('packed', 'from the package')
const { doc } = await board.call('docs.create', { room: 'packed', text: 'A.', data: { title: 'T' } })
const version: number = doc.version
console.log(event.text, version)
// @ts-expect-error: no such operation
const refused: unknown = await board.call('docs.creat', {}).catch((error: unknown) => error)
if (refused instanceof BoardError) console.log(refused.code)
const wrong = async () => {
  // @ts-expect-error: the text is missing
  await board.call('docs.create', { room: 'packed', data: { title: 'T' } })
  // @ts-expect-error: the title is a text
  await board.call('docs.create', { room: 'packed', text: 'A.', data: { title: 5 } })
}
console.log(typeof wrong)
`,
  )
  const options = {
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2024', 'dom', 'dom.iterable'],
    types: [],
    strict: true,
    noEmit: false,
    outDir: '.',
    skipLibCheck: true,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['agent.mts'] }))
  const compiled = await runProgram(folder, process.execPath, [
    join(project, 'node_modules/typescript/bin/tsc'),
    '-p',
    '.',
  ])
  expect([compiled.code, compiled.output]).toEqual([0, ''])
  const { code, output, errors } = await runProgram(folder, process.execPath, ['agent.mjs'])
  expect([code, errors, output]).toEqual([0, '', 'from the package 1\nunknown_operation\nfunction\n'])
})

describe('in JavaScript', () => {
  const open = async (address: string, more = {}) => connect(address, { key: await createKey(), ...more })

  test('a wrong clock is corrected from the board, and the command is signed again', async () => {
    const posting = await open(board.address)
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 4_000_000)
    onTestFinished(() => void vi.restoreAllMocks())
    const { receipt } = await posting.post('clock', 'after a long sleep')
    expect(receipt.duplicate).toBeUndefined()
    expect(await textsOf('clock')).toEqual(['after a long sleep'])
  })

  test('a refusal has code, field and message, and is not retried', async () => {
    const posting = await open(board.address)
    const refused = await posting.post('lobby', '   ').catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(BoardError)
    expect(refused).toMatchObject({ code: 'invalid_field', field: 'text', status: 400, wasResent: false })
  })

  test('cut answers are requested again with the same bytes: one post', async () => {
    let cuts = 0
    const address = await between(board, (_, response) => cuts++ < 2 && Boolean(response.destroy()))
    const { receipt } = await (await open(address)).post('cut', 'once')
    expect([receipt.duplicate, cuts]).toEqual([true, 3])
    expect(await textsOf('cut')).toEqual(['once'])
  })

  test('without any answer the outcome is unknown, and the same command may be sent later', async () => {
    let isCut = true
    const address = await between(board, (_, response) => isCut && Boolean(response.destroy()))
    const posting = await open(address, { patience: 1 })
    const failed = await posting.post('unknown', 'once').catch((error: unknown) => error)
    if (!(failed instanceof NoAnswer)) throw failed
    isCut = false
    expect(await posting.send(failed.command as SignedCommand)).toMatchObject({ receipt: { duplicate: true } })
    expect(await textsOf('unknown')).toEqual(['once'])
  })

  test('a batch whose answer ends in the middle of a line has each outcome in its place', async () => {
    let cuts = 0
    const address = await between(board, (answer, response) => {
      if (cuts++ > 0) return false
      response.writeHead(200, { 'content-type': 'application/x-ndjson' })
      response.write(answer.subarray(0, answer.length / 2), () => response.destroy())
      return true
    })
    const posting = await open(address)
    const texts = Array.from({ length: 1_500 }, (_, n) => (n === 700 ? ' ' : `line ${n}`))
    const outcomes = await posting.batch(texts.map((text) => ({ operation: 'post', room: 'batch', text })))
    expect(cuts).toBeGreaterThan(1)
    for (const [n, outcome] of outcomes.entries()) {
      if (n === 700) expect(outcome).toMatchObject({ ok: false, error: { code: 'invalid_field', field: 'text' } })
      else expect(outcome).toMatchObject({ ok: true, data: { event: { text: texts[n] } } })
    }
    const seqs = outcomes.flatMap((each) => (each.ok ? [(each.data as { event: { seq: number } }).event.seq] : []))
    expect(new Set(seqs).size).toBe(1_499)
  })

  test('limits are waited for, as long as the board says', async () => {
    const limited = await startBoard({
      directory: boardDirectory(),
      env: { BROADSIDE_LIMITS: 'on', LIMITS: '{"writes_per_identity_per_minute":30}' },
    })
    const posting = await open(limited.address)
    const outcomes = await posting.batch(
      Array.from({ length: 36 }, (_, n) => ({ operation: 'post', room: 'lobby', text: `limited ${n}` })),
    )
    expect(outcomes.map(({ ok }) => ok)).toEqual(Array(36).fill(true))
    await limited.stop()
  })

  test('a room that requires proof of work gets it, up to the number of bits that was allowed', async () => {
    const strict = await startBoard({ directory: boardDirectory(), env: { PROOF_BITS: '8' } })
    await (await open(strict.address)).post('lobby', 'worked for')
    const idle = await open(strict.address, { proofBitsMax: 4 })
    await expect(idle.post('lobby', 'not worked for')).rejects.toMatchObject({ code: 'proof_required' })
    await strict.stop()
  })

  test('nothing is signed for a service other than the pinned one', async () => {
    await expect(open(board.address, { service: 'other' })).rejects.toThrow(/is the service .*, not other/)
  })
})

const following = [
  [
    'JavaScript',
    'broadside.js',
    'broadside.mjs',
    process.execPath,
    'follow.mjs',
    (address: string) => `import { writeFileSync } from 'node:fs'
import { connect } from './broadside.mjs'
const board = await connect('${address}', { key: 'me.json' })
const news = await board.follow('restart')
writeFileSync('following', '')
for await (const { type, event } of news) {
  console.log(type, event.text)
  if (event.text === 'last') break
}`,
    undefined,
  ],
  [
    'Python',
    'broadside.py',
    'broadside.py',
    'python3',
    'follow.py',
    (address: string) => `from broadside import connect
board = connect("${address}", key="me.json")
news = board.follow("restart")
open("following", "w").close()
for update in news:
    print(update["type"], update["event"]["text"])
    if update["event"]["text"] == "last":
        break`,
    missing,
  ],
] as const

test.each(following)(
  `a follow in %s continues over a kill of the board, and nothing is lost or repeated${skipNote(missing)}`,
  async (_, served, savedAs, program, file, code, lacking) => {
    if (skipWithout(lacking)) return
    const directory = boardDirectory()
    const first = await startBoard({ directory })
    const posting = await connect(first.address, { key: await createKey() })
    await posting.post('restart', 'before')
    const folder = await home(served, savedAs)
    writeFileSync(join(folder, file), code(first.address))
    const ended = runProgram(folder, program, [file])
    await vi.waitFor(() => expect(existsSync(join(folder, 'following'))).toBe(true), patience)
    await posting.post('restart', 'one')
    await first.kill()
    const second = await startBoard({ directory, port: first.port })
    await posting.post('restart', 'two')
    await posting.post('restart', 'last')
    const { code: exit, output, errors } = await ended
    expect([exit, errors, output]).toEqual([0, '', 'event.posted one\nevent.posted two\nevent.posted last\n'])
    await second.stop()
  },
)

test.skipIf(skipWithout(missing))(
  `in Python: a wrong clock, cut answers and cut batches${skipNote(missing)}`,
  async () => {
    let cuts = 0
    const address = await between(board, (answer, response, path) => {
      if (cuts++ % 2 === 1) return false
      if (path === '/v1/command') return Boolean(response.destroy())
      response.writeHead(200)
      response.write(answer.subarray(0, answer.length / 2), () => response.destroy())
      return true
    })
    const folder = await home('broadside.py')
    writeFileSync(
      join(folder, 'try.py'),
      `import time
from broadside import BoardError, NoAnswer, connect
board = connect("${address}", key="me.json")
print(board.post("python-cut", "once")["receipt"]["duplicate"])
texts = [" " if n == 70 else f"line {n}" for n in range(1100)]
outcomes = board.batch({"operation": "post", "room": "python-cut", "text": text} for text in texts)
print([n for n, each in enumerate(outcomes) if isinstance(each, BoardError) and each.code == "invalid_field" and each.field == "text"])
print(all(each["event"]["text"] == text for each, text in zip(outcomes, texts) if text != " "))
print(len({each["event"]["seq"] for each, text in zip(outcomes, texts) if text != " "}))
direct = connect("${board.address}", key="me.json")
real = time.monotonic
time.monotonic = lambda: real() + 4_000_000
print(direct.post("python-clock", "after a long sleep")["receipt"].get("duplicate"))
time.monotonic = real
try:
    connect("http://127.0.0.1:1", patience=0.5)
except NoAnswer as error:
    print("no answer")
`,
    )
    const { code, output, errors } = await runProgram(folder, 'python3', ['try.py'])
    expect([code, errors, output]).toEqual([0, '', 'True\n[70]\nTrue\n1099\nNone\nno answer\n'])
  },
)

test.skipIf(skipWithout(missingBrowser))(
  `a page of another site imports the client and posts${skipNote(missingBrowser)}`,
  async () => {
    const server = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>'),
    )
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    onTestFinished(() => void server.close())
    const page = await openPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    // As text: an import in a function would be rewritten on its way to the browser.
    const posted = await page.evaluate(`(async () => {
      const { connect, createKey } = await import('${board.address}/client/broadside.js')
      const board = await connect('${board.address}', { key: await createKey() })
      await board.post('browser', 'the first makes the room')
      const news = await board.follow('browser')
      const outcomes = await board.batch([{ operation: 'post', room: 'browser', text: 'from a page' }])
      for await (const { event } of news) return [outcomes[0].ok, event.text]
    })()`)
    expect(posted).toEqual([true, 'from a page'])
    // A key sealed by the page opens elsewhere, and a non-extractable one signs.
    const sealed = await (await createKey()).toSealedFile('from outside')
    const [id, own, signs, exported] = (await page.evaluate(`(async () => {
      const { connect, createKey, importKey, keyFromPair, verifyExport } = await import('${board.address}/client/v1.js')
      const opened = await importKey(${JSON.stringify(sealed)}, 'from outside')
      const key = await keyFromPair(await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify']))
      const board = await connect('${board.address}', { key })
      const { event } = await board.post('browser', 'by a key that stays here')
      const { log } = (await (await fetch('${board.address}/capabilities')).json()).data
      const facts = await verifyExport(board.exportLines(), { vkey: log.vkey })
      return [opened.id, await (await createKey()).toSealedFile('from the page'), event.author.id === key.id, facts.events > 0]
    })()`)) as [string, string, boolean, boolean]
    expect([id, signs, exported]).toEqual([(JSON.parse(sealed) as { id: string }).id, true, true])
    expect((await importKey(own, 'from the page')).id).toBe((JSON.parse(own) as { id: string }).id)
  },
)

test.skipIf(skipWithout(missing))(
  `the board’s proofs and exports verify in both languages, and its posts are tailed${skipNote(missing)}`,
  async () => {
    const own = await connect(board.address, { key: await createKey() })
    const { event_id } = await own.post('proved', 'first')
    const { vkey } = (await client.get('/capabilities')).data.log as unknown as { vkey: string }
    const proof = await own.call('log.proof', { event_id })
    expect(await verifyProof(proof, { vkey })).toMatchObject({ eventId: event_id })
    const lines: string[] = []
    for await (const line of own.exportLines()) lines.push(line)
    const facts = await verifyExport(lines, { vkey })
    expect(facts.events).toBeGreaterThan(0)
    const folder = await home('broadside.py')
    writeFileSync(
      join(folder, 'check.py'),
      `from broadside import *
board = connect("${board.address}", key="me.json")
facts = verify_export(board.export_lines(), "${vkey}")
found = verify_proof(board.call("log.proof", event_id="${event_id}"), "${vkey}")
news = board.tail("proved")
board.post("proved", "from Python")
print(facts["events"], found["event_id"], next(news)["text"])`,
    )
    const { code, output, errors } = await runProgram(folder, 'python3', ['check.py'])
    expect([code, errors, output]).toEqual([0, '', `${facts.events} ${event_id} from Python\n`])
    const tail = own.tail('proved')
    const next = tail.next()
    let n = 0
    const said = setInterval(() => void own.post('proved', `said ${++n}`), 200)
    expect((await next).value).toMatchObject({ room: 'proved', text: expect.stringContaining('said ') })
    clearInterval(said)
    await tail.return()
  },
)
