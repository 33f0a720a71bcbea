/**
 * Tiles and entry bundles of the public log (C2SP tlog-tiles). Any client of that format can follow the log with these alone.
 *
 * Leaf hashes and entries come from the log's frames. Upper hashes come from the tree file, which is derived. Each is compared with the
 * hash of its two children before it is sent, because readers cache a tile forever.
 */
import type { Feed } from '../../actors/feed.ts'
import type { BookedLog } from '../../actors/log/book.ts'
import { HASH_BYTES, nodeHash } from '../../storage/merkle.ts'
import { TILE_HEIGHT, TILE_WIDTH, type TilePath, tileNodes } from '../../storage/tile-path.ts'
import type { TreeReader } from '../../storage/tree-reader.ts'
import { Unproved } from './proof.ts'

type TileContext = { readonly feed: Feed; readonly log: BookedLog; readonly tree: TreeReader }

/** The bytes of a tile, or undefined if the published log does not reach that far. Throws Unproved, TreeFileShort. */
export function tileBytes(
  { feed, log, tree }: TileContext,
  { kind, level, index, width }: TilePath,
): Buffer | undefined {
  const start = index * TILE_WIDTH
  const end = start + width
  if (end > tileNodes(level, log.head.size)) return undefined
  if (kind === 'entries') return feed.entries(log, start, end)
  if (level === 0) return feed.leafHashes(log, start, end)
  return checkedHashes(log, tree, level * TILE_HEIGHT, start, end)
}

function checkedHashes(log: BookedLog, tree: TreeReader, level: number, start: number, end: number): Buffer {
  const hashes = tree.hashes(level, start, end)
  const children = tree.hashes(level - 1, 2 * start, 2 * end)
  for (let at = 0; at < hashes.length; at += HASH_BYTES) {
    const left = children.subarray(2 * at, 2 * at + HASH_BYTES)
    const right = children.subarray(2 * at + HASH_BYTES, 2 * at + 2 * HASH_BYTES)
    if (!nodeHash(left, right).equals(hashes.subarray(at, at + HASH_BYTES)))
      throw new Unproved(`the tree file contains a wrong hash at level ${level}, node ${start + at / HASH_BYTES}`, log)
  }
  return hashes
}
