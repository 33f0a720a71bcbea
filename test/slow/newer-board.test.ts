/** A data directory written by a newer release: every program of this release refuses it by name, and changes nothing in it. */
import { hash } from 'node:crypto'
import { appendFileSync, cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { beforeAll, expect, test, vi } from 'vitest'
import { type BoardRecord, type FactRecord, RecordType, toFrame } from '../../actors/records/record.ts'
import { release } from '../../src/release.ts'
import { openDatabase } from '../../src/sqlite.ts'
import { DeliveryStore, storeFile } from '../../src/webhooks/store.ts'
import { Journal, type NewFrame } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { program } from '../support/program.ts'
import { type ProgramResult, runProgram } from '../support/run-program.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const made = boardDirectory()

beforeAll(async () => {
  const board = await startBoard({ directory: made })
  const client = await Client.of(board)
  await client.post(person('ada'), { text: 'one post' })
  client.close()
  await board.stop()
})

type Facts = Readonly<Record<string, unknown>>

/** A copy of the board, with facts as a program wrote them. */
function copyWith(change: (facts: Facts) => Facts): string {
  const directory = boardDirectory()
  cpSync(made, directory, { recursive: true })
  const file = join(directory, 'board.json')
  const { check, ...kept } = JSON.parse(readFileSync(file, 'utf8')) as Facts
  const facts = change(kept)
  writeFileSync(file, JSON.stringify({ ...facts, check: hash('sha256', JSON.stringify(facts)).slice(0, 16) }))
  return directory
}

/** Everything except the lock and derived files. */
function contents(directory: string): ReadonlyMap<string, string> {
  const files = [...filesUnder(directory)].filter(([name]) => !/LOCK|snapshots|search|tools|\.idx$|nodes/.test(name))
  return new Map(files.map(([name, bytes]) => [name, hash('sha256', bytes)]))
}

const broadside = (...args: string[]): Promise<ProgramResult> =>
  runProgram(scratchDirectory(), process.execPath, [program, ...args])

test('every command refuses a directory that a newer release has opened, and names that release', async () => {
  const directory = copyWith((facts) => ({ ...facts, written_by: '99.1.0' }))
  const before = contents(directory)
  const sentence =
    /was written by Broadside 99\.1\.0, in format 1\. This is Broadside [\d.]+, .*Install 99\.1\.0 or newer/
  expect((await expectStartRefused({ directory })).output).toMatch(sentence)
  for (const command of [
    ['fsck'],
    ['fsck', '--repair'],
    ['restored'],
    ['restored', '--lost', '--yes'],
    ['log', 'rotate'],
    ['backup', join(scratchDirectory(), 'backup')],
  ]) {
    const { code, output, errors } = await broadside(...command, '--data', directory)
    expect
      .soft({ command, code, output: output + errors })
      .toMatchObject({ code: 1, output: expect.stringMatching(sentence) })
  }
  expect(contents(directory)).toEqual(before)
})

test('another format is refused with the release that wrote it, if that is recorded', async () => {
  const named = copyWith((facts) => ({ ...facts, format: 3, written_by: '2.0.0', more: 'of that release' }))
  expect((await expectStartRefused({ directory: named })).output).toMatch(
    /written by Broadside 2\.0\.0, in format 3\. .*Install 2\.0\.0 or newer, or restore a backup from before the upgrade/,
  )
  const unnamed = copyWith(({ written_by, ...facts }) => ({ ...facts, format: 3 }))
  expect((await expectStartRefused({ directory: unnamed })).output).toMatch(
    /written by a newer release of Broadside, in format 3\. .*Install the release that wrote it/,
  )
})

test('a release that differs only in its last number is not newer, and an older one is replaced by this', async () => {
  const [major, minor] = release.split('.')
  for (const written_by of [`${major}.${minor}.999`, '0.9.0', undefined]) {
    const directory = copyWith((facts) => ({ ...facts, written_by }))
    const board = await startBoard({ directory })
    await board.stop()
    expect(JSON.parse(readFileSync(join(directory, 'board.json'), 'utf8'))).toMatchObject({ written_by: release })
  }
})

const segmentOf = (directory: string, part: string) =>
  join(directory, part, readdirSync(join(directory, part)).find((name) => name.endsWith('.log'))!)

/** As a newer release would: into the journal, after what is there. */
function append(directory: string, part: string, frame: NewFrame): void {
  const journal = Journal.open({
    disk: machineDisk,
    directory: join(directory, part),
    segmentBytesMax: 64 * 1024 * 1024,
  })
  journal.append([frame])
  journal.close()
}

const unknownAct: FactRecord = {
  type: RecordType.act,
  room: 'lobby',
  at: 1_790_000_000,
  author: Buffer.alloc(32, 7),
  op: 'thread.fold',
  facts: { folded: true },
}

test.each<[what: string, change: (directory: string) => void, sentence: RegExp]>([
  [
    'a segment of a later version',
    (directory) => {
      const file = segmentOf(directory, 'shard-00')
      const bytes = readFileSync(file)
      bytes[3] = 4
      bytes.writeUInt32LE(crc32(bytes.subarray(0, 60)), 60)
      writeFileSync(file, bytes)
    },
    /shard-00\/0+1\.log is a segment of version 4, which this release does not support/,
  ],
  [
    'an act of a name that is not known',
    (directory) => append(directory, 'shard-00', toFrame(unknownAct, Buffer.alloc(16, 1), true, [])),
    /frame \d+ of shard 0 is an act thread\.fold, which this release does not support/,
  ],
  [
    'a record of another type',
    (directory) =>
      append(directory, 'shard-00', {
        ...toFrame(unknownAct as BoardRecord, Buffer.alloc(16, 1), true, []),
        type: 9,
      }),
    /frame \d+ of shard 0 is a record of type 9, which this release does not support/,
  ],
  [
    'a frame of the log of another type',
    (directory) => append(directory, 'log', { type: 7, flags: 0, payload: Buffer.alloc(100) }),
    /the log has a frame of type 7, which this release does not support/,
  ],
  [
    'a key of a sign-in of another form',
    (directory) => appendFileSync(join(directory, 'sign-in.keys'), Buffer.from('BSK2'.padEnd(64, '\0'))),
    /sign-in\.keys has a key of form 32, which this release does not support/,
  ],
])('%s is refused as the work of a newer release, and not as damage', async (_what, change, sentence) => {
  const directory = copyWith((facts) => facts)
  change(directory)
  const before = contents(directory)
  const { code, output: words } = await expectStartRefused({ directory })
  expect(words).toMatch(sentence)
  expect(words).toMatch(
    /A newer release of Broadside wrote it, and nothing was changed\. Install that release or a newer one/,
  )
  expect(words).not.toMatch(/damaged|bug in Broadside/)
  expect(code).toBe(1)
  expect(contents(directory)).toEqual(before)
})

test('the log signs nothing if a shard refuses the start', async () => {
  const directory = boardDirectory()
  const env = { SHARDS: '2', PLACEMENT: 'threads' }
  await (await startBoard({ directory, env })).stop()
  const { at } = unknownAct
  const unsigned: BoardRecord = { type: RecordType.roomCreated, room: 'garden', at, visibility: 'public' }
  append(directory, 'shard-00', toFrame(unsigned, Buffer.alloc(16, 2), true, []))
  append(directory, 'shard-01', toFrame(unknownAct, Buffer.alloc(16, 1), true, []))
  const before = contents(directory)
  expect((await expectStartRefused({ directory, env })).output).toMatch(/frame \d+ of shard 1 is an act thread\.fold/)
  expect(contents(directory)).toEqual(before)
})

test('webhook positions of a newer release are neither read nor set aside', () => {
  const directory = scratchDirectory()
  DeliveryStore.open(directory).close()
  const database = openDatabase(storeFile(directory))
  database.exec('PRAGMA user_version = 2')
  database.close()
  expect(() => DeliveryStore.open(directory)).toThrow('has version 2, which this release does not support')
  expect([...filesUnder(directory)].map(([name]) => name).join()).not.toContain('damaged')
})

test('a backup of a newer release is refused by name', async () => {
  const backup = join(scratchDirectory(), 'backup')
  expect(await broadside('backup', backup, '--data', made)).toMatchObject({ code: 0 })
  const file = join(backup, 'backup.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Facts
  writeFileSync(file, JSON.stringify({ ...manifest, broadside_backup: 2, release: '3.1.0' }))
  const { code, errors } = await broadside('restore', backup, '--data', join(scratchDirectory(), 'new'), '--dry-run')
  expect(code).toBe(1)
  expect(errors).toMatch(/is a backup in format 2, written by Broadside 3\.1\.0\. .*Install 3\.1\.0 or newer/)
})
