/**
 * How many transitions of works a second does a board take, each signed, decided, synced and in the signed log before it is answered,
 * with its room told? And what does one page of a hundred thousand works cost?
 *
 * The first is the real path: HTTP, signatures, a read of how its room takes the signer, the market, the log, the room. Works with
 * real credits are asked for, claimed, delivered, submitted and accepted: four transitions, and a post for the result, each command
 * behind the answer to the one before. The client runs on the same cores, and has signed everything before the clock starts. The
 * second is the state alone, which is where a list is answered from.
 */
import { createHash } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Listing } from '../actors/market/listing.ts'
import { untouched, type Work, type WorkState } from '../actors/market/work.ts'
import { signCommand } from '../src/cli/sign.ts'
import { type BoardRun, withBoard } from './board.ts'
import type { Bench, Row, Table } from './report.ts'
import { person, requester, transitionsOfLife } from './sign-lives.ts'

export const works: Bench = {
  name: 'works',
  question: 'How many durable transitions of works a second, and what does a page of 100,000 works cost?',
  run: async ({ isQuick }) => [
    ...(await transitionTables(isQuick)),
    { title: 'first page of 50 from 100,000 works (goal: 5 ms)', rows: listRows() },
  ],
}

const operator = person('operator')

/** [in flight, works]. The first is a warm-up: before it the numbers are those of code that was not compiled yet. */
const thorough = [
  [128, 2_000],
  [1, 100],
  [32, 1_500],
  [128, 3_000],
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

/** Credits for whoever asks for the works. */
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
  for (const { id, cpuUs } of threads) {
    const name = board.threadNames.get(id) ?? 'other'
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

const count = 100_000
const states: readonly WorkState[] = ['open', 'claimed', 'submitted', 'accepted', 'accepted', 'expired']

function listRows(): Row[] {
  const listing = new Listing()
  for (let n = 0; n < count; n++) listing.add(workOf(n))
  const base = { simulated: false, isPublic: true, limit: 50 } as const
  const time = (query: object): number => {
    const start = performance.now()
    for (let n = 0; n < 50; n++) listing.find({ ...base, sort: 'new', ...query }, [], (work) => work)
    return Math.round(((performance.now() - start) / 50) * 1_000) / 1_000
  }
  const asked: readonly (readonly [string, object])[] = [
    ['newest', {}],
    ['open', { state: 'open' }],
    ['open, highest reward', { state: 'open', sort: 'reward' }],
    ['nearest deadline', { sort: 'deadline' }],
    ['of a room', { room: 'room-7' }],
    ['of a tag that few have', { capability: 'rare' }],
  ]
  return asked.map(([list, query]) => ({ list, 'ms, mean of 50': time(query) }))
}

function workOf(n: number): Work {
  const id = createHash('sha256').update(`work ${n}`).digest('hex').slice(0, 32)
  const at = 1_790_000_000 + Math.floor(n / 10)
  return {
    ...untouched(id, '0'.repeat(32), 1 + (n % 997), 0, id),
    id,
    room: `room-${n % 20}`,
    is_public: true,
    title: `work ${n}`,
    capabilities: n % 10_000 === 0 ? ['rare'] : ['qa'],
    simulated: false,
    eligibility: 'open',
    requester: String(n % 500),
    requester_key: '',
    reviewer: String(n % 500),
    reviewer_key: '',
    terms: {} as Work['terms'],
    created_at: at,
    deadline: at + 604_800,
    held_at: at,
    state: states[n % states.length]!,
    updated_at: at,
    steps: 1,
    shard: 0,
    places: [1],
  }
}
