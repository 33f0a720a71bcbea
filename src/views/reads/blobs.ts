/** Reads on blobs. */
import type { Reads } from './read.ts'

export const blobsReads: Reads = {}
