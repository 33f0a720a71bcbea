/**
 * The signed log as loaded from its files: its journal, the key of the log that grows, the logs closed before it, and the tree.
 *
 * Only this file reads a log's key. A rotation that a crash interrupted after its `close` entry is finished here: that entry names the next
 * log and its key, whose file was written earlier.
 */

import { internalLimits } from '../../actors/kernel/limits.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import { nameOf } from '../../actors/log/book.ts'
import {
  type ClosedLog,
  closedLogs,
  closeFrameType,
  decodeLogFrame,
  encodeLogFrame,
  entriesOf,
  hasSigned,
  type LogFrame,
  logFrameType,
} from '../../actors/log/frame.ts'
import { Log, type LogOptions, stateAfter } from '../../actors/log/log.ts'
import { closeEntry, closeFrame, nextOf, openEntry, openFrame } from '../../actors/log/rotation.ts'
import { openTree, provenRoot, rebuildTree } from '../../actors/log/tree.ts'
import { formatCheckpoint } from '../../storage/checkpoint.ts'
import type { Disk } from '../../storage/disk.ts'
import { type Frame, Journal, type JournalReader } from '../../storage/journal.ts'
import { EMPTY_ROOT, leafHash, writeLeafHash } from '../../storage/merkle.ts'
import { signNote } from '../../storage/note.ts'
import { createNoteKey, type NoteKey } from '../../storage/note-signer.ts'
import { TreeWriter } from '../../storage/tree.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import {
  logDirectory,
  logKeyFile,
  nodesFile,
  readSecret,
  UnusableDirectory,
  uncheckedSecret,
} from '../board-directory.ts'
import type { Random } from '../platform.ts'
import { durableOfLog, rootBeyond } from './covered.ts'
import { FollowedLog, type FollowedLogOptions } from './followed-log.ts'
import { checkMark, type HighWaterMark } from './mark.ts'

export type SignedLogOptions = {
  readonly disk: Disk
  /** May be omitted if a log exists already. It generates the id of a new one. */
  readonly random?: Random
  readonly dataDirectory: string
  /** Origin of the first log, from board.json. */
  readonly origin: string
  readonly segmentBytesMax: number
  /** High-water marks; none of them may be ahead of the log. Omit it if nothing will be signed; no mark is then checked. */
  readonly marks?: readonly HighWaterMark[] | undefined
  /** Called if there is no log yet; returns how many shards it will cover. Throws if there should be a log. */
  readonly begin: () => number
  readonly report: (level: 'info' | 'warn', event: string, facts: Readonly<Record<string, unknown>>) => void
  /** Set on a follower: the logs that the leader named when this directory was created. There is no signing key here. */
  readonly followed?: readonly LogIdentity[] | undefined
  /** Set by a caller that ends the log, whose key may be lost: verifier keys that may be those of the log. Without its key it signs nothing. */
  readonly knownKeys?: readonly string[] | undefined
}

export type LogIdentity = { readonly origin: string; readonly vkey: string }

/** A log's key. Without a signer, it is another machine's. */
type LogKey = Pick<NoteKey, 'vkey'> & Partial<Pick<NoteKey, 'signer'>>

const frameBytesMax = 64 * 1024 * 1024

export class SignedLog {
  readonly journal: Journal
  readonly #options: SignedLogOptions
  readonly #directory: string
  #key: LogKey
  #closed: readonly ClosedLog[]
  #newest: LogFrame
  #tree: TreeWriter

  /** Throws UnusableDirectory, UnusableMark, RolledBack, RootMismatch, and the errors of Journal.open. */
  static open(options: SignedLogOptions): SignedLog {
    const { disk, random, dataDirectory: path, segmentBytesMax } = options
    const journal = Journal.open({
      disk,
      ...(random === undefined ? {} : { random }),
      directory: logDirectory(path),
      segmentBytesMax,
      knownDurable: (journalId) => durableOfLog(disk, path, journalId),
      frameBytesMax,
      isCopy: options.followed !== undefined,
      report: ({ kind, ...facts }) => options.report('info', `log.journal.${kind}`, facts),
    })
    try {
      return new SignedLog(options, journal)
    } catch (error) {
      journal.close()
      throw error
    }
  }

