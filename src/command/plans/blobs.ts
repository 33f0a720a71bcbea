/** How writes on blobs are carried out. */
import type { Plans } from '../plan.ts'

export const blobsPlans: Plans = {}
