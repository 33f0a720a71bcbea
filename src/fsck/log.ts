/**
 * The log's part of the full check: sizes, roots, checkpoints and node hashes of every log, and the link from each closed one to the next.
 * Frames are taken in order. The caller, who has read the records, provides the entries that each of them must have.
 */
import { nameOf } from '../../actors/log/book.ts'
import {
  type ClosedLog,
  closedBefore,
  closeFrameType,
  entriesOf,
  type LogFrame,
  openFrameType,
} from '../../actors/log/frame.ts'
import { nextOf, previousOf } from '../../actors/log/rotation.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { type Disk, type DiskFile, unlessUnreadable } from '../../storage/disk.ts'
import type { Frame } from '../../storage/journal.ts'
import { CompactRange, HASH_BYTES, writeLeafHash } from '../../storage/merkle.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { nodeAt } from '../../storage/tree-layout.ts'
import { nodesFile } from '../board-directory.ts'

export type Finding = {
  /** `damage`: promised data is missing. `derived`: rebuilt when it is needed. `start`: a start is refused. */
  readonly kind: 'damage' | 'derived' | 'start'
  readonly where: string
  readonly what: string
  /** For derived data: removes or rebuilds it, if its sources are undamaged. */
  readonly rebuild?: () => void
}

type LogCheckOptions = {
  readonly disk: Disk
  /** Of the log's journal and its tree files. */
  readonly directory: string
  /** Every log of the board, oldest first. A vkey is '' if the key is unknown, which has been reported. */
  readonly logs: readonly { readonly origin: string; readonly vkey: string }[]
  readonly onFinding: (finding: Finding) => void
  /** Rebuilds the file of node hashes from these frames of the log's journal. */
  readonly rebuildNodes: (nodes: NodesOf) => void
}

export type NodesOf = {
  readonly path: string
  readonly first: number
  readonly last: number
}

export class LogChainCheck {
  readonly #options: LogCheckOptions
  /** Index of the log that the frames have reached. */
  #at = -1
  #range = new CompactRange()
  #key: VerifierKey | undefined
  #nodes: DiskFile | undefined
  #nodesAt = 0
  /** The first wrong node hash. */
  #nodesProblem: { readonly where: string; readonly what: string } | undefined
  #last = 1
  #first = 1
  /** The log that a close entry ended, once that was taken. */
  #ended: ClosedLog | undefined
  #newest: LogFrame | undefined
  #leaves = 0

  constructor(options: LogCheckOptions) {
    this.#options = options
    this.#begin(1)
  }

