/**
 * The store of delivery positions, separate from the journals: for each hook its positions and status, the newest deliveries of
 * plain webhooks, and which addresses have answered a challenge. SQLite, written only by the delivery thread.
 *
 * It contains no events and no secrets, so its size depends on the number of hooks and not on activity. It is written several
 * times a second; what a kill loses is delivered again under the same ids. Without the file, every hook begins where it was
 * created.
 *
 *   tails      (id 0) JSON of the next position of each source: everything before was handed to the hooks it is for
 *   hooks      an idle one is at the tails, or at its own positions if those are further on (it was created ahead
 *              of what is read); any other is at its own positions, and `taken` kinds of the first change are done
 *   recent     the newest deliveries of each plain webhook, one row per write: `last` is the
 *              number of the newest of them, and `rows` JSON of [number, columns ...] of each
 *   verified   until when (Unix seconds) an address need not be challenged again for this owner
 */

import { join } from 'node:path'
import { NewerFormat } from '../../storage/disk.ts'
import { machineDisk as disk } from '../../storage/machine-disk.ts'
import { type DatabaseSync, openDatabase } from '../sqlite.ts'
import type { Course } from './retry.ts'

/** Deliveries remembered per webhook. */
export const deliveriesKept = 100

export type Place = {
  readonly epoch: number
  readonly idle: boolean
  readonly marks: readonly number[]
  /** For each source: the kinds that are done, of the change at its mark. */
  readonly taken: readonly number[]
  readonly course: Course
  /** How often it had been woken: a hook woken since, before that was written here, resumes. Absent in older rows. */
  readonly wakes?: number
  /** Number of the newest redelivery that was made. */
  readonly redone: number
  /** Tree size of the newest head that was delivered. */
  readonly headSize: number
}

type DeliveryState = 'delivered' | 'waiting' | 'given_up' | 'skipped'

/** One event for one webhook, and the outcome: enough to build and send it again. */
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

type Verified = { readonly owner: string; readonly url: string; readonly until: number }

/** Files of older releases have version 0 and the same tables. */
const storeVersion = 1

const columns = [
  ...(['event', 'kind', 'source', 'position', 'subject', 'item', 'work', 'at'] as const),
  ...(['state', 'attempts', 'status', 'error', 'attemptedAt'] as const),
]
/** `n` grows by one with each delivery of a webhook. */
export type NumberedDelivery = DeliveryRow & { readonly n: number }
/** Rows that are written before old ones are searched for and deleted. */
const forgetEvery = 20

export class DeliveryStore {
  readonly #database: DatabaseSync
  /** For webhooks that were written to: number of the newest delivery, and up to which the old ones were deleted. */
  readonly #written = new Map<string, { last: number; forgotten: number }>()
  readonly #statements

