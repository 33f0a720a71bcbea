import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  CompactRange,
  consistencyPathOf,
  EMPTY_ROOT,
  HASH_BYTES,
  inclusionPathOf,
  leafHash,
  leafHashes,
  type NodeReader,
  nodeHash,
  rootOf,
  writeLeafHash,
} from '../../storage/merkle.ts'
import { verifyConsistency, verifyInclusion } from '../../storage/merkle-verify.ts'
import { listVectors, parseWithBigInts, readVector, vectors } from '../support/vectors.ts'
import { node, ReferenceTree, rootByPath, rootsByProof, sha256 } from './reference-tree.ts'

const sizeMax = 5000
const entries = Array.from({ length: sizeMax }, (_, i) => Buffer.from(`entry ${i}`))
const reference = new ReferenceTree(entries)
/** Complete nodes by the definition: the real file is not tested here. */
const read: NodeReader = (level, index) => reference.root((index + 1) * 2 ** level, index * 2 ** level)

/** The tree of D[i] = byte i that tlog.md and other implementations agree on. */
const byteTree = new ReferenceTree(Array.from({ length: 256 }, (_, i) => Buffer.of(i)))
const readByteTree: NodeReader = (level, index) => byteTree.root((index + 1) * 2 ** level, index * 2 ** level)

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

function append(range: CompactRange, leaves: readonly Uint8Array[]): Buffer {
  const into = Buffer.alloc((2 * leaves.length + 54) * HASH_BYTES)
  return into.subarray(0, range.append(Buffer.concat(leaves), into))
}

describe('hashes', () => {
  test('of a leaf, a node and nothing are those of RFC 9162', () => {
    expect(hex(EMPTY_ROOT)).toBe('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
    expect(hex(leafHash(Buffer.alloc(0)))).toBe('6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d')
    expect(hex(leafHash(Buffer.of(0)))).toBe('96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7')
    const [a, b] = [sha256(Buffer.of(1)), sha256(Buffer.of(2))]
    expect(nodeHash(a, b)).toEqual(node(a, b))
  })

  test('of entries are the same one by one, in a batch and in place, up to 65,535 bytes and no further', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 }), (list) => {
        const each = list.map((entry) => sha256(Buffer.of(0), entry))
        const placed = Buffer.alloc(list.length * HASH_BYTES)
        list.forEach((entry, i) => {
          writeLeafHash(entry, placed, i * HASH_BYTES)
        })
        expect(leafHashes(list)).toEqual(Buffer.concat(each))
        expect(placed).toEqual(Buffer.concat(each))
        expect(list.map(leafHash)).toEqual(each)
      }),
    )
    const longest = Buffer.alloc(65_535, 7)
    expect(leafHash(longest)).toEqual(sha256(Buffer.of(0), longest))
    expect(() => leafHash(Buffer.alloc(65_536))).toThrow(RangeError)
  })
})

