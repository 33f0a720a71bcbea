/**
 * The Merkle tree of RFC 9162 section 2.1 (same as RFC 6962): computes the root over entries, and makes inclusion and
 * consistency proofs. merkle-verify.ts checks them. Pure: the caller supplies the nodes.
 *
 *   leaf   SHA-256(0x00 || entry)
 *   node   SHA-256(0x01 || left || right)     always 65 bytes in
 *   empty  SHA-256("")
 *
 * The node (level, index) is the root of the 2^level leaves that begin at leaf index * 2^level. Indexes and sizes are
 * plain numbers below 2^53.
 */
import { hash } from 'node:crypto'

/** Bytes in a hash. */
export const HASH_BYTES = 32
/** Levels that a tree of fewer than 2^53 leaves can have; the leaves are level 0. */
export const LEVELS_MAX = 54
/** Maximum bytes of an entry: a C2SP entry bundle stores the length in two bytes. */
const ENTRY_BYTES_MAX = 0xffff
/** The root of an empty tree: SHA-256 of no bytes. */
export const EMPTY_ROOT: Buffer = hash('sha256', '', 'buffer')

/** Returns the 32-byte hash of a complete subtree: the 2^level leaves from leaf index * 2^level on. */
export type NodeReader = (level: number, index: number) => Uint8Array

/** Positions of a node's two children in the 65 bytes that are hashed. */
const LEFT = 1
const RIGHT = LEFT + HASH_BYTES
const NODE_BYTES = RIGHT + HASH_BYTES

// All code here is synchronous and a module is loaded per thread, so these two buffers can be reused.
const node = Buffer.alloc(NODE_BYTES, 0x01)
const leaf = Buffer.alloc(1 + ENTRY_BYTES_MAX)
/** Prefixes of `leaf` by length, for usual entry lengths: creating a view costs a sixth of a hash. */
const leafViews = Array.from({ length: 1024 }, (_, length) => leaf.subarray(0, length))

/**
 * The hash of one entry as a leaf (RFC 9162 2.1.1): 32 bytes.
 *
 * @throws RangeError when the entry is longer than 65,535 bytes
 */
export function leafHash(entry: Uint8Array): Buffer {
  return Buffer.from(leafDigest(entry), 'latin1')
}

/** The leaf hashes of many entries, one after the other: 32 bytes each. Throws like {@link leafHash}. */
export function leafHashes(entries: readonly Uint8Array[]): Buffer {
  const hashes = Buffer.allocUnsafe(entries.length * HASH_BYTES)
  let at = 0
  for (const entry of entries) at += writeLeafHash(entry, hashes, at)
  return hashes
}

/** Writes the hash of one entry into `into` at `at`, and returns the bytes written. Throws like {@link leafHash}. */
export function writeLeafHash(entry: Uint8Array, into: Buffer, at: number): number {
  return into.write(leafDigest(entry), at, HASH_BYTES, 'latin1')
}

/** The hash of a node from those of its two children (RFC 9162 2.1.1): 32 bytes. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, LEFT)
  node.set(right, RIGHT)
  return Buffer.from(hash('sha256', node, 'binary'), 'latin1')
}

/** The digest as a string of 32 characters: half the cost of a new Buffer, and this is the hot path. */
function leafDigest(entry: Uint8Array): string {
  // A longer entry does not fit after the prefix; `set` throws a RangeError.
  leaf.set(entry, 1)
  const length = entry.length + 1
  return hash('sha256', leafViews[length] ?? leaf.subarray(0, length), 'binary')
}

/**
 * The right edge of a tree: everything needed to append (RFC 9162 2.1.2).
 *
 * It stores one hash for every 1 bit of the size: that of a complete subtree still waiting for its right sibling. Each
 * hash is already in its place in the 65 bytes of its future parent.
 */
export class CompactRange {
  readonly #nodes: readonly Buffer[]
  #size: number

  /**
   * @param size leaves in the tree, below 2^53
   * @param edge what {@link edge} returned at that size; empty for an empty tree
   * @throws RangeError if the edge does not have one hash for every 1 bit of the size
   */
  constructor(size = 0, edge: Uint8Array = Buffer.alloc(0)) {
    const levels = edgeLevels(size)
    if (edge.length !== levels.length * HASH_BYTES) {
      throw new RangeError(`the edge of ${size} leaves is ${levels.length} hashes, not ${edge.length} bytes`)
    }
    this.#nodes = Array.from({ length: LEVELS_MAX }, () => Buffer.alloc(NODE_BYTES, 0x01))
    this.#size = size
    levels.forEach((level, k) => {
      this.#nodes[level]?.set(edge.subarray(k * HASH_BYTES, (k + 1) * HASH_BYTES), LEFT)
    })
  }

  /** Leaves in the tree. */
  get size(): number {
    return this.#size
  }

  /**
   * Appends leaves, and writes the hashes that become final, leaf by leaf: the leaf's hash, then every node that it
   * completes, upward.
   *
   * @param leaves leaf hashes, 32 bytes each, back to back
   * @param into space for the result: at most 64 bytes per leaf plus 32 * 54
   * @returns bytes written
   */
  append(leaves: Buffer, into: Buffer): number {
    let at = 0
    for (let leafAt = 0; leafAt < leaves.length; leafAt += HASH_BYTES) at = this.#appendOne(leaves, leafAt, into, at)
    return at
  }

