/**
 * Delivers letters between the market and the rooms of this shard, and letters to other shards (letters.ts).
 *
 * Both record what is to be sent in their journals, so losing this object loses nothing: it starts from what the state lists as
 * undelivered. A letter to an actor of this shard is decided in the turn that produced it and synced with it. A letter to
 * another shard is sent once the turn is on disk; the main thread carries it there and brings the answer back. A letter may be
 * delivered twice but takes effect once. The letters about one work are delivered in order, one at a time.
 *
 * If a command about a work depends on the room, it is answered only after the room has answered and knows the new state. So a
 * worker who has claimed may deliver right away.
 */

import { BoundedMap } from '../../storage/bounded-map.ts'
import { Damage, isUnreadable } from '../../storage/disk.ts'
import { hex } from '../kernel/hex.ts'
import { type ActorRefusal, refusal } from '../kernel/refusals.ts'
import type { Answer, Delivery, Head, Mail, ShardAnswer } from '../records/answer.ts'
import { boardHandle } from '../records/handles.ts'
import { internalLetter } from '../records/internal-operations.ts'
import { type Facts, registryName, requestsOfWork } from '../records/record.ts'
import type { ArgsOf, WriteLetter } from '../records/write.ts'
import { asksResult, asksStanding, boundOf } from './decide.ts'
import type { Observation, RequestVerdict, SignedNotice } from './letters.ts'
import {
  type Ask,
  type BoardSign,
  type Notification,
  noticeOf,
  requestLetter,
  roomUpdateOf,
  type Source,
  tellLetter,
} from './mail.ts'
import { marketName, type WorkArgs } from './market/letters.ts'

/** A letter on its way to another shard. `once`: it is not sent again if it is refused. */
export type Carried = { readonly n: number; readonly letter: WriteLetter; readonly once: boolean }

/** A room has accepted a request. `screen`: it wants the text screened for advertisements. */
export type Requested = {
  readonly room: string
  /** 32 hex. */
  readonly id: string
  readonly change?: number
  readonly screen?: { readonly text: string; readonly at: number }
}

