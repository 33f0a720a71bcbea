/**
 * The search thread: follows the log into the search index, and answers what it holds. Started by the first search, and with the
 * board where an earlier run has left an index: what is taken back, or expires, leaves it whether anybody searches or not.
 *
 * Whoever asks names the frame of the log that the answer must know of; the index catches up to it first. Between asks it follows
 * at its leisure, some at a time, so that posting is not slowed. Searches take turns, a step each, so that none waits for the
 * whole of another; one that has had its time answers with what it has found and with where it goes on. A fault of the index
 * costs the index, never the board.
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
import type { Search, SearchAnswer, SearchAsk } from '../search/search.ts'
import { SearchIndex, wipe } from '../search/search-index.ts'
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
/** An ask that would have to wait longer for an index that is being made is refused. */
const patienceMs = 10_000
/** Time spent on it after which the pace of an index that is being made is known. */
const paceMs = 1_000
const retrySecondsMax = 3_600
/** Rows that a search looks at in one step: about 20 ms where each text has to be read. */
const rowsPerStep = 4_096
/** Time of this thread that one answer may take. Within the first part no search is given up, so small boards answer whole. */
const answerMs = 400

type Open = { readonly ask: SearchAsk; readonly through: number; readonly id: number; readonly since: number }
type Running = { readonly id: number; readonly search: Search; usedMs: number }

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
  /** Asks that the index has to catch up for. */
  let waiting: Open[] = []
  /** Searches under way; the first has the next turn. */
  let running: Running[] = []
  /** Since it last was behind the log: frames it has taken in, and how long that took. */
  let pace = { frames: 0, spentMs: 0 }
  let soon: NodeJS.Immediate | undefined
  let later: NodeJS.Timeout | undefined
  let expiry: NodeJS.Timeout | undefined

  function open(): SearchIndex {
    const opened = SearchIndex.open(directory, logId, durable)
    if (opened.applied > 0) advanceTo(opened.applied, log, shards)
    return opened
  }

  /** One transaction's worth of the log. */
  const follow = (): void => {
    const now = readingSeconds()
    if (index.applied >= durable && !index.isDue(now)) return
    const since = monotonicMs()
    const before = index.applied
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
    pace =
      applied >= durable
        ? { frames: 0, spentMs: 0 }
        : { frames: pace.frames + applied - before, spentMs: pace.spentMs + monotonicMs() - since }
  }

  /** How long it takes to catch up at this pace; undefined: not known yet. */
  const leftMs = (): number | undefined =>
    pace.spentMs < paceMs ? undefined : (pace.spentMs * (durable - index.applied)) / pace.frames

  /** Begins the searches that the index has caught up for, and refuses those that would wait too long. */
  const begin = (): void => {
    const asked = waiting
    waiting = []
    const left = leftMs()
    for (const open of asked) {
      const isTooLong = monotonicMs() - open.since > patienceMs || (left !== undefined && left > patienceMs)
      if (open.through <= index.applied)
        running.push({ id: open.id, search: index.search(open.ask, readingSeconds()), usedMs: 0 })
      else if (isTooLong) front.answer(open.id, beingMade(left))
      else waiting.push(open)
    }
  }

  /** One step of the search whose turn it is. */
  const stepOne = (): void => {
    const [turned, ...others] = running
    if (turned === undefined) return
    const { id, search } = turned
    const since = monotonicMs()
    search.step(rowsPerStep)
    turned.usedMs += monotonicMs() - since
    const { hits, isOver, parts, reached } = search
    const isGivenUp = !isOver && parts > 0 && turned.usedMs > answerMs
    running = isOver || isGivenUp ? others : [...others, turned]
    if (isOver) front.answer(id, { ok: true, hits } satisfies SearchAnswer)
    else if (isGivenUp) front.answer(id, { ok: true, hits, reached: reached! } satisfies SearchAnswer)
  }

  const turn = (): void => {
    clearImmediate(soon)
    clearTimeout(later)
    clearTimeout(expiry)
    soon = undefined
    later = undefined
    try {
      if (waiting.length > 0 || running.length === 0 || index.isDue(readingSeconds())) follow()
      begin()
      stepOne()
    } catch (error) {
      startOver(error)
    }
    if (waiting.length > 0 || running.length > 0) schedule(0)
    else if (index.applied < durable) schedule(leisureMs)
    else rest()
  }

  const rest = (): void => {
    // Files that are not read now are not kept open: what was in them may have been taken back since.
    for (const reader of shards) reader.reopen()
    const waitMs = index.dueIn(readingSeconds()) * 1_000
    if (waitMs < Number.POSITIVE_INFINITY) expiry = setTimeout(turn, Math.min(waitMs, expiryMsMax)).unref()
  }

  /** One turn is to come. */
  const schedule = (afterMs: number): void => {
    if (afterMs === 0) soon ??= setImmediate(turn)
    else later ??= setTimeout(turn, afterMs)
  }

  /** Whatever ails the index: it is derived, so it is thrown away and made again. */
  const startOver = (error: unknown): void => {
    const problem = error instanceof Error ? error.message : String(error)
    report('warn', 'search.index_made_again', { problem })
    index.close()
    wipe(directory)
    index = open()
    pace = { frames: 0, spentMs: 0 }
    for (const { id } of [...waiting, ...running]) front.answer(id, beingMade(undefined))
    waiting = []
    running = []
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

/** `leftMs`: how long it will take, where that is known. */
function beingMade(leftMs = 5_000): SearchAnswer {
  const seconds = Math.min(retrySecondsMax, Math.max(1, Math.ceil(leftMs / 1_000)))
  const sentence = `the search index of this board is being built: try again in ${seconds} s`
  return { ok: false, refusal: refusal('overloaded', sentence, undefined, seconds) }
}
