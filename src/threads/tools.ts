/**
 * The thread of the tools directory: follows the log into the directory and its index, and answers searches and looks. Started
 * by the first of them, with the tools of the board in it before anything is asked.
 *
 * A caller names the frame of the log that the answer must know of; the directory catches up to it first. It is rebuilt from the
 * journals; a snapshot of what is known of listings, kept when the thread stops, spares reading the whole log again. A fault here
 * costs the directory, never the board.
 */
import type { MessagePort } from 'node:worker_threads'
import { inside } from '../../actors/kernel/limits.ts'
import { Link } from '../../actors/kernel/link.ts'
import { encode, Packr, Unpackr } from '../../actors/kernel/msgpack.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { advanceTo, publicRecords } from '../../actors/log/public-records.ts'
import { frameKey, fromFrame, RecordType, registryName } from '../../actors/record.ts'
import { callsActor } from '../../actors/tool-calls/tool-calls.ts'
import { reviewsRoom } from '../../actors/tools/reviews.ts'
import { type ProbedFacts, toolsActor } from '../../actors/tools/tools.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { type Frame, JournalReader } from '../../storage/journal.ts'
import { logDirectory, shardDirectory, toolsDirectory } from '../board-directory.ts'
import { monotonicMs, readingSeconds } from '../clock.ts'
import { CursorSealer } from '../format/cursor.ts'
import { ownTools } from '../tool-calls/own-tools/descriptors.ts'
import type { FoundSubject, ToolsAnswer, ToolsAsk } from '../tools/asks.ts'
import { Directory } from '../tools/directory.ts'
import { ToolIndex } from '../tools/index.ts'
import { lookAt } from '../tools/look.ts'
import { ToolSearch } from '../tools/search.ts'
import { pageJson, type Showing } from '../tools/show.ts'
import { readFault, report, runThread } from './entry.ts'
import { SnapshotKeeper } from './snapshots.ts'

export type ToolsThread = {
  readonly dataDirectory: string
  readonly shards: number
  /** Newest durable frame of the log, and the id of its journal. */
  readonly through: number
  readonly logId: Uint8Array
  readonly cursorKey: Uint8Array
  readonly front: MessagePort
}

export type ToolsRequest = readonly [ask: ToolsAsk, through: number]
/** The log is durable up to this frame. */
export type ToolsTell = number

/** Frames examined between two checks for asks. */
const framesPerStep = 20_000
/** Documents put into the index between two looks for asks: about 10 ms of work. */
const documentsPerStep = 200
const leisureMs = 500
/** An ask that would have to wait longer for an index that is being made is refused. */
const patienceMs = 10_000

const snapshotFormat = 4
const codec = new Packr({ useRecords: false })
const decoder = new Unpackr({ useRecords: false })

type Open = { readonly ask: ToolsAsk; readonly through: number; readonly id: number; readonly since: number }

