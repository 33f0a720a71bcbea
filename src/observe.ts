/**
 * What the operator sees: one JSON object per line on standard error, and counters for /metrics. Never throws, and never prints a user's
 * text.
 */

import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemClock } from './clock.ts'

const levels = { error: 0, warn: 1, info: 2, debug: 3 } as const
type Level = keyof typeof levels

let threshold: number = levels.info

/** `silent`: nothing is logged, for example where thousands of boards fail on purpose. */
export function setLogLevel(level: Level | 'silent'): void {
  threshold = level === 'silent' ? -1 : levels[level]
}

/** One structured line: `event` names what happened, `facts` gives details; a `stack` is mapped to source lines. */
export function log(level: Level, event: string, facts: Readonly<Record<string, unknown>> = {}): void {
  if (levels[level] > threshold) return
  const line = { time: new Date(systemClock.wallMilliseconds()).toISOString(), level, event, ...facts }
  if (typeof facts.stack === 'string') Object.assign(line, { stack: sourceStack(facts.stack) })
  process.stderr.write(`${JSON.stringify(line)}\n`)
}

export class Counters {
  readonly #counts = new Map<string, number>()

  add(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by)
  }

  /** Counts an answer with this status. */
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

/** Upper bounds of the buckets of a histogram, in seconds. */
export const durationBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

/** `counts`: by bucket, one more than there are bounds. */
export type Durations = { readonly counts: readonly number[]; readonly sumSeconds: number }

/** Durations by name. */
export class DurationHistograms {
  readonly #byName = new Map<string, { counts: number[]; sumSeconds: number }>()

  add(name: string, ms: number): void {
    let found = this.#byName.get(name)
    if (found === undefined) {
      found = { counts: new Array<number>(durationBounds.length + 1).fill(0), sumSeconds: 0 }
      this.#byName.set(name, found)
    }
    const seconds = ms / 1_000
    let bucket = 0
    while (bucket < durationBounds.length && seconds > durationBounds[bucket]!) bucket++
    found.counts[bucket]!++
    found.sumSeconds += seconds
  }

  entries(): [name: string, durations: Durations][] {
    return [...this.#byName].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

/**
 * Maps stack traces of built code to lines of its source.
 *
 * Node's own `--enable-source-maps` reads every map at start, which costs 11 MB and 160 ms of processor time. Here, a map is read only when
 * a trace names its file.
 *
 * Returns `stack` with each position in a file that has a source map replaced by that of its source. Lines and columns count from 1.
 */
export function sourceStack(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>()
  return stack.replace(/(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g, (built, url: string, line: string, column: string) => {
    if (!maps.has(url)) maps.set(url, mapOf(url))
    const origin = maps.get(url)?.findOrigin(Number(line), Number(column))
    if (origin === undefined || !('fileName' in origin)) return built
    const source = resolve(dirname(fileURLToPath(url)), origin.fileName)
    return `${source}:${origin.lineNumber}:${origin.columnNumber}`
  })
}

/** Undefined if there is no readable map. */
function mapOf(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, 'utf8')))
  } catch {
    return undefined
  }
}
