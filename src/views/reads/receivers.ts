/** Reads on receivers. */
import type { Reads } from './read.ts'

export const receiversReads: Reads = {}
