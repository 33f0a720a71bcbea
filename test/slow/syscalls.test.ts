/** A board that is killed at system calls, or whose system calls fail, keeps everything that it acknowledged. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { Board, boardDirectory, startBoard, tryStartBoard } from '../support/board-process.ts'
import { Client } from '../support/client.ts'
import { chooseSeed, Ledger, load, randomFrom } from '../support/load.ts'
import { Heads, logKeyOf } from '../support/log-checks.ts'
import { randomPart } from '../support/random-part.ts'

vi.setConfig({ testTimeout: 900_000 })

const missing = missingProgram('strace')
/** Segments so small that a board begins a new one every few posts. */
const smallSegments = { SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }

/**
 * A system call of a board. strace counts calls per thread. A file selects the thread, because each file belongs to one; without a file,
 * it is the first thread that makes the call that often.
 */
type Call = { readonly call: string; readonly file?: string }

/**
 * The strace command that injects a fault into the board that it runs; `fault` is in the syntax of strace. `--seccomp-bpf` would be
 * faster, but with it strace 6.1 sends no signal from the second call on.
 */
function strace({ call, file }: Call, fault: string): string[] {
  const path = file === undefined ? [] : ['-P', file]
  const base = ['strace', '-f', '-qq', '-o', '/dev/null']
  return [...base, ...path, '-e', `trace=${call}`, '-e', `inject=${call}:${fault}`]
}

const segmentIn = (directory: string, part: string) => join(directory, part, '00000000000000000001.log')
const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1)

/** Processes a list two items at a time, because a starting board keeps one core busy. */
async function inPairs<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const rest = [...items]
  const worker = async (): Promise<void> => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item)
  }
  await Promise.all([worker(), worker()])
}

/** Creates a board with a few posts, and stops it. */
async function createBoard(directory: string, env: Readonly<Record<string, string>>): Promise<Ledger> {
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const key = await logKeyOf(client)
  const ledger = new Ledger(new Heads(key), key)
  await load({ client, ledger, random: randomFrom(1), posts: 5, inFlight: 1, rooms: ['a'] })
  client.close()
  await board.stop()
  return ledger
}

/** Starts the board without faults and checks it against its ledger. */
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
  /** The part of the directory to whose first segment the calls are made; omitted: calls of any thread count. */
  readonly part?: string
  readonly numbers: readonly number[]
}

/** Kills one board at each of these calls in turn, under load, and then checks everything that it has acknowledged. */
async function killAtEach({ env, call, part, numbers }: Sweep): Promise<void> {
  const what = part === undefined ? call : `${call} of ${part}`
  const seed = chooseSeed(`killed at ${what}`)
  const directory = boardDirectory()
  const ledger = await createBoard(directory, env)
  const target: Call = part === undefined ? { call } : { call, file: segmentIn(directory, part) }
  for (const when of numbers) {
    const found = await tryStartBoard({ directory, env, under: strace(target, `signal=KILL:when=${when}`) })
    if (!(found instanceof Board)) {
      expect(found.signal, found.output).toBe('SIGKILL') // while it started
      continue
    }
    const client = await Client.of(found)
    const random = randomFrom(seed + when)
    // The log is synced for many posts at once, so it takes this many to reach the call.
    const posts = 2_000
    await load({ client, ledger, random, posts, inFlight: 1 + (when % 4), rooms: ['a', 'b'], textBytesMax: 3_000 })
    client.close()
    if (found.child.exitCode === null && found.child.signalCode === null) found.signal('SIGTERM')
    expect((await found.ended).signal, `${what}: call ${when} was never made`).toBe('SIGKILL')
  }
  console.info(`${what}: ${numbers.length} kills, ${ledger.acknowledged.size} acknowledged`)
  await checkAfter(directory, env, ledger)
}

