/** Runs a shard: opens its journal, replays it, and wires it to the main thread and the log. Wiring only. */

import { deciders } from '../../actors/deciders.ts'
import { internalLimits, type Queues, rates } from '../../actors/kernel/limits.ts'
import { Link, type Port } from '../../actors/kernel/link.ts'
import type { Cancel } from '../../actors/kernel/timers.ts'
import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { Shares, WriteLetter } from '../../actors/records/write.ts'
import { type Confirmation, type FirstRoom, Shard, type ShardOptions, shardOf } from '../../actors/shard.ts'
import { WorkDelivery } from '../../actors/works/delivery.ts'
import { readBlob } from '../../storage/blob-files.ts'
import { appendCopied, type CopiedFrames } from '../../storage/copied-frames.ts'
import { FRAME_BYTES_LIMIT } from '../../storage/frame.ts'
import type { Journal } from '../../storage/journal.ts'
import { openWhole } from '../../storage/whole-decisions.ts'
import { type BoardIdentity, shardSnapshotsDirectory } from '../board-directory.ts'
import type { DraftLetter } from '../command/draft-letter.ts'
import { openDraft } from '../command/post-draft.ts'
import { type BackfillRequest, backfill } from '../follow/backfill.ts'
import { type UpdatesRequest, updatesPage } from '../follow/rows.ts'
import { CursorSealer, type SealingKeys } from '../format/cursor.ts'
import { BoardSigner } from '../format/signer.ts'
import { durableOf } from '../log/covered.ts'
import { type ReadContext, type ReadRequest, strictContext } from '../reads/read.ts'
import { eachNamed, inTurn } from '../runtime/slow-turns.ts'
import { answerHooks, type HooksAsk } from '../webhooks/payloads/answer.ts'
import { Compactor } from './compactor.ts'
import { EventFiles } from './event-files.ts'
import { answerFollow, type FollowAsk } from './follow-asks.ts'
import { IdleMark } from './idle-mark.ts'
import { PrivateNews, type ShardNews, type ShardTell } from './private-news.ts'
import { answerRead } from './reads.ts'
import { replayProgress } from './replay-progress.ts'
import { retryReply } from './retry-reply.ts'
import { RetryShelf } from './retry-shelf.ts'
import { durableLogEnd, type SharedEnds, storeShardEnd } from './shared-ends.ts'
import { type SharedHold, timeoutsHeldAt } from './shared-hold.ts'
import { SnapshotKeeper } from './snapshots.ts'
import { readFault, type ThreadPlatform } from './thread.ts'

export type ShardStart = {
  readonly number: number
  /** Number of shards. */
  readonly shards: number
  readonly directory: string
  /** Of the board. */
  readonly dataDirectory: string
  /** Files of attachments. */
  readonly blobs: string
  readonly cursorKey: SealingKeys
  readonly generation: string
  /** From board.json. */
  readonly layout: string | undefined
  readonly serviceId: string
  /** Unix seconds: delegations made up to then have ended; 0 if none ended this way. */
  readonly delegationsEnded: number
  /** The board's own: notices about works are signed where they are posted. */
  readonly identity: BoardIdentity
  readonly diskReserveBytes: number
  readonly segmentBytesMax: number
  readonly recentEvents: number
  /** Seconds between two passes that look for texts to remove from the disk. */
  readonly compactSeconds: number
  readonly queues: Queues
  /** Rates and quotas are enforced. */
  readonly limitsOn: boolean
  readonly ends: SharedEnds
  readonly hold: SharedHold
  /** A write is answered and shown only once the stream that carries the journals has acknowledged it. */
  readonly waitsForStream: boolean
  /** Another machine decides. The main thread passes on its frames and refuses writes. */
  readonly isFollower: boolean
  /** Rooms of this shard that exist from the first start. */
  readonly firstRooms: readonly FirstRoom[]
  readonly front: Port
}

/** The channel to another actor: a link to its thread, or a direct call if both run in one thread. */
export type MessageSink<Message> = {
  tell(message: Message): void
  /** Sends the queued messages now instead of at the end of the tick. */
  flush(): void
  close(): void
}

/** From the log to a shard. `acknowledged`: the stream has the shard's journal up to there. */
export type FromLog = ['resume', number] | ['confirm', Confirmation] | ['acknowledged', number]
/** From a shard to the log: its journal is durable up to here, or its sealed segments were rewritten. */
export type ToLog = number | 'rewritten'

