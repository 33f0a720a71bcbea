/** The table of deciders: which function decides each operation that changes something. */

import { blobsDeciders } from './attachments/decide.ts'
import { directDeciders } from './conversations/decide.ts'
import { delegationDeciders } from './delegations/decide.ts'
import { documentsDeciders } from './documents/decide.ts'
import { limitsDeciders } from './limits/decide.ts'
import { moderationDeciders, withModerationLeaves } from './moderation/decide.ts'
import type { AnyWriteName } from './operations.ts'
import { decideClaim, decideRegister, peopleDeciders } from './people/decide.ts'
import { marksDeciders } from './posts/decide.ts'
import { receiversDeciders } from './receive-urls/decide.ts'
import type { ActReply, Decider, Deciders, ReplyOf } from './records/write.ts'
import { rulesDeciders } from './rooms/decide.ts'
import { decidePost, decideRoomCreate } from './rooms/room.ts'
import { salesDeciders } from './sales/decide.ts'
import { oauthDeciders } from './sign-in/decide.ts'
import { subscriptionsDeciders } from './subscriptions/decide.ts'
import { threadsDeciders } from './threads/decide.ts'
import { callsDeciders } from './tool-calls/decide.ts'
import { toolsDeciders } from './tools/decide.ts'
import { hooksDeciders } from './webhooks/decide.ts'
import { worksDeciders } from './works/decide.ts'
import { creditDeciders, houseDeciders } from './works/market/credits.ts'
import { requestDeciders, workDeciders } from './works/market-decide.ts'

const all = {
  /** Changes nothing: its answer arrives once everything sent before it has been decided. */
  nothing: () => ({ ok: true, records: [], reply: {} }),
  post: decidePost,
  'room.create': decideRoomCreate,
  'identity.register': decideRegister,
  'handle.claim': decideClaim,
  ...rulesDeciders,
  ...marksDeciders,
  ...threadsDeciders,
  ...peopleDeciders,
  ...limitsDeciders,
  ...delegationDeciders,
  ...oauthDeciders,
  ...directDeciders,
  ...documentsDeciders,
  ...blobsDeciders,
  ...receiversDeciders,
  ...callsDeciders,
  ...salesDeciders,
  ...toolsDeciders,
  ...worksDeciders,
  ...workDeciders,
  ...requestDeciders,
  ...houseDeciders,
  ...creditDeciders,
  ...hooksDeciders,
  ...subscriptionsDeciders,
  ...moderationDeciders,
} satisfies Record<AnyWriteName, Deciders[string]>

/**
 * By operation name. A missing decider is a compile error. The sender of a letter is type-checked against its decider's
 * arguments (`ArgsOf`); a shard, which receives letters of every name, checks none of them.
 */
export const deciders: Readonly<Record<string, Decider>> = Object.fromEntries(
  Object.entries(all as unknown as Readonly<Record<string, Decider>>).map(([name, decide]) => [
    name,
    withModerationLeaves(decide),
  ]),
)

type Table = typeof all

declare module './records/write.ts' {
  interface DeciderTable extends Table {}
}

/** The facts of the act that this operation records. */
export type FactsOf<Name extends AnyWriteName> = ReplyOf<Name> extends ActReply<infer Given> ? Given : never
