/**
 * The thread of the tools directory: keeps the directory and its index up to date with the log, and answers searches and lookups. Started
 * by the first query; the board's own tools are in it before any query.
 *
 * A caller names the frame of the log that the answer must cover, and the directory first catches up to it. It is rebuilt from the
 * journals; a snapshot of the known listings, saved when the thread stops, saves reading the whole log again. A fault here affects only the
 * directory.
 */

import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import { encode, Packr, Unpackr } from '../../actors/kernel/msgpack.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import { advanceTo, readableRecords } from '../../actors/log/public-records.ts'
import { type BoardRecord, frameKey, fromFrame, RecordType, registryName } from '../../actors/records/record.ts'
import { callsActor } from '../../actors/tool-calls/tool-calls.ts'
import { probedActs, reviewsRoom, toolsActor } from '../../actors/tools/tools.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { logDirectory, shardDirectory, toolsDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import { CursorSealer, type SealingKeys } from '../format/cursor.ts'
import { ownTools } from '../own-tools/descriptors.ts'
import { replyWith } from '../reads/read.ts'
import type { FoundSubject, ToolsAnswer, ToolsAsk } from '../tools/asks.ts'
import { toolDetails } from '../tools/details.ts'
import { Directory } from '../tools/directory.ts'
import { ToolIndex } from '../tools/index.ts'
import { ToolSearch } from '../tools/search.ts'
import { pageJson, type Showing } from '../tools/show.ts'
import { SnapshotKeeper } from './snapshots.ts'
import { type Report, readFault, type ThreadPlatform, type ThreadStarter } from './thread.ts'

export type ToolsThread = {
  readonly dataDirectory: string
  readonly shards: number
  /** Newest durable frame of the log, and the id of its journal. */
  readonly through: number
  readonly logId: Uint8Array
  readonly cursorKey: SealingKeys
  readonly front: Port
}

export type ToolsRequest = readonly [ask: ToolsAsk, through: number]
/** The log is durable up to this frame. */
export type ToolsTell = number

/** Frames examined between two checks for queries. */
const framesPerStep = 20_000
/** Documents indexed between two checks for queries: about 10 ms of work. */
const documentsPerStep = 200
const leisureMs = 500
/** Listings that the disk failed to read are read again after this. */
const rereadMs = 1_000
/** A query that would wait longer for an index being built is refused. */
const patienceMs = 10_000

const snapshotFormat = 5
const codec = new Packr({ useRecords: false })
const decoder = new Unpackr({ useRecords: false })

type Open = { readonly ask: ToolsAsk; readonly through: number; readonly id: number; readonly since: number }

const names = [toolsActor, reviewsRoom, registryName, marketName, callsActor].map((name) => Buffer.from(name))

/** Whether a record's bytes suggest that it concerns the directory. Most do not, and are not even decoded. */
function concernsTools({ type, payload }: Frame): boolean {
  if (type === RecordType.handleClaimed) return true
  return names.some((name) => payload.includes(name))
}

const beingMade: ToolsAnswer = {
  ok: false,
  refusal: refusal('overloaded', 'the index of the tools directory is being built: try again', undefined, 5),
}

/** Follows the log, and answers each query once it has reached the frame that the query needs. */
class ToolsFollower {
  readonly #log: JournalReader
  readonly #shards: readonly JournalReader[]
  readonly #index = new ToolIndex()
  readonly #directory: Directory
  readonly #answers: ToolAnswers
  readonly #snapshots: SnapshotKeeper
  readonly #front: Link
  readonly #clock: Clock
  readonly #report: Report
  #durable: number
  #applied: number
  #isSettled: boolean
  /** Monotonic milliseconds: when listings that the disk failed to read are read again. */
  #rereadAt = 0
  #waiting: Open[] = []
  #soon: Cancel | undefined
  #later: Cancel | undefined

