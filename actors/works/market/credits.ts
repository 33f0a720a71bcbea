/**
 * Decisions about credits that involve no work: transferred, granted, and earned by a first post or a review. Also the market's
 * start and its clock, and the balance of an identity.
 */

import { dayOf } from '../../kernel/day.ts'
import { type Accepted, accept, type Deciders, refuse, type Situation, type WriteLetter } from '../../records/write.ts'
import { changeOf, codes, transferId, user } from './ledger.ts'
import type { BeginArgs, GivenReply, Posting, RewardArgs, TickArgs, TickReply, WelcomeArgs } from './letters.ts'
import type { Market } from './market.ts'
import { unaffordable } from './rows.ts'
import { Turn } from './turn.ts'

/** `erased`: the board knows that the recipient was erased. */
type MoveArgs = { readonly target: string; readonly amount: number; readonly erased?: boolean }

/** Nobody can sign for it any more, so credits given to it would be lost. */
const gone = refuse('invalid_field', 'this identity was permanently erased: credits for it would be lost', 'target')

const transfer = ({ state: { market }, now }: Situation, letter: WriteLetter<MoveArgs & { readonly cost: number }>) => {
  const { target, amount, cost, erased = false } = letter.args
  if (target === letter.author) return refuse('invalid_field', 'you cannot give credits to yourself', 'target')
  if (erased) return gone
  const turn = new Turn(market, now)
  turn.bringUp(undefined, letter.author)
  const fault = unaffordable(amount + cost, turn.available(letter.author))
  if (fault !== undefined) return refuse(...fault)
  const from = user(letter.author)
  const cause = Buffer.from(letter.sha).toString('hex')
  const postings = [
    direct([letter.author, cause, 0], [from, user(target)], amount, codes.transfer, now),
    direct([letter.author, cause, 1], [from, 'fees'], cost, codes.transferCost, now),
  ]
  return turn.decide(letter, { op: letter.op, facts: { target, postings }, isPublic: true })
}

const grant = ({ state: { market }, now }: Situation, letter: WriteLetter<MoveArgs>) => {
  const { target, amount, erased = false } = letter.args
  if (!letter.operator) return refuse('forbidden', 'only an operator of this board can create credits')
  if (erased) return gone
  const cause = Buffer.from(letter.sha).toString('hex')
  const to = target === 'rewards' ? target : user(target)
  const postings = [direct([target, cause, 0], ['mint', to], amount, codes.grant, now)]
  return new Turn(market, now).decide(letter, { op: letter.op, facts: { target, postings }, isPublic: true })
}

/** Once per identity, with daily limits for one network and for the whole board. */
const welcome = ({ state: { market }, now }: Situation, letter: WriteLetter<WelcomeArgs>) => {
  const args = letter.args
  const { identity, network, wider = '', amount } = args
  const { welcomed, networks, day } = market.given
  if (welcomed.has(identity)) return given(0, 'already')
  const today = day === dayOf(now) ? networks : new Map<string, number>()
  if ([...today.values()].reduce((sum, count) => sum + count, 0) >= args.board_max) return given(0, 'board')
  if ((today.get(network) ?? 0) >= args.network_max) return given(0, 'network')
  if (wider !== '' && market.given.wider.of(wider, now) >= args.wider_max) return given(0, 'network')
  const postings = [direct([identity, 'welcome', 0], ['mint', user(identity)], amount, codes.welcome, now)]
  const above = wider === '' ? {} : { wider }
  return giving(market, letter, { identity, network, ...above, postings }, amount, now)
}

/** Once per subject and reviewer, with a limit on reviewers per subject, within the daily caps, while the pool lasts. */
const reward = ({ state: { market }, now }: Situation, letter: WriteLetter<RewardArgs>) => {
  const { subject, reviewer, amount, subject_max: max, caps = [] } = letter.args
  const reviewers = market.given.rewarded.get(subject) ?? []
  if (reviewers.includes(reviewer)) return given(0, 'already')
  if (reviewers.length >= max) return given(0, 'subject')
  if (market.ledger.available('rewards') < amount) return given(0, 'empty')
  const full = caps.find(({ name, most }) => market.given.rewards.of(name, now) >= most)
  if (full !== undefined) return given(0, full.why)
  const counted = caps.map(({ name }) => name)
  const postings = [direct([reviewer, `review ${subject}`, 0], ['rewards', user(reviewer)], amount, codes.review, now)]
  return giving(market, letter, { subject, reviewer, counted, postings }, amount, now)
}