  private constructor(options: SignedLogOptions, journal: Journal) {
    this.#options = options
    this.#directory = logDirectory(options.dataDirectory)
    this.journal = journal
    if (journal.nextSeq === 1) this.#begin(options.begin())
    this.#newest = decodeLogFrame(journal.read(journal.nextSeq - 1)!)
    this.#closed = closedLogs(journal)
    this.#key = this.#keyOf(this.#newest)
    checkKey(this.#newest, this.#key.vkey, this.#keyFile(this.#keyOrigin(this.#newest)))
    this.#tree = this.#openTree()
    for (const log of this.#closed) this.#keepTree(log)
    if (options.marks !== undefined) this.checkMarks(options.marks)
    if (this.#newest.type === closeFrameType && options.followed === undefined) this.#openNext()
    this.#dropOldKeys()
  }

  /** The log that grows. */
  get origin(): string {
    return originOf(this.#newest.checkpoint)
  }

  get vkey(): string {
    return this.#key.vkey
  }

  /** Whether the key that signs is here. */
  get hasKey(): boolean {
    return this.#key.signer !== undefined
  }

  /** Every log of the board, oldest first. */
  get identities(): LogIdentity[] {
    return [...this.#closed.map(({ origin, vkey }) => ({ origin, vkey })), { origin: this.origin, vkey: this.vkey }]
  }

  /** The closed logs, oldest first. */
  get closed(): readonly ClosedLog[] {
    return this.#closed
  }

  get newest(): LogFrame {
    return this.#newest
  }

  get tree(): TreeWriter {
    return this.#tree
  }

  /** Creates leaves and heads from the shards' journals, starting at the newest frame. */
  writer(options: Omit<LogOptions, 'journal' | 'tree' | 'sign' | 'leafHash' | 'entriesPerFrameMax' | 'start'>): Log {
    return new Log({
      ...options,
      journal: this.journal,
      tree: this.#tree,
      sign: (size, root) => this.sign(size, root),
      leafHash: writeLeafHash,
      entriesPerFrameMax: internalLimits.entriesPerLogFrame,
      start: stateAfter(this.#newest),
    })
  }

  /** Appends frames of another machine's log after the newest frame. */
  follower(options: Pick<FollowedLogOptions, 'shards' | 'published'>): FollowedLog {
    return new FollowedLog({
      ...options,
      journal: this.journal,
      tree: this.#tree,
      vkey: this.vkey,
      start: stateAfter(this.#newest),
      isOver: this.#newest.type === closeFrameType,
    })
  }

  /** Covers what these journals have after the newest frame. Nobody may be writing to them. `ends`: their last frames, durable. */
  cover(
    shards: readonly JournalReader[],
    ends: readonly number[],
    { soon, later }: Pick<Timers, 'soon' | 'later'>,
  ): void {
    const log = this.writer({ shards, soon, later, confirm: () => {}, published: () => {} })
    for (const [shard, end] of ends.entries()) log.hint(shard, end)
    log.catchUp()
    this.#newest = decodeLogFrame(this.journal.read(this.journal.nextSeq - 1)!)
  }

  /** The signed note of a size and root. */
  sign(size: number, root: Uint8Array): string {
    const { signer } = this.#key
    if (signer === undefined) throw new Error('a follower signs nothing')
    return signNote(formatCheckpoint({ origin: this.origin, size, root }), signer)
  }

  /**
   * Closes the log and opens the next one, whose key file must exist already. When it returns, both are durable and the old key is gone, so
   * that a closed log is never signed again.
   *
   * @param next origin of the next log
   * @param time Unix seconds
   */
  rotate(next: string, time: number): void {
    const key = createNoteKey(next, readSecret(this.#options.disk, this.#keyFile(next)))
    const entry = closeEntry(time, { origin: next, vkey: key.vkey })
    this.#tree.append([leafHash(entry)])
    const { size } = this.#tree
    const root = this.#tree.root()
    this.journal.append([closeFrame(this.#newest, entry, { size, root, checkpoint: this.sign(size, root) })])
    this.#newest = decodeLogFrame(this.journal.read(this.journal.nextSeq - 1)!)
    this.#openNext()
    this.#dropOldKeys()
  }

  /**
   * Begins the next log, whose key file must exist already, without a last entry in this one: whatever came after its newest head is lost.
   * The old key signs nothing more, and is gone when this returns.
   *
   * @param next origin of the next log
   * @param time Unix seconds
   * @param ends where the shards' journals end; what they say about the log up to there no longer counts
   */
  lose(next: string, time: number, ends: readonly number[]): void {
    const { size, root, checkpoint } = this.#newest
    const first = openEntry(time, { origin: this.origin, size, root: Buffer.from(root), isLost: true })
    this.#follow({ first, next, ended: { origin: this.origin, vkey: this.vkey, size, checkpoint, isLost: true, ends } })
    this.#dropOldKeys()
  }

  /** The verified consistency path from a size of one of the board's logs to its newest head. */
  consistency(origin: string, from: number): Buffer[] {
    const log = this.#closed.find((each) => each.origin === origin)
    const { size } = log ?? this.#newest
    this.#rootsOf(log)(from)
    const tree = TreeReader.open(this.#options.disk, this.#nodes(origin))
    try {
      tree.advance(size)
      return tree.consistencyPath(from, size)
    } finally {
      tree.close()
    }
  }

  /** Path of the key file of one of the board's logs. */
  #keyFile(origin: string): string {
    return logKeyFile(this.#options.dataDirectory, origin === this.#options.origin ? '' : nameOf(origin))
  }

  #nodes(origin: string): string {
    return nodesFile(this.#directory, origin === this.#options.origin ? '' : nameOf(origin))
  }

  close(): void {
    this.#tree.sync()
    this.#tree.close()
    this.journal.close()
  }

  #begin(shards: number): void {
    const { origin } = this.#options
    const key = createNoteKey(origin, readSecret(this.#options.disk, this.#keyFile(origin)))
    const ranges = Array.from({ length: shards }, (_, shard) => ({ shard, first: 1, last: 0, changes: 0, leaves: 0 }))
    const text = formatCheckpoint({ origin, size: 0, root: EMPTY_ROOT })
    const head = { size: 0, root: EMPTY_ROOT, checkpoint: signNote(text, key.signer) }
    const nothing = { firstLeaf: 0, firstChange: 1, ranges, bundle: Buffer.alloc(0), entries: 0 }
    this.journal.append([encodeLogFrame({ type: logFrameType, ...nothing, ...head })])
  }

  /** The origin of the log whose key must have signed this frame. */
  #keyOrigin({ checkpoint }: LogFrame): string {
    // The first log is the one that board.json names, so any other checkpoint in it came from elsewhere.
    return this.#closed.length === 0 ? this.#options.origin : originOf(checkpoint)
  }

  #keyOf(newest: LogFrame): LogKey {
    const origin = this.#keyOrigin(newest)
    const { followed, knownKeys } = this.#options
    if (knownKeys !== undefined) return this.#foundKey(newest, origin, knownKeys)
    if (followed !== undefined)
      return { vkey: followed.find((each) => each.origin === origin)?.vkey ?? this.#nextVkey(origin) }
    return createNoteKey(origin, readSecret(this.#options.disk, this.#keyFile(origin)))
  }

  /** The key that signed this frame: the one in the file, or, if that is lost, what is known of it. */
  #foundKey(newest: LogFrame, origin: string, known: readonly string[]): LogKey {
    const { disk } = this.#options
    const file = this.#keyFile(origin)
    const secret = disk.fileExists(file) ? uncheckedSecret(disk, file) : undefined
    const own = secret?.length === 32 ? createNoteKey(origin, secret) : undefined
    if (own !== undefined && hasSigned(own.vkey, newest)) return own
    const vkey = [this.#namedVkey(origin), ...known].find((each) => each !== undefined && hasSigned(each, newest))
    if (vkey !== undefined) return { vkey }
    throw new UnusableDirectory(
      `${file} is lost, and neither MARK_FILE nor the log before it names the key of ${origin}. Give its public part with --vkey: you published it, and a mirror of the log has it in its file vkey.`,
    )
  }

  /** The key of a log that follows another. */
  #nextVkey(origin: string): string {
    const named = this.#namedVkey(origin)
    if (named !== undefined) return named
    throw new UnusableDirectory(
      `The leader's log ${origin} follows one that was abandoned, and its key is unknown here. Create a new follower in an empty directory.`,
    )
  }

  /** The key of a log as named by the last entry of the log before it; undefined if there is no such entry. */
  #namedVkey(origin: string): string | undefined {
    const last = this.#closed.at(-1)
    const closing = last === undefined || last.isLost ? undefined : this.journal.read(last.last)
    const [entry] = closing === undefined ? [] : entriesOf(decodeLogFrame(closing))
    const next = entry === undefined ? undefined : nextOf(entry)
    return next?.origin === origin ? next.vkey : undefined
  }

  #firstFrame(): number {
    return (this.#closed.at(-1)?.last ?? 0) + 1
  }

  #openTree(): TreeWriter {
    return openTree({ ...this.#filed(this.origin, this.#firstFrame()), newest: this.#newest })
  }

  #keepTree(log: ClosedLog): void {
    openTree({ ...this.#filed(log.origin, log.first, log.last), newest: headOf(log) }).close()
  }

  /** A tree file, and the frames from which it is built. */
  #filed(origin: string, first: number, last?: number) {
    const { disk, report } = this.#options
    const { journal } = this
    return { disk, path: this.#nodes(origin), journal, first, last: last ?? journal.nextSeq - 1, report }
  }

  /** Throws RolledBack if one of them is ahead of the log, UnusableMark if one is of another board. */
  checkMarks(marks: readonly HighWaterMark[]): void {
    const closed = this.#closed.map((log) => ({ ...log, rootOf: this.#rootsOf(log) }))
    const { dataDirectory, disk, report } = this.#options
    const frames = (): Iterable<Frame> => this.journal.scan(this.#firstFrame())
    const logs = [
      ...closed,
      {
        vkey: this.vkey,
        size: this.#newest.size,
        rootOf: this.#rootsOf(),
        rootBeyond: (size: number) => rootBeyond(disk, dataDirectory, this.#newest, frames(), size),
      },
    ]
    for (const mark of marks) checkMark(mark, logs)
    if (marks.length === 0 && this.#newest.size > 0)
      report('info', 'mark.missing', { problem: 'without a mark an old copy of this directory cannot be detected' })
  }

  /** Returns a function that gives the root at any size of a closed log, or of the one that grows. */
  #rootsOf(log?: ClosedLog): (size: number) => Buffer {
    if (log !== undefined) {
      const filed = this.#filed(log.origin, log.first, log.last)
      return rootsOf(filed, headOf(log), () => rebuildTree(filed).close())
    }
    const filed = this.#filed(this.origin, this.#firstFrame())
    return rootsOf(filed, this.#newest, () => {
      this.#tree.close()
      this.#tree = rebuildTree(filed)
    })
  }

  /** After a `close` entry: begins the log that it names. */
  #openNext(): void {
    const [entry] = entriesOf(this.#newest)
    const next = nextOf(entry!)
    if (next === undefined) throw new Error('the last entry of the closed log names no next log')
    const key = createNoteKey(next.origin, readSecret(this.#options.disk, this.#keyFile(next.origin)))
    if (key.vkey !== next.vkey)
      throw new UnusableDirectory(
        `The log was closed in favor of ${next.vkey}, but ${this.#keyFile(next.origin)} contains another key. Restore that file from a backup.`,
      )
    const { size, root, checkpoint } = this.#newest
    const time = Number(/\ntime (\d+)\n/.exec(entry!.toString('latin1'))![1])
    const first = openEntry(time, { origin: this.origin, size, root: Buffer.from(root) })
    this.#follow({ first, next: next.origin, ended: { origin: this.origin, vkey: this.vkey, size, checkpoint } })
  }

  /** Begins the next log with this entry, after the log that has ended. */
  #follow({ first, next, ended }: { first: Buffer; next: string; ended: Omit<ClosedLog, 'first' | 'last'> }): void {
    const key = createNoteKey(next, readSecret(this.#options.disk, this.#keyFile(next)))
    const head = signNote(formatCheckpoint({ origin: next, size: 1, root: leafHash(first) }), key.signer)
    const closed = [...this.#closed, { ...ended, first: this.#firstFrame(), last: this.journal.nextSeq - 1 }]
    this.journal.append([openFrame(this.#newest, first, head, closed)])
    this.#tree.sync()
    this.#tree.close()
    this.#closed = closed
    this.#key = key
    this.#newest = decodeLogFrame(this.journal.read(this.journal.nextSeq - 1)!)
    this.#tree = TreeWriter.open(this.#options.disk, this.#nodes(next), 0)
    this.#tree.append([leafHash(first)])
    this.#options.report('info', 'log.rotated', { closed: ended.origin, size: ended.size, next })
  }

  #dropOldKeys(): void {
    const { disk } = this.#options
    for (const { origin } of this.#closed) {
      const file = this.#keyFile(origin)
      if (disk.fileExists(file)) disk.removeFile(file)
    }
  }
}

function headOf({ size, checkpoint }: ClosedLog): SignedRoot {
  return { size, root: Buffer.from(checkpoint.split('\n')[2]!, 'base64') }
}

type SignedRoot = { readonly size: number; readonly root: Uint8Array }

type TreeFile = Parameters<typeof provenRoot>[0]

/** Returns a function that gives the root at any size of a log. Rebuilds the tree file if it does not lead to the signed root. */
function rootsOf(filed: TreeFile, newest: SignedRoot, remake: () => void): (size: number) => Buffer {
  return (size) => {
    const root = provenRoot(filed, size, newest)
    if (root !== undefined) return root
    remake()
    return provenRoot(filed, size, newest)!
  }
}

/**
 * The origin after this one: the next letter, or the first letter of a new year. Undefined if this year's letters are used up.
 *
 * @param now Unix seconds; if the clock was set back, the year does not go back
 * @param baseUrl its host names the next log; if empty, the previous log's host is kept
 */
export function nextOrigin(origin: string, now: number, baseUrl: string): string | undefined {
  const name = nameOf(origin)
  const year = Number(name.slice(0, 4))
  const thisYear = Math.max(year, new Date(now * 1000).getUTCFullYear())
  const letter = thisYear > year ? 'a' : String.fromCharCode(name.charCodeAt(4) + 1)
  const place = baseUrl === '' ? origin.slice(0, -name.length) : `${new URL(baseUrl).host}/log/`
  return letter > 'z' ? undefined : `${place}${thisYear}${letter}`
}

/** `host/log/2026a`, the first line of a checkpoint. */
function originOf(checkpoint: string): string {
  return checkpoint.slice(0, checkpoint.indexOf('\n'))
}

/** The newest frame's checkpoint must be signed by this log's key. */
function checkKey(newest: LogFrame, vkey: string, keyFile: string): void {
  if (!hasSigned(vkey, newest)) throw new UnusableDirectory(otherKey(vkey, keyFile))
}

/** The problem with a key file whose key is not the one of the log. */
export function otherKey(vkey: string, keyFile: string): string {
  return `The newest log frame does not carry a checkpoint signed by ${keyFile} for ${vkey.slice(0, vkey.indexOf('+'))}: this key and this log do not belong together. Restore the keys and board.json from the backup that the log is from. If the key of the log is lost, broadside restored --lost ends this log and begins a new one.`
}
