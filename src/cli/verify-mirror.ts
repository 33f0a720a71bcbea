/** Checks a mirror without the log: every entry, every hash, and the signature on the root they give. */
import { type OpenCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { HASH_BYTES, leafHash, rootOf } from '../../storage/merkle.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { formatTilePath, newTiles, TILE_WIDTH, type TilePath } from '../../storage/tile-path.ts'
import { Unverified } from './command-line.ts'
import { entriesIn, type MirrorStore, rootOfHashes } from './mirror-store.ts'

/** Throws Unverified with the file that is wrong, and what to do. */
export function verifyMirror(
  store: MirrorStore,
  key: VerifierKey,
  progress: (entries: number, of: number) => void,
): OpenCheckpoint {
  const opened = openCheckpoint(store.text('checkpoint'), key)
  if (!opened.ok) throw damaged(`its checkpoint does not verify: ${opened.problem}`)
  const { size, root } = opened.value
  for (const tile of newTiles(0, size)) {
    if (tile.level === 0) checkEntries(store, tile)
    else checkUpper(store, tile)
    progress(Math.min(size, (tile.index + 1) * TILE_WIDTH), size)
  }
  if (!rootOf(store.nodes(size), size).equals(root))
    throw damaged('its tiles do not give the root of the signed checkpoint')
  return opened.value
}

function checkEntries(store: MirrorStore, tile: TilePath): void {
  const path: TilePath = { ...tile, kind: 'entries' }
  const entries = entriesIn(present(store, path)) ?? []
  if (entries.length !== tile.width) throw damaged(`${formatTilePath(path)} does not contain ${tile.width} entries`)
  const hashes = Buffer.concat(entries.map((entry) => leafHash(entry)))
  if (!hashes.equals(present(store, tile)))
    throw damaged(`${formatTilePath(path)} and ${formatTilePath(tile)} are inconsistent`)
}

function checkUpper(store: MirrorStore, tile: TilePath): void {
  const bytes = present(store, tile)
  for (let n = 0; n < tile.width; n++) {
    const index = tile.index * TILE_WIDTH + n
    const child = present(store, { kind: 'hashes', level: tile.level - 1, index, width: TILE_WIDTH })
    if (!rootOfHashes(child).equals(bytes.subarray(n * HASH_BYTES, (n + 1) * HASH_BYTES)))
      throw damaged(`${formatTilePath(tile)} does not match the tiles below it`)
  }
}

function present(store: MirrorStore, tile: TilePath): Buffer {
  const bytes = store.read(tile)
  if (bytes === undefined) throw damaged(`${formatTilePath(tile)} is missing`)
  return bytes
}

function damaged(what: string): Unverified {
  return new Unverified(`The mirror is damaged: ${what}. Remove it and mirror again.`)
}
