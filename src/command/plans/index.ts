/** Every operation that writes, and how it is carried out. */
import type { Plans } from '../plan.ts'
import { blobsPlans } from './blobs.ts'
import { callsPlans } from './calls.ts'
import { creditPlans } from './credit.ts'
import { delegationsPlans } from './delegations.ts'
import { directPlans } from './direct.ts'
import { documentsPlans } from './documents.ts'
import { eventsPlans } from './events.ts'
import { limitsPlans } from './limits.ts'
import { peoplePlans } from './people.ts'
import { receiversPlans } from './receivers.ts'
import { roomsPlans } from './rooms.ts'
import { toolsPlans } from './tools.ts'
import { webhooksPlans } from './webhooks.ts'
import { workPlans } from './work.ts'

export const plans: Plans = {
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
}
