/**
 * What lists ask of works, in columns: one number of each work beside that of the next, so that a query without an index
 * looks at a hundred thousand works in about a millisecond. 110 bytes for each.
 *
 * | column | bytes | holds |
 * |---|---|---|
 * | state, marks | 1, 1 | stored state; public, simulated, for newcomers |
 * | room, requester, reviewer, worker | 4 each | numbers of names, 0: none |
 * | id | 4 | its first 8 hex |
 * | created, deadline | 4 each | Unix seconds |
 * | amount | 8 | credits |
 * | tags | 4 | a bit for each tag, by its hash |
 * | title | 64 | a bit for each two and three neighbours in the title, in lower case, by their hash; in the first word, for each character |
 * | found | 4 | rows of the newest answer |
 *
 * Tags and words are signatures: what a work has is always found, and now and then one that it has not. Who asks looks at the work itself.
 * Rows are never taken out, like works.
 */
import { type WorkState, workStates } from '../../records/record.ts'
import type { Work } from './work.ts'

/** What a row has to be, as far as columns can tell; absent: anything. */
export type Wanted = {
  readonly isPublic: boolean
  readonly simulated: boolean
  readonly states?: ReadonlySet<WorkState>
  readonly room?: string
  /** Requester, worker or reviewer. */
  readonly party?: string
  /** Neither requester nor reviewer. */
  readonly outsider?: string
  /** False: no work that is only for newcomers. */
  readonly newcomer?: boolean
  readonly minReward?: number
  readonly capability?: string
  /** In the title, or a tag; lower case. */
  readonly words?: string
}

type Said = { readonly column: Uint32Array; readonly mask: number }

/** In place of the number of a name: no name is asked for, and one that no row has. */
const [nobody, unknown] = [-1, -2]
const marks = { isPublic: 1, simulated: 2, forNewcomers: 4 } as const
const titleWords = 16
const rowsFirst = 256

export class Columns {
  readonly works: Work[] = []
  readonly #rowOf = new Map<Work, number>()
  readonly #names = new Map<string, number>([['', 0]])
  #state = new Uint8Array(rowsFirst)
  #marks = new Uint8Array(rowsFirst)
  #room = new Uint32Array(rowsFirst)
  #requester = new Uint32Array(rowsFirst)
  #reviewer = new Uint32Array(rowsFirst)
  #worker = new Uint32Array(rowsFirst)
  #tags = new Uint32Array(rowsFirst)
  readonly #title = Array.from({ length: titleWords }, () => new Uint32Array(rowsFirst))
  #found = new Uint32Array(rowsFirst)
  id = new Uint32Array(rowsFirst)
  created = new Uint32Array(rowsFirst)
  deadline = new Uint32Array(rowsFirst)
  amount = new Float64Array(rowsFirst)

