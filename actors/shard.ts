/**
 * A shard: one thread, one journal, many rooms (and, on the first shard, the registry).
 *
 * A turn takes the waiting letters, decides them all in memory, appends once with one sync, and tells the log actor
 * how far the journal reaches; the next turn follows when the log has confirmed that. A public write is answered when the log has confirmed that its frame is on disk and signed;
 * a private one as soon as the journal is. A decision is not visible before it is on disk.
 * A decision of several records is one whole on disk too: what a crash leaves of it is cut when the journal is opened
 * (storage/whole-decisions.ts).
 *
 * An error while appending leaves this thread (rollback = crash): memory is thrown away and replayed from the file.
 */

import { createHash } from 'node:crypto'
import type { Damage } from '../storage/disk.ts'
import type { Frame, Journal, NewFrame } from '../storage/journal.ts'
import { UnsoundRows } from '../storage/shelved-rows.ts'
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
  /** The reply to a retry, from what is in memory; `first` is the record of the command that was accepted. */
  readonly again: (board: Board, first: Frame) => Readonly<Record<string, unknown>>
  /** Unix seconds of the wall clock. */
  readonly wallSeconds: () => number
  /** The wall clock has jumped: timeouts of works stand still there. Left out: it never does. */
  readonly timeoutsHeldAt?: () => number | undefined
  /** Newest frame of the log's journal that is durable: at least that of everything that was answered. Left out: not known. */
  readonly logDurable?: () => number
  /** True while the disk has room for more. */
  readonly diskHasRoom: () => boolean
  /** Records damage of the disk; returns what its caller is answered. */
  readonly fault: (damage: Damage) => string
  /** Tells the log actor that frames up to `through` are durable. */
  readonly toLog: (through: number) => void
  /** What is made of the state at a journal position to begin with, asked for once, as `pack` gave it; what does not fit is replayed instead. */
  readonly snapshot: <Made>(use: (found: Snapshot) => Made | undefined) => Made | undefined
  /**
   * Called after each turn with the newest durable frame: the time to keep a snapshot and to tell what is new.
   * `acted`: the rooms and other actors in which something but posts was done.
   */
  readonly afterTurn: (seq: number, acted: ReadonlySet<string>) => void
  /** Told when a snapshot was restored, or when none is of use, before anything is replayed. */
  readonly onRestored?: (isUsed: boolean) => void
  /** Told of each frame that the start replays. */
  readonly onReplayed?: (seq: number) => void
  /** Where retry memory goes that is old; left out: all of it stays in memory. */
  readonly shelf?: Shelf
  /** Where the rows of events go that are old; left out: all of them stay in memory. */
  readonly eventShelf?: EventShelf
  /** Rooms that every board has. */
  readonly firstRooms: readonly FirstRoom[]
  readonly mailboxMax: number
  readonly lettersPerTurnMax: number
  /** Public frames that may wait for the log: the credits a shard takes before it decides. */
  readonly unconfirmedMax: number
  /** What is on disk here is on its way still: a turn ends when `acknowledged` says that another place has it too. */
  readonly waitsForOthers?: boolean
  /** This thread has other work too: turns are synced beside it. */
  readonly isBusy?: boolean
  /** Of what is remembered for retries, what one identity may fill. */
  readonly shares?: Shares
  /** Carries what decisions leave for other actors; made of the state, and of the records of this journal by their numbers. */
  readonly mail?: (state: State, record: (seq: number) => BoardRecord) => Mail
}

/** `keeper`: identity id of the owner; only they begin threads there. Without one the operator owns it, and it is open. */
export type FirstRoom = { readonly name: string; readonly keeper?: string }

/** What the log says when frames are covered by a durable signed head. */
export type Confirmation = {
  readonly through: number
  readonly firstChange: number
  readonly firstLeaf: number
  readonly head: Head
}

/**
 * While the log signs what one turn wrote, the letters of the next gather: fewer and larger turns, two syncs for all of them.
 * So many do not wait for it. Nor do the board's own letters: a user's command is half done until they are decided.
 * (64 posts in flight, a second each way in turn: 3 percent less processor time, 3 to 10 percent more posts.)
 */
const lettersWorthATurn = 64