type WorkDeliveryOptions = Source & {
  /** Whether the actor with this name is in this shard. */
  readonly isHere: (actor: string) => boolean
  readonly sign: BoardSign
  /** Identity id of the board. */
  readonly board: string
  readonly generation: string
  readonly carry: (letters: readonly Carried[]) => void
  readonly requested: (requested: Requested) => void
  /** Called when everything left from an earlier run has been delivered, or cannot be for now. */
  readonly atRest: () => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

type Accepted<Reply extends Facts = Facts> = Extract<ShardAnswer<Reply>, { ok: true }>

type Step<Reply extends Facts = Facts> = {
  readonly letter: WriteLetter<object, Reply>
  /** Receives the answer once it may be given: public records are then in the public log. */
  covered?(answer: Accepted<Reply>, head: Head | undefined): void
  /** A refusal ends the task. Without this, the letter is sent again: an actor refuses such a letter only for temporary reasons. */
  readonly refused?: (refusal: ActorRefusal) => void
}

/** Letters sent one after the other, each after the answer to the previous one. */
type Task<Result = void> = Generator<Step, Result, Accepted>

/** Sends a letter and returns the reply of its decider. */
function* replyTo<Reply extends Facts>(step: Step<Reply>): Task<Reply> {
  const { reply } = yield step
  return reply as Reply
}

type Line = {
  readonly key: string
  /** `again`: called some time after a read of the task has failed, if a later one may succeed. */
  readonly tasks: { readonly task: Task; readonly again: () => void }[]
  step: Step | undefined
  readonly idle: (() => void)[]
}

/** The outcome of a command that a room had to answer. */
type Outcome =
  | {
      readonly ok: true
      readonly leaf?: number | undefined
      readonly change?: number | undefined
      readonly head?: Head | undefined
    }
  | { readonly ok: false; readonly refusal: ActorRefusal }

/** How many outcomes are remembered for repeated commands, and how many pages of works in other shards. */
const recentMax = 10_000
/** Delivered records of the market are marked in the next turn that writes anything; this many cause a turn of their own. */
const deliveredMax = 128
const retrySeconds = 2

const unsent = refusal(
  'internal',
  'the disk could not read this request, so its room does not have it yet: send the same command again later',
)

export class WorkDelivery implements Mail {
  readonly #options: WorkDeliveryOptions
  readonly #lines = new Map<string, Line>()
  /** Lines with a letter to an actor of this shard, or to be handed to the main thread. */
  readonly #ready = new Set<Line>()
  /** Lines whose letter was refused, and when to retry it. */
  readonly #held = new Map<Line, number>()
  /** By number: letters that the main thread is carrying. */
  readonly #carrying = new Map<number, Line>()
  #outgoing: Carried[] = []
  #carried = 0
  /** The newest records taken from the outbox, and the observations already in a line. */
  #askTaken = 0
  #notificationsTaken = 0
  readonly #observing = new Set<string>()
  /** Requests that could not be read, by their numbers. */
  readonly #unsent = new Map<number, Ask>()
  /** What to do again after a failed read, and when (Unix seconds). */
  #failed: { readonly at: number; readonly again: () => void }[] = []
  #now = 0
  #made = -1
  #deliveredSeqs: number[] = []
  #marksFrom = 0
  /** Commands (32 hex) that their room has not answered. */
  readonly #asking = new Set<string>()
  readonly #waiting = new Map<string, ((outcome: Outcome) => void)[]>()
  readonly #outcomes = new BoundedMap<string, Outcome>(recentMax)
  readonly #pages = new BoundedMap<string, string>(recentMax)
  #isIntroduced = false
  #hasRested = false

  constructor(options: WorkDeliveryOptions) {
    this.#options = options
  }

  get isWaiting(): boolean {
    return this.#ready.size > 0 || this.#outgoing.length > 0 || this.#count !== this.#made
  }

  next(now: number, marks: boolean): Delivery | undefined {
    this.#now = now
    if (this.#failed.length > 0) this.#repeatFailed(now)
    this.#discover()
    for (const [line, at] of this.#held) {
      if (at > now) break
      this.#held.delete(line)
      this.#ready.add(line)
    }
    for (const line of this.#ready) {
      this.#ready.delete(line)
      const { letter, covered, refused } = line.step!
      if (this.#options.isHere(letter.to))
        return {
          write: letter,
          answer: (answer, head) => answer.ok && covered?.(answer, head),
          decided: (answer) => this.#answered(line, answer, now + retrySeconds),
        }
      const n = ++this.#carried
      this.#carrying.set(n, line)
      this.#outgoing.push({ n, letter, once: refused !== undefined })
    }
    return marks || this.#deliveredSeqs.length >= deliveredMax ? this.#marking(now) : undefined
  }

  #repeatFailed(now: number): void {
    const { due = [], later = [] } = Object.groupBy(this.#failed, ({ at }) => (at <= now ? 'due' : 'later'))
    this.#failed = later
    for (const { again } of due) again()
  }

  afterTurn(): void {
    const letters = this.#outgoing.splice(0)
    if (letters.length > 0) this.#options.carry(letters)
    this.#rest()
  }

  /** Reports once that nothing is in progress. */
  #rest(): void {
    if (this.#hasRested || this.isWaiting || this.#carrying.size > 0) return
    this.#hasRested = true
    this.#options.atRest()
  }

  /**
   * The answer to a letter that the main thread carried. If it is undefined, the outcome is unknown and the letter is not
   * carried again.
   */
  carried(n: number, answer: ShardAnswer | undefined, head: Head | undefined): void {
    const line = this.#carrying.get(n)
    if (line === undefined) return
    this.#carrying.delete(n)
    if (answer === undefined) this.#drop(line)
    else {
      if (answer.ok) line.step!.covered?.(answer, head)
      this.#answered(line, answer, 0)
    }
    this.#rest()
  }

  /** Releases results bound in an earlier run of the board, once the market has delivered everything it had to. */
  release(): void {
    for (const { work, command } of this.#options.state.bound.unsettled())
      this.#add(work, this.#unbind(work, command, this.#roomOf(work)))
  }

  /** Queries a room of another shard first for what only it knows, so that the market can decide in one turn. */
  before(letter: WriteLetter, go: (letter: WriteLetter, answer: Answer) => void, answer: Answer): void {
    const { isHere, state } = this.#options
    if (!asksRoom(letter)) return go(letter, answer)
    const room = state.market.find(letter.args.work)?.room
    if (room === undefined || isHere(room)) return go(letter, answer)
    this.#add(`? ${hex(letter.sha)}`, this.#question(letter, room, go, answer))
  }

  settle(letter: WriteLetter, answer: ShardAnswer, head: Head | undefined, give: Answer): void {
    if (!answer.ok || letter.to !== marketName || letter.nonce === '') return give(answer, head)
    const { facts, sha = hex(letter.sha) } = answer.reply
    const { work, steps } = isFacts(facts) ? facts : {}
    if (typeof work !== 'string') return give(answer, head)
    if (requestsOfWork.has(letter.op)) {
      const refused = (found: Extract<Outcome, { ok: false }>): void =>
        give(answer.duplicate === true ? found : { ...found, isWritten: true }, undefined)
      if (this.#isUnsent(work, letter.op)) return refused({ ok: false, refusal: unsent })
      return this.#outcome(String(sha).slice(0, 32), (outcome) => {
        if (!outcome.ok) return refused(outcome)
        const { leaf: _own, ...rest } = answer
        const change = Math.max(answer.change ?? 0, outcome.change ?? 0)
        const leaf = outcome.leaf === undefined ? {} : { leaf: outcome.leaf }
        this.#whenIdle(work, () =>
          give({ ...rest, ...(change === 0 ? {} : { change }), ...leaf }, outcome.head ?? head),
        )
      })
    }
    if (!Array.isArray(steps) || steps.length === 0) return give(answer, head)
    this.#whenIdle(work, () => give(answer, head))
  }

  /** How many records require a letter to another actor. */
  get #count(): number {
    const { mail, bound } = this.#options.state
    return mail.made + bound.made
  }

  #discover(): void {
    if (this.#count === this.#made) return
    this.#made = this.#count
    const { mail, bound } = this.#options.state
    for (const ask of mail.asks(this.#askTaken, Number.POSITIVE_INFINITY)) {
      this.#askTaken = ask.seq
      this.#takeAsk(ask)
    }
    for (const notification of mail.notifications(this.#notificationsTaken, Number.POSITIVE_INFINITY)) {
      this.#notificationsTaken = notification.seq
      this.#takeNotification(notification)
    }
    for (const each of bound.unreported()) {
      const name = `${each.work} ${each.n}`
      if (this.#observing.has(name)) continue
      this.#observing.add(name)
      this.#add(each.work, this.#observe(each, name))
    }
  }

  #takeAsk(ask: Ask): void {
    const letter = this.#readOr(
      () => requestLetter(this.#options, ask),
      () => this.#takeAsk(ask),
    )
    if (letter === undefined) return void this.#unsent.set(ask.seq, ask)
    this.#unsent.delete(ask.seq)
    this.#asking.add(hex(letter.id))
    this.#add(ask.work, this.#ask(ask, letter))
  }

  #takeNotification(notification: Notification): void {
    this.#add(notification.work, this.#tell(notification), () => this.#takeNotification(notification))
  }

  #add(key: string, task: Task, again = (): void => {}): void {
    const line = this.#lines.get(key)
    if (line !== undefined) return void line.tasks.push({ task, again })
    const begun: Line = { key, tasks: [{ task, again }], step: undefined, idle: [] }
    this.#lines.set(key, begun)
    this.#go(begun)
  }

  /** Advances a line to its next letter. `answer`: to the previous one. */
  #go(line: Line, answer?: Accepted): void {
    let previous = answer
    for (let [next] = line.tasks; next !== undefined; [next] = line.tasks) {
      const step = this.#stepOf(next, previous)
      if (step !== undefined) {
        line.step = step
        this.#ready.add(line)
        return
      }
      previous = undefined
      line.tasks.shift()
    }
    this.#lines.delete(line.key)
    for (const each of line.idle) each()
  }

  #stepOf({ task, again }: Line['tasks'][number], previous: Accepted | undefined): Step | undefined {
    const found = this.#readOr(() => (previous === undefined ? task.next() : task.next(previous)), again)
    return found?.done === false ? found.value : undefined
  }

  /**
   * Anything damaged stays in the outbox, and is sent after a later start if it can be read then. After a failed read, `again` is
   * called some time later.
   */
  #readOr<Value>(read: () => Value, again: () => void): Value | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Damage)) throw error
      this.#options.report({ code: 'internal', problem: error.message })
      if (isUnreadable(error)) this.#failed.push({ at: this.#now + retrySeconds, again })
      return undefined
    }
  }

  #drop(line: Line): void {
    line.tasks.shift()
    this.#go(line)
  }

  #answered(line: Line, answer: ShardAnswer, retryAt: number): void {
    if (answer.ok) return this.#go(line, answer)
    const { letter, refused } = line.step!
    if (refused !== undefined) {
      refused(answer.refusal)
      return this.#drop(line)
    }
    this.#options.report({ op: letter.op, to: letter.to, code: answer.refusal.code })
    this.#held.set(line, retryAt)
  }

  #whenIdle(work: string, then: () => void): void {
    const line = this.#lines.get(work)
    if (line === undefined) then()
    else line.idle.push(then)
  }

  /** Whether the room of a work lacks such a request, because the disk could not read it. */
  #isUnsent(work: string, op: string): boolean {
    return [...this.#unsent.values()].some((ask) => ask.work === work && `work.${ask.kind}` === op)
  }

  #outcome(command: string, then: (outcome: Outcome) => void): void {
    // Not pending and not voided: it was accepted, perhaps in an earlier run.
    if (!this.#asking.has(command)) return then(this.#outcomes.get(command) ?? { ok: true })
    const waiting = this.#waiting.get(command)
    if (waiting === undefined) this.#waiting.set(command, [then])
    else waiting.push(then)
  }

  #settleAsk(command: string, outcome: Outcome): void {
    this.#asking.delete(command)
    this.#outcomes.set(command, outcome)
    const waiting = this.#waiting.get(command) ?? []
    this.#waiting.delete(command)
    for (const each of waiting) each(outcome)
  }

  #toMarket<Name extends 'work.edited' | 'work.open' | 'work.void'>(op: Name, args: ArgsOf<Name>): WriteLetter {
    return internalLetter(op, marketName, this.#options.board, args)
  }

  *#ask({ work, kind }: Ask, letter: ReturnType<typeof requestLetter>): Task {
    const { generation } = this.#options
    const room = letter.to
    const command = hex(letter.id)
    let posted: { readonly leaf?: number | undefined; readonly head?: Head | undefined } = {}
    const covered = ({ reply, change, leaf }: Accepted<RequestVerdict>, head: Head | undefined): void => {
      posted = { leaf, head }
      if (reply.taken)
        this.#options.requested({
          room,
          id: command,
          ...(change === undefined ? {} : { change }),
          ...(reply.screen === undefined ? {} : { screen: reply.screen }),
        })
    }
    const verdict = yield* replyTo({ letter, covered })
    if (verdict.taken && !this.#options.isHere(room)) this.#pages.set(work, verdict.page)
    const said =
      kind === 'edit'
        ? this.#toMarket('work.edited', { work, generation, edit: command, taken: verdict.taken })
        : verdict.taken
          ? this.#toMarket('work.open', {
              work,
              generation,
              room,
              is_public: verdict.isPublic,
              version: verdict.version,
              versions: verdict.versions,
            })
          : this.#toMarket('work.void', { work, refusal: verdict.refusal })
    yield {
      letter: said,
      covered: ({ change }, head) =>
        this.#settleAsk(
          command,
          verdict.taken
            ? { ok: true, leaf: posted.leaf, change, head: head ?? posted.head }
            : { ok: false, refusal: verdict.refusal },
        ),
    }
  }

  *#tell(notification: Notification): Task {
    const { board, sign, report } = this.#options
    const update = roomUpdateOf(this.#options, notification)
    const { work } = notification
    let page = this.#pageOf(work, update.room)
    if (page === undefined) {
      page = (yield* replyTo({ letter: tellLetter(update, board) })).page
      this.#pages.set(work, page)
    }
    for (const facts of update.notices) {
      const notice = noticeOf(sign, update, page, facts)
      const { isPublic, noticeRefusal } = yield* replyTo({ letter: tellLetter(update, board, notice) })
      if (noticeRefusal !== undefined) report({ work, transition: facts.number, answer: noticeRefusal })
      else if (isPublic && !this.#isIntroduced) yield { letter: this.#introduction(notice) }
      this.#isIntroduced ||= isPublic
    }
    this.#deliveredSeqs.push(notification.seq)
  }

  /** The room of a work whose request is in this shard. */
  #roomOf(work: string): string {
    const { board } = this.#options.state
    return board.roomList[board.events.room(board.events.find(Buffer.from(work, 'hex')))]!.name
  }

  /** The page of a work's thread. */
  #pageOf(work: string, room: string): string | undefined {
    const { isHere, state } = this.#options
    return isHere(room) ? state.board.page(state.board.events.find(Buffer.from(work, 'hex'))) : this.#pages.get(work)
  }

  /** The board claims its handle with its first public post, like anyone else; its posts in private rooms leave no trace. */
  #introduction({ sha, by }: SignedNotice): WriteLetter {
    const claim = internalLetter('handle.claim', registryName, this.#options.board, { handle: boardHandle })
    return { ...claim, id: sha.subarray(0, 16), sha, by, via: 'board' }
  }

  *#observe({ work, n, ...what }: Observation, name: string): Task {
    const { board } = this.#options
    yield { letter: internalLetter('work.observe', marketName, board, { work, n, ...what }) }
    yield { letter: internalLetter('work.observed', this.#roomOf(work), board, { work, n }) }
    this.#observing.delete(name)
  }

  *#unbind(work: string, command: string, room: string): Task {
    yield { letter: internalLetter('work.unbind', room, this.#options.board, { work, command }) }
  }

  *#question(
    letter: WriteLetter<WorkArgs>,
    room: string,
    go: (letter: WriteLetter, answer: Answer) => void,
    answer: Answer,
  ): Task {
    const { work, result } = letter.args
    const { author, operator, id, sha } = letter
    const refused = (refusal: ActorRefusal) => answer({ ok: false, refusal })
    let { args } = letter
    if (asksStanding.has(letter.op)) {
      const asking = { ...internalLetter('work.standing', room, author, {}), operator }
      args = { ...args, standing: yield* replyTo({ letter: asking, refused }) }
    }
    if (!asksResult.has(letter.op) || result === undefined) return go({ ...letter, args }, answer)
    const binding = { ...internalLetter('work.bind', room, author, { work, result }), id, sha }
    const reply = yield* replyTo({ letter: binding, refused })
    const releaseBinding = (): void => this.#add(work, this.#unbind(work, hex(id), room))
    go({ ...letter, args: { ...args, bound: boundOf(result, reply) } }, (found, head) => {
      if (!('fault' in reply) && (!found.ok || found.duplicate === true)) releaseBinding()
      answer(found, head)
    })
  }

  /** Marks all delivered records of the market in one record. */
  #marking(now: number): Delivery | undefined {
    if (this.#deliveredSeqs.length === 0 || now < this.#marksFrom) return undefined
    const seqs = this.#deliveredSeqs.splice(0)
    const decided = (answer: ShardAnswer): void => {
      if (answer.ok) return
      this.#deliveredSeqs.push(...seqs)
      this.#marksFrom = now + retrySeconds
    }
    const write = internalLetter('mail.sent', marketName, this.#options.board, { seqs })
    return { write, answer: () => {}, decided }
  }
}

function isFacts(value: unknown): value is Facts {
  return typeof value === 'object' && value !== null
}

/** Whether this is a command about a work that depends on what only its room knows. */
function asksRoom(letter: WriteLetter): letter is WriteLetter<WorkArgs> {
  return letter.to === marketName && (asksStanding.has(letter.op) || asksResult.has(letter.op))
}
