/**
 * One search of the index, a step at a time: other searches, and the index itself, go on between its steps. A step looks through
 * so many rows, or through the rest of one part of the index.
 */
import type { Refusal } from '../../actors/kernel/refusals.ts'
import type { DatabaseSync } from '../sqlite.ts'
import { phraseMatcher, type Query, toFts } from './query.ts'

export type SearchAsk = {
  readonly query: Query
  readonly room?: string
  readonly page?: string
  readonly kind?: string
  /** Identity id. */
  readonly author?: string
  /** Numbers inside the room, exclusive. */
  readonly before?: number
  readonly after?: number
  readonly order: 'asc' | 'desc'
  /** Continue after this row; undefined: from the first. */
  readonly from?: number
  readonly limit: number
}

export type SearchAnswer =
  /** `reached`: it was given up there, and continues after this row; absent: all was searched, or the page is full. */
  | { readonly ok: true; readonly hits: readonly Hit[]; readonly reached?: number }
  | { readonly ok: false; readonly refusal: Refusal }

type Hit = { readonly id: string; readonly change: number }

declare module '../command/ports.ts' {
  interface Actors {
    /** Asks the search index; it answers with nothing older than this frame of the log. */
    search(ask: SearchAsk, through: number, answer: (answer: SearchAnswer | undefined) => void): void
  }
}

/** Consecutive rows whose texts lie in one table. */
export type Part = { readonly first: number; rows: number; bytes: number }

export function tableOf({ first }: Part): string {
  return `texts_${first}`
}

type Row = { readonly id: Uint8Array; readonly change: number; readonly words?: string }
type Value = string | number | bigint | Uint8Array

export class Search {
  readonly hits: Hit[] = []
  /** Parts that were looked through to their end. */
  parts = 0
  readonly #database: DatabaseSync
  readonly #all: readonly Part[]
  readonly #ask: SearchAsk
  readonly #conditions: readonly string[]
  readonly #values: readonly Value[]
  /** Whether the words of a text hold the phrases asked for; undefined: there are none. */
  readonly #holds: ((words: string) => boolean) | undefined
  /** Everything up to this row was looked at; undefined: nothing was. */
  #reached: number | undefined
  #isOver = false

  /** `parts`: ascending, and more may be added at the end. `now`: what has expired by then is not found. */
  constructor(database: DatabaseSync, parts: readonly Part[], ask: SearchAsk, now: number) {
    this.#database = database
    this.#all = parts
    this.#ask = ask
    const { match, isByText } = toFts(ask.query)
    this.#holds = isByText ? phraseMatcher(ask.query) : undefined
    this.#reached = ask.from
    const { room, page, kind, author, before, after } = ask
    const conditions = ['docs.hidden = 0', '(docs.expires = 0 OR docs.expires > ?)']
    const values: Value[] = [match, now]
    const also = (condition: string, value: Value | undefined) => {
      if (value === undefined) return
      conditions.push(condition)
      values.push(value)
    }
    also('docs.room = ?', room)
    also('docs.page = ?', page)
    also('docs.kind = ?', kind)
    also('docs.author = ?', author === undefined ? undefined : Buffer.from(author, 'hex'))
    also('docs.seq < ?', before)
    also('docs.seq > ?', after)
    this.#conditions = conditions
    this.#values = values
  }

  /** The page is full, or nothing is left to look at. */
  get isOver(): boolean {
    return this.#isOver
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
      if (this.#holds?.(words!) !== false) this.hits.push({ id: Buffer.from(id).toString('hex'), change })
      this.#isOver = this.hits.length === this.#ask.limit
      rows++
      if (this.#isOver || rows === rowsMax) return
    }
    this.parts++
    const isUp = this.#ask.order === 'asc'
    const next = this.#all[isUp ? at + 1 : at - 1]
    this.#isOver = next === undefined
    this.#reached = isUp ? (next?.first ?? 0) - 1 : part.first
  }

  /** Place of the part that holds the first row after `#reached`; none: -1, or the number of parts. */
  #nextPart(): number {
    const reached = this.#reached
    const parts = this.#all
    if (this.#ask.order === 'desc')
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
    const sql = `SELECT docs.id AS id, docs.change AS change${this.#holds === undefined ? '' : `, ${table}.text AS words`}
      FROM ${table} CROSS JOIN docs ON docs.change = ${table}.rowid
      WHERE ${table} MATCH ? AND ${this.#conditions.join(' AND ')}
      ${from === undefined ? '' : `AND ${table}.rowid ${isUp ? '>' : '<'} ?`} ORDER BY ${table}.rowid ${isUp ? 'ASC' : 'DESC'}`
    // As an integer: FTS5 does not look at a row number that is bound as a real.
    const values = from === undefined ? this.#values : [...this.#values, BigInt(from)]
    return this.#database.prepare(sql).iterate(...values) as Iterable<Row>
  }
}
