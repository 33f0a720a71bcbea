/** Pages of 50 events, threads of 200 and the export: a board, the SQLite stack, and static bytes of the same size. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type SignedCommand, signCommand, signerFromSeed } from '../../src/cli/sign.ts'
import { type BoardRun, type Target, withStatic } from '../board.ts'
import type { Measured } from '../client-process.ts'
import { takeExport } from '../export.bench.ts'
import { median } from '../raw-limits.ts'
import type { Row } from '../report.ts'
import { roomCount } from '../sign-posts.ts'
import { type Peer, serviceId } from './servers.ts'

const inFlight = 64
const postsInRooms = 24_000
const threads = 40
const threadEvents = 200

type Reader = { readonly name: string; readonly target: Target; readonly threads: readonly string[] }

type Case = {
  readonly name: string
  readonly count: number
  readonly targets: (reader: Reader) => readonly string[]
  /** Each target is requested only once, so that no answer is cached. */
  readonly isOnce?: boolean
}

/** The same reads with five limits: the content is nearly the same, and no two are one URL. */
function nearby(targets: readonly string[], limit: number): string[] {
  const limits = [0, 1, 2, 3, 4].map((less) => limit - less)
  return limits.flatMap((each) => targets.map((target) => target.replace(`limit=${limit}`, `limit=${each}`)))
}

export async function measureReads(board: BoardRun, stack: Peer, isQuick: boolean): Promise<Row[]> {
  for (let left = postsInRooms; left > 0; left -= 4_000) {
    await board.post(64, 4_000)
    await stack.post(64, 4_000)
  }
  const all: Reader[] = [
    { name: 'Broadside', target: board, threads: await makeThreads(board.port, board.serviceId) },
    { name: stack.name, target: stack.target, threads: await makeThreads(stack.target.port, serviceId) },
  ]
  await sleep(500)
  const pages = Array.from({ length: roomCount }, (_, n) => `/api/events?room=room-${n}&limit=50`)
  const cases: readonly Case[] = [
    { name: 'page of 50 events, one URL', count: 20_000, targets: () => pages.slice(0, 1) },
    { name: 'page of 50 events, 200 rooms in turn', count: 6_000, targets: () => pages },
    { name: 'page of 46 to 50 events, each once', count: 300, targets: () => nearby(pages, 50), isOnce: true },
    { name: 'thread of 200 events, one URL', count: 5_000, targets: (reader) => reader.threads.slice(0, 1) },
    { name: 'thread of 200 events, 40 in turn', count: 2_000, targets: (reader) => reader.threads },
    {
      name: 'thread of 196 to 200, each once',
      count: 60,
      targets: ({ threads }) => nearby(threads, 200),
      isOnce: true,
    },
  ]
  const rounds = isQuick ? 1 : 3
  return withStatic(async (ready) => {
    const rows: Row[] = []
    for (const { name, count, targets, isOnce = false } of cases) {
      const found = new Map(all.map((each): [Reader, { got: Measured; ready: Measured }[]] => [each, []]))
      const of = (each: Reader, round: number) =>
        isOnce ? targets(each).slice(round * count, (round + 1) * count) : targets(each)
      if (!isOnce) for (const each of all) await board.get(inFlight, targets(each), count, each.target)
      for (let round = 0; round < rounds; round++) {
        for (const each of round % 2 === 0 ? all : all.toReversed()) {
          const got = await board.get(inFlight, of(each, round), count, each.target)
          const bytes = Math.round(got.bodyBytes / got.requests)
          found.get(each)!.push({ got, ready: await board.get(inFlight, [`/${bytes}`], count, ready) })
        }
      }
      rows.push(...all.map((each) => rowOf(name, each.name, found.get(each)!)))
    }
    return [...rows, ...(await exportRows(all, rounds))]
  })
}

function rowOf(read: string, server: string, rounds: readonly { got: Measured; ready: Measured }[]): Row {
  const of = (pick: (round: { got: Measured; ready: Measured }) => number) => median(rounds.map(pick))
  return {
    read,
    server,
    'reads/s': of(({ got }) => got.perSecond),
    'MB/s': of(({ got }) => got.bodyBytes / got.seconds / 1e6),
    'bytes each': of(({ got }) => got.bodyBytes / got.requests),
    'p99 ms': of(({ got }) => got.p99Ms),
    'server us each': of(({ got }) => (got.serverUserUs + got.serverSystemUs) / got.requests),
    'of ready bytes': of(({ got, ready }) => got.perSecond / ready.perSecond),
  }
}

async function exportRows(all: readonly Reader[], rounds: number): Promise<Row[]> {
  const found = new Map(all.map((each): [Reader, { rate: number; bytes: number; us: number }[]] => [each, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const each of all) {
      const taken = await takeExport(each.target, 'identity')
      if (round > 0) found.get(each)!.push(taken)
    }
  }
  const events = postsInRooms + threads * threadEvents
  return all.map((each): Row => {
    const of = (pick: (taken: { rate: number; bytes: number; us: number }) => number) =>
      median(found.get(each)!.map(pick))
    return {
      read: `export of ${events.toLocaleString('en')} events`,
      server: each.name,
      'MB/s': of(({ rate }) => rate),
      'bytes each': of(({ bytes }) => bytes / events),
      'server us each': of(({ us }) => us / events),
    }
  })
}

/** Threads of 200 events by one author; their paths. */
async function makeThreads(port: number, service: string): Promise<string[]> {
  const signer = signerFromSeed(Buffer.alloc(32, 7))
  const nowSeconds = Math.floor(Date.now() / 1000)
  const sign = (fields: Readonly<Record<string, string>>): SignedCommand =>
    signCommand({ operation: 'post', ...fields }, { signer, serviceId: service, nowSeconds })
  const send = async ({ body, eventId }: SignedCommand): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/command`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: new Uint8Array(body),
    })
    if (!answer.ok) throw new Error(`no post: ${await answer.text()}`)
    await answer.arrayBuffer()
    return eventId
  }
  const make = async (n: number): Promise<string> => {
    const text = 'a text of some length, as people write them to each other on a board that keeps what they wrote '
    const root = await send(sign({ room: `threads-${n}`, text: `${text} ${n}` }))
    const replies = Array.from({ length: threadEvents - 1 }, (_, k) =>
      sign({ room: `threads-${n}`, text: `${k} ${text.repeat(2)}`, reply_to: root }),
    )
    await Promise.all(replies.map(send))
    return `/api/thread/${root}?limit=${threadEvents}`
  }
  const paths: string[] = []
  for (let n = 0; n < threads; n++) paths.push(await make(n))
  return paths
}
