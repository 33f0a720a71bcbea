/**
 * Votes, one per identity and event, and their sums. Three columns of typed arrays, 9 bytes a row, with an open-addressed table
 * of row numbers (6 to 8 bytes a row, at most 2/3 full). A row is never removed; a withdrawn vote is 0.
 *
 * The sums of an event are two extra rows, whose voter numbers belong to no identity; so is the score that it had on another
 * board. The row of a vote also has the hour in which it was cast: its number is the value times one more than the hour since
 * 1970.
 */

import { capacityFor } from '../../storage/snapshot.ts'
import { Doubling } from '../records/columns.ts'
import { NumberTable, none } from '../records/number-table.ts'

const forVoter = 0xffff_ffff
const againstVoter = 0xffff_fffe
/** For an imported event: the score of the votes on the board where it was first posted. */
const otherBoard = 0xffff_fffd
const initialRows = 64

export type Sums = { readonly up: number; readonly down: number; readonly score: number }
export type Value = 1 | -1 | 0
/** A current vote, and when it was cast: hours since 1970. */
export type Cast = { readonly value: Value; readonly hour: number }
/** The same, or the score of all votes on another board, at hour 0. */
export type Counted = Omit<Cast, 'value'> & { readonly value: number }
export type PackedVotes = readonly [event: Uint8Array, voter: Uint8Array, value: Uint8Array]

export class Votes {
  #rows = 0
  #event = new Uint32Array(initialRows)
  #voter = new Uint32Array(initialRows)
  #value = new Int32Array(initialRows)
  #longer: Longer | undefined
  readonly #table = new NumberTable(initialRows * 2, (row) => hashOf(this.#event[row]!, this.#voter[row]!))

  /** The vote of an identity (by number) on an event (by slot). */
  of(event: number, voter: number): Value {
    return this.cast(event, voter).value
  }

  /** The same, with its hour. */
  cast(event: number, voter: number): Cast {
    const row = this.#find(event, voter)
    return row === none ? { value: 0, hour: 0 } : castIn(this.#value[row]!)
  }

  /** Every vote that was ever cast; withdrawn ones are 0. */
  *all(): Generator<Counted & { readonly event: number }> {
    for (let row = 0; row < this.#rows; row++) {
      const [event, voter, value] = [this.#event[row]!, this.#voter[row]!, this.#value[row]!]
      if (voter === otherBoard) yield { event, value, hour: 0 }
      else if (voter < otherBoard) yield { event, ...castIn(value) }
    }
  }

  sums(event: number): Sums {
    if (this.#rows === 0) return { up: 0, down: 0, score: 0 }
    const up = this.#read(event, forVoter)
    const down = this.#read(event, againstVoter)
    return { up, down, score: up - down }
  }

  /** The sums as they would be after this vote. */
  after(event: number, voter: number | undefined, value: Value): Sums {
    const { up, down } = this.sums(event)
    const before = voter === undefined ? 0 : this.of(event, voter)
    const ups = up + Number(value === 1) - Number(before === 1)
    const downs = down + Number(value === -1) - Number(before === -1)
    return { up: ups, down: downs, score: ups - downs }
  }

  set(event: number, voter: number, { value, hour }: Cast): void {
    const { up, down } = this.after(event, voter, value)
    this.#write(event, voter, value * (hour + 1))
    this.#write(event, forVoter, up)
    this.#write(event, againstVoter, down)
  }

  /** Sets the sums that an event had on its original board, before any vote on it here. */
  begin(event: number, { up, down }: Pick<Sums, 'up' | 'down'>): void {
    this.#write(event, forVoter, up)
    this.#write(event, againstVoter, down)
    this.#write(event, otherBoard, up - down)
  }

  pack(): PackedVotes {
    const cut = ({ buffer }: Uint32Array | Int32Array) => new Uint8Array(buffer, 0, this.#rows * 4)
    return [cut(this.#event), cut(this.#voter), cut(this.#value)]
  }

  restore([event, voter, value]: PackedVotes): void {
    const rows = event.length / 4
    const capacity = Math.max(initialRows, capacityFor(rows))
    this.#event = new Uint32Array(capacity)
    this.#voter = new Uint32Array(capacity)
    this.#value = new Int32Array(capacity)
    this.#rows = rows
    new Uint8Array(this.#event.buffer).set(event)
    new Uint8Array(this.#voter.buffer).set(voter)
    new Uint8Array(this.#value.buffer).set(value)
    this.#table.fill(2 * capacity, rows)
  }

  #read(event: number, voter: number): number {
    const row = this.#find(event, voter)
    return row === none ? 0 : this.#value[row]!
  }

  #write(event: number, voter: number, value: number): void {
    const known = this.#find(event, voter)
    if (known !== none) {
      this.#value[known] = value
      if (this.#longer !== undefined && known < this.#longer.value.copied) this.#longer.value.columns[0]![known] = value
      return
    }
    this.#ensureCapacity()
    const row = this.#rows++
    this.#event[row] = event
    this.#voter[row] = voter
    this.#value[row] = value
    this.#table.put(this.#cellOf(event, voter), row)
  }

  #find(event: number, voter: number): number {
    return this.#table.cells[this.#cellOf(event, voter)]!
  }

  /** The cell of the row, or the empty cell where it would go. */
  #cellOf(event: number, voter: number): number {
    const { cells } = this.#table
    const mask = cells.length - 1
    for (let cell = hashOf(event, voter) & mask; ; cell = (cell + 1) & mask) {
      const row = cells[cell]!
      if (row === none || (this.#event[row] === event && this.#voter[row] === voter)) return cell
    }
  }

  #ensureCapacity(): void {
    const capacity = this.#event.length
    const isFull = this.#rows === capacity
    if (!isFull && !Doubling.isDue(this.#rows, capacity)) return
    this.#longer ??= {
      keys: new Doubling([this.#event, this.#voter], capacity, (length) => new Uint32Array(length)),
      value: new Doubling([this.#value], capacity, (length) => new Int32Array(length)),
    }
    const { keys, value } = this.#longer
    if (!isFull) {
      keys.copySome(this.#rows)
      value.copySome(this.#rows)
      return
    }
    const [event, voter] = keys.finish()
    this.#event = event!
    this.#voter = voter!
    this.#value = value.finish()[0]!
    this.#longer = undefined
  }
}

type Longer = {
  readonly keys: Doubling<Uint32Array<ArrayBuffer>>
  readonly value: Doubling<Int32Array<ArrayBuffer>>
}

function castIn(number: number): Cast {
  return { value: Math.sign(number) as Value, hour: Math.max(0, Math.abs(number) - 1) }
}

/** The board assigns slots and numbers in order, so users cannot choose which cell a vote falls into. */
function hashOf(event: number, voter: number): number {
  const mixed = Math.imul(event, 0x9e37_79b1) ^ Math.imul(voter + 0x7f4a_7c15, 0x85eb_ca6b)
  return (Math.imul(mixed ^ (mixed >>> 15), 0xc2b2_ae35) ^ (mixed >>> 13)) >>> 0
}