  constructor({ dataDirectory, shards, through, logId, cursorKey, front }: ToolsThread, here: ThreadPlatform) {
    const { clock, disk, report } = here
    this.#report = report
    this.#clock = clock
    this.#log = JournalReader.open(disk, logDirectory(dataDirectory))
    this.#shards = Array.from({ length: shards }, (_, shard) =>
      JournalReader.open(disk, shardDirectory(dataDirectory, shard)),
    )
    const record = (shard: number, seq: number) => this.#record(shard, seq)
    this.#directory = new Directory({ index: this.#index, own: ownTools, record, now: clock.readingSeconds() })
    this.#answers = new ToolAnswers(
      this.#index,
      this.#directory,
      record,
      new CursorSealer(cursorKey),
      clock.readingSeconds,
    )
    this.#snapshots = SnapshotKeeper.open(here, toolsDirectory(dataDirectory), Buffer.from(logId), through)
    this.#durable = through
    this.#applied = this.#restored()
    this.#isSettled = this.#directory.settle(0, () => {})
    this.#front = new Link({
      port: front,
      openMax: 1,
      patienceMs: internalLimits.patienceMs,
      now: clock.monotonicMs,
      timers: clock,
      onAsk: (body, id) => {
        const [ask, through] = body as ToolsRequest
        this.#durable = Math.max(this.#durable, through)
        this.#waiting.push({ ask, through, id, since: clock.monotonicMs() })
        this.#schedule(0)
      },
      onTell: (body) => {
        this.#durable = Math.max(this.#durable, body as ToolsTell)
        if (this.#applied < this.#durable) this.#schedule(leisureMs)
      },
    })
    report('info', 'tools.begun', { applied: this.#applied, listings: this.#directory.tools.count })
  }

  get applied(): number {
    return this.#applied
  }

  stop(): void {
    this.#front.close()
    this.#snapshots.keep(this.#applied, () => this.#pack())
  }

  #record(shard: number, seq: number): BoardRecord {
    const frame = this.#shards[shard]?.read(seq)
    if (frame === undefined) throw new Error(`journal ${shard} has no frame ${seq}`)
    return fromFrame(frame)
  }

  #restored(): number {
    const restored = this.#snapshots.take(({ bytes, seq }) => {
      const [format, packed] = decoder.unpack(bytes) as [number, Parameters<Directory['restore']>[0]]
      if (format !== snapshotFormat) return undefined
      this.#directory.restore(packed)
      advanceTo(seq, this.#log, this.#shards)
      return seq
    })
    return restored ?? 0
  }

  #pack() {
    return { bytes: encode(codec, [snapshotFormat, this.#directory.pack()]), columns: [] }
  }

  /** Schedules one turn. */
  #schedule(afterMs: number): void {
    if (afterMs === 0) this.#soon ??= this.#clock.soon(() => this.#turn())
    else this.#later ??= this.#clock.later(() => this.#turn(), afterMs)
  }

  /** Follows the log, answers the queries that it can, and continues while there is more. */
  #turn(): void {
    this.#soon?.()
    this.#later?.()
    this.#soon = undefined
    this.#later = undefined
    const asked = this.#waiting
    this.#waiting = []
    this.#step()
    for (const open of asked) {
      if (open.through <= this.#applied && this.#isSettled) this.#give(open)
      else if (this.#clock.monotonicMs() - open.since > patienceMs) this.#front.answer(open.id, beingMade)
      else this.#waiting.push(open)
    }
    if (this.#waiting.length > 0 || !this.#isSettled) this.#schedule(0)
    else if (this.#applied < this.#durable) this.#schedule(leisureMs)
    else {
      this.#snapshots.after(this.#applied, () => this.#pack())
      if (this.#directory.hasUnread) this.#schedule(rereadMs)
      // Files that are not being read are closed, since their texts may have been redacted meanwhile.
      for (const reader of this.#shards) reader.reopen()
    }
  }

  #step(): void {
    if (this.#applied < this.#durable) {
      this.#log.advance(this.#durable)
      let frames = 0
      const wanted = { log: this.#log, shards: this.#shards, from: this.#applied + 1, through: this.#durable }
      for (const batch of readableRecords({ ...wanted, onDamage: ({ message }) => this.#leftOut(message) })) {
        for (const { frame, shard } of batch.records) {
          frames++
          if (concernsTools(frame)) this.#take(frame, shard)
        }
        this.#applied = batch.seq
        if (frames >= framesPerStep) break
      }
      this.#isSettled = false
    }
    if (this.#directory.hasUnread && this.#clock.monotonicMs() >= this.#rereadAt) {
      this.#directory.retry()
      this.#isSettled = false
    }
    if (this.#isSettled || this.#applied < this.#durable) return
    this.#isSettled = this.#directory.settle(documentsPerStep, (error) => this.#spare(error))
    const now = this.#clock.monotonicMs()
    if (this.#directory.hasUnread && this.#rereadAt <= now) this.#rereadAt = now + rereadMs
  }

  #take(frame: Frame, shard: number): void {
    try {
      this.#directory.apply(fromFrame(frame), { shard, seq: frame.seq, id: frameKey(frame) })
    } catch (error) {
      this.#spare(error)
    }
  }

  /** A record or listing that cannot be applied is skipped; the directory continues. */
  #spare(error: unknown): void {
    this.#leftOut(String(error instanceof Error ? error.stack : error))
  }

  #leftOut(problem: string): void {
    this.#report('error', 'tools.left_out', { problem })
  }

  #give({ ask, id }: Open): void {
    try {
      this.#front.answer(id, this.#answers.answer(ask))
    } catch (error) {
      this.#front.answer(id, readFault(this.#report, error))
    }
  }
}

/** Answers from what has been applied. */
class ToolAnswers {
  readonly #index: ToolIndex
  readonly #directory: Directory
  readonly #record: (shard: number, seq: number) => BoardRecord
  readonly #search: ToolSearch
  readonly #showing: Showing
  /** Unix seconds. */
  readonly #now: () => number

  constructor(
    index: ToolIndex,
    directory: Directory,
    record: (shard: number, seq: number) => BoardRecord,
    cursors: CursorSealer,
    now: () => number,
  ) {
    this.#now = now
    this.#index = index
    this.#directory = directory
    this.#record = record
    this.#search = new ToolSearch(index, directory.sources, cursors, now() * 1_000)
    this.#showing = {
      index,
      rewarded: (subject) => directory.rewarded(subject),
      callable: (doc) => directory.callable(doc),
    }
  }

  answer(ask: ToolsAsk): ToolsAnswer {
    switch (ask[0]) {
      case 'search':
        return this.#page(ask[1])
      case 'look':
        return this.#look(ask[1])
      case 'subject':
        return { ok: true, value: this.#subject(ask[1], ask[2]) }
      case 'reviewer':
        return { ok: true, value: this.#directory.reviewer(ask[1], ask[2]) }
    }
  }

  #page(asked: Extract<ToolsAsk, readonly ['search', ...unknown[]]>[1]): ToolsAnswer {
    const now = this.#now()
    const page = this.#search.page(asked, now)
    if ('code' in page) return { ok: false, refusal: page }
    const { builtAt } = this.#directory
    return { ok: true, reply: replyWith(JSON.stringify(pageJson(this.#showing, asked.text, page, builtAt, now))) }
  }

  #look(id: string): ToolsAnswer {
    const probe = (shard: number, seq: number) => {
      return probedActs.in(this.#record(shard, seq)).facts
    }
    const context = { directory: this.#directory, showing: this.#showing, probe, now: this.#now() }
    const details = toolDetails(context, id)
    if (details !== undefined) return { ok: true, reply: replyWith(JSON.stringify(details)) }
    return { ok: false, refusal: refusal('not_found', `there is no tool ${id}: tools.search finds them`, 'target') }
  }

  #subject(subject: string, identity: string): FoundSubject {
    const docs = this.#index.ofSubject(subject).map((id) => this.#index.find(id)!)
    return {
      tools: docs.slice(0, 20).map(({ id }) => id),
      isOwner: docs.some((doc) => this.#directory.isOwner(doc, identity)),
      publishers: this.#directory.publishers(subject),
    }
  }
}

export const thread: ThreadStarter<ToolsThread> = (data, here) => {
  const follower = new ToolsFollower(data, here)
  return { facts: { applied: follower.applied }, stop: () => follower.stop() }
}
