/** Decisions over documents: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const documentsDeciders: Readonly<Record<string, Decider>> = {}
