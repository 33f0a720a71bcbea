/** Who decides what: every operation that changes something, by its name. */

import { blobsDeciders } from './attachments/decide.ts'
import { directDeciders } from './conversations/decide.ts'
import { delegationDeciders } from './delegations/decide.ts'
import { documentsDeciders } from './documents/decide.ts'
import { limitsDeciders } from './limits/decide.ts'
import { moderationDeciders, provable } from './moderation/decide.ts'
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
  /** Changes nothing: its answer comes when everything is decided that was sent before it. */
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
 * By the name of the operation. A missing one does not compile. A letter is made with the arguments that its decider takes
 * (`ArgsOf`); a shard, which takes letters of every name, looks at none of them.
 */
export const deciders: Readonly<Record<string, Decider>> = Object.fromEntries(
  Object.entries(all as unknown as Readonly<Record<string, Decider>>).map(([name, decide]) => [name, provable(decide)]),
)

type Table = typeof all

declare module './records/write.ts' {
  interface DeciderTable extends Table {}
}

/** The facts of the act that comes of it. */
export type FactsOf<Name extends AnyWriteName> = ReplyOf<Name> extends ActReply<infer Given> ? Given : never
