import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Locked, lockByFile, lockDirectory } from '../../storage/lock.ts'
import { scratchDirectory } from '../support/scratch.ts'

const holderPath = fileURLToPath(new URL('../support/lock-holder.ts', import.meta.url))

/** Starts a process that locks, and returns its output. */
async function startHolder(directory: string): Promise<{ holder: ChildProcess; said: string }> {
  const holder = spawn(process.execPath, [holderPath, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    holder.kill('SIGKILL')
  })
  const [said] = await once(holder.stdout!, 'data')
  return { holder, said: String(said).trim() }
}

async function killed(holder: ChildProcess): Promise<void> {
  holder.kill('SIGKILL')
  await once(holder, 'exit')
}

test('a second process is refused with the pid of the first, also from inside the first', async () => {
  const directory = scratchDirectory()
  const lock = await lockDirectory(directory)
  const { said } = await startHolder(directory)
  expect(said).toContain(`is in use by process ${process.pid}`)
  await expect(lockDirectory(directory)).rejects.toBeInstanceOf(Locked)
  lock.release()
  expect(existsSync(join(directory, 'LOCK'))).toBe(false)
  const next = await lockDirectory(directory)
  next.release()
})

test('after kill -9 the directory is free', async () => {
  const directory = scratchDirectory()
  const { holder, said } = await startHolder(directory)
  expect(said).toBe('locked')
  await expect(lockDirectory(directory)).rejects.toMatchObject({ pid: holder.pid })
  await killed(holder)
  expect(existsSync(join(directory, 'LOCK'))).toBe(true)
  const lock = await lockDirectory(directory)
  lock.release()
})

// Nobody, not even root, can create a file there.
test.skipIf(process.platform !== 'linux')('a read-only program can lock a directory that is not writable', async () => {
  for (const lock of [lockDirectory, lockByFile]) {
    await expect(lock('/sys')).rejects.toThrow(/EROFS|EACCES|EPERM/)
    const held = await lock('/sys', { reader: true })
    if (lock === lockDirectory) await expect(lock('/sys', { reader: true })).rejects.toBeInstanceOf(Locked)
    held.release()
  }
})

test('two directories are two locks', async () => {
  const locks = [await lockDirectory(scratchDirectory()), await lockDirectory(scratchDirectory())]
  for (const lock of locks) lock.release()
})

describe('a LOCK file that outlived its process', () => {
  test.each([
    ['names a live process that started at another time', ([pid, boot]: string[]) => `${pid}\n${boot}\n1\n`],
    ['is of another boot', ([pid, , started]: string[]) => `${pid}\nanother-boot\n${started}\n`],
    ['names an unrelated process', ([, boot, started]: string[]) => `${process.ppid}\n${boot}\n${started}\n`],
    ['holds rubbish', () => 'rubbish'],
    ['is empty', () => ''],
  ])('and %s locks nobody out', async (_, text) => {
    const directory = scratchDirectory()
    const own = await lockByFile(directory)
    const lines = readFileSync(join(directory, 'LOCK'), 'latin1').split('\n')
    own.release()
    for (const take of [lockDirectory, lockByFile]) {
      writeFileSync(join(directory, 'LOCK'), text(lines))
      const lock = await take(directory)
      lock.release()
    }
  })
})

test('where only the file decides, a live holder is respected and a dead one is not', async () => {
  const directory = scratchDirectory()
  const { holder } = await startHolder(directory)
  await expect(lockByFile(directory)).rejects.toMatchObject({ name: 'Locked', pid: holder.pid })
  await killed(holder)
  const lock = await lockByFile(directory)
  await expect(lockByFile(directory)).rejects.toBeInstanceOf(Locked)
  lock.release()
})
