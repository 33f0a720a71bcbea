/**
 * How far deliveries have come, beside the journals: for each hook its places and how it fares, the newest deliveries of
 * plain webhooks, and which addresses have answered a challenge. SQLite, written by the thread that delivers alone.
 *
 * No event and no secret is in here, so its size follows the number of hooks and not what happens. It is written some
 * times a second; what a kill takes is delivered again under the same ids. Without the file every hook begins where it was
 * made.
 *
 *   tails      (id 0) JSON of the next place of each source: everything before was handed to the hooks it is for
 *   hooks      one that is idle stands at the tails; any other at its own places, and `taken` kinds of the first are done
 *   deliveries the newest of each plain webhook, `n` in order
 *   verified   until when (Unix seconds) an address need not be challenged again for this owner
 */
import { join } from 'node:path'
import { makeDirectory } from '../../storage/disk.ts'
import { type DatabaseSync, openDatabase } from '../search/sqlite.ts'
import type { Course } from './retry.ts'

/** Deliveries that are remembered of a webhook. */
export const deliveriesKept = 100

export type Place = {
  readonly epoch: number
  readonly idle: boolean
  readonly marks: readonly number[]
  /** Of each source: kinds of the change at its mark that are done. */
  readonly taken: readonly number[]
  readonly course: Course
  /** Number of the newest redelivery that was made. */
  readonly redone: number
  /** Tree size of the newest head that was delivered. */
  readonly headSize: number
}

export type DeliveryState = 'delivered' | 'waiting' | 'given_up' | 'skipped'

/** One event for one webhook, and what came of it: enough to build and send it again. */
export type DeliveryRow = {
  readonly event: string
  readonly kind: string
  readonly source: number
  readonly position: number
  readonly subject: string
  readonly item: number
  readonly work: string
  /** Unix seconds: when it happened. */
  readonly at: number
  readonly state: DeliveryState
  readonly attempts: number
  /** HTTP status of the last attempt, 0 = no answer. */
  readonly status: number
  readonly error: string
  /** Unix seconds of the last attempt. */
  readonly attemptedAt: number
}

export type Commit = {
  readonly tails: readonly number[]
  readonly places: ReadonlyMap<string, Place>
  readonly removed: readonly string[]
  readonly deliveries: readonly { readonly hook: string; readonly row: DeliveryRow }[]
}

const columns = 'event, kind, source, position, subject, item, work, at, state, attempts, status, error, attemptedAt'

export class DeliveryStore {
  readonly #database: DatabaseSync
  readonly #written = new Map<string, number>()

  private constructor(database: DatabaseSync) {
    this.#database = database
  }

  static open(directory: string): DeliveryStore {
    makeDirectory(directory)
    const database = openDatabase(join(directory, 'delivery.sqlite'))
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA journal_size_limit = 4194304;
      CREATE TABLE IF NOT EXISTS tails (id INTEGER PRIMARY KEY, marks TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS hooks (id TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS deliveries (
        n INTEGER PRIMARY KEY AUTOINCREMENT, hook TEXT NOT NULL, event TEXT NOT NULL, kind TEXT NOT NULL,
        source INTEGER NOT NULL, position INTEGER NOT NULL, subject TEXT NOT NULL, item INTEGER NOT NULL,
        work TEXT NOT NULL, at INTEGER NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL,
        status INTEGER NOT NULL, error TEXT NOT NULL, attemptedAt INTEGER NOT NULL, UNIQUE (hook, event));
      CREATE INDEX IF NOT EXISTS newest ON deliveries (hook, n);
      CREATE TABLE IF NOT EXISTS verified (
        owner TEXT NOT NULL, url TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (owner, url)) WITHOUT ROWID;
    `)
    return new DeliveryStore(database)
  }

  tails(): readonly number[] | undefined {
    const row = this.#database.prepare('SELECT marks FROM tails WHERE id = 0').get() as { marks: string } | undefined
    return row === undefined ? undefined : (JSON.parse(row.marks) as number[])
  }

  places(): Map<string, Place> {
    const rows = this.#database.prepare('SELECT id, place FROM hooks').all() as { id: string; place: string }[]
    return new Map(rows.map(({ id, place }) => [id, JSON.parse(place) as Place]))
  }

  /** All of it or nothing: tails that are ahead of a hook's place would lose what lies between. */
  commit(commit: Commit): void {
    this.#database.exec('BEGIN')
    try {
      this.#write(commit)
      this.#database.exec('COMMIT')
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
      throw error
    }
  }

  #write({ tails, places, removed, deliveries }: Commit): void {
    const database = this.#database
    database.prepare('INSERT OR REPLACE INTO tails VALUES (0, ?)').run(JSON.stringify(tails))
    const put = database.prepare('INSERT OR REPLACE INTO hooks VALUES (?, ?)')
    for (const [id, place] of places) put.run(id, JSON.stringify(place))
    const add = database.prepare(
      `INSERT INTO deliveries (hook, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (hook, event) DO UPDATE SET state = excluded.state, attempts = excluded.attempts,
         status = excluded.status, error = excluded.error, attemptedAt = excluded.attemptedAt`,
    )
    for (const { hook, row } of deliveries) {
      const { event, kind, source, position, subject, item, work, at } = row
      const { state, attempts, status, error, attemptedAt } = row
      add.run(
        ...[hook, event, kind, source, position, subject, item],
        ...[work, at, state, attempts, status, error, attemptedAt],
      )
      this.#forgetOld(hook)
    }
    for (const id of removed) {
      database.prepare('DELETE FROM hooks WHERE id = ?').run(id)
      database.prepare('DELETE FROM deliveries WHERE hook = ?').run(id)
      this.#written.delete(id)
    }
  }

  /** Newest first, those below `n`. */
  deliveries(hook: string, below: number, limit: number): (DeliveryRow & { readonly n: number })[] {
    const found = this.#database.prepare(
      `SELECT n, ${columns} FROM deliveries WHERE hook = ? AND n < ? ORDER BY n DESC LIMIT ?`,
    )
    return found.all(hook, below, limit) as unknown as (DeliveryRow & { n: number })[]
  }

  delivery(hook: string, event: string): DeliveryRow | undefined {
    const found = this.#database.prepare(`SELECT ${columns} FROM deliveries WHERE hook = ? AND event = ?`)
    return found.get(hook, event) as unknown as DeliveryRow | undefined
  }

  isVerified(owner: string, url: string, now: number): boolean {
    const found = this.#database.prepare('SELECT until FROM verified WHERE owner = ? AND url = ?').get(owner, url)
    return found !== undefined && (found as { until: number }).until > now
  }

  verified(owner: string, url: string, until: number, now: number): void {
    this.#database.prepare('DELETE FROM verified WHERE until <= ?').run(now)
    this.#database.prepare('INSERT OR REPLACE INTO verified VALUES (?, ?, ?)').run(owner, url, until)
  }

  close(): void {
    this.#database.close()
  }

  /** Now and then: a few more than are promised may be there. */
  #forgetOld(hook: string): void {
    const written = (this.#written.get(hook) ?? 0) + 1
    this.#written.set(hook, written % 20)
    if (written < 20) return
    this.#database
      .prepare(
        `DELETE FROM deliveries WHERE hook = ? AND n <= (
           SELECT n FROM deliveries WHERE hook = ? ORDER BY n DESC LIMIT 1 OFFSET ${deliveriesKept})`,
      )
      .run(hook, hook)
  }
}
