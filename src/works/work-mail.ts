/**
 * Carries the messages of the market and the rooms about works (actors/works/letters.ts).
 *
 * Both write into their journals what they want said, so nothing is lost with this object: a shard hands over what a turn has put
 * into its outbox, and at every start of one its outbox is read. Whatever is carried may have been carried before; every letter has
 * its effect once. What is said of one work is said in order, one letter at a time.
 *
 * A command that a second actor has to answer waits here for the outcome, and every command that changed a work until its room
 * knows of it: a worker who has claimed may deliver at once.
 */

import type { InternalWriteName } from '../../actors/internal-operations.ts'
import type { ActorRefusal } from '../../actors/kernel/refusals.ts'
import { type Head, type ShardAnswer, shardOf } from '../../actors/shard.ts'
import type { BoundReply, RequestVerdict } from '../../actors/works/letters.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import type { WriteLetter } from '../../actors/write.ts'
import { internalLetter } from '../command/internal-letter.ts'
import { type Actors, isNotNow } from '../command/ports.ts'
import type { Screened } from '../moderation/screening.ts'
import {
  type AskJson,
  type MailJson,
  nothingTaken,
  type Taken,
  type ToldJson,
  takenWith,
  type UnsettledJson,
} from './mail-reads.ts'
import { Teller, type TellerOptions } from './notices.ts'
import { Lines } from './retry-queue.ts'

/** What became of a command that a room had to answer. */
export type Outcome =
  | { readonly ok: true; readonly leaf?: number; readonly head?: Head }
  | { readonly ok: false; readonly refusal: ActorRefusal }

export type CourierOptions = Pick<TellerOptions, 'sign' | 'handles'> & {
  readonly actors: Actors
  /** Identity id of the board. */
  readonly board: string
  readonly generation: string
  readonly screen: (post: Screened) => void
  /** A public change of a room, for cached answers on the main thread. */
  readonly noteChange: (room: string, change: number) => void
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
}

/** A reply (32 hex) that the command with this hash submits. */
export type Binding = {
  readonly work: string
  readonly result: string
  readonly room: string
  /** Identity id. */
  readonly author: string
  readonly sha: Buffer
}

type Accepted = Extract<ShardAnswer, { ok: true }>
type Given = (accepted: Accepted, head: Head | undefined) => void

/** Outcomes that a repeated command may still ask for, and rooms of works that were used lately. */
const recentMax = 10_000

export class Courier {
  readonly #options: CourierOptions
  readonly #market: number
  readonly #lines: Lines
  readonly #teller: Teller
  /** Shards whose outbox is being read, and those to be read again after that. */
  readonly #reading = new Map<number, 'once' | 'again'>()
  readonly #readers = new Map<number, ((mail: MailJson) => void)[]>()
  readonly #outcomes = new Map<string, Outcome>()
  readonly #waiting = new Map<string, ((outcome: Outcome) => void)[]>()
  /** By shard: the newest of its records that were taken from its outbox. They are in a line until they are said. */
  readonly #taken = new Map<number, Taken>()
  /** Work -> its room. */
  readonly #rooms = new Map<string, string>()
  #closed = false