function giving(
  market: Situation['state']['market'],
  letter: WriteLetter,
  facts: Readonly<Record<string, unknown>> & { readonly postings: readonly Posting[] },
  amount: number,
  now: number,
): Accepted<GivenReply> {
  const decision = new Turn(market, now).decide(letter, { op: letter.op, facts, isPublic: true })
  return { ...decision, reply: reply(amount, '') }
}

function given(amount: number, why: GivenReply['why']): Accepted<GivenReply> {
  return accept([], reply(amount, why))
}

function reply(amount: number, why: GivenReply['why']): GivenReply {
  return { given: amount, why }
}

function direct(
  [subject, cause, n]: readonly [string, string, number],
  [debit, credit]: readonly [string, string],
  amount: number,
  code: number,
  at: number,
): Posting {
  return { id: transferId(subject, cause, n), ledger: 1, type: 'direct', code, debit, credit, amount, at }
}

export const creditDeciders = {
  'credit.transfer': transfer,
  'credit.grant': grant,
  'credit.welcome': welcome,
  'credit.reward': reward,
} satisfies Deciders

/** The first start funds the account that rewards are paid from; a restored backup starts again and funds nothing. */
const begin = ({ state: { market }, now }: Situation, letter: WriteLetter<BeginArgs>) => {
  const { generation, rewards } = letter.args
  const { epoch } = market
  if (epoch.generation === generation) return accept([], { at: now })
  const fund: Posting = {
    id: transferId('rewards', 'begin', 0),
    ledger: 1,
    type: 'direct',
    code: codes.grant,
    debit: 'mint',
    credit: 'rewards',
    amount: rewards,
    at: now,
  }
  const postings = epoch.generation === '' && rewards > 0 ? [fund] : []
  return new Turn(market, now).decide(letter, { op: letter.op, facts: { generation, postings }, isPublic: true })
}

const tick = ({ state: { market }, now }: Situation, letter: WriteLetter<TickArgs>) => {
  const { works_max: worksMax } = letter.args
  const turn = new Turn(market, now)
  let written = 0
  let next = 0
  for (const work of market.due(Number.POSITIVE_INFINITY)) {
    next = market.dueAt(work)
    if (next > now || written === worksMax) break
    turn.take(work)
    written++
    next = 0
  }
  const reply: TickReply = { written, next, at: now }
  return accept(turn.settle(), reply)
}

/**
 * What the board itself sends to the market: that it has started, and that time has passed. Without the second, a timeout that
 * no command touches would have no posting and no notice.
 */
export const houseDeciders = { 'market.begin': begin, 'work.tick': tick } satisfies Deciders

type Balance = {
  readonly available: number
  readonly held: number
  readonly simulated: { readonly held: number }
}

/** Postings of timeouts that are due and not recorded, earliest first, each with its work. */
export function unrecordedPostings(market: Market, now: number): readonly (Posting & { readonly work: string })[] {
  return [...market.due(now)].flatMap((work) =>
    market.settled(work, now).steps.flatMap(({ postings }) => postings.map((each) => ({ ...each, work: work.id }))),
  )
}

/**
 * The balance of an identity as of now: the ledger, plus what unrecorded timeouts have moved. `name`: an account, such as
 * `user:<id>`. For an account that others are paid from, what is left in it.
 */
export function balanceOf(market: Market, name: string, now: number): Balance {
  const { ledger } = market
  const due = unrecordedPostings(market, now)
  const holdOf = (id: string) => ledger.hold(id)?.amount ?? 0
  const held = (number: 1 | 2): number =>
    due.reduce((sum, posting) => {
      if (posting.ledger !== number || posting.debit !== name) return sum
      if (posting.type === 'hold') return sum + posting.amount
      return posting.hold === undefined ? sum : sum - holdOf(posting.hold)
    }, ledger.account(name, number).held)
  return {
    available: Math.max(0, ledger.available(name) + changeOf(due, name, 1, holdOf)),
    held: held(1),
    simulated: { held: held(2) },
  }
}