describe.skipIf(vectors.isAbsent)(`published vectors${vectors.note}`, () => {
  test('all 98 inclusion cases have the published outcome', () => {
    const files = listVectors('merkle/testdata/inclusion')
    expect(files).toHaveLength(98)
    for (const file of files) {
      const c = parseWithBigInts(readVector(file)) as Inclusion
      const valid = verifyInclusion(
        c.leafIdx,
        c.treeSize,
        base64(c.leafHash),
        (c.proof ?? []).map(base64),
        base64(c.root),
      )
      expect({ file, valid }).toEqual({ file, valid: !c.wantErr })
    }
  })

  test('all 98 consistency cases have the published outcome', () => {
    const files = listVectors('merkle/testdata/consistency')
    expect(files).toHaveLength(98)
    for (const file of files) {
      const c = parseWithBigInts(readVector(file)) as Consistency
      const valid = verifyConsistency(c.size1, c.size2, (c.proof ?? []).map(base64), base64(c.root1), base64(c.root2))
      expect({ file, valid }).toEqual({ file, valid: !c.wantErr })
    }
  })

  test('the classic eight leaves of RFC 6962 give the classic nodes and roots', () => {
    const vector = JSON.parse(readVector('merkle/rfc6962-reference-roots.json')) as ReferenceRoots
    const leaves = vector.leaf_inputs_hex.map((input) => leafHash(Buffer.from(input, 'hex')))
    expect(leaves.map(hex)).toEqual(vector.node_hashes_by_level[0])
    const range = new CompactRange()
    expect(hex(range.root())).toBe(vector.root_by_size_0_to_8[0])
    const nodes = leaves.flatMap((leaf, i) => {
      const written = append(range, [leaf])
      expect(hex(range.root())).toBe(vector.root_by_size_0_to_8[i + 1])
      return Array.from({ length: written.length / 32 }, (_, k) => hex(written.subarray(32 * k, 32 * k + 32)))
    })
    expect(nodes.sort()).toEqual(vector.node_hashes_by_level.flat().sort())
  })

  test('the roots of 0 to 256 leaves are those in tree-vectors.json', () => {
    const vector = JSON.parse(readVector('tlog/tree-vectors.json')) as TreeVectors
    const roots = rootsOfByteTree()
    expect(roots.slice(0, 17)).toEqual(vector.roots_hex_by_size_0_to_16)
    expect(roots[255]).toBe(vector.root_hex_255)
    expect(roots[256]).toBe(vector.root_hex_256)
    expect(rollingHash(roots.map((root, n) => `${n} ${root}`))).toBe(vector.accumulators.roots.sha256)
    expect(rollingInclusion()).toBe(vector.accumulators.inclusion.sha256)
    expect(rollingConsistency()).toBe(vector.accumulators.consistency.sha256)
  })
})

describe('golden numbers that Go and Node agree on', () => {
  test('roots of 0 to 256 leaves', () => {
    const roots = rootsOfByteTree()
    expect(roots[256]).toBe('0387b1bfaad194ad5b534d6a57c9710a83484cb544258df5f4df94bc41820b5f')
    const lines = roots.map((root, n) => `${n} ${root}`)
    expect(rollingHash(lines)).toBe('685a7867b1172ee031006759e27cc983b25e2cc664508c3c9effb6cd131f31c3')
  })

  test('all 8,515 inclusion proofs up to 130 leaves', () => {
    expect(rollingInclusion()).toBe('893ce6eea61adc33c22c0e3a952498b76dfa3c282e78ac659f6fcc0ea44f9983')
  })

  test('all 8,515 consistency proofs up to 130 leaves', () => {
    expect(rollingConsistency()).toBe('2498232e1aebe8d1aa8d339d897fc471f4495fe0b8a55ac08f7dae3d88bc4c2a')
  })
})

describe('the right edge', () => {
  test('gives the root of every size, whole or restored, and writes every node once', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 600 }), { minLength: 1, maxLength: 8 }), (batches) => {
        let range = new CompactRange()
        for (const batch of batches) {
          const start = range.size
          const end = start + batch
          const written = append(range, reference.leaves.slice(start, end))
          expect(written).toEqual(Buffer.concat(nodesInOrder(start, end)))
          expect(range.size).toBe(end)
          expect(range.root()).toEqual(reference.root(end))
          range = new CompactRange(end, range.edge())
          expect(range.root()).toEqual(reference.root(end))
        }
      }),
      { numRuns: 30 },
    )
  })

  test('of the wrong length is refused', () => {
    expect(() => new CompactRange(3, Buffer.alloc(32))).toThrow(RangeError)
    expect(() => new CompactRange(4, Buffer.alloc(64))).toThrow(RangeError)
  })
})

