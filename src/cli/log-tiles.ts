/**
 * A log's leaf hashes, fetched tile by tile, each verified against the log's signed root before use.
 *
 * The root is computed from the last tile of every level, so it proves those; a full tile is proved by its node in the tile above. A
 * malicious server can only refuse to answer.
 */
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { HASH_BYTES, rootOf } from '../../storage/merkle.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { formatTilePath, TILE_HEIGHT, TILE_WIDTH, tileNodes } from '../../storage/tile-path.ts'
import { Unverified } from './command-line.ts'
import { fetchBytes } from './mirror-follow.ts'
import { rootOfHashes } from './mirror-store.ts'

export class LogTiles {
  readonly origin: string
  readonly size: number
  readonly #prefix: string
  /** Upper tiles by level and index; there are few. */
  readonly #upper = new Map<string, Buffer>()

  private constructor(origin: string, prefix: string, size: number) {
    this.origin = origin
    this.#prefix = prefix
    this.size = size
  }

  /** Fetches the newest checkpoint of the log signed by `key`, below this address. Throws Unverified or CommandFailed. */
  static async open(url: string, key: VerifierKey): Promise<LogTiles> {
    const prefix = `${url.replace(/\/+$/, '')}${key.name.slice(key.name.indexOf('/'))}`
    const opened = openCheckpoint((await fetchBytes(`${prefix}/checkpoint`)).toString('utf8'), key)
    if (!opened.ok) throw new Unverified(`The checkpoint at ${prefix} does not verify: ${opened.problem}.`)
    const { size, root } = opened.value
    const tiles = new LogTiles(key.name, prefix, size)
    const edges = new Map<number, Buffer>()
    for (let level = 0; tileNodes(level, size) > 0; level++) {
      const nodes = tileNodes(level, size)
      if (nodes % TILE_WIDTH !== 0) edges.set(level, await tiles.#fetch(level, Math.floor(nodes / TILE_WIDTH)))
    }
    const read = (level: number, index: number): Buffer => {
      const below = level % TILE_HEIGHT
      const first = (index * 2 ** below) % TILE_WIDTH
      return rootOfHashes(
        edges.get(Math.floor(level / TILE_HEIGHT))!.subarray(first * HASH_BYTES, (first + 2 ** below) * HASH_BYTES),
      )
    }
    if (!rootOf(read, size).equals(root))
      throw new Unverified(`The tiles at ${prefix} do not give the root that the log signed for ${size} leaves.`)
    for (const [level, bytes] of edges)
      tiles.#upper.set(`${level}/${Math.floor(tileNodes(level, size) / TILE_WIDTH)}`, bytes)
    return tiles
  }

  /** The leaf hashes of tile `index`: leaves index·256 to at most index·256 + 255. */
  leaves(index: number): Promise<Buffer> {
    return this.#proved(0, index)
  }

  async #proved(level: number, index: number): Promise<Buffer> {
    const name = `${level}/${index}`
    const known = this.#upper.get(name)
    if (known !== undefined) return known
    const bytes = await this.#fetch(level, index)
    const above = await this.#proved(level + 1, Math.floor(index / TILE_WIDTH))
    const at = (index % TILE_WIDTH) * HASH_BYTES
    if (!rootOfHashes(bytes).equals(above.subarray(at, at + HASH_BYTES)))
      throw new Unverified(`Tile ${index} of level ${level} at ${this.#prefix} is not the one under the signed root.`)
    if (level > 0) this.#upper.set(name, bytes)
    return bytes
  }

  async #fetch(level: number, index: number): Promise<Buffer> {
    const width = Math.min(TILE_WIDTH, tileNodes(level, this.size) - index * TILE_WIDTH)
    const path = formatTilePath({ kind: 'hashes', level, index, width })
    let bytes = await fetchBytes(`${this.#prefix}/${path}`, width < TILE_WIDTH)
    // The log may have grown in the meantime: the full tile begins with the content of the partial one.
    if (bytes.length === 0) {
      const full = formatTilePath({ kind: 'hashes', level, index, width: TILE_WIDTH })
      bytes = (await fetchBytes(`${this.#prefix}/${full}`)).subarray(0, width * HASH_BYTES)
    }
    if (bytes.length !== width * HASH_BYTES)
      throw new Unverified(`${path} at ${this.#prefix} has ${bytes.length} bytes instead of ${width * HASH_BYTES}.`)
    return bytes
  }
}