  private constructor(database: DatabaseSync) {
    this.#database = database
    this.#statements = {
      tails: database.prepare('INSERT OR REPLACE INTO tails VALUES (0, ?)'),
      place: database.prepare('INSERT OR REPLACE INTO hooks VALUES (?, ?)'),
      rows: database.prepare('SELECT rows FROM recent WHERE hook = ? ORDER BY last'),
      last: database.prepare('SELECT max(last) AS last FROM recent WHERE hook = ?'),
      add: database.prepare('INSERT INTO recent (hook, last, rows) VALUES (?, ?, ?)'),
      forget: database.prepare('DELETE FROM recent WHERE hook = ? AND last <= ?'),
      end: database.prepare('DELETE FROM hooks WHERE id = ?'),
      verified: database.prepare('SELECT until FROM verified WHERE owner = ? AND url = ?'),
    }
  }

  /** `onDamage`: called with a damaged file that was set aside, and what was wrong with it. */
  static open(directory: string, onDamage: (file: string, problem: string) => void = () => {}): DeliveryStore {
    // SQLite opens files of this machine, whatever disk the board is given.
    disk.makeDirectory(directory)
    const problem = damageIn(directory)
    if (problem !== undefined) {
      setAside(directory)
      onDamage(storeFile(directory), problem)
    }
    return DeliveryStore.in(openDatabase(storeFile(directory)), storeFile(directory))
  }

  /** Uses an open database; `file`: its name. */
  static in(database: DatabaseSync, file: string): DeliveryStore {
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version > storeVersion) {
      database.close()
      throw new NewerFormat(file, `has version ${version}`)
    }
    // `deliveries` is where older releases stored the newest ones. It is only a list to look at; deliveries do not depend on
    // it.
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA user_version = ${storeVersion};
      PRAGMA synchronous = NORMAL;
      PRAGMA journal_size_limit = 4194304;
      CREATE TABLE IF NOT EXISTS tails (id INTEGER PRIMARY KEY, marks TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS hooks (id TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS recent (
        id INTEGER PRIMARY KEY, hook TEXT NOT NULL, last INTEGER NOT NULL, rows TEXT NOT NULL);
      CREATE INDEX IF NOT EXISTS recent_of ON recent (hook, last);
      CREATE TABLE IF NOT EXISTS verified (
        owner TEXT NOT NULL, url TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (owner, url)) WITHOUT ROWID;
      DROP TABLE IF EXISTS deliveries;
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

  /** Undefined if nothing was handed to any hook yet. */
  leaderPositions(): LeaderPositions | undefined {
    const tails = this.tails()
    if (tails === undefined) return undefined
    const rows = this.#database.prepare('SELECT owner, url, until FROM verified').all() as Verified[]
    return { tails, places: [...this.places()], verified: rows.map(({ owner, url, until }) => [owner, url, until]) }
  }

  /** All or nothing: if the tails were ahead of a hook's position, what is in between would be lost. */
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
    this.#statements.tails.run(JSON.stringify(tails))
    for (const [id, place] of places) this.#statements.place.run(id, JSON.stringify(place))
    for (const [hook, rows] of Map.groupBy(deliveries, (each) => each.hook))
      this.#add(
        hook,
        rows.map(({ row }) => row),
      )
    for (const id of removed) {
      this.#statements.end.run(id)
      this.#statements.forget.run(id, Number.MAX_SAFE_INTEGER)
      this.#written.delete(id)
    }
  }

  /** Newest first, those below `n`. */
  deliveries(hook: string, below: number, limit: number): NumberedDelivery[] {
    return this.#rows(hook)
      .filter(({ n }) => n < below)
      .slice(-limit)
      .reverse()
  }

  delivery(hook: string, event: string): DeliveryRow | undefined {
    return this.#rows(hook).find((row) => row.event === event)
  }

  /** Changes every remembered delivery. */
  moveRows(move: (row: DeliveryRow) => DeliveryRow): void {
    const all = this.#database.prepare('SELECT id, rows FROM recent').all() as { id: number; rows: string }[]
    const put = this.#database.prepare('UPDATE recent SET rows = ? WHERE id = ?')
    for (const { id, rows } of all) {
      const moved = rowsIn(rows).map((row) => packed({ ...move(row), n: row.n }))
      put.run(JSON.stringify(moved), id)
    }
  }

  isVerified(owner: string, url: string, now: number): boolean {
    const found = this.#statements.verified.get(owner, url)
    return found !== undefined && (found as { until: number }).until > now
  }

  verified(owner: string, url: string, until: number, now: number): void {
    this.#database.prepare('DELETE FROM verified WHERE until <= ?').run(now)
    this.#database.prepare('INSERT OR REPLACE INTO verified VALUES (?, ?, ?)').run(owner, url, until)
  }

  close(): void {
    this.#database.close()
  }

  /** For retries, the existing row is found and changed from time to time; new rows are appended without reading. */
  #add(hook: string, rows: readonly DeliveryRow[]): void {
    const { add, forget, last } = this.#statements
    const known = this.#written.get(hook)
    const state = known ?? { last: (last.get(hook) as { last: number | null }).last ?? 0, forgotten: 0 }
    if (known === undefined) this.#written.set(hook, state)
    const isAgain = rows.some(({ attempts }) => attempts > 1)
    const made = rows.map((row): NumberedDelivery => ({ ...row, n: ++state.last }))
    const after = isAgain ? merged([...this.#rows(hook), ...made]) : made
    if (isAgain) forget.run(hook, Number.MAX_SAFE_INTEGER)
    state.last = after.at(-1)!.n
    add.run(hook, state.last, JSON.stringify(after.slice(-deliveriesKept).map(packed)))
    if (state.last - state.forgotten < deliveriesKept + forgetEvery) return
    state.forgotten = state.last - deliveriesKept
    forget.run(hook, state.forgotten)
  }

  /** Oldest first, each event once, no more than `deliveriesKept`. */
  #rows(hook: string): NumberedDelivery[] {
    const found = this.#statements.rows.all(hook) as { rows: string }[]
    return merged(found.flatMap(({ rows }) => rowsIn(rows))).slice(-deliveriesKept)
  }
}

