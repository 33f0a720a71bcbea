/**
 * How soon does the tools directory answer?
 *
 * A real board with 10,000 and 100,000 listings of made-up words (few are frequent, most are rare, as in real lists), imported with the
 * command that operators use; then searches of two and three words from another process, one after another and eight at a time, each with
 * other words. Bounds: p50 30 ms, p95 120 ms one at a time, and a search never blocks the main thread for 10 ms.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readArguments } from '../src/cli/command-line.ts'
import { createKeyFile } from '../src/cli/key-file.ts'
import { toolsCommand } from '../src/cli/tools.ts'
import { importTools } from '../src/cli/tools-import.ts'
import { systemClock } from '../src/clock.ts'
import type { Load, Measured } from './client-process.ts'
import { withDirectory } from './machine.ts'
import type { Bench, Row } from './report.ts'
import type { ToolsBoardSaid } from './tools-board.ts'

const searches = 300
const startMsMax = 60_000

export const tools: Bench = {
  name: 'tools',
  question: 'How soon does the tools directory answer?',
  run: async ({ isQuick }) => {
    const rows: Row[] = []
    for (const count of isQuick ? [10_000] : [10_000, 100_000]) rows.push(...(await measureDirectory(count)))
    return [{ title: 'searches of two and three words, all different', rows }]
  },
}

function measureDirectory(count: number): Promise<Row[]> {
  return withDirectory(async (directory) => {
    const keyFile = join(directory, 'operator.json')
    const operator = createKeyFile(keyFile)
    const data = { DATA_DIR: join(directory, 'data'), PORT: '0', OPERATORS: operator.id, BROADSIDE_LIMITS: 'off' }
    const board = fork(new URL('./tools-board.ts', import.meta.url), {
      env: { ...process.env, ...data, LOG_LEVEL: 'warn' },
    })
    const client = fork(new URL('./client-process.ts', import.meta.url))
    try {
      const { address } = await said(board)
      const file = join(directory, 'list.jsonl')
      writeFileSync(file, Array.from({ length: count }, (_, n) => JSON.stringify(rowAt(n))).join('\n'))
      const importMs = await timed(() => importInto(address!, file, keyFile))
      board.send('reset')
      const firstMs = await timed(() =>
        fetch(`${address}/api/tools?query=${wordAt(1)}`).then((answer) => answer.text()),
      )
      board.send('tell')
      const firstHeldMs = (await said(board)).heldMs!
      const port = Number(new URL(address!).port)
      const rows: Row[] = []
      for (const inFlight of [1, 8]) {
        board.send('reset')
        const first = inFlight * searches
        const targets = Array.from({ length: searches }, (_, n) => `/api/tools?query=${queryAt(first + n)}`)
        const { p50Ms, p95Ms, p99Ms, perSecond } = await load(client, {
          port,
          pid: board.pid!,
          inFlight,
          work: { kind: 'gets', targets, count: searches },
        })
        board.send('tell')
        const { heldMs, rssMib } = await said(board)
        const found = { 'p50 ms': p50Ms, 'p95 ms': p95Ms, 'p99 ms': p99Ms, 'searches/s': perSecond }
        const cost = { 'main thread held ms': heldMs!, MiB: rssMib! }
        const begun = { 'import s': importMs / 1_000, 'first search ms': firstMs, 'and held ms': firstHeldMs }
        rows.push({ listings: count, 'in flight': inFlight, ...found, ...cost, ...begun })
      }
      return rows
    } finally {
      client.disconnect()
      const ended = once(board, 'exit')
      board.disconnect()
      await ended
    }
  })
}

async function importInto(address: string, file: string, keyFile: string): Promise<void> {
  const { args } = readArguments(toolsCommand, ['import', file, '--key', keyFile, '--url', address])
  const nothing = () => undefined
  await importTools(file, args, {
    clock: systemClock,
    wait: sleep,
    out: nothing,
    err: nothing,
    isInteractive: false,
    outStream: process.stdout,
  })
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const start = systemClock.monotonicMs()
  await run()
  return systemClock.monotonicMs() - start
}

async function said(board: ChildProcess): Promise<ToolsBoardSaid> {
  const [told] = (await once(board, 'message', { signal: AbortSignal.timeout(startMsMax) })) as [ToolsBoardSaid]
  return told
}

async function load(client: ChildProcess, asked: Load): Promise<Measured> {
  const answer = once(client, 'message', { signal: AbortSignal.timeout(120_000) })
  client.send(asked)
  const [{ measured, problem }] = (await answer) as [{ measured?: Measured; problem?: string }]
  if (measured === undefined) throw new Error(`the client failed: ${problem}`)
  return measured
}

/** Words by their frequency: the n-th occurs about 1/n as often as the first. */
const words = 4_000

function wordAt(n: number): string {
  const syllables = [
    'ka',
    'lo',
    'mi',
    'ren',
    'tu',
    'sa',
    'vek',
    'zor',
    'pli',
    'dan',
    'fo',
    'gri',
    'hal',
    'jo',
    'qui',
    'wes',
  ]
  let text = ''
  for (let rest = n + 17; rest > 0; rest = Math.floor(rest / syllables.length))
    text += syllables[rest % syllables.length]
  return text
}

/** A number in [0, 1) determined by n: the same list in every run. */
function chance(n: number): number {
  let mixed = Math.imul(n ^ 0x9e37_79b9, 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32
}

const anyWord = (n: number) => wordAt(Math.floor(words ** chance(n)) - 1)
const someWords = (n: number, count: number) =>
  Array.from({ length: count }, (_, at) => anyWord(n * 131 + at)).join(' ')

function rowAt(n: number) {
  return {
    id: `bench:${n}`,
    type: 'service',
    kind: 'x402',
    name: someWords(n, 3),
    description: someWords(n + 7_000_000, 18),
    url: `https://${wordAt(n % 997)}.example/${wordAt(n)}`,
    category: wordAt(n % 30),
    price: String(((n % 40) + 1) / 1_000),
    network: 'base',
    protocols: ['x402'],
    source: 'a bench',
  }
}

function queryAt(n: number): string {
  return someWords(n + 9_000_000, 2 + (n % 2)).replaceAll(' ', '+')
}
