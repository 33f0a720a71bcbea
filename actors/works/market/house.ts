/**
 * What the house says to the market by itself: that it has begun, and that time has passed. Without the second nothing would be
 * posted, and nobody told, of a timeout that nobody asks about.
 */
import type { Decider, Deciders } from '../../write.ts'
import type { BeginArgs, Posting, TickArgs, TickReply } from './letters.ts'
import { codes, transferId } from './postings.ts'
import { Turn } from './turn.ts'

const begin: Decider = ({ state: { market }, now }, letter) => {
  const { generation, rewards } = letter.args as unknown as BeginArgs
  const { epoch } = market
  if (epoch.generation === generation) return { ok: true, records: [], reply: { at: now } }
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

const tick: Decider = ({ state: { market }, now }, letter) => {
  const { works_max: worksMax } = letter.args as unknown as TickArgs
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
  return { ok: true, records: turn.settle(), reply }
}

export const houseDeciders = { 'market.begin': begin, 'work.tick': tick } satisfies Deciders
