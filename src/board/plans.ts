/** Every operation that writes, and how it is carried out. */
import type { WriteName } from '../../actors/operations.ts'
import { blobsPlans } from '../attachments/plans.ts'
import type { AnyPlan, Plan } from '../command/plan.ts'
import { directPlans } from '../conversations/plans.ts'
import { delegationsPlans } from '../delegations/plans.ts'
import { documentsPlans } from '../documents/plans.ts'
import { limitsPlans } from '../limits/plans.ts'
import { peoplePlans } from '../people/plans.ts'
import { eventsPlans } from '../posts/plans.ts'
import { receiversPlans } from '../receive-urls/plans.ts'
import { roomsPlans } from '../rooms/plans.ts'
import { callsPlans } from '../tool-calls/plans.ts'
import { toolsPlans } from '../tools/plans.ts'
import { webhooksPlans } from '../webhooks/plans.ts'
import { creditPlans } from '../works/credit-plans.ts'
import { workPlans } from '../works/plans.ts'

/** Carried out by functions of their own (writes.ts). */
type OwnWay = 'post' | 'room.create' | 'identity.register'

const all = {
  ...roomsPlans,
  ...eventsPlans,
  ...peoplePlans,
  ...limitsPlans,
  ...delegationsPlans,
  ...directPlans,
  ...documentsPlans,
  ...blobsPlans,
  ...receiversPlans,
  ...workPlans,
  ...creditPlans,
  ...callsPlans,
  ...toolsPlans,
  ...webhooksPlans,
} satisfies { readonly [Name in Exclude<WriteName, OwnWay>]: Plan<Name> }

/** By the name of the operation. A missing one does not compile. */
export const plans = all as unknown as Readonly<Record<string, AnyPlan>>
