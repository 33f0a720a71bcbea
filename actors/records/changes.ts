/**
 * What happened, in order: one row for every change that followers learn about. Columns of typed arrays, 16 bytes a row.
 *
 * A row's position is the change number in the feed, and the journal's number in a shard; both grow and are never used twice,
 * so a position is a cursor that survives restarts. The row names its subject: an event by slot, anything else by its id.
 */

import type { Board } from './board.ts'
import { bytesOf, type Columns, type Kept } from './columns.ts'
import { workStates } from './work-states.ts'

/** Kinds of rows; the numbers are in snapshots. */
export const changeKinds = [
  'event.posted',
  'event.superseded',
  'event.hidden',
  'event.restored',
  'event.redacted',
  'room.created',
  'document.written',
  'receiver.item',
  ...workStates.map((state) => `work.${state}` as const),
] as const
export type ChangeKind = (typeof changeKinds)[number]

/** Those that are about something else than an event or a room. */
const ofSubjects: ReadonlySet<ChangeKind> = new Set(
  changeKinds.filter((kind) => kind === 'document.written' || kind === 'receiver.item' || kind.startsWith('work.')),
)

export type Change = {
  /** Change number, or journal number in a shard. */
  readonly position: number
  readonly kind: ChangeKind
  /** Number of the room, or `nowhere`. */
  readonly room: number
  /** Slot of the event it is about; of an edit, the slot of the edit. 0xffff_ffff where it is about something else. */
  readonly slot: number
  /** Id (32 hex) of the document, receiver or work it is about, else ''. */
  readonly subject: string
  /** Unix seconds. */
  readonly at: number
}

export const nowhere = 0xffff_ffff

type Packed = readonly [count: number, Kept, Kept, Kept, Kept, Kept, subjects: readonly string[]]

const initialRows = 1024

export class Changes {
  #count = 0
  #position = new Float64Array(initialRows)
  #kind = new Uint8Array(initialRows)
  #room = new Uint32Array(initialRows)
  #about = new Uint32Array(initialRows)
  #at = new Uint32Array(initialRows)
  /** Ids of subjects that are no events. */
  readonly #subjects: string[] = []

  get count(): number {
    return this.#count
  }

  add(kind: ChangeKind, change: Omit<Change, 'kind'>): void {
    if (this.#count === this.#kind.length) this.#grow()
    const row = this.#count++
    this.#position[row] = change.position
    this.#kind[row] = changeKinds.indexOf(kind)
    this.#room[row] = change.room
    this.#about[row] = change.subject === '' ? change.slot : this.#subjects.push(change.subject) - 1
    this.#at[row] = change.at
  }

  at(row: number): Change {
    const kind = changeKinds[this.#kind[row]!]!
    const hasSubject = ofSubjects.has(kind)
    return {
      position: this.#position[row]!,
      kind,
      room: this.#room[row]!,
      slot: hasSubject ? nowhere : this.#about[row]!,
      subject: hasSubject ? this.#subjects[this.#about[row]!]! : '',
      at: this.#at[row]!,
    }
  }

  /** First row after this position, by binary search. */
  after(position: number): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#position[middle]! <= position) low = middle + 1
      else high = middle
    }
    return low
  }

  pack(columns: Columns): Packed {
    const keep = (column: Float64Array | Uint8Array | Uint32Array) => columns.put(bytesOf(column, this.#count))
    return [
      this.#count,
      keep(this.#position),
      keep(this.#kind),
      keep(this.#room),
      keep(this.#about),
      keep(this.#at),
      this.#subjects,
    ]
  }

  /** Takes over what `pack` gave. */
  restore([count, position, kind, room, about, at, subjects]: Packed, columns: Columns): void {
    const bufferOf = (kept: Kept, bytesEach: number) => columns.take(kept, initialRows * bytesEach).buffer
    this.#count = count
    this.#position = new Float64Array(bufferOf(position, 8))
    this.#kind = new Uint8Array(bufferOf(kind, 1))
    this.#room = new Uint32Array(bufferOf(room, 4))
    this.#about = new Uint32Array(bufferOf(about, 4))
    this.#at = new Uint32Array(bufferOf(at, 4))
    for (const subject of subjects) this.#subjects.push(subject)
  }

  #grow(): void {
    const rows = this.#kind.length * 2
    this.#position = grown(this.#position, new Float64Array(rows))
    this.#kind = grown(this.#kind, new Uint8Array(rows))
    this.#room = grown(this.#room, new Uint32Array(rows))
    this.#about = grown(this.#about, new Uint32Array(rows))
    this.#at = grown(this.#at, new Uint32Array(rows))
  }
}

function grown<Column extends Float64Array | Uint8Array | Uint32Array>(from: Column, to: Column): Column {
  to.set(from)
  return to
}

/** The row of a change to an event. */
export function eventChange(board: Board, slot: number, position: number, at: number): Omit<Change, 'kind'> {
  return { position, room: board.events.room[slot]!, slot, subject: '', at }
}
