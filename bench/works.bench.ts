/**
 * How many transitions of works a second does a board take, each signed, decided, synced and in the signed log before it is answered,
 * with its room told? And what does one page of a hundred thousand works cost?
 *
 * The first is the real path: HTTP, signatures, a read of how its room takes the signer, the market, the log, the room. Works with
 * real credits are asked for, claimed, delivered, submitted and accepted: four transitions, and a post for the result, each command
 * behind the answer to the one before. The client is in this process, on the same cores. The second is the state alone, which is
 * where a list is answered from.
 */
import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'
import { availableParallelism } from 'node:os'
import { Listing } from '../actors/market/listing.ts'
import { untouched, type Work, type WorkState } from '../actors/market/work.ts'
import { opensslSigner, type Signer } from '../src/cli/sign.ts'
import { type FieldValue, signingBytes } from '../src/format/signing.ts'
import { type BoardRun, withBoard } from './board.ts'
import { threadTimes } from './machine.ts'
import type { Bench, Row, Table } from './report.ts'

export const works: Bench = {
  name: 'works',
  question: 'How many durable transitions of works a second, and what does a page of 100,000 works cost?',
  run: async ({ isQuick }) => [
    ...(await transitionTables(isQuick)),
    { title: 'first page of 50 from 100,000 works (goal: 5 ms)', rows: listRows() },
  ],
}

const operator = person('operator')
const [requester, reward] = [person('requester'), 10]

/** [in flight, cycles of each]. The first is a warm-up: before it the numbers are those of code that was not compiled yet. */
const thorough = [
  [32, 40],
  [1, 200],
  [32, 60],
  [128, 25],
] as const
const quick = [
  [32, 10],
  [32, 12],
] as const

type Cost = { readonly rates: Row; readonly threads: Row }

async function transitionTables(isQuick: boolean): Promise<Table[]> {
  return withBoard(
    async (board) => {
      const client = new Sender(board)
      await client.send(operator, { operation: 'credit.grant', target: requester.id, amount: 1_000_000 })
      const costs: Cost[] = []
      for (const [inFlight, cycles] of isQuick ? quick : thorough)
        costs.push(await cost(board, client, inFlight, cycles))
      client.close()
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

async function cost(board: BoardRun, client: Sender, inFlight: number, cycles: number): Promise<Cost> {
  const workers = Array.from({ length: inFlight }, (_, n) => person(`worker ${n}`))
  const before = new Map(threadTimes(board.pid).map(({ id, cpuUs }) => [id, cpuUs]))
  const clientBefore = process.cpuUsage()
  const start = performance.now()
  await Promise.all(
    workers.map(async (worker) => {
      for (let n = 0; n < cycles; n++) await client.cycle(worker)
    }),
  )
  const seconds = (performance.now() - start) / 1_000
  const transitions = inFlight * cycles * 4
  const { user, system } = process.cpuUsage(clientBefore)
  const threads: Record<string, number> = {}
  let boardUs = 0
  for (const { id, cpuUs } of threadTimes(board.pid)) {
    const name = board.threadNames.get(id) ?? 'other'
    const us = (cpuUs - (before.get(id) ?? 0)) / transitions
    threads[name] = (threads[name] ?? 0) + us
    boardUs += us
  }
  const clientUs = (user + system) / transitions
  return {
    rates: {
      'in flight': inFlight,
      'transitions/s': Math.round(transitions / seconds),
      'ms each, mean': Math.round((seconds * 1_000 * inFlight * 10) / transitions) / 10,
      'by processor time': Math.round((availableParallelism() * 1e6) / (boardUs + clientUs)),
    },
    threads: {
      'in flight': inFlight,
      ...Object.fromEntries(Object.entries(threads).map(([name, us]) => [name, Math.round(us)])),
      board: Math.round(boardUs),
      client: Math.round(clientUs),
    },
  }
}

function person(name: string): Signer {
  return opensslSigner(createHash('sha256').update(`bench works ${name}`).digest())
}

class Sender {
  readonly #board: BoardRun
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 })
  #nonce = 0
  #cycles = 0

  constructor(board: BoardRun) {
    this.#board = board
  }

  /** The life of one work that is paid for: four transitions. */
  async cycle(worker: Signer): Promise<void> {
    const said = `${++this.#cycles}`
    const data = '{"schema":1,"title":"bench"}'
    const work = { operation: 'work.create', room: 'bench', text: `work ${said}`, amount: reward, data }
    const { data: made } = (await this.send(requester, work)) as { data: { work: { id: string } } }
    const { id } = made.work
    await this.send(worker, { operation: 'work.claim', event_id: id, ttl: 7_200 })
    const result = { operation: 'post', room: 'bench', text: `result ${said}`, kind: 'result', reply_to: id }
    const { data: post } = (await this.send(worker, result)) as { data: { event_id: string } }
    await this.send(worker, { operation: 'work.submit', event_id: id, target: post.event_id, amount: 1 })
    const hash = createHash('sha256').update(`result ${said}`).digest('hex')
    const accepted = JSON.stringify({ schema: 1, result_sha256: hash })
    await this.send(requester, { operation: 'work.accept', event_id: id, data: accepted })
  }

  send(
    signer: Signer,
    fields: Readonly<Record<string, FieldValue>> & { readonly operation: string },
  ): Promise<unknown> {
    const { serviceId, port } = this.#board
    const nonce = `works ${++this.#nonce} ${process.pid}`
    const command = { ...fields, public_key: signer.publicKey, timestamp: Math.floor(Date.now() / 1_000), nonce }
    const signature = signer.sign(signingBytes(serviceId, command)).toString('base64url')
    const body = JSON.stringify({ ...command, signature })
    return new Promise((resolve, reject) => {
      const headers = { 'content-length': Buffer.byteLength(body) }
      const sent = request({ port, path: '/v1/command', method: 'POST', agent: this.#agent, headers }, (answer) => {
        let text = ''
        answer.on('data', (chunk: Buffer) => {
          text += chunk
        })
        answer.on('end', () =>
          answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${fields.operation}: ${text}`)),
        )
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
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
