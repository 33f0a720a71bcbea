/** Decisions over blobs: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const blobsDeciders: Readonly<Record<string, Decider>> = {}
