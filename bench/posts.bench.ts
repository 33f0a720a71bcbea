/**
 * How much of one core's signature checks does the board turn into signed, durable, proven posts, and what does a post cost?
 *
 * A real board on a real disk; a client in a separate process with commands signed before the clock starts, on the same cores. With
 * `--against DIRECTORY` a board of that checkout runs too, and both get each load in turn. Nothing counts before the compiler is warm:
 * during the first 20,000 posts it takes more processor time than the posts themselves.
 *
 * Two limits are measured in the same minute: our verifier with our rule on one core, in batches of 32, and uWebSockets.js that echoes the
 * same posts. The plain alternative is a loop without network, threads or log that verifies a command, appends it and syncs, one after the
 * other.
 */

import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { chooseBackend } from '../src/verify/backends.ts'
import { Journal } from '../storage/journal.ts'
import { machineDisk } from '../storage/machine-disk.ts'
import { type BoardRun, type Target, withBoard, withStatic } from './board.ts'
import type { Measured } from './client-process.ts'
import { countNames } from './counts.ts'
import { projectDirectory, withDirectory } from './machine.ts'
import { median, rateOf, rawSyncPerSecond, rawVerify, signedBytes } from './raw-limits.ts'
import type { Bench, Row, Table } from './report.ts'

type Load = {
  readonly name: string
  /** Pending requests. */
  readonly inFlight: number
  readonly posts: number
  /** Posts in one request to `/v1/commands`. */
  readonly lines?: number
}

const batches: Load = { name: '4 batches of 250', inFlight: 4, posts: 10_000, lines: 250 }
const single = (inFlight: number, posts: number): Load => ({ name: String(inFlight), inFlight, posts })

const thorough = {
  warmup: 60_000,
  rounds: 4,
  loads: [single(1, 1_000), single(16, 5_000), single(64, 8_000), single(256, 8_000), batches],
}
const quick = { warmup: 10_000, rounds: 2, loads: [single(1, 300), single(64, 4_000)] }
/** Posts that one load of the warm-up signs before it sends them. */
const warmupStep = 5_000

type Contestant = { readonly name: string; readonly board: BoardRun }
type Round = {
  readonly verifyPerSecond: number
  readonly verifyUs: number
  readonly echo: Measured
  /** By contestant. */
  readonly measured: ReadonlyMap<string, Measured>
}

export const posts: Bench = {
  name: 'posts',
  question: 'How much of one core’s signature checks becomes signed durable posts, and what does a post cost?',
  run: async ({ isQuick, against, ...given }) => {
    const { warmup, rounds, ...chosen } = { ...(isQuick ? quick : thorough), ...given }
    const plain = await withDirectory(plainLoop)
    const here = (base: readonly Contestant[]) =>
      withBoard(async (board): Promise<readonly Table[]> => {
        const all = [...base, { name: base.length === 0 ? 'board' : 'change', board }]
        const haveDoor = (await Promise.all(all.map((each) => hasBatchDoor(each.board)))).every(Boolean)
        const loads = chosen.loads.filter(({ lines }) => lines === undefined || haveDoor)
        const fresh = all.map((each) => each.board.residentMib())
        for (const each of all) await warmUp(each.board, warmup, loads)
        const found = await withStatic((echo) => measureAll(all, echo, { loads, rounds }))
        const memory = all.map(
          ({ name, board }, n): Row => ({
            board: name,
            'VmRSS MiB': board.residentMib(),
            'VmRSS MiB when empty': fresh[n]!,
          }),
        )
        return [
          rateTable(all, found, plain),
          costTable(all, found),
          countTable(all, found),
          { title: 'memory', rows: memory },
        ]
      })
    if (against === undefined || against === projectDirectory) return here([])
    return withBoard((board) => here([{ name: 'base', board }]), {}, against)
  },
}

/** Older releases accept no batches. */
async function hasBatchDoor({ port }: BoardRun): Promise<boolean> {
  const { status } = await fetch(`http://127.0.0.1:${port}/v1/commands`, { method: 'POST', body: '' })
  return status !== 404
}

async function warmUp(board: BoardRun, count: number, loads: readonly Load[]): Promise<void> {
  for (let left = count; left > 0; left -= warmupStep) await board.post(64, Math.min(left, warmupStep))
  const door = loads.find(({ lines }) => lines !== undefined)
  if (door !== undefined) await send(board, door)
}

function send(board: BoardRun, { inFlight, posts, lines }: Load): Promise<Measured> {
  return lines === undefined ? board.post(inFlight, posts) : board.postBatches(inFlight, posts, lines)
}

/** Every load, all contestants in turn and every second time in reverse order, together with this machine's limits at that time. */
async function measureAll(
  all: readonly Contestant[],
  echo: Target,
  { loads, rounds }: { readonly loads: readonly Load[]; readonly rounds: number },
): Promise<ReadonlyMap<Load, readonly Round[]>> {
  const found = new Map(loads.map((load): [Load, Round[]] => [load, []]))
  for (let round = 0; round < rounds; round++) {
    for (const load of loads) {
      const before = rawVerify()
      const measured = new Map<string, Measured>()
      for (const { name, board } of round % 2 === 0 ? all : all.toReversed())
        measured.set(name, await send(board, load))
      const echoed = await all[0]!.board.echo(echo, load.lines === undefined ? load.inFlight : 64, load.posts)
      const after = rawVerify()
      found.get(load)!.push({
        verifyPerSecond: (before.perSecond + after.perSecond) / 2,
        verifyUs: (before.cpuUs + after.cpuUs) / 2,
        echo: echoed,
        measured,
      })
    }
  }
  return found
}

