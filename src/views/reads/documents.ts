/** Reads on documents. */
import type { Reads } from './read.ts'

export const documentsReads: Reads = {}
