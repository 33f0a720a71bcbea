/** How writes on rooms are carried out. */
import type { Plans } from '../plan.ts'

export const roomsPlans: Plans = {}
