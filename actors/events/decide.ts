/** Decisions over events: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const marksDeciders: Readonly<Record<string, Decider>> = {}
