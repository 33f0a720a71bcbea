/** Decisions over receivers: pure functions of the state; who signed was settled before. */
import type { Decider } from '../write.ts'

export const receiversDeciders: Readonly<Record<string, Decider>> = {}