/**
 * Alone a write is answered sooner by the thread that syncs itself. From so many on, a thread with other work does that while the
 * disk syncs. (64 posts in flight, in turn: 12 percent more posts, 9 percent less processor time; 256: 15 and 13 percent.)
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
  readonly #worthATurn: number
  readonly #acceptance: RetryGuard
  readonly #mail: Mail | undefined
  #unconfirmed: Unconfirmed[] = []
  #waiting: Waiting[] = []
  /** Decided in this turn, on disk only at its end: later letters are judged by them too. */
  #frames: NewFrame[] = []
  #acted = new Set<string>()
  #scheduled = false
  #isWriting: boolean
  /** Up to here others have this journal too. */
  #acknowledged = 0
  /** Ends a turn that waits for that. */
  #whenAcknowledged: (() => void) | undefined
  /** The log has said what it covers: before that it is unknown what a retry has to wait for. */
  #isResumed = false
  /** A letter of the board's own is among those that wait. */
  #hurries = false
  #now = 0
  /** Letters that decisions of this turn, or of an earlier one, left for actors of this shard. */
  #delivered = 0

  constructor(options: ShardOptions) {
    this.#options = options
    // What an earlier life left may be here alone.
    this.#isWriting = options.waitsForOthers === true
    this.#mailbox = new Mailbox(options.mailboxMax)
    this.#worthATurn = Math.min(lettersWorthATurn, Math.ceil(options.mailboxMax / 2))
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

  /** What the snapshot holds, at `at` (Unix seconds); undefined: there is none, or it is of no use. */
  #restored(at: number) {
    return this.#options.snapshot((found) =>
      unlessUnsound(() => {
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

  /** The state after the newest durable frame. Call it between turns. `isLive`: it goes on before the image is written. */
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

  /** These events will be read next, with their records. */
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

  /** A turn follows for letters that go to, or have come back from, other shards. */
  wake(): void {
    this.#hurries = true
    this.#schedule()
  }

  #offer(write: WriteLetter, answer: Answer): void {
    if (this.#unconfirmed.length >= this.#options.unconfirmedMax || !this.#mailbox.offer({ write, answer })) {
      return answer(refusal({ ok: false, refusal: tooBusy }))
    }
    if (write.nonce === '') this.#hurries = true
    this.#schedule()
  }

  /** The next turn, when there is something to decide and the log has had the last one. */
  #schedule(): void {
    if (!this.#isResumed || this.#scheduled) return
    if (this.#mailbox.length === 0 && this.#mail?.isWaiting !== true) return
    if (this.#unconfirmed.length > 0 && !this.#hurries && this.#mailbox.length < this.#worthATurn) return
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
   * The log covers `through` already; what this journal has after that is confirmed like any other. The log is notified of it: the
   * thread that wrote it may have died before it could.
   */
  resume(through: number): void {
    const { journal, toLog } = this.#options
    for (const frame of journal.scan(through + 1)) {
      if ((frame.flags & PUBLIC) !== 0) this.#unconfirmed.push({ seq: frame.seq, leaves: leavesOf(frame) })
    }
    if (through < journal.nextSeq - 1) toLog(journal.nextSeq - 1)
    this.#isResumed = true
    if (this.#mail !== undefined) this.#hurries = true
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

  /** Until then nothing is shown of what was decided, by a read either. No turn begins meanwhile. */
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
    this.#hurries = false
    this.#takeTime()
    const room = this.#options.diskHasRoom()
    const answers: (() => void)[] = []
    this.#delivered = 0
    // What an earlier life or turn has left comes before anything new: its room has to know of it.
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

  /** Stamps do not go back, unless a clock once was so far ahead that they would never be right again. */
  #takeTime(): void {
    this.state.market.timeoutsHeldAt = this.#options.timeoutsHeldAt?.()
    this.#advance(this.#options.wallSeconds())
  }

  #advance(wall: number): void {
    this.#now = this.#now > wall + absurdSeconds ? wall : Math.max(this.#now, wall)
  }

  /** Frames that another machine has decided, and that are durable in this journal since a moment ago. Returns the acts among them. */
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

  /** Time of the newest record, Unix seconds; 0: there is none. */
  get newest(): number {
    return this.#now
  }

  /** The actor that accepted the command of this id (32 hex). */
  acceptedBy(command: string): string | undefined {
    return this.#acceptance.acceptedBy(command)
  }

  /** Takes no more turns. Resolves when none is on its way to the disk. */
  stop(): Promise<void> {
    this.#isResumed = false
    return this.#options.journal.idle()
  }

  /** A turn is on its way to the disk: what it decided may not be shown yet, by a read either. */
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
    if (this.#mail?.isWaiting === true) this.#hurries = true
    this.#scheduled = false
    this.#schedule()
  }

  /** Letters that decisions left for actors of this shard are decided in the same turn, on disk with the same sync. */
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
      const reply = this.#options.again(this.board, this.read(decision.known))
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
    // Nothing public by a delegate before its delegation: the main thread publishes that one, and comes again.
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
      // The registry decides a suspension before the main thread knows of it, and an erased identity must not write any more.
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

  /** A retry of something that still waits for the log waits with it. */
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
      if (!this.board.rooms.has(room)) this.#writeDown(made, `first room ${room}`)
      // A start that was killed between the two left the room alone.
      const isRuled = this.board.rooms.get(room)!.owner !== keeper || this.state.rules.isRuled(room)
      if (owner === undefined || isRuled) continue
      const policy: Policy = { ...openPolicy, write: 'owner' }
      const op = 'room.policy.set'
      const ruled: FactRecord = { type: RecordType.act, room, at, author: owner, op, facts: { policy } }
      this.#writeDown(ruled, `first policy ${room}`)
    }
  }

  /** A public record of the board's own making, named by its cause. */
  #writeDown(record: BoardRecord, cause: string): void {
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
      // A fault of the board, which ends the start: the frame's number is needed for the repair, and nothing of its text.
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

  /** An act may say that a command recorded before it has come to nothing. */
  #forgetVoided({ facts, at }: FactRecord): void {
    if (typeof facts.voids === 'string') this.#acceptance.forget(facts.voids, at)
  }
}

/** What of a snapshot lies in files that turn out to be damaged makes it one of no use. */
function unlessUnsound<Made>(restore: () => Made): Made | undefined {
  try {
    return restore()
  } catch (error) {
    if (!(error instanceof UnsoundRows)) throw error
    return undefined
  }
}

function refusal(decision: Decision): ShardAnswer {
  if (decision.ok) throw new Error('an acceptance is not a refusal')
  return decision
}

/** A name that this shard decides over: no room or other actor has it. */
export function nameOn(shard: number, shards: number): string {
  for (let n = 0; ; n++) if (shardOf(`@${n}`, shards) === shard) return `@${n}`
}

/** Which shard decides over a room: the same name on the same number of shards, always. */
export function shardOf(name: string, shards: number): number {
  if (shards === 1 || name === registryName) return 0
  let hash = 0x811c_9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x0100_0193)
  return ((hash ^ (hash >>> 16)) >>> 0) % shards
}
