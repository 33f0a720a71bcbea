/**
 * The log's thread: the only place that reads the log's key. Opens the log's journal and tree, checks that they agree,
 * catches up with the shards' journals, and signs from then on.
 */
import type { MessagePort } from 'node:worker_threads'
import { Link } from '../../actors/kernel/link.ts'
import { decodeLogFrame, encodeLogFrame, Log, type LogFrame, type LogState, stateAfter } from '../../actors/log.ts'
import { openTree } from '../../actors/log-tree.ts'
import type { Head } from '../../actors/shard.ts'
import { formatCheckpoint, openCheckpoint } from '../../storage/checkpoint.ts'
import { Journal, JournalReader } from '../../storage/journal.ts'
import { EMPTY_ROOT, writeLeafHash } from '../../storage/merkle.ts'
import { parseVkey, signNote } from '../../storage/note.ts'
import { createNoteKey } from '../../storage/note-signer.ts'
import { TreeReader } from '../../storage/tree-reader.ts'
import { nodesFile, readSecret, shardDirectory, UnusableDirectory } from '../board-directory.ts'
import { monotonicMs } from '../clock.ts'
import { inside } from '../limits.ts'
import { checkMark } from '../mark.ts'
import { report, runThread } from './entry.ts'
import type { FromLog, ToLog } from './shard.ts'

export type LogThread = {
  readonly dataDirectory: string
  readonly directory: string
  readonly keyFile: string
  readonly origin: string
  /** Where each shard's journal ends, durable. */
  readonly through: readonly number[]
  /** Records of a board that nobody has posted to. */
  readonly firstRecords: number
  readonly segmentBytesMax: number
  /** The high-water mark's text, or ''. */
  readonly mark: string
  readonly front: MessagePort
  readonly feed: MessagePort
  readonly toShards: readonly MessagePort[]
}

/** What the log says to the front and to the feed: its journal is durable up to `seq`. */
export type Published = { readonly seq: number; readonly head: Head; readonly change: number }

/** What the log says to the feed beside: sealed segments of a shard were rewritten. */
export type Rewritten = { readonly rewritten: number }

/**
 * A message that wakes a thread costs more than what it carries, so news are told at this pace and not at every frame.
 * The feed reads files, so it misses nothing; the front learns heads from the answers to its own writes anyway.
 */
const feedPaceMs = 3
const frontPaceMs = 20

runThread((data: LogThread) => {
  const key = createNoteKey(data.origin, readSecret(data.keyFile))
  const journal = Journal.open({
    directory: data.directory,
    segmentBytesMax: data.segmentBytesMax,
    frameBytesMax: 64 * 1024 * 1024,
    report: ({ kind, ...facts }) => report('info', `log.journal.${kind}`, facts),
  })
  const sign = (size: number, root: Uint8Array) =>
    signNote(formatCheckpoint({ origin: data.origin, size, root }), key.signer)
  if (journal.nextSeq === 1) {
    checkBeginning(data)
    const ranges = data.through.map((_, shard) => ({ shard, first: 1, last: 0, changes: 0, leaves: 0 }))
    journal.append([
      encodeLogFrame({
        firstLeaf: 0,
        firstChange: 1,
        size: 0,
        root: EMPTY_ROOT,
        ranges,
        bundle: Buffer.alloc(0),
        entries: 0,
        checkpoint: sign(0, EMPTY_ROOT),
      }),
    ])
  }
  const newest = newestFrame(data, journal, key.vkey)
  const state = stateAfter(newest)
  checkShards(state, data)
  const tree = openTree({ path: nodesFile(data.directory), journal, newest, report })
  checkMark(data.mark, {
    vkey: key.vkey,
    size: newest.size,
    rootOf: (size) => rootOf(nodesFile(data.directory), newest.size, size),
  })

  const links: Link[] = []
  const link = (port: MessagePort, onTell?: (body: unknown) => void): Link => {
    const made = new Link({
      port,
      openMax: 1,
      patienceMs: inside.patienceMs,
      now: monotonicMs,
      ...(onTell === undefined ? {} : { onTell }),
    })
    links.push(made)
    return made
  }
  const front = link(data.front)
  const feed = link(data.feed)
  const readers = data.through.map((_, shard) => JournalReader.open(shardDirectory(data.dataDirectory, shard)))
  const hear = (shard: number, said: ToLog): void => {
    if (said !== 'rewritten') return log.hint(shard, said)
    readers[shard]!.reopen()
    feed.tell({ rewritten: shard } satisfies Rewritten)
  }
  const toShards = data.toShards.map((port, shard) => link(port, (body) => hear(shard, body as ToLog)))
  const tellFeed = paced<Published>(feedPaceMs, (said) => feed.tell(said))
  const tellFront = paced<Published>(frontPaceMs, (said) => front.tell(said))
  const log = new Log({
    journal,
    tree,
    shards: readers,
    sign,
    leafHash: writeLeafHash,
    confirm: (shard, confirmation) => {
      toShards[shard]!.tell(['confirm', confirmation] satisfies FromLog)
      toShards[shard]!.flush()
    },
    published: (seq, head, change) => {
      tellFeed({ seq, head, change })
      tellFront({ seq, head, change })
    },
    entriesPerFrameMax: inside.entriesPerLogFrame,
    start: state,
  })
  for (const [number, shard] of toShards.entries()) shard.tell(['resume', log.covered(number)] satisfies FromLog)
  for (const [shard, through] of data.through.entries()) log.hint(shard, through)
  log.catchUp()
  return {
    facts: {
      seq: journal.nextSeq - 1,
      logId: journal.id,
      head: log.head,
      change: log.change,
      vkey: key.vkey,
      covered: data.through.map((_, shard) => log.covered(shard)),
    },
    stop: () => {
      for (const each of links) each.close()
      tree.sync()
      tree.close()
      journal.close()
    },
    onMessage: (message) => {
      const { shard, port } = message as { shard: number; port: MessagePort }
      toShards[shard]!.close()
      toShards[shard] = link(port, (body) => hear(shard, body as ToLog))
      toShards[shard]!.tell(['resume', log.covered(shard)] satisfies FromLog)
    },
  }
})

