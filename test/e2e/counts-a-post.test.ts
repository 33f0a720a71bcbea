/**
 * The cost of a post in counts, which do not depend on how busy the machine is: an extra step in the path of a post shows up here before it
 * shows in any timing. The module that the benches load into a board does the counting.
 */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Counts, countingModule, countNames, countsBetween, readCounts } from '../../bench/counts.ts'
import { shardDirectory } from '../../src/board-directory.ts'
import { Journal } from '../../storage/journal.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const authors = Array.from({ length: 20 }, (_, n) => person(`author ${n}`))
/** Records of a newly created board, and of rooms and people that are created by the first posts. */
const framesBeside = 60

/** Independent of how many posts are in flight. Some belong to new people and rooms. */
const encodings = { 'json parsed': 1.1, 'json written': 8.5 }

/** Reports every count that exceeds its bound, and checks that each was counted at all. */
function within(each: Counts, bounds: Counts): void {
  const above = countNames.filter((name) => !(each[name] > 0 && each[name] <= bounds[name]))
  expect(above.map((name) => `${name}: ${each[name]} a post, at most ${bounds[name]}`)).toEqual([])
}

// A clerk packs the post, which costs one more message; an HTTP thread forwards the post and its answer. `alone`: messages for a post that
// shares none, as on a slow machine: 4.4, 8.3 and 11.4.
describe.each([
  ['back', '1', 0, 5],
  ['clerks', '1', 3, 9],
  ['clerks', '2', 7, 12],
])('a post on a board with actors placed as %s and HTTP_THREADS=%s', (placement, httpThreads, more, alone) => {
  let board: Board
  let client: Client
  let sent = 0
  const extra = httpThreads === '1' ? 0 : 2
  const directory = boardDirectory()
  const socket = join(boardDirectory(), 'counts')

  beforeAll(async () => {
    board = await startBoard({
      directory,
      env: {
        PLACEMENT: placement,
        HTTP_THREADS: httpThreads,
        SHARDS: '1',
        NODE_OPTIONS: `--import ${countingModule}`,
        BENCH_COUNTS: socket,
      },
    })
    client = await Client.of(board)
    await posts(40, 8)
  })
  afterAll(() => client.close())

  /** Posts `count` posts, `inFlight` at a time, and returns the counts per post. */
  async function posts(count: number, inFlight: number): Promise<Counts> {
    const bodies = Array.from({ length: count }, () => {
      const n = sent++
      return client.sign(authors[n % authors.length]!, { operation: 'post', room: `room-${n % 10}`, text: `post ${n}` })
    })
    const before = await readCounts(socket)
    const statuses = new Set<number>()
    const lane = async (): Promise<void> => {
      for (let signed = bodies.pop(); signed !== undefined; signed = bodies.pop())
        statuses.add((await client.send(signed.body)).status)
    }
    await Promise.all(Array.from({ length: inFlight }, lane))
    expect([...statuses]).toEqual([200])
    return countsBetween(before, await readCounts(socket), count)
  }

  test('alone in flight is answered after one sync, parsed once, and forwarded in few messages', async () => {
    const each = await posts(200, 1)
    const packed = { 'msgpack read': 8 + more, 'msgpack written': 8 + more }
    within(each, { ...encodings, syncs: 2.1, writes: 3.2, messages: alone, ...packed })
  })

  // How many posts share a turn depends on what else the machine does: alone each of these is twice as many.
  test('among 32 in flight shares its syncs and messages with others', async () => {
    const each = await posts(960, 32)
    const packed = { 'msgpack read': 4 + more, 'msgpack written': 4 + more }
    within(each, { ...encodings, syncs: 1.2, writes: 1.6, messages: 4.5 + extra, ...packed })
  })

  test('is one frame in the journal of its shard', async () => {
    client.close()
    await board.stop()
    const journal = Journal.open({ disk: machineDisk, directory: shardDirectory(directory, 0) })
    const frames = journal.nextSeq - 1
    journal.close()
    expect(frames).toBeGreaterThanOrEqual(sent)
    expect(frames).toBeLessThanOrEqual(sent + framesBeside)
  })
})
