/** How writes on documents are carried out. */
import type { Plans } from '../plan.ts'

export const documentsPlans: Plans = {}