  add(work: Work): void {
    const row = this.works.length
    if (row === this.#state.length) this.#grow(row * 2)
    this.works.push(work)
    this.#rowOf.set(work, row)
    this.#marks[row] =
      (work.is_public ? marks.isPublic : 0) |
      (work.simulated ? marks.simulated : 0) |
      (work.eligibility === 'first_work' ? marks.forNewcomers : 0)
    this.#room[row] = this.#numberOf(work.room)
    this.#requester[row] = this.#numberOf(work.requester)
    this.#reviewer[row] = this.#numberOf(work.reviewer)
    this.#tags[row] = work.capabilities.reduce((bits, tag) => bits | tagBit(tag), 0)
    for (const [word, mask] of signatureOf(work.title.toLowerCase()).entries()) this.#title[word]![row] = mask
    this.id[row] = Number.parseInt(work.id.slice(0, 8), 16)
    this.created[row] = work.created_at
    this.deadline[row] = work.deadline
    this.set(work)
  }

  /** What may change of a work. */
  set(work: Work): void {
    const row = this.#rowOf.get(work)!
    this.#state[row] = workStates.indexOf(work.state)
    this.#worker[row] = this.#numberOf(work.worker)
    this.amount[row] = work.amount
  }

  /**
   * Rows that may be what is wanted, in no order; good until the next question. `isBehind`: of a row, after the place that a list
   * has come to.
   */
  find(wanted: Wanted, isBehind: (row: number) => boolean): Uint32Array {
    const { isPublic, simulated, newcomer = true, minReward = 0, words } = wanted
    const found = this.#found
    const [room, party, outsider] = [wanted.room, wanted.party, wanted.outsider].map((name) =>
      name === undefined ? nobody : (this.#names.get(name) ?? unknown),
    )
    const states = bitsOfStates(wanted.states)
    const marked = isPublic ? marks.isPublic : 0
    const looked = marks.isPublic | (simulated ? 0 : marks.simulated) | (newcomer ? 0 : marks.forNewcomers)
    const tag = wanted.capability === undefined ? 0 : tagBit(wanted.capability)
    const said = words === undefined ? [] : this.#columnsOf(signatureOf(words))
    const saidTag = words === undefined ? 0 : tagBit(words)
    let count = 0
    for (let row = 0; row < this.works.length; row++) {
      if (((states >>> this.#state[row]!) & 1) === 0 || (this.#marks[row]! & looked) !== marked) continue
      if (room !== nobody && this.#room[row] !== room) continue
      if (this.amount[row]! < minReward || (this.#tags[row]! & tag) !== tag) continue
      if (
        party !== nobody &&
        this.#requester[row] !== party &&
        this.#reviewer[row] !== party &&
        this.#worker[row] !== party
      )
        continue
      if (outsider !== nobody && (this.#requester[row] === outsider || this.#reviewer[row] === outsider)) continue
      if (said.length > 0 && (this.#tags[row]! & saidTag) === 0 && !says(said, row)) continue
      if (isBehind(row)) found[count++] = row
    }
    return found.subarray(0, count)
  }

  /** Columns of the title that have anything of this signature, and what. */
  #columnsOf(signature: Int32Array): readonly Said[] {
    return [...signature].flatMap((mask, word) => (mask === 0 ? [] : [{ column: this.#title[word]!, mask }]))
  }

  #numberOf(name: string): number {
    let number = this.#names.get(name)
    if (number === undefined) {
      number = this.#names.size
      this.#names.set(name, number)
    }
    return number
  }

  #grow(rows: number): void {
    const larger = <Column extends Uint8Array | Uint32Array | Float64Array>(column: Column, into: Column): Column => {
      into.set(column as never)
      return into
    }
    this.#state = larger(this.#state, new Uint8Array(rows))
    this.#marks = larger(this.#marks, new Uint8Array(rows))
    this.#room = larger(this.#room, new Uint32Array(rows))
    this.#requester = larger(this.#requester, new Uint32Array(rows))
    this.#reviewer = larger(this.#reviewer, new Uint32Array(rows))
    this.#worker = larger(this.#worker, new Uint32Array(rows))
    this.#tags = larger(this.#tags, new Uint32Array(rows))
    this.#found = new Uint32Array(rows)
    this.id = larger(this.id, new Uint32Array(rows))
    this.created = larger(this.created, new Uint32Array(rows))
    this.deadline = larger(this.deadline, new Uint32Array(rows))
    this.amount = larger(this.amount, new Float64Array(rows))
    for (const [word, column] of this.#title.entries()) this.#title[word] = larger(column, new Uint32Array(rows))
  }
}

function bitsOfStates(states: Iterable<WorkState> = workStates): number {
  let bits = 0
  for (const state of states) bits |= 1 << workStates.indexOf(state)
  return bits
}

function tagBit(tag: string): number {
  let hash = 0
  for (let n = 0; n < tag.length; n++) hash = mixed(hash, tag.charCodeAt(n))
  return 1 << (hash & 31)
}

/** All of it is in the title, as far as the columns show. */
function says(said: readonly Said[], row: number): boolean {
  for (let n = 0; n < said.length; n++) {
    const { column, mask } = said[n]!
    if ((column[row]! & mask) !== mask) return false
  }
  return true
}

/** One for each letter from a to z, for the digits and for the rest of ASCII; all others share four; the space has none. */
function letterBit(unit: number): number {
  if (unit === 32) return 0
  if (unit >= 97 && unit <= 122) return 1 << (unit - 97)
  if (unit >= 48 && unit <= 57) return 1 << 26
  return 1 << (unit < 128 ? 27 : 28 + (unit & 3))
}

/** A text that contains another has every bit of its signature. */
function signatureOf(text: string): Int32Array {
  const words = new Int32Array(titleWords)
  const note = (hash: number): void => {
    words[1 + ((hash >>> 5) % (titleWords - 1))]! |= 1 << (hash & 31)
  }
  for (let n = 0; n < text.length; n++) {
    const unit = text.charCodeAt(n)
    words[0]! |= letterBit(unit)
    const one = mixed(0, unit)
    if (n + 1 >= text.length) continue
    const two = mixed(one, text.charCodeAt(n + 1))
    note(two)
    if (n + 2 < text.length) note(mixed(two, text.charCodeAt(n + 2)))
  }
  return words
}

function mixed(hash: number, unit: number): number {
  let product = Math.imul(hash ^ (unit + 0x9e37_79b9), 0x85eb_ca6b)
  product = Math.imul(product ^ (product >>> 13), 0xc2b2_ae35)
  return (product ^ (product >>> 16)) >>> 0
}
