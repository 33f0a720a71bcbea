/** Backups in various setups: into a tar file, through symbolic links, of a stopped board, onto a full disk, and killed midway. */
import { spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { lockDirectory } from '../../storage/lock.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { findDamage } from '../support/find-damage.ts'
import { program } from '../support/program.ts'
import { type ProgramResult, runProgram } from '../support/run-program.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const folder = mkdtempSync(join(tmpdir(), 'broadside-backups-'))
const directory = boardDirectory()
const keys = join(directory, 'keys')
const env = { SEGMENT_BYTES: '65536', COMPACT_SECONDS: '1' }
let board: Board
let client: Client
let ids: string[]

const run = (...args: string[]): Promise<ProgramResult> => runProgram('/', process.execPath, [program, ...args])
const backUp = (target: string, source = directory): Promise<ProgramResult> => run('backup', target, '--data', source)
const place = (name: string): string => join(folder, name)

async function start(): Promise<void> {
  board = await startBoard({ directory, env })
  client = await Client.of(board)
}

/** The restored board has every post. */
async function expectWhole(backup: string, name: string): Promise<void> {
  const target = place(name)
  const restored = await run('restore', backup, '--data', target, '--keys', keys)
  expect(restored).toMatchObject({ code: 0, errors: '' })
  expect(findDamage(target)).toEqual([])
  if (existsSync(join(target, 'restored.json')))
    expect(await run('restored', '--data', target)).toMatchObject({ code: 0, errors: '' })
  const found = await startBoard({ directory: target, env })
  const reader = await Client.of(found)
  for (const id of ids) expect((await reader.get(`/api/events/${id}`)).status).toBe(200)
  reader.close()
  await found.stop()
  rmSync(target, { recursive: true })
  rmSync(`${target}.mark`, { force: true })
}

beforeAll(async () => {
  await start()
  ids = []
  const { id } = blobOf(
    await client.command(ada, putFields(Buffer.alloc(3_000, 'x'), { room: 'lobby', filename: 'x.bin' })),
  )
  for (let n = 0; n < 120; n++) {
    const more = n === 5 ? { attachments: [id] } : {}
    const answer = await client.post(ada, { room: 'lobby', text: `${n} ${'text '.repeat(200)}`, ...more })
    expect(answer.status).toBe(200)
    ids.push(answer.data.event_id!)
  }
})
afterAll(async () => {
  client.close()
  await board.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('the next commands that a restoration names have its settings file, which may name the mark', async () => {
  const [file, settings] = [place('settings.tar'), place('settings.json')]
  expect(await backUp(file)).toMatchObject({ code: 0 })
  writeFileSync(settings, JSON.stringify({ MARK_FILE: place('old.mark') }))
  const { code, output } = await run('restore', file, '--data', place('named'), '--keys', keys, '--config', settings)
  expect([code, output]).toEqual([
    0,
    expect.stringContaining(`broadside restored --config ${settings} --data ${place('named')} `),
  ])
  for (const each of [file, settings, place('named')]) rmSync(each, { recursive: true })
})

test('a backup into a tar file works, also over an older one, and restores; a dry run writes nothing', async () => {
  const file = place('board.tar')
  for (let n = 0; n < 2; n++) expect(await backUp(file)).toMatchObject({ code: 0, errors: '' })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['board.tar'])
  const dry = await run('restore', file, '--data', place('dry'), '--keys', keys, '--dry-run')
  expect(dry).toMatchObject({ code: 0, errors: '' })
  expect(dry.output).toContain('Nothing was written.')
  expect(dry.output).toContain(`${file} was taken at`)
  expect(readdirSync(folder)).toEqual(['board.tar'])
  await expectWhole(file, 'from-tar')
  const bytes = readFileSync(file)
  writeFileSync(file, bytes.subarray(0, bytes.length >> 1))
  const short = await run('restore', file, '--data', place('short'), '--keys', keys)
  expect([short.code, short.errors]).toEqual([1, expect.stringContaining('cannot be unpacked')])
  expect(readdirSync(folder)).toEqual(['board.tar'])
})

test('keys of another board or time are refused before anything is written, and a dry run checks them too', async () => {
  const backup = place('for-keys')
  expect(await backUp(backup)).toMatchObject({ code: 0 })
  for (const name of readdirSync(keys)) {
    const wrong = place('wrong-keys')
    cpSync(keys, wrong, { recursive: true })
    writeFileSync(join(wrong, name), `${'5a'.repeat(32)}\n`)
    for (const more of [[], ['--dry-run']]) {
      const { code, errors } = await run('restore', backup, '--data', place('new'), '--keys', wrong, ...more)
      expect([code, errors]).toEqual([1, expect.stringContaining(`${join(wrong, name)} is not the key of the board`)])
      expect(errors).toMatch(/from the time of the backup.*\.\n$/)
    }
    expect(existsSync(place('new'))).toBe(false)
    rmSync(wrong, { recursive: true })
  }
})

test('a restoration without keys is complete but for them, and a script sees that the board cannot start', async () => {
  const backup = place('for-no-keys')
  expect(await backUp(backup)).toMatchObject({ code: 0 })
  expect((await run('restore', backup, '--data', place('keyless'), '--dry-run')).output).toContain(
    'give them with --keys',
  )
  const { code, output } = await run('restore', backup, '--data', place('keyless'))
  expect([code, output]).toEqual([1, expect.stringContaining('The board will not start until this is fixed.')])
  cpSync(keys, join(place('keyless'), 'keys'), { recursive: true })
  expect(findDamage(place('keyless'))).toEqual([])
})

test('a backup follows links: of the data directory, of a part of it, and of the target', async () => {
  const linked = place('linked')
  symlinkSync(directory, linked)
  const disk = place('other-disk')
  mkdirSync(disk)
  symlinkSync(disk, place('latest'))
  for (let n = 0; n < 2; n++) expect(await backUp(place('latest'), linked)).toMatchObject({ code: 0, errors: '' })
  // It is where the link leads, and the link is still a link.
  expect(existsSync(join(disk, 'backup.json'))).toBe(true)
  expect(readdirSync(folder).filter((name) => /^(latest|other-disk)/.test(name))).toEqual(['latest', 'other-disk'])
  await expectWhole(place('latest'), 'from-link')
  symlinkSync(directory, place('inside'))
  const inside = await backUp(join(place('inside'), 'backup'))
  expect([inside.code, inside.errors]).toEqual([2, expect.stringContaining('is inside the data directory')])
  expect(existsSync(join(directory, 'backup'))).toBe(false)
})

test('a restored backup of a stopped board with attachments elsewhere starts without further steps', async () => {
  client.close()
  await board.stop()
  renameSync(join(directory, 'blobs'), place('blobs'))
  symlinkSync(place('blobs'), join(directory, 'blobs'))
  expect(await backUp(place('stopped'))).toMatchObject({ code: 0, errors: '' })
  expect([...filesUnder(join(place('stopped'), 'blobs'))]).toHaveLength(1)
  await expectWhole(place('stopped'), 'from-stopped')
  await start()
})

test('a second backup links what did not change; a text redacted since is not in it', async () => {
  const target = place('again')
  expect(await backUp(target)).toMatchObject({ code: 0 })
  const [gone] = ids.splice(60, 1)
  const redaction = { operation: 'event.redact', event_id: gone!, reason: 'by mistake' }
  expect((await client.command(ada, redaction)).status).toBe(200)
  const words = Buffer.from(`60 ${'text '.repeat(3)}`)
  const holds = (path: string): boolean =>
    [...filesUnder(path)].some(([name, bytes]) => name.endsWith('.log') && bytes.includes(words))
  expect(holds(target)).toBe(true)
  await vi.waitUntil(() => !holds(join(directory, 'shard-00')), { timeout: 60_000, interval: 200 })
  const { code, output } = await backUp(target)
  expect(code).toBe(0)
  expect(output).toMatch(/[1-9][\d,]* linked/)
  expect(holds(target)).toBe(false)
  await expectWhole(target, 'from-again')
})

test('a backup killed midway leaves the last one intact, and the next one completes', async () => {
  const target = place('killed')
  expect(await backUp(target)).toMatchObject({ code: 0 })
  const writtenAt = () => statSync(join(target, 'backup.json'), { bigint: true }).mtimeNs
  const before = writtenAt()
  for (const delay of [0, 5, 20, 60]) {
    const child = spawn(process.execPath, [program, 'backup', target, '--data', directory], { stdio: 'ignore' })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    await vi.waitUntil(() => existsSync(`${target}.unfinished`) || child.exitCode !== null, {
      timeout: 60_000,
      interval: 1,
    })
    await new Promise((resolve) => setTimeout(resolve, delay))
    child.kill('SIGKILL')
    await ended
    const whole = [target, `${target}.replaced`].filter((path) => existsSync(join(path, 'backup.json')))
    expect(whole.length).toBeGreaterThan(0)
  }
  expect(await backUp(target)).toMatchObject({ code: 0, errors: '' })
  expect(writtenAt()).toBeGreaterThan(before)
  expect(readdirSync(folder).filter((name) => name.startsWith('killed'))).toEqual(['killed'])
  await expectWhole(target, 'from-killed')
})

test('a backup removes nothing that no backup wrote: neither in the directory of the last one, nor next to it', async () => {
  const target = place('kept')
  expect(await backUp(target)).toMatchObject({ code: 0 })
  for (const end of ['old', 'new']) cpSync(target, `${target}.${end}`, { recursive: true })
  expect(await backUp(target)).toMatchObject({ code: 0, errors: '' })
  for (const end of ['old', 'new']) expect(existsSync(join(`${target}.${end}`, 'backup.json'))).toBe(true)
  cpSync(keys, join(target, 'keys'), { recursive: true })
  const { code, errors } = await backUp(target)
  expect([code, errors]).toEqual([1, expect.stringContaining(`Move it out of ${target}, or name another directory.`)])
  expect(readdirSync(join(target, 'keys'))).toEqual(readdirSync(keys))
  const within = await run('restore', target, '--data', join(target, 'board'), '--keys', keys)
  expect([within.code, within.errors]).toEqual([2, expect.stringContaining('is inside the backup')])
  rmSync(join(target, 'keys'), { recursive: true })
  expect(await backUp(target)).toMatchObject({ code: 0, errors: '' })
})

test.each(['keyed', 'keyed.tar'])('a backup without keys does not replace one with keys: %s', async (name) => {
  const target = place(name)
  const withKeys = () => run('backup', target, '--data', directory, '--with-keys')
  expect(await withKeys()).toMatchObject({ code: 0, errors: '' })
  const refused = await backUp(target)
  expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('has the keys of the board') })
  expect(await run('restore', target, '--data', place('with-keys'))).toMatchObject({ code: 0, errors: '' })
  expect(await withKeys()).toMatchObject({ code: 0, errors: '' })
  renameSync(target.endsWith('.tar') ? target : join(target, 'keys'), place('keys-elsewhere'))
  expect(await backUp(target)).toMatchObject({ code: 0, errors: '' })
  for (const each of [target, place('with-keys'), place('keys-elsewhere')]) rmSync(each, { recursive: true })
})

