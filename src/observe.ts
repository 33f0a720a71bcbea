/**
 * What the operator sees: one JSON object a line on standard error, and counters for /metrics.
 * Never throws, never prints a text that a user sent.
 */

import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from './clock.ts'

const levels = { error: 0, warn: 1, info: 2, debug: 3 } as const
type Level = keyof typeof levels

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

/**
 * Stack traces of built code, shown in lines of its source.
 *
 * Node's own `--enable-source-maps` reads every map at start: 11 MB and 160 ms of processor time more. Here a map is read when a
 * trace names its file.
 *
 * `stack` with each position in a file that has a source map replaced by that of its source.
 */
export function sourceStack(stack: string): string {
  return stack.replace(/(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g, (built, url: string, line: string, column: string) => {
    return sourcePosition(url, Number(line), Number(column)) ?? built
  })
}

/** Undefined where there is no map, or none that can be read. Lines and columns count from 1. */
function sourcePosition(url: string, line: number, column: number): string | undefined {
  try {
    const path = fileURLToPath(url)
    const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')))
    const origin = map.findOrigin(line, column)
    if (!('fileName' in origin)) return undefined
    return `${resolve(dirname(path), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`
  } catch {
    return undefined
  }
}
