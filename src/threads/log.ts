/**
 * The log's thread: opens the signed log, catches up with the shards' journals, and signs from then on.
 */

import type { MessagePort } from 'node:worker_threads'
import { inside } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import { Log, type LogState, stateAfter } from '../../actors/log/log.ts'
import type { Head } from '../../actors/records/answer.ts'
import { JournalReader } from '../../storage/journal.ts'
import { writeLeafHash } from '../../storage/merkle.ts'
import { shardDirectory, UnusableDirectory } from '../board-directory.ts'
import { lostLog } from '../log/beginning.ts'
import type { HighWaterMark } from '../log/mark.ts'
import { SignedLog } from '../log/signed-log.ts'
import { report, runThread } from './entry.ts'
import type { FromLog, ToLog } from './shard.ts'

export type LogThread = {
  readonly dataDirectory: string
  /** Origin of the first log, from board.json. */
  readonly origin: string
  readonly segmentBytesMax: number
  /** High-water marks: log/mark.ts. */
  readonly marks: readonly HighWaterMark[]
  readonly front: MessagePort
  readonly feed: MessagePort
  readonly toShards: readonly MessagePort[]
}

/** What the log has to wait for: where each shard's journal ends, durable. */
export type LogWord = { readonly through: readonly number[] }

type OpenLog = LogThread & LogWord

/** What the log says to the main thread and to the feed: its journal is durable up to `seq`. */
export type Published = { readonly seq: number; readonly head: Head; readonly change: number }

/** What the log says to the feed beside: sealed segments of a shard were rewritten. */
export type Rewritten = { readonly rewritten: number }

/**
 * A message that wakes a thread costs more than what it carries, so news are sent at this pace and not at every frame.
 * The feed reads files, so it misses nothing; the main thread learns heads from the answers to its own writes anyway.
 */
const feedPaceMs = 3
const frontPaceMs = 20

runThread(async (born: LogThread, { clock }, word: () => Promise<LogWord>) => {
  const data: OpenLog = { ...born, ...(await word()) }
  const signed = SignedLog.open({
    dataDirectory: data.dataDirectory,
    origin: data.origin,
    segmentBytesMax: data.segmentBytesMax,
    marks: data.marks,
    report,
    begin: () => {
      const lost = lostLog(data.dataDirectory, data.through)
      if (lost !== undefined) throw new UnusableDirectory(lost)
      return data.through.length
    },
  })
  const { journal, tree } = signed
  const state = stateAfter(signed.newest)
  checkShards(state, data)

  const links: Link[] = []
  const common = { openMax: 1, patienceMs: inside.patienceMs, now: clock.monotonicMs, timers: clock }
  const link = (port: MessagePort, onTell?: (body: unknown) => void): Link => {
    const made = new Link({ ...common, port, ...(onTell === undefined ? {} : { onTell }) })
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
  const tellFeed = paced<Published>(clock, feedPaceMs, (said) => feed.tell(said))
  const tellFront = paced<Published>(clock, frontPaceMs, (said) => front.tell(said))
  const log = new Log({
    journal,
    tree,
    shards: readers,
    sign: (size, root) => signed.sign(size, root),
    leafHash: writeLeafHash,
    confirm: (shard, confirmation) => {
      toShards[shard]!.tell(['confirm', confirmation] satisfies FromLog)
      toShards[shard]!.flush()
    },
    published: (seq, head, change) => {
      tellFeed({ seq, head, change })
      tellFront({ seq, head, change })
    },
    soon: clock.soon,
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
      logs: signed.identities,
      closed: signed.closed,
      covered: data.through.map((_, shard) => log.covered(shard)),
    },
    stop: () => {
      for (const each of links) each.close()
      signed.close()
    },
    onMessage: (message) => {
      const { shard, port } = message as { shard: number; port: MessagePort }
      toShards[shard]!.close()
      toShards[shard] = link(port, (body) => hear(shard, body as ToLog))
      toShards[shard]!.tell(['resume', log.covered(shard)] satisfies FromLog)
    },
  }
})

/** Passes on the newest value, at most once in so many milliseconds. */
function paced<Value>({ later }: Timers, paceMs: number, pass: (value: Value) => void): (value: Value) => void {
  let newest: { readonly value: Value } | undefined
  return (value) => {
    if (newest === undefined) {
      later(() => {
        const told = newest!
        newest = undefined
        pass(told.value)
      }, paceMs)
    }
    newest = { value }
  }
}

/** A journal that ends before what the log has signed has lost acknowledged posts; so has a log that is not there. */
function checkShards(state: LogState, { through }: LogWord): void {
  if (state.covered.length !== through.length) {
    throw new UnusableDirectory(
      `board.json states ${through.length} shards, but the log was written with ${state.covered.length}. Restore board.json from a backup.`,
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