describe('proofs', () => {
  const sizes = fc.integer({ min: 1, max: sizeMax })

  test('are those of the recursive definition, and verify', () => {
    fc.assert(
      fc.property(sizes, fc.array(fc.nat(), { minLength: 20, maxLength: 20 }), (size, picks) => {
        const root = rootOf(read, size)
        expect(root).toEqual(reference.root(size))
        for (const pick of picks) {
          const index = pick % size
          const path = inclusionPathOf(read, index, size)
          expect(path).toEqual(reference.path(index, size))
          expect(verifyInclusion(index, BigInt(size), reference.leaves[index] as Buffer, path, root)).toBe(true)
          const from = 1 + index
          const proof = consistencyPathOf(read, from, size)
          expect(proof).toEqual(reference.proof(from, size))
          expect(verifyConsistency(from, size, proof, reference.root(from), root)).toBe(true)
        }
      }),
    )
  })

  test('with any bit of any hash flipped are false', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: sizeMax }), fc.nat(), (size, pick) => {
        const index = pick % size
        const leaf = reference.leaves[index] as Buffer
        const inclusion = [leaf, reference.root(size), ...reference.path(index, size)]
        for (const [turned, root, ...path] of bitFlips(inclusion)) {
          expect(verifyInclusion(index, size, turned as Buffer, path, root as Buffer)).toBe(false)
        }
        const from = 1 + (pick % (size - 1))
        const consistency = [reference.root(from), reference.root(size), ...reference.proof(from, size)]
        for (const [older, newer, ...path] of bitFlips(consistency)) {
          expect(verifyConsistency(from, size, path, older as Buffer, newer as Buffer)).toBe(false)
        }
      }),
      { numRuns: 8 },
    )
  })

  test('that are cut, lengthened or out of order are false', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: sizeMax }), fc.nat(), (size, pick) => {
        const index = pick % size
        const leaf = reference.leaves[index] as Buffer
        for (const path of rearranged(reference.path(index, size))) {
          expect(verifyInclusion(index, size, leaf, path, reference.root(size))).toBe(false)
        }
        const from = 1 + (pick % (size - 1))
        for (const path of rearranged(reference.proof(from, size))) {
          expect(verifyConsistency(from, size, path, reference.root(from), reference.root(size))).toBe(false)
        }
      }),
    )
  })

  test('of another leaf are false at this index', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: sizeMax }), fc.nat(), fc.nat(), (size, a, b) => {
        fc.pre(a % size !== b % size)
        const [index, other] = [a % size, b % size]
        const path = reference.path(index, size)
        expect(verifyInclusion(other, size, reference.leaves[index] as Buffer, path, reference.root(size))).toBe(false)
        expect(verifyInclusion(index, size, reference.leaves[other] as Buffer, path, reference.root(size))).toBe(false)
      }),
    )
  })

  // A path alone does not determine the size: leaf 0 has the same path to a root in trees of 3 and of 4. The signed checkpoint determines
  // it. So a proof is true exactly when the definition, at that size, leads to that root.
  test('under another size are true only where the definition says so', () => {
    const shift = fc.integer({ min: -3, max: 3 })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 300 }), fc.nat(), shift, shift, (size, pick, shiftFrom, shiftSize) => {
        const index = pick % size
        const leaf = reference.leaves[index] as Buffer
        const path = reference.path(index, size)
        const root = reference.root(size)
        const lead = rootByPath(index + shiftFrom, size + shiftSize, leaf, path)
        expect(verifyInclusion(index + shiftFrom, size + shiftSize, leaf, path, root)).toBe(lead?.equals(root) ?? false)
        const from = 1 + (pick % (size - 1))
        const [m, n] = [from + shiftFrom, size + shiftSize]
        const older = reference.root(from)
        const proof = reference.proof(from, size)
        const roots = rootsByProof(m, n, proof, older)
        const expected = roots?.every((lead, k) => lead.equals(k === 0 ? older : root)) ?? false
        expect(verifyConsistency(m, n, proof, older, root)).toBe(expected)
      }),
      { numRuns: 2000 },
    )
  })

  test('of impossible numbers are false, and are not created', () => {
    const root = reference.root(3)
    const leaf = reference.leaves[0] as Buffer
    const path = reference.path(0, 3)
    for (const odd of [-1, -1n, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(verifyInclusion(odd, 3, leaf, path, root)).toBe(false)
      expect(verifyInclusion(0, odd, leaf, path, root)).toBe(false)
      expect(verifyConsistency(odd, 3, [], root, root)).toBe(false)
      expect(verifyConsistency(1, odd, path, leaf, root)).toBe(false)
    }
    expect(verifyConsistency(0, 3, [], EMPTY_ROOT, root)).toBe(false)
    expect(verifyConsistency(0, 0, [], EMPTY_ROOT, EMPTY_ROOT)).toBe(false)
    for (const index of [-1, 3, 0.5, Number.NaN]) expect(() => inclusionPathOf(read, index, 3)).toThrow(RangeError)
    for (const from of [0, 4, 1.5, Number.NaN]) expect(() => consistencyPathOf(read, from, 3)).toThrow(RangeError)
  })
})