/** What the main thread requests from a shard about its private rooms. */
export type ShardAsk =
  | readonly ['read', ReadRequest]
  | readonly ['updates', UpdatesRequest]
  | readonly ['tail', BackfillRequest]
  | readonly ['hooks', HooksAsk]
type FromFront = readonly ['write', WriteLetter] | readonly ['post', DraftLetter] | FollowAsk | ShardAsk

const retryShares: Shares = {
  requestIds: rates.request_ids_per_identity_per_day,
  nonces: rates.nonces_per_identity_per_10_minutes,
}

/**
 * After a start that replayed many records, a snapshot is written after this pause. By then, tables of the retry memory have moved to their
 * files.
 */
const snapshotPauseMs = 1_000

/** How long a reading of free disk space is reused. */
const diskLookMs = 500

/** A shard, and the work that its thread does for it. */
export class ShardRun {
  readonly #data: ShardStart
  readonly #here: ThreadPlatform
  readonly #isBusy: boolean
  readonly #journal: Journal
  readonly #log: MessageSink<ToLog>
  readonly #front: Link
  readonly #snapshots: SnapshotKeeper
  readonly #mark: IdleMark
  readonly #events: EventFiles
  readonly #shard: Shard
  readonly #compactor: Compactor
  readonly #context: ReadContext
  readonly #news: PrivateNews
  /** Identity -> handle, from the main thread: the claims are in the journal of the registry's shard. */
  readonly #handles = new Map<string, string>()
  #delivery: WorkDelivery | undefined
  /** Callbacks that wait until a turn is on disk. */
  #held: (() => void)[] = []
  readonly #stopFirstSnapshot: Cancel

