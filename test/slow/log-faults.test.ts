/**
 * The log actor's own code with real files under failing system calls, and a rotation killed at each of its steps.
 *
 * BROADSIDE_LOG_FAULTS=all takes every occurrence of every call; without it every sixth one of the log's.
 */

import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { logDirectory, nodesFile, shardDirectory } from '../../src/board-directory.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { findDamage } from '../support/find-damage.ts'
import { integrate, openLog, writePosts } from '../support/posts-on-disk.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const missing = missingProgram('strace')
const step = process.env.BROADSIDE_LOG_FAULTS === 'all' ? 1 : 6
const integrator = resolve(import.meta.dirname, '../support/integrator.ts')

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'broadside-faults-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Ended = {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

/** Runs a program of ours under a fault in strace's syntax. One thread makes the calls in question. */
function runUnder(call: string, fault: string, args: readonly string[]): Promise<Ended> {
  const trace = ['-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:${fault}`]
  const child = spawn('strace', [...trace, process.execPath, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const out: Buffer[] = []
  const err: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk))
  return new Promise((done) =>
    child.once('close', (code, signal) =>
      done({ code, signal, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() }),
    ),
  )
}

/** Works through a list, two at a time. */
async function inPairs<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items]
  const worker = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item)
  }
  await Promise.all([worker(), worker()])
}

function keyOf(vkey: string): VerifierKey {
  const key = parseVkey(vkey)
  if (!key.ok) throw new Error(key.problem)
  return key.value
}

describe.skipIf(skipWithout(missing))(`the log under failing system calls${skipNote(missing)}`, () => {
  /** Over 65,536 and several tile boundaries, with a new segment every few frames. */
  const posts = 66_000
  const already = 65_200
  const segmentBytes = 64 * 1024 + 64
  let base: string
  let expectedRoot: Buffer
  let copies = 0

  beforeAll(() => {
    base = join(folder, 'base')
    writePosts({ directory: base, posts, textBytes: 1 })
    integrate({ directory: base, posts: already })
    const whole = copyOfLog()
    integrate({ directory: whole, posts })
    expectedRoot = rootAt(whole, posts, posts)
  })

  /** The records are only read, so the copies share them. */
  function copyOfLog(): string {
    const copy = join(folder, `copy-${copies++}`)
    mkdirSync(copy)
    cpSync(join(base, 'board.json'), join(copy, 'board.json'))
    cpSync(join(base, 'keys'), join(copy, 'keys'), { recursive: true })
    cpSync(logDirectory(base), logDirectory(copy), { recursive: true })
    symlinkSync(shardDirectory(base, 0), shardDirectory(copy, 0))
    return copy
  }

  function rootAt(directory: string, whole: number, size: number): Buffer {
    const tree = TreeReader.open(machineDisk, nodesFile(logDirectory(directory)))
    tree.advance(whole)
    const root = tree.root(size)
    tree.close()
    return root
  }

  test.each([
    ['pwrite64', 'signal=KILL', 60],
    ['pwrite64', 'error=EIO', 60],
    ['pwrite64', 'error=ENOSPC', 60],
    ['fdatasync', 'signal=KILL', 24],
    ['fdatasync', 'error=EIO', 24],
    ['fsync', 'signal=KILL', 24],
    ['fsync', 'error=EIO', 24],
    ['rename', 'signal=KILL', 8],
    ['rename', 'error=ENOSPC', 8],
  ] as const)(
    '%s with %s: every published head is of the one log that goes on, and nothing is lost',
    async (call, fault, calls) => {
      const taken: number[] = []
      const one = async (number: number): Promise<void> => {
        const directory = copyOfLog()
        const args = [integrator, directory, String(posts), String(segmentBytes), '48']
        const { code, out, err } = await runUnder(call, `${fault}:when=${number}`, args)
        if (code !== 0) taken.push(number)
        // However it ended, it did not continue after a failed call.
        if (code !== 0 && !fault.startsWith('signal')) expect(err, `${call} ${number}`).not.toBe('')
        const log = openLog(directory, segmentBytes)
        const key = keyOf(log.vkey)
        const published = out
          .trimEnd()
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => openCheckpoint(JSON.parse(line) as string, key))
        const newest = log.newest.size
        log.close()
        integrate({ directory, posts, segmentBytesMax: segmentBytes })
        expect(rootAt(directory, posts, posts).equals(expectedRoot), `${call} ${fault} ${number}`).toBe(true)
        for (const head of published) {
          if (!head.ok) throw new Error(head.problem)
          expect(newest).toBeGreaterThanOrEqual(head.value.size)
          expect(rootAt(directory, posts, head.value.size).equals(head.value.root)).toBe(true)
        }
        rmSync(directory, { recursive: true })
      }
      // The first is always hit.
      const [first, ...more] = Array.from({ length: Math.ceil(calls / step) }, (_, n) => 1 + n * step)
      await inPairs([first!, ...randomPart(more)], one)
      expect(taken.length, 'the fault was met').toBeGreaterThan(0)
    },
  )
})

describe.skipIf(skipWithout(missing))(`a rotation that is killed${skipNote(missing)}`, () => {
  test.each(randomPart(['fdatasync', 'fsync', 'pwrite64', 'rename', 'unlink']))(
    'at any %s is finished by the next start or was never begun, and can be requested again',
    async (call) => {
      const base = join(folder, `rotated-${call}`)
      const posts = 300
      writePosts({ directory: base, posts })
      integrate({ directory: base, posts })
      const old = openLog(base)
      const oldKey = keyOf(old.vkey)
      const { origin } = old
      old.close()
      let finished = 0
      let isOver = false
      const one = async (when: number): Promise<void> => {
        const directory = join(folder, `rotated-${call}-${when}`)
        cpSync(base, directory, { recursive: true })
        const args = [program, 'log', 'rotate', '--data', directory]
        const { code } = await runUnder(call, `signal=KILL:when=${when}`, args)
        if (code === 0) isOver = true
        const log = openLog(directory)
        const isRotated = log.closed.length > 0
        if (isRotated) {
          finished++
          expect(log.closed).toHaveLength(1)
          const end = openCheckpoint(log.closed[0]!.checkpoint, oldKey)
          expect(end.ok && end.value.size).toBe(posts + 1)
          expect(log.newest.size).toBe(1)
        } else expect([log.origin, log.newest.size]).toEqual([origin, posts])
        log.close()
        expect(findDamage(directory)).toEqual([])
        const again = await runUnder(call, 'signal=KILL:when=999', args)
        expect([again.code, again.err]).toEqual([0, ''])
        expect(findDamage(directory)).toEqual([])
        rmSync(directory, { recursive: true })
      }
      for (let when = 1; !isOver && when < 60; when += 2) await inPairs([when, when + 1], one)
      expect(isOver).toBe(true)
      console.info(`${call}: ${finished} rotations went on`)
    },
  )
})
