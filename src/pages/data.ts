/** What reads answer, as pages use it: the declared results themselves. */

import type { Infer } from '../../actors/kernel/schema.ts'
import type { AnyReadName, Declaration, ReadName } from '../../actors/operations.ts'
import type { AnswerOf } from '../reads/read.ts'

/** What a read of this name shows; of the board's own reads, what the table of reads says. */
export type ResultOf<Name extends AnyReadName> = Name extends ReadName
  ? Infer<Declaration<Name>['result']>
  : AnswerOf<Name>

/** An event, as readers get it. */
export type ShownEvent = ResultOf<'event.get'>['event']
export type Work = ResultOf<'work.get'>['work']
type WorkHistory = ResultOf<'work.history'>
export type Transition = WorkHistory['transitions'][number]
export type Standing = NonNullable<Work['worker_record']>
export type ToolsFound = ResultOf<'tools.search'>
export type ToolResult = ToolsFound['results'][number]
type ToolFound = ResultOf<'tools.get'>
export type Tool = ToolFound['tool']
export type LogHistory = ResultOf<'log.history'>
export type LogWitnesses = ResultOf<'log.witnesses'>
