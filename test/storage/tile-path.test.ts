import { expect, test } from 'vitest'
import { formatTilePath, newTiles, parseTilePath, TILE_WIDTH, tileNodes } from '../../storage/tile-path.ts'
import { readVector, vectors } from '../support/vectors.ts'

type Case = readonly [number | string, ...(number | string)[]]
const cases = (vectors.isAbsent ? {} : JSON.parse(readVector('tlog/tile-paths.json'))) as Readonly<
  Record<string, readonly Case[]>
>

test.skipIf(vectors.isAbsent)(`paths are written as other implementations write them${vectors.note}`, () => {
  for (const [level, index, partial, path] of cases.tile_path_level_index_p!) {
    const width = partial === 0 ? TILE_WIDTH : Number(partial)
    expect(formatTilePath({ kind: 'hashes', level: Number(level), index: Number(index), width })).toBe(path)
  }
  for (const [index, partial, path] of cases.entries_path_N_p!) {
    const width = partial === 0 ? TILE_WIDTH : Number(partial)
    expect(formatTilePath({ kind: 'entries', level: 0, index: Number(index), width })).toBe(path)
  }
  for (const [leaf, size, path] of cases.entries_path_for_index_and_size!) {
    const index = Math.floor(Number(leaf) / TILE_WIDTH)
    const width = Math.min(TILE_WIDTH, Number(size) - index * TILE_WIDTH)
    expect(formatTilePath({ kind: 'entries', level: 0, index, width })).toBe(path)
  }
})

test.skipIf(vectors.isAbsent)(
  `paths are parsed as other implementations do, and the fifteen malformed ones are refused${vectors.note}`,
  () => {
    for (const [level, path, index, partial] of cases.parse_ok_level_path_index_p!) {
      const width = partial === 0 ? TILE_WIDTH : Number(partial)
      expect(parseTilePath(`tile/${level}/${path}`)).toEqual({
        kind: 'hashes',
        level: Number(level),
        index: Number(index),
        width,
      })
    }
    expect(cases.parse_error_level_path).toHaveLength(15)
    for (const [level, path] of cases.parse_error_level_path!)
      expect(parseTilePath(`tile/${level}/${path}`), `tile/${level}/${path}`).toBeUndefined()
  },
)

test('each path has exactly one form', () => {
  for (const path of [
    'tile/00/000',
    'tile/0/x000/001',
    'tile/0/000.p/01',
    'tile/0/000.p/0',
    'tile/entries/0',
    'tile/0/000/',
    '/tile/0/000',
    'tile/0/%30%30%30',
  ])
    expect(parseTilePath(path), path).toBeUndefined()
  for (const index of [0, 1, 255, 999, 1_000, 1_234_067, 999_999, 1_000_000]) {
    for (const width of [1, 255, TILE_WIDTH]) {
      const path = { kind: 'hashes', level: 3, index, width } as const
      expect(parseTilePath(formatTilePath(path))).toEqual(path)
    }
  }
})

test('a follower that fetches the new tiles of each size has every node of every level', () => {
  const sizes = [0, 1, 7, 255, 256, 257, 511, 512, 65_535, 65_536, 70_000]
  const had = new Map<string, number>()
  for (const [n, size] of sizes.slice(1).entries()) {
    for (const { level, index, width } of newTiles(sizes[n]!, size)) had.set(`${level}/${index}`, width)
    for (let level = 0; tileNodes(level, size) > 0; level++) {
      const nodes = tileNodes(level, size)
      for (let index = 0; index * TILE_WIDTH < nodes; index++)
        expect(had.get(`${level}/${index}`)).toBe(Math.min(TILE_WIDTH, nodes - index * TILE_WIDTH))
    }
  }
})
