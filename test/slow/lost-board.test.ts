/**
 * A board is lost after its backup, and the backup is restored: everything before it is there, the new log says what is lost, and content
 * redacted since is redacted again, from an export of the lost board.
 */

import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { closedLogs } from '../../actors/log/frame.ts'
import { previousOf } from '../../actors/log/rotation.ts'
import { main } from '../../src/cli/main.ts'
import { restoreLost } from '../../src/cli/restored-lost.ts'
import { verifyExport } from '../../src/client/broadside.ts'
import { readConfig } from '../../src/config.ts'
import { machine } from '../../src/platform.ts'
import type { Disk } from '../../storage/disk.ts'
import { JournalReader } from '../../storage/journal.ts'
import { JournalEnd } from '../../storage/journal-copy.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person, type SignedCommand } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { findDamage } from '../support/find-damage.ts'
import { diskUntil } from '../support/interrupted-disk.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { runPython } from '../support/run-python.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = missingProgram('python3')

type Said = { readonly code: number; readonly out: string; readonly err: string }

const [ada, bea, helper, late] = ['ada', 'bea', 'a helper', 'bea, later'].map(person)
const folder = mkdtempSync(join(tmpdir(), 'broadside-lost-'))
const source = boardDirectory()
const target = join(folder, 'board')
const [backup, mirror, behind, exported, declared] = ['backup', 'mirror', 'behind', 'export.jsonl', 'declared'].map(
  (name) => join(folder, name),
) as [string, string, string, string, string]
/** Trial copies of the restored directory, made before it was declared lost. */
const tried = join(folder, 'tried')
const acts = join(folder, 'acts.json')
let board: Board
let client: Client
/** Size of the log when the backup was taken, and when the board was lost. */
let atBackup: number
let atLoss: number
let oldVkey: string
let kept: string[]
let takenBack: string
let lostPost: string
let old: SignedCommand
let refused: string
let asked: Said
let said: Said

async function run(...argv: string[]): Promise<Said> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

async function start(directory: string): Promise<void> {
  board = await startBoard({ directory, ...(board === undefined ? {} : { port: board.port }) })
  client = await Client.of(board)
}

const size = async (): Promise<number> =>
  Number((await client.get('/api/log/checkpoint')).data.checkpoint!.split('\n')[1])

async function posted(text: string): Promise<string> {
  const { status, data } = await client.post(ada!, { room: 'lost', text })
  expect(status).toBe(200)
  return data.event_id!
}

