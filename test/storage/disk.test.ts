import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  DiskFull,
  freeBytes,
  listFiles,
  makeDirectory,
  openFile,
  removeFile,
  SyncFailed,
  writeAtomic,
} from '../../storage/disk.ts'
import { scratchDirectory } from '../support/scratch.ts'

test('bytes written at a position are read there, and reading stops at the end of the file', () => {
  const file = openFile(join(scratchDirectory(), 'a'), 'create')
  file.writeAt(Buffer.from('world'), 6)
  file.writeAt(Buffer.from('hello '), 0)
  file.sync()
  const into = Buffer.alloc(20, '.')
  expect(file.readAt(into, 2)).toBe(9)
  expect(into.toString()).toBe('llo world...........')
  expect(file.size()).toBe(11)
  file.truncate(5)
  expect(file.readAt(into, 5)).toBe(0)
  file.close()
  file.close()
})

test('creating a file that exists is refused, and a new file is readable by its owner alone', () => {
  const path = join(scratchDirectory(), 'a')
  openFile(path, 'create').close()
  expect(() => openFile(path, 'create')).toThrow(/EEXIST/)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test.runIf(process.platform === 'linux')('a full disk is told apart from other errors', () => {
  const file = openFile('/dev/full', 'write')
  expect(() => file.writeAt(Buffer.from('x'), 0)).toThrow(DiskFull)
  file.close()
})

test.runIf(process.platform === 'linux')('after a failed sync a file takes no write, cut or sync any more', () => {
  // The kernel refuses to sync this device, as it would a dying disk.
  const file = openFile('/dev/null', 'write')
  file.writeAt(Buffer.from('x'), 0)
  expect(() => file.sync()).toThrow(SyncFailed)
  expect(() => file.sync()).toThrow(SyncFailed)
  expect(() => file.writeAt(Buffer.from('x'), 0)).toThrow(SyncFailed)
  expect(() => file.truncate(0)).toThrow(SyncFailed)
  file.close()
})

test('an atomic write replaces the file, sets its mode and leaves no temporary file', () => {
  const directory = scratchDirectory()
  const path = join(directory, 'key')
  writeAtomic(path, Buffer.from('old'))
  writeFileSync(`${path}.tmp`, 'left by a crash')
  chmodSync(`${path}.tmp`, 0o666)
  writeAtomic(path, Buffer.from('new'), 0o640)
  expect(readFileSync(path, 'utf8')).toBe('new')
  expect(statSync(path).mode & 0o777).toBe(0o640)
  expect(listFiles(directory)).toEqual(['key'])
})

test('an atomic write that fails leaves the old file', () => {
  const directory = scratchDirectory()
  const path = join(directory, 'a')
  writeAtomic(path, Buffer.from('old'))
  mkdirSync(`${path}.tmp`)
  expect(() => writeAtomic(path, Buffer.from('new'))).toThrow()
  expect(readFileSync(path, 'utf8')).toBe('old')
})

test('directories are made with their parents, removal of a missing file is fine, free room is a number of bytes', () => {
  const directory = scratchDirectory()
  makeDirectory(join(directory, 'a/b/c'))
  makeDirectory(join(directory, 'a/b/c'))
  expect(existsSync(join(directory, 'a/b/c'))).toBe(true)
  removeFile(join(directory, 'nothing'))
  expect(freeBytes(directory)).toBeGreaterThan(0)
})