describe.skipIf(skipWithout(missing))(`under failing system calls${skipNote(missing)}`, () => {
  test('a board that is killed once or twice at the syncs and renames of its creation is complete after the next start', async () => {
    // After the first kill, a second start is killed while the threads create their files; the third start must succeed.
    const secondKills: readonly (readonly [part: string, call: string, when: number])[] = [
      ['shard-00', 'fsync', 1],
      ['shard-00', 'fsync', 2],
      ['log', 'fsync', 1],
      ['log', 'fsync', 2],
      ...upTo(2).map((when) => ['shard-00', 'fdatasync', when] as const),
      ...upTo(3).map((when) => ['log', 'fdatasync', when] as const),
    ]
    const kill = async (directory: string, target: Call, when: number): Promise<void> => {
      const found = await tryStartBoard({ directory, under: strace(target, `signal=KILL:when=${when}`) })
      if (found instanceof Board) throw new Error(`${target.call} ${target.file}: call ${when} was never made`)
      expect(found.signal, found.output).toBe('SIGKILL')
    }
    const firstKills = [
      ...upTo(12).map((when) => ({ call: 'fsync', when })),
      ...upTo(4).map((when) => ({ call: 'rename', when })),
    ]
    await inPairs(randomPart([...firstKills.entries()]), async ([index, { call, when }]) => {
      const directory = join(boardDirectory(), 'board')
      await kill(directory, { call }, when)
      const next = secondKills[index]
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

  test('a board that is killed at one of the first 16 syncs of its shard or log keeps what it acknowledged', async () => {
    const numbers = randomPart([...upTo(6), 9, 12, 16])
    await inPairs(['shard-00', 'log'], (part) => killAtEach({ env: {}, call: 'fdatasync', part, numbers }))
  })

  test('a board that is killed while it seals segments and begins new ones keeps what it acknowledged', async () => {
    const sweeps: readonly Sweep[] = [
      { env: smallSegments, call: 'fsync', numbers: randomPart(upTo(8)) },
      { env: smallSegments, call: 'fdatasync', numbers: randomPart([1, 2, 5, 12, 40, 80]) },
      { env: smallSegments, call: 'rename', numbers: randomPart(upTo(5)) },
    ]
    await inPairs(sweeps, killAtEach)
  })

  test.each(randomPart(['shard-00', 'log']))(
    'if the third sync of %s fails (EIO), the process exits with an error and acknowledges nothing more',
    async (part) => {
      const directory = boardDirectory()
      const ledger = await createBoard(directory, {})
      const target = { call: 'fdatasync', file: segmentIn(directory, part) }
      const board = await startBoard({ directory, under: strace(target, 'error=EIO:when=3') })
      const client = await Client.of(board)
      const before = ledger.acknowledged.size
      const posts = 200
      await load({ client, ledger, random: randomFrom(3), posts, inFlight: 4, rooms: ['a', 'b'] })
      client.close()
      expect(await board.ended).toEqual({ code: 70, signal: null })
      // A write is answered after the sync of its shard; the log is synced later, for many writes at once.
      expect(ledger.acknowledged.size - before).toBeLessThan(part === 'log' ? posts : 3 * 4)
      expect(board.lines.map((line) => JSON.parse(line) as Record<string, unknown>)).toContainEqual(
        expect.objectContaining({ level: 'error', event: 'fatal', problem: expect.stringContaining('sound disk') }),
      )
      await checkAfter(directory, {}, ledger)
    },
  )

  test.each(randomPart([2, 4, 7]))(
    'if the disk fills up during a write (ENOSPC from call %i on), nothing is acknowledged that is not stored',
    async (when) => {
      const directory = boardDirectory()
      const ledger = await createBoard(directory, smallSegments)
      const fault = `error=ENOSPC:when=${when}..${when + 3}`
      const found = await tryStartBoard({ directory, env: smallSegments, under: strace({ call: 'pwrite64' }, fault) })
      if (found instanceof Board) {
        const client = await Client.of(found)
        await load({ client, ledger, random: randomFrom(when), posts: 100, inFlight: 4, rooms: ['a', 'b'] })
        client.close()
        found.signal('SIGTERM')
        await found.ended
      }
      // If the thread has exited, further commands are refused, to be sent again once it has restarted.
      const allowed = ['429 storage_full', '429 overloaded']
      expect([...ledger.refused.keys()].filter((name) => !allowed.includes(name))).toEqual([])
      await checkAfter(directory, smallSegments, ledger)
    },
  )
})