function rootOf(path: string, whole: number, size: number): Buffer {
  const tree = TreeReader.open(path)
  tree.advance(whole)
  const root = tree.root(size)
  tree.close()
  return root
}

/** Passes on the newest value, at most once in so many milliseconds. */
function paced<Value>(paceMs: number, pass: (value: Value) => void): (value: Value) => void {
  let newest: { readonly value: Value } | undefined
  return (value) => {
    if (newest === undefined) {
      setTimeout(() => {
        const told = newest!
        newest = undefined
        pass(told.value)
      }, paceMs)
    }
    newest = { value }
  }
}

/** The newest frame, whose checkpoint must be signed by this log's key. */
function newestFrame(data: LogThread, journal: Journal, vkey: string): LogFrame {
  const newest = decodeLogFrame(journal.read(journal.nextSeq - 1)!)
  const pinned = parseVkey(vkey)
  if (!pinned.ok) throw new Error(pinned.problem)
  const opened = openCheckpoint(newest.checkpoint, pinned.value)
  if (!opened.ok || opened.value.size !== newest.size || !opened.value.root.equals(newest.root)) {
    throw new UnusableDirectory(
      `The newest log frame does not carry a checkpoint signed by ${data.keyFile} for ${data.origin}: this key and this log do not belong together. Put back the keys and board.json of the backup that the log is from.`,
    )
  }
  return newest
}

/** A journal that ends before what the log has signed has lost acknowledged posts; so has a log that is not there. */
function checkShards(state: LogState, { through }: LogThread): void {
  if (state.covered.length !== through.length) {
    throw new UnusableDirectory(
      `board.json says ${through.length} shards, but the log was written with ${state.covered.length}. Put board.json back from a backup.`,
    )
  }
  state.covered.forEach((covered, shard) => {
    const end = through[shard]!
    if (end < covered) {
      throw new UnusableDirectory(
        `The journal of shard ${shard} ends at frame ${end}, but the signed log covers ${covered}: acknowledged posts are missing. Restore the newest backup of the whole data directory as a new board.`,
      )
    }
  })
}

/** Nothing is posted before there is a log, so an empty one beside records that people made was lost. */
function checkBeginning({ through, firstRecords, directory }: LogThread): void {
  const records = through.reduce((sum, each) => sum + each, 0)
  if (records <= firstRecords) return
  throw new UnusableDirectory(
    `The signed log in ${directory} is missing, though this board has ${records} records: a new log could contradict what the old one signed. Put the directory back from the newest backup.`,
  )
}
