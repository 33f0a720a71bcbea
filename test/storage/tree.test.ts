import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { machineDisk } from '../../storage/machine-disk.ts'
import { EMPTY_ROOT } from '../../storage/merkle.ts'
import { verifyConsistency, verifyInclusion } from '../../storage/merkle-verify.ts'
import { APPEND_LEAVES_MAX, TreeWriter } from '../../storage/tree.ts'
import { nodePosition, nodesIn, TreeFileShort } from '../../storage/tree-layout.ts'
import { HASHES_MAX, TreeReader } from '../../storage/tree-reader.ts'
import { TreeRepairer } from '../../storage/tree-repairer.ts'
import { ReferenceTree } from './reference-tree.ts'

const folder = mkdtempSync(join(tmpdir(), 'broadside-tree-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
function newPath(): string {
  files += 1
  return join(folder, `nodes-${files}.bin`)
}

const reference = new ReferenceTree(Array.from({ length: 66_000 }, (_, i) => Buffer.from(`entry ${i}`)))

/** Where Linux counts the reads and writes of this thread. */
const io = '/proc/thread-self/io'
function calls(kind: 'syscr' | 'syscw'): number {
  return Number(new RegExp(`${kind}: (\\d+)`).exec(readFileSync(io, 'utf8'))?.[1])
}

/** A file of the first `size` reference leaves, written in appends of the given length. */
function build(path: string, size: number, step = APPEND_LEAVES_MAX): void {
  const writer = TreeWriter.open(machineDisk, path, 0)
  for (let at = 0; at < size; at += step) writer.append(reference.leaves.slice(at, Math.min(size, at + step)))
  writer.close()
}

describe('the tree file', () => {
  test('holds each node where the Go checksum database would put it', () => {
    const places = [
      [0, 0, 0],
      [0, 1, 1],
      [1, 0, 2],
      [0, 2, 3],
      [0, 3, 4],
      [1, 1, 5],
      [2, 0, 6],
      [0, 4, 7],
      [3, 0, 14],
      [0, 8, 15],
      [8, 0, 510],
      [0, 256, 511],
    ] as const
    for (const [level, index, position] of places) expect(nodePosition(level, index)).toBe(position)
    expect([0, 8, 13, 256].map(nodesIn)).toEqual([0, 15, 23, 511])
    // Beyond 32 bits the count of ones has two halves: 2^40 - 1 has 40 of them.
    expect(nodesIn(2 ** 40 - 1)).toBe(2 * (2 ** 40 - 1) - 40)
    expect(nodePosition(0, 2 ** 40)).toBe(2 ** 41 - 1)
  })

  test('is the same however the leaves were divided into appends and processes', () => {
    const whole = newPath()
    build(whole, 1500)
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 400 }), { maxLength: 8 }), fc.boolean(), (batches, asList) => {
        const path = newPath()
        let size = 0
        for (const batch of [...batches, 1500]) {
          const writer = TreeWriter.open(machineDisk, path, size)
          expect(writer.root()).toEqual(reference.root(size))
          const leaves = reference.leaves.slice(size, Math.min(1500, size + batch))
          writer.append(asList ? leaves : Buffer.concat(leaves))
          size += leaves.length
          expect(writer.size).toBe(size)
          expect(writer.root()).toEqual(reference.root(size))
          writer.sync()
          writer.close()
        }
        expect(readFileSync(path).equals(readFileSync(whole))).toBe(true)
        rmSync(path)
      }),
      { numRuns: 40 },
    )
  })

  test('is truncated if longer than the log, and reported if shorter or missing', () => {
    const path = newPath()
    build(path, 300)
    const shorter = TreeWriter.open(machineDisk, path, 257)
    expect(shorter.root()).toEqual(reference.root(257))
    shorter.close()
    expect(readFileSync(path).length).toBe(nodesIn(257) * 32)

    expect(() => TreeWriter.open(machineDisk, path, 258)).toThrow(TreeFileShort)
    truncateSync(path, nodesIn(257) * 32 - 1)
    expect(() => TreeWriter.open(machineDisk, path, 257)).toThrow(
      expect.objectContaining({ path, expected: nodesIn(257) * 32, found: nodesIn(257) * 32 - 1 }),
    )
    const absent = newPath()
    expect(() => TreeWriter.open(machineDisk, absent, 1)).toThrow(TreeFileShort)
    expect(existsSync(absent)).toBe(false)

    const again = TreeWriter.open(machineDisk, path, 0)
    expect(again.root()).toEqual(EMPTY_ROOT)
    expect(readFileSync(path).length).toBe(0)
    again.close()
  })

  test('has another root if a byte of its right edge changed; elsewhere what is built on it is correct', () => {
    const path = newPath()
    build(path, 9_001)
    const right = readFileSync(path)
    // 9,001 = 8,192 + 512 + 256 + 32 + 8 + 1: the roots of these six subtrees are all that counts.
    const edge = [nodePosition(13, 0), nodePosition(9, 16), nodePosition(8, 34), nodePosition(0, 9_000)]
    const places = Array.from({ length: 20 }, (_, k) => (k * 104_729) % (nodesIn(8_191) * 32))
    for (const place of [...edge.map((position) => position * 32 + 5), ...places]) {
      const bytes = Buffer.from(right)
      bytes[place] = (bytes[place] as number) ^ 0x10
      writeFileSync(path, bytes)
      const writer = TreeWriter.open(machineDisk, path, 9_001)
      const isRight = writer.root().equals(reference.root(9_001))
      expect(isRight, `byte ${place}`).toBe(places.includes(place))
      writer.append(reference.leaves.slice(9_001, 9_100))
      expect(writer.root().equals(reference.root(9_100)), `byte ${place}`).toBe(isRight)
      writer.close()
    }
  })

  test('is repaired in place while its writer goes on and a reader has it open', () => {
    const path = newPath()
    const whole = newPath()
    build(whole, 3_000)
    const writer = TreeWriter.open(machineDisk, path, 0)
    writer.append(reference.leaves.slice(0, 2_000))
    const reader = TreeReader.open(machineDisk, path)
    reader.advance(2_000)
    const bytes = readFileSync(path)
    for (const place of [5, 40_000, bytes.length - 1]) bytes[place] = (bytes[place] as number) ^ 1
    writeFileSync(path, bytes.subarray(0, bytes.length - 40))
    expect(() => reader.root(2_000)).toThrow(TreeFileShort)

    const repairer = TreeRepairer.open(machineDisk, path)
    repairer.repair(Buffer.concat(reference.leaves.slice(0, 700)), reference.root(700))
    writer.append(reference.leaves.slice(2_000, 3_000))
    repairer.repair(Buffer.concat(reference.leaves.slice(700, 2_000)), reference.root(2_000))
    expect(repairer.size).toBe(2_000)
    expect(repairer.wrong).toBeGreaterThan(2)
    expect(readFileSync(path).equals(readFileSync(whole))).toBe(true)
    reader.forget()
    expect(reader.inclusionPath(1_250, 2_000)).toEqual(reference.path(1_250, 2_000))
    repairer.repair(Buffer.concat(reference.leaves.slice(2_000, 2_500)), reference.root(2_500))
    expect(() => repairer.repair(reference.leaves[0] as Buffer, reference.root(2_501))).toThrow(RangeError)
    expect(readFileSync(path).equals(readFileSync(whole))).toBe(true)
    repairer.close()
    reader.close()
    writer.close()
  })

  test('is recreated by its writer if it was removed, and a repairer fills in what was before', () => {
    const path = newPath()
    const whole = newPath()
    build(whole, 3_000)
    const writer = TreeWriter.open(machineDisk, path, 0)
    writer.append(reference.leaves.slice(0, 2_000))
    rmSync(path)
    expect(() => writer.reopen()).toThrow('ENOENT')
    writer.append(reference.leaves.slice(2_000, 2_400))
    writeFileSync(path, '')
    writer.reopen()
    writer.append(reference.leaves.slice(2_400, 3_000))
    expect(writer.root()).toEqual(reference.root(3_000))
    writer.close()
    const repairer = TreeRepairer.open(machineDisk, path)
    repairer.repair(Buffer.concat(reference.leaves.slice(0, 2_400)), reference.root(2_400))
    repairer.close()
    expect(readFileSync(path).equals(readFileSync(whole))).toBe(true)
  })

  test('accepts only whole hashes, and a bounded number at a time', () => {
    const path = newPath()
    const writer = TreeWriter.open(machineDisk, path, 0)
    expect(() => writer.append(Buffer.alloc(33))).toThrow(RangeError)
    expect(() => writer.append([Buffer.alloc(32), Buffer.alloc(31), Buffer.alloc(33)])).toThrow(RangeError)
    expect(() => writer.append(Buffer.alloc((APPEND_LEAVES_MAX + 1) * 32))).toThrow(RangeError)
    writer.append([])
    expect([writer.size, readFileSync(path).length]).toEqual([0, 0])
    writer.close()
  })

  test.skipIf(!existsSync(io))(`gets one write for each append [needs ${io}]`, () => {
    const writes = (): number => calls('syscw')
    const writer = TreeWriter.open(machineDisk, newPath(), 0)
    for (const [start, end] of [
      [0, 1],
      [1, 256],
      [256, 5000],
    ]) {
      const before = writes()
      writer.append(reference.leaves.slice(start, end))
      expect(writes() - before).toBe(1)
    }
    writer.close()
  })

  test.skipIf(!existsSync('/dev/full'))('makes the writer refuse permanently on a full disk [needs /dev/full]', () => {
    const writer = TreeWriter.open(machineDisk, '/dev/full', 0)
    expect(() => writer.append(reference.leaves.slice(0, 2))).toThrow('/dev/full')
    expect(() => writer.append(reference.leaves.slice(0, 2))).toThrow('/dev/full')
    expect(() => writer.append([])).toThrow('/dev/full')
    writer.close()
  })
})

