/** How writes on events are carried out. */
import type { Plans } from '../plan.ts'

export const eventsPlans: Plans = {}
