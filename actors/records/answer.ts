/** What the sender of a letter is answered, and how letters between actors are answered. */
import type { ActorRefusal } from '../kernel/refusals.ts'
import type { Facts } from './record.ts'
import type { WriteLetter } from './write.ts'

/** A signed head: a size, and the note that signs it with its root. */
export type Head = { readonly size: number; readonly checkpoint: string }

export type ShardAnswer<Reply extends Facts = Facts> =
  | {
      readonly ok: true
      readonly reply: Reply
      readonly change?: number
      readonly leaf?: number
      readonly duplicate?: true
    }
  /** `isWritten`: the command was written down before another actor refused it, and takes what it takes. */
  | { readonly ok: false; readonly refusal: ActorRefusal; readonly isWritten?: true }
/** Who takes an answer knows what such a letter is replied. */
export type Answer<Reply extends Facts = Facts> = { take(answer: ShardAnswer<Reply>, head?: Head): void }['take']

/** A letter to an actor of this shard, left by a decision. */
export type Delivery = {
  readonly write: WriteLetter
  /** As of any letter: what is public is in the public log then. */
  readonly answer: Answer
  /** At once, not on disk yet: for what follows from it in the same turn. */
  readonly decided: (answer: ShardAnswer) => void
}

/** Letters between actors. They lie in the journal until they are delivered: this only knows which are under way. */
export interface Mail {
  /** Something may be left for another turn. */
  readonly isWaiting: boolean
  /** The next letter to an actor of this shard. `marks`: what was delivered may be written down now, as the last of its turn. */
  next(now: number, marks: boolean): Delivery | undefined
  /** Everything decided so far is on disk. */
  afterTurn(): void
  /** Before a letter is decided: asks other shards, and calls `go` with what they know, or `answer` with their refusal. */
  before(letter: WriteLetter, go: (letter: WriteLetter, answer: Answer) => void, answer: Answer): void
  /** Gives an answer when what follows from the command is done elsewhere too. */
  settle(letter: WriteLetter, answer: ShardAnswer, head: Head | undefined, give: Answer): void
}
