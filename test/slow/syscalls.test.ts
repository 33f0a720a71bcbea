import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { Board, boardDirectory, startBoard, tryBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { drawn } from '../support/drawn.ts'
import { Heads, logKeyOf } from '../support/judge.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'

vi.setConfig({ testTimeout: 900_000 })

const missing = missingProgram('strace')
/** So small that a board rolls its segments every few posts. */
const rolling = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }

/**
 * A system call of a board. strace counts per thread, so a file tells which thread's calls are meant: each has one owner.
 * Without a file it is the thread that makes the call that often first.
 */
type Call = { readonly call: string; readonly file?: string }

/**
 * The arguments that run a board under a fault: `fault` in strace's own words. Without `--seccomp-bpf`, which is faster:
 * with it strace 6.1 sends no signal from the second call on.
 */
function under({ call, file }: Call, fault: string): string[] {
  const path = file === undefined ? [] : ['-P', file]
  const quiet = ['strace', '-f', '-qq', '-o', '/dev/null']
  return [...quiet, ...path, '-e', `trace=${call}`, '-e', `inject=${call}:${fault}`]
}

const segmentIn = (directory: string, part: string) => join(directory, part, '00000000000000000001.log')
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

/** Works through a list, two at a time: a board that starts keeps one core busy. */
async function inPairs<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items]
  const worker = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item)
  }
  await Promise.all([worker(), worker()])
}

/** A board that has its directory, its key and a few posts, stopped. */
async function madeBoard(directory: string, env: Readonly<Record<string, string>>): Promise<Ledger> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  const ledger = new Ledger(new Heads(key), key)
  await load({ client, ledger, random: randomFrom(1), posts: 5, inFlight: 1, rooms: ['a'] })
  client.close()
  await board.stop()
  return ledger
}

/** Starts the board as it should be and holds it to its ledger. */
async function checkAfter(directory: string, env: Readonly<Record<string, string>>, ledger: Ledger): Promise<void> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  await ledger.check(client, 10)
  client.close()
  await board.kill()
}

type Sweep = {
  readonly env: Readonly<Record<string, string>>
  readonly call: string
  /** The part of the directory whose first segment is meant; left out, any thread's call counts. */
  readonly part?: string
  readonly numbers: readonly number[]
}

/** Kills one board at each of these calls in turn, under load, and checks in the end what it acknowledged on the way. */
async function killAtEach({ env, call, part, numbers }: Sweep): Promise<void> {
  const what = part === undefined ? call : `${call} of ${part}`
  const seed = chooseSeed(`killed at ${what}`)
  const directory = boardDirectory()
  const ledger = await madeBoard(directory, env)
  const target: Call = part === undefined ? { call } : { call, file: segmentIn(directory, part) }
  for (const when of numbers) {
    const found = await tryBoard({ directory, env, under: under(target, `signal=KILL:when=${when}`) })
    if (!(found instanceof Board)) {
      expect(found.signal, found.words).toBe('SIGKILL') // while it started
      continue
    }
    const client = await Client.of(found)
    const random = randomFrom(seed + when)
    // The log is synced at a pace, not for each post: so many that the call is made before they end.
    const posts = 2_000
    await load({ client, ledger, random, posts, inFlight: 1 + (when % 4), rooms: ['a', 'b'], textBytesMax: 3_000 })
    client.close()
    if (found.child.exitCode === null && found.child.signalCode === null) found.signal('SIGTERM')
    expect((await found.ended).signal, `${what} number ${when} was never made`).toBe('SIGKILL')
  }
  console.info(`${what}: ${numbers.length} kills, ${ledger.acknowledged.size} acknowledged`)
  await checkAfter(directory, env, ledger)
}

