/** The interfaces of the command path: the actors, the paths of commands and reads, and commands of the board itself. */

import type { AnyReadName } from '../../actors/operations.ts'
import type { Head, ShardAnswer } from '../../actors/records/answer.ts'
import { internalLetter } from '../../actors/records/internal-operations.ts'
import type { Facts } from '../../actors/records/record.ts'
import type { WriteLetter } from '../../actors/records/write.ts'
import type { Respond } from '../format/reply.ts'
import type { BoardSigner, Cause, Fields } from '../format/signer.ts'
import type { AnswerOf, ReadAnswer, ReadRequest, Take } from '../reads/read.ts'
import type { DraftLetter, Posted } from './draft-letter.ts'
import type { CommandSource } from './verified.ts'

/** No answer came, and whether the command took effect is unknown; the caller must not get an answer either. */
export type NoAnswer = undefined

/** Takes the answer to a letter, and the head that covers its public part. */
export type TakeReply<Reply extends Facts = Facts> = {
  take(answer: ShardAnswer<Reply> | NoAnswer, head: Head | undefined): void
}['take']

/** No answer, or the actor is too busy: the same request may succeed in a moment. */
export function isNotNow(answer: ReadAnswer | ShardAnswer | NoAnswer): boolean {
  return answer === undefined || (!answer.ok && 'refusal' in answer && answer.refusal.code === 'overloaded')
}

/** The actors. Capabilities with their own thread (search, tools) declare here how it is queried. */
export interface Actors {
  readonly shards: number
  /** Asks the shard that decides over `letter.to`. */
  write<Reply extends Facts>(letter: WriteLetter<object, Reply>, answer: TakeReply<Reply>): void
  /** The same for a post that a clerk has packed. */
  post(letter: DraftLetter, answer: TakeReply<Posted>): void
  /** Asks the feed; it answers with nothing older than `seen`. */
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void
  /** Asks one shard, for a private room. */
  readPrivate<Name extends AnyReadName>(shard: number, request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>): void
}

/**
 * Waits until an actor has decided everything that was sent to it before. A command whose answer was lost may still be in its mailbox, and
 * a read would overtake it. `then` takes false if the actor gives no answer now.
 */
export function whenDecided(actors: Pick<Actors, 'write'>, actor: string, then: (isDecided: boolean) => void): void {
  actors.write(internalLetter('nothing', actor, nobody, {}), (answer) => then(!isNotNow(answer)))
}

const nobody = '0'.repeat(64)

export type CommandPath = {
  /** Executes a command given as bytes of JSON. */
  execute(body: Buffer, source: CommandSource, respond: Respond): void
  /** The same for commands of the board's own identity: it has just signed them, so the signature is not verified again. */
  executeOwn(body: Buffer, source: CommandSource, respond: Respond): void
}

/** On whose behalf something is read. */
export type Client = Omit<CommandSource, 'via'>

export type ReadPath = {
  /** `client`: who waits for the answer; the board itself by default. */
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>, client?: Client): void
}

type OwnPath = Pick<CommandPath, 'executeOwn'>

/** Commands of the board's own identity: posts from receive URLs, and hiding by screening. */
export class BoardAuthor {
  readonly #signer: BoardSigner
  readonly #path: OwnPath

  constructor(signer: BoardSigner, path: OwnPath) {
    this.#signer = signer
    this.#path = path
  }

  send(fields: Fields, cause: Cause, respond: Respond): void {
    this.#path.executeOwn(this.#signer.command(fields, cause), { via: 'board', address: '' }, respond)
  }
}
