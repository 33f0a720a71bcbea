/**
 * Follows a log by its tiles alone: takes its checkpoint, fetches the new entries, and stores them only if the resulting tree has the
 * signed root. So a mirror never contains anything unproved, and two checkpoints that do not belong to one log are detected, even if both
 * are signed.
 *
 * Only entries are fetched; every hash is computed here. A full bundle that an interrupted run has left is checked and used.
 */
import { type OpenCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { HASH_BYTES, leafHash, rootOf } from '../../storage/merkle.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { formatTilePath, newTiles, TILE_WIDTH, type TilePath } from '../../storage/tile-path.ts'
import { CommandFailed, Unverified } from './command-line.ts'
import { entriesIn, type MirrorStore, rootOfHashes } from './mirror-store.ts'

/** Bundles fetched concurrently. */
const fetchesMax = 8
const attemptsMax = 4
const fetchMs = 30_000
/** A full bundle: 256 entries of 65,535 bytes, each preceded by its length. */
const fileBytesMax = TILE_WIDTH * (2 + 65_535)

export type FollowOptions = {
  readonly store: MirrorStore
  /** Address of the log's prefix, without a trailing slash. */
  readonly prefix: string
  readonly key: VerifierKey
  readonly progress: (entries: number, of: number) => void
}

type Followed = {
  readonly before: number
  readonly size: number
  readonly root: Uint8Array
  readonly bytesFetched: number
}

/** Updates the mirror to the log's newest checkpoint. Throws Unverified with what is wrong, or CommandFailed if the log does not answer. */
export async function followLog({ store, prefix, key, progress }: FollowOptions): Promise<Followed> {
  const note = (await fetchBytes(`${prefix}/checkpoint`)).toString('utf8')
  const newest = open(note, key, 'the log serves')
  const kept = store.text('checkpoint')
  const before = kept === '' ? undefined : open(kept, key, 'the mirror keeps')
  const from = before?.size ?? 0
  if (newest.size < from)
    throw new Unverified(
      `The log earlier signed a head of ${from} entries, and now serves one of ${newest.size}: it has dropped what it published. Keep this mirror: it is the evidence.`,
    )
  if (before !== undefined) proveKept(store, before)
  let bytesFetched = note.length
  let done = 0
  // Generated lazily: a signed size may still be too large for any disk.
  const queue = bundlesOf(from, newest.size)
  const worker = async (): Promise<void> => {
    for (const bundle of queue) {
      bytesFetched += await takeBundle(store, prefix, bundle)
      done++
      progress(Math.min(newest.size, from + done * TILE_WIDTH), newest.size)
    }
  }
  await Promise.all(Array.from({ length: fetchesMax }, worker))
  writeUpperTiles(store, from, newest.size)
  const root = rootOf(store.nodes(newest.size), newest.size)
  if (!root.equals(newest.root)) {
    forget(store, from, newest.size)
    throw new Unverified(
      `The entries that the log serves do not give the root that it signed for ${newest.size} entries${before === undefined ? '' : `, after the ${from} that this mirror has`}. None of them were kept.`,
    )
  }
  store.keepText('checkpoint', note)
  store.dropPartials(from, newest.size)
  return { before: from, size: newest.size, root, bytesFetched }
}

function* bundlesOf(from: number, size: number): Generator<TilePath> {
  for (const tile of newTiles(from, size)) if (tile.level === 0) yield { ...tile, kind: 'entries' }
}

/** Verifies that the stored mirror still matches its checkpoint: a byte that changed on disk is detected here. */
function proveKept(store: MirrorStore, kept: OpenCheckpoint): void {
  let root: Buffer
  try {
    root = rootOf(store.nodes(kept.size), kept.size)
  } catch (error) {
    throw new Unverified(`The mirror is damaged: ${(error as Error).message}. Remove it and mirror again.`)
  }
  if (!root.equals(kept.root))
    throw new Unverified(
      `The mirror is damaged: its tiles do not give the root of its own checkpoint. Remove it and mirror again.`,
    )
}

function open(note: string, key: VerifierKey, whose: string): OpenCheckpoint {
  const opened = openCheckpoint(note, key)
  if (!opened.ok) throw new Unverified(`The checkpoint that ${whose} does not verify: ${opened.problem}.`)
  return opened.value
}

/** Fetches a bundle and writes it with the tile of its hashes; a full one that is already stored is used. Returns the bytes fetched. */
async function takeBundle(store: MirrorStore, prefix: string, path: TilePath): Promise<number> {
  const kept = path.width === TILE_WIDTH ? store.read(path) : undefined
  const bundle = kept ?? (await fetchBundle(prefix, path))
  const entries = entriesIn(bundle)
  if (entries?.length !== path.width)
    throw new Unverified(`${formatTilePath(path)} does not contain ${path.width} entries.`)
  const hashes = Buffer.concat(entries.map((entry) => leafHash(entry)))
  if (kept === undefined) store.write(path, bundle)
  store.write({ ...path, kind: 'hashes' }, hashes)
  return kept === undefined ? bundle.length : 0
}

/** A partial bundle may be gone once the full one exists, which begins with the same bytes. */
async function fetchBundle(prefix: string, path: TilePath): Promise<Buffer> {
  const partial = await fetchBytes(`${prefix}/${formatTilePath(path)}`, path.width < TILE_WIDTH)
  if (partial.length > 0) return partial
  const full = await fetchBytes(`${prefix}/${formatTilePath({ ...path, width: TILE_WIDTH })}`)
  const entries = entriesIn(full)?.slice(0, path.width) ?? []
  return full.subarray(
    0,
    entries.reduce((sum, { length }) => sum + 2 + length, 0),
  )
}

/** Removes what was fetched and did not verify; otherwise the next run would use it. */
function forget(store: MirrorStore, from: number, size: number): void {
  for (const tile of newTiles(from, size)) {
    store.remove(tile)
    if (tile.level === 0) store.remove({ ...tile, kind: 'entries' })
  }
}

/** Each hash of an upper tile is the root of a full tile below it. */
function writeUpperTiles(store: MirrorStore, from: number, size: number): void {
  for (const tile of newTiles(from, size)) {
    if (tile.level === 0) continue
    const below = { kind: 'hashes', level: tile.level - 1, width: TILE_WIDTH } as const
    const hashes = Buffer.allocUnsafe(tile.width * HASH_BYTES)
    for (let n = 0; n < tile.width; n++) {
      const child = store.read({ ...below, index: tile.index * TILE_WIDTH + n })
      if (child?.length !== TILE_WIDTH * HASH_BYTES)
        throw new Unverified(
          `The mirror is damaged: a tile of level ${tile.level - 1} is missing. Remove it and mirror again.`,
        )
      rootOfHashes(child).copy(hashes, n * HASH_BYTES)
    }
    store.write(tile, hashes)
  }
}

/** Empty if the file does not exist and `mayBeAbsent` is set. */
export async function fetchBytes(url: string, mayBeAbsent = false): Promise<Buffer> {
  let problem = ''
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** attempt))
    try {
      const { status, body } = await fetchOnce(url)
      if (status === 200) return body
      if (status === 404 && mayBeAbsent) return Buffer.alloc(0)
      problem = `it answered ${status}`
      if (status >= 400 && status < 500 && status !== 429) break
    } catch (error) {
      problem = reasonOf(error)
    }
  }
  throw new CommandFailed(
    `${url} could not be fetched: ${problem}. Run the same command again: it resumes where it stopped.`,
  )
}

/** The status, and the body if the status is 200. Throws what fetch throws, and if an answer is larger than any file of a log. */
export async function fetchOnce(url: string): Promise<{ status: number; body: Buffer }> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(fetchMs) })
  const { status } = answer
  const chunks: Uint8Array[] = []
  let bytes = 0
  if (status === 200)
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.length
      if (bytes > fileBytesMax)
        throw new Error(`it sent more than ${fileBytesMax} bytes, the maximum for a file of a log`)
      chunks.push(chunk)
    }
  else await answer.body?.cancel()
  return { status, body: Buffer.concat(chunks) }
}

/** Why a fetch failed: the reason is in the cause. */
export function reasonOf(error: unknown): string {
  const { cause, message } = Object(error) as { cause?: unknown; message?: unknown }
  return cause instanceof Error && cause.message !== '' ? cause.message : String(message ?? error)
}
