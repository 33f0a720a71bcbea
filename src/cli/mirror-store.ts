/**
 * A mirror's directory: a log as static files in the C2SP tlog-tiles layout, so that any web server can serve it and any client of that
 * format can read it.
 *
 *   vkey                       the key that verified every checkpoint here
 *   checkpoint                 the newest verified one; written last, so everything it covers is here
 *   tile/<L>/<N>[.p/<W>]       hashes; partial tiles only for the newest checkpoint
 *   tile/entries/<N>[.p/<W>]   entries
 */

import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { HASH_BYTES, type NodeReader, nodeHash } from '../../storage/merkle.ts'
import { formatTilePath, newTiles, TILE_HEIGHT, TILE_WIDTH, type TilePath, tileNodes } from '../../storage/tile-path.ts'
import { CommandFailed } from './command-line.ts'

/** Computing a root reads upper tiles repeatedly, so they are cached. */
const tilesKeptMax = 64

export class MirrorStore {
  readonly #directory: string
  readonly #kept = new BoundedMap<string, Buffer>(tilesKeptMax)

  /** Creates the directory. Throws CommandFailed if it cannot. */
  constructor(directory: string) {
    this.#directory = directory
    try {
      mkdirSync(directory, { recursive: true })
    } catch (error) {
      throw new CommandFailed(
        `${directory} cannot be the directory of a mirror (${(error as Error).message}). Name a new directory, or that of an earlier run.`,
      )
    }
  }

  /** A file's text, or '' if it does not exist. */
  text(name: 'vkey' | 'checkpoint'): string {
    const path = join(this.#directory, name)
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  keepText(name: 'vkey' | 'checkpoint', text: string): void {
    machineDisk.writeAtomic(join(this.#directory, name), Buffer.from(text), 0o644)
  }

  /** The bytes of a tile, or undefined. */
  read(tile: TilePath): Buffer | undefined {
    const name = formatTilePath(tile)
    const kept = this.#kept.get(name)
    if (kept !== undefined) return kept
    const path = join(this.#directory, name)
    if (!existsSync(path)) return undefined
    const bytes = readFileSync(path)
    if (tile.kind === 'hashes') this.#kept.set(name, bytes)
    return bytes
  }

  write(tile: TilePath, bytes: Buffer): void {
    const name = formatTilePath(tile)
    const path = join(this.#directory, name)
    mkdirSync(dirname(path), { recursive: true })
    machineDisk.writeAtomic(path, bytes, 0o644)
    if (tile.kind === 'hashes') this.#kept.set(name, bytes)
  }

  remove(tile: TilePath): void {
    const name = formatTilePath(tile)
    this.#kept.delete(name)
    rmSync(join(this.#directory, name), { force: true })
  }

  /** Removes the partial tiles that a checkpoint of `from` entries needed and one of `size` entries does not. */
  dropPartials(from: number, size: number): void {
    for (const tile of newTiles(0, from)) {
      if (tile.width === TILE_WIDTH) continue
      const nodes = tileNodes(tile.level, size) - tile.index * TILE_WIDTH
      if (nodes === tile.width) continue
      this.remove(tile)
      if (tile.level === 0) this.remove({ ...tile, kind: 'entries' })
    }
  }

  /** Reads nodes of a tree of `size` leaves from its tiles. Throws if a tile is missing or too short. */
  nodes(size: number): NodeReader {
    const read: NodeReader = (level, index) => {
      const tileLevel = Math.floor(level / TILE_HEIGHT)
      const below = level % TILE_HEIGHT
      const first = index * 2 ** below
      const tile = Math.floor(first / TILE_WIDTH)
      const width = Math.min(TILE_WIDTH, tileNodes(tileLevel, size) - tile * TILE_WIDTH)
      const path: TilePath = { kind: 'hashes', level: tileLevel, index: tile, width }
      const bytes = this.read(path)
      if (bytes === undefined || bytes.length !== width * HASH_BYTES)
        throw new Error(`${formatTilePath(path)} is missing or cut short`)
      const at = (first % TILE_WIDTH) * HASH_BYTES
      return rootOfHashes(bytes.subarray(at, at + 2 ** below * HASH_BYTES))
    }
    return read
  }
}

/** The root over consecutive hashes, whose number is a power of two. */
export function rootOfHashes(hashes: Buffer): Buffer {
  let row = hashes
  while (row.length > HASH_BYTES) {
    const next = Buffer.allocUnsafe(row.length / 2)
    for (let at = 0; at < row.length; at += 2 * HASH_BYTES) {
      const parent = nodeHash(row.subarray(at, at + HASH_BYTES), row.subarray(at + HASH_BYTES, at + 2 * HASH_BYTES))
      parent.copy(next, at / 2)
    }
    row = next
  }
  return row
}

/** The entries of a bundle, or undefined if its lengths do not add up. */
export function entriesIn(bundle: Buffer): Buffer[] | undefined {
  const entries: Buffer[] = []
  for (let at = 0; at < bundle.length; ) {
    if (at + 2 > bundle.length) return undefined
    const end = at + 2 + bundle.readUInt16BE(at)
    if (end > bundle.length) return undefined
    entries.push(bundle.subarray(at + 2, end))
    at = end
  }
  return entries
}
