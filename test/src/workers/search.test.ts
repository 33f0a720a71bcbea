/** The search thread on a board that has never been searched: while its index is being built, and while the journals cannot be read. */
import { rmSync } from 'node:fs'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { Link } from '../../../actors/kernel/link.ts'
import { logDirectory, searchDirectory } from '../../../src/board-directory.ts'
import { systemClock } from '../../../src/clock.ts'
import { machine } from '../../../src/platform.ts'
import { readQuery } from '../../../src/search/query.ts'
import type { SearchAnswer, SearchAsk } from '../../../src/search/search.ts'
import { type SearchRequest, thread } from '../../../src/workers/search.ts'
import { Journal } from '../../../storage/journal.ts'
import { boardDirectory, startBoard } from '../../support/board-process.ts'
import { Client, person } from '../../support/client.ts'
import { FaultyDisk } from '../../support/faulty-disk.ts'

/** More than three steps of indexing take in. */
const posts = 3_200

async function boardWithPosts(directory: string): Promise<void> {
  const board = await startBoard({ directory, env: { BROADSIDE_LIMITS: 'off' } })
  const client = await Client.of(board)
  const ada = person('search thread')
  await client.post(ada, { text: 'the oldest of all' })
  for (let n = 1; n < posts - 1; n += 100)
    await Promise.all(
      Array.from({ length: Math.min(100, posts - 1 - n) }, (_, at) => client.post(ada, { text: `number ${n + at}` })),
    )
  await client.post(ada, { text: 'the newest of all' })
  client.close()
  await board.stop()
}

function logOf(directory: string): { through: number; journalId: Uint8Array } {
  const log = Journal.open({ disk: machine.disk, directory: logDirectory(directory) })
  const through = log.nextSeq - 1
  const journalId = log.id
  log.close()
  return { through, journalId }
}

/** A clock on which everything takes seconds, so that building the index takes long. */
function slowClock() {
  let now = 0
  return { ...systemClock, monotonicMs: () => (now += 20_000) }
}

type Reported = readonly [event: string, facts: Readonly<Record<string, unknown>>]

/** The thread on this directory, with this machine's files or another disk, and with a clock on which it is slow. */
async function searching(directory: string, disk = machine.disk) {
  const { through, journalId } = logOf(directory)
  const reported: Reported[] = []
  const { port1, port2 } = machine.channel()
  const data = {
    dataDirectory: directory,
    shards: 1,
    through,
    logId: journalId,
    scrubBytesPerSecond: 0,
    front: port1,
  }
  const running = await thread(
    data,
    {
      ...machine,
      disk,
      clock: slowClock(),
      report: (_level, event, facts) => reported.push([event, facts]),
      tellKnown: () => {},
      answer: () => {},
    },
    () => Promise.reject(new Error('a search thread waits for no word')),
  )
  const link = new Link({
    port: port2,
    openMax: 8,
    patienceMs: 60_000,
    now: systemClock.monotonicMs,
    timers: systemClock,
  })
  const search = (words: string): Promise<SearchAnswer> => {
    const read = readQuery(words)
    if (!read.ok) throw new Error(read.fault)
    const ask: SearchAsk = { query: read.query, order: 'desc', limit: 10, count: 10_000 }
    return new Promise((done, failed) =>
      link.ask<SearchAnswer, undefined>([ask, through] satisfies SearchRequest, (answered) =>
        answered.ok ? done(answered.body) : failed(new Error(answered.silence)),
      ),
    )
  }
  const stop = async (): Promise<void> => {
    link.close()
    await running.stop()
  }
  return { search, reported, stop }
}

const directory = boardDirectory()
beforeAll(() => boardWithPosts(directory))
afterEach(() => rmSync(searchDirectory(directory), { recursive: true }))

test('while the index is being built a search finds what it holds and reports its progress; then it finds everything', async () => {
  const { search, reported, stop } = await searching(directory)
  const [early, none] = await Promise.all([search('oldest'), search('newest')])
  expect(early).toMatchObject({ ok: true, hits: [expect.anything()], indexing: { percent: expect.any(Number) } })
  expect(early).not.toHaveProperty('total')
  expect(none).toMatchObject({ ok: true, hits: [], indexing: { seconds: expect.any(Number) } })
  expect(reported).toContainEqual(['search.indexing', expect.objectContaining({ percent: expect.any(Number) })])
  await expect.poll(() => search('newest')).toEqual({ ok: true, hits: [expect.anything()], total: 1 })
  await stop()
})

test('a failed read of the journals costs the index nothing: it continues from where it was', async () => {
  const disk = new FaultyDisk()
  const { search, reported, stop } = await searching(directory, disk)
  await expect.poll(() => search('oldest')).toMatchObject({ hits: [expect.anything()] })
  disk.readsUntilFailure = 3
  // A window that cannot be read is read again frame by frame.
  disk.failures = 2
  await expect.poll(() => search('newest')).toEqual({ ok: true, hits: [expect.anything()], total: 1 })
  expect(await search('number')).toMatchObject({ ok: true, total: posts - 2 })
  const events = reported.map(([event]) => event).filter((event) => event !== 'search.indexing')
  expect(events).toEqual(['search.waits'])
  await stop()
})
