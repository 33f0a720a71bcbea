/** The actors as the command path uses them: what it asks, and what they answer. */

import type { AnyReadName } from '../../actors/operations.ts'
import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import type { Facts } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import type { AnswerOf, ReadAnswer, ReadRequest, Take } from '../reads/read.ts'

/** `undefined`: no answer came, and whether it took effect is unknown; the caller must not get an answer either. */
export type NoAnswer = undefined

/** Takes the answer to a letter, and the head that covers what is public of it. */
export type TakeReply<Reply extends Facts = Facts> = {
  take(answer: ShardAnswer<Reply> | NoAnswer, head: Head | undefined): void
}['take']

/** No answer, or too busy for one: the same request may succeed in a moment. */
export function isNotNow(answer: ReadAnswer | ShardAnswer | NoAnswer): boolean {
  return answer === undefined || (!answer.ok && 'refusal' in answer && answer.refusal.code === 'overloaded')
}

/** Capabilities with a thread of their own (search, tools) declare here how it is asked. */
export interface Actors {
  readonly shards: number
  /** Asks the shard that decides over `letter.to`. */
  write<Reply extends Facts>(letter: WriteLetter<object, Reply>, answer: TakeReply<Reply>): void
  /** Asks the feed; it answers with nothing older than `seen`. */
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void
  /** Asks one shard, for a private room. */
  readPrivate<Name extends AnyReadName>(shard: number, request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void
}
