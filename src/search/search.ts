/**
 * One search of the index, run in steps: other searches and indexing continue between its steps. A step examines a limited number of rows,
 * or the rest of one part of the index.
 */
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { DatabaseSync } from '../sqlite.ts'
import { phraseMatcher, type Query, rankOf, toFts } from './query.ts'

export type SearchAsk = {
  readonly query: Query
  readonly room?: string
  readonly page?: string
  readonly kind?: string
  /** Identity id. */
  readonly author?: string
  /** Numbers within the room, exclusive. */
  readonly before?: number
  readonly after?: number
  /** By relevance: each of the newest `count` matches, with its rank. */
  readonly order: 'asc' | 'desc' | 'relevance'
  /** Rows from `since` on, and below `until`. */
  readonly since?: number
  readonly until?: number
  /** Continue after this row; undefined to start at the first. By relevance: after this many matches. */
  readonly from?: number
  readonly limit: number
  /** How many matches are counted at most; absent: no more than `limit`. */
  readonly count?: number
}

export type SearchAnswer =
  /** `reached`: it stopped there, and continues after this row. Absent if everything was searched, or the page is full. */
  | {
      readonly ok: true
      readonly hits: readonly Hit[]
      readonly reached?: number
      /** All matches, or `count` if there are more; absent if unknown. */
      readonly total?: number
      readonly indexing?: Indexing
    }
  | { readonly ok: false; readonly refusal: Refusal }

/**
 * The index is being built, the newest posts last. `percent`: share of the log that is indexed, 0 to 99; `seconds`: until it is complete.
 */
export type Indexing = { readonly percent: number; readonly seconds: number }

type Hit = { readonly id: string; readonly change: number; readonly rank?: number }

declare module '../command/ports.ts' {
  interface Actors {
    /** Queries the search index. Its answer covers at least this frame of the log. */
    search(ask: SearchAsk, through: number, answer: (answer: SearchAnswer | undefined) => void): void
  }
}

/** Consecutive rows whose texts are in one table. */
export type Part = { readonly first: number; rows: number; bytes: number }

export function tableOf({ first }: Part): string {
  return `texts_${first}`
}

type Row = { readonly id: Uint8Array; readonly change: number; readonly words?: string }
type Value = string | number | bigint | Uint8Array

export class Search {
  readonly hits: Hit[] = []
  /** Parts that were searched to their end. */
  parts = 0
  readonly #database: DatabaseSync
  readonly #all: readonly Part[]
  readonly #ask: SearchAsk
  readonly #conditions: readonly string[]
  readonly #values: readonly Value[]
  /** Whether the words of a text contain the query's phrases; undefined if it has none. */
  readonly #holds: ((words: string) => boolean) | undefined
  readonly #rank: ((words: string) => number) | undefined
  /** Hits to find. */
  readonly #max: number
  /** Everything up to this row was examined; undefined if nothing was. */
  #reached: number | undefined
  #isOver = false

  /** `parts`: ascending; more may be added at the end. `now`: texts that have expired by then are not found. */
  constructor(database: DatabaseSync, parts: readonly Part[], ask: SearchAsk, now: number) {
    this.#database = database
    this.#all = parts
    this.#ask = ask
    const { match, isByText } = toFts(ask.query)
    this.#holds = isByText ? phraseMatcher(ask.query) : undefined
    const { room, page, kind, author, before, after, order, since, until } = ask
    this.#rank = order === 'relevance' ? rankOf(ask.query) : undefined
    // When texts must be read to check for phrases, counting as well would cost too much.
    this.#max = ask.count !== undefined && (!isByText || order === 'relevance') ? ask.count : ask.limit
    this.#reached = beginOf(ask)
    const conditions = ['docs.hidden = 0', '(docs.expires = 0 OR docs.expires > ?)']
    const values: Value[] = [match, now]
    const also = (condition: string, value: Value | undefined) => {
      if (value === undefined) return
      conditions.push(condition)
      values.push(value)
    }
    const named = (column: string) => `docs.${column} = (SELECT number FROM names WHERE name = ?)`
    also(named('room'), room)
    also(named('page'), page)
    also(named('kind'), kind)
    also(named('author'), author === undefined ? undefined : Buffer.from(author, 'hex'))
    also('docs.change >= ?', since)
    also('docs.change < ?', until)
    also('docs.seq < ?', before)
    also('docs.seq > ?', after)
    this.#conditions = conditions
    this.#values = values
  }

  /** Whether the page is full, or nothing is left to examine. */
  get isOver(): boolean {
    return this.#isOver
  }

  /** Number of matches, at most `count`; undefined if unknown. */
  get total(): number | undefined {
    const isCounted = this.hits.length < this.#max || this.#max === this.#ask.count
    return this.#isOver && isCounted ? this.hits.length : undefined
  }

  /** The row after which it would continue. */
  get reached(): number | undefined {
    return this.#reached
  }

  step(rowsMax: number): void {
    const at = this.#nextPart()
    const part = this.#all[at]
    if (part === undefined) {
      this.#isOver = true
      return
    }
    let rows = 0
    for (const { id, change, words } of this.#rows(part)) {
      this.#reached = change
      if (this.#holds?.(words!) !== false) {
        const rank = this.#rank === undefined ? {} : { rank: this.#rank(words!) }
        this.hits.push({ id: Buffer.from(id).toString('hex'), change, ...rank })
      }
      this.#isOver = this.hits.length === this.#max
      rows++
      if (this.#isOver || rows === rowsMax) return
    }
    this.parts++
    const isUp = this.#ask.order === 'asc'
    const next = this.#all[isUp ? at + 1 : at - 1]
    const { since, until } = this.#ask
    const isPast = isUp ? (next?.first ?? 0) >= (until ?? Number.POSITIVE_INFINITY) : part.first <= (since ?? 0)
    this.#isOver = next === undefined || isPast
    this.#reached = isUp ? (next?.first ?? 0) - 1 : part.first
  }

  /** Index of the part with the first row after `#reached`; -1 or the number of parts if there is none. */
  #nextPart(): number {
    const reached = this.#reached
    const parts = this.#all
    if (this.#ask.order !== 'asc')
      return reached === undefined ? parts.length - 1 : parts.findLastIndex(({ first }) => first < reached)
    return reached === undefined
      ? 0
      : Math.max(
          0,
          parts.findLastIndex(({ first }) => first <= reached + 1),
        )
  }

  #rows(part: Part): Iterable<Row> {
    const table = tableOf(part)
    const isUp = this.#ask.order === 'asc'
    const from = this.#reached
    const sql = `SELECT docs.id AS id, docs.change AS change${this.#holds === undefined && this.#rank === undefined ? '' : `, ${table}.text AS words`}
      FROM ${table} CROSS JOIN docs ON docs.change = ${table}.rowid
      WHERE ${table} MATCH ? AND ${this.#conditions.join(' AND ')}
      ${from === undefined ? '' : `AND ${table}.rowid ${isUp ? '>' : '<'} ?`} ORDER BY ${table}.rowid ${isUp ? 'ASC' : 'DESC'}`
    // As an integer: FTS5 ignores a row number that is bound as a real.
    const values = from === undefined ? this.#values : [...this.#values, BigInt(from)]
    return this.#database.prepare(sql).iterate(...values) as Iterable<Row>
  }
}

/** The row after which a search begins; undefined to begin at the first. */
function beginOf({ order, from, since, until }: SearchAsk): number | undefined {
  if (order === 'relevance') return until
  if (from !== undefined) return from
  return order === 'asc' ? (since === undefined ? undefined : since - 1) : until
}
