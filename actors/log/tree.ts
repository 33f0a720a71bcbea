/**
 * The tree file as the log's frames give it: made again where it is of no use, mended while the board runs.
 *
 * The frames are the truth, because they are synced and carry a CRC; the file of node hashes is derived, is never synced,
 * and nothing that leaves the board may rest on it alone. A start compares the right edge with the signed root and reads no
 * more: looking at every node of a million leaves costs half a second and makes nothing safer, because a proof is
 * checked against its signed head before it is given, a tile against what is below it, and leaf hashes come from the frames.
 */
import { type Disk, isUnreadable, unlessUnreadable } from '../../storage/disk.ts'
import type { Frame, Journal } from '../../storage/journal.ts'
import { EMPTY_ROOT, HASH_BYTES, writeLeafHash } from '../../storage/merkle.ts'
import { verifyConsistency } from '../../storage/merkle-verify.ts'
import { TreeWriter } from '../../storage/tree.ts'
import { TreeMender } from '../../storage/tree-mender.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { decodeLogFrame, entriesOf, type LogFrame } from './frame.ts'

/** Small frames are taken together up to so many leaves: one write, one comparison of roots. */
const leavesPerBatch = 4_096

/** Leaves `size - leaves.length / 32` to `size`, and the root that was signed after them. `leaves` lasts until the next step. */
type LeafBatch = { readonly leaves: Buffer; readonly size: number; readonly root: Buffer }

/** The leaf hashes of these frames of the log, in order. */
export function* leafBatches(frames: Iterable<Frame>): Generator<LeafBatch, void, undefined> {
  let hashes: Buffer = Buffer.allocUnsafe(2 * leavesPerBatch * HASH_BYTES)
  let length = 0
  let size = 0
  let root: Buffer = EMPTY_ROOT
  for (const frame of frames) {
    const log = decodeLogFrame(frame)
    hashes = withRoom(hashes, length + log.entries * HASH_BYTES)
    length += writeLeafHashes(log, hashes, length)
    size = log.size
    root = Buffer.from(log.root)
    if (length < leavesPerBatch * HASH_BYTES) continue
    yield { leaves: hashes.subarray(0, length), size, root }
    length = 0
  }
  if (length > 0) yield { leaves: hashes.subarray(0, length), size, root }
}

function withRoom(buffer: Buffer, bytes: number): Buffer {
  return bytes <= buffer.length ? buffer : Buffer.concat([buffer], bytes * 2)
}

function writeLeafHashes(frame: LogFrame, into: Buffer, start: number): number {
  let at = start
  for (const entry of entriesOf(frame)) at += writeLeafHash(entry, into, at)
  return at - start
}

/** The entries of the log do not give a root that was signed over them. */
class RootMismatch extends Error {
  override readonly name = 'RootMismatch'

  constructor(size: number) {
    super(`the log's entries up to leaf ${size} do not give the root that was signed over them`)
  }
}

