/**
 * Tells a room how a work stands, and has it post the notice of each transition in the same turn: a post of the board in the
 * work's thread, to its worker; as a reply it reaches who asked for it. What is said again is there already and has no effect.
 *
 * The market gets many of the delivered ones in one record: they gather for a moment.
 */
import { boardHandle } from '../../actors/people/handles.ts'
import { registryName } from '../../actors/record.ts'
import type { SignedNotice, TellReply } from '../../actors/works/letters.ts'
import type { WriteLetter } from '../../actors/write.ts'
import type { BoardSigner } from '../command/board-signer.ts'
import type { Bearers } from '../command/handle-cache.ts'
import { internalLetter } from '../command/internal-letter.ts'
import type { ToldJson } from './mail-reads.ts'
import { type NoticeFacts, noticeText } from './notice-texts.ts'

type Done = (said: boolean) => void
/** Sends a letter; `done(false)`: it was not taken and has to be sent again. */
export type Send = (letter: WriteLetter, done: Done, given: (reply: Readonly<Record<string, unknown>>) => void) => void

export type TellerOptions = {
  readonly send: Send
  readonly sign: BoardSigner['signed']
  /** Identity id of the board. */
  readonly board: string
  readonly handles: Pick<Bearers, 'get' | 'set'>
  readonly later: (callback: () => void, ms: number) => void
  readonly report: (facts: Readonly<Record<string, unknown>>) => void
  /** Marks these records of the market as said. */
  readonly mark: (seqs: readonly number[], done: Done) => void
}

/** Works whose page is kept in mind. */
const pagesMax = 10_000

/** How long records that are said gather, and how many of them at most. */
const gatherMs = 50
const gatheredMax = 128
const againMs = 1_000

export class Teller {
  readonly #options: TellerOptions
  /** Work -> page of its thread, as its room has said. */
  readonly #pages = new Map<string, string>()
  #said: number[] = []
  #gathering = false
  #closed = false

  constructor(options: TellerOptions) {
    this.#options = options
  }

  close(): void {
    this.#closed = true
  }

  notePage(work: string, page: string): void {
    this.#pages.delete(work)
    this.#pages.set(work, page)
    if (this.#pages.size > pagesMax) this.#pages.delete(this.#pages.keys().next().value!)
  }

  /** `done(false)`: not all of it could be said now. */
  tell(told: ToldJson, done: Done): void {
    const page = this.#pages.get(told.work)
    if (page !== undefined) return this.#post(told, page, 0, done)
    this.#send(told, undefined, done, (reply) => {
      this.notePage(told.work, reply.page)
      this.#post(told, reply.page, 0, done)
    })
  }

  /** Notices from the nth on, in order. */
  #post(told: ToldJson, page: string, n: number, done: Done): void {
    const facts = told.notices[n]
    if (facts === undefined) {
      this.#said.push(told.seq)
      this.#gather()
      return done(true)
    }
    const notice = this.#noticeOf(told, page, facts)
    this.#send(told, notice, done, ({ isPublic, unsaid }) => {
      const next = () => this.#post(told, page, n + 1, done)
      if (unsaid !== undefined) this.#options.report({ work: told.work, transition: facts.number, answer: unsaid })
      else if (isPublic) return this.#introduce(notice, done, next)
      next()
    })
  }

  #noticeOf({ work, room, worker }: ToldJson, page: string, facts: NoticeFacts): SignedNotice {
    const text = noticeText(facts)
    const fields = { operation: 'post', handle: boardHandle, room, page, text, kind: 'notice', reply_to: work }
    const cause = { cause: `${work}:${facts.number}`, at: facts.at }
    return { ...this.#options.sign(worker === '' ? fields : { ...fields, to: worker }, cause), page }
  }

  #send(
    { room, tell }: ToldJson,
    notice: SignedNotice | undefined,
    done: Done,
    given: (reply: TellReply) => void,
  ): void {
    const args = notice === undefined ? tell : { ...tell, notice }
    const letter = internalLetter('work.tell', room, this.#options.board, args)
    this.#options.send(letter, done, (reply) => given(reply as TellReply))
  }

  /** The board bears its handle from its first public post on, as all users do: what it says in private rooms leaves no trace. */
  #introduce({ sha, by }: SignedNotice, done: Done, then: () => void): void {
    const { board, handles, send } = this.#options
    if (handles.get(board) === boardHandle) return then()
    const claim = internalLetter('handle.claim', registryName, board, { handle: boardHandle })
    send({ ...claim, id: sha.subarray(0, 16), sha, by, via: 'board' }, done, () => {
      handles.set(board, boardHandle)
      then()
    })
  }

  #gather(): void {
    if (this.#closed || this.#said.length === 0) return
    if (this.#said.length >= gatheredMax) return this.#mark()
    if (this.#gathering) return
    this.#gathering = true
    this.#options.later(() => {
      this.#gathering = false
      this.#mark()
    }, gatherMs)
  }

  #mark(): void {
    const seqs = this.#said.splice(0)
    if (this.#closed || seqs.length === 0) return
    this.#options.mark(seqs, (isMarked) => {
      if (isMarked) return
      this.#said.push(...seqs)
      this.#options.later(() => this.#gather(), againMs)
    })
  }
}
