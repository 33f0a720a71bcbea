/**
 * The tree file, built from the log's frames: rebuilt if unusable, mended while the board runs.
 *
 * The frames are authoritative, because they are synced and carry a CRC. The file of node hashes is derived and never
 * synced, and nothing that leaves the board may rely on it alone. A start compares the right edge with the signed root
 * and reads no more. Checking every node of a million leaves would cost half a second without making anything safer.
 * Before they are sent, proofs are checked against their signed head and tiles against the level below them; leaf
 * hashes come from the frames.
 */
import { type Disk, isUnreadable, unlessUnreadable } from '../../storage/disk.ts'
import type { Frame, Journal } from '../../storage/journal.ts'
import { EMPTY_ROOT, HASH_BYTES, writeLeafHash } from '../../storage/merkle.ts'
import { verifyConsistency } from '../../storage/merkle-verify.ts'
import { TreeWriter } from '../../storage/tree.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { TreeRepairer } from '../../storage/tree-repairer.ts'
import { decodeLogFrame, entriesOf, type LogFrame } from './frame.ts'

/** Small frames are combined up to this many leaves: one write, one comparison of roots. */
const leavesPerBatch = 4_096

/**
 * The hashes of leaves `size - leaves.length / 32` to before `size`, and the signed root after them. `leaves` is valid
 * until the next step.
 */
type LeafBatch = { readonly leaves: Buffer; readonly size: number; readonly root: Buffer }

/** The leaf hashes of these frames of the log, in order. */
export function* leafBatches(frames: Iterable<Frame>): Generator<LeafBatch, void, undefined> {
  let hashes: Buffer = Buffer.allocUnsafe(2 * leavesPerBatch * HASH_BYTES)
  let length = 0
  let size = 0
  let root: Buffer = EMPTY_ROOT
  for (const frame of frames) {
    const log = decodeLogFrame(frame)
    hashes = grown(hashes, length + log.entries * HASH_BYTES)
    length += writeLeafHashes(log, hashes, length)
    size = log.size
    root = Buffer.from(log.root)
    if (length < leavesPerBatch * HASH_BYTES) continue
    yield { leaves: hashes.subarray(0, length), size, root }
    length = 0
  }
  if (length > 0) yield { leaves: hashes.subarray(0, length), size, root }
}

function grown(buffer: Buffer, bytes: number): Buffer {
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
  /** The tree that the newest of them requires. */
  readonly newest: { readonly size: number; readonly root: Uint8Array }
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
}

/**
 * Opens the tree at the newest frame. A file that is short or has another root, as after a power cut, is continued from
 * the newest frame whose root it has. If there is none, it is rebuilt.
 *
 * @throws RootMismatch; Damage; the disk's error
 */
export function openTree(options: OpenTree): TreeWriter {
  const { disk, path, newest, report } = options
  // A new follower has the frames but no tree.
  if (newest.size > 0 && !disk.fileExists(path)) return rebuildTree(options)
  try {
    const tree = TreeWriter.open(disk, path, newest.size)
    if (tree.root().equals(newest.root)) return tree
    tree.close()
    report('warn', 'log.tree.unusable', { path, problem: 'its root is not the signed one' })
  } catch (error) {
    report('warn', 'log.tree.unusable', { path, problem: error instanceof Error ? error.message : String(error) })
  }
  const known = newestRootIn(options)
  if (known === undefined || known.size === 0) return rebuildTree(options)
  const tree = unlessUnreadable(() => TreeWriter.open(disk, path, known.size))
  return tree === undefined ? rebuildTree(options) : continueTree(options, tree, known.seq + 1)
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

/** The size of the log after a frame. Undefined if the file does not have its root, or if either cannot be read. */
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

/** If the disk does not accept writes to the file, it may accept a new one in its place. */
function emptyTree(disk: Disk, path: string): TreeWriter {
  try {
    return TreeWriter.open(disk, path, 0)
  } catch (error) {
    if (!isUnreadable(error)) throw error
    disk.removeFile(path)
    return TreeWriter.open(disk, path, 0)
  }
}

/** Rebuilds the whole file, whatever it contains. Throws like openTree. */
export function rebuildTree(options: Omit<OpenTree, 'newest'>): TreeWriter {
  return continueTree(options, emptyTree(options.disk, options.path), options.first)
}

/** Appends the leaves of the frames from `from` on. */
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
 * The root of the first `size` leaves according to the file, tied to the signed `newest` by a consistency proof.
 * Undefined if the file is too short or wrong.
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
 * Mends the tree file of a running board from the frames of its log, in steps of a few milliseconds.
 *
 * @returns leaves examined, and bytes that were wrong
 * @throws RangeError if the frames do not give the roots they carry; Damage; the disk's error
 */
export function* repairTree(
  disk: Disk,
  path: string,
  frames: Iterable<Frame>,
): Generator<void, { readonly leaves: number; readonly wrongBytes: number }, undefined> {
  const repairer = TreeRepairer.open(disk, path)
  try {
    for (const { leaves, root } of leafBatches(frames)) {
      repairer.repair(leaves, root)
      yield
    }
    return { leaves: repairer.size, wrongBytes: repairer.wrong }
  } finally {
    repairer.close()
  }
}
