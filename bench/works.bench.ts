/**
 * How many transitions of works per second can a board process, each signed, decided, synced and in the signed log before it is answered,
 * with its room notified?
 *
 * The real path: HTTP, signatures, a read of the signer's standing in the room, the market, the log, the room. Works with real credits are
 * requested, claimed, delivered, submitted and accepted: four transitions, and a post for the result, each command after the answer to the
 * previous one. The client runs on the same cores, and has signed everything before the clock starts.
 */
import { availableParallelism } from 'node:os'
import { signCommand } from '../src/cli/sign.ts'
import { type BoardRun, withBoard } from './board.ts'
import type { Bench, Row, Table } from './report.ts'
import { person, requester, transitionsOfLife } from './sign-lives.ts'

export const works: Bench = {
  name: 'works',
  question: 'How many durable transitions of works a second?',
  run: ({ isQuick }) => transitionTables(isQuick),
}

const operator = person('operator')

/** [in flight, works]. The first is a warm-up, in which code is still being compiled. */
const thorough = [
  [128, 1_500],
  [1, 60],
  [32, 1_000],
  [128, 2_000],
  [512, 2_500],
] as const
const quick = [
  [32, 300],
  [32, 400],
] as const

type Cost = { readonly rates: Row; readonly threads: Row }

async function transitionTables(isQuick: boolean): Promise<Table[]> {
  return withBoard(
    async (board) => {
      await grant(board)
      const costs: Cost[] = []
      for (const [inFlight, count] of isQuick ? quick : thorough) costs.push(await cost(board, inFlight, count))
      const [, ...measured] = costs
      const note =
        'by processor time: what as many cores would take if nothing else ran here and no sync was waited for, board and client together'
      return [
        {
          title: 'transitions through the real path (goal: 2,000/s)',
          rows: measured.map(({ rates }) => rates),
          notes: [note],
        },
        {
          title: 'where the processor went, us per transition (front = HTTP, parsing, notices, answers)',
          rows: measured.map(({ threads }) => threads),
        },
      ]
    },
    { OPERATORS: operator.id },
  )
}

/** Credits for the requesters of the works. */
async function grant({ port, serviceId }: BoardRun): Promise<void> {
  const fields = { operation: 'credit.grant', target: requester.id, amount: 1_000_000 }
  const nowSeconds = Math.floor(Date.now() / 1_000)
  const { body } = signCommand(fields, { signer: operator, serviceId, nowSeconds })
  const answer = await fetch(`http://127.0.0.1:${port}/v1/command`, { method: 'POST', body })
  if (!answer.ok) throw new Error(`no credits: ${await answer.text()}`)
}

async function cost(board: BoardRun, inFlight: number, count: number): Promise<Cost> {
  const { seconds, p50Ms, p99Ms, clientUs, threads } = await board.live(inFlight, count)
  const transitions = count * transitionsOfLife
  const byName: Record<string, number> = {}
  let boardUs = 0
  for (const { name, cpuUs } of threads) {
    byName[name] = (byName[name] ?? 0) + cpuUs / transitions
    boardUs += cpuUs / transitions
  }
  const client = clientUs / transitions
  return {
    rates: {
      'in flight': inFlight,
      'transitions/s': Math.round(transitions / seconds),
      'p50 ms': Math.round(p50Ms * 10) / 10,
      'p99 ms': Math.round(p99Ms * 10) / 10,
      'by processor time': Math.round((availableParallelism() * 1e6) / (boardUs + client)),
    },
    threads: {
      'in flight': inFlight,
      ...Object.fromEntries(Object.entries(byName).map(([name, us]) => [name, Math.round(us)])),
      board: Math.round(boardUs),
      client: Math.round(client),
    },
  }
}
