/** Decisions over direct: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const directDeciders: Readonly<Record<string, Decider>> = {}