beforeAll(async () => {
  await start(source)
  oldVkey = (await client.get('/log/vkey')).text.trim()
  kept = [await posted('the first'), await posted('the second')]
  takenBack = await posted('a text that is taken back later')
  await createDelegation(client, ada!, helper!)
  expect((await client.post(helper!, { room: 'lost', text: 'by a delegate' })).status).toBe(200)
  expect((await client.post(bea!, { room: 'lost', text: 'by an old key' })).status).toBe(200)
  await run('mirror', client.address, behind)
  expect(await run('backup', backup, '--data', source)).toMatchObject({ code: 0, err: '' })
  atBackup = await size()
  lostPost = await posted('after the backup')
  old = client.sign(bea!, { operation: 'post', room: 'lost', text: 'by the old key, once more' })
  const { fields, signing } = new World(client, ada!).rotation(bea!, late!)
  expect((await client.command(bea!, { operation: 'identity.rotate', ...fields }, signing)).status).toBe(200)
  const redaction = { operation: 'event.redact', event_id: takenBack, reason: 'my address was in it' }
  expect((await client.command(ada!, redaction)).status).toBe(200)
  atLoss = await size()
  expect(await run('mirror', client.address, mirror)).toMatchObject({ code: 0 })
  writeFileSync(exported, (await client.get('/v1/export')).text)
  const mark = `${source}.mark`
  await vi.waitUntil(() => existsSync(mark) && readFileSync(mark, 'utf8').includes(`\n${atLoss}\n`), patience)
  client.close()
  await board.kill()
  cpSync(join(source, 'keys'), join(folder, 'keys'), { recursive: true })
  cpSync(`${source}.mark`, `${target}.mark`)
  rmSync(source, { recursive: true })
  expect(await run('restore', backup, '--data', target, '--keys', join(folder, 'keys'))).toMatchObject({ code: 0 })
  cpSync(target, declared, { recursive: true })
  refused = (await run('restored', '--data', target)).err + (await expectStartRefused({ directory: target })).output
  asked = await run('restored', '--lost', '--data', target)
  said = await run('restored', '--lost', '--apply-from', exported, '--yes', '--data', target)
  cpSync(join(target, 'lost-acts.json'), acts)
  await start(target)
})
afterAll(async () => {
  client.close()
  await board.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('before it is declared lost the board does not start, and the message names the command', () => {
  expect(refused).toContain(`this log has ${atBackup} entries, but a head of ${atLoss} was signed and published`)
  expect(refused).toContain('run broadside restored --lost')
})

test('without --yes it says what may come back, and changes nothing', () => {
  expect(asked.code).toBe(1)
  expect(asked.out).toContain('redacted texts are readable again')
  expect(asked.err).toBe('Nothing was changed. Add --yes to continue.\n')
})

test('it says which log ends, which begins, and which acts it takes from the copy', async () => {
  expect(said).toMatchObject({ code: 0, err: '' })
  expect(said.out).toContain(`ends at size ${atBackup}. Everything after that is lost.`)
  expect(said.out).toContain('redactions of texts: 1, on the word of the lost log')
  expect(said.out).toContain('moves to other keys: 1, by the signatures of both keys')
  expect(said.out).toContain((await client.get('/log/vkey')).text.trim())
  expect(readdirSync(join(target, 'keys')).filter((name) => name.startsWith('log'))).toEqual([
    expect.stringMatching(/^log-\d{4}b\.key$/),
  ])
  expect(existsSync(join(target, 'lost-acts.json'))).toBe(false)
})

test('everything from before the backup is there, and nothing from after it', async () => {
  for (const id of kept) expect((await client.get(`/api/events/${id}`)).status).toBe(200)
  expect((await client.get(`/api/events/${lostPost}`)).code).toBe('not_found')
})

test('content redacted after the backup stays redacted, and a rotated identity stays rotated', async () => {
  const { data } = await client.get(`/api/events/${takenBack}`)
  expect([data.event?.type, data.event?.text]).toEqual(['tombstone', undefined])
  expect((await client.send(old.body)).code).toBe('key_rotated')
  expect((await client.post(late!, { room: 'lost', text: 'by the new key' })).status).toBe(200)
})

test('a delegation that was made before the backup has ended', async () => {
  expect((await client.post(helper!, { room: 'lost', text: 'once more' })).code).toBe('forbidden')
  const { data } = await client.command(ada!, { operation: 'delegation.list' })
  expect((data as unknown as { delegations: object[] }).delegations).toEqual([
    expect.objectContaining({ ended_by: 'restored' }),
  ])
})

test('the first entry of the new log says what is lost, and so do the history and the page', async () => {
  const first = await client.get('/api/log/leaves?start=0&end=1')
  const entry = Buffer.from((first.data as unknown as { entries: string[] }).entries[0]!, 'base64')
  expect(entry.toString()).toContain(`\nlost after ${atBackup}\n`)
  expect(previousOf(entry)).toMatchObject({ origin: oldVkey.split('+')[0], size: atBackup, isLost: true })
  const { data } = await client.get('/api/log/history')
  const { logs } = data as unknown as { logs: { state: string; lost?: boolean; tree_size: number }[] }
  expect(logs.map(({ state, lost = false, tree_size }) => [state, lost, tree_size]).slice(0, 1)).toEqual([
    ['closed', true, atBackup],
  ])
  expect((await client.get('/log')).text).toContain(`lost after ${atBackup} entries`)
})

test('an export verifies with the new key, and names that key when verified with the old one', async () => {
  const path = join(folder, 'after.jsonl')
  writeFileSync(path, (await client.get('/v1/export')).text)
  const vkey = (await client.get('/log/vkey')).text.trim()
  const byNew = await run('verify', path, '--vkey', vkey)
  expect(byNew).toMatchObject({ code: 0, err: '' })
  expect(byNew.out).toMatch(
    /lost ends +of 1 log: the log that follows names it; nothing that it signed names the one that follows/,
  )
  expect(byNew.out).not.toContain('closed logs')
  const byOld = await run('verify', path, '--vkey', oldVkey)
  expect(byOld).toMatchObject({ code: 3 })
  expect(byOld.err).toContain(`is lost, so it names no next log: pin the key of ${vkey.split('+')[0]}`)
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
  const facts = await verifyExport(lines, { vkey })
  expect(facts.leaves).toBe(atBackup + (await size()))
  expect(runPython('print(json.dumps(verify_export(given["lines"], given["vkey"])["leaves"]))', { lines, vkey })).toBe(
    facts.leaves,
  )
  await expect(verifyExport(lines, { vkey: oldVkey })).rejects.toThrow('whose key is not the one that is pinned')
})

test('a mirror that knew the newer head is told so and keeps it; one that is behind continues to the remaining end', async () => {
  const before = readFileSync(join(mirror, 'checkpoint'), 'utf8')
  const known = await run('mirror', client.address, mirror)
  expect(known.code).toBe(3)
  expect(known.err).toContain(`this log is lost after ${atBackup} entries. This mirror has ${atLoss}: keep it`)
  expect(readFileSync(join(mirror, 'checkpoint'), 'utf8')).toBe(before)
  const older = await run('mirror', client.address, behind)
  expect([older.code, older.err]).toEqual([4, ''])
  expect(older.out).toContain(`this log is lost after ${atBackup} entries`)
})

test('a running board is not declared restored, and the sentence says what is unchanged', async () => {
  expect((await run('restored', '--data', target)).err).toMatch(
    /in use by process \d+; stop that process, or choose another data directory\. No recovery epoch was begun\.\n$/,
  )
})

test('a command to copy at the end of a sentence stays on its own line', async () => {
  restoredAgain()
  const [key] = readdirSync(join(tried, 'keys')).filter((name) => name.startsWith('log'))
  const file = join(tried, 'keys', key!)
  chmodSync(file, 0o644)
  expect((await run('restored', '--data', tried)).err).toContain(
    `Run: chmod 600 ${file}\nNo recovery epoch was begun.\n`,
  )
})

test('it starts again, fsck finds nothing, and a second call changes nothing', async () => {
  const entries = await size()
  client.close()
  await board.stop()
  expect(findDamage(target)).toEqual([])
  const again = await run('restored', '--lost', '--yes', '--data', target)
  expect(again).toMatchObject({ code: 1 })
  expect(again.err).toContain('Nothing indicates that')
  // As after a start that was killed before its last act: nothing is done twice.
  cpSync(acts, join(target, 'lost-acts.json'))
  await start(target)
  expect(existsSync(join(target, 'lost-acts.json'))).toBe(false)
  expect(board.lines.join('\n')).toContain('"event":"lost_acts.done"')
  expect(await size()).toBe(entries)
  expect((await client.get(`/api/events/${kept[0]}`)).status).toBe(200)
})

function restoredAgain(): void {
  rmSync(tried, { recursive: true, force: true })
  cpSync(declared, tried, { recursive: true })
}

/** Everything in such a directory except random numbers and times. */
function stateOf(directory: string): unknown {
  const { generation, check, delegations_ended, ...facts } = JSON.parse(
    readFileSync(join(directory, 'board.json'), 'utf8'),
  ) as Record<string, unknown>
  const end = new JournalEnd(machineDisk, join(directory, 'log'))
  end.advance()
  end.close()
  const journal = JournalReader.open(machineDisk, join(directory, 'log'))
  journal.advance(end.seq)
  const names = (path: string): string[] => readdirSync(join(directory, path)).filter((name) => name !== 'LOCK')
  const closed = closedLogs(journal)
  journal.close()
  return { facts, ended: typeof delegations_ended, closed, own: names('.').sort(), keys: names('keys').sort() }
}

test('a call that is interrupted at any step is completed by the next one, to the same state', async () => {
  const config = readConfig(tried)
  const lose = (disk: Disk): Promise<number> =>
    restoreLost(
      {
        config,
        copy: exported,
        lastLog: undefined,
        vkey: undefined,
        isConfirmed: true,
        platform: { ...machine, disk },
      },
      capturedTerminal(),
    )
  restoredAgain()
  expect(await lose(machineDisk)).toBe(0)
  const wanted = stateOf(tried)
  let cuts = 0
  for (let isCut = true; isCut; cuts++) {
    restoredAgain()
    isCut = await lose(diskUntil(cuts)).then(
      () => false,
      () => true,
    )
    expect([cuts, await lose(machineDisk)]).toEqual([cuts, 0])
    expect([cuts, stateOf(tried)]).toEqual([cuts, wanted])
    expect([cuts, findDamage(tried)]).toEqual([cuts, []])
  }
  expect(cuts).toBeGreaterThan(10)
})

test('a mirror provides what the log names; names that the lost board used are not used again', async () => {
  restoredAgain()
  writeFileSync(join(tried, 'keys', 'log-2999e.key'), `${'0'.repeat(64)}\n`, { mode: 0o600 })
  const here = ['restored', '--lost', '--yes', '--data', tried]
  const found = await run(...here, '--apply-from', mirror)
  expect(found).toMatchObject({ code: 0, err: '' })
  expect(found.out).toContain('redactions of texts: 1, on the word of the lost log')
  expect(found.out).toContain('moves to other keys of which it has only the entry: 1; an export has them')
  expect(readdirSync(join(tried, 'keys')).filter((name) => name.startsWith('log'))).toEqual(['log-2999f.key'])
  restoredAgain()
  expect((await run(...here, '--last-log', '2998b')).out).toContain('/log/2998c begins')
  expect(await run('restored', '--lost', '--last-log', 'c', '--data', tried)).toMatchObject({ code: 2 })
  expect(await run('restored', '--yes', '--data', tried)).toMatchObject({ code: 2 })
})

test('a copy that is changed, truncated or of another log is refused, and nothing is changed', async () => {
  restoredAgain()
  const before = stateOf(tried)
  const text = readFileSync(exported, 'utf8')
  const bad = join(folder, 'bad.jsonl')
  const lose = (copy: string) => run('restored', '--lost', '--yes', '--data', tried, '--apply-from', copy)
  const changes: readonly (readonly [string, string])[] = [
    [text.replace('the first', 'the worst'), 'line '],
    [text.slice(0, text.lastIndexOf('{"type":"end"')), 'it has leaves but no end line'],
    ['{}\n', 'line 1'],
  ]
  for (const [changed, words] of changes) {
    writeFileSync(bad, changed)
    const { code, err } = await lose(bad)
    expect([code, err]).toEqual([3, expect.stringContaining(words)])
  }
  const nowhere = join(folder, 'nowhere')
  expect(await lose(nowhere)).toEqual({
    code: 1,
    out: '',
    err: `There is no copy ${nowhere}. No recovery epoch was begun.\n`,
  })
  const { code, err } = await lose(folder)
  expect([code, err]).toEqual([1, expect.stringMatching(/is not a mirror.*board\. No recovery epoch was begun\.\n$/)])
  expect(err).not.toContain('bug')
  expect(stateOf(tried)).toEqual(before)
})

test.skipIf(skipWithout(missing))(`a reader that knows only the format finds nothing wrong${skipNote(missing)}`, () => {
  const reader = resolve(import.meta.dirname, '../archive/reader.py')
  const { stdout, stderr } = spawnSync('python3', [reader, target], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  expect([(JSON.parse(stdout) as { problems: string[] }).problems, stderr]).toEqual([[], ''])
})
