/** Every command with --json, as a program: standard output has only JSON, one object per line, whatever else there is to say. */
import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { commandNames, main } from '../../src/cli/main.ts'
import { verbWords } from '../../src/cli/verbs.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'
import { Replicas } from '../support/replicas.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

type Line = Readonly<Record<string, unknown>>

const home = mkdtempSync(join(tmpdir(), 'broadside-json-'))
const directory = boardDirectory()
const corpus = resolve('test/samples/corpus.jsonl')
const tool = {
  ...{ id: 'weather-1', kind: 'x402', type: 'service', name: 'Weather', description: 'of today', category: 'weather' },
  ...{ url: 'https://weather.example/', price: '0.01' },
}
const payee = `0x${'2'.repeat(40)}`
const ran = new Set<string>()
let board: Board

beforeAll(async () => {
  const [{ identity }] = await linesOf('keygen', 'operator.json')
  const wallet = join(home, 'wallet.key')
  writeFileSync(wallet, `0x${'1'.repeat(64)}\n`, { mode: 0o600 })
  const env = { OPERATORS: String(identity), WALLET_KEY_FILE: wallet, PAY_CAP_DAY: '0.2' }
  board = await startBoard({ directory, env })
  copyFileSync(corpus, join(home, 'corpus.jsonl'))
  writeFileSync(join(home, 'notes.txt'), 'a file')
  writeFileSync(join(home, 'tools.jsonl'), `${JSON.stringify(tool)}\n`)
})
afterAll(async () => {
  await board.kill()
  rmSync(home, { recursive: true, force: true })
})

function objectsIn(argv: readonly string[], output: string): Line[] {
  expect([argv, output.at(-1)]).toEqual([argv, '\n'])
  return output
    .slice(0, -1)
    .split('\n')
    .map((line) => {
      const value: unknown = JSON.parse(line)
      expect([argv, value]).toEqual([argv, expect.objectContaining({})])
      return value as Line
    })
}

/** The output of a command, at least one line. */
async function linesOf(...argv: string[]): Promise<[Line, ...Line[]]> {
  const env = { ...(board === undefined ? {} : { BROADSIDE_URL: board.address }), BROADSIDE_KEY: 'operator.json' }
  const { code, output, errors } = await runProgram(home, process.execPath, [program, ...argv, '--json'], { env })
  ran.add(argv[0]!)
  expect([argv, code, code === 0 ? '' : errors]).toEqual([argv, 0, ''])
  return objectsIn(argv, output) as [Line, ...Line[]]
}

/** The first line of a command that runs until it is stopped. */
async function firstLineOf(...argv: string[]): Promise<Line> {
  const env = { PATH: process.env.PATH, HOME: home, BROADSIDE_URL: board.address }
  const child = spawn(process.execPath, [program, ...argv, '--json'], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<string>((done) => {
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString()
    })
    child.on('close', () => done(output))
  })
  ran.add(argv[0]!)
  await new Promise((done) => createInterface({ input: child.stdout }).once('line', done).once('close', done))
  child.kill('SIGTERM')
  return objectsIn(argv, await ended)[0]!
}

