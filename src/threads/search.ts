/**
 * The search thread: follows the log into the search index, and answers what it holds. Started by the first search, and with the
 * board where an earlier run has left an index: what is taken back, or expires, leaves it whether anybody searches or not.
 *
 * Who asks names the frame of the log that his answer must know of; the index catches up to it first. Between asks it follows
 * at its leisure, some at a time, so that posting is not slowed. A fault of the index costs the index, never the board.
 */
import type { MessagePort } from 'node:worker_threads'
import { Link } from '../../actors/kernel/link.ts'
import { advanceTo, publicRecords } from '../../actors/public-records.ts'
import { frameKey, fromFrame } from '../../actors/record.ts'
import { JournalReader } from '../../storage/journal.ts'
import { logDirectory, searchDirectory, shardDirectory } from '../board-directory.ts'
import { monotonicMs, readingSeconds } from '../clock.ts'
import { inside } from '../limits.ts'
import { refusal } from '../refusals.ts'
import { type SearchAnswer, type SearchAsk, SearchIndex, wipe } from '../search/search-index.ts'
import { report, runThread } from './entry.ts'

export type SearchThread = {
  readonly dataDirectory: string
  readonly shards: number
  /** Newest durable frame of the log, and the id of its journal. */
  readonly through: number
  readonly logId: Uint8Array
  readonly front: MessagePort
}

export type SearchRequest = readonly [ask: SearchAsk, through: number]
/** The log is durable up to this frame. */
export type SearchTell = number

/** Records of one transaction: about 50 ms of work, and asks are answered between them. */
const recordsPerStep = 1_000
/** How long news may lie before they are indexed without being asked for. */
const leisureMs = 500
/** Timers reach no further than this. */
const expiryMsMax = 86_400_000
/** An ask that would have to wait longer for an index that is being made hears so. */
const patienceMs = 10_000

type Open = { readonly ask: SearchAsk; readonly through: number; readonly id: number; readonly since: number }

runThread((data: SearchThread) => {
  const directory = searchDirectory(data.dataDirectory)
  const logId = Buffer.from(data.logId).toString('hex')
  const readers = () => ({
    log: JournalReader.open(logDirectory(data.dataDirectory)),
    shards: Array.from({ length: data.shards }, (_, shard) =>
      JournalReader.open(shardDirectory(data.dataDirectory, shard)),
    ),
  })
  const { log, shards } = readers()
  let durable = data.through
  let index = open()
  let waiting: Open[] = []
  let soon: NodeJS.Immediate | undefined
  let later: NodeJS.Timeout | undefined
  let expiry: NodeJS.Timeout | undefined

  function open(): SearchIndex {
    const opened = SearchIndex.open(directory, logId, durable)
    if (opened.applied > 0) advanceTo(opened.applied, log, shards)
    return opened
  }

  /** One transaction's worth of the log. */
  const step = (): void => {
    const now = readingSeconds()
    if (index.applied >= durable && !index.isDue(now)) return
    log.advance(durable)
    let records = 0
    let applied = index.applied
    for (const logFrame of log.scan(applied + 1, durable)) {
      for (const { frame, change } of publicRecords(logFrame, shards)) {
        index.add(fromFrame(frame), frameKey(frame), change)
        records++
      }
      applied = logFrame.seq
      if (records >= recordsPerStep) break
    }
    index.settle(applied, now)
  }

  const give = ({ ask, id }: Open): void => {
    front.answer(id, { ok: true, hits: index.find(ask, readingSeconds()) } satisfies SearchAnswer)
  }

  /** Follows, answers who can be answered, and goes on while there is more. */
  const turn = (): void => {
    clearImmediate(soon)
    clearTimeout(later)
    clearTimeout(expiry)
    soon = undefined
    later = undefined
    const asked = waiting
    waiting = []
    try {
      step()
      for (const open of asked) {
        if (open.through <= index.applied) give(open)
        else if (monotonicMs() - open.since > patienceMs) front.answer(open.id, beingMade)
        else waiting.push(open)
      }
    } catch (error) {
      startOver(error, asked)
    }
    if (waiting.length > 0) schedule(0)
    else if (index.applied < durable) schedule(leisureMs)
    else rest()
  }

  const rest = (): void => {
    // Files that are not read now are not kept open: what was in them may have been taken back since.
    for (const reader of shards) reader.reopen()
    const waitMs = index.dueIn(readingSeconds()) * 1_000
    if (waitMs < Number.POSITIVE_INFINITY) expiry = setTimeout(turn, Math.min(waitMs, expiryMsMax)).unref()
  }

  /** One turn is to come, whoever wants it. */
  const schedule = (afterMs: number): void => {
    if (afterMs === 0) soon ??= setImmediate(turn)
    else later ??= setTimeout(turn, afterMs)
  }

  /** Whatever ails the index: it is derived, so it is thrown away and made again. */
  const startOver = (error: unknown, asked: readonly Open[]): void => {
    const problem = error instanceof Error ? error.message : String(error)
    report('warn', 'search.index_made_again', { problem })
    index.close()
    wipe(directory)
    index = open()
    for (const { id } of asked) front.answer(id, beingMade)
    waiting = []
  }

  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onAsk: (body, id) => {
      const [ask, through] = body as SearchRequest
      durable = Math.max(durable, through)
      waiting.push({ ask, through, id, since: monotonicMs() })
      schedule(0)
    },
    onTell: (body) => {
      durable = Math.max(durable, body as SearchTell)
      if (index.applied < durable) schedule(leisureMs)
    },
  })
  schedule(0)
  return {
    facts: { applied: index.applied },
    stop: () => {
      front.close()
      index.close()
    },
  }
})

const beingMade: SearchAnswer = {
  ok: false,
  refusal: refusal('overloaded', 'the search index of this board is being built: try again', undefined, 5),
}
