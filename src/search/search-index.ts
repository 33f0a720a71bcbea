/**
 * The index of full-text search: one row for each public event that has a text, in an SQLite database with FTS5.
 *
 * Derived: it may be deleted at any time and is made again from the log and the journals. A row's number is the change of the
 * event's first version, so the newest event has the greatest; its text is that of the newest version. What is redacted or has
 * expired is deleted and overwritten (secure_delete), what is hidden is kept and not found.
 *
 *   meta(name, value)    format, which log it follows, and the log's frame it has come to
 *   docs(change, id, room, page, kind, author, seq, expires, hidden)
 *   texts(text)          FTS5, unicode61 without marks on letters, by the same row numbers
 *
 * Every batch of changes is one transaction with the frame it comes to, so after a crash it goes on from what it has.
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type BoardRecord, type Event, RecordType } from '../../actors/record.ts'
import { makeDirectory } from '../../storage/disk.ts'
import type { Refusal } from '../refusals.ts'
import { type Query, toFts } from './query.ts'
import { type DatabaseSync, openDatabase } from './sqlite.ts'

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
  /** Go on behind this row; undefined: from the first. */
  readonly from?: number
  readonly limit: number
}

export type SearchAnswer =
  | { readonly ok: true; readonly hits: readonly Hit[] }
  | { readonly ok: false; readonly refusal: Refusal }

type Value = string | number | bigint | Uint8Array

export type Hit = { readonly id: string; readonly change: number }

