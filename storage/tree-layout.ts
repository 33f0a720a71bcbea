/**
 * Where each hash is in the tree file.
 *
 * The file contains the hashes of all complete nodes, 32 bytes each and nothing else, in the order in which they become
 * final (the same order as in golang.org/x/mod sumdb/tlog). When a leaf arrives, its hash is written, then that of
 * every node that it completes, upward.
 *
 *   hash   0      1      2      3      4      5      6      7
 *   node   (0,0)  (0,1)  (1,0)  (0,2)  (0,3)  (1,1)  (2,0)  (0,4)    (level, index)
 *
 * No byte is ever changed, so the tree of n leaves is a prefix of the file. The 511 nodes of a complete subtree of 256
 * leaves are adjacent: one read returns everything that a proof needs from the lowest levels.
 */
import { HASH_BYTES } from './merkle.ts'

/** Levels below the root of a chunk, and its leaves: the subtree that a C2SP tile also covers. */
export const CHUNK_LEVELS = 8
export const CHUNK_LEAVES = 2 ** CHUNK_LEVELS
/** Bytes of a complete chunk: 511 hashes. */
export const CHUNK_BYTES = nodesIn(CHUNK_LEAVES) * HASH_BYTES

/** The number of complete nodes in a tree of this many leaves. */
export function nodesIn(leaves: number): number {
  return 2 * leaves - onesIn(leaves)
}

/** The position of a node in the file, counted in hashes. */
export function nodePosition(level: number, index: number): number {
  const lastLeaf = (index + 1) * 2 ** level - 1
  return nodesIn(lastLeaf) + level
}

/** The node at a position in the file, counted in hashes. */
export function nodeAt(position: number): { readonly level: number; readonly index: number } {
  let leaf = Math.floor(position / 2)
  while (nodesIn(leaf + 1) <= position) leaf++
  const level = position - nodesIn(leaf)
  return { level, index: Math.floor(leaf / 2 ** level) }
}

/** The number of 1 bits in a number below 2^53. */
function onesIn(value: number): number {
  return onesIn32(value % 2 ** 32) + onesIn32(Math.floor(value / 2 ** 32))
}

/** Adds neighboring bits in parallel: pairs, nibbles, then bytes. */
function onesIn32(value: number): number {
  const pairs = value - ((value >>> 1) & 0x55555555)
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/** The file holds fewer hashes than the log has nodes: rebuild it from the entries. */
export class TreeFileShort extends Error {
  override readonly name = 'TreeFileShort'
  readonly path: string
  /** Bytes the file must have, and bytes it has. */
  readonly expected: number
  readonly found: number

  constructor(facts: { readonly path: string; readonly expected: number; readonly found: number }) {
    super(`${facts.path} has ${facts.found} bytes, but needs ${facts.expected}`)
    this.path = facts.path
    this.expected = facts.expected
    this.found = facts.found
  }
}