type OpenTree = {
  readonly disk: Disk
  readonly path: string
  readonly journal: Pick<Journal, 'read' | 'scan'>
  /** The frames of this log in the journal. */
  readonly first: number
  readonly last: number
  /** What the newest of them says the tree must be. */
  readonly newest: { readonly size: number; readonly root: Uint8Array }
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/**
 * The tree of the newest frame. A file that is short or has another root is continued from the newest frame whose root it has, as
 * after a power cut; one that has none is made again.
 *
 * @throws RootMismatch; Damage; the disk's error
 */
export function openTree(options: OpenTree): TreeWriter {
  const { disk, path, newest, report } = options
  // A follower that is new has the frames and no tree.
  if (newest.size > 0 && !disk.fileExists(path)) return remakeTree(options)
  try {
    const tree = TreeWriter.open(disk, path, newest.size)
    if (tree.root().equals(newest.root)) return tree
    tree.close()
    report('warn', 'log.tree.unusable', { path, problem: 'its root is not the signed one' })
  } catch (error) {
    report('warn', 'log.tree.unusable', { path, problem: error instanceof Error ? error.message : String(error) })
  }
  const known = newestRootIn(options)
  if (known === undefined || known.size === 0) return remakeTree(options)
  const tree = unlessUnreadable(() => TreeWriter.open(disk, path, known.size))
  return tree === undefined ? remakeTree(options) : continueTree(options, tree, known.seq + 1)
}

/** The newest frame whose root the file has. */
function newestRootIn(options: OpenTree): { readonly seq: number; readonly size: number } | undefined {
  let [from, to] = [options.first, options.last]
  let found: { readonly seq: number; readonly size: number } | undefined
  while (from <= to) {
    const seq = Math.floor((from + to) / 2)
    const size = sizeIfRight(options, seq)
    if (size === undefined) to = seq - 1
    else {
      found = { seq, size }
      from = seq + 1
    }
  }
  return found
}

/** The size of the log after a frame. Undefined: the file has not its root, or one of the two cannot be read. */
function sizeIfRight({ disk, path, journal }: OpenTree, seq: number): number | undefined {
  let tree: TreeReader | undefined
  try {
    const { size, root } = decodeLogFrame(journal.read(seq)!)
    tree = TreeReader.open(disk, path)
    // No further: the file may end there.
    tree.advance(size)
    return tree.root(size).equals(root) ? size : undefined
  } catch {
    return undefined
  } finally {
    tree?.close()
  }
}

/** A disk that does not take the file may take another in its place. */
function emptyTree(disk: Disk, path: string): TreeWriter {
  try {
    return TreeWriter.open(disk, path, 0)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    disk.removeFile(path)
    return TreeWriter.open(disk, path, 0)
  }
}

/** Makes the whole file again, whatever it holds. Throws like openTree. */
export function remakeTree(options: Omit<OpenTree, 'newest'>): TreeWriter {
  return continueTree(options, emptyTree(options.disk, options.path), options.first)
}

/** Appends what the frames from `from` on have. */
function continueTree(options: Omit<OpenTree, 'newest'>, tree: TreeWriter, from: number): TreeWriter {
  const { path, journal, last, report } = options
  const kept = tree.size
  for (const { leaves, size, root } of leafBatches(journal.scan(from, last))) {
    tree.append(leaves)
    if (tree.root().equals(root)) continue
    throw new RootMismatch(size)
  }
  report('info', 'log.tree.rebuilt', { path, size: tree.size, kept })
  return tree
}

/**
 * The root of the first `size` leaves, as the file gives it and a consistency proof ties it to the signed `newest`.
 * Undefined: the file does not say, or holds something wrong.
 */
export function provenRoot(
  { disk, path }: Pick<OpenTree, 'disk' | 'path'>,
  size: number,
  newest: OpenTree['newest'],
): Buffer | undefined {
  if (size === newest.size) return Buffer.from(newest.root)
  if (size === 0) return EMPTY_ROOT
  let tree: TreeReader | undefined
  try {
    tree = TreeReader.open(disk, path)
    tree.advance(newest.size)
    const root = tree.root(size)
    const isProven = verifyConsistency(size, newest.size, tree.consistencyPath(size, newest.size), root, newest.root)
    return isProven ? root : undefined
  } catch {
    return undefined
  } finally {
    tree?.close()
  }
}

/**
 * Mends the tree file of a running board as the frames of its log give it, in steps of a few milliseconds.
 *
 * @returns what was found: leaves examined, and bytes that were wrong
 * @throws RangeError when the frames do not give the roots they carry; Damage; the disk's error
 */
export function* mendTree(
  disk: Disk,
  path: string,
  frames: Iterable<Frame>,
): Generator<void, { readonly leaves: number; readonly wrongBytes: number }, undefined> {
  const mender = TreeMender.open(disk, path)
  try {
    for (const { leaves, root } of leafBatches(frames)) {
      mender.mend(leaves, root)
      yield
    }
    return { leaves: mender.size, wrongBytes: mender.wrong }
  } finally {
    mender.close()
  }
}