/** A row for each load and contestant; with a base, `of base` is the median of the ratios of neighbors. */
function rowsOf(
  all: readonly Contestant[],
  found: ReadonlyMap<Load, readonly Round[]>,
  cells: (of: (pick: (measured: Measured, round: Round) => number) => number, name: string) => Row,
): Row[] {
  return [...found].flatMap(([load, rounds]) =>
    all.map(({ name }) => {
      const of = (pick: (measured: Measured, round: Round) => number) =>
        median(rounds.map((round) => pick(round.measured.get(name)!, round)))
      return { 'in flight': load.name, ...(all.length > 1 ? { board: name } : {}), ...cells(of, name) }
    }),
  )
}

function rateTable(
  all: readonly Contestant[],
  found: ReadonlyMap<Load, readonly Round[]>,
  plain: { perSecond: number; syncPerSecond: number },
): Table {
  const rows = rowsOf(all, found, (of) => ({
    'posts/s': of(({ perSecond }) => perSecond),
    ...(all.length > 1
      ? { 'of base': of(({ perSecond }, { measured }) => perSecond / measured.get(all[0]!.name)!.perSecond) }
      : {}),
    'p50 ms': of(({ p50Ms }) => p50Ms),
    'p99 ms': of(({ p99Ms }) => p99Ms),
    'raw verify/s': of((_, { verifyPerSecond }) => verifyPerSecond),
    'of raw verify': of(({ perSecond }, { verifyPerSecond }) => perSecond / verifyPerSecond),
    'by processor time': of(shareByProcessor),
    'echo/s': of((_, { echo }) => echo.perSecond),
    'of echo': of(({ perSecond }, { echo }) => perSecond / echo.perSecond),
    'of plain loop': of(({ perSecond }) => perSecond / plain.perSecond),
  }))
  const notes = [
    'by processor time: of raw verify, if nothing else ran here and no core ever waited',
    'a latency of a batch is that of all its lines; its echo has 64 requests in flight',
    `plain loop of verify, append, sync on one thread, no network: ${Math.round(plain.perSecond)} posts/s`,
    `raw sync/s of 400 bytes: ${Math.round(plain.syncPerSecond)}`,
  ]
  return { title: 'signed posts', rows, notes }
}

/** Other work on the machine takes time from all, but the processor time per post stays nearly the same. */
function shareByProcessor({ serverUserUs, serverSystemUs, clientUs, requests }: Measured, { verifyUs }: Round): number {
  return (availableParallelism() * verifyUs) / ((serverUserUs + serverSystemUs + clientUs) / requests)
}

function costTable(all: readonly Contestant[], found: ReadonlyMap<Load, readonly Round[]>): Table {
  const rounds = [...found.values()].flat()
  const rows = rowsOf(all, found, (of, contestant) => {
    const threads = rounds.flatMap(({ measured }) => measured.get(contestant)!.threads)
    const names = [...new Set(threads.filter(({ cpuUs }) => cpuUs > 0).map(({ name }) => name))]
    const ofThread = (name: string) => (measured: Measured) =>
      measured.threads.reduce((sum, thread) => sum + (thread.name === name ? thread.cpuUs : 0), 0) / measured.requests
    return {
      ...Object.fromEntries(names.map((name) => [name, of(ofThread(name))])),
      'all threads': of(({ threads, requests }) => threads.reduce((sum, { cpuUs }) => sum + cpuUs, 0) / requests),
      'busiest thread': of(({ threads, requests }) => Math.max(...threads.map(({ cpuUs }) => cpuUs)) / requests),
      client: of(({ clientUs, requests }) => clientUs / requests),
      'raw verify': of((_, { verifyUs }) => verifyUs),
      echo: of((_, { echo }) => (echo.serverUserUs + echo.serverSystemUs) / echo.requests),
      'machine idle': of(({ idle }) => idle),
    }
  })
  const note = 'front: sockets, parsing, answers; machine idle: of the time of all cores, and other work here lowers it'
  return { title: 'processor time, us a post, by thread', rows, notes: [note] }
}

function countTable(all: readonly Contestant[], found: ReadonlyMap<Load, readonly Round[]>): Table {
  const rows = rowsOf(all, found, (of) => ({
    'voluntary switches': of(
      ({ threads, requests }) => threads.reduce((sum, { switches }) => sum + switches, 0) / requests,
    ),
    'reads and writes': of(({ readWriteCalls, requests }) => readWriteCalls / requests),
    ...Object.fromEntries(
      countNames.map((name) => [name, of(({ counts, requests }) => (counts?.[name] ?? Number.NaN) / requests)]),
    ),
  }))
  const note = 'reads and writes: system calls of these kinds on files and pipes, without those of sockets on uws'
  return { title: 'counts a post', rows, notes: [note] }
}

function plainLoop(directory: string): { perSecond: number; syncPerSecond: number } {
  const backend = chooseBackend()
  const items = signedBytes(64)
  const journal = Journal.open({ disk: machineDisk, directory: join(directory, 'journal') })
  const perSecond = rateOf(500, 8, (n) => {
    const { signature, message, publicKey } = items[n % 64]!
    if (backend.verify(signature, message, publicKey)) journal.append([{ type: 1, flags: 0, payload: message }])
  })
  journal.close()
  return { perSecond, syncPerSecond: rawSyncPerSecond(directory) }
}