type Inclusion = {
  leafIdx: bigint
  treeSize: bigint
  root: string
  leafHash: string
  proof: string[] | null
  wantErr: boolean
}
type Consistency = {
  size1: bigint
  size2: bigint
  root1: string
  root2: string
  proof: string[] | null
  wantErr: boolean
}
type ReferenceRoots = { leaf_inputs_hex: string[]; node_hashes_by_level: string[][]; root_by_size_0_to_8: string[] }
type TreeVectors = {
  roots_hex_by_size_0_to_16: string[]
  root_hex_255: string
  root_hex_256: string
  accumulators: Record<'roots' | 'inclusion' | 'consistency', { sha256: string }>
}

function base64(text: string): Buffer {
  return Buffer.from(text, 'base64')
}

function rollingHash(lines: readonly string[]): string {
  return hex(sha256(Buffer.from(lines.map((line) => `${line}\n`).join(''))))
}

function rootsOfByteTree(): string[] {
  const range = new CompactRange()
  const roots = [hex(range.root())]
  for (const leaf of byteTree.leaves) {
    append(range, [leaf])
    roots.push(hex(range.root()))
  }
  return roots
}

function rollingInclusion(): string {
  const lines: string[] = []
  for (let n = 1; n <= 130; n += 1) {
    for (let i = 0; i < n; i += 1) lines.push([i, n, ...inclusionPathOf(readByteTree, i, n).map(hex)].join(' '))
  }
  return rollingHash(lines)
}

function rollingConsistency(): string {
  const lines: string[] = []
  for (let n = 1; n <= 130; n += 1) {
    for (let m = 1; m <= n; m += 1) lines.push([m, n, ...consistencyPathOf(readByteTree, m, n).map(hex)].join(' '))
  }
  return rollingHash(lines)
}

/** The nodes that appending leaves start..end-1 completes, in the order of the tree file. */
function nodesInOrder(start: number, end: number): Buffer[] {
  const nodes: Buffer[] = []
  for (let leaf = start; leaf < end; leaf += 1) {
    for (let width = 1; (leaf + 1) % width === 0; width *= 2) nodes.push(reference.root(leaf + 1, leaf + 1 - width))
  }
  return nodes
}

/** The hashes with each bit flipped in turn. */
function* bitFlips(hashes: readonly Buffer[]): Generator<Buffer[]> {
  for (let h = 0; h < hashes.length; h += 1) {
    for (let bit = 0; bit < 256; bit += 1) {
      const copy = hashes.map((hash) => Buffer.from(hash))
      const turned = copy[h] as Buffer
      turned[bit >> 3] = (turned[bit >> 3] as number) ^ (1 << (bit & 7))
      yield copy
    }
  }
}

/** The path without each hash, with each hash twice, with a foreign one added, and with neighbors swapped. */
function* rearranged(path: readonly Buffer[]): Generator<Buffer[]> {
  const foreign = sha256(Buffer.from('foreign'))
  yield [...path, foreign]
  yield [foreign, ...path]
  yield [...path, Buffer.alloc(0)]
  for (let i = 0; i < path.length; i += 1) {
    yield path.toSpliced(i, 1)
    yield path.toSpliced(i, 0, path[i] as Buffer)
    yield path.toSpliced(i, 1, (path[i] as Buffer).subarray(1))
    if (i > 0) yield path.toSpliced(i - 1, 2, path[i] as Buffer, path[i - 1] as Buffer)
  }
}
