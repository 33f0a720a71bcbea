/**
 * Lists of works. All works are sorted in three orders; the works of each identity are in a set; columns hold what queries
 * filter by.
 *
 * A page walks the order, which fills most lists after a few works. If matches are rarer, they are looked up in the columns,
 * whatever the query, and sorted incrementally. A list of a hundred thousand works is never walked for one page.
 */

import { type WorkState, workStates } from '../../records/change-kinds.ts'
import { inFlight, partiesOf, type Work } from './work.ts'

export type WorkSort = 'new' | 'reward' | 'deadline'

export type WorksQuery = {
  readonly room?: string
  /** The state as shown. */
  readonly state?: WorkState
  /** Words of the title, or a tag; lower case. */
  readonly words?: string
  /** Whether readers are shown the title of this work; absent: always. */
  readonly showsTitle?: (work: Work) => boolean
  /** Requester, worker or reviewer. */
  readonly party?: string
  readonly capability?: string
  readonly minReward?: number
  /** Only open works that this identity may claim. */
  readonly claimant?: Claimant
  readonly simulated: boolean
  readonly isPublic: boolean
  readonly sort: WorkSort
  readonly limit: number
  /** Key of the last work of the previous page. */
  readonly from?: readonly (number | string)[]
}

export type Claimant = {
  readonly id: string
  readonly isNewcomer: boolean
  /** Checked against the current state of a work. */
  readonly may: (work: Work) => boolean
}

export type WorksPage = {
  /** In their current state. */
  readonly works: readonly Work[]
  /** Key to continue after; undefined if there are no more. */
  readonly next: readonly (number | string)[] | undefined
}

/** The current state of works. */
export type AsOfNow = {
  /** Works that timeouts have changed since they were stored. */
  readonly due: () => readonly Work[]
  readonly settle: (work: Work) => Work
  /** The state shown for a work after `settle`. */
  readonly stateOf: (work: Work) => WorkState
}

/** Works walked before the columns are searched. */
const walkedMax = 1_000
/** Works examined for one page. If the columns cannot decide, a page ends early and says how to continue. */
const lookedMax = 3_000

/** The sort key of a work; smaller keys come first. */
const keys: Readonly<Record<WorkSort, (work: Work) => readonly (number | string)[]>> = {
  new: ({ created_at, id }) => [-created_at, id],
  reward: ({ amount, created_at, id }) => [-amount, -created_at, id],
  deadline: ({ deadline, id }) => [deadline, id],
}
export const workSorts: readonly WorkSort[] = ['new', 'reward', 'deadline']

type RowOrder = (a: number, b: number) => boolean

/** The same comparison for two rows. */
const rowsBefore: Readonly<Record<WorkSort, (columns: Columns) => RowOrder>> = {
  new: (columns) => {
    const [{ created }, idBefore] = [columns, idsBefore(columns)]
    return (a, b) => (created[a] === created[b] ? idBefore(a, b) : created[a]! > created[b]!)
  },
  reward: (columns) => {
    const [{ amount }, isNewer] = [columns, rowsBefore.new(columns)]
    return (a, b) => (amount[a] === amount[b] ? isNewer(a, b) : amount[a]! > amount[b]!)
  },
  deadline: (columns) => {
    const [{ deadline }, idBefore] = [columns, idsBefore(columns)]
    return (a, b) => (deadline[a] === deadline[b] ? idBefore(a, b) : deadline[a]! < deadline[b]!)
  },
}

function idsBefore({ id, works }: Columns): RowOrder {
  return (a, b) => (id[a] === id[b] ? works[a]!.id < works[b]!.id : id[a]! < id[b]!)
}

/** The first part of the key of a row. */
const rowKey: Readonly<Record<WorkSort, (columns: Columns) => (row: number) => number>> = {
  new:
    ({ created }) =>
    (row) =>
      -created[row]!,
  reward:
    ({ amount }) =>
    (row) =>
      -amount[row]!,
  deadline:
    ({ deadline }) =>
    (row) =>
      deadline[row]!,
}

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [n, each] of a.entries()) {
    if (each !== b[n]) return each < b[n]! ? -1 : 1
  }
  return 0
}