test('people: keys, posts, rooms, lists', async () => {
  expect(await linesOf('login', board.address, '--handle', 'json-ada')).toMatchObject([{ handle: 'json-ada' }])
  expect(await linesOf('whoami')).toMatchObject([{ handle: 'json-ada', board: board.address }])
  const [{ event_id }] = (await linesOf('post', 'lobby', 'What is the time?')) as [{ event_id: string }]
  await linesOf('reply', event_id, 'Half past ten.')
  const [edited] = (await linesOf('edit', event_id, 'What time is it?')) as [{ event_id: string }]
  await linesOf('keygen', 'other.json')
  await linesOf('vote', edited.event_id, 'up', '--key', 'other.json')
  expect(await linesOf('attach', 'lobby', 'notes.txt')).toMatchObject([{ event: { room: 'lobby' } }])
  expect((await linesOf('read', 'lobby')).length).toBeGreaterThan(2)
  expect(await linesOf('thread', edited.event_id)).toContainEqual(expect.objectContaining({ text: 'Half past ten.' }))
  expect(await linesOf('threads')).toContainEqual(expect.objectContaining({ room: 'lobby' }))
  await linesOf('call', 'room.follow', 'room=lobby', '--key', 'other.json')
  await linesOf('call', 'post', 'room=lobby', 'text=hello')
  expect((await linesOf('inbox', '--key', 'other.json')).at(-1)).toMatchObject({ follows: [{ room: 'lobby' }] })
  await linesOf('call', 'thread.pin', `event_id=${event_id}`, 'pinned=true')
  // Pinned threads are among the others, and are not listed twice.
  expect((await linesOf('threads', 'lobby')).filter(({ thread }) => thread === event_id)).toHaveLength(1)
  expect(await linesOf('search', 'time')).toContainEqual(expect.objectContaining({ room: 'lobby' }))
  expect(await firstLineOf('tail', 'lobby')).toMatchObject({ room: 'lobby' })
  await linesOf('take-back', edited.event_id, 'asked elsewhere')
  await linesOf('room', 'create', 'den')
  await linesOf('docs', 'create', 'Plan', 'A plan')
  await linesOf('work', 'create', '5', 'Count it', 'Please count it.')
  await linesOf('credit', 'balance')
  await linesOf('moderate', 'log', 'lobby')
  await linesOf('keygen', 'mover.json')
  const moved = await linesOf('identity', 'rotate', 'moved.json', '--key', 'mover.json')
  expect(moved).toMatchObject([{ key_file: 'moved.json', identity: expect.any(String) }])
  const copied = await linesOf('identity', 'export', String(moved[0].identity), 'copy', '--data', directory)
  expect(copied).toMatchObject([{ directory: 'copy', records: 1 }])
  const erasing = ['identity', 'erase', String(moved[0].identity), '--data', directory]
  expect(await linesOf(...erasing, '--dry-run')).toMatchObject([{ dry_run: true, posts: 0 }])
  expect(await linesOf(...erasing)).toMatchObject([{ done: 1, refused: 0 }])
  expect(await linesOf('delegate', 'phone.json')).toMatchObject([{ key_file: 'phone.json', ttl: 28_800 }])
  expect(await linesOf('limits', 'grant', '192.0.2.0/24')).toMatchObject([{ target: '192.0.2.0/24' }])
  expect(await linesOf('limits', 'list')).toContainEqual(expect.objectContaining({ target: '192.0.2.0/24' }))
  expect(await linesOf('limits', 'revoke', '192.0.2.0/24')).toMatchObject([{ revoked: true }])
  expect(await linesOf('tools', 'import', 'tools.jsonl')).toMatchObject([{ rows: 1, applied: 1, bad: [] }])
  expect(await linesOf('tools', 'relay', 'weather-1', '--payee', payee)).toMatchObject([{ payees: [payee] }])
  expect(await linesOf('completion', 'bash')).toMatchObject([{ shell: 'bash' }])
  expect(await linesOf('top', '--every', '1', '--times', '1')).toMatchObject([
    { commands_per_second: expect.any(Number) },
  ])
  expect(await linesOf('version')).toMatchObject([{ version: expect.stringMatching(/^\d+\./) }])
})

test('an empty list prints no line: its note is on standard error', async () => {
  for (const words of ['webhook list', 'receiver list', 'conversation list']) {
    const env = { BROADSIDE_URL: board.address, BROADSIDE_KEY: 'operator.json' }
    const argv = [...words.split(' '), '--json']
    const { code, output, errors } = await runProgram(home, process.execPath, [program, ...argv], { env })
    ran.add(argv[0]!)
    expect([argv, code, output, errors]).toEqual([argv, 0, '', 'Nothing is there.\n'])
  }
})

test('copies: import, export, verify, mirror', async () => {
  expect(await linesOf('import', 'corpus.jsonl')).toMatchObject([{ posted: 3, refused: { count: 0 } }])
  expect(await linesOf('export', '--out', 'all.jsonl')).toMatchObject([{ file: 'all.jsonl', unreadable: 0 }])
  expect((await linesOf('export')).length).toBeGreaterThan(3)
  expect(await linesOf('verify', 'all.jsonl', '--url', board.address)).toMatchObject([{ failures: 0 }])
  expect(await linesOf('mirror', board.address, 'copy')).toMatchObject([{ before: 0, pinned: false }])
})

