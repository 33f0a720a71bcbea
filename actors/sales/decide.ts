/**
 * Decisions about sales: a payment buys one thing, and the outcome is recorded once. The board itself sends these letters; they
 * have no signature.
 */
import { createHash } from 'node:crypto'
import { type FactRecord, RecordType } from '../records/record.ts'
import { accept, type Deciders, refuse, type Situation, type WriteLetter } from '../records/write.ts'
import type { SaleFacts } from './sales.ts'

const begin = ({ state, now }: Situation, letter: WriteLetter<SaleFacts>) => {
  const { key, sent } = letter.args
  const found = state.sales.find(key, now)
  if (found === undefined) return privateAct(letter, now, 'sale.begun')
  // Reported twice: the first report counts.
  return found.sent === sent ? nothing : refuse('conflict', 'this payment was sent for something else')
}

const settle = ({ state, now }: Situation, letter: WriteLetter<{ readonly key: string }>) => {
  const found = state.sales.find(letter.args.key, now)
  return found === undefined || found.settled !== undefined ? nothing : privateAct(letter, now, 'sale.settled')
}

const drop = ({ state, now }: Situation, letter: WriteLetter<{ readonly key: string }>) => {
  const found = state.sales.find(letter.args.key, now)
  return found === undefined || found.settled !== undefined ? nothing : privateAct(letter, now, 'sale.dropped')
}

const nothing = accept([], {})

function privateAct({ to: room, author, args }: WriteLetter<{ readonly key: string }>, at: number, op: string) {
  const key = createHash('sha256').update(`${op} ${at} ${args.key}`).digest().subarray(0, 16)
  const record: FactRecord = { type: RecordType.act, room, at, author: Buffer.from(author, 'hex'), op, facts: args }
  return accept([{ record, key, isPublic: false }], { at })
}

export const salesDeciders = {
  'sale.begin': begin,
  'sale.settle': settle,
  'sale.drop': drop,
} satisfies Deciders
