/**
 * Can the log ever be what a board waits for?
 *
 * Integrating: posts that lie in a shard's journal become leaves, roots, signed heads and synced frames, by the log actor's own
 * code on one thread; the limit is the two hashes that each leaf cannot do without (leaf and, on average, one node). Proofs: of
 * any leaf in a log of a million, made and checked as the board does before it answers; the limit is reading and hashing
 * the 20 nodes of the check. Times are those of the processor, because other work on the machine takes turns with this.
 */
import { hash } from 'node:crypto'
import { logDirectory, nodesFile } from '../src/board-directory.ts'
import { leafHash } from '../storage/merkle.ts'
import { verifyInclusion } from '../storage/merkle-verify.ts'
import { TreeReader } from '../storage/tree-reader.ts'
import { integrate, openLog, writePosts } from '../test/support/posts-on-disk.ts'
import { withDirectory } from './machine.ts'
import type { Bench, Row } from './report.ts'

const entryBytes = 200

export const log: Bench = {
  name: 'log',
  question: 'Can the log ever be what a board waits for?',
  run: ({ isQuick }) =>
    withDirectory((directory) => {
      const posts = isQuick ? 200_000 : 1_000_000
      writePosts({ directory, posts })
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
          title: 'opened again, every node of the tree recomputed',
          rows: [{ case: 'SignedLog.open', 'cpu s': start }],
        },
      ]
    }),
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
  const tree = TreeReader.open(nodesFile(logDirectory(directory)))
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
