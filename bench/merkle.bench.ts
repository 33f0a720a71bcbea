/**
 * Does the log's tree cost more than the hashing that RFC 9162 requires?
 *
 * An append needs two hashes per leaf in the long run (the leaf, and one node); the limit is that many hashes and nothing else. A proof
 * needs none: its limit is reading 17 hashes of 32 bytes from memory. The plain alternative stores only leaf hashes and computes the proof
 * from all of them.
 */

import { hash } from 'node:crypto'
import { join } from 'node:path'
import { machineDisk } from '../storage/machine-disk.ts'
import { inclusionPathOf, leafHashes, type NodeReader, nodeHash } from '../storage/merkle.ts'
import { verifyInclusion } from '../storage/merkle-verify.ts'
import { TreeWriter } from '../storage/tree.ts'
import { TreeReader } from '../storage/tree-reader.ts'
import { compare, looped } from './compare.ts'
import { withDirectory } from './machine.ts'
import type { Bench } from './report.ts'

const size = 100_000
const entryBytes = 400
const batch = 256

export const merkle: Bench = {
  name: 'merkle',
  question: 'Does the tree cost more than its hashes?',
  run: ({ isQuick }) =>
    withDirectory(async (directory) => {
      const entries = Array.from({ length: batch }, (_, n) => Buffer.alloc(entryBytes, String(n)))
      const node = Buffer.alloc(65, 1)
      const growing = TreeWriter.open(machineDisk, join(directory, 'growing'), 0)
      const appendLimit = looped('a leaf and a node hash, nothing else', batch, (n) => {
        hash('sha256', entries[n]!, 'binary')
        hash('sha256', node, 'binary')
      })
      const appended = await compare(
        appendLimit,
        [
          { name: 'leafHashes of 256 entries', operations: batch, run: () => leafHashes(entries) },
          {
            name: 'leafHashes, TreeWriter.append, root',
            operations: batch,
            run: () => {
              growing.append(leafHashes(entries))
              growing.root()
            },
          },
        ],
        { isQuick, unit: 'leaves' },
      )
      growing.close()
      return [
        { title: `append in batches of ${batch} entries of ${entryBytes} bytes`, rows: appended },
        { title: `inclusion proofs in a tree of ${size} leaves`, rows: await proofs(directory, isQuick) },
      ]
    }),
}

async function proofs(directory: string, isQuick: boolean) {
  const path = join(directory, 'fixed')
  const leaves = leafHashes(Array.from({ length: size }, (_, n) => Buffer.from(`entry ${n}`)))
  const writer = TreeWriter.open(machineDisk, path, 0)
  for (let at = 0; at < size; at += 50_000) writer.append(leaves.subarray(at * 32, (at + 50_000) * 32))
  writer.close()
  const reader = TreeReader.open(machineDisk, path)
  reader.advance(size)
  const root = reader.root(size)
  let at = 0
  const anywhere = () => (at = (at + 48_271) % size)
  const kept = Array.from({ length: 64 }, () => {
    const index = anywhere()
    return { index, leaf: reader.leaf(index), path: reader.inclusionPath(index, size) }
  })
  const limit = looped('17 hashes copied from memory', 200, () => {
    const index = anywhere()
    const found: Buffer[] = []
    for (let k = 0; k < 17; k++)
      found.push(Buffer.from(leaves.subarray(((index + k * 997) % size) * 32, ((index + k * 997) % size) * 32 + 32)))
    return found
  })
  const rows = await compare(
    limit,
    [
      looped('TreeReader.inclusionPath, any leaf', 200, () => reader.inclusionPath(anywhere(), size)),
      looped('TreeReader.consistencyPath, any size', 200, () => reader.consistencyPath(anywhere() + 1, size)),
      looped('verifyInclusion', 20, (n) => {
        const { index, leaf, path: audit } = kept[n]!
        if (!verifyInclusion(index, size, leaf, audit, root)) throw new Error('a good proof fails')
      }),
      looped('plain: from all leaf hashes', 1, () => inclusionPathOf(computed(leaves), anywhere(), size)),
    ],
    { isQuick, unit: 'proofs' },
  )
  reader.close()
  return rows
}

/** Nodes computed from the leaves on every request. */
function computed(leaves: Buffer): NodeReader {
  const read: NodeReader = (level, index) =>
    level === 0
      ? leaves.subarray(index * 32, index * 32 + 32)
      : nodeHash(read(level - 1, 2 * index), read(level - 1, 2 * index + 1))
  return read
}
