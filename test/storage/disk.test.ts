import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DiskFull, SyncFailed } from '../../storage/disk.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { scratchDirectory } from '../support/scratch.ts'

const { freeBytes, listDirectories, listFiles, makeDirectory, openFile, removeFile, writeAtomic } = machineDisk

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

test('a read error names the file', async () => {
  const directory = scratchDirectory()
  const file = openFile(directory, 'read')
  const handle = (await machineDisk.openForReading(directory))!
  const named = new RegExp(`^EISDIR: .*, read '${directory}'$`)
  expect(() => file.readAt(Buffer.alloc(4), 0)).toThrow(named)
  expect(() => machineDisk.readWhole(directory)).toThrow(named)
  await expect(handle.read(Buffer.alloc(4), 0)).rejects.toThrow(named)
  file.close()
  await handle.close()
})

test('a closed file stays closed, even if the process reuses its descriptor for the next one', () => {
  const directory = scratchDirectory()
  const old = openFile(join(directory, 'old'), 'create')
  old.close()
  const next = openFile(join(directory, 'next'), 'create')
  next.writeAt(Buffer.from('of the next'), 0)
  const uses = [
    () => old.readAt(Buffer.alloc(4), 0),
    () => old.writeAt(Buffer.from('x'), 0),
    () => old.truncate(0),
    () => old.sync(),
    () => old.size(),
  ]
  for (const use of uses) expect(use).toThrow(/old is closed/)
  expect(readFileSync(next.path, 'utf8')).toBe('of the next')
  next.close()
})

test.runIf(process.platform === 'linux')('one array of more than 2 GiB is read and written like any other', () => {
  // Untouched memory takes no room.
  const large = new Uint8Array(2 ** 31 + 1)
  const file = openFile(join(scratchDirectory(), 'a'), 'create')
  file.writeAt(Buffer.from('few'), 0)
  expect(file.readAt(large, 0)).toBe(3)
  file.close()
  const full = openFile('/dev/full', 'write')
  expect(() => full.writeAt(large, 0)).toThrow(DiskFull)
  full.close()
})

test('creating a file that exists is refused, and a new file is readable only by its owner', () => {
  const path = join(scratchDirectory(), 'a')
  openFile(path, 'create').close()
  expect(() => openFile(path, 'create')).toThrow(/EEXIST/)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test.runIf(process.platform === 'linux')('a full disk is distinguished from other errors', () => {
  const file = openFile('/dev/full', 'write')
  expect(() => file.writeAt(Buffer.from('x'), 0)).toThrow(DiskFull)
  file.close()
})

test.runIf(process.platform === 'linux')('after a failed sync a file accepts no write, truncation or sync', () => {
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

test('directories are created with their parents, removing a missing file is fine, and free room is given in bytes', () => {
  const directory = scratchDirectory()
  makeDirectory(join(directory, 'a/b/c'))
  makeDirectory(join(directory, 'a/b/c'))
  expect(existsSync(join(directory, 'a/b/c'))).toBe(true)
  removeFile(join(directory, 'nothing'))
  expect(freeBytes(directory)).toBeGreaterThan(0)
})

test('a directory on another volume, behind a link, is listed as a directory; a dangling link is not', () => {
  const directory = scratchDirectory()
  makeDirectory(join(directory, 'shard-00'))
  symlinkSync(scratchDirectory(), join(directory, 'log'))
  symlinkSync(join(directory, 'nothing'), join(directory, 'lost'))
  expect(listDirectories(directory)).toEqual(['log', 'shard-00'])
})
