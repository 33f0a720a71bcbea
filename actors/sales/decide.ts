/** Decisions over sales: a payment buys one thing, whose end is told once. The board itself asks; nobody signs. */
import { createHash } from 'node:crypto'
import { type Act, RecordType } from '../record.ts'
import { type Decider, type Deciders, type Decision, refuse, type WriteLetter } from '../write.ts'
import type { SaleFacts } from './sales.ts'

const begin: Decider = ({ state, now }, letter) => {
  const { key, sent } = letter.args as unknown as SaleFacts
  const found = state.sales.find(key, now)
  if (found === undefined) return privately(letter, now, 'sale.begun')
  // Told twice: the first stands.
  return found.sent === sent ? nothing : refuse('conflict', 'this payment was sent for something else')
}

const settle: Decider = ({ state, now }, letter) => {
  const found = state.sales.find(letter.args.key as string, now)
  return found === undefined || found.settled !== undefined ? nothing : privately(letter, now, 'sale.settled')
}

const drop: Decider = ({ state, now }, letter) => {
  const found = state.sales.find(letter.args.key as string, now)
  return found === undefined || found.settled !== undefined ? nothing : privately(letter, now, 'sale.dropped')
}

const nothing: Decision = { ok: true, records: [], reply: {} }

function privately({ to: room, author, args }: WriteLetter, at: number, op: string): Decision {
  const key = createHash('sha256').update(`${op} ${at} ${args.key}`).digest().subarray(0, 16)
  const record: Act = { type: RecordType.act, room, at, author: Buffer.from(author, 'hex'), op, facts: args }
  return { ok: true, records: [{ record, key, isPublic: false }], reply: { at } }
}

export const salesDeciders = {
  'sale.begin': begin,
  'sale.settle': settle,
  'sale.drop': drop,
} satisfies Deciders
