/** The results of reads, as pages use them: the declared results themselves. */

import type { Infer } from '../../actors/kernel/schema.ts'
import type { AnyReadName, Declaration, ReadName } from '../../actors/operations.ts'
import type { AnswerOf } from '../reads/read.ts'

/** The result of a read of this name; for the board's internal reads, as given by the table of reads. */
export type ResultOf<Name extends AnyReadName> = Name extends ReadName
  ? Infer<Declaration<Name>['result']>
  : AnswerOf<Name>

/** An event as readers get it. */
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
