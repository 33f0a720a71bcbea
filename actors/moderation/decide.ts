/** Operator decisions that concern no room, and the wrapper that records every act of moderation in the public log. */
import { RecordType } from '../records/record.ts'
import {
  act,
  type Decider,
  type Deciders,
  isOfBoard,
  type Planned,
  refuse,
  type Situation,
  type WriteLetter,
} from '../records/write.ts'
import { isModeration, moderationEntry, type TakedownFacts } from './moderation.ts'

type TakedownArgs = { readonly target: string; readonly reason: string; readonly isEnd: boolean }

const takedown = ({ state, now }: Situation, letter: WriteLetter<TakedownArgs>) => {
  const { target, reason, isEnd } = letter.args
  // After a restore, the board itself repeats the takedowns of the lost board.
  if (!letter.operator && !isOfBoard(letter))
    return refuse('forbidden', 'only an operator of this board can take a file down everywhere')
  if ((state.moderation.takedown(target) === undefined) === isEnd)
    return refuse(
      'wrong_state',
      isEnd ? 'this file is not taken down' : 'this file is already taken down: blob.takedown with ended ends that',
      'target',
    )
  const facts: TakedownFacts = { target, reason, ...(isEnd ? { ended: true } : {}) }
  return act(letter, now, { facts, isPublic: true })
}

export const moderationDeciders = { 'blob.takedown': takedown } satisfies Deciders

/**
 * Wraps a decider so that its public acts of moderation are leaves of the public log: those who run a room or the board cannot
 * later deny or omit an act.
 */
export function withModerationLeaves(decide: Decider): Decider {
  return (situation, letter) => {
    const decision = decide(situation, letter)
    if (!decision.ok) return decision
    return { ...decision, records: decision.records.map((planned) => withLeaf(planned, letter)) }
  }
}

function withLeaf(planned: Planned, letter: WriteLetter): Planned {
  const { record, isPublic, entries = [] } = planned
  if (!isPublic || entries.length > 0 || record.type !== RecordType.act || !isModeration(record)) return planned
  const entry = moderationEntry(record, {
    event: Buffer.from(letter.id).toString('hex'),
    command: Buffer.from(letter.sha).toString('hex'),
  })
  return { ...planned, entries: [entry] }
}
