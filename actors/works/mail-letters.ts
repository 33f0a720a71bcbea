/** The letters that the market's records ask for: requests to be posted, and how a work stands with the notice of it. */
import type { Parts } from '../records/core.ts'
import { boardHandle } from '../records/handles.ts'
import { internalLetter } from '../records/internal-letter.ts'
import { ActsOf, type BoardRecord, commandIn, commandSha, type Signed } from '../records/record.ts'
import type { WriteLetter } from '../records/write.ts'
import type { RequestArgs, RequestVerdict, SignedNotice, TellArgs, TellLetter, TellReply } from './letters.ts'
import type { Ask, Told } from './mail.ts'
import {
  type EditFacts,
  isOfMarket,
  movesWork,
  type OpenFacts,
  type Posting,
  type ReserveFacts,
  type StepFacts,
} from './market/letters.ts'
import { finalStates } from './market/work.ts'
import { type NoticeFacts, noticeText } from './notice-texts.ts'

/** Signs as the board: the same cause gives the same bytes. */
export type BoardSign = (
  fields: { readonly operation: string } & Readonly<Record<string, string | number>>,
  cause: { readonly cause: string; readonly at: number },
) => { readonly sha: Uint8Array; readonly by: Signed }

/** What a market's letters are made from. `record`: of its journal, by number. */
export type Source = { readonly state: Parts; readonly record: (seq: number) => BoardRecord }

/** Asks the room to take the request, or a new version of it, in the name of the identity that signed the command. */
export function requestLetter(
  { state, record }: Source,
  { work, kind, seq }: Ask,
): WriteLetter<RequestArgs, RequestVerdict> {
  const { author, by, facts } = asked.in(record(seq))
  const { proof_bits: proofBits, via, operator } = facts.post!
  const { room, reviewer } = state.market.find(work) ?? state.market.reservation(work)!.fixed
  const { key, sig, signed, for: delegation } = by!
  const command = commandIn(signed)
  const sha = commandSha(by!)
  const page = kind === 'create' ? (command.page ?? '') : ''
  const isPost = work === sha.toString('hex', 0, 16)
  const op = kind === 'edit' ? 'work.version' : isPost ? 'work.post' : 'work.mark'
  const args: RequestArgs = { work, reviewer, page, proofBits }
  return {
    ...internalLetter(op, room, Buffer.from(author).toString('hex'), args),
    id: sha.subarray(0, 16),
    sha,
    by: { key, sig, signed, ...(delegation === undefined ? {} : { for: delegation }) },
    via,
    operator,
  }
}

/** The state that a room gets, and the notices that it posts, one for each transition. */
type Telling = {
  readonly room: string
  readonly tell: TellArgs
  readonly worker: string
  readonly notices: readonly NoticeFacts[]
}

const asked = new ActsOf<ReserveFacts | EditFacts>('work.create', 'work.edit')

function stepsIn(record: BoardRecord): StepFacts | OpenFacts {
  if (!isOfMarket(record) || !movesWork(record)) throw new Error('the record moves no work')
  return record.facts
}

export function tellingOf({ state, record }: Source, { work: id, seq, first, worker }: Told): Telling {
  const facts = state.mail.factsOf(seq) ?? stepsIn(record(seq))
  const { steps, begun } = facts
  const work = state.market.find(id)!
  const tell: TellArgs = {
    work: id,
    n: seq,
    state: work.state,
    live: !finalStates.has(work.state),
    requester: work.requester,
    reviewer: work.reviewer,
    worker: work.worker,
    fence: work.fence,
    result: work.result?.id ?? '',
    sha256: work.result?.sha256 ?? '',
    states: steps.map(({ state: each, at }) => [each, at]),
  }
  const notices = steps.map(({ transition, at, fence, set, postings }, index) => ({
    number: first + index,
    transition,
    at,
    fence,
    set,
    amount: begun?.amount ?? 0,
    paid: sumOf(postings, (posting) => posting.type === 'direct' && posting.credit === `user:${worker}`),
    simulated: work.simulated,
    deadline: work.deadline,
  }))
  return { room: work.room, tell, worker, notices }
}

/** A post of the board in the work's thread, to its worker; as a reply it reaches who asked for it. */
export function noticeOf(
  sign: BoardSign,
  { room, tell, worker }: Telling,
  page: string,
  facts: NoticeFacts,
): SignedNotice {
  const text = noticeText(facts)
  const fields = { operation: 'post', handle: boardHandle, room, page, text, kind: 'notice', reply_to: tell.work }
  const cause = { cause: `${tell.work}:${facts.number}`, at: facts.at }
  return { ...sign(worker === '' ? fields : { ...fields, to: worker }, cause), page }
}

export function tellLetter(
  { room, tell }: Telling,
  board: string,
  notice?: SignedNotice,
): WriteLetter<TellLetter, TellReply> {
  const args: TellLetter = notice === undefined ? tell : { ...tell, notice }
  return internalLetter('work.tell', room, board, args)
}

function sumOf(postings: readonly Posting[], counts: (posting: Posting) => boolean): number {
  return postings.reduce((sum, posting) => (counts(posting) ? sum + posting.amount : sum), 0)
}