  /**
   * `linkLog`: connects to the log, whose messages go to `receive`; `through`: where the journal ends. `isBusy`: the thread has other work
   * too.
   */
  constructor(
    data: ShardStart,
    here: ThreadPlatform,
    linkLog: (receive: (message: FromLog) => void, through: number) => MessageSink<ToLog>,
    isBusy = false,
  ) {
    this.#data = data
    const { clock, disk, random, report } = here
    this.#here = here
    this.#isBusy = isBusy
    this.#journal = openWhole({
      disk,
      random,
      directory: data.directory,
      segmentBytesMax: data.segmentBytesMax,
      isCopy: data.isFollower,
      ...(data.isFollower ? { frameBytesMax: FRAME_BYTES_LIMIT } : {}),
      knownDurable: (journalId) => durableOf(disk, data.dataDirectory, data.number, journalId),
      report: ({ kind, ...facts }) => report('info', `journal.${kind}`, { shard: data.number, ...facts }),
    })
    // Log and feed continue while the state is being built. In an empty journal the first rooms come first.
    const opened = this.#journal.nextSeq - 1
    storeShardEnd(data.ends, data.number, opened)
    if (opened > 0) here.tellKnown({ through: opened })
    const link = { openMax: 1, patienceMs: internalLimits.patienceMs, now: clock.monotonicMs, timers: clock }
    this.#log = linkLog((message) => this.#receiveFromLog(message), opened)
    this.#front = new Link({
      ...link,
      port: data.front,
      onAsk: (body, id) => this.#ask(body as FromFront, id),
      onTell: (body) => this.#receive(body as ShardTell),
    })
    const { id } = this.#journal
    this.#mark = new IdleMark(here, data.directory, this.#journal)
    const directory = shardSnapshotsDirectory(data.directory)
    this.#snapshots = SnapshotKeeper.open(here, directory, id, opened)
    const shelf = new RetryShelf({ disk, directory, report })
    this.#events = new EventFiles({ clock, disk, random, report, directory }, data.recentEvents)
    this.#shard = new Shard(this.#shardOptions(shelf))
    this.#shard.state.delegations.endMadeUntil(data.delegationsEnded)
    this.#compactor = new Compactor({
      shard: data.number,
      journal: this.#journal,
      disk,
      report,
      directory: data.directory,
      state: this.#shard.state,
      clock,
      everySeconds: data.compactSeconds,
      onRewritten: () => this.#log.tell('rewritten'),
      onDestroyed: (slots) => {
        this.#tellUnneeded(this.#shard.state.blobs.unneededAfter(slots))
      },
    })
    this.#context = this.#readContext()
    this.#news = new PrivateNews(report, this.#context, (message) => this.#tell(message))
    this.#stopFirstSnapshot = clock.later(() => {
      // If a turn is being written, its end takes care of the snapshot.
      if (!this.#shard.isWriting) this.#keepSnapshot(this.#journal.nextSeq - 1)
    }, snapshotPauseMs)
  }

  get facts() {
    const { rooms, events } = this.#shard.board
    return { through: this.#journal.nextSeq - 1, newest: this.#shard.newest, rooms: rooms.size, events: events.count }
  }

  async stop(): Promise<void> {
    this.#stopFirstSnapshot()
    this.#compactor.close()
    await this.#shard.stop()
    this.#front.close()
    this.#log.close()
    this.#snapshots.keep(this.#journal.nextSeq - 1, () => this.#shard.pack())
    this.#events.close()
    this.#journal.close()
    this.#mark.close()
  }

  /** Called between turns, after frame `seq`: saves a snapshot if one is due. */
  #keepSnapshot(seq: number): void {
    this.#snapshots.after(seq, (isLive) => this.#shard.pack(isLive))
  }

  #timeoutsHeldAt(): number | undefined {
    return timeoutsHeldAt(this.#data.hold, this.#here.clock.wallSeconds())
  }

  #tell(news: ShardNews): void {
    this.#front.tell(news)
  }

  #shardOptions(shelf: RetryShelf): ShardOptions {
    const data = this.#data
    return {
      number: data.number,
      journal: this.#journal,
      snapshot: (use) => this.#snapshots.take(use),
      afterTurn: (seq, acted) => {
        const held = this.#held
        this.#held = []
        for (const show of held) show()
        this.#keepSnapshot(seq)
        this.#mark.after()
        this.#news.afterTurn(acted)
      },
      shelf,
      eventShelf: this.#events,
      onRestored: (isUsed) => {
        shelf.restored(isUsed)
        this.#events.restored(isUsed)
      },
      onReplayed: replayProgress(this.#here, `shard ${data.number}`, this.#journal.nextSeq - 1),
      firstRooms: data.firstRooms,
      // Only the leader carries letters between actors.
      ...(data.isFollower
        ? {}
        : {
            mail: (state, record) => {
              this.#delivery = this.#workDelivery(new BoardSigner(data), state, record)
              return this.#delivery
            },
          }),
      deciders: eachNamed(deciders),
      replyToRetry: retryReply,
      wallSeconds: this.#here.clock.wallSeconds,
      timeoutsHeldAt: () => this.#timeoutsHeldAt(),
      logDurable: () => durableLogEnd(data.ends),
      soon: this.#here.clock.soon,
      isBusy: this.#isBusy,
      waitsForOthers: data.waitsForStream,
      diskHasRoom: diskWatch(data, this.#here),
      fault: (damage) => readFault(this.#here.report, damage).refusal.message,
      toLog: (through) => {
        storeShardEnd(data.ends, data.number, through)
        this.#log.tell(through)
        this.#log.flush()
      },
      mailboxMax: data.queues.mailboxLetters,
      lettersPerTurnMax: internalLimits.lettersPerTurn,
      unconfirmedMax: data.queues.unconfirmedFrames,
      ...(data.limitsOn ? { shares: retryShares } : {}),
    }
  }

  #workDelivery(signer: BoardSigner, ...[state, record]: Parameters<NonNullable<ShardOptions['mail']>>): WorkDelivery {
    const { number, shards, identity, generation } = this.#data
    return new WorkDelivery({
      state,
      record,
      isHere: (actor) => shardOf(actor, shards) === number,
      sign: (fields, cause) => signer.signed(fields, cause),
      board: identity.id,
      generation,
      carry: (letters) => this.#tell(['carry', letters]),
      requested: (requested) => this.#tell(['requested', requested]),
      atRest: () => this.#tell(['at rest']),
      report: (facts) => this.#here.report('warn', 'work.not_said', { shard: number, ...facts }),
    })
  }

  #readContext(): ReadContext {
    const { blobs, cursorKey, generation, layout, serviceId } = this.#data
    const shard = this.#shard
    const { clock, disk } = this.#here
    return {
      state: shard.state,
      board: shard.board,
      body: (slot) => shard.read(shard.board.events.place(slot)),
      prefetch: (slots) => {
        if (disk.readsAreSlow()) shard.prefetch(slots)
      },
      blobFile: (room, sha256) => readBlob(disk, blobs, room, sha256),
      frame: (_shard, seq) => shard.read(seq),
      cursors: new CursorSealer(cursorKey),
      layout,
      generation,
      serviceId,
      handleOf: (identity) => this.#handles.get(identity),
      now: clock.readingSeconds,
      fault: (error) => readFault(this.#here.report, error).refusal.message,
      acceptedBy: (command) => shard.acceptedBy(command),
      visibility: 'private',
    }
  }

  #receiveFromLog(message: FromLog): void {
    if (message[0] === 'confirm') this.#shard.confirm(message[1])
    else if (message[0] === 'acknowledged') this.#shard.acknowledged(message[1])
    else this.#shard.resume(message[1])
  }

  #ask(asked: FromFront, id: number): void {
    if (asked[0] === 'follow')
      return this.#front.answer(
        id,
        answerFollow(this.#journal, () => asked[1] && { acts: this.#follow(asked[1]) }),
      )
    if (asked[0] !== 'write' && asked[0] !== 'post')
      return this.#whenOnDisk(() => inTurn(asked[0], () => this.#front.answer(id, this.#answer(asked))))
    if (this.#data.isFollower) throw new Error(`shard ${this.#data.number} of a follower was asked to write`)
    if (asked[0] === 'post') return this.#post(asked[1], id)
    this.#shard.post(asked[1], (answered: ShardAnswer, head?: Head) => this.#front.answer(id, answered, head))
  }

  #post(draft: DraftLetter, id: number): void {
    const { letter, take } = openDraft(draft, (answered, head) => this.#front.answer(id, answered, head))
    this.#shard.post(letter, take)
  }

  #answer([kind, asked]: ShardAsk): unknown {
    this.#shard.state.market.timeoutsHeldAt = this.#timeoutsHeldAt()
    try {
      if (kind === 'updates') return updatesPage(strictContext(this.#context), asked)
      if (kind === 'hooks') return answerHooks(strictContext(this.#context), asked)
      return kind === 'tail' ? backfill(strictContext(this.#context), asked) : answerRead(this.#context, asked)
    } catch (error) {
      return readFault(this.#here.report, error)
    }
  }

  /** Appends frames of the leader's journal; returns the operations of the acts among them. */
  #follow(copied: CopiedFrames): string[] {
    this.#journal.peerSeq = durableLogEnd(this.#data.ends)
    const acts = this.#shard.follow(appendCopied(this.#journal, copied))
    this.#tellUnneeded(this.#shard.state.blobs.unneededAfterActs(acts))
    return [...new Set(acts.map(({ op }) => op))]
  }

  #tellUnneeded(files: readonly (readonly [room: string, sha256: string])[]): void {
    if (files.length > 0) this.#tell(['unneeded', files])
  }

  /** Shows nothing of a turn until it is on disk. */
  #whenOnDisk(show: () => void): void {
    if (this.#shard.isWriting) this.#held.push(show)
    else show()
  }

  #setHandle(identity: string, handle: string): void {
    if (handle === '') this.#handles.delete(identity)
    else this.#handles.set(identity, handle)
  }

  #receive(message: ShardTell): void {
    if (message[0] === 'handles') for (const [identity, handle] of message[1]) this.#setHandle(identity, handle)
    else if (message[0] === 'carried' || message[0] === 'release') {
      if (message[0] === 'release') this.#delivery!.release()
      else this.#delivery!.carried(message[1], message[2], message[3])
      this.#shard.wake()
    } else this.#whenOnDisk(() => this.#news.receive(message))
  }
}

function diskWatch(
  { directory, diskReserveBytes }: ShardStart,
  { clock, disk, report }: ThreadPlatform,
): () => boolean {
  let lookedAt = Number.NEGATIVE_INFINITY
  let hasRoom = true
  return () => {
    const now = clock.monotonicMs()
    if (now - lookedAt < diskLookMs) return hasRoom
    lookedAt = now
    const free = disk.freeBytes(directory)
    if (hasRoom !== free >= diskReserveBytes)
      report('warn', 'disk.room', { free_bytes: free, reserve_bytes: diskReserveBytes, writable: !hasRoom })
    hasRoom = free >= diskReserveBytes
    return hasRoom
  }
}
