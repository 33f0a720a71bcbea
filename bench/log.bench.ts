/**
 * Can the log be the bottleneck of a board?
 *
 * Integrating: posts in a shard's journal become leaves, roots, signed heads and synced frames, by the log actor's own code on one thread;
 * the limit is the two hashes that each leaf needs (leaf and, on average, one node). Proofs: of any leaf in a log of a million, made and
 * checked as the board does before it answers; the limit is reading and hashing the 20 nodes of the check. Times are processor time,
 * because other work on the machine alternates with this.
 *
 * Then a real board on that directory: how soon it is ready, without any snapshot and with those that it wrote when it stopped; and proofs
 * over HTTP, at the maximum rate, and their latency at half of that rate. Goals for a million entries: 0.4 of the limit, 20,000 proofs a
 * second and core, 2 s, and 2 ms for 99 of 100 proofs.
 */

import { hash } from 'node:crypto'
import { logDirectory, nodesFile } from '../src/board-directory.ts'
import { machineDisk } from '../storage/machine-disk.ts'
import { leafHash } from '../storage/merkle.ts'
import { verifyInclusion } from '../storage/merkle-verify.ts'
import { TreeReader } from '../storage/tree-reader.ts'
import { idOf, integrate, openLog, writePosts } from '../test/support/posts-on-disk.ts'
import { type BoardRun, withBoard, withStatic } from './board.ts'
import type { Measured } from './client-process.ts'
import { withDirectory } from './machine.ts'
import type { Bench, Row, Table } from './report.ts'

const entryBytes = 200
const inFlight = 64

export const log: Bench = {
  name: 'log',
  question: 'Can the log be the bottleneck of a board?',
  run: ({ isQuick }) =>
    withDirectory(async (directory) => {
      const posts = isQuick ? 200_000 : 1_000_000
      const serviceId = writePosts({ directory, posts })
      const hashing = hashSeconds(posts)
      const integrating = processorSeconds(() => integrate({ directory, posts }))
      const { start, proofs } = reading(directory, posts, isQuick)
      return [
        {
          title: `${posts.toLocaleString('en')} posts on disk, one thread, by processor time`,
          rows: [
            row('limit: a leaf and a node hash each', posts, hashing, hashing),
            row('read, hashed, signed, written and synced', posts, integrating, hashing),
          ],
        },
        { title: `proofs in that log`, rows: proofs },
        {
          title: 'opened again',
          rows: [{ case: 'SignedLog.open', 'cpu s': start }],
        },
        ...(await served(directory, serviceId, posts, isQuick)),
      ]
    }),
}

/** A board with that log, started twice; the second one is queried for proofs of posts all over it. */
async function served(directory: string, serviceId: string, posts: number, isQuick: boolean): Promise<Table[]> {
  const starts: Row[] = []
  const data = { DATA_DIR: directory }
  const startOf = (name: string, { start }: BoardRun) =>
    starts.push({ case: name, s: start.seconds, 'cpu s': start.cpuSeconds })
  await withBoard(async (board) => startOf('no snapshot: every record read again', board), data)
  return withStatic((ready) =>
    withBoard(async (board) => {
      startOf('with the snapshots of the last stop', board)
      const count = isQuick ? 2_000 : 10_000
      // A step coprime to the number of posts: each proof is of another part of the log.
      const targets = Array.from(
        { length: 3 * count },
        (_, n) => `/api/log/proof?message=${idOf(serviceId, (n * 7_919) % posts)}`,
      )
      const [warming, fully, half] = [
        targets.slice(0, count),
        targets.slice(count, 2 * count),
        targets.slice(2 * count),
      ]
      await board.get(inFlight, warming, count)
      const most = await board.get(inFlight, fully, count)
      const bytes = Math.round(most.bodyBytes / count)
      const limit = await board.get(inFlight, [`/${bytes}`], count, ready)
      const paced = await board.getPaced(most.perSecond / 2, inFlight, half, count)
      const pacedLimit = await board.getPaced(most.perSecond / 2, inFlight, [`/${bytes}`], count, ready)
      const answers = (name: string, each: Measured): Row => ({
        case: name,
        'proofs/s': each.perSecond,
        'of ready bytes': each.perSecond / limit.perSecond,
        'p50 ms': each.p50Ms,
        'p99 ms': each.p99Ms,
        'server us each': (each.serverUserUs + each.serverSystemUs) / count,
      })
      return [
        { title: `a board with ${posts.toLocaleString('en')} posts, until it is ready`, rows: starts },
        {
          title: 'proofs over HTTP, each of another post, the client on the same cores',
          rows: [
            answers(`limit: ${bytes} ready bytes`, limit),
            answers(`${inFlight} in flight`, most),
            answers('half that rate', paced),
            answers('ready bytes at that rate', pacedLimit),
          ],
        },
      ]
    }, data),
  )
}

function row(name: string, count: number, seconds: number, limit: number): Row {
  return { case: name, 'entries/s': count / seconds, 'us each': (seconds * 1e6) / count, 'of limit': limit / seconds }
}

/** Processor time of this process, all its threads. */
function processorSeconds(run: () => unknown): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

function hashSeconds(count: number): number {
  const entry = Buffer.alloc(entryBytes + 1, 1)
  const node = Buffer.alloc(65, 1)
  return processorSeconds(() => {
    for (let n = 0; n < count; n++) {
      hash('sha256', entry, 'binary')
      hash('sha256', node, 'binary')
    }
  })
}

function reading(directory: string, posts: number, isQuick: boolean) {
  const start = processorSeconds(() => openLog(directory).close())
  const tree = TreeReader.open(machineDisk, nodesFile(logDirectory(directory)))
  tree.advance(posts)
  const root = tree.root(posts)
  const count = isQuick ? 20_000 : 100_000
  let at = 0
  const anywhere = () => (at = (at + 48_271 * 7) % posts)
  const node = Buffer.alloc(65, 1)
  const entry = Buffer.alloc(entryBytes + 1, 1)
  const depth = Math.ceil(Math.log2(posts))
  const limit = processorSeconds(() => {
    for (let n = 0; n < count; n++) {
      hash('sha256', entry, 'binary')
      for (let k = 0; k < depth; k++) hash('sha256', node, 'binary')
    }
  })
  const made = processorSeconds(() => {
    for (let n = 0; n < count; n++) tree.inclusionPath(anywhere(), posts)
  })
  const checked = processorSeconds(() => {
    for (let n = 0; n < count; n++) {
      const index = anywhere()
      leafHash(entry)
      if (!verifyInclusion(index, posts, tree.leaf(index), tree.inclusionPath(index, posts), root))
        throw new Error('a good proof fails')
    }
  })
  tree.close()
  const proofs: Row[] = [
    {
      case: `limit: a leaf and ${depth} node hashes`,
      'proofs/s': count / limit,
      'us each': (limit * 1e6) / count,
      'of limit': 1,
    },
    { case: 'path alone', 'proofs/s': count / made, 'us each': (made * 1e6) / count, 'of limit': limit / made },
    {
      case: 'path and its check',
      'proofs/s': count / checked,
      'us each': (checked * 1e6) / count,
      'of limit': limit / checked,
    },
  ]
  return { start, proofs }
}
