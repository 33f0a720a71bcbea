/** The commands that are operations, as programs in their own directory: keys, boards, output for people and for programs. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Operation } from '../../actors/kernel/operation.ts'
import { operations } from '../../actors/operations.ts'
import { createKey } from '../../src/client/broadside.ts'
import { shapeOf } from '../../src/format/data-fault.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const folder = mkdtempSync(join(tmpdir(), 'broadside-verbs-'))
let board: Board

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
})
afterAll(async () => {
  await board.kill()
  rmSync(folder, { recursive: true, force: true })
})

/** A person with an empty home directory. */
function newcomer(name: string) {
  const home = join(folder, name)
  mkdirSync(home)
  const run = async (argv: readonly string[], more: { input?: string; env?: Record<string, string> } = {}) => {
    const { code, output: out, errors: err } = await runProgram(home, process.execPath, [program, ...argv], more)
    return { code, out, err }
  }
  const ran = async (...argv: string[]) => {
    const { code, out, err } = await run(argv)
    expect([argv, code, code === 0 ? '' : err]).toEqual([argv, 0, ''])
    return out
  }
  /** One object a line, and nothing else. */
  const json = async (...argv: string[]) => {
    const out = await ran(...argv, '--json')
    return out
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, never>)
  }
  return { home, run, ran, json }
}

test('from nothing to a signed post takes two commands; the key and the board are remembered', async () => {
  const ada = newcomer('ada')
  const shown = await ada.ran('login', board.address, '--handle', 'verb-ada')
  expect(shown).toMatch(/^handle +@verb-ada$/m)
  expect(await ada.ran('post', 'lobby', 'Hello from a shell.')).toMatch(/^event +[0-9a-f]{32}\nin log +leaf \d+/)
  const file = join(ada.home, '.config', 'broadside', 'key.json')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const { id } = JSON.parse(readFileSync(file, 'utf8')) as { id: string }
  expect(await ada.json('whoami')).toMatchObject([{ handle: 'verb-ada', identity: id, board: board.address }])
  // Again: the same key.
  await ada.ran('login')
  expect(await ada.json('whoami')).toMatchObject([{ identity: id }])
  // An address that is no board creates no key and is not remembered.
  const lost = newcomer('lost')
  const nowhere = await lost.run(['login', 'http://127.0.0.1:9'])
  expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringContaining('gave no answer')])
  const unsigned = await lost.run(['whoami'], { env: { BROADSIDE_URL: board.address } })
  expect([unsigned.code, unsigned.err]).toEqual([1, expect.stringContaining('broadside login')])
})

test('people reply, edit, vote, redact, attach, read and search', async () => {
  const [ben, cleo] = [newcomer('ben'), newcomer('cleo')]
  await ben.ran('login', board.address, '--handle', 'verb-ben')
  await cleo.ran('login', board.address, '--handle', 'verb-cleo')
  const [{ event_id }] = (await ben.json('post', 'verbs', 'What is the time?')) as unknown as [{ event_id: string }]
  const [reply] = (await cleo.json('reply', event_id, 'Half past ten.')) as unknown as [{ event_id: string }]
  const piped = await cleo.run(['edit', reply.event_id, '-'], { input: 'Half past eleven.\n' })
  expect([piped.code, piped.out]).toEqual([0, expect.stringContaining('Half past eleven.')])
  expect(await cleo.json('vote', event_id, 'up')).toMatchObject([{ votes: { up: 1 } }])
  const thread = await ben.ran('thread', event_id)
  expect(thread).toMatch(/verbs\/main @verb-cleo \S+ to @verb-ben "What is the time\?"\n {2}Half past eleven\.\n/)
  // Nothing that has a name or a quote is shown in hex.
  expect(thread.match(/[0-9a-f]{32,}/g)).toHaveLength(2)
  expect(await ben.ran('search', 'eleven room:verbs')).toContain('Half past eleven.')
  writeFileSync(join(ben.home, 'notes.txt'), 'a file')
  const [posted] = (await ben.json('attach', 'verbs', 'notes.txt')) as unknown as [
    { event: { attachments: { filename: string; media_type: string }[] } },
  ]
  expect(posted.event.attachments).toMatchObject([{ filename: 'notes.txt', media_type: 'text/plain' }])
  expect(await ben.ran('take-back', event_id, 'asked elsewhere')).toContain('(removed: asked elsewhere)')
  const refused = await ben.run(['vote', reply.event_id, 'down', '--key', 'nothing.json'])
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('There is no key file nothing.json')])
})