describe.skipIf(skipWithout(missing))(`with failing system calls${skipNote(missing)}`, () => {
  test('killed at any of the syncs that make a board, it is made anew or as it was, never half', async () => {
    // In a second life of what the first kill left, the threads make their part; the third life has to work.
    const second: readonly (readonly [part: string, call: string, when: number])[] = [
      ['shard-00', 'fsync', 1],
      ['shard-00', 'fsync', 2],
      ['log', 'fsync', 1],
      ['log', 'fsync', 2],
      ...upTo(2).map((when) => ['shard-00', 'fdatasync', when] as const),
      ...upTo(3).map((when) => ['log', 'fdatasync', when] as const),
    ]
    const kill = async (directory: string, target: Call, when: number): Promise<void> => {
      const found = await tryBoard({ directory, under: under(target, `signal=KILL:when=${when}`) })
      if (found instanceof Board) throw new Error(`${target.call} ${target.file} number ${when} was never made`)
      expect(found.signal, found.words).toBe('SIGKILL')
    }
    const firsts = [
      ...upTo(12).map((when) => ({ call: 'fsync', when })),
      ...upTo(4).map((when) => ({ call: 'rename', when })),
    ]
    await inPairs(drawn([...firsts.entries()]), async ([index, { call, when }]) => {
      const directory = join(boardDirectory(), 'board')
      await kill(directory, { call }, when)
      const next = second[index]
      if (next !== undefined) {
        const [part, nextCall, nextWhen] = next
        const file = nextCall === 'fsync' ? join(directory, part) : segmentIn(directory, part)
        await kill(directory, { call: nextCall, file }, nextWhen)
      }
      const board = await startBoard({ directory })
      const client = await Client.of(board)
      const key = await logKeyOf(client)
      const ledger = new Ledger(new Heads(key), key)
      await load({ client, ledger, random: randomFrom(when), posts: 3, inFlight: 1, rooms: ['a'] })
      await ledger.check(client, 3)
      client.close()
      await board.kill()
      rmSync(directory, { recursive: true })
    })
  })

  test('killed at many of the first 16 syncs of its shard and of its log it keeps what it acknowledged', async () => {
    const numbers = drawn([...upTo(6), 9, 12, 16])
    await inPairs(['shard-00', 'log'], (part) => killAtEach({ env: {}, call: 'fdatasync', part, numbers }))
  })

  test('killed at any call while it seals segments and begins new ones it keeps what it acknowledged', async () => {
    const sweeps: readonly Sweep[] = [
      { env: rolling, call: 'fsync', numbers: drawn(upTo(8)) },
      { env: rolling, call: 'fdatasync', numbers: drawn([1, 2, 5, 12, 40, 80]) },
      { env: rolling, call: 'rename', numbers: drawn(upTo(5)) },
    ]
    await inPairs(sweeps, killAtEach)
  })

  test.each(drawn(['shard-00', 'log']))(
    'after the third sync of %s failed (EIO) the process ends with an error and acknowledges nothing more',
    async (part) => {
      const directory = boardDirectory()
      const ledger = await madeBoard(directory, {})
      const target = { call: 'fdatasync', file: segmentIn(directory, part) }
      const board = await startBoard({ directory, under: under(target, 'error=EIO:when=3') })
      const client = await Client.of(board)
      const before = ledger.acknowledged.size
      const posts = 200
      await load({ client, ledger, random: randomFrom(3), posts, inFlight: 4, rooms: ['a', 'b'] })
      client.close()
      expect(await board.ended).toEqual({ code: 70, signal: null })
      // What a write is answered after is the sync of the shard; that of the log follows at a pace, for many writes at once.
      expect(ledger.acknowledged.size - before).toBeLessThan(part === 'log' ? posts : 3 * 4)
      expect(board.lines.map((line) => JSON.parse(line) as Record<string, unknown>)).toContainEqual(
        expect.objectContaining({ level: 'error', event: 'fatal', problem: expect.stringContaining('sound disk') }),
      )
      await checkAfter(directory, {}, ledger)
    },
  )

  test.each(drawn([2, 4, 7]))(
    'when the disk is full in the middle of a write (ENOSPC from number %i on) nothing is acknowledged that is not there',
    async (when) => {
      const directory = boardDirectory()
      const ledger = await madeBoard(directory, rolling)
      const fault = `error=ENOSPC:when=${when}..${when + 3}`
      const found = await tryBoard({ directory, env: rolling, under: under({ call: 'pwrite64' }, fault) })
      if (found instanceof Board) {
        const client = await Client.of(found)
        await load({ client, ledger, random: randomFrom(when), posts: 100, inFlight: 4, rooms: ['a', 'b'] })
        client.close()
        found.signal('SIGTERM')
        await found.ended
      }
      // Where the thread has ended, what still comes is told to try again until it has started anew.
      const told = ['429 storage_full', '429 overloaded']
      expect([...ledger.refused.keys()].filter((name) => !told.includes(name))).toEqual([])
      await checkAfter(directory, rolling, ledger)
    },
  )
})
