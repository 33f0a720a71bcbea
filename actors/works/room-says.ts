/**
 * What only the room of a work knows, and the market has to before it decides: how the signer stands to it, and what the result is
 * that is handed in. A room of the same shard is looked at directly; another is asked by letter first (delivery.ts).
 */

import type { Planned, Situation, WriteLetter } from '../records/write.ts'
import { bind, standingIn } from './decide.ts'
import type { BoundReply } from './letters.ts'
import type { BoundResult, WorkArgs } from './market/letters.ts'

/** Operations that depend on how the signer stands to the room, and those that may come with a result. */
export const asksStanding: ReadonlySet<string> = new Set(['work.cancel', 'work.claim', 'work.rule'])
export const asksResult: ReadonlySet<string> = new Set(['work.submit', 'work.claim'])

type Said<Args> = { readonly args: Args; readonly records: readonly Planned[] }

/** The args with what the room says, and what the room writes down of a result where the market takes it. */
export function roomSays<Args extends WorkArgs>(
  situation: Situation,
  letter: WriteLetter,
  room: string,
  args: Args,
): Said<Args> {
  if (!situation.board.rooms.has(room)) return { args, records: [] }
  const { author, operator, op } = letter
  const standing = asksStanding.has(op) ? { standing: standingIn(situation, { room, author, operator }) } : {}
  const { work, result } = args
  if (!asksResult.has(op) || result === undefined) return { args: { ...args, ...standing }, records: [] }
  const bound = bind(situation, { ...letter, op: 'work.bind', to: room, args: { work, result } })
  if (!bound.ok) throw new Error('a room never refuses to check a result')
  const reply = bound.reply
  return { args: { ...args, ...standing, bound: boundOf(result, reply) }, records: bound.records }
}

export function boundOf(result: string, reply: BoundReply): BoundResult {
  return 'fault' in reply ? { id: result, author: '', reply_to: '', sha256: '', fault: reply.fault } : reply
}
