/**
 * The index for full-text search: one row for each public event that has a text, in an SQLite database with FTS5.
 *
 * The index is derived: it may be deleted at any time and is rebuilt from the log and the journals, as is one in another format. A row's
 * number is the change of the event's first version, so the newest event has the greatest; its text is that of the newest version. Redacted
 * and expired texts are deleted and overwritten (secure_delete); hidden ones stay but are not found.
 *
 *   meta(name, value)    format, the log that it follows, the newest frame indexed, the number of names, and the part merged last
 *   names(name, number)  rooms, pages, kinds and authors, each once
 *   docs(change, id, room, page, kind, author, seq, expires, hidden), by the numbers of their names
 *   parts(first, rows, bytes)
 *   texts_<first>(text)  FTS5: the folded words of a text, by the same row numbers, from `first` up to the next part
 *
 * Texts are split into parts because one step inside FTS5 cannot be interrupted: the part size bounds the cost of a step, however large the
 * board is. No positions are stored (detail=none), which halves the index; phrases are searched in the texts that contain their words.
 * Prefixes of two and three letters have their own index. A full part is merged gradually, one step with each batch.
 *
 * Its pages have checksums (page-sums.ts), which are checked when the index is opened.
 *
 * Every batch of changes is one transaction together with the frame it reaches, so after a crash it continues from there.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { AuthorFacts, HideFacts, RedactFacts, RestoreFacts } from '../../actors/posts/marks.ts'
import { ActsOf, type BoardRecord, commandIn, type PostRecord, RecordType } from '../../actors/records/record.ts'
import { BoundedMap } from '../../storage/bounded-map.ts'
import { machineDisk } from '../../storage/machine-disk.ts'
import { type DatabaseSync, openDatabase } from '../sqlite.ts'
import { BadPage, checkPages, PageSums } from './page-sums.ts'
import { wordsOf } from './query.ts'
import { type Part, Search, type SearchAsk, tableOf } from './search.ts'

type Value = string | number | bigint | Uint8Array

const hides = new ActsOf<HideFacts>('room.hide')
const restores = new ActsOf<RestoreFacts>('room.restore')
const withAuthor = new ActsOf<AuthorFacts>('author.hide')
const againWithAuthor = new ActsOf<AuthorFacts>('author.show')
const redactions = new ActsOf<RedactFacts>('event.redact')

const format = '3'
/** Maximum of one part, in rows and in bytes of words. A prefix that every text has is then looked up in some 20 ms. */
const partMaxDefault = { rows: 65_536, bytes: 16 * 1024 * 1024 }

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA secure_delete = ON;
  PRAGMA cache_size = -2048;
  CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS names (name BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS docs (
    change INTEGER PRIMARY KEY, id BLOB NOT NULL, room INTEGER NOT NULL, page INTEGER NOT NULL, kind INTEGER NOT NULL,
    author INTEGER NOT NULL, seq INTEGER NOT NULL, expires INTEGER NOT NULL, hidden INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS docs_id ON docs (substr(id, 1, 4));
  CREATE INDEX IF NOT EXISTS docs_expires ON docs (expires) WHERE expires > 0;
  CREATE TABLE IF NOT EXISTS parts (first INTEGER PRIMARY KEY, rows INTEGER NOT NULL, bytes INTEGER NOT NULL);
`

/** Pages of a full part's word lists written per merge step: some 6 ms. */
const mergePages = 48

/** By its first bytes, which are indexed, and by the whole id. */
const byId = 'substr(id, 1, 4) = substr(?1, 1, 4) AND id = ?1'
/** Most recently used ones. */
const numbersKeptMax = 16_384

/** The tokenizer splits words only at spaces: non-ASCII characters belong to words, and words are folded beforehand. */
const textsOf = (table: string) => `
  CREATE VIRTUAL TABLE ${table}
    USING fts5 (text, tokenize = "ascii", detail = none, columnsize = 0, prefix = "2 3");
  INSERT INTO ${table} (${table}, rank) VALUES ('secure-delete', 1);
  INSERT INTO ${table} (${table}, rank) VALUES ('automerge', 8);
`

export class SearchIndex {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, ReturnType<DatabaseSync['prepare']>>()
  /** Unix seconds at which the next text in it expires; infinity if none will. */
  #due: number
  /** Newest frame of the log that has been indexed. */
  #applied: number
  #open = false
  #deleted = false
  /** In ascending order; rows are added to the last. */
  readonly #parts: Part[] = []
  /** `first` of the part that was merged last. Parts up to it take no more space than they need. */
  #merged = -1
  /** `first` of the part that is being merged. */
  #merging = -1
  readonly #partMax: typeof partMaxDefault
  readonly #sums: PageSums
  /** Names have numbers up to this one. */
  #lastNumber = 0
  readonly #numbers = new BoundedMap<string, number>(numbersKeptMax)

  /**
   * Opens the index in this directory. Rebuilds it if it belongs to another log or format, is ahead of the log, or is damaged. `onBad` is
   * called with the damage.
   */
  static open(
    directory: string,
    logId: string,
    through: number,
    partMax = partMaxDefault,
    onBad: (problem: string) => void = () => {},
  ): SearchIndex {
    try {
      for (const _ of checkPages(machineDisk, directory)) void _
      return new SearchIndex(directory, logId, through, partMax)
    } catch (error) {
      if (error instanceof BadPage) onBad(error.message)
      wipe(directory)
      return new SearchIndex(directory, logId, through, partMax)
    }
  }

  private constructor(directory: string, logId: string, through: number, partMax: typeof partMaxDefault) {
    this.#partMax = partMax
    // SQLite opens files on the real machine, so the directory must exist there too.
    machineDisk.makeDirectory(directory)
    this.#database = openDatabase(join(directory, 'index.db'))
    try {
      this.#database.exec(schema)
      this.#sums = new PageSums(machineDisk, directory, this.#database)
      const isOurs = this.#meta('format') === format && this.#meta('log') === logId
      this.#applied = isOurs ? Number(this.#meta('applied')) : 0
      if ((this.#meta('format') !== undefined && !isOurs) || this.#applied > through)
        throw new Error('an index of another log')
      if (!isOurs) {
        this.#note('format', format)
        this.#note('log', logId)
        this.#note('applied', '0')
      }
      this.#load()
      this.#due = this.#nextDue()
      // The process may have been killed between a deletion and this.
      this.#emptyLog()
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  get applied(): number {
    return this.#applied
  }

  /** Whether a text in it has expired, which `settle` removes. */
  isDue(now: number): boolean {
    return this.#due <= now
  }

  /** Seconds until the next text expires; infinity if none will. */
  dueIn(now: number): number {
    return Math.max(0, this.#due - now)
  }

  /** Adds one public record; `key`: 16-byte id of its command. Committed when `settle` is called. */
  add(record: BoardRecord, key: Uint8Array, change: number): void {
    this.#begin()
    if (record.type === RecordType.event) {
      if (record.original === undefined) this.#post(record, key, change)
      else this.#edit(record, record.original)
    } else if (record.type === RecordType.act) {
      if (hides.is(record)) this.#run(`UPDATE docs SET hidden = hidden | 1 WHERE ${byId}`, record.facts.id)
      else if (restores.is(record)) this.#run(`UPDATE docs SET hidden = hidden & ~1 WHERE ${byId}`, record.facts.id)
      else if (withAuthor.is(record)) this.#run(`UPDATE docs SET hidden = hidden | 2 WHERE ${byId}`, record.facts.id)
      else if (againWithAuthor.is(record))
        this.#run(`UPDATE docs SET hidden = hidden & ~2 WHERE ${byId}`, record.facts.id)
      else if (redactions.is(record)) this.#delete(byId, record.facts.id)
    }
  }

  /** Commits everything up to this frame of the log. `now`: texts that have expired by then are removed. */
  settle(applied: number, now: number): void {
    this.#begin()
    this.#delete('expires > 0 AND expires <= ?', now)
    this.#mergeNext()
    this.#note('names', String(this.#lastNumber))
    this.#note('applied', String(applied))
    this.#database.exec('COMMIT')
    this.#open = false
    this.#applied = applied
    this.#due = this.#nextDue()
    if (!this.#deleted) return this.#sums.afterCommit()
    this.#emptyLog()
    this.#deleted = false
  }

  /** Rolls back what was added since the last `settle`. */
  takeBack(): void {
    if (!this.#open) return
    this.#database.exec('ROLLBACK')
    this.#open = false
    this.#deleted = false
    this.#load()
  }

  /** Creates a search; nothing is looked up before its first step. Records may be added between its steps. */
  search(ask: SearchAsk, now: number): Search {
    return new Search(this.#database, this.#parts, ask, now)
  }

  /** Uncommitted changes are dropped: after some errors (a full disk) SQLite has already rolled them back. */
  close(): void {
    try {
      // SQLite would checkpoint the log on its own, and the checksums would not match.
      if (this.#open) this.#database.exec('ROLLBACK')
      this.#sums.putIn()
    } catch {
      // For example on a full disk: the next start rebuilds the index.
    }
    this.#database.close()
  }

  #post(event: PostRecord, key: Uint8Array, change: number): void {
    const text = textOf(event)
    if (text === undefined) return
    const { room, page, kind, author, seq, expires = 0 } = event
    const [inRoom, onPage, ofKind, by] = [room, page, kind, author].map((name) => this.#numberOf(name))
    const fields = [change, key, inRoom!, onPage!, ofKind!, by!, seq, expires] as const
    this.#run('INSERT INTO docs VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)', ...fields)
    const words = wordsOf(text).join(' ')
    const part = this.#partFor(change)
    part.rows++
    part.bytes += words.length
    this.#run(`INSERT INTO ${tableOf(part)} (rowid, text) VALUES (?, ?)`, change, words)
    this.#run('UPDATE parts SET rows = ?, bytes = ? WHERE first = ?', part.rows, part.bytes, part.first)
  }

  /** Loads what is cached in memory from the database. */
  #load(): void {
    const parts = this.#prepare('SELECT first, rows, bytes FROM parts ORDER BY first').all() as Part[]
    this.#parts.splice(0, this.#parts.length, ...parts.map((part) => ({ ...part })))
    this.#lastNumber = Number(this.#meta('names') ?? 0)
    this.#numbers.clear()
    this.#merged = Number(this.#meta('merged') ?? -1)
    this.#merging = -1
  }

  /** The number of a room, page, kind or author, assigned now if it has none. */
  #numberOf(name: string | Uint8Array): number {
    // No text of a command contains a NUL.
    const key = typeof name === 'string' ? name : `\0${Buffer.from(name).toString('latin1')}`
    let number = this.#numbers.get(key)
    if (number !== undefined) return number
    const found = this.#prepare('SELECT number FROM names WHERE name = ?').get(name) as { number: number } | undefined
    number = found?.number ?? ++this.#lastNumber
    if (found === undefined) this.#run('INSERT INTO names VALUES (?, ?)', name, number)
    this.#numbers.set(key, number)
    return number
  }

  /** The last part, or a new one if that is full. */
  #partFor(change: number): Part {
    const last = this.#parts.at(-1)
    if (last !== undefined && last.rows < this.#partMax.rows && last.bytes < this.#partMax.bytes) return last
    const part = { first: change, rows: 0, bytes: 0 }
    this.#database.exec(textsOf(tableOf(part)))
    this.#run('INSERT INTO parts VALUES (?, 0, 0)', change)
    this.#parts.push(part)
    return part
  }

  /** The table with the text of this row. */
  #tableWith(change: number): string {
    return tableOf(this.#parts.findLast(({ first }) => first <= change)!)
  }

  #edit(event: PostRecord, original: Uint8Array): void {
    const text = textOf(event)
    const found = this.#prepare(`SELECT change FROM docs WHERE ${byId}`).get(original) as { change: number } | undefined
    if (text === undefined || found === undefined) return
    const table = this.#tableWith(found.change)
    this.#run(`UPDATE ${table} SET text = ? WHERE rowid = ?`, wordsOf(text).join(' '), found.change)
    this.#deleted = true
  }

  #delete(condition: string, value: Value): void {
    const found = this.#prepare(`SELECT change FROM docs WHERE ${condition}`).all(value) as { change: number }[]
    for (const { change } of found) {
      this.#run(`DELETE FROM ${this.#tableWith(change)} WHERE rowid = ?`, change)
      this.#run('DELETE FROM docs WHERE change = ?', change)
      this.#deleted = true
    }
  }

  /** Runs one step of merging the word lists of the oldest full part (https://www.sqlite.org/fts5.html#the_merge_command). */
  #mergeNext(): void {
    const part = this.#parts.find(({ first }) => first > this.#merged)
    if (part === undefined || part === this.#parts.at(-1)) return
    const table = tableOf(part)
    const isFirst = this.#merging !== part.first
    this.#merging = part.first
    const before = this.#totalChanges()
    this.#run(`INSERT INTO ${table} (${table}, rank) VALUES ('merge', ?)`, isFirst ? -mergePages : mergePages)
    if (isFirst || this.#totalChanges() - before >= 2) return
    this.#merged = part.first
    this.#note('merged', String(part.first))
  }

  #totalChanges(): number {
    return (this.#prepare('SELECT total_changes() AS changes').get() as { changes: number }).changes
  }

  /** Deleted texts must not stay readable in the write-ahead log either. */
  #emptyLog(): void {
    this.#sums.putIn()
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

  /** There are few distinct statements: three for each part. */
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

/** Deletes the files of an index. */
export function wipe(directory: string): void {
  rmSync(directory, { recursive: true, force: true })
}

/** Undefined if the text is gone and the journal holds only a stub. */
function textOf({ by }: PostRecord): string | undefined {
  if (by.signed.length === 0) return undefined
  const command = commandIn(by.signed)
  return command.text
}
