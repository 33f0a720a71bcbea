/** The paths of commands and of reads, as capabilities use them. The board, which knows all capabilities, runs them. */
import type { Respond } from '../format/reply.ts'
import type { ReadAnswer, ReadRequest } from '../reads/read.ts'
import type { NoAnswer } from './ports.ts'
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
  read(request: ReadRequest, answer: (answer: ReadAnswer | NoAnswer) => void, client?: Client): void
}