  constructor(options: CourierOptions) {
    this.#options = options
    this.#lines = new Lines(options.later)
    this.#teller = new Teller({
      ...options,
      send: (letter, done, given) => this.#write(letter, done, ({ reply }) => given(reply)),
      mark: (seqs, done) =>
        this.#write(internalLetter('mail.sent', marketName, options.board, { seqs }), done, () => done(true)),
    })
    this.#market = shardOf(marketName, options.actors.shards)
  }

  /** A shard hands over what is new in its outbox; without `mail` it is to be read. */
  mail(shard: number, mail?: MailJson): void {
    if (mail === undefined || this.#reading.has(shard)) this.#read(shard, () => {})
    else this.#take(shard, mail)
  }

  /** Carries what an earlier run has left: resolves when all is said, or cannot be said now. */
  async resume(): Promise<void> {
    const shards = Array.from({ length: this.#options.actors.shards }, (_, shard) => shard)
    const market = this.#market
    // What the market asked is answered before anything is said of what became of it.
    for (const shard of [market, ...shards.filter((each) => each !== market)]) await this.#drained(shard)
    const left = await Promise.all(shards.map((shard) => this.#unsettled(shard)))
    for (const { work, command, room } of left.flat()) this.unbind(work, command, room)
    await this.#lines.quiet()
  }

  close(): void {
    this.#closed = true
    this.#lines.close()
    this.#teller.close()
  }

  /** Calls back with what became of a command (32 hex) that a room had to answer. */
  outcome(command: string, then: (outcome: Outcome) => void): void {
    const waiting = this.#waiting.get(command)
    if (waiting === undefined) this.#waiting.set(command, [then])
    else waiting.push(then)
    this.#whenTaken(this.#market, () => {
      // Not asked any more and not forgotten as void: it was taken, perhaps in an earlier run.
      const isAsked = this.#lines.has(`ask ${command}`)
      if (!isAsked && this.#waiting.has(command)) this.#settle(command, this.#outcomes.get(command) ?? { ok: true })
    })
  }

  /** The room of a work that was used lately: a work never leaves its room. */
  roomOf(work: string): string | undefined {
    return this.#rooms.get(work)
  }

  /** Calls back when the room of this work knows how it stands. */
  whenTold(work: string, then: () => void): void {
    this.#whenTaken(this.#market, () => this.#lines.whenIdle(work, then))
  }

  /** Asks the room what a reply is that is about to be submitted, and has it kept in mind until the market has decided. */
  bind(
    { work, result, room, author, sha }: Binding,
    then: (bound: BoundReply | { readonly refusal: ActorRefusal } | undefined) => void,
  ): void {
    const letter = internalLetter('work.bind', room, author, { work, result })
    this.#options.actors.write({ ...letter, id: sha.subarray(0, 16), sha }, (answer) => {
      if (answer === undefined) return then(undefined)
      then(answer.ok ? (answer.reply as unknown as BoundReply) : { refusal: answer.refusal })
    })
  }

  /** The market did not take what was bound. */
  unbind(work: string, command: string, room: string): void {
    this.#lines.add(work, `unbind ${command}`, (done) =>
      this.#write(internalLetter('work.unbind', room, this.#options.board, { work, command }), done, () => done(true)),
    )
  }

  /**
   * Calls back when everything is taken that a shard had in its outbox when it answered a command a moment ago. What a turn puts there
   * comes with its answers, or before them: in the same message it is after them.
   */
  #whenTaken(shard: number, then: () => void): void {
    if (this.#reading.has(shard)) this.#read(shard, then)
    else queueMicrotask(then)
  }

  #read(shard: number, then: (mail: MailJson) => void): void {
    const readers = this.#readers.get(shard)
    if (readers === undefined) this.#readers.set(shard, [then])
    else readers.push(then)
    if (this.#reading.has(shard)) return void this.#reading.set(shard, 'again')
    this.#ask(shard)
  }

  /** One read answers all who asked before it began. Until one has succeeded nothing is taken that is handed over. */
  #ask(shard: number): void {
    this.#reading.set(shard, 'once')
    const readers = this.#readers.get(shard) ?? []
    this.#readers.set(shard, [])
    const args = { ...(this.#taken.get(shard) ?? nothingTaken) }
    this.#options.actors.readPrivate(shard, { op: 'works.mail', args, reader: '' }, (found) => {
      const mail = found?.ok === true ? (JSON.parse(found.json) as MailJson) : undefined
      if (mail !== undefined) this.#take(shard, mail)
      // A waiter for what is recorded by now waits for all of it.
      if (mail === undefined || mail.more) {
        this.#readers.set(shard, [...readers, ...this.#readers.get(shard)!])
        if (mail !== undefined) this.#ask(shard)
        else if (!this.#closed) this.#options.later(() => this.#ask(shard), againMs)
        return
      }
      const again = this.#reading.get(shard) === 'again'
      this.#reading.delete(shard)
      if (again) this.#ask(shard)
      for (const each of readers) each(mail)
    })
  }

  #readNow(shard: number): Promise<MailJson> {
    return new Promise((resolve) => this.#read(shard, resolve))
  }

  /** It is not asked again before the next start: where no answer comes now, one is waited for. */
  #unsettled(shard: number): Promise<UnsettledJson> {
    const { actors, later } = this.#options
    return new Promise((resolve) => {
      const ask = (): void =>
        actors.readPrivate(shard, { op: 'works.unsettled', args: {}, reader: '' }, (found) => {
          if (found?.ok === true) return resolve(JSON.parse(found.json) as UnsettledJson)
          if (!isNotNow(found)) return resolve([])
          if (!this.#closed) later(ask, againMs)
        })
      ask()
    })
  }

  async #drained(shard: number): Promise<void> {
    for (;;) {
      const mail = await this.#readNow(shard)
      await this.#lines.quiet()
      if (!mail.unheard || this.#lines.stuck) return
    }
  }

  #take(shard: number, mail: MailJson): void {
    const before = this.#taken.get(shard) ?? nothingTaken
    this.#taken.set(shard, takenWith(before, mail))
    const asks = mail.asks.filter(({ seq }) => seq > before.asks)
    const told = mail.told.filter(({ seq }) => seq > before.told)
    const { observations, unheard } = mail
    for (const ask of asks) this.#lines.add(ask.work, `ask ${ask.sha.slice(0, 32)}`, (done) => this.#askRoom(ask, done))
    for (const each of told) {
      this.#noteRoom(each)
      this.#lines.add(each.work, `tell ${each.work} ${each.seq}`, (done) => this.#teller.tell(each, done))
    }
    for (const { room, ...each } of observations)
      this.#lines.add(each.work, `observe ${each.work} ${each.n}`, (done) => {
        const heard = internalLetter('work.observe', marketName, this.#options.board, each)
        this.#write(heard, done, () => {
          const { work, n } = each
          this.#write(internalLetter('work.observed', room, this.#options.board, { work, n }), done, () => done(true))
        })
      })
    if (unheard) this.#lines.whenQuiet(() => this.mail(shard))
  }

  #noteRoom({ work, room }: ToldJson): void {
    this.#rooms.delete(work)
    this.#rooms.set(work, room)
    if (this.#rooms.size > recentMax) this.#rooms.delete(this.#rooms.keys().next().value!)
  }

  #askRoom(ask: AskJson, done: (said: boolean) => void): void {
    const { work, room, kind, proof_bits: proofBits, page, reviewer } = ask
    const op = kind === 'edit' ? 'work.version' : work === ask.sha.slice(0, 32) ? 'work.post' : 'work.mark'
    const sha = Buffer.from(ask.sha, 'hex')
    const proof = ask.for && {
      id: bytes(ask.for.id),
      key: bytes(ask.for.key),
      sig: bytes(ask.for.sig),
      signed: bytes(ask.for.signed),
    }
    const own = { key: bytes(ask.key), sig: bytes(ask.sig), signed: bytes(ask.signed) }
    const by = proof === undefined ? own : { ...own, for: proof }
    const letter: WriteLetter = {
      ...internalLetter(op, room, ask.author, { work, reviewer, page, proofBits }),
      id: sha.subarray(0, 16),
      sha,
      by,
      via: ask.via,
      operator: ask.operator,
    }
    this.#write(letter, done, (answer, head) => {
      const verdict = answer.reply as unknown as RequestVerdict
      if (verdict.taken) this.#teller.notePage(work, verdict.page)
      if (verdict.taken && verdict.screen !== undefined)
        this.#options.screen({ id: ask.sha.slice(0, 32), room, kind: 'request', isReply: false, ...verdict.screen })
      this.#answerMarket(ask, verdict, done, () =>
        verdict.taken
          ? { ok: true, ...(answer.leaf === undefined || head === undefined ? {} : { leaf: answer.leaf, head }) }
          : { ok: false, refusal: verdict.refusal },
      )
    })
  }

  #answerMarket(ask: AskJson, verdict: RequestVerdict, done: (said: boolean) => void, outcome: () => Outcome): void {
    const { work, room, kind, sha } = ask
    const { generation, board } = this.#options
    const letter = (op: InternalWriteName, args: object) =>
      internalLetter(op, marketName, board, { work, generation, ...args })
    const command = sha.slice(0, 32)
    const said =
      kind === 'edit'
        ? letter('work.edited', { edit: command, taken: verdict.taken })
        : verdict.taken
          ? letter('work.open', {
              room,
              is_public: verdict.isPublic,
              version: verdict.version,
              versions: verdict.versions,
            })
          : letter('work.void', { refusal: verdict.refusal })
    this.#write(said, done, () => {
      done(true)
      this.#settle(command, outcome())
    })
  }

  #settle(command: string, outcome: Outcome): void {
    this.#outcomes.set(command, outcome)
    if (this.#outcomes.size > recentMax) this.#outcomes.delete(this.#outcomes.keys().next().value!)
    const waiting = this.#waiting.get(command) ?? []
    this.#waiting.delete(command)
    for (const each of waiting) each(outcome)
  }

  /** An actor refuses such a letter only for what passes: too much to do, a full disk. It is sent again then. */
  #write(letter: WriteLetter, done: (said: boolean) => void, given: Given): void {
    this.#options.actors.write(letter, (answer, head) => {
      if (answer === undefined || !answer.ok) {
        this.#options.report({ op: letter.op, to: letter.to, code: answer === undefined ? '' : answer.refusal.code })
        return done(false)
      }
      if (answer.change !== undefined) this.#options.noteChange(letter.to, answer.change)
      given(answer, head)
    })
  }
}

const againMs = 1_000

function bytes(base64: string): Buffer {
  return Buffer.from(base64, 'base64')
}
