/**
 * Paths of tiles and entry bundles under a log's prefix (C2SP tlog-tiles).
 *
 *   tile/<L>/<N>[.p/<W>]           hashes
 *   tile/entries/<N>[.p/<W>]       entries
 *
 * L is 0 to 63. N is written in groups of three digits, all but the last prefixed with `x`: 1234067 is `x001/x234/067`.
 * W, 1 to 255, is the width of a partial tile. Each tile has exactly one valid path; any other spelling is refused.
 */

/** Nodes or entries of a full tile. */
export const TILE_WIDTH = 256
/** Levels of the tree that one level of tiles spans. */
export const TILE_HEIGHT = 8
const LEVEL_MAX = 63
/** Six groups: up to 10^18 - 1, the largest number that other implementations accept. */
const GROUPS_MAX = 6

export type TilePath = {
  readonly kind: 'hashes' | 'entries'
  /** 0 for entries, whose tiles are as wide as those of level 0. */
  readonly level: number
  /** Not exact beyond 2^53; no log has such a tile. */
  readonly index: number
  /** 256, or the width of the partial tile. */
  readonly width: number
}

const groups = `(?:x[0-9]{3}/){0,${GROUPS_MAX - 1}}[0-9]{3}`
const whole = new RegExp(`^tile/(entries|0|[1-9][0-9]?)/(${groups})(?:\\.p/([1-9][0-9]{0,2}))?$`)

/** Undefined if the path is not in the one valid spelling. */
export function parseTilePath(path: string): TilePath | undefined {
  const [, level, number, partial] = whole.exec(path) ?? []
  if (level === undefined || number === undefined) return undefined
  // A leading `x000/` would be a second spelling.
  if (number.startsWith('x000')) return undefined
  const width = partial === undefined ? TILE_WIDTH : Number(partial)
  if (partial !== undefined && width >= TILE_WIDTH) return undefined
  const index = Number(number.replaceAll(/[x/]/g, ''))
  if (level === 'entries') return { kind: 'entries', level: 0, index, width }
  return Number(level) > LEVEL_MAX ? undefined : { kind: 'hashes', level: Number(level), index, width }
}

export function formatTilePath({ kind, level, index, width }: TilePath): string {
  const digits = String(index)
  const padded = digits.padStart(Math.ceil(digits.length / 3) * 3, '0')
  const parts = padded.match(/[0-9]{3}/g)!
  const number = parts.map((part, n) => (n === parts.length - 1 ? part : `x${part}`)).join('/')
  const partial = width === TILE_WIDTH ? '' : `.p/${width}`
  return `tile/${kind === 'entries' ? 'entries' : level}/${number}${partial}`
}

/** Complete nodes on this level of tiles in a tree of `size` leaves. */
export function tileNodes(level: number, size: number): number {
  return Math.floor(size / 2 ** (TILE_HEIGHT * level))
}

/**
 * Every tile of a tree of `size` leaves that is new or has grown since `from` leaves: the tiles that a follower
 * fetches. A tile that was partial and is now full is listed again as full.
 */
export function* newTiles(from: number, size: number): Generator<TilePath, void, undefined> {
  for (let level = 0; tileNodes(level, size) > 0; level++) {
    const had = tileNodes(level, from)
    const has = tileNodes(level, size)
    for (let index = Math.floor(had / TILE_WIDTH); index * TILE_WIDTH < has; index++) {
      const width = Math.min(TILE_WIDTH, has - index * TILE_WIDTH)
      if (index * TILE_WIDTH + width > had) yield { kind: 'hashes', level, index, width }
    }
  }
}