test('rooms, documents and works have their commands; handles are looked up where an id is signed', async () => {
  const [dora, emil] = [newcomer('dora'), newcomer('emil')]
  await dora.ran('login', board.address, '--handle', 'verb-dora')
  await emil.ran('login', board.address, '--handle', 'verb-emil')
  await emil.ran('post', 'verbs', 'Here I am.')
  await dora.ran('room', 'create', 'den', '--visibility', 'private')
  await dora.ran('room', 'member', 'add', 'den', '@verb-emil')
  expect((await dora.json('room', 'members', 'den')).length).toBe(2)
  expect(await dora.ran('room', 'policy', 'den', '--write', 'owner')).toContain('write: owner')
  expect(await dora.ran('room', 'policy', 'den')).toContain('write: owner')
  // A boolean option is true without a value.
  expect(await dora.ran('room', 'policy', 'den', '--closed')).toContain('closed: true')
  expect(await dora.ran('room', 'policy', 'den', '--closed', 'false')).toContain('closed: false')
  const suspended = await dora.run(['moderate', 'suspend', '@verb-emil', '--hide-posts', 'floods'])
  expect([suspended.code, suspended.err]).toEqual([1, expect.stringContaining('only an operator of this board')])
  await dora.ran('moderate', 'ban', 'den', '@verb-emil', 'insults others', '--ttl', '3600')
  expect(await dora.ran('moderate', 'bans', 'den')).toMatch(
    /handle: verb-emil[\s\S]*reason: insults others[\s\S]*expires at: 20/,
  )
  expect(await dora.ran('moderate', 'unban', 'den', '@verb-emil')).toContain('banned: false')
  await dora.ran('room', 'member', 'add', 'den', '@verb-emil')
  expect(await dora.ran('moderate', 'grant', 'den', '@verb-emil')).toContain('moderator')
  writeFileSync(join(dora.home, 'plan.md'), '# Plan')
  const [{ doc }] = (await dora.json('call', 'docs.create', 'title=Plan', 'text=@plan.md')) as unknown as [
    { doc: { id: string } },
  ]
  const written = ['docs', 'write', doc.id, '1', '# A better plan']
  expect(await dora.json(...written)).toMatchObject([{ doc: { version: 2 } }])
  const literal = (await dora.json('call', 'post', 'room=den', 'text=@@emil, look')) as unknown as {
    event: { text: string }
  }[]
  expect(literal).toMatchObject([{ event: { text: '@emil, look' } }])
  const missing = await dora.run(['call', 'docs.create', 'title=Plan', 'text=@no-such-file.md'])
  expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('write @@')])
  // A first public post is granted credits.
  await dora.ran('post', 'verbs', 'Here I am too.')
  const [made] = (await dora.json('work', 'create', '20', 'Count it', 'Please count it.')) as unknown as [
    { work: { id: string } },
  ]
  expect(await emil.json('work', 'claim', made.work.id)).toMatchObject([{ work: { state: 'claimed', fence: 1 } }])
  expect(await emil.ran('work', 'list')).toContain('title: Count it')
  expect(await emil.ran('tools', 'call', 'broadside:hash', '--body', '{"text":"x"}')).toContain('sha256')
})

test('an operation whose settings are all optional needs none of them', async () => {
  const gert = newcomer('gert')
  await gert.ran('login', board.address, '--handle', 'verb-gert')
  await gert.ran('room', 'create', 'gerts')
  const inner = ({ data }: Operation) => (shapeOf(data).required ?? []).filter((name) => name !== 'schema')
  const bare = operations.filter(
    (each: Operation) => each.data !== undefined && each.required.includes('data') && inner(each).length === 0,
  )
  expect(bare.map(({ name }) => name)).toContain('receiver.create')
  for (const { name, required } of bare) {
    const given = { room: 'gerts', target: board.address, ttl: '60' } as Readonly<Record<string, string>>
    const own = required.filter((field) => field !== 'data').map((field) => `${field}=${given[field]}`)
    const { err } = await gert.run(['call', name, ...own])
    expect([name, err]).not.toEqual([name, expect.stringContaining('needs data')])
  }
  expect(await gert.json('receiver', 'create')).toMatchObject([{ receiver: { url: expect.any(String) } }])
  const [profile] = await gert.json('call', 'identity.profile.set')
  expect(profile).toMatchObject({ receipt: {} })
})

test('colors are for terminals: a pipe has none, and what strangers write moves no cursor', async () => {
  const fred = newcomer('fred')
  await fred.ran('login', board.address)
  await fred.ran('call', 'post', 'room=colors', 'text=red \u001b[31m')
  for (const out of [await fred.ran('read', 'colors'), await fred.ran('search', 'room:colors red')]) {
    expect(out).not.toContain('\u001b')
    expect(out).toContain('\\u{1b}[31m')
  }
})

test('a sealed key file opens with BROADSIDE_PASSPHRASE', async () => {
  const gina = newcomer('gina')
  const sealed = await (await createKey()).toSealedFile('three small words')
  writeFileSync(join(gina.home, 'sealed.json'), sealed, { mode: 0o600 })
  const env = { BROADSIDE_URL: board.address, BROADSIDE_KEY: 'sealed.json' }
  const closed = await gina.run(['post', 'lobby', 'x'], { env })
  expect([closed.code, closed.err]).toEqual([1, expect.stringContaining('Set BROADSIDE_PASSPHRASE')])
  const open = { ...env, BROADSIDE_PASSPHRASE: 'three small words' }
  expect((await gina.run(['post', 'lobby', 'sealed'], { env: open })).code).toBe(0)
  expect((await gina.run(['whoami'], { env: open })).out).toContain((JSON.parse(sealed) as { id: string }).id)
})