  #appendOne(leaves: Buffer, leafAt: number, into: Buffer, start: number): number {
    const nodes = this.#nodes
    let at = start + leaves.copy(into, start, leafAt, leafAt + HASH_BYTES)
    let index = this.#size
    let level = 0
    leaves.copy(nodes[0] as Buffer, index % 2 === 0 ? LEFT : RIGHT, leafAt, leafAt + HASH_BYTES)
    while (index % 2 === 1) {
      const digest = hash('sha256', nodes[level] as Buffer, 'binary')
      at += into.write(digest, at, HASH_BYTES, 'latin1')
      index = (index - 1) / 2
      level += 1
      const parent = nodes[level] as Buffer
      parent.write(digest, index % 2 === 0 ? LEFT : RIGHT, HASH_BYTES, 'latin1')
    }
    this.#size += 1
    return at
  }

  /** The root of the current tree. */
  root(): Buffer {
    return rootOf((level) => this.#waiting(level), this.#size)
  }

  /** The hashes of the waiting subtrees, largest first: 32 bytes for every 1 bit of the size. */
  edge(): Buffer {
    return Buffer.concat(edgeLevels(this.#size).map((level) => this.#waiting(level)))
  }

  #waiting(level: number): Buffer {
    return (this.#nodes[level] as Buffer).subarray(LEFT, RIGHT)
  }
}

/** The levels of the complete subtrees that a tree of this size consists of, largest first. */
export function edgeLevels(size: number): number[] {
  const levels: number[] = []
  for (let level = 0, rest = size; rest > 0; level += 1, rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) levels.unshift(level)
  }
  return levels
}

/**
 * For each level, the hash of the leaves that follow its last complete node (undefined if none follow); the last
 * element is the root. It is the same for every proof in a tree of this size, so it is worth caching while the head
 * stays the same.
 */
export type EdgeHashes = readonly (Buffer | undefined)[]

/** Computes {@link EdgeHashes}: folds the subtrees of the size's 1 bits, smallest first. */
export function edgeHashesOf(read: NodeReader, size: number): EdgeHashes {
  const hashes: (Buffer | undefined)[] = [undefined]
  let right: Buffer | undefined
  for (let level = 0, count = size; count > 0; level += 1, count = Math.floor(count / 2)) {
    if (count % 2 === 1) {
      const left = read(level, count - 1)
      right = right === undefined ? Buffer.from(left) : nodeHash(left, right)
    }
    hashes.push(right)
  }
  return hashes
}

/** The root of the first `size` leaves: 32 bytes (RFC 9162 2.1.1). */
export function rootOf(read: NodeReader, size: number): Buffer {
  return edgeHashesOf(read, size).at(-1) ?? Buffer.from(EMPTY_ROOT)
}

/**
 * The audit path of one leaf: its sibling's hash first, the root's child last (RFC 9162 2.1.3.1).
 *
 * @param edges those of this size, if the caller has cached them
 * @throws RangeError unless index is an integer with 0 <= index < size
 */
export function inclusionPathOf(
  read: NodeReader,
  index: number,
  size: number,
  edges: EdgeHashes = edgeHashesOf(read, size),
): Buffer[] {
  if (!(Number.isSafeInteger(index) && index >= 0 && index < size))
    throw new RangeError(`leaf ${index} is not in a tree of ${size} leaves`)
  return siblings({ read, size, edges }, 0, index)
}

/**
 * The consistency proof that the tree of `to` leaves begins with the tree of `from` leaves (RFC 9162 2.1.4.1). Empty if
 * the sizes are equal.
 *
 * @param edges those of size `to`, if the caller has cached them
 * @throws RangeError unless from is an integer with 1 <= from <= to
 */
export function consistencyPathOf(
  read: NodeReader,
  from: number,
  to: number,
  edges: EdgeHashes = edgeHashesOf(read, to),
): Buffer[] {
  if (!(Number.isSafeInteger(from) && from >= 1 && from <= to))
    throw new RangeError(`there is no consistency proof from ${from} leaves to ${to}`)
  if (from === to) return []
  // The last complete subtree of the older tree is a node of both trees: walk up from there.
  let level = 0
  let index = from - 1
  while (index % 2 === 1) {
    index = (index - 1) / 2
    level += 1
  }
  const path = siblings({ read, size: to, edges }, level, index)
  // If that subtree is the whole older tree, the verifier already has its root.
  return index === 0 ? path : [Buffer.from(read(level, index)), ...path]
}

type Tree = { readonly read: NodeReader; readonly size: number; readonly edges: EdgeHashes }

/** The siblings on the way from a complete node up to the root. */
function siblings(tree: Tree, level: number, index: number): Buffer[] {
  const { read, size, edges } = tree
  const path: Buffer[] = []
  let width = 2 ** level
  for (let at = level, k = index; width < size; at += 1, k = Math.floor(k / 2), width *= 2) {
    const sibling = k % 2 === 0 ? k + 1 : k - 1
    const edge = edges[at]
    if ((sibling + 1) * width <= size) path.push(Buffer.from(read(at, sibling)))
    else if (sibling * width < size && edge !== undefined) path.push(Buffer.from(edge))
    // Otherwise there is nothing to the right: this node moves up unchanged.
  }
  return path
}
