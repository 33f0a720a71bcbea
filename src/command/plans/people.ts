/** How writes on people are carried out. */
import type { Plans } from '../plan.ts'

export const peoplePlans: Plans = {}
