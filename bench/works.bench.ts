/**
 * How many transitions of works a second does a board take, each signed, decided, synced and in the signed log before it is answered,
 * with its room told? And what does one page of a hundred thousand works cost?
 *
 * The first is the real path: HTTP, signatures, a read of where the work is and of how its room takes the signer, the market, the
 * log, the room. Each of so many people claims a work and releases it again, one command after the other. The second is the
 * state alone, which is where a list is answered from.
 */
import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'
import { Listing } from '../actors/market/listing.ts'
import { untouched, type Work, type WorkState } from '../actors/market/work.ts'
import { opensslSigner, type Signer } from '../src/cli/sign.ts'
import { type FieldValue, signingBytes } from '../src/format/signing.ts'
import { type BoardRun, withBoard } from './board.ts'
import { threadTimes } from './machine.ts'
import type { Bench, Row } from './report.ts'

export const works: Bench = {
  name: 'works',
  question: 'How many durable transitions of works a second, and what does a page of 100,000 works cost?',
  run: async ({ isQuick }) => [
    { title: 'transitions through the real path (goal: 2,000/s)', rows: await transitionRows(isQuick) },
    { title: 'first page of 50 from 100,000 works (goal: 5 ms)', rows: listRows() },
  ],
}

async function transitionRows(isQuick: boolean): Promise<Row[]> {
  return withBoard(async (board) => {
    const rows: Row[] = []
    for (const [inFlight, rounds] of isQuick
      ? ([[32, 10]] as const)
      : ([
          [1, 100],
          [32, 40],
          [128, 30],
        ] as const))
      rows.push(await transitionRow(board, inFlight, rounds))
    return rows
  })
}

async function transitionRow(board: BoardRun, inFlight: number, rounds: number): Promise<Row> {
  const client = new Sender(board)
  const requester = person(`requester ${inFlight}`)
  const people = Array.from({ length: inFlight }, (_, n) => person(`worker ${inFlight} ${n}`))
  const held: string[] = []
  for (const [n] of people.entries()) held.push(await client.ask(requester, `work ${inFlight} ${n}`))
  const before = cpuUs(board)
  const start = performance.now()
  await Promise.all(
    people.map(async (worker, n) => {
      for (let round = 1; round <= rounds; round++) {
        await client.send(worker, { operation: 'work.claim', event_id: held[n]!, ttl: 7_200 })
        await client.send(worker, { operation: 'work.release', event_id: held[n]!, amount: round })
      }
    }),
  )
  const seconds = (performance.now() - start) / 1_000
  const transitions = inFlight * rounds * 2
  client.close()
  return {
    'in flight': inFlight,
    'transitions/s': Math.round(transitions / seconds),
    'ms each, mean': Math.round((seconds * 1_000 * inFlight * 10) / transitions) / 10,
    "board's processor us each": Math.round((cpuUs(board) - before) / transitions),
  }
}

function cpuUs({ pid }: BoardRun): number {
  return threadTimes(pid).reduce((sum, each) => sum + each.cpuUs, 0)
}

function person(name: string): Signer {
  return opensslSigner(createHash('sha256').update(`bench works ${name}`).digest())
}

class Sender {
  readonly #board: BoardRun
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 })
  #nonce = 0

  constructor(board: BoardRun) {
    this.#board = board
  }

  /** A practice work; its id. */
  async ask(requester: Signer, text: string): Promise<string> {
    const data = '{"schema":1,"title":"bench","simulated":true}'
    const { data: made } = (await this.send(requester, {
      operation: 'work.create',
      room: 'bench',
      text,
      amount: 10,
      data,
    })) as { data: { work: { id: string } } }
    return made.work.id
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
