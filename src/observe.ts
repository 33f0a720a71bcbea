/**
 * What the operator sees: one JSON object a line on standard error, and counters for /metrics.
 * Never throws, never prints a text that a user sent.
 */
import { systemClock } from './clock.ts'
import { sourceStack } from './source-stack.ts'

const levels = { error: 0, warn: 1, info: 2, debug: 3 } as const
export type Level = keyof typeof levels

let threshold: Level = 'info'

export function setLogLevel(level: Level): void {
  threshold = level
}

/** One structured line: `event` names what happened, `facts` say with what; a `stack` is shown in lines of the source. */
export function log(level: Level, event: string, facts: Readonly<Record<string, unknown>> = {}): void {
  if (levels[level] > levels[threshold]) return
  const line = { time: new Date(systemClock.wallMilliseconds()).toISOString(), level, event, ...facts }
  if (typeof facts.stack === 'string') Object.assign(line, { stack: sourceStack(facts.stack) })
  process.stderr.write(`${JSON.stringify(line)}\n`)
}

export class Counters {
  readonly #counts = new Map<string, number>()

  add(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by)
  }

  /** An answer with this status. */
  reply(status: number): void {
    this.add(`replies_${status}`)
  }

  get(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  entries(): [string, number][] {
    return [...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}
