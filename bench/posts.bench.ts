/**
 * How much of one core's signature checks does the board turn into signed, durable, proven posts?
 *
 * A real board on a real disk; a client in a process of its own with commands signed before the clock starts, on the same
 * cores. Every answer is synced twice before it is given (shard journal, log). The goal is 0.6 of one core's raw
 * verification rate at 64 in flight. The plain alternative is a loop without network, threads or log that verifies a
 * command, appends it and syncs, one after the other.
 */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { chooseBackend } from '../src/verify/backends.ts'
import { Journal } from '../storage/journal.ts'
import { type BoardRun, withBoard } from './board.ts'
import type { Measured } from './client-process.ts'
import { withDirectory } from './machine.ts'
import { median, rateOf, rawSyncPerSecond, rawVerify, signedBytes } from './raw-limits.ts'
import type { Bench, Row, Table } from './report.ts'

/** 68,000 posts with the warm-up: the size of the corpus the memory goal is stated for. */
const thorough = {
  warmup: 2_000,
  rounds: 3,
  loads: [
    [1, 1_000],
    [16, 5_000],
    [64, 8_000],
    [256, 8_000],
  ],
} as const
const quick = {
  warmup: 2_000,
  rounds: 2,
  loads: [
    [1, 300],
    [64, 5_000],
  ],
} as const

type Round = {
  readonly inFlight: number
  readonly verifyPerSecond: number
  readonly verifyUs: number
  readonly measured: Measured
}

export const posts: Bench = {
  name: 'posts',
  question: 'How much of one core’s signature checks becomes signed durable posts?',
  run: async ({ isQuick }) => {
    const { warmup, rounds, loads } = isQuick ? quick : thorough
    const plain = await withDirectory(plainLoop)
    return withBoard(async (board) => {
      const fresh = board.residentMib()
      await board.post(64, warmup)
      const done: Round[] = []
      for (let round = 0; round < rounds; round++) {
        for (const [inFlight, count] of loads) done.push(await oneRound(board, inFlight, count))
      }
      const total = warmup + rounds * loads.reduce((sum, [, count]) => sum + count, 0)
      const memory = { 'posts on the board': total, 'VmRSS MiB': board.residentMib(), 'VmRSS MiB when empty': fresh }
      const each = loads.map(([inFlight]) => done.filter((round) => round.inFlight === inFlight))
      return [
        rateTable(each, plain),
        {
          title: 'where the processor went, us per post (front = HTTP, parsing, answers)',
          rows: each.map((of) => costRow(board, of)),
        },
        { title: 'memory', rows: [memory] },
      ]
    })
  },
}

/** The limit before and after the load, because other work on the machine comes and goes. */
async function oneRound(board: BoardRun, inFlight: number, count: number): Promise<Round> {
  const before = rawVerify()
  const measured = await board.post(inFlight, count)
  const after = rawVerify()
  return {
    inFlight,
    verifyPerSecond: (before.perSecond + after.perSecond) / 2,
    verifyUs: (before.cpuUs + after.cpuUs) / 2,
    measured,
  }
}

function rateTable(each: readonly Round[][], plain: { perSecond: number; syncPerSecond: number }): Table {
  const rows = each.map((of): Row => {
    const all = (pick: (measured: Measured) => number) => median(of.map(({ measured }) => pick(measured)))
    return {
      'in flight': of[0]!.inFlight,
      'posts/s': all(({ perSecond }) => perSecond),
      'p50 ms': all(({ p50Ms }) => p50Ms),
      'p99 ms': all(({ p99Ms }) => p99Ms),
      'raw verify/s': median(of.map(({ verifyPerSecond }) => verifyPerSecond)),
      'of raw verify': median(of.map(({ verifyPerSecond, measured }) => measured.perSecond / verifyPerSecond)),
      'by processor time': median(of.map(shareByProcessor)),
      'of plain loop': all(({ perSecond }) => perSecond) / plain.perSecond,
    }
  })
  const loop = `plain loop of verify, append, sync on one thread, no network: ${Math.round(plain.perSecond)} posts/s`
  const share =
    'by processor time: the same ratio if nothing else ran here and no core ever waited, from the processor time of board, client and a raw verification'
  const syncs = `raw sync/s of 400 bytes: ${Math.round(plain.syncPerSecond)}`
  return { title: 'signed posts', rows, notes: [share, loop, syncs] }
}

/** Other work on the machine takes time from all, but what each spends on a post stays nearly the same. */
function shareByProcessor({ measured, verifyUs }: Round): number {
  const { serverUserUs, serverSystemUs, clientUs, requests } = measured
  return (availableParallelism() * verifyUs) / ((serverUserUs + serverSystemUs + clientUs) / requests)
}

function costRow(board: BoardRun, rounds: readonly Round[]): Row {
  const perPost = (pick: (measured: Measured) => number) =>
    median(rounds.map(({ measured }) => pick(measured) / measured.requests))
  const ofThread = (name: string) => (measured: Measured) =>
    measured.threads.reduce(
      (sum, { id, cpuUs }) => sum + ((board.threadNames.get(id) ?? 'other') === name ? cpuUs : 0),
      0,
    )
  const threads = [...board.threadNames.values(), 'other'].map((name) => [name, perPost(ofThread(name))])
  return {
    'in flight': rounds[0]!.inFlight,
    ...Object.fromEntries(threads),
    'server user': perPost(({ serverUserUs }) => serverUserUs),
    'server system': perPost(({ serverSystemUs }) => serverSystemUs),
    client: perPost(({ clientUs }) => clientUs),
    'raw verify': median(rounds.map(({ verifyUs }) => verifyUs)),
  }
}

function plainLoop(directory: string): { perSecond: number; syncPerSecond: number } {
  const backend = chooseBackend()
  const items = signedBytes(64)
  const journal = Journal.open({ directory: join(directory, 'journal') })
  const perSecond = rateOf(500, 8, (n) => {
    const { signature, message, publicKey } = items[n % 64]!
    if (backend.verify(signature, message, publicKey)) journal.append([{ type: 1, flags: 0, payload: message }])
  })
  journal.close()
  return { perSecond, syncPerSecond: rawSyncPerSecond(directory) }
}
