/** Every write operation, and how it is carried out. */

import type { WriteName } from '../../actors/operations.ts'
import { blobsPlans, blobsReadPlans } from '../attachments/plans.ts'
import type { AnyPlan, Plan, ReadPlan, ReadPlans, SharedReadName } from '../command/plan.ts'
import { directPlans, directReadPlans } from '../conversations/plans.ts'
import { delegationsPlans, delegationsReadPlans } from '../delegations/plans.ts'
import { documentsPlans, documentsReadPlans } from '../documents/plans.ts'
import { limitsPlans, limitsReadPlans } from '../limits/plans.ts'
import { salesReadPlans } from '../payments/sales.ts'
import { peoplePlans } from '../people/plans.ts'
import { eventsPlans } from '../posts/plans.ts'
import type { Share } from '../reads/read.ts'
import { receiversPlans, receiversReadPlans } from '../receive-urls/plans.ts'
import { roomsPlans, roomsReadPlans } from '../rooms/plans.ts'
import { oauthReadPlans } from '../sign-in/records.ts'
import { subscriptionsPlans, subscriptionsReadPlans } from '../subscriptions/plans.ts'
import { threadsPlans } from '../threads/plans.ts'
import { callsPlans, callsReadPlans } from '../tool-calls/plans.ts'
import { toolsPlans, toolsReadPlans } from '../tools/plans.ts'
import { webhooksPlans } from '../webhooks/plans.ts'
import { creditPlans, creditReadPlans, workPlans } from '../works/plans.ts'

/** Carried out by dedicated functions (writes.ts). */
type OwnWay = 'post' | 'room.create' | 'identity.register'

const all = {
  ...roomsPlans,
  ...eventsPlans,
  ...threadsPlans,
  ...peoplePlans,
  ...limitsPlans,
  ...delegationsPlans,
  ...directPlans,
  ...subscriptionsPlans,
  ...documentsPlans,
  ...blobsPlans,
  ...receiversPlans,
  ...workPlans,
  ...creditPlans,
  ...callsPlans,
  ...toolsPlans,
  ...webhooksPlans,
} satisfies { readonly [Name in Exclude<WriteName, OwnWay>]: Plan<Name> }

const allReads = {
  ...roomsReadPlans,
  ...limitsReadPlans,
  ...delegationsReadPlans,
  ...directReadPlans,
  ...subscriptionsReadPlans,
  ...documentsReadPlans,
  ...blobsReadPlans,
  ...receiversReadPlans,
  ...creditReadPlans,
  ...callsReadPlans,
  ...salesReadPlans,
  ...oauthReadPlans,
  ...toolsReadPlans,
} satisfies ReadPlans & { readonly [Name in SharedReadName]: ReadPlan<Share> }

/** By the name of the read; one that is missing needs no plan. A share that nothing merges does not compile. */
export const readPlans: Readonly<Partial<Record<string, ReadPlan>>> = allReads

/** By the name of the operation. A missing plan does not compile. */
export const plans = all as unknown as Readonly<Record<string, AnyPlan>>
