/** Reads on direct. */
import type { Reads } from './read.ts'

export const directReads: Reads = {}
