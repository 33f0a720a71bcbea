/** The single list of operations. An operation that is not listed here is not available through any interface. */

import { attachmentsOperations } from './attachments/operations.ts'
import { conversationsOperations } from './conversations/operations.ts'
import { delegationsOperations } from './delegations/operations.ts'
import { documentsOperations } from './documents/operations.ts'
import { followOperations } from './follow/operations.ts'
import type { Operation } from './kernel/operation.ts'
import { limitsOperations } from './limits/operations.ts'
import { logOperations } from './log/operations.ts'
import { moderationOperations } from './moderation/operations.ts'
import { peopleOperations } from './people/operations.ts'
import { postsOperations } from './posts/operations.ts'
import { receiveUrlsOperations } from './receive-urls/operations.ts'
import type { InternalReadName, InternalWriteName } from './records/internal-operations.ts'
import { roomsOperations } from './rooms/operations.ts'
import { subscriptionsOperations } from './subscriptions/operations.ts'
import { threadsOperations } from './threads/operations.ts'
import { toolCallsOperations } from './tool-calls/operations.ts'
import { toolsOperations } from './tools/operations.ts'
import { toolSearchOperations } from './tools/search-operations.ts'
import { webhooksOperations } from './webhooks/operations.ts'
import { creditOperations } from './works/credit-operations.ts'
import { worksOperations } from './works/operations.ts'
import { workReadOperations } from './works/read-operations.ts'

const declared = [
  ...peopleOperations,
  ...delegationsOperations,
  ...roomsOperations,
  ...postsOperations,
  ...threadsOperations,
  ...moderationOperations,
  ...attachmentsOperations,
  ...documentsOperations,
  ...conversationsOperations,
  ...subscriptionsOperations,
  ...worksOperations,
  ...workReadOperations,
  ...creditOperations,
  ...limitsOperations,
  ...followOperations,
  ...receiveUrlsOperations,
  ...toolSearchOperations,
  ...toolsOperations,
  ...webhooksOperations,
  ...toolCallsOperations,
  ...logOperations,
] as const satisfies readonly Operation[]

type Declared = (typeof declared)[number]
/** Names of all operations, of those that change the board, and of those that read it. */
export type OperationName = Declared['name']
export type WriteName = Extract<Declared, { readonly kind: 'write' }>['name']
export type ReadName = Extract<Declared, { readonly kind: 'read' }>['name']
/** Names that a read may have: an operation, or one of the board's internal reads. */
export type AnyReadName = ReadName | InternalReadName
/** Names that a letter may have: an operation, or one of the board's internal writes. */
export type AnyWriteName = WriteName | InternalWriteName

declare module './records/write.ts' {
  interface LetterNames {
    readonly any: AnyWriteName
  }
}

/** Names of reads that are not answered from an actor's state, by what answers them. */
export type AnsweredBy<Where extends NonNullable<Operation['answeredBy']>> = Extract<
  Declared,
  { readonly answeredBy: Where }
>['name']
/** The declaration of one operation, as a type. */
export type Declaration<Name extends OperationName> = Extract<Declared, { readonly name: Name }>

export type WriteOperation = Operation & { readonly kind: 'write'; readonly name: WriteName }
export type ReadOperation = Operation & { readonly kind: 'read'; readonly name: ReadName }
export type AnyOperation = WriteOperation | ReadOperation

export const operations: readonly AnyOperation[] = declared

/** By name and by alias. */
export const operationByName: ReadonlyMap<string, AnyOperation> = new Map(
  operations.flatMap((operation) =>
    [operation.name, ...(operation.aliases ?? [])].map((name): [string, AnyOperation] => [name, operation]),
  ),
)
