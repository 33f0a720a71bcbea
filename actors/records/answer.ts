/** Answers to letters, and the delivery of letters between actors. */
import type { ActorRefusal } from '../kernel/refusals.ts'
import type { Facts } from './record.ts'
import type { WriteLetter } from './write.ts'

/** A signed log head: a size, and the checkpoint that signs it with its root. */
export type Head = { readonly size: number; readonly checkpoint: string }

export type ShardAnswer<Reply extends Facts = Facts> =
  | {
      readonly ok: true
      readonly reply: Reply
      readonly change?: number
      readonly leaf?: number
      readonly duplicate?: true
    }
  /** `isWritten`: the command was recorded before another actor refused it, and counts against limits. */
  | { readonly ok: false; readonly refusal: ActorRefusal; readonly isWritten?: true }
/** A callback for the answer, typed with the reply to such a letter. */
export type Answer<Reply extends Facts = Facts> = { take(answer: ShardAnswer<Reply>, head?: Head): void }['take']

/** A letter to an actor of this shard, produced by a decision. */
export type Delivery = {
  readonly write: WriteLetter
  /** As for any letter: called once public records are in the public log. */
  readonly answer: Answer
  /** Called immediately, before anything is on disk: for what follows from it in the same turn. */
  readonly decided: (answer: ShardAnswer) => void
}

/** Letters between actors. The journal stores them until they are delivered; this tracks only which are in progress. */
export interface Mail {
  /** Whether some work may be left for another turn. */
  readonly isWaiting: boolean
  /** The next letter to an actor of this shard. `marks`: deliveries may be recorded now, as the last step of the turn. */
  next(now: number, marks: boolean): Delivery | undefined
  /** Called when everything decided so far is on disk. */
  afterTurn(): void
  /**
   * Called before a letter is decided: queries other shards, then calls `go` with the letter and what they know, or `answer`
   * with their refusal.
   */
  before(letter: WriteLetter, go: (letter: WriteLetter, answer: Answer) => void, answer: Answer): void
  /** Gives the answer once the follow-up work of other actors is done too. */
  settle(letter: WriteLetter, answer: ShardAnswer, head: Head | undefined, give: Answer): void
}
