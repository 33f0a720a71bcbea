/**
 * Does one hostile client make the others wait?
 *
 * Each attack is one address at the rates that a board allows, from a process beside it on the same cores; meanwhile `/healthz` is
 * asked a hundred times a second by another. The aim is 50 ms at p99. What nobody attacks is measured first: on a machine that
 * others use too, a process is not run for tens of milliseconds, whatever it would do. Before the bounds that this holds, the tables
 * kept the board from answering anybody for 4 to 38 s, the histories for 2 s each.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Client, person } from '../test/support/client.ts'
import { wideTable, words } from '../test/support/worst-board.ts'
import { type BoardRun, withBoard } from './board.ts'
import type { Attack, Attacked } from './hostile-attack.ts'
import { withDirectory } from './machine.ts'
import type { Bench, Row, Table } from './report.ts'

const askedPerSecond = 100
const connections = 8
/** Reads that one address may make in a minute, by default. */
const readsPerSecond = 20

type Named = Omit<Attack, 'address' | 'seconds'> & { readonly name: string }

export const hostile: Bench = {
  name: 'hostile',
  question: 'Does one hostile client make the others wait?',
  run: async ({ isQuick }) => {
    const tables: Table[] = []
    for (const engine of ['uws', 'node']) tables.push(await tableOf(engine, isQuick ? 4 : 20))
    return tables
  },
}

/** The board is filled with all rates lifted, and attacked with all of them in force. */
function tableOf(engine: string, seconds: number): Promise<Table> {
  return withDirectory(async (directory) => {
    const more = { DATA_DIR: join(directory, 'data'), HTTP_ENGINE: engine }
    const attacks = await withBoard((board) => fill(board), more)
    const rows = await withBoard(
      async (board) => {
        const found: Row[] = []
        for (const attack of attacks) found.push(await rowOf(board, attack, seconds))
        return found
      },
      { ...more, BROADSIDE_LIMITS: 'on' },
    )
    return { title: `/healthz while one client attacks, engine ${engine}, ${seconds} s each`, rows }
  })
}

async function rowOf(board: BoardRun, { name, ...attack }: Named, seconds: number): Promise<Row> {
  const child = fork(new URL('./hostile-attack.ts', import.meta.url))
  try {
    const answer = once(child, 'message')
    child.send({ ...attack, address: `http://127.0.0.1:${board.port}`, seconds } satisfies Attack)
    const health = await board.getPaced(askedPerSecond, connections, ['/healthz'], seconds * askedPerSecond)
    const [{ attacked, problem }] = (await answer) as [{ attacked?: Attacked; problem?: string }]
    if (attacked === undefined) throw new Error(`the attack failed: ${problem}`)
    const statuses = Object.entries(attacked.statuses).map(([status, count]) => `${count} x ${status}`)
    return {
      attack: name,
      'p50 ms': health.p50Ms,
      'p95 ms': health.p95Ms,
      'p99 ms': health.p99Ms,
      'attack answered': statuses.join(', '),
      'its p99 ms': attacked.p99Ms,
      'board MiB': board.residentMib(),
    }
  } finally {
    child.disconnect()
  }
}

const markdown = '{"schema":1,"format":"markdown"}'
const hostilePerson = person('hostile')

/** Puts what is attacked on the board. */
async function fill({ port }: BoardRun): Promise<Named[]> {
  const client = await Client.of({ address: `http://127.0.0.1:${port}` })
  const say = async (fields: Readonly<Record<string, string>>): Promise<string> =>
    (await client.post(hostilePerson, fields)).data.event_id!
  const threads: string[] = []
  for (const text of [wideTable(1_000, 66), '<http://a>'.repeat(600), '\u200b\u200e'.repeat(3_000), '1. a\n'.repeat(1_200)]) {
    const root = await say({ room: 'tables', text, data: markdown })
    for (let n = 0; n < 55; n++) await say({ text: `${n}${text}`, data: markdown, reply_to: root })
    threads.push(`/e/${root}`)
  }
  const tables = Array.from({ length: 14 }, () => wideTable(200, 204)).join('\n')
  threads.push(`/e/${await say({ room: 'tables', text: tables, data: markdown })}`, '/room/tables')
  const documents: string[] = []
  for (let n = 0; n < 10; n++) {
    const data = '{"schema":1,"title":"Tables"}'
    const made = await client.command(hostilePerson, { operation: 'docs.create', text: `${n}\n\n${tables}`, data })
    const { id } = (made.data as unknown as { doc: { id: string } }).doc
    documents.push(`/d/${id}`, `/d/${id}/history`)
  }
  const histories: string[] = []
  for (let post = 0; post < 4; post++) {
    const id = await say({ room: 'histories', text: words(1_600, 100 * post) })
    for (let n = 1; n < 31; n++)
      await say({ text: words(1_600, 100 * post + n), room: 'histories', data: `{"schema":1,"supersedes":"${id}"}` })
    histories.push(`/e/${id}/history`)
  }
  for (let n = 0; n < 300; n++) await say({ room: 'found', text: words(200, 10_000 + n) })
  client.close()
  const prefixes = [...'abcdefghijklmnopqrstuvwxyz012345'].map((letter) => `${letter}*`).join(' ')
  const long = 'x'.repeat(2 * 1024 * 1024 - 100)
  return [
    { name: 'none', perSecond: 1 },
    { name: 'threads', perSecond: readsPerSecond, paths: threads, room: 'tables' },
    { name: 'documents', perSecond: readsPerSecond, paths: documents, room: 'tables' },
    { name: 'histories', perSecond: readsPerSecond, paths: histories, room: 'histories' },
    {
      name: '32 prefixes',
      perSecond: 15,
      paths: [`/api/events?query=${encodeURIComponent(prefixes)}`, `/search?q=${encodeURIComponent(prefixes)}`],
    },
    {
      name: '2 MiB bodies',
      perSecond: 1,
      bodies: [
        `{"operation":"rooms.list","text":"${long}"}`,
        `{"operation":"rooms.list","members":[${'"a",'.repeat(500_000)}"a"]}`,
        `{"operation":"post","${'[{'.repeat(10)}${long}`,
        '['.repeat(2_000_000),
      ],
    },
  ]
}
