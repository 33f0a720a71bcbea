/**
 * Does one hostile client hurt the others?
 *
 * A board holds what is most expensive to render, to compare and to search. One client requests it over 16 connections as fast as it is
 * answered, with all limits on, while another requests /healthz fifty times a second. The goal is a p99 of 50 ms for /healthz, on both
 * engines. The first row has only /healthz: the baseline of the machine.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BoardClient } from '../src/cli/client.ts'
import { type CommandFields, signCommand, signerFromSeed } from '../src/cli/sign.ts'
import { wideTable, words } from '../test/support/worst-case-board.ts'
import { type BoardRun, withBoard } from './board.ts'
import type { Answered, Attack, HostileRequest } from './hostile-client.ts'
import { processTime, withDirectory } from './machine.ts'
import type { Bench, Row } from './report.ts'

const connections = 16
const probeEveryMs = 20
const markdown = '{"schema":1,"format":"markdown"}'

type Scenario = { readonly name: string; readonly requests: readonly HostileRequest[] }

export const hostile: Bench = {
  name: 'hostile',
  question: 'Does one hostile client hurt the others?',
  run: ({ isQuick }) =>
    withDirectory(async (directory) => {
      const data = join(directory, 'board')
      const scenarios = await withBoard((board) => fill(board, isQuick), { DATA_DIR: data, BROADSIDE_LIMITS: 'off' })
      const rows: Row[] = []
      for (const engine of ['uws', 'node']) {
        for (const scenario of scenarios) {
          const given = { DATA_DIR: data, BROADSIDE_LIMITS: 'on', HTTP_ENGINE: engine }
          rows.push(await withBoard((board) => attacked(board, engine, scenario, isQuick ? 3 : 10), given))
        }
      }
      return [
        { title: `/healthz every ${probeEveryMs} ms, the attack over ${connections} connections beside it`, rows },
      ]
    }),
}

async function fill({ port, serviceId }: BoardRun, isQuick: boolean): Promise<readonly Scenario[]> {
  const client = new BoardClient({ url: `http://127.0.0.1:${port}` })
  const signer = signerFromSeed(Buffer.alloc(32, 7))
  const say = async (fields: Omit<CommandFields, 'operation'>): Promise<string> => {
    const nowSeconds = Math.floor(Date.now() / 1_000)
    const { body, eventId } = signCommand({ ...fields, operation: 'post' }, { signer, serviceId, nowSeconds })
    await client.command(body)
    return eventId
  }
  const table = wideTable(1_000, 66)
  const thread = await say({ room: 'tables', text: table, data: markdown })
  for (let n = 0; n < 55; n++) await say({ room: 'tables', text: `${n}\n\n${table}`, data: markdown, reply_to: thread })
  const tables = `${wideTable(200, 204)}\n`
  const long = await say({ room: 'tables', text: tables.repeat(14), data: markdown })
  const edited = await say({ room: 'edits', text: words(1_600, 0) })
  for (let n = 1; n < 31; n++)
    await say({ room: 'edits', text: words(1_600, n), data: JSON.stringify({ schema: 1, supersedes: edited }) })
  for (let n = 0; n < (isQuick ? 500 : 5_000); n++) await say({ room: 'words', text: words(40, 100 + n) })
  await client.read('/api/events?query=warm')
  client.close()
  const letters = Array.from({ length: 26 }, (_, n) => String.fromCharCode(97 + n))
  const prefixes = encodeURIComponent(letters.map((letter) => `${letter}*`).join(' '))
  const taken = encodeURIComponent('aa* ba* ca* da*')
  const page = (path: string): HostileRequest => ({ method: 'GET', path })
  return [
    { name: 'nothing', requests: [] },
    { name: 'a thread of tables', requests: [page(`/e/${thread}`), page(`/e/${long}`)] },
    { name: 'a history of random words', requests: [page(`/e/${edited}/history`)] },
    {
      name: 'refused searches by 26 letters',
      requests: [page(`/api/events?query=${prefixes}`), page(`/search?query=${prefixes}`)],
    },
    {
      name: 'the most expensive accepted searches',
      requests: [page(`/api/events?query=${taken}`), page(`/search?query=${taken}`)],
    },
    { name: 'invalid bodies of 2 MiB', requests: [{ method: 'POST', path: '/v1/command', body: wideBody() }] },
  ]
}

/** Not a command: an array field has far too many items. */
function wideBody(): string {
  return `{"operation":"post","attachments":[${'"a",'.repeat(500_000)}"a"]}`
}

async function attacked(board: BoardRun, engine: string, { name, requests }: Scenario, seconds: number): Promise<Row> {
  await probe(board.port, 1)
  const before = cpuSeconds(board)
  const [latencies, answered] = await Promise.all([
    probe(board.port, seconds),
    requests.length === 0 ? {} : attack({ port: board.port, connections, seconds, requests }),
  ])
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
  return {
    attack: name,
    engine,
    'p50 ms': at(0.5),
    'p99 ms': at(0.99),
    'max ms': sorted.at(-1)!,
    'cpu of the board': (cpuSeconds(board) - before) / seconds,
    answers: Object.entries(answered)
      .map(([status, count]) => `${count} x ${status}`)
      .join(', '),
  }
}

function cpuSeconds({ pid }: BoardRun): number {
  const { userUs, systemUs } = processTime(pid)
  return (userUs + systemUs) / 1e6
}

async function attack(given: Attack): Promise<Answered> {
  const child = fork(new URL('./hostile-client.ts', import.meta.url))
  try {
    child.send(given)
    const [answered] = (await once(child, 'message')) as [Answered]
    return answered
  } finally {
    child.disconnect()
  }
}

/** Milliseconds of each answer, at a steady rate however long earlier answers took (an open loop). */
async function probe(port: number, seconds: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 })
  const asked: Promise<number>[] = []
  const start = performance.now()
  for (let n = 0; n * probeEveryMs < seconds * 1_000; n++) {
    await sleep(Math.max(0, start + n * probeEveryMs - performance.now()))
    asked.push(healthz(agent, port))
  }
  const latencies = await Promise.all(asked)
  agent.destroy()
  return latencies
}

function healthz(agent: Agent, port: number): Promise<number> {
  const start = performance.now()
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, agent, path: '/healthz' }, (response) => {
      response.resume()
      response.once('end', () => resolve(performance.now() - start))
    }).once('error', reject)
  })
}
