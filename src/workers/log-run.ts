/**
 * Runs the log: opens the signed log, and signs records once every shard has its state. A shard may refuse the start while it replays its
 * journal, and a refused start must change nothing.
 */

import { internalLimits } from '../../actors/kernel/limits.ts'
import { Link, type LinkOptions, type Port } from '../../actors/kernel/link.ts'
import type { Timers } from '../../actors/kernel/timers.ts'
import { type Log, type LogOptions, type LogState, stateAfter } from '../../actors/log/log.ts'
import type { Head } from '../../actors/records/answer.ts'
import { JournalReader } from '../../storage/journal.ts'
import { logDirectory, shardDirectory, UnusableDirectory } from '../board-directory.ts'
import type { Clock } from '../clock.ts'
import type { ReplicationSettings } from '../config.ts'
import { missingLogProblem } from '../log/beginning.ts'
import { checkEntries } from '../log/covered.ts'
import type { FollowedLog } from '../log/followed-log.ts'
import type { HighWaterMark } from '../log/mark.ts'
import { type LogIdentity, SignedLog } from '../log/signed-log.ts'
import type { Ends } from '../replication/journals-out.ts'
import { answerFollow, type FollowAsk } from './follow-asks.ts'
import { IdleMark } from './idle-mark.ts'
import type { FromLog, MessageSink, ToLog } from './shard-run.ts'
import { type SharedEnds, storeLogEnd } from './shared-ends.ts'
import type { Report, ThreadPlatform } from './thread.ts'

export type LogStart = {
  readonly dataDirectory: string
  /** Origin of the first log, from board.json. */
  readonly origin: string
  readonly segmentBytesMax: number
  /** High-water marks, which are consulted before signing: log/mark.ts. */
  readonly marks: readonly HighWaterMark[]
  /**
   * Set if another thread publishes the journals, or copies them for followers: the main thread is then told how far each journal is
   * durable. Unless it is `local`, shards, feed and main thread are notified of a frame only once the stream has acknowledged it. Undefined
   * if the journals are not published and there are no followers.
   */
  readonly publishing: ReplicationSettings['ack'] | undefined
  /** Set on a follower: the logs are another machine's, and the main thread passes on their frames. Undefined if the log is signed here. */
  readonly followed?: readonly LogIdentity[] | undefined
  readonly ends: SharedEnds
  readonly front: Port
  readonly feed: Port
}

/** What the log waits for at start, twice: where each shard's durable journal ends once it is open, and once the shard has its state. */
export type LogWord = { readonly through: readonly number[] }

/** `tree`: continue in the tree file that now has the name. The answer is the newest change in the old file. */
export type LogAsk = FollowAsk | readonly ['tree']

/** Connects to a shard; `receive` is called with its messages. */
type LinkShard = (shard: number, receive: (message: ToLog) => void) => MessageSink<FromLog>

/** From the log to the main thread and the feed: its journal is durable up to `seq`. */
export type Published = { readonly seq: number; readonly head: Head; readonly change: number }

/** To the log, if it waits for the stream: the stream has acknowledged the journals up to here. */
export type Acknowledged = { readonly acknowledged: Ends }

/** Also from the log to the feed: sealed segments of a shard were rewritten. */
export type Rewritten = { readonly rewritten: number }

/** The main thread is notified less often than the feed: it learns heads from the answers to its own writes anyway. */
const frontPaceMs = 20

/** The log, and the work that its thread does for it. */
export class LogRun {
  readonly #signed: SignedLog
  /** Signs, or takes the frames of another machine's log. */
  readonly #log: Pick<Log, 'head' | 'change' | 'covered'>
  readonly #writer: Log | undefined
  readonly #followed: FollowedLog | undefined
  readonly #mark: IdleMark
  readonly #front: Link
  readonly #feed: Link
  readonly #readers: readonly JournalReader[]
  /** Empty until the log signs. */
  #toShards: MessageSink<FromLog>[] = []
  readonly #linkShard: LinkShard
  readonly #report: Report
  readonly #journalEnds: SharedEnds
  readonly #published: LogOptions['published']
  readonly #ends: (() => void) | undefined
  /** Messages that wait for the stream; undefined if none ever do. */
  readonly #held: HeldWords | undefined
  #acknowledged: Ends | undefined