/** Where another box continues deliveries in place of this one, without the history of deliveries. */
export type LeaderPositions = {
  readonly tails: readonly number[]
  readonly places: readonly (readonly [hook: string, Place])[]
  readonly verified: readonly (readonly [owner: string, url: string, until: number])[]
}

/** Replaces the file in this directory, which must not be open. */
export function adoptPositions(directory: string, { tails, places, verified }: LeaderPositions): void {
  const file = storeFile(directory)
  disk.makeDirectory(directory)
  for (const name of [`${file}-wal`, `${file}-shm`, file]) disk.removeFile(name)
  const store = DeliveryStore.open(directory)
  try {
    store.commit({ tails, places: new Map(places), removed: [], deliveries: [] })
    for (const [owner, url, until] of verified) store.verified(owner, url, until, 0)
  } finally {
    store.close()
  }
}

export const storeFile = (directory: string) => join(directory, 'delivery.sqlite')

/** What is wrong with the file in this directory; undefined if there is none, or nothing is visibly wrong. */
export function damageIn(directory: string): string | undefined {
  if (!disk.fileExists(storeFile(directory))) return undefined
  let database: DatabaseSync | undefined
  try {
    database = openDatabase(storeFile(directory))
    const [found] = database.prepare('PRAGMA quick_check(1)').all() as { quick_check: string }[]
    if (found?.quick_check !== 'ok') return String(found?.quick_check)
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE name IN ('tails', 'hooks')").all()
    // A kill in the first moment can leave a file without them.
    if (tables.length < 2) return undefined
    const texts = database.prepare('SELECT marks AS text FROM tails UNION ALL SELECT place FROM hooks').all()
    for (const { text } of texts as { text: string }[]) JSON.parse(text)
    return undefined
  } catch (error) {
    const { errcode, message } = error as Error & { readonly errcode?: number }
    if (error instanceof SyntaxError || errcode === corrupt || errcode === notADatabase) return message
    throw error
  } finally {
    database?.close()
  }
}

/** Maps positions in the old journals to the new ones. `source`: 0 is the feed, n + 1 is shard n. */
export type NewPlaces = {
  readonly marks: (marks: readonly number[]) => readonly number[]
  readonly place: (source: number, position: number) => { readonly source: number; readonly position: number }
  /** Number of the record that created a webhook. */
  readonly epoch: (hook: string, epoch: number) => number
}

/** The shards have new journals: positions in this file are rewritten to match. It must not be open elsewhere. */
export function replaceDeliveries(directory: string, { marks, place, epoch }: NewPlaces): void {
  const store = DeliveryStore.open(directory)
  try {
    const tails = store.tails()
    const places = [...store.places()].map(([id, each]): [string, Place] => [
      id,
      // Only in the feed is a position known to mean the same change as before.
      { ...each, epoch: epoch(id, each.epoch), marks: marks(each.marks), taken: each.taken.slice(0, 1) },
    ])
    if (tails !== undefined) store.commit({ tails: marks(tails), places: new Map(places), removed: [], deliveries: [] })
    store.moveRows((row) => ({ ...row, ...place(row.source, row.position) }))
  } finally {
    store.close()
  }
}

/** Result codes of SQLite. */
const [corrupt, notADatabase] = [11, 26]

/** A damaged file is not read again; it replaces one that was set aside earlier. */
export function setAside(directory: string): void {
  const file = storeFile(directory)
  // The write-ahead log is useless without its file, and wrong for the new one.
  for (const name of [`${file}-wal`, `${file}-shm`]) disk.removeFile(name)
  disk.renameDurable(file, `${file}.damaged`)
}

/** Each event in the place of its first row, with the content of its last. */
function merged(rows: readonly NumberedDelivery[]): NumberedDelivery[] {
  const byEvent = new Map<string, NumberedDelivery>()
  for (const row of rows) byEvent.set(row.event, { ...row, n: byEvent.get(row.event)?.n ?? row.n })
  return [...byEvent.values()]
}

function packed(row: NumberedDelivery): unknown[] {
  return [row.n, ...columns.map((name) => row[name])]
}

function rowsIn(text: string): NumberedDelivery[] {
  return (JSON.parse(text) as unknown[][]).map(unpacked)
}

function unpacked([n, ...values]: unknown[]): NumberedDelivery {
  return { ...Object.fromEntries(columns.map((name, at) => [name, values[at]])), n } as unknown as NumberedDelivery
}
