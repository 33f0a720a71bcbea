/**
 * A shard: one thread and one journal, which decides for many rooms (and, on the first shard, for the registry).
 *
 * A turn takes the waiting letters, decides them all in memory, appends once with one sync, and tells the log actor how
 * far the journal reaches. The next turn usually starts when the log has confirmed that. A public write is answered
 * once the log has confirmed that its frame is on disk and signed; a private one as soon as the journal is synced. A
 * decision is not visible before it is on disk. A decision of several records is atomic on disk too: if a crash cuts it
 * short, its remains are removed when the journal is opened (storage/whole-decisions.ts).
 *
 * An error during an append ends this thread (rollback = crash): its memory is discarded, and the state is replayed
 * from the file.
 */

import { createHash } from 'node:crypto'
import type { Damage } from '../storage/disk.ts'
import type { Frame, Journal, NewFrame } from '../storage/journal.ts'
import { DamagedRows } from '../storage/shelved-rows.ts'
import type { Image, Snapshot } from '../storage/snapshot.ts'
import { absurdSeconds } from './kernel/day.ts'
import { Mailbox } from './kernel/mailbox.ts'
import { tooBusy, unpublishedDelegation } from './kernel/refusals.ts'
import type { Timers } from './kernel/timers.ts'
import type { Answer, Delivery, Head, Mail, ShardAnswer } from './records/answer.ts'
import { Board } from './records/board.ts'
import { Columns } from './records/columns.ts'
import { EventIndex } from './records/event-index.ts'
import type { EventShelf } from './records/old-events.ts'
import {
  type BoardRecord,
  type FactRecord,
  frameKey,
  fromFrame,
  leavesOf,
  PUBLIC,
  RecordType,
  type RoomCreated,
  registryName,
  toFrame,
} from './records/record.ts'
import type { Shelf } from './records/retry-memory.ts'
import {
  authorOf,
  type Decider,
  type Decision,
  type Known,
  type PackedRetryGuard,
  RetryGuard,
  refuse,
  type Shares,
  unlessDamaged,
  type WriteLetter,
} from './records/write.ts'
import { openPolicy, type Policy } from './rooms/policy.ts'
import { State } from './state.ts'

export type ShardOptions = Pick<Timers, 'soon'> & {
  readonly number: number
  readonly journal: Journal
  readonly deciders: Readonly<Record<string, Decider>>
  /** The reply to a retry, from what is in memory; `first` is the first record of the original command. */
  readonly replyToRetry: (board: Board, first: Frame) => Readonly<Record<string, unknown>>
  /** Unix seconds of the wall clock. */
  readonly wallSeconds: () => number
  /** The time at which the timeouts of works are frozen after a jump of the wall clock. If absent, they never are. */
  readonly timeoutsHeldAt?: () => number | undefined
  /** Newest durable frame of the log's journal; at least that of every answered write. If absent, it is not known. */
  readonly logDurable?: () => number
  /** True while the disk has enough free space. */
  readonly diskHasRoom: () => boolean
  /** Records damage of the disk; returns the message for the caller. */
  readonly fault: (damage: Damage) => string
  /** Tells the log actor that frames up to `through` are durable. */
  readonly toLog: (through: number) => void
  /**
   * Passes a saved snapshot to `use` and returns the state made from it. Called once; undefined if no snapshot is
   * usable, and everything is replayed instead.
   */
  readonly snapshot: <Made>(use: (found: Snapshot) => Made | undefined) => Made | undefined
  /**
   * Called after each turn with the newest durable frame: the time to write a snapshot and to announce what is new.
   * `acted`: the rooms and other actors in which something other than posts was recorded.
   */
  readonly afterTurn: (seq: number, acted: ReadonlySet<string>) => void
  /** Called before anything is replayed. `isUsed`: whether a snapshot was restored. */
  readonly onRestored?: (isUsed: boolean) => void
  /** Called for each frame that the start replays. */
  readonly onReplayed?: (seq: number) => void
  /** Where old retry memory is moved; if absent, all of it stays in memory. */
  readonly shelf?: Shelf
  /** Where the rows of old events are moved; if absent, all of them stay in memory. */
  readonly eventShelf?: EventShelf
  /** Rooms that every board has. */
  readonly firstRooms: readonly FirstRoom[]
  readonly mailboxMax: number
  readonly lettersPerTurnMax: number
  /** Public frames that may wait for the log; beyond that the shard refuses new writes. */
  readonly unconfirmedMax: number
  /** A turn ends only when `acknowledged` reports that another place also has what is on disk here. */
  readonly waitsForOthers?: boolean
  /** This thread has other work too: turns are synced in the background. */
  readonly isBusy?: boolean
  /** How much of the retry memory one identity may fill. */
  readonly shares?: Shares
  /**
   * Creates the carrier of letters that decisions leave for other actors. It gets the state, and access to this
   * journal's records by seq.
   */
  readonly mail?: (state: State, record: (seq: number) => BoardRecord) => Mail
}