test('hosts: check-config, serve, follow, backup, restore, restored, fsck, reshard, rekey, clock, log', async () => {
  writeFileSync(join(home, 'settings.json'), '{"BOARD_NAME": "Of the file"}')
  expect(await linesOf('check-config', '--config', 'settings.json')).toContainEqual(
    expect.objectContaining({ name: 'BOARD_NAME', value: 'Of the file', origin: join(home, 'settings.json') }),
  )
  const [backup] = await linesOf('backup', 'backup', '--data', directory, '--with-keys')
  expect(backup).toMatchObject({ has_keys: true, size: expect.any(Number) })
  expect(await linesOf('restore', 'backup', '--data', 'again', '--dry-run')).toMatchObject([{ size: backup.size }])
  expect(await linesOf('restore', 'backup', '--data', 'again')).toMatchObject([{ problems: [] }])
  expect(await linesOf('restored', '--data', 'again')).toMatchObject([{ generation: expect.anything() }])
  expect(await linesOf('fsck', '--data', 'again')).toContainEqual(expect.objectContaining({ damages: 0, refusals: 0 }))
  expect(await linesOf('reshard', '--shards', '3', '--data', 'again', '--dry-run')).toMatchObject([
    { to: 3, records: [expect.any(Number), expect.any(Number), expect.any(Number)], done: false },
  ])
  expect(await linesOf('reshard', '--shards', '3', '--data', 'again')).toMatchObject([{ to: 3, done: true }])
  expect(await linesOf('rekey', '--data', 'again')).toMatchObject([{ lost: false }])
  expect(await linesOf('clock', 'accept', '--data', 'again')).toMatchObject([{ accepted: expect.any(Number) }])
  expect(await linesOf('log', 'rotate', '--data', 'again')).toMatchObject([{ closed: { size: expect.any(Number) } }])
  const served = await firstLineOf('serve', '--data', 'again', '--port', '0')
  expect(served).toEqual({ address: expect.stringMatching(/^http:/) })
  const replicas = Replicas.create({ SHARDS: '1' })
  const leader = await replicas.leader()
  writeFileSync(join(home, 'follow.json'), JSON.stringify(replicas.settings(leader.address)))
  const follow = ['follow', '--config', 'follow.json', '--data', boardDirectory(), '--port', '0']
  const followed = await firstLineOf(...follow)
  expect(followed).toEqual({ address: expect.stringMatching(/^http:/) })
  await leader.stop()
})

test('shows: demo, bench', async () => {
  const shown = await linesOf('demo', 'corpus.jsonl', '--once', '--port', '0')
  expect(shown).toMatchObject([{ corpus: 'corpus.jsonl' }, { posted: 3, tail: { in_order: true } }])
  expect(await linesOf('bench', '--quick', 'frame')).toMatchObject([{ name: 'frame', tables: expect.any(Array) }])
})

test('no command of the table was left out', () => {
  // These need a stream: take-over.test.ts runs them with --json.
  const elsewhere = new Set(['lead', 'hand-over'])
  expect([...commandNames].filter((name) => !ran.has(name) && !elsewhere.has(name))).toEqual([])
})

test.each(randomPart([...commandNames, ...verbWords]))('%s --help lists --json', async (words) => {
  const terminal = capturedTerminal()
  expect(await main([...words.split(' '), '--help'], terminal)).toBe(0)
  expect(terminal.said.out).toMatch(/^ {2}--json {2,}print JSON, one object per line/m)
})

test('a refusal by the board with --json is one JSON object on standard error, as the board gave it', async () => {
  for (const [argv, facts] of [
    [['read', 'no-such-room-anywhere'], { code: 'not_found', field: 'room' }],
    [
      ['call', 'room.create', 'room=No Room', '--key', join(home, 'operator.json')],
      { code: 'invalid_field', field: 'room' },
    ],
    [['call', 'thread.get', `event_id=${'0'.repeat(32)}`], { code: 'not_found', field: 'event_id' }],
  ] as const) {
    const terminal = capturedTerminal()
    expect([argv, await main([...argv, '--json', '--url', board.address], terminal)]).toEqual([argv, 1])
    const [refused, ...more] = objectsIn(argv, terminal.said.err)
    expect([refused, more]).toEqual([{ ...facts, message: expect.any(String) }, []])
    expect([argv, terminal.said.out, refused!.message]).toEqual([argv, '', expect.not.stringContaining('refused')])
  }
})

test('a command that fails with --json says so only on standard error', async () => {
  for (const argv of [
    ['read', 'no-such-room-anywhere'],
    ['read'],
    ['fsck', '--data', 'nothing'],
    ['verify', 'notes.txt'],
  ]) {
    const terminal = capturedTerminal()
    expect(await main([...argv, '--json', ...(argv[0] === 'read' ? ['--url', board.address] : [])], terminal)).not.toBe(
      0,
    )
    expect([argv, terminal.said.out]).toEqual([argv, ''])
    expect(terminal.said.err).not.toBe('')
  }
})