export class Listing {
  readonly #orders: Readonly<Record<WorkSort, Sorted<Work>>> = {
    new: sortedBy('new'),
    reward: sortedBy('reward'),
    deadline: sortedBy('deadline'),
  }
  readonly #columns = new Columns()
  /** Includes former workers of a work: the query checks each work again. */
  readonly #byParty = new Map<string, Set<Work>>()
  readonly #counts = new Map<WorkState, number>()

  /** By stored state. */
  countOf(state: WorkState): number {
    return this.#counts.get(state) ?? 0
  }

  add(work: Work): void {
    for (const sort of workSorts) this.#orders[sort].add(work)
    this.#columns.add(work)
    this.#count(work, 1)
    for (const party of partiesOf(work)) this.#noteParty(party, work)
  }

  /** Changes a work and updates its positions. */
  change(work: Work, now: Partial<Work>): void {
    const isRaised = now.amount !== undefined && now.amount !== work.amount
    if (isRaised) this.#orders.reward.remove(work)
    this.#count(work, -1)
    Object.assign(work, now)
    this.#count(work, 1)
    this.#columns.set(work)
    if (isRaised) this.#orders.reward.add(work)
    if (work.worker !== '') this.#noteParty(work.worker, work)
  }

  find(query: WorksQuery, now: AsOfNow): WorksPage {
    const { limit, sort, state, claimant } = query
    if (claimant !== undefined && state !== undefined && state !== 'open') return { works: [], next: undefined }
    const works: Work[] = []
    let last: Work | undefined
    let looked = 0
    for (const stored of this.#candidates(query, now)) {
      if (looked++ === lookedMax) return { works, next: keys[sort](last!) }
      const work = now.settle(stored)
      if (isWanted(query, work, now.stateOf)) {
        if (works.length === limit) return { works, next: keys[sort](works.at(-1)!) }
        works.push(work)
      }
      last = stored
    }
    return { works, next: undefined }
  }

  /** Candidates in order, after the cursor: every work that may match, and some that do not. */
  *#candidates(query: WorksQuery, { due }: AsOfNow): Generator<Work, void, void> {
    const { sort, party } = query
    const keyOf = keys[sort]
    let { from } = query
    const isBehind = (work: Work): boolean => from === undefined || compare(keyOf(work), from) > 0
    const sorted = (works: Iterable<Work>): Work[] =>
      [...works].filter(isBehind).sort((a, b) => compare(keyOf(a), keyOf(b)))
    const own = party === undefined ? undefined : (this.#byParty.get(party) ?? noWorks)
    if (own !== undefined && own.size <= walkedMax) return yield* sorted(own)
    let walked = 0
    for (const work of this.#orders[sort].walk((each) => (isBehind(each) ? 1 : -1))) {
      if (walked++ === walkedMax) break
      yield work
      from = keyOf(work)
    }
    if (walked <= walkedMax) return
    const { works } = this.#columns
    const rows = this.#columns.find(wantedOf(query), this.#rowBehind(sort, from!))
    const ordered = smallestFirst(rows, rowsBefore[sort](this.#columns))
    // Works that timeouts moved into a requested state are stored under another one.
    const stored = storedAs(query)
    const moved = stored === undefined ? [] : sorted(due().filter((work) => !stored.has(work.state)))
    let place = 0
    for (const row of ordered) {
      const work = works[row]!
      while (place < moved.length && compare(keyOf(moved[place]!), keyOf(work)) < 0) yield moved[place++]!
      yield work
    }
    yield* moved.slice(place)
  }

  /** Whether a row comes after this position. */
  #rowBehind(sort: WorkSort, from: readonly (number | string)[]): (row: number) => boolean {
    const keyOf = rowKey[sort](this.#columns)
    const { works } = this.#columns
    const first = from[0] as number
    return (row) => {
      const key = keyOf(row)
      return key === first ? compare(keys[sort](works[row]!), from) > 0 : key > first
    }
  }

  #count({ state }: Work, more: 1 | -1): void {
    this.#counts.set(state, this.countOf(state) + more)
  }

  #noteParty(party: string, work: Work): void {
    const own = this.#byParty.get(party)
    if (own === undefined) this.#byParty.set(party, new Set([work]))
    else own.add(work)
  }
}

/** States under which matching works are stored, if no timeout has moved them; undefined: any. */
function storedAs({ state, claimant }: WorksQuery): ReadonlySet<WorkState> | undefined {
  if (claimant !== undefined) return new Set(['open'])
  if (state === undefined) return undefined
  return state === 'recovery_required' ? inFlight : new Set([state])
}

function wantedOf(query: WorksQuery): Wanted {
  const { claimant } = query
  const states = storedAs(query)
  return {
    ...query,
    ...(states === undefined ? {} : { states }),
    ...(claimant === undefined ? {} : { outsider: claimant.id, newcomer: claimant.isNewcomer }),
  }
}