  /** `made`: the entries of the records that this frame covers; undefined if some of them cannot be read. */
  take(frame: Frame, log: LogFrame, made: readonly Buffer[] | undefined): void {
    const where = `log frame ${frame.seq}`
    const entries = [...entriesOf(log)]
    if (log.type === openFrameType) this.#opened(frame, entries[0], where)
    else if (this.#ended !== undefined) this.#damage(where, `it follows the frame that closed ${this.#ended.origin}`)
    this.#last = frame.seq
    this.#newest = log
    if (log.firstLeaf !== this.#range.size)
      this.#damage(where, `begins at leaf ${log.firstLeaf} after ${this.#range.size}`)
    if (made !== undefined) this.#compareRecords(log, entries, made, where)
    const hashes = Buffer.alloc(entries.length * HASH_BYTES)
    for (const [i, entry] of entries.entries()) writeLeafHash(entry, hashes, i * HASH_BYTES)
    const nodes = Buffer.alloc(hashes.length * 2 + HASH_BYTES * 54)
    this.#compareNodes(nodes.subarray(0, this.#range.append(hashes, nodes)))
    this.#leaves += entries.length
    if (log.size !== this.#range.size || !log.root.equals(this.#range.root()))
      this.#damage(where, `its root at size ${log.size} does not match its entries`)
    this.#checkSigned(log, where)
    if (log.type === closeFrameType) this.#closed(frame, log, entries[0], where)
  }

  /** Ends the check; returns the number of leaves of all logs. */
  end(): number {
    this.#endNodes()
    return this.#leaves
  }

  #compareRecords(log: LogFrame, entries: readonly Buffer[], made: readonly Buffer[], where: string): void {
    const isOfRecords = log.type !== openFrameType && log.type !== closeFrameType
    const expected = isOfRecords ? made.length : 1
    if (entries.length !== expected) this.#damage(where, `it has ${entries.length} of ${expected} entries`)
    const wrong = isOfRecords ? made.findIndex((entry, i) => entries[i]?.equals(entry) === false) : -1
    if (wrong >= 0) this.#damage(where, `its entry ${log.firstLeaf + wrong} does not match the record it covers`)
    if (!isOfRecords && made.length > 0) this.#damage(where, `it covers ${made.length} entries of records`)
  }

  #checkSigned(log: LogFrame, where: string): void {
    if (this.#options.logs[this.#at]?.vkey === '') return
    if (this.#key === undefined) return this.#damage(where, 'no key is known that could have signed its checkpoint')
    const opened = openCheckpoint(log.checkpoint, this.#key)
    if (!opened.ok) this.#damage(where, `its checkpoint does not verify: ${opened.problem}`)
    else if (opened.value.size !== log.size || !opened.value.root.equals(log.root))
      this.#damage(where, 'its checkpoint names another size or root')
  }

  #closed(frame: Frame, log: LogFrame, entry: Buffer | undefined, where: string): void {
    const { origin, vkey } = this.#options.logs[this.#at]!
    this.#ended = { origin, vkey, size: log.size, checkpoint: log.checkpoint, first: this.#first, last: frame.seq }
    const next = this.#options.logs[this.#at + 1]
    const named = entry === undefined ? undefined : nextOf(entry)
    // If the rotation was interrupted, the next log does not exist yet: the next start opens it.
    const isNext = next === undefined || (named?.origin === next.origin && ['', named.vkey].includes(next.vkey))
    if (named === undefined || !isNext) this.#damage(where, 'its entry does not name the log that follows')
  }

  #opened(frame: Frame, entry: Buffer | undefined, where: string): void {
    const previous = entry === undefined ? undefined : previousOf(entry)
    const ended = this.#ended ?? (previous?.isLost ? this.#lost() : undefined)
    const isTied =
      ended !== undefined &&
      previous?.origin === ended.origin &&
      previous.size === ended.size &&
      previous.root.equals(this.#range.root()) &&
      JSON.stringify({ ...closedBefore(frame).at(-1), ends: undefined }) === JSON.stringify(ended)
    if (!isTied) this.#damage(where, 'it does not name the end of the previous log')
    this.#endNodes()
    this.#begin(frame.seq)
  }

  /** A log that was not closed, as its last frame leaves it. */
  #lost(): ClosedLog | undefined {
    const named = this.#options.logs[this.#at]
    if (named === undefined || this.#newest === undefined) return undefined
    const { size, checkpoint } = this.#newest
    return { ...named, size, checkpoint, isLost: true, first: this.#first, last: this.#last }
  }

  #begin(first: number): void {
    this.#at++
    this.#first = first
    this.#ended = undefined
    this.#range = new CompactRange()
    const vkey = parseVkey(this.#options.logs[this.#at]?.vkey ?? '')
    this.#key = vkey.ok ? vkey.value : undefined
    this.#nodesAt = 0
    this.#nodes = undefined
    this.#nodesProblem = undefined
    this.#openNodes(this.#nodesPath())
  }

  #openNodes(path: string): void {
    const { disk, onFinding } = this.#options
    if (!disk.fileExists(path)) this.#nodesProblem = { where: path, what: 'missing' }
    else if (!disk.stat(path).isFile)
      onFinding({ kind: 'start', where: path, what: 'it is not a regular file: move it out of the way' })
    else this.#nodes = unlessUnreadable(() => disk.openFile(path, 'read'), this.#noNodes)
  }

  readonly #noNodes = (what: string): void => {
    this.#nodesProblem = { where: this.#nodesPath(), what }
  }

  #endNodes(): void {
    this.#nodes?.close()
    if (this.#nodesProblem === undefined) return
    const nodes = { path: this.#nodesPath(), first: this.#first, last: this.#last }
    const { onFinding, rebuildNodes } = this.#options
    onFinding({ kind: 'derived', ...this.#nodesProblem, rebuild: () => rebuildNodes(nodes) })
  }

  #compareNodes(expected: Buffer): void {
    if (this.#nodes === undefined || this.#nodesProblem !== undefined) return
    const nodes = this.#nodes
    const found = Buffer.alloc(expected.length)
    const count = unlessUnreadable(() => nodes.readAt(found, this.#nodesAt), this.#noNodes)
    if (count === undefined) return
    if (!found.equals(expected))
      this.#nodesProblem = differing({ path: nodes.path, at: this.#nodesAt, expected, found, count })
    this.#nodesAt += expected.length
  }

  #nodesPath(): string {
    const { directory, logs } = this.#options
    return nodesFile(directory, this.#at === 0 ? '' : nameOf(logs[this.#at]?.origin ?? ''))
  }

  #damage(where: string, what: string): void {
    this.#options.onFinding({ kind: 'damage', where, what })
  }
}

/** The first hash of a tree file that differs from the recomputed one. */
function differing(compared: {
  readonly path: string
  readonly at: number
  readonly expected: Buffer
  readonly found: Buffer
  readonly count: number
}): { readonly where: string; readonly what: string } {
  const { path, at, expected, found, count } = compared
  let first = 0
  while (found.compare(expected, first, first + HASH_BYTES, first, first + HASH_BYTES) === 0) first += HASH_BYTES
  const { level, index } = nodeAt((at + first) / HASH_BYTES)
  const hex = (bytes: Buffer) => bytes.toString('hex', first, first + HASH_BYTES)
  const instead = first + HASH_BYTES > count ? 'the file ends' : `found ${hex(found)}`
  return {
    where: `${path} at byte ${at + first}`,
    what: `node ${index} of level ${level}: expected ${hex(expected)}, ${instead}`,
  }
}
