/**
 * The search thread: keeps the search index up to date with the log, and answers queries. Started by the first search, and at board start
 * if an earlier run left an index: redacted and expired texts must leave the index even if nobody searches.
 *
 * A caller names the frame of the log that the answer must cover, and the index first catches up to it. Between queries it follows in the
 * background, a few frames at a time, so that posting is not slowed.
 *
 * Searches take turns, one step each, so that none waits for another to finish. A search that has used up its time answers with what it has
 * found and where it continues. A fault of the index affects only the index.
 */
import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import { JournalReader } from '../../storage/journal.ts'
import { logDirectory, searchDirectory, shardDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import { Follower } from '../search/follower.ts'
import { checkPages } from '../search/page-sums.ts'
import type { Indexing, Search, SearchAnswer, SearchAsk } from '../search/search.ts'
import type { ThreadPlatform, ThreadStarter } from './thread.ts'

export type SearchThread = {
  readonly dataDirectory: string
  readonly shards: number
  /** Newest durable frame of the log, and the id of its journal. */
  readonly through: number
  readonly logId: Uint8Array
  /** How much of the index to check against its checksums, per second; 0 for nothing. */
  readonly scrubBytesPerSecond: number
  readonly front: Port
}

export type SearchRequest = readonly [ask: SearchAsk, through: number]
/** The log is durable up to this frame. */
export type SearchTell = number

/** How long new frames may wait before they are indexed without a query. */
const leisureMs = 500
/** Pause between two checks of all pages. */
const checkPauseMs = 3_600_000
/** Timers cannot be set further ahead than this. */
const expiryMsMax = 86_400_000
/** A query that would wait longer for an index being built is answered from what the index holds, and says so. */
const patienceMs = 10_000
/** Interval of log lines about an index being built. */
const progressMs = 10_000
/** Rows examined per search step: about 20 ms if each text has to be read. */
const rowsPerStep = 2_048
/** Thread time that one answer may take. The first part is always completed, so small boards get complete answers. */
const answerMs = 400

type Open = { readonly ask: SearchAsk; readonly through: number; readonly id: number; readonly since: number }
/** `indexing`: set if the answer does not cover the newest posts. */
type Running = { readonly id: number; readonly search: Search; readonly indexing?: Indexing; usedMs: number }

/** Open searches: those waiting for the index to catch up, and those in progress, which take turns. */
class Turns {
  readonly #follower: Follower
  readonly #clock: Clock
  readonly #answer: (id: number, answer: SearchAnswer) => void
  #waiting: Open[] = []
  #running: Running[] = []
  /** A caller got an incomplete answer. Until the index has caught up, it follows at full speed, not in the background. */
  #isAwaited = false

  constructor(follower: Follower, clock: Clock, answer: (id: number, answer: SearchAnswer) => void) {
    this.#clock = clock
    this.#follower = follower
    this.#answer = answer
  }

  /** A caller waits for the index to catch up. */
  get isAwaited(): boolean {
    return this.#isAwaited || this.#waiting.length > 0
  }

  get areRunning(): boolean {
    return this.#running.length > 0
  }

  add(open: Open): void {
    this.#waiting.push(open)
  }

  /** Starts the searches that the index has caught up for. Those that would wait too long start with what it holds. */
  begin(): void {
    const { index, leftMs, isWaiting } = this.#follower
    const asked = this.#waiting
    this.#waiting = []
    this.#isAwaited &&= this.#follower.isBehind
    for (const open of asked) {
      const isTooLong =
        isWaiting ||
        this.#clock.monotonicMs() - open.since > patienceMs ||
        (leftMs !== undefined && leftMs > patienceMs)
      const isCaughtUp = open.through <= index.applied
      if (!isCaughtUp && !isTooLong) {
        this.#waiting.push(open)
        continue
      }
      this.#isAwaited ||= !isCaughtUp
      const indexing = isCaughtUp ? {} : { indexing: this.#follower.progress() }
      const search = index.search(open.ask, this.#clock.readingSeconds())
      this.#running.push({ id: open.id, search, ...indexing, usedMs: 0 })
    }
  }

  /** Runs one step of the search that has used the least time, so cheap searches do not wait for expensive ones. */
  step(): void {
    const [first, ...others] = this.#running
    if (first === undefined) return
    const turned = others.reduce((least, each) => (each.usedMs < least.usedMs ? each : least), first)
    const { id, search, indexing } = turned
    const since = this.#clock.monotonicMs()
    search.step(rowsPerStep)
    turned.usedMs += this.#clock.monotonicMs() - since
    const { hits, isOver, parts, reached, total } = search
    const isGivenUp = !isOver && parts > 0 && turned.usedMs > answerMs
    if (!isOver && !isGivenUp) return
    this.#running = this.#running.filter((each) => each !== turned)
    this.#answer(id, {
      ok: true,
      hits,
      ...(isGivenUp ? { reached: reached! } : {}),
      ...(indexing === undefined ? {} : { indexing }),
      ...(total === undefined || indexing !== undefined ? {} : { total }),
    })
  }

  /** The index is being rebuilt, so none of the searches can continue. */
  giveUp(): void {
    for (const { id } of [...this.#waiting, ...this.#running]) this.#answer(id, beingMade)
    this.#waiting = []
    this.#running = []
  }
}

export const thread: ThreadStarter<SearchThread> = (data, { clock, disk, report }) => {
  const shards = Array.from({ length: data.shards }, (_, shard) =>
    JournalReader.open(disk, shardDirectory(data.dataDirectory, shard)),
  )
  const follower = followerOf(data, shards, { clock, disk, report })
  let soon: Cancel | undefined
  let later: Cancel | undefined
  let expiry: Cancel | undefined

  const startOver = (error: unknown): void => {
    const problem = error instanceof Error ? error.message : String(error)
    report('warn', 'search.index_made_again', { problem })
    follower.startOver()
    turns.giveUp()
  }

  const stopChecking = checkPagesSlowly(data, { clock, disk }, (error) => {
    startOver(error)
    schedule(0)
  })

  const reportProgress = progressReporter(follower, { clock, report })
  const turn = (): void => {
    soon?.()
    later?.()
    expiry?.()
    soon = undefined
    later = undefined
    const now = clock.readingSeconds()
    try {
      if (turns.isAwaited || !turns.areRunning || follower.index.isDue(now)) follower.step(now)
      reportProgress()
      turns.begin()
      turns.step()
    } catch (error) {
      startOver(error)
    }
    if (turns.areRunning || (turns.isAwaited && !follower.isWaiting)) schedule(0)
    else if (follower.isBehind) schedule(leisureMs)
    else rest()
  }

  const rest = (): void => {
    // Files that are not being read are closed, since their texts may have been redacted meanwhile.
    for (const reader of shards) reader.reopen()
    const waitMs = follower.index.dueIn(clock.readingSeconds()) * 1_000
    if (waitMs < Number.POSITIVE_INFINITY) expiry = clock.later(turn, Math.min(waitMs, expiryMsMax))
  }

  /** Schedules one turn. */
  const schedule = (afterMs: number): void => {
    if (afterMs === 0) soon ??= clock.soon(turn)
    else later ??= clock.later(turn, afterMs)
  }

  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    onAsk: (body, id) => {
      const [ask, through] = body as SearchRequest
      follower.advance(through)
      turns.add({ ask, through, id, since: clock.monotonicMs() })
      schedule(0)
    },
    onTell: (body) => {
      follower.advance(body as SearchTell)
      if (follower.isBehind) schedule(leisureMs)
    },
  })
  const turns = new Turns(follower, clock, (id, answer) => front.answer(id, answer))
  schedule(0)
  return {
    facts: { applied: follower.index.applied },
    stop: () => {
      stopChecking()
      front.close()
      follower.index.close()
    },
  }
}

/** Returns a function that reports the progress of an index being built, at intervals. */
function progressReporter(follower: Follower, { clock, report }: Pick<ThreadPlatform, 'clock' | 'report'>): () => void {
  let toldAt = clock.monotonicMs()
  return () => {
    if (follower.leftMs === undefined || clock.monotonicMs() - toldAt < progressMs) return
    toldAt = clock.monotonicMs()
    const { percent, seconds } = follower.progress()
    report('info', 'search.indexing', { percent, seconds_left: seconds })
  }
}

function followerOf(
  data: SearchThread,
  shards: readonly JournalReader[],
  { clock, disk, report }: Pick<ThreadPlatform, 'clock' | 'disk' | 'report'>,
): Follower {
  return new Follower({
    directory: searchDirectory(data.dataDirectory),
    logId: Buffer.from(data.logId).toString('hex'),
    log: JournalReader.open(disk, logDirectory(data.dataDirectory)),
    shards,
    durable: data.through,
    monotonicMs: clock.monotonicMs,
    onBad: (problem) => report('warn', 'search.index_made_again', { problem }),
    onLeftOut: (problem) => report('error', 'search.left_out', { problem }),
    onUnreadable: (problem) => report('warn', 'search.waits', { problem }),
  })
}

/**
 * Checks the pages of the index against their checksums, a few at a time, and passes any error to `onBad`. Returns a function that stops
 * it.
 */
function checkPagesSlowly(
  { dataDirectory, scrubBytesPerSecond }: SearchThread,
  { clock, disk }: Pick<ThreadPlatform, 'clock' | 'disk'>,
  onBad: (error: unknown) => void,
): () => void {
  let pages: ReturnType<typeof checkPages> | undefined
  let cancel: Cancel | undefined
  const step = (): number => {
    try {
      pages ??= checkPages(disk, searchDirectory(dataDirectory))
      const { done, value } = pages.next()
      if (done !== true) return (value / scrubBytesPerSecond) * 1_000
    } catch (error) {
      onBad(error)
    }
    pages = undefined
    return checkPauseMs
  }
  const after = (ms: number): void => {
    cancel = clock.later(() => after(step()), ms)
  }
  if (scrubBytesPerSecond > 0) after(leisureMs)
  return () => cancel?.()
}

const beingMade: SearchAnswer = {
  ok: false,
  refusal: refusal(
    'overloaded',
    'the search index of this board was damaged and is being built: try again',
    undefined,
    5,
  ),
}
