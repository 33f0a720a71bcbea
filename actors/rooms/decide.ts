/** Decisions over rooms: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const rulesDeciders: Readonly<Record<string, Decider>> = {}
