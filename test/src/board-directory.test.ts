/** Files created once are never recreated: a directory that has lost a part is refused, not completed. */

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { beginEpoch, openBoardDirectory, readFacts, readSecret, UnusableDirectory } from '../../src/board-directory.ts'
import { main } from '../../src/cli/main.ts'
import { machine } from '../../src/platform.ts'
import { replicaKeyIn } from '../../src/replication/replica-key.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { openLog, writePosts } from '../support/posts-on-disk.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { capturedTerminal } from './cli/captured-terminal.ts'

const wanted = { random: machine.random, serviceId: '', publicHost: 'board.example', shards: 2, now: 1_790_000_000 }

test.each([['shard-00'], ['log']])('a lost board.json is not recreated if %s has a journal', (part) => {
  const path = scratchDirectory()
  writePosts({ directory: path, posts: 1 })
  openLog(path).close()
  const other = part === 'log' ? 'shard-00' : 'log'
  rmSync(join(path, other), { recursive: true })
  rmSync(join(path, 'board.json'))
  for (const opened of [
    () => openBoardDirectory({ disk: machineDisk, path, ...wanted }),
    () => readFacts(machineDisk, path),
  ]) {
    expect(opened).toThrow(UnusableDirectory)
    expect(opened).toThrow('board.json is missing, but the journals of a board are there. Restore it from a backup')
  }
  expect(existsSync(join(path, 'board.json'))).toBe(false)
})

test('keys and empty directories left by a crash are used, and so is a directory with other logs in it', () => {
  const path = scratchDirectory()
  openBoardDirectory({ disk: machineDisk, path, ...wanted })
  const key = readFileSync(join(path, 'keys', 'board.key'))
  rmSync(join(path, 'board.json'))
  writeFileSync(join(path, 'log', 'app.log'), 'not ours')
  const made = openBoardDirectory({ disk: machineDisk, path, ...wanted, publicHost: 'other.example' })
  expect(made.facts).toMatchObject({ origin: expect.stringMatching(/^other\.example\/log\/\d{4}a$/), shards: 2 })
  expect(readFileSync(join(path, 'keys', 'board.key'))).toEqual(key)
})

test('an address that cannot name a log leaves no board behind', () => {
  const path = scratchDirectory()
  expect(() => openBoardDirectory({ disk: machineDisk, path, ...wanted, publicHost: 'exa+mple.org' })).toThrow(
    'set BASE_URL',
  )
  expect(readdirSync(path)).toEqual([])
  expect(openBoardDirectory({ disk: machineDisk, path, ...wanted }).facts.origin).toMatch(/^board\.example/)
})

test('a board with any bit of its facts or keys changed is refused, or unchanged', () => {
  const path = scratchDirectory()
  const asMade = openBoardDirectory({ disk: machineDisk, path, ...wanted })
  for (const name of ['board.json', 'keys/board.key', 'keys/cursor.key']) {
    const file = join(path, name)
    const bytes = readFileSync(file)
    let refused = 0
    for (const [at, byte] of bytes.entries()) {
      const changed = Buffer.from(bytes)
      changed[at] = byte ^ (1 << (at % 8))
      writeFileSync(file, changed)
      try {
        expect(openBoardDirectory({ disk: machineDisk, path, ...wanted })).toMatchObject(asMade)
      } catch (error) {
        expect((error as Error).message).toContain(file)
        expect(error).toBeInstanceOf(UnusableDirectory)
        refused++
      }
    }
    expect(refused).toBeGreaterThan(bytes.length / 2)
    writeFileSync(file, bytes)
  }
  expect(openBoardDirectory({ disk: machineDisk, path, ...wanted })).toEqual(asMade)
})