/**
 * `keeper`: identity id of the owner; only they may start threads there. Without one the operator owns the room, and
 * its policy is open.
 */
export type FirstRoom = { readonly name: string; readonly keeper?: string }

/** Sent by the log when frames are covered by a durable signed head. */
export type Confirmation = {
  readonly through: number
  readonly firstChange: number
  readonly firstLeaf: number
  readonly head: Head
}

/**
 * While the log signs what one turn wrote, letters gather for the next one: fewer and larger turns, two syncs for all
 * of them. With this many letters a turn does not wait for the log. Nor does it if one of the board's own letters is
 * waiting, because a user's command is half done until those are decided. (64 posts in flight, a second each way in
 * turn: 3 percent less processor time, 3 to 10 percent more posts.)
 */
const turnLettersMin = 64

/**
 * A single write is answered sooner if the thread itself syncs. From this many letters on, a thread with other work
 * does that work while the disk syncs. (64 posts in flight, in turn: 12 percent more posts, 9 percent less processor
 * time; 256: 15 and 13 percent.)
 */
const lettersWorthAWait = 6

type PackedShard = readonly [now: number, acceptance: PackedRetryGuard]
type Letter = { readonly write: WriteLetter; readonly answer: Answer }
type Waiting = { readonly seq: number; readonly give: (change: number, leaf: number | undefined, head: Head) => void }
type Unconfirmed = { readonly seq: number; readonly leaves: number }

export class Shard {
  readonly state: State
  readonly #options: ShardOptions
  readonly #mailbox: Mailbox<Letter>
  readonly #turnLettersMin: number
  readonly #acceptance: RetryGuard
  readonly #mail: Mail | undefined
  #unconfirmed: Unconfirmed[] = []
  #waiting: Waiting[] = []
  /** Decided in this turn, but on disk only at its end. Later letters are judged against them too. */
  #frames: NewFrame[] = []
  #acted = new Set<string>()
  #scheduled = false
  #isWriting: boolean
  /** Others have this journal up to here too. */
  #acknowledged = 0
  /** Ends a turn that waits for others to have the journal. */
  #whenAcknowledged: (() => void) | undefined
  /** The log has said what it covers. Before that it is unknown what a retry must wait for. */
  #isResumed = false
  /** One of the board's own letters is waiting, so the next turn must not wait for the log. */
  #isUrgent = false
  #now = 0
  /** Number of letters decided in this turn that earlier decisions left for actors of this shard. */
  #delivered = 0

  constructor(options: ShardOptions) {
    this.#options = options
    // Frames from before the restart may exist only here.
    this.#isWriting = options.waitsForOthers === true
    this.#mailbox = new Mailbox(options.mailboxMax)
    this.#turnLettersMin = Math.min(turnLettersMin, Math.ceil(options.mailboxMax / 2))
    const now = options.wallSeconds()
    const kept = this.#restored(now)
    options.onRestored?.(kept !== undefined)
    this.state = kept?.state ?? new State(new Board(new EventIndex(options.eventShelf), false))
    this.#acceptance = kept?.acceptance ?? this.#guard(this.state)
    this.#now = kept?.now ?? 0
    for (const frame of options.journal.scan((kept?.seq ?? 0) + 1)) {
      this.#replay(frame, now)
      this.board.events.shelve(true)
      options.onReplayed?.(frame.seq)
    }
    this.#makeFirstRooms()
    this.#mail = options.mail?.(this.state, (seq) => fromFrame(this.read(seq)))
  }

