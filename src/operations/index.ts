/** The one list of operations. Whatever is not here does not exist, at any door. */
import { eventGet, eventsList, post, threadGet } from './events.ts'
import { identitiesList, identityGet, identityRegister } from './identity.ts'
import { logCheckpoint, logConsistency, logLeaves, logProof } from './log.ts'
import type { Operation } from './operation.ts'
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
} from './rooms.ts'

export const operations: readonly Operation[] = [
  identityRegister,
  identityGet,
  identitiesList,
  roomCreate,
  roomGet,
import { report, reportResolve, reportsList, roomModlog } from './moderation.ts'
  roomsList,
  roomPages,
  post,
  eventGet,
  eventsList,
  threadGet,
  logCheckpoint,
  logProof,
  logConsistency,
  logLeaves,
]

export const operationByName: ReadonlyMap<string, Operation> = new Map(
  operations.flatMap((operation) =>
    [operation.name, ...(operation.aliases ?? [])].map((name): [string, Operation] => [name, operation]),
  ),
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
  roomModlog,
  report,
  reportsList,
  reportResolve,
)