describe('the reader', () => {
  test.each([1, 2, 255, 256, 257, 511, 512, 513, 65_535, 65_536, 65_537])(
    'proves every kind of leaf at size %i',
    (size) => {
      const path = newPath()
      build(path, size)
      const reader = TreeReader.open(machineDisk, path)
      reader.advance(size)
      const root = reader.root(size)
      expect(root).toEqual(reference.root(size))
      const interesting = [0, 1, 254, 255, 256, 257, 4096, 65_535, size - 2, size - 1]
      for (const index of interesting.filter((i) => i >= 0 && i < size)) {
        const inclusion = reader.inclusionPath(index, size)
        expect(inclusion).toEqual(reference.path(index, size))
        expect(verifyInclusion(index, size, reader.leaf(index), inclusion, root)).toBe(true)
        const consistency = reader.consistencyPath(index + 1, size)
        expect(consistency).toEqual(reference.proof(index + 1, size))
        expect(verifyConsistency(index + 1, size, consistency, reader.root(index + 1), root)).toBe(true)
      }
      reader.close()
      rmSync(path)
    },
  )

  test('follows the writer at every size, with plenty of memory or almost none', () => {
    const limits = [undefined, { chunksMax: 1, nodesMax: 1 }, { chunksMax: 2, nodesMax: 8 }]
    fc.assert(
      fc.property(
        fc.constantFrom(...limits),
        fc.array(fc.tuple(fc.nat({ max: 700 }), fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 6 })), {
          maxLength: 9,
        }),
        (limit, steps) => {
          const path = newPath()
          const writer = TreeWriter.open(machineDisk, path, 0)
          const reader = TreeReader.open(machineDisk, path, limit)
          for (const [batch, questions] of steps) {
            writer.append(reference.leaves.slice(writer.size, writer.size + batch))
            reader.advance(writer.size)
            expect(reader.root(writer.size)).toEqual(writer.root())
            for (const [a, b] of writer.size === 0 ? [] : questions) {
              const size = 1 + (a % writer.size)
              const index = b % size
              expect(reader.root(size)).toEqual(reference.root(size))
              expect(reader.leaf(index)).toEqual(reference.leaves[index])
              expect(reader.inclusionPath(index, size)).toEqual(reference.path(index, size))
              expect(reader.consistencyPath(index + 1, size)).toEqual(reference.proof(index + 1, size))
            }
          }
          reader.close()
          writer.close()
          rmSync(path)
        },
      ),
      { numRuns: 60 },
    )
  })

  test('returns the hashes of every level, as tiles show them', () => {
    const path = newPath()
    build(path, 66_000)
    const reader = TreeReader.open(machineDisk, path)
    reader.advance(66_000)
    expect(reader.leaves(250, 600)).toEqual(Buffer.concat(reference.leaves.slice(250, 600)))
    expect(reader.hashes(8, 0, 256)).toEqual(
      Buffer.concat(Array.from({ length: 256 }, (_, k) => reference.root((k + 1) * 256, k * 256))),
    )
    expect(reader.hashes(16, 0, 1)).toEqual(reference.root(65_536))
    expect(reader.hashes(3, 10, 12)).toEqual(Buffer.concat([reference.root(88, 80), reference.root(96, 88)]))
    expect(reader.hashes(8, 257, 257)).toEqual(Buffer.alloc(0))
    reader.close()
  })

  test.skipIf(!existsSync(io))(`caches what it read, within its memory bound [needs ${io}]`, () => {
    const path = newPath()
    build(path, 1024)
    const reads = (reader: TreeReader, ask: () => void): number => {
      reader.advance(1024)
      ask()
      const before = calls('syscr')
      const idle = calls('syscr') - before
      for (let round = 0; round < 10; round += 1) ask()
      return calls('syscr') - before - 2 * idle
    }
    const usual = TreeReader.open(machineDisk, path)
    expect(reads(usual, () => [3, 300, 900].map((index) => usual.inclusionPath(index, 1024)))).toBe(0)
    const small = TreeReader.open(machineDisk, path, { chunksMax: 1, nodesMax: 1 })
    expect(reads(small, () => [3, 300].map((index) => small.leaf(index)))).toBe(20)
    expect(reads(small, () => [0, 1].map((index) => small.hashes(8, index, index + 1)))).toBe(20)
    usual.close()
    small.close()
  })

  test('shows nothing beyond the size it knows, though the file has more', () => {
    const path = newPath()
    build(path, 1000)
    const reader = TreeReader.open(machineDisk, path)
    expect(reader.root(0)).toEqual(EMPTY_ROOT)
    expect(() => reader.root(1)).toThrow(RangeError)
    reader.advance(500)
    reader.advance(500)
    expect(reader.size).toBe(500)
    const refused = [
      () => reader.advance(499),
      () => reader.advance(Number.NaN),
      () => reader.root(501),
      () => reader.root(-1),
      () => reader.root(1.5),
      () => reader.leaf(500),
      () => reader.leaf(-1),
      () => reader.leaf(0.5),
      () => reader.leaves(3, 2),
      () => reader.hashes(1, 249, 251),
      () => reader.inclusionPath(0, 501),
      () => reader.inclusionPath(500, 500),
      () => reader.inclusionPath(0, 0),
      () => reader.consistencyPath(0, 500),
      () => reader.consistencyPath(400, 501),
      () => reader.consistencyPath(401, 400),
    ]
    for (const ask of refused) expect(ask).toThrow(RangeError)
    reader.close()
  })

  test('returns at most 65,536 hashes at a time', () => {
    const path = newPath()
    build(path, 66_000)
    const reader = TreeReader.open(machineDisk, path)
    reader.advance(66_000)
    expect(reader.leaves(0, HASHES_MAX).length).toBe(HASHES_MAX * 32)
    expect(() => reader.leaves(0, HASHES_MAX + 1)).toThrow(RangeError)
    reader.close()
  })

  test('returns copies: a caller that modifies an answer changes no other', () => {
    const path = newPath()
    build(path, 999)
    const reader = TreeReader.open(machineDisk, path)
    reader.advance(999)
    for (let round = 0; round < 2; round += 1) {
      const answers = [
        reader.root(999),
        reader.leaf(998),
        ...reader.inclusionPath(10, 999),
        ...reader.consistencyPath(700, 999),
      ]
      const expected = [
        reference.root(999),
        reference.leaves[998],
        ...reference.path(10, 999),
        ...reference.proof(700, 999),
      ]
      expect(answers).toEqual(expected)
      for (const answer of answers) answer.fill(0)
    }
    reader.close()
  })

  test('of a truncated file reports it, and makes no proof', () => {
    const path = newPath()
    build(path, 600)
    truncateSync(path, nodesIn(590) * 32)
    const reader = TreeReader.open(machineDisk, path)
    reader.advance(600)
    expect(() => reader.inclusionPath(595, 600)).toThrow(TreeFileShort)
    expect(() => reader.root(600)).toThrow(TreeFileShort)
    expect(reader.root(512)).toEqual(reference.root(512))
    reader.close()
  })

  test('of a file with a changed byte makes a proof that the verifier refuses', () => {
    const path = newPath()
    build(path, 600)
    const bytes = readFileSync(path)
    const place = nodePosition(0, 77) * 32 + 5
    bytes[place] = (bytes[place] as number) ^ 1
    writeFileSync(path, bytes)
    const reader = TreeReader.open(machineDisk, path)
    reader.advance(600)
    const leaf = reference.leaves[76] as Buffer
    expect(verifyInclusion(76, 600, leaf, reader.inclusionPath(76, 600), reference.root(600))).toBe(false)
    reader.close()
  })
})
