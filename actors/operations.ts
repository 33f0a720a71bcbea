/** The one list of operations. Whatever is not here does not exist, at any door. */
import { blobDelete, blobGet, blobPut } from './attachments/operations.ts'
import { conversationOpen, conversationRespond, conversationsList, inboxGet } from './conversations/operations.ts'
import { delegationCreate, delegationList, delegationRevoke } from './delegations/operations.ts'
import { docsCreate, docsDelete, docsHistory, docsList, docsRead, docsWrite } from './documents/operations.ts'
import { changesList, roomReadToken, updatesGet } from './follow/operations.ts'
import type { Operation } from './kernel/operation.ts'
import { limitsGrant, limitsList, limitsRevoke, quotaGet } from './limits/operations.ts'
import { logCheckpoint, logConsistency, logHistory, logLeaves, logProof, logWitnesses } from './log/operations.ts'
import { report, reportResolve, reportsList, roomModlog } from './moderation/operations.ts'
import {
  identitiesList,
  identityEvents,
  identityGet,
  identityProfileSet,
  identityRegister,
  identityRotate,
  identitySuspend,
  identityUnsuspend,
} from './people/operations.ts'
import {
  eventGet,
  eventHistory,
  eventRedact,
  eventsList,
  post,
  roomHide,
  roomRestore,
  threadGet,
  vote,
} from './posts/operations.ts'
import {
  receiverCreate,
  receiverDelete,
  receiverItems,
  receiverList,
  receiverRotate,
} from './receive-urls/operations.ts'
import {
  roomCreate,
  roomGet,
  roomInviteAccept,
  roomInviteCreate,
  roomJoin,
  roomLeave,
  roomMemberAdd,
  roomMemberRemove,
  roomMembers,
  roomModeratorAdd,
  roomModeratorRemove,
  roomOwnerTransfer,
  roomPages,
  roomPolicyGet,
  roomPolicySet,
  roomsList,
} from './rooms/operations.ts'
import { toolsCall, toolsRelay } from './tool-calls/operations.ts'
import { toolsGet, toolsImport, toolsProbe, toolsPublish, toolsUpdate, toolsWithdraw } from './tools/operations.ts'
import { toolsReview, toolsReviews, toolsSearch } from './tools/search-operations.ts'
import {
  webhookCreate,
  webhookDelete,
  webhookDeliveries,
  webhookList,
  webhookRedeliver,
} from './webhooks/operations.ts'
import { creditBalance, creditGrant, creditHistory, creditTransfer } from './works/credit-operations.ts'
import {
  workAccept,
  workCancel,
  workClaim,
  workConcede,
  workCreate,
  workDispute,
  workEdit,
  workRaise,
  workReject,
  workRelease,
  workRenew,
  workReopen,
  workRevise,
  workRule,
  workSubmit,
} from './works/operations.ts'
import { workGet, workHistory, workList } from './works/read-operations.ts'

const declared = [
  identityRegister,
  identityGet,
  identitiesList,
  identityEvents,
  identityProfileSet,
  identityRotate,
  identitySuspend,
  identityUnsuspend,
  delegationCreate,
  delegationList,
  delegationRevoke,
  roomCreate,
  roomGet,
  roomsList,
  roomPages,
  roomJoin,
  roomLeave,
  roomMembers,
  roomMemberAdd,
  roomMemberRemove,
  roomModeratorAdd,
  roomModeratorRemove,
  roomOwnerTransfer,
  roomInviteCreate,
  roomInviteAccept,
  roomPolicyGet,
  roomPolicySet,
  roomHide,
  roomRestore,
  roomModlog,
  report,
  reportsList,
  reportResolve,
  post,
  eventGet,
  eventHistory,
  eventsList,
  threadGet,
  eventRedact,
  vote,
  blobPut,
  blobGet,
  blobDelete,
  docsCreate,
  docsRead,
  docsWrite,
  docsList,
  docsHistory,
  docsDelete,
  conversationOpen,
  conversationRespond,
  conversationsList,
  inboxGet,
  workCreate,
  workEdit,
  workRaise,
  workCancel,
  workClaim,
  workRenew,
  workRelease,
  workSubmit,
  workAccept,
  workRevise,
  workReject,
  workDispute,
  workConcede,
  workReopen,
  workRule,
  workGet,
  workList,
  workHistory,
  creditBalance,
  creditHistory,
  creditTransfer,
  creditGrant,
  quotaGet,
  limitsGrant,
  limitsRevoke,
  limitsList,
  updatesGet,
  changesList,
  roomReadToken,
  receiverCreate,
  receiverList,
  receiverItems,
  receiverRotate,
  receiverDelete,
  toolsSearch,
  toolsGet,
  toolsReview,
  toolsReviews,
  toolsPublish,
  toolsUpdate,
  toolsWithdraw,
  toolsImport,
  toolsProbe,
  webhookCreate,
  webhookList,
  webhookDelete,
  webhookDeliveries,
  webhookRedeliver,
  toolsCall,
  toolsRelay,
  logCheckpoint,
  logProof,
  logConsistency,
  logLeaves,
  logHistory,
  logWitnesses,
] as const satisfies readonly Operation[]

type Declared = (typeof declared)[number]
/** Names of all operations, of those that change the board, and of those that read it. */
export type OperationName = Declared['name']
export type WriteName = Extract<Declared, { readonly kind: 'write' }>['name']
export type ReadName = Extract<Declared, { readonly kind: 'read' }>['name']
export type WriteOperation = Operation & { readonly kind: 'write'; readonly name: WriteName }
export type ReadOperation = Operation & { readonly kind: 'read'; readonly name: ReadName }
export type AnyOperation = WriteOperation | ReadOperation

export const operations: readonly AnyOperation[] = declared

/** By name, and by what else an operation is called. */
export const operationByName: ReadonlyMap<string, AnyOperation> = new Map(
  operations.flatMap((operation) =>
    [operation.name, ...(operation.aliases ?? [])].map((name): [string, AnyOperation] => [name, operation]),
  ),
)