function isWanted(query: WorksQuery, work: Work, stateOf: AsOfNow['stateOf']): boolean {
  const { room, state, words, party, capability, minReward, claimant, simulated, isPublic } = query
  const isNamed = (text: string) => work.title.toLowerCase().includes(text) && (query.showsTitle?.(work) ?? true)
  return (
    work.is_public === isPublic &&
    (simulated || !work.simulated) &&
    (room === undefined || work.room === room) &&
    (state === undefined || stateOf(work) === state) &&
    (party === undefined || partiesOf(work).includes(party)) &&
    (capability === undefined || work.capabilities.includes(capability)) &&
    (minReward === undefined || work.amount >= minReward) &&
    (words === undefined || work.capabilities.includes(words) || isNamed(words)) &&
    (claimant?.may(work) ?? true)
  )
}

function sortedBy(sort: WorkSort): Sorted<Work> {
  const keyOf = keys[sort]
  return new Sorted((a, b) => compare(keyOf(a), keyOf(b)))
}

const noWorks: ReadonlySet<Work> = new Set()

/** Conditions on a row, as far as columns can tell; absent: any. */
export type Wanted = {
  readonly isPublic: boolean
  readonly simulated: boolean
  readonly states?: ReadonlySet<WorkState>
  readonly room?: string
  /** Requester, worker or reviewer. */
  readonly party?: string
  /** Neither requester nor reviewer. */
  readonly outsider?: string
  /** False: exclude works that are only for newcomers. */
  readonly newcomer?: boolean
  readonly minReward?: number
  readonly capability?: string
  /** In the title, or a tag; lower case. */
  readonly words?: string
}

type Said = { readonly column: Uint32Array; readonly mask: number }

/** Used in place of the number of a name: any name matches, or a name that no row has. */
const [anyName, unknown] = [-1, -2]
const marks = { isPublic: 1, simulated: 2, forNewcomers: 4 } as const
const titleWords = 16
const rowsFirst = 256