const format = '1'

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA secure_delete = ON;
  PRAGMA cache_size = -2048;
  CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS docs (
    change INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, room TEXT NOT NULL, page TEXT NOT NULL, kind TEXT NOT NULL,
    author BLOB NOT NULL, seq INTEGER NOT NULL, expires INTEGER NOT NULL, hidden INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS docs_expires ON docs (expires) WHERE expires > 0;
  CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (text, tokenize = "unicode61 remove_diacritics 2");
  INSERT INTO texts (texts, rank) VALUES ('secure-delete', 1);
`

export class SearchIndex {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, ReturnType<DatabaseSync['prepare']>>()
  /** Unix seconds at which the next text in it expires; infinity: none will. */
  #due: number
  /** Newest frame of the log that is in it. */
  #applied: number
  #open = false
  #deleted = false

  /** Opens the index in this directory, made anew when it is of another log or format, ahead of the log, or damaged. */
  static open(directory: string, logId: string, through: number): SearchIndex {
    try {
      return new SearchIndex(directory, logId, through)
    } catch {
      wipe(directory)
      return new SearchIndex(directory, logId, through)
    }
  }

  private constructor(directory: string, logId: string, through: number) {
    makeDirectory(directory)
    this.#database = openDatabase(join(directory, 'index.db'))
    try {
      this.#database.exec(schema)
      const isOurs = this.#meta('format') === format && this.#meta('log') === logId
      this.#applied = isOurs ? Number(this.#meta('applied')) : 0
      if ((this.#meta('format') !== undefined && !isOurs) || this.#applied > through)
        throw new Error('an index of another log')
      if (!isOurs) {
        this.#note('format', format)
        this.#note('log', logId)
        this.#note('applied', '0')
      }
      this.#due = this.#nextDue()
      // A kill may have come between a deletion and this.
      this.#emptyLog()
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  get applied(): number {
    return this.#applied
  }

  /** There is a text in it that has expired: `settle` takes it out. */
  isDue(now: number): boolean {
    return this.#due <= now
  }

  /** Seconds until then; infinity: never. */
  dueIn(now: number): number {
    return Math.max(0, this.#due - now)
  }

  /** Takes one public record; `key`: 16-byte id of its command. Kept when `settle` is called. */
  add(record: BoardRecord, key: Uint8Array, change: number): void {
    this.#begin()
    if (record.type === RecordType.event) {
      if (record.original === undefined) this.#post(record, key, change)
      else this.#edit(record, record.original)
    } else if (record.type === RecordType.act) {
      const { id } = record.facts as { id?: Uint8Array }
      if (record.op === 'room.hide') this.#run('UPDATE docs SET hidden = 1 WHERE id = ?', id!)
      else if (record.op === 'room.restore') this.#run('UPDATE docs SET hidden = 0 WHERE id = ?', id!)
      else if (record.op === 'event.redact') this.#delete('id = ?', id!)
    }
  }

  /** Everything up to this frame of the log is in: makes it lasting. `now`: what has expired by then leaves. */
  settle(applied: number, now: number): void {
    this.#begin()
    this.#delete('expires > 0 AND expires <= ?', now)
    this.#note('applied', String(applied))
    this.#database.exec('COMMIT')
    this.#open = false
    this.#applied = applied
    this.#due = this.#nextDue()
    if (!this.#deleted) return
    this.#emptyLog()
    this.#deleted = false
  }

  find(ask: SearchAsk, now: number): Hit[] {
    const { query, room, page, kind, author, before, after, order, from, limit } = ask
    const where: string[] = ['texts MATCH ?', 'docs.hidden = 0', '(docs.expires = 0 OR docs.expires > ?)']
    const values: Value[] = [toFts(query), now]
    const also = (condition: string, value: Value | undefined) => {
      if (value === undefined) return
      where.push(condition)
      values.push(value)
    }
    // As an integer: FTS5 does not look at a row number that is bound as a real.
    also(order === 'asc' ? 'texts.rowid > ?' : 'texts.rowid < ?', from === undefined ? undefined : BigInt(from))
    also('docs.room = ?', room)
    also('docs.page = ?', page)
    also('docs.kind = ?', kind)
    also('docs.author = ?', author === undefined ? undefined : Buffer.from(author, 'hex'))
    also('docs.seq < ?', before)
    also('docs.seq > ?', after)
    const sql = `SELECT docs.id AS id, docs.change AS change FROM texts CROSS JOIN docs ON docs.change = texts.rowid
      WHERE ${where.join(' AND ')} ORDER BY texts.rowid ${order === 'asc' ? 'ASC' : 'DESC'} LIMIT ?`
    const rows = this.#prepare(sql).all(...values, limit) as { id: Uint8Array; change: number }[]
    return rows.map(({ id, change }) => ({ id: Buffer.from(id).toString('hex'), change }))
  }

  /** What was not settled is gone: after some faults (a full disk) SQLite has taken it back already. */
  close(): void {
    this.#database.close()
  }

  #post(event: Event, key: Uint8Array, change: number): void {
    const text = textOf(event)
    if (text === undefined) return
    const { room, page, kind, author, seq, expires = 0 } = event
    const fields = [change, key, room, page, kind, author, seq, expires] as const
    this.#run('INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)', ...fields)
    this.#run('INSERT INTO texts (rowid, text) VALUES (?, ?)', change, text)
  }

  #edit(event: Event, original: Uint8Array): void {
    const text = textOf(event)
    const found = this.#prepare('SELECT change FROM docs WHERE id = ?').get(original) as { change: number } | undefined
    if (text === undefined || found === undefined) return
    this.#run('UPDATE texts SET text = ? WHERE rowid = ?', text, found.change)
    this.#deleted = true
  }

  #delete(condition: string, value: Value): void {
    const found = this.#prepare(`SELECT change FROM docs WHERE ${condition}`).all(value) as { change: number }[]
    for (const { change } of found) {
      this.#run('DELETE FROM texts WHERE rowid = ?', change)
      this.#run('DELETE FROM docs WHERE change = ?', change)
      this.#deleted = true
    }
  }

  /** What was deleted is not to stay readable in the write-ahead log either. */
  #emptyLog(): void {
    this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  }

  #nextDue(): number {
    const sql = 'SELECT min(expires) AS due FROM docs WHERE expires > 0'
    return (this.#prepare(sql).get() as { due: number | null }).due ?? Number.POSITIVE_INFINITY
  }

  #begin(): void {
    if (this.#open) return
    this.#database.exec('BEGIN')
    this.#open = true
  }

  #run(sql: string, ...values: readonly Value[]): void {
    this.#prepare(sql).run(...values)
  }

  /** Few statements are ever made: conditions of a search are the only parts that vary. */
  #prepare(sql: string): ReturnType<DatabaseSync['prepare']> {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #meta(name: string): string | undefined {
    const found = this.#prepare('SELECT value FROM meta WHERE name = ?').get(name) as { value: string } | undefined
    return found?.value
  }

  #note(name: string, value: string): void {
    this.#run('INSERT OR REPLACE INTO meta VALUES (?, ?)', name, value)
  }
}

/** The files of an index, gone. */
export function wipe(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}

/** Undefined: the text is gone, and what stands in the journal is a stub. */
function textOf({ by }: Event): string | undefined {
  if (by.signed.length === 0) return undefined
  const { command } = JSON.parse(Buffer.from(by.signed).toString('utf8')) as { command: { text?: string } }
  return command.text
}