test('a board of an older release, whose facts have no checksum, is opened; a new epoch keeps all else', () => {
  const path = scratchDirectory()
  const { facts } = openBoardDirectory({ disk: machineDisk, path, ...wanted })
  const { prints, ...older } = facts
  writeFileSync(join(path, 'board.json'), JSON.stringify(older))
  expect(openBoardDirectory({ disk: machineDisk, path, ...wanted }).facts).toEqual(older)
  const { generation } = beginEpoch(machineDisk, path, { generation: 'another' })
  expect(generation).not.toBe(facts.generation)
  expect(readFacts(machineDisk, path)).toEqual({ ...older, generation })
})

test('a path that is not a directory is not taken for one without a board', () => {
  const file = join(scratchDirectory(), 'name'.repeat(100))
  expect(() => readFacts(machineDisk, file)).toThrow('ENAMETOOLONG')
  expect(() => readSecret(machineDisk, file)).toThrow('ENAMETOOLONG')
  expect(() => readFacts(machineDisk, join(scratchDirectory(), 'nowhere'))).toThrow('There is no board in')
})

test('a damaged key file is refused with where to get the key again, which no ordinary backup contains', () => {
  const path = scratchDirectory()
  openBoardDirectory({ disk: machineDisk, path, ...wanted })
  const key = join(path, 'keys', 'board.key')
  const open = () => openBoardDirectory({ disk: machineDisk, path, ...wanted })
  for (const damage of [() => writeFileSync(key, '00'), () => writeFileSync(key, '00'.repeat(32)), () => rmSync(key)]) {
    damage()
    expect(open).toThrow('Restore it from your copy of the keys directory')
  }
  const replicaKey = join(path, 'replica.key')
  writeFileSync(replicaKey, '00', { mode: 0o600 })
  expect(() => replicaKeyIn(machineDisk, replicaKey)).toThrow(
    /32 bytes in hex\. Copy the file of REPLICA_KEY_FILE here from another machine.* broadside keygen --replica/,
  )
})

/** What `broadside rekey` answers for this directory. */
async function rekey(path: string, ...options: string[]): Promise<{ readonly code: number; readonly err: string }> {
  const terminal = capturedTerminal()
  const code = await main(['rekey', '--data', path, ...options], terminal)
  return { code, err: terminal.said.err }
}

/** The files in `keys/` whose names begin so, with their contents. */
const keysOf = (path: string, begin: string) =>
  Object.fromEntries(
    readdirSync(join(path, 'keys'))
      .filter((name) => name.startsWith(begin))
      .map((name) => [name, readFileSync(join(path, 'keys', name), 'utf8').trim()]),
  )

test('rekey --lost refuses to replace the key of this board, and changes nothing', async () => {
  const path = scratchDirectory()
  openBoardDirectory({ disk: machineDisk, path, ...wanted })
  const before = keysOf(path, 'cursor')
  expect(await rekey(path, '--lost')).toEqual({
    code: 1,
    err: expect.stringContaining(`${join(path, 'keys', 'cursor.key')} is here: leave out --lost`),
  })
  expect(keysOf(path, 'cursor')).toEqual(before)
  expect(await rekey(path)).toMatchObject({ code: 0 })
  expect(keysOf(path, 'cursor')).toEqual({ 'cursor.key': expect.any(String), 'cursor-1.key': before['cursor.key'] })
})

test('rekey --lost keeps a key that is not the current one of this board, and makes a new one', async () => {
  const path = scratchDirectory()
  openBoardDirectory({ disk: machineDisk, path, ...wanted })
  const other = '5a'.repeat(32)
  writeFileSync(join(path, 'keys', 'cursor.key'), `${other}\n`, { mode: 0o600 })
  expect(await rekey(path)).toMatchObject({ code: 1 })
  expect(await rekey(path, '--lost')).toEqual({ code: 0, err: '' })
  expect(keysOf(path, 'cursor')).toEqual({ 'cursor.key': expect.not.stringContaining(other), 'cursor-1.key': other })
  expect(() => openBoardDirectory({ disk: machineDisk, path, ...wanted })).not.toThrow()
})