runThread((data: ToolsThread) => {
  const log = JournalReader.open(logDirectory(data.dataDirectory))
  const shards = Array.from({ length: data.shards }, (_, shard) =>
    JournalReader.open(shardDirectory(data.dataDirectory, shard)),
  )
  const record = (shard: number, seq: number) => {
    const frame = shards[shard]?.read(seq)
    if (frame === undefined) throw new Error(`journal ${shard} has no frame ${seq}`)
    return fromFrame(frame)
  }
  const index = new ToolIndex()
  const directory = new Directory({ index, own: ownTools, record, now: readingSeconds() })
  const search = new ToolSearch(index, directory.sources, new CursorSealer(data.cursorKey), readingSeconds() * 1_000)
  const showing: Showing = {
    index,
    rewarded: (subject) => directory.rewarded(subject),
    callable: (doc) => directory.callable(doc),
  }
  const snapshots = SnapshotKeeper.open(toolsDirectory(data.dataDirectory), Buffer.from(data.logId), data.through)
  let durable = data.through
  let applied = restored()
  let waiting: Open[] = []
  let soon: NodeJS.Immediate | undefined
  let later: NodeJS.Timeout | undefined
  let isSettled = directory.settle(0)

  function restored(): number {
    const found = snapshots.take()
    if (found === undefined) return 0
    const [format, packed] = decoder.unpack(found.bytes) as [number, Parameters<Directory['restore']>[0]]
    if (format !== snapshotFormat) return 0
    directory.restore(packed)
    advanceTo(found.seq, log, shards)
    return found.seq
  }

  /** One record or listing that cannot be taken costs itself, not the directory. */
  const spare = (error: unknown): void => {
    report('error', 'tools.left_out', { problem: error instanceof Error ? error.stack : String(error) })
  }

  const take = (frame: Frame, shard: number): void => {
    try {
      directory.apply(fromFrame(frame), { shard, seq: frame.seq, id: frameKey(frame) })
    } catch (error) {
      spare(error)
    }
  }

  const step = (): void => {
    if (applied < durable) {
      log.advance(durable)
      let frames = 0
      for (const logFrame of log.scan(applied + 1, durable)) {
        for (const { frame, shard } of publicRecords(logFrame, shards)) {
          frames++
          if (concernsTools(frame)) take(frame, shard)
        }
        applied = logFrame.seq
        if (frames >= framesPerStep) break
      }
      isSettled = false
    }
    if (isSettled || applied < durable) return
    try {
      isSettled = directory.settle(documentsPerStep)
    } catch (error) {
      spare(error)
    }
  }

  const answer = (ask: ToolsAsk): ToolsAnswer => {
    const now = readingSeconds()
    switch (ask[0]) {
      case 'search': {
        const page = search.page(ask[1], now)
        if ('code' in page) return { ok: false, refusal: page }
        return { ok: true, json: JSON.stringify(pageJson(showing, ask[1].text, page, directory.builtAt, now)) }
      }
      case 'look': {
        const probe = (shard: number, seq: number) => {
          const found = record(shard, seq)
          if (found.type !== RecordType.act) throw new Error(`frame ${seq} holds no probe`)
          return found.facts as ProbedFacts
        }
        const look = lookAt({ directory, showing, probe, now }, ask[1])
        if (look !== undefined) return { ok: true, json: JSON.stringify(look) }
        return {
          ok: false,
          refusal: refusal('not_found', `there is no tool ${ask[1]}: tools.search finds them`, 'target'),
        }
      }
      case 'subject': {
        const docs = index.ofSubject(ask[1]).map((id) => index.find(id)!)
        const isOwner = docs.some((doc) => directory.isOwner(doc, ask[2]))
        const found: FoundSubject = {
          tools: docs.slice(0, 20).map(({ id }) => id),
          isOwner,
          publishers: directory.publishers(ask[1]),
        }
        return { ok: true, json: JSON.stringify(found) }
      }
      case 'reviewer':
        return { ok: true, json: JSON.stringify(directory.reviewer(ask[1], ask[2])) }
    }
  }

  const give = ({ ask, id }: Open): void => {
    try {
      front.answer(id, answer(ask))
    } catch (error) {
      front.answer(id, readFault(error))
    }
  }

  /** Follows, answers who can be answered, and continues while there is more. */
  const turn = (): void => {
    clearImmediate(soon)
    clearTimeout(later)
    soon = undefined
    later = undefined
    const asked = waiting
    waiting = []
    step()
    for (const open of asked) {
      if (open.through <= applied && isSettled) give(open)
      else if (monotonicMs() - open.since > patienceMs) front.answer(open.id, beingMade)
      else waiting.push(open)
    }
    if (waiting.length > 0 || !isSettled) schedule(0)
    else if (applied < durable) schedule(leisureMs)
    else {
      snapshots.after(applied, pack)
      // Files that are not read now are not kept open: what was in them may have been taken back since.
      for (const reader of shards) reader.reopen()
    }
  }

  /** One turn is scheduled, for whatever reason. */
  const schedule = (afterMs: number): void => {
    if (afterMs === 0) soon ??= setImmediate(turn)
    else later ??= setTimeout(turn, afterMs)
  }

  const pack = () => ({ bytes: encode(codec, [snapshotFormat, directory.pack()]), columns: [] })

  const front = new Link({
    port: data.front,
    openMax: 1,
    patienceMs: inside.patienceMs,
    now: monotonicMs,
    onAsk: (body, id) => {
      const [ask, through] = body as ToolsRequest
      durable = Math.max(durable, through)
      waiting.push({ ask, through, id, since: monotonicMs() })
      schedule(0)
    },
    onTell: (body) => {
      durable = Math.max(durable, body as ToolsTell)
      if (applied < durable) schedule(leisureMs)
    },
  })
  report('info', 'tools.begun', { applied, listings: directory.tools.count })
  return {
    facts: { applied },
    stop: () => {
      front.close()
      snapshots.keep(applied, pack)
    },
  }
})

const names = [toolsActor, reviewsRoom, registryName, marketName, callsActor].map((name) => Buffer.from(name))

/** Finds out by its bytes whether the directory uses a record: most are not used, and are not even decoded. */
function concernsTools({ type, payload }: Frame): boolean {
  if (type === RecordType.handleClaimed) return true
  return names.some((name) => payload.includes(name))
}

const beingMade: ToolsAnswer = {
  ok: false,
  refusal: refusal('overloaded', 'the index of the tools directory is being built: try again', undefined, 5),
}