/**
 * The fields that queries filter works by, in columns: values of one field are adjacent, so a query without an index scans a
 * hundred thousand works in about a millisecond. 110 bytes per work.
 *
 * | column | bytes | holds |
 * |---|---|---|
 * | state, marks | 1, 1 | stored state; public, simulated, for newcomers |
 * | room, requester, reviewer, worker | 4 each | numbers of names, 0: none |
 * | id | 4 | its first 8 hex |
 * | created, deadline | 4 each | Unix seconds |
 * | amount | 8 | credits |
 * | tags | 4 | a bit for each tag, by its hash |
 * | title | 64 | a bit for each 2 and 3 adjacent characters of the lower-case title, by hash; in the first word, for each character |
 * | found | 4 | rows of the newest answer |
 *
 * Tags and words are signatures: they have no false negatives, but occasional false positives. Callers check the work itself.
 * Rows are never removed, and neither are works.
 */
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

  /** Updates the fields of a work that may change. */
  set(work: Work): void {
    const row = this.#rowOf.get(work)!
    this.#state[row] = workStates.indexOf(work.state)
    this.#worker[row] = this.#numberOf(work.worker)
    this.amount[row] = work.amount
  }

  /**
   * Rows that may match, in no order; valid until the next call. `isBehind`: whether a row is after the position that a list
   * has reached.
   */
  find(wanted: Wanted, isBehind: (row: number) => boolean): Uint32Array {
    const { isPublic, simulated, newcomer = true, minReward = 0, words } = wanted
    const found = this.#found
    const [room, party, outsider] = [wanted.room, wanted.party, wanted.outsider].map((name) =>
      name === undefined ? anyName : (this.#names.get(name) ?? unknown),
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
      if (room !== anyName && this.#room[row] !== room) continue
      if (this.amount[row]! < minReward || (this.#tags[row]! & tag) !== tag) continue
      if (
        party !== anyName &&
        this.#requester[row] !== party &&
        this.#reviewer[row] !== party &&
        this.#worker[row] !== party
      )
        continue
      if (outsider !== anyName && (this.#requester[row] === outsider || this.#reviewer[row] === outsider)) continue
      if (said.length > 0 && (this.#tags[row]! & saidTag) === 0 && !says(said, row)) continue
      if (isBehind(row)) found[count++] = row
    }
    return found.subarray(0, count)
  }

  /** The columns of the title that have any bit of this signature, with those bits. */
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

/** Whether all of it is in the title, as far as the columns show. */
function says(said: readonly Said[], row: number): boolean {
  for (let n = 0; n < said.length; n++) {
    const { column, mask } = said[n]!
    if ((column[row]! & mask) !== mask) return false
  }
  return true
}

/** One bit for each letter from a to z, one for the digits and one for the rest of ASCII; all others share four; the space has none. */
function letterBit(unit: number): number {
  if (unit === 32) return 0
  if (unit >= 97 && unit <= 122) return 1 << (unit - 97)
  if (unit >= 48 && unit <= 57) return 1 << 26
  return 1 << (unit < 128 ? 27 : 28 + (unit & 3))
}

/** The signature of a text. It includes every bit of the signature of any text that it contains. */
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

/**
 * Numbers in order, the first ones quickly: taking fifty of a hundred thousand does not wait for the rest to be sorted.
 * Rearranges `items`. `isBefore`: a comes before b.
 */
function* smallestFirst(
  items: Uint32Array,
  isBefore: (a: number, b: number) => boolean,
): Generator<number, void, void> {
  let count = items.length
  /** Sifts the item at this place down, until everything below it comes after it. */
  const sink = (from: number): void => {
    const item = items[from]!
    let place = from
    for (;;) {
      let child = 2 * place + 1
      if (child >= count) break
      if (child + 1 < count && isBefore(items[child + 1]!, items[child]!)) child++
      if (!isBefore(items[child]!, item)) break
      items[place] = items[child]!
      place = child
    }
    items[place] = item
  }
  for (let place = (count >>> 1) - 1; place >= 0; place--) sink(place)
  while (count > 0) {
    yield items[0]!
    items[0] = items[--count]!
    if (count > 1) sink(0)
  }
}

/** Negative if a comes before b. No two items may be equal. */
type Order<Item> = (a: Item, b: Item) => number

const runMax = 512

/**
 * A sorted list: runs of at most 512 items, so that inserting and removing cost the same for a hundred items and for a million
 * (a search among the runs, a search in one, a move of at most 512 references).
 */
export class Sorted<Item> {
  readonly #order: Order<Item>
  readonly #runs: Item[][] = []
  #length = 0

  constructor(order: Order<Item>) {
    this.#order = order
  }

  get length(): number {
    return this.#length
  }

  get first(): Item | undefined {
    return this.#runs[0]?.[0]
  }

  add(item: Item): void {
    this.#length++
    if (this.#runs.length === 0) {
      this.#runs.push([item])
      return
    }
    const at = this.#runOf(item)
    const run = this.#runs[at]!
    run.splice(this.#lower(run, item), 0, item)
    if (run.length > runMax) this.#runs.splice(at + 1, 0, run.splice(runMax >>> 1))
  }

  /** The item must sort as it did when it was added. */
  remove(item: Item): void {
    const at = this.#runOf(item)
    const run = this.#runs[at]
    const place = run === undefined ? -1 : this.#lower(run, item)
    if (run === undefined || run[place] === undefined || this.#order(run[place], item) !== 0)
      throw new Error('this item is not in the list')
    run.splice(place, 1)
    this.#length--
    if (run.length === 0) this.#runs.splice(at, 1)
  }

  /** Items in order; `after`: only those after this position. */
  *walk(after?: (item: Item) => number): Generator<Item, void, void> {
    let run = after === undefined ? 0 : firstWhere(this.#runs, (each) => after(each.at(-1)!) > 0)
    let place =
      after === undefined || run === this.#runs.length ? 0 : firstWhere(this.#runs[run]!, (item) => after(item) > 0)
    for (; run < this.#runs.length; run++, place = 0) {
      const items = this.#runs[run]!
      for (; place < items.length; place++) yield items[place]!
    }
  }

  /** The run that contains it, or where it belongs: the first whose last item does not come before it. */
  #runOf(item: Item): number {
    const run = firstWhere(this.#runs, (each) => this.#order(each.at(-1)!, item) >= 0)
    return Math.min(run, this.#runs.length - 1)
  }

  #lower(run: readonly Item[], item: Item): number {
    return firstWhere(run, (each) => this.#order(each, item) >= 0)
  }
}

/** The first index for which it is true, by binary search; the length if there is none. */
function firstWhere<Item>(items: readonly Item[], isSo: (item: Item) => boolean): number {
  let low = 0
  let high = items.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isSo(items[middle]!)) high = middle
    else low = middle + 1
  }
  return low
}
