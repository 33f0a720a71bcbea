/** How writes on direct are carried out. */
import type { Plans } from '../plan.ts'

export const directPlans: Plans = {}