  constructor(start: LogStart, { through }: LogWord, here: ThreadPlatform, linkShard: LinkShard) {
    const { clock, disk, report } = here
    this.#linkShard = linkShard
    this.#report = report
    this.#signed = openSigned(start, here, through)
    const { journal, newest } = this.#signed
    checkShards(stateAfter(newest), through)
    this.#mark = new IdleMark(here, logDirectory(start.dataDirectory), journal)
    if (start.publishing !== undefined && start.publishing !== 'local') this.#held = new HeldWords()
    this.#front = linkOver(start.front, clock, {
      onAsk: (body, id) => this.#ask(body as LogAsk, id),
      onTell: (body) => this.#receiveAcknowledged((body as Acknowledged).acknowledged),
    })
    this.#feed = linkOver(start.feed, clock)
    this.#readers = through.map((_, shard) => JournalReader.open(disk, shardDirectory(start.dataDirectory, shard)))
    checkEntries(journal, journal.nextSeq - 1, this.#readers)
    const tellFront = paced<Published>(atPace(clock), (message) => this.#front.tell(message))
    this.#journalEnds = start.ends
    this.#published = (seq: number, head: Head, change: number): void => {
      this.#ends?.()
      this.#afterStream(seq, () => {
        this.#feed.tell({ seq, head, change } satisfies Published)
        tellFront({ seq, head, change })
      })
    }
    if (start.followed !== undefined) {
      this.#followed = this.#signed.follower({
        shards: this.#readers,
        published: (...change) => {
          storeLogEnd(start.ends, journal)
          this.#mark.after()
          this.#published(...change)
        },
      })
      this.#log = this.#followed
    } else {
      this.#writer = this.#signing(start, here)
      this.#log = this.#writer
      if (start.publishing !== undefined) this.#ends = this.#tellingEnds(clock)
    }
    storeLogEnd(start.ends, journal)
  }

  /** Signs everything up to these ends of the shards' journals, and from then on what the shards announce. Call once, when they have their state. */
  begin(through: readonly number[]): void {
    this.#toShards = through.map((_, shard) => this.#link(shard))
    if (this.#writer !== undefined) {
      for (const [shard, end] of through.entries()) this.#writer.hint(shard, end)
      this.#writer.catchUp()
    }
    const { journal } = this.#signed
    storeLogEnd(this.#journalEnds, journal)
    // An earlier thread may have made frames durable without announcing them. Readers wait for the newest frame that any writer knows of.
    const { head, change } = this.#log
    this.#published(journal.nextSeq - 1, head, change)
  }

  #signing(start: LogStart, { clock }: ThreadPlatform): Log {
    const { journal } = this.#signed
    return this.#signed.writer({
      shards: this.#readers,
      confirm: (shard, confirmation) => {
        storeLogEnd(start.ends, journal)
        if (this.#held !== undefined) this.#ends?.()
        this.#afterStream(journal.nextSeq - 1, () => {
          const toShard = this.#toShards[shard]!
          toShard.tell(['confirm', confirmation])
          toShard.flush()
        })
        this.#mark.after()
      },
      published: this.#published,
      syncsFirst: this.#held !== undefined,
      soon: clock.soon,
      later: clock.later,
    })
  }

  /** If writes wait for the stream, journal ends are sent as soon as the log has its frame too, so that both go in one message. */
  #tellingEnds(clock: Clock): () => void {
    const { journal } = this.#signed
    const tell = (ends: Ends): void => this.#front.tell(ends)
    const tellPaced = this.#held === undefined ? paced(atPace(clock), tell) : paced(clock.soon, tell)
    return () => tellPaced({ log: journal.durableSeq, shards: this.#writer!.hinted })
  }

  /** If writes wait for the stream, this is the only place that holds back the log's messages. */
  #afterStream(seq: number, say: () => void): void {
    if (this.#held === undefined) say()
    else this.#held.after(seq, say)
  }

  #receiveAcknowledged(ends: Ends): void {
    this.#acknowledged = ends
    // First the turn ends, then its public writes are confirmed: the same order as without waiting.
    for (const [shard, toShard] of this.#toShards.entries()) {
      toShard.tell(['acknowledged', ends.shards[shard]!])
      toShard.flush()
    }
    this.#held?.acknowledged(ends.log)
  }

  get facts() {
    const { journal, identities: logs, closed } = this.#signed
    const { head, change } = this.#log
    const covered = this.#readers.map((_, shard) => this.#log.covered(shard))
    return { seq: journal.nextSeq - 1, logId: journal.id, head, change, logs, closed, covered }
  }

  /** A shard has restarted in its own thread: connects to it again. */
  relink(shard: number): void {
    this.#toShards[shard]!.close()
    this.#toShards[shard] = this.#link(shard)
  }

  async stop(): Promise<void> {
    await this.#writer?.stop()
    if (this.#writer !== undefined && this.#ends !== undefined)
      this.#front.tell({ log: this.#signed.journal.durableSeq, shards: this.#writer.hinted } satisfies Ends)
    for (const each of [...this.#toShards, this.#front, this.#feed]) each.close()
    this.#signed.close()
    this.#mark.close()
  }

  #link(shard: number): MessageSink<FromLog> {
    const toShard = this.#linkShard(shard, (message) => this.#receive(shard, message))
    toShard.tell(['resume', this.#log.covered(shard)])
    if (this.#acknowledged !== undefined) toShard.tell(['acknowledged', this.#acknowledged.shards[shard]!])
    return toShard
  }

  #ask(asked: LogAsk, id: number): void {
    if (asked[0] === 'follow') return this.#follow(asked[1], id)
    this.#reopenTree()
    this.#front.answer(id, this.#log.change)
  }

  /** Only proofs need the file: the log continues without it. */
  #reopenTree(): void {
    try {
      this.#signed.tree.reopen()
    } catch (error) {
      this.#report('warn', 'log.tree.unusable', { problem: String(error) })
    }
  }

  /** Answers where the journal ends, after appending these frames if there are any. */
  #follow(copied: FollowAsk[1], id: number): void {
    const followed = this.#followed
    if (followed === undefined) throw new Error('this log is signed here')
    this.#front.answer(
      id,
      answerFollow(
        this.#signed.journal,
        () => copied && { log: { isOver: followed.take(copied), change: followed.change } },
      ),
    )
  }

  #receive(shard: number, message: ToLog): void {
    if (message !== 'rewritten') {
      this.#writer?.hint(shard, message)
      if (this.#held === undefined) this.#ends?.()
      return
    }
    this.#readers[shard]!.reopen()
    this.#feed.tell({ rewritten: shard } satisfies Rewritten)
    if (this.#ends !== undefined) this.#front.tell({ rewritten: shard } satisfies Rewritten)
  }
}

type Word = { readonly seq: number; readonly say: () => void }

/** Holds the log's messages about its frames until the stream has acknowledged those. */
class HeldWords {
  #acknowledged = 0
  /** Bounded: at most one per shard turn and one per pace of the log, since no shard takes a turn while one of its own waits. */
  #words: Word[] = []

  /** Runs `say` as soon as the log's frames up to `seq` are acknowledged. */
  after(seq: number, say: () => void): void {
    if (seq <= this.#acknowledged) say()
    else this.#words.push({ seq, say })
  }

  acknowledged(through: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, through)
    const words = this.#words
    this.#words = words.filter(({ seq }) => seq > this.#acknowledged)
    for (const { seq, say } of words) if (seq <= this.#acknowledged) say()
  }
}

function openSigned(
  { dataDirectory, origin, segmentBytesMax, marks, followed }: LogStart,
  { disk, random, report }: ThreadPlatform,
  through: readonly number[],
): SignedLog {
  return SignedLog.open({
    disk,
    random,
    dataDirectory,
    origin,
    segmentBytesMax,
    marks: followed === undefined ? marks : undefined,
    report,
    followed,
    begin: () => {
      if (followed !== undefined) throw new UnusableDirectory(`The log of the leader is missing in ${dataDirectory}.`)
      const lost = missingLogProblem(dataDirectory, through)
      if (lost !== undefined) throw new UnusableDirectory(lost)
      return through.length
    },
  })
}

function linkOver(port: Port, clock: Clock, receivers: Pick<LinkOptions, 'onAsk' | 'onTell'> = {}): Link {
  return new Link({
    port,
    openMax: 1,
    patienceMs: internalLimits.patienceMs,
    now: clock.monotonicMs,
    timers: clock,
    ...receivers,
  })
}

function atPace({ later }: Timers): Timers['soon'] {
  return (run) => later(run, frontPaceMs)
}

/** Passes on only the newest value, when `soon` runs its callback. */
function paced<Value>(soon: Timers['soon'], pass: (value: Value) => void): (value: Value) => void {
  let newest: { readonly value: Value } | undefined
  return (value) => {
    if (newest === undefined) {
      soon(() => {
        const { value } = newest!
        newest = undefined
        pass(value)
      })
    }
    newest = { value }
  }
}

/** If a journal ends before what the log has signed, acknowledged posts are missing; the same holds for a missing journal. */
function checkShards(state: LogState, through: readonly number[]): void {
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
