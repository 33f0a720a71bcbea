/**
 * What the board says to the market by itself: that it has begun, and that time has passed. Without the second, a timeout
 * that no command touches would have no posting and no notice.
 */
import { accept, type Deciders, type Situation, type WriteLetter } from '../../records/write.ts'
import type { BeginArgs, Posting, TickArgs, TickReply } from './letters.ts'
import { codes, transferId } from './postings.ts'
import { Turn } from './turn.ts'

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

export const houseDeciders = { 'market.begin': begin, 'work.tick': tick } satisfies Deciders
