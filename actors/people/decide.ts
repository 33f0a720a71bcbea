/** Decisions over people: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const peopleDeciders: Readonly<Record<string, Decider>> = {}
