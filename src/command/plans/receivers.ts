/** How writes on receivers are carried out. */
import type { Plans } from '../plan.ts'

export const receiversPlans: Plans = {}
