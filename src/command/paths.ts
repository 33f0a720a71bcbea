/** The paths of commands and of reads, as capabilities use them. The board, which knows all capabilities, runs them. */

import type { AnyReadName } from '../../actors/operations.ts'
import type { Respond } from '../format/reply.ts'
import type { AnswerOf, ReadRequest, Take } from '../reads/read.ts'
import type { CommandSource } from './reply.ts'

export type CommandPath = {
  /** Executes a command given as bytes of JSON. */
  execute(body: Buffer, door: CommandSource, respond: Respond): void
  /** The same for the board's own identity: what it signed a moment ago is not verified again. */
  executeOwn(body: Buffer, door: CommandSource, respond: Respond): void
}

/** On whose behalf something is read. */
export type Client = Omit<CommandSource, 'via'>

export type ReadPath = {
  /** `client`: who waits for it; by default the board itself does. */
  read<Name extends AnyReadName>(request: ReadRequest<Name>, answer: Take<AnswerOf<Name>>, client?: Client): void
}
