/**
 * How many connections a board accepts. Each is a descriptor, and a thread that gets none for a file of its journal
 * ends the board; so some are not available to sockets.
 */
import { readFileSync } from 'node:fs'
import { inside } from '../../actors/kernel/limits.ts'

/** Connections at the same time, given how many descriptors the process may have. */
export function connectionsMaxOf(descriptors: number): number {
  return Math.max(1, descriptors - Math.min(inside.descriptorsKept, Math.ceil(descriptors / 2)))
}

/** Descriptors that this process may have; Node has raised the soft limit to the hard one. Infinity: unknown. */
export function descriptorsMax(): number {
  let limits: string
  try {
    limits = readFileSync('/proc/self/limits', 'latin1')
  } catch {
    return Number.POSITIVE_INFINITY
  }
  return softLimitIn(limits)
}

/** From the text of /proc/<pid>/limits. */
export function softLimitIn(limits: string): number {
  const soft = /^Max open files +([0-9]+) /m.exec(limits)?.[1]
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
}
