/**
 * No request makes the main thread do much, whatever strangers have put on the board. Work is counted, not timed: blocks of JavaScript that
 * are run (some 25 of them take a microsecond on the benchmark machine), and bytes of answers for native code.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { pages } from '../../src/board/pages.ts'
import { Client, person } from '../support/client.ts'
import { type InstrumentedBoard, startInstrumentedBoard } from '../support/instrumented-board.ts'
import type { WorkCount } from '../support/instrumented-server.ts'
import { callTool } from '../support/oauth-client.ts'
import { patience } from '../support/patience.ts'
import { randomPart } from '../support/random-part.ts'
import { StreamReader } from '../support/stream-reader.ts'
import { fillWithWorstCases, type WorstCaseRequest } from '../support/worst-case-board.ts'

/** The worst known takes 500,000, most of them counting the characters of a page's texts; a thread of tables took 300 million. */
const stepsMax = 600_000
/** Of one answer, unless it is streamed. */
const bytesMax = 2_000_000

let board: InstrumentedBoard
let client: Client
let asks: readonly WorstCaseRequest[]

beforeAll(async () => {
  board = await startInstrumentedBoard()
  client = await Client.of(board)
  asks = await fillWithWorstCases(client)
  await board.count()
})
afterAll(async () => {
  client?.close()
  await board?.stop()
})

/** Sends the request, and returns the number of bytes received. */
async function run(ask: WorstCaseRequest): Promise<number> {
  if ('tool' in ask) return JSON.stringify(await callTool(board.address, ask.tool, ask.args)).length
  if ('chars' in ask) {
    const reader = new StreamReader(board.address, ask.path)
    await reader.until((text) => text.length >= ask.chars)
    reader.close()
    return 0
  }
  if ('body' in ask) {
    const headers = { 'content-type': 'application/json' }
    const sent = await fetch(board.address + ask.path, { method: 'POST', headers, body: JSON.stringify(ask.body) })
    expect([ask.path, sent.status]).toEqual([ask.path, 200])
    return (await sent.arrayBuffer()).byteLength
  }
  const { status, text } = await ('path' in ask ? client.get(ask.path) : client.command(ask.who, ask.command))
  expect([ask, status, status === 200 ? '' : text.slice(0, 300)]).toEqual([ask, 200, ''])
  return Buffer.byteLength(text)
}

const nameOf = (ask: WorstCaseRequest) => ('path' in ask ? ask.path : 'tool' in ask ? `${ask.of} ${ask.tool}` : ask.of)
/** Streamed by the engine piece by piece, or a file as long as it is. */
const streamed = new Set(['/v1/export', '/a/{id}', '/tail/{room}'])

test('the worst known input of every public path costs the main thread a bounded amount of work', async () => {
  const wrong: string[] = []
  let worst = 0
  for (const ask of asks) {
    const bytes = await run(ask)
    const { steps, files } = await board.count()
    worst = Math.max(worst, steps)
    if (steps > stepsMax) wrong.push(`${nameOf(ask)}: ${steps} steps, ${JSON.stringify(files)}`)
    if (bytes > bytesMax && !streamed.has(ask.of)) wrong.push(`${nameOf(ask)}: ${bytes} bytes`)
  }
  expect(wrong).toEqual([])
  // Proves that steps are counted at all.
  expect(worst).toBeGreaterThan(20_000)
})

/** Everything triggered by earlier tests has settled: no event from now on causes a page to be rendered again. */
async function atRest(): Promise<void> {
  const quiet = async () => {
    await board.count()
    await sleep(100)
    expect((await board.count()).steps).toBeLessThan(1_000)
  }
  await vi.waitFor(quiet, patience)
}

test('a repeated request is sent from the cache: it costs almost nothing', async () => {
  for (const ask of randomPart(asks.filter((each) => 'path' in each && pages.some(({ path }) => path === each.of)))) {
    await atRest()
    await run(ask)
    await board.count()
    // Timers of the board only add to a count: the smallest of a few is the page's own.
    const counted: WorkCount[] = []
    while (counted.length < 3 && (counted.at(-1)?.steps ?? Infinity) >= 5_000) {
      await run(ask)
      counted.push(await board.count())
    }
    expect(Math.min(...counted.map(({ steps }) => steps)), `${nameOf(ask)} ${JSON.stringify(counted)}`).toBeLessThan(
      5_000,
    )
  }
})

describe('while the board changes', () => {
  const heaviest = () => (asks.find(({ of }) => of === '/e/{event_id}') as { path: string }).path

  test('many requests for one page share its rendering', async () => {
    await client.post(
      { ...(await import('../support/client.ts')).person('eve') },
      { room: 'threads', text: 'makes it old' },
    )
    await board.count()
    await client.get(heaviest())
    const { steps: alone } = await board.count()
    await client.post((await import('../support/client.ts')).person('eve'), { room: 'threads', text: 'makes it old' })
    await board.count()
    await Promise.all(Array.from({ length: 40 }, () => client.get(heaviest())))
    const { steps: together } = await board.count()
    expect(together).toBeLessThan(2 * alone + 40 * 2_000)
  })
})

test('a line of a batch costs what a command costs, whatever another line names', async () => {
  const eve = person('eve')
  const posts = Array.from({ length: 900 }, (_, n) => client.sign(eve, { operation: 'post', text: `line ${n}` }))
  const ids = Array.from({ length: 980 }, (_, n) => n.toString(16).padStart(32, '0'))
  const naming = client.sign(eve, { operation: 'post', text: [...ids, posts.at(-1)!.eventId].join(' ') }).body
  await board.count()
  const body = [...posts.map((post) => post.body), naming].join('\n')
  const answer = await fetch(`${board.address}/v1/commands`, { method: 'POST', body })
  const lines = (await answer.text()).trimEnd().split('\n')
  expect(lines).toHaveLength(901)
  const { steps } = await board.count()
  expect(steps / lines.length).toBeLessThan(2_500)
})

test('every public path has its worst input here', async () => {
  const { paths } = JSON.parse((await client.get('/openapi.json')).text) as {
    paths: Record<string, Record<string, unknown>>
  }
  const known = new Set(asks.map(({ of }) => of))
  /** Commands and deliveries have their own bodies and messages, whose sizes other tests bound. */
  const bodies = ['/v1/command', '/v1/commands', '/v1/stream', '/c64/{command}', '/in/{receiver}/{secret}']
  /** Fixed bytes, redirects, files of the log and steps of a sign-in: nothing in them grows with what strangers write. */
  const isFixed = (path: string) =>
    /^\/(robots\.txt|icon\.svg|export\/board-1\.schema\.json|docs\/broadside\.\w+|embed\/v1\.json|client\/(broadside|v1)\.\w+|assets\/|log\/|\.well-known\/|oauth\/|tools\/\{id\.\.\.\})/.test(
      path,
    )
  const missing = [...Object.keys(paths), ...pages.map(({ path }) => path)].filter(
    (path) => !known.has(path) && !bodies.includes(path) && !isFixed(path),
  )
  expect(missing).toEqual([])
})
