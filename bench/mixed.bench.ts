/**
 * What do readers cost writers?
 *
 * Posts at a steady rate, with and without readers of every kind, in turn on one board. The latency of a post counts from when it was due,
 * so that a board that falls behind shows it. The bound: with readers p99 is at most three times that of the same posts without.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { type BoardRun, measure, withBoard } from './board.ts'
import type { Measured } from './client-process.ts'
import type { ReadersFound, ReadersTask } from './mixed-readers.ts'
import { median } from './raw-limits.ts'
import type { Bench, Row } from './report.ts'

const rooms = 100
const tailsPerRoom = 10
const postsPerSecond = 2_000
const connections = 128
const searchesPerSecond = 50
const exports = 2
const exportBytesPerSecond = 20e6

type Round = { readonly posts: Measured; readonly readers?: ReadersFound }

export const mixed: Bench = {
  name: 'mixed',
  question: 'What do readers cost those who write?',
  run: async ({ isQuick, warmup = 20_000, rounds = isQuick ? 1 : 5 }) => {
    const seconds = isQuick ? 4 : 10
    const found = await withBoard(async (board) => {
      const client = fork(new URL('./client-process.ts', import.meta.url))
      const readers = fork(new URL('./mixed-readers.ts', import.meta.url))
      try {
        await postSteadily(client, board, warmup / postsPerSecond)
        const alone: Round[] = []
        const beside: Round[] = []
        for (let round = 0; round < rounds; round++) {
          alone.push({ posts: await postSteadily(client, board, seconds) })
          beside.push(await postBeside(client, readers, board, seconds))
        }
        return { alone, beside }
      } finally {
        client.disconnect()
        readers.disconnect()
      }
    })
    return [
      {
        title: `${postsPerSecond} posts a second, alone and beside ${rooms * tailsPerRoom} tails, ${searchesPerSecond} searches a second and ${exports} exports (medians of ${rounds} rounds of ${seconds} s)`,
        rows: [rowOf('alone', found.alone), rowOf('beside readers', found.beside, found.alone)],
      },
    ]
  },
}

function postSteadily(client: ChildProcess, { port, pid, serviceId }: BoardRun, seconds: number): Promise<Measured> {
  const count = Math.round(postsPerSecond * seconds)
  const work = { kind: 'steady posts', serviceId, count, perSecond: postsPerSecond, rooms } as const
  return measure(client, { port, pid, inFlight: connections, work })
}

async function postBeside(
  client: ChildProcess,
  readers: ChildProcess,
  board: BoardRun,
  seconds: number,
): Promise<Round> {
  const task: ReadersTask = {
    port: board.port,
    rooms,
    tailsPerRoom,
    searchesPerSecond,
    exports,
    exportBytesPerSecond,
  }
  readers.send(task)
  await answerOf(readers)
  const posts = await postSteadily(client, board, seconds)
  readers.send('stop')
  return { posts, readers: (await answerOf(readers)) as ReadersFound }
}

async function answerOf(child: ChildProcess): Promise<unknown> {
  const [said] = (await once(child, 'message')) as [{ found?: unknown; problem?: string }]
  if (said.problem !== undefined) throw new Error(`the readers failed: ${said.problem}`)
  return said.found
}

function rowOf(how: string, rounds: readonly Round[], base?: readonly Round[]): Row {
  const of = (value: (round: Round) => number): number => median(rounds.map(value))
  const ratios = base?.map(({ posts }, n) => rounds[n]!.posts.p99Ms / posts.p99Ms)
  return {
    '': how,
    'posts/s': of(({ posts }) => posts.perSecond),
    'p50 ms': of(({ posts }) => posts.p50Ms),
    'p99 ms': of(({ posts }) => posts.p99Ms),
    'p99 of alone': ratios === undefined ? '' : median(ratios),
    'board us a post': of(({ posts }) => (posts.serverUserUs + posts.serverSystemUs) / posts.requests),
    'machine idle': of(({ posts }) => posts.idle),
    'deliveries/s': of(({ readers }) => readers?.deliveriesPerSecond ?? 0),
    'searches/s': of(({ readers }) => readers?.searchesPerSecond ?? 0),
    'export MB/s': of(({ readers }) => (readers?.exportBytesPerSecond ?? 0) / 1e6),
  }
}