test.each(['busy', 'busy.tar'])(
  '%s: while a backup is not complete, another one to the same place is refused',
  async (name) => {
    const target = place(name)
    expect(await backUp(target)).toMatchObject({ code: 0 })
    const unfinished = `${target}.unfinished`
    mkdirSync(unfinished)
    const lock = await lockDirectory(unfinished)
    const before = readdirSync(unfinished)
    const { code, errors } = await backUp(target)
    expect([code, errors]).toEqual([1, expect.stringContaining(`not complete yet (process ${process.pid})`)])
    expect(readdirSync(unfinished)).toEqual(before)
    lock.release()
    expect(await backUp(target)).toMatchObject({ code: 0, errors: '' })
    expect(existsSync(unfinished)).toBe(false)
    await expectWhole(target, `from-${name}`)
  },
)

const missing = missingProgram('mount') ?? (process.getuid?.() === 0 ? undefined : 'mounting a small disk needs root')

describe.skipIf(skipWithout(missing))(`onto a disk that is too small${skipNote(missing)}`, () => {
  const mount = boardDirectory()
  beforeAll(() => {
    const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', mount], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(`a small disk cannot be mounted: ${stderr}`)
  })
  afterAll(() => {
    spawnSync('umount', ['-l', mount])
  })

  test.each(['backup', 'backup.tar'])('%s: it reports the full disk, and leaves no files behind', async (name) => {
    const { code, errors } = await backUp(join(mount, name))
    expect([code, errors]).toEqual([1, expect.stringMatching(/disk .*(is )?full|no room/i)])
    expect(errors).not.toContain('bug')
    expect(readdirSync(mount)).toEqual([])
  })

  test('restore: it reports the full disk, and the unfinished directory does not start', async () => {
    const backup = place('large')
    expect(await backUp(backup)).toMatchObject({ code: 0 })
    const target = join(mount, 'board')
    const { code, errors } = await run('restore', backup, '--data', target, '--keys', keys)
    expect([code, errors]).toEqual([1, expect.stringMatching(/disk .*(is )?full|no room/i)])
    const again = await run('restore', backup, '--data', target, '--keys', keys)
    expect([again.code, again.errors]).toEqual([1, expect.stringContaining('an interrupted restore left it')])
  })
})