  /** The state from the snapshot, restored at `at` (Unix seconds); undefined if there is none, or it is unusable. */
  #restored(at: number) {
    return this.#options.snapshot((found) =>
      unlessRowsDamaged(() => {
        const kept = State.unpack(found, 'deciding', { shelf: this.#options.eventShelf, publicLists: false })
        if (kept === undefined) return undefined
        const [now, packed] = kept.more as PackedShard
        const acceptance = this.#guard(kept.state)
        return acceptance.restore(packed, kept.columns, at)
          ? { seq: found.seq, state: kept.state, acceptance, now }
          : undefined
      }),
    )
  }

  #guard({ board }: State): RetryGuard {
    const { shares, shelf } = this.#options
    return new RetryGuard(board, (seq) => this.read(seq), shares, shelf)
  }

  /** The state after the newest durable frame. Call it between turns. `isLive`: the state keeps changing before the image is written. */
  pack(isLive = false): Image {
    const columns = new Columns([], isLive)
    const more: PackedShard = [this.#now, this.#acceptance.pack(columns)]
    return this.state.pack(more, columns)
  }

  get board(): Board {
    return this.state.board
  }

  get waiting(): number {
    return this.#mailbox.length + this.#waiting.length
  }

  read(seq: number): Frame {
    const { journal } = this.#options
    const decided = this.#frames[seq - journal.nextSeq]
    if (decided !== undefined) return { ...decided, seq, payload: Buffer.from(decided.payload) }
    const frame = journal.read(seq)
    if (frame === undefined) throw new Error(`journal of shard ${this.#options.number} has no frame ${seq}`)
    return frame
  }

  /** Hints that these events will be read next, with their records. */
  prefetch(slots: readonly number[]): void {
    const { events } = this.board
    events.prefetch(slots)
    this.#options.journal.prefetch(slots.map((slot) => events.place(slot)))
  }

  post(write: WriteLetter, answer: Answer): void {
    if (this.#mail === undefined) return this.#offer(write, answer)
    const mail = this.#mail
    const settled: Answer = (found, head) => mail.settle(write, found, head, answer)
    mail.before(write, (letter, give) => this.#offer(letter, give), settled)
    if (mail.isWaiting) this.wake()
  }

  /** Schedules a turn for letters going to, or returned from, other shards. */
  wake(): void {
    this.#isUrgent = true
    this.#schedule()
  }

  #offer(write: WriteLetter, answer: Answer): void {
    if (this.#unconfirmed.length >= this.#options.unconfirmedMax || !this.#mailbox.offer({ write, answer })) {
      return answer(refusal({ ok: false, refusal: tooBusy }))
    }
    if (write.nonce === '') this.#isUrgent = true
    this.#schedule()
  }

  /** Schedules the next turn if there is something to decide and the log has confirmed the last one. */
  #schedule(): void {
    if (!this.#isResumed || this.#scheduled) return
    if (this.#mailbox.length === 0 && this.#mail?.isWaiting !== true) return
    if (this.#unconfirmed.length > 0 && !this.#isUrgent && this.#mailbox.length < this.#turnLettersMin) return
    this.#scheduled = true
    this.#options.soon(() => this.#turn())
  }

  /** Frames up to `through` are in a durable signed head. */
  confirm(confirmation: Confirmation): void {
    const { through, head } = confirmation
    let change = confirmation.firstChange
    let leaf = confirmation.firstLeaf
    let waiting = 0
    let covered = 0
    for (const { seq, leaves } of this.#unconfirmed) {
      if (seq > through) break
      covered++
      while (waiting < this.#waiting.length && this.#waiting[waiting]!.seq === seq)
        this.#waiting[waiting++]!.give(change, leaves > 0 ? leaf : undefined, head)
      change++
      leaf += leaves
    }
    this.#unconfirmed.splice(0, covered)
    this.#waiting.splice(0, waiting)
    this.#schedule()
  }

  /**
   * The log already covers frames up to `through`; later public frames are confirmed as usual. Also notifies the log of
   * them, because the thread that wrote them may have died before it could.
   */
  resume(through: number): void {
    const { journal, toLog } = this.#options
    for (const frame of journal.scan(through + 1)) {
      if ((frame.flags & PUBLIC) !== 0) this.#unconfirmed.push({ seq: frame.seq, leaves: leavesOf(frame) })
    }
    if (through < journal.nextSeq - 1) toLog(journal.nextSeq - 1)
    this.#isResumed = true
    if (this.#mail !== undefined) this.#isUrgent = true
    if (this.#options.waitsForOthers !== true) return this.#schedule()
    this.#scheduled = true
    this.#afterOthers(() => this.#endTurn([]))
  }

  /** Others have the journal up to `through`. */
  acknowledged(through: number): void {
    this.#acknowledged = Math.max(this.#acknowledged, through)
    const then = this.#whenAcknowledged
    if (then === undefined || this.#acknowledged < this.#options.journal.nextSeq - 1) return
    this.#whenAcknowledged = undefined
    then()
  }

  /** Until others have the journal, nothing that was decided is visible, not even to reads, and no turn starts. */
  #afterOthers(then: () => void): void {
    if (this.#options.waitsForOthers !== true) return then()
    this.#isWriting = true
    this.#whenAcknowledged = () => {
      this.#isWriting = false
      then()
    }
    this.acknowledged(this.#acknowledged)
  }

  #turn(): void {
    if (!this.#isResumed) return
    const letters = this.#mailbox.take(this.#options.lettersPerTurnMax)
    this.#isUrgent = false
    this.#takeTime()
    const room = this.#options.diskHasRoom()
    const answers: (() => void)[] = []
    this.#delivered = 0
    // Letters left by an earlier turn, or from before a restart, come first: their room must know of them before anything new.
    this.#deliver(room, answers, false)
    for (const letter of letters) {
      this.#decide(letter, room, answers)
      this.#deliver(room, answers, false)
    }
    this.#deliver(room, answers, this.#frames.length > 0)

    const { journal } = this.#options
    if (this.#frames.length === 0) return this.#endTurn(answers)
    journal.peerSeq = this.#options.logDurable?.() ?? 0
    if (this.#options.isBusy !== true || letters.length < lettersWorthAWait) {
      journal.append(this.#frames)
      return this.#isOnDisk(answers)
    }
    this.#isWriting = true
    journal.appendLater(this.#frames, (failed) => {
      if (failed !== undefined) throw failed
      this.#isWriting = false
      this.#isOnDisk(answers)
    })
  }

  /** Timestamps never go back, unless the clock was once so far ahead that they would stay wrong forever. */
  #takeTime(): void {
    this.state.market.timeoutsHeldAt = this.#options.timeoutsHeldAt?.()
    this.#advance(this.#options.wallSeconds())
  }

  #advance(wall: number): void {
    this.#now = this.#now > wall + absurdSeconds ? wall : Math.max(this.#now, wall)
  }

  /** Applies frames that another machine decided and that have just become durable in this journal. Returns the acts among them. */
  follow(frames: readonly Frame[]): FactRecord[] {
    const now = this.#options.wallSeconds()
    const acts: FactRecord[] = []
    for (const frame of frames) {
      const record = this.#replay(frame, now)
      if (record.type === RecordType.act) acts.push(record)
    }
    this.board.events.shelve()
    this.#options.afterTurn(this.#options.journal.nextSeq - 1, new Set(acts.map(({ room }) => room)))
    return acts
  }

  /** Time of the newest record, Unix seconds; 0 if there is none. */
  get newest(): number {
    return this.#now
  }

  /** The actor that accepted the command with this id (32 hex). */
  acceptedBy(command: string): string | undefined {
    return this.#acceptance.acceptedBy(command)
  }

  /** Stops taking turns. Resolves when none is still being written. */
  stop(): Promise<void> {
    this.#isResumed = false
    return this.#options.journal.idle()
  }

  /** A turn is being written: what it decided may not be shown yet, not even to reads. */
  get isWriting(): boolean {
    return this.#isWriting
  }

  /** Everything decided is on disk. */
  #isOnDisk(answers: readonly (() => void)[]): void {
    this.#frames = []
    this.#options.toLog(this.#options.journal.nextSeq - 1)
    this.#afterOthers(() => this.#endTurn(answers))
  }

  /** Everything decided may be shown. */
  #endTurn(answers: readonly (() => void)[]): void {
    for (const answer of answers) answer()
    this.board.events.shelve()
    const acted = this.#acted
    this.#acted = new Set()
    this.#options.afterTurn(this.#options.journal.nextSeq - 1, acted)
    this.#mail?.afterTurn()
    if (this.#mail?.isWaiting === true) this.#isUrgent = true
    this.#scheduled = false
    this.#schedule()
  }

  /** Letters that decisions left for actors of this shard are decided in the same turn, and are durable with the same sync. */
  #deliver(room: boolean, answers: (() => void)[], marks: boolean): void {
    while (this.#mail !== undefined && this.#delivered < this.#options.lettersPerTurnMax) {
      const delivery = this.#mail.next(this.#now, marks)
      if (delivery === undefined) return
      this.#delivered++
      this.#decide(delivery, room, answers, delivery.decided)
    }
  }

  /** Decides one letter; `answers` are given when the turn's append is durable. */
  #decide({ write, answer }: Letter, room: boolean, answers: (() => void)[], decided?: Delivery['decided']): void {
    const decision = unlessDamaged(() => this.#judge(write, room), this.#options.fault)
    if ('known' in decision) {
      const reply = this.#options.replyToRetry(this.board, this.read(decision.known))
      this.#whenCovered(decision.known, answers, (head, change) =>
        answer({ ok: true, reply, duplicate: true, ...(change === undefined ? {} : { change }) }, head),
      )
      return
    }
    if (!decision.ok) {
      decided?.(decision)
      answers.push(() => answer(decision))
      return
    }
    // A delegate can do nothing public before its delegation is published: the main thread publishes it and retries.
    const isSeen = decision.leadsToPublic === true || decision.records.some(({ isPublic }) => isPublic)
    if (write.delegated?.isPublished === false && isSeen) {
      answers.push(() => answer(refusal(refuse(unpublishedDelegation, 'the delegation is not in the public log yet'))))
      return
    }
    const base = this.#options.journal.nextSeq + this.#frames.length
    let last = 0
    decision.records.forEach((planned, index) => {
      const seq = base + index
      const hasMore = index < decision.records.length - 1
      this.#frames.push(toFrame(planned.record, planned.key, planned.isPublic, planned.entries ?? [], hasMore))
      this.state.apply(planned.record, planned.key, { shard: this.#options.number, seq, change: seq, leaf: 0 })
      if (planned.record.type === RecordType.act) {
        this.#acted.add(planned.record.room)
        this.#forgetVoided(planned.record)
      }
      if (!planned.isPublic) return
      this.#unconfirmed.push({ seq, leaves: planned.entries?.length ?? 0 })
      last = seq
    })
    const newest = decision.records.at(-1)
    if (newest !== undefined && write.nonce !== '') {
      this.#acceptance.remember(
        { ...write, isEvent: 'seq' in newest.record },
        base + decision.records.length - 1,
        this.#now,
      )
    }
    const { reply } = decision
    if (last === 0 || decision.isAnsweredEarly === true) answers.push(() => answer({ ok: true, reply }))
    else
      this.#waiting.push({
        seq: last,
        give: (change, leaf, head) =>
          answer({ ok: true, reply, change, ...(leaf === undefined ? {} : { leaf }) }, head),
      })
    decided?.({ ok: true, reply })
  }

  #judge(write: WriteLetter, room: boolean): Known | Decision {
    if (write.nonce !== '') {
      // The registry may know of a suspension before the main thread does, and an erased identity must not write anymore.
      const isSuspended = write.suspended || this.state.people.suspension(write.author) !== undefined
      const judged = this.#acceptance.judge(write, this.#now, this.#options.wallSeconds(), isSuspended)
      if (judged !== undefined) return judged
    }
    if (!room)
      return refuse(
        'storage_full',
        'the disk of this board is full: reads continue, and writes wait for the operator',
        undefined,
        60,
      )
    const decider = this.#options.deciders[write.op]
    if (decider === undefined) throw new Error(`no decider for ${write.op}`)
    return decider(
      { state: this.state, board: this.board, now: this.#now, record: (seq) => fromFrame(this.read(seq)) },
      write,
    )
  }

  /** If the original command still waits for the log, its retry waits too. */
  #whenCovered(seq: number, answers: (() => void)[], give: (head?: Head, change?: number) => void): void {
    const waits = this.#unconfirmed.some((each) => each.seq === seq)
    if (!waits) {
      answers.push(() => give())
      return
    }
    const at = this.#waiting.findIndex((each) => each.seq > seq)
    const waiting: Waiting = { seq, give: (change, _leaf, head) => give(head, change) }
    if (at < 0) this.#waiting.push(waiting)
    else this.#waiting.splice(at, 0, waiting)
  }

  #makeFirstRooms(): void {
    for (const { name: room, keeper } of this.#options.firstRooms) {
      const at = this.#options.wallSeconds()
      const owner = keeper === undefined ? undefined : Buffer.from(keeper, 'hex')
      const made: RoomCreated = {
        type: RecordType.roomCreated,
        room,
        at,
        visibility: 'public',
        ...(owner === undefined ? {} : { owner }),
      }
      if (!this.board.rooms.has(room)) this.#appendOwn(made, `first room ${room}`)
      // A start that was killed between the two writes left the room without its policy.
      const isRuled = this.board.rooms.get(room)!.owner !== keeper || this.state.rules.isRuled(room)
      if (owner === undefined || isRuled) continue
      const policy: Policy = { ...openPolicy, write: 'owner' }
      const op = 'room.policy.set'
      const ruled: FactRecord = { type: RecordType.act, room, at, author: owner, op, facts: { policy } }
      this.#appendOwn(ruled, `first policy ${room}`)
    }
  }

  /** Appends a public record made by the board itself, with a key derived from its cause. */
  #appendOwn(record: BoardRecord, cause: string): void {
    const key = createHash('sha256').update(cause).digest().subarray(0, 16)
    const seq = this.#options.journal.append([toFrame(record, key, true, [])])
    this.state.apply(record, key, { shard: this.#options.number, seq, change: seq, leaf: 0 })
  }

  #replay(frame: Frame, now: number): BoardRecord {
    const record = fromFrame(frame)
    const key = frameKey(frame)
    try {
      this.state.apply(record, key, { shard: this.#options.number, seq: frame.seq, change: frame.seq, leaf: 0 })
    } catch (error) {
      // A bug in the board, which aborts the start. The repair needs the frame's number, but nothing of its text may be reported.
      const { seq, type, flags, payload } = frame
      const what = `frame ${seq}, type ${type}, flags ${flags}, ${payload.length} bytes, with ${Object.keys(record)}`
      if (error instanceof TypeError) error.message += ` (${what})`
      throw error
    }
    this.#acceptance.remind(
      frame,
      record,
      'by' in record && record.by !== undefined ? authorOf(record, record.by.key) : '',
      now,
    )
    if (record.type === RecordType.act) this.#forgetVoided(record)
    this.#advance(record.at)
    return record
  }

  /** An act may void a command that was recorded before it. */
  #forgetVoided({ facts, at }: FactRecord): void {
    if (typeof facts.voids === 'string') this.#acceptance.forget(facts.voids, at)
  }
}

/** If files that a snapshot refers to turn out to be damaged, the snapshot is unusable. */
function unlessRowsDamaged<Made>(restore: () => Made): Made | undefined {
  try {
    return restore()
  } catch (error) {
    if (!(error instanceof DamagedRows)) throw error
    return undefined
  }
}

function refusal(decision: Decision): ShardAnswer {
  if (decision.ok) throw new Error('expected a refusal, got an acceptance')
  return decision
}

/** A name for this shard's own decisions: no room or other actor has it. */
export function nameOn(shard: number, shards: number): string {
  for (let n = 0; ; n++) if (shardOf(`@${n}`, shards) === shard) return `@${n}`
}

/** Which shard decides for a room: always the same for the same name and number of shards. */
export function shardOf(name: string, shards: number): number {
  if (shards === 1 || name === registryName) return 0
  let hash = 0x811c_9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x0100_0193)
  return ((hash ^ (hash >>> 16)) >>> 0) % shards
}
