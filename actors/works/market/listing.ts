/**
 * Lists of works. All stand sorted, by three orders; the works of each identity in a set; and what lists ask for in columns.
 *
 * A page walks the order, where most lists are full after a few; what is rarer than that is looked up in the columns, whatever was
 * asked, and put in order from the start on. A list of a hundred thousand works is never walked for one page.
 */

import type { WorkState } from '../../records/record.ts'
import { Columns, type Wanted } from './columns.ts'
import { inFlight, partiesOf, type Work } from './work.ts'

/**
 * Numbers in an order, the first ones soon: taking fifty of a hundred thousand does not wait for the rest to be sorted.
 * Rearranges `items`. `isBefore`: a comes before b.
 */
function* smallestFirst(
  items: Uint32Array,
  isBefore: (a: number, b: number) => boolean,
): Generator<number, void, void> {
  let count = items.length
  /** Lets the item at this place sink to where everything below it comes after it. */
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

/** Less than zero: a stands before b. No two items may be equal. */
type Order<Item> = (a: Item, b: Item) => number

const runMax = 512

/**
 * A list that stays sorted: runs of at most 512 items, so that putting in and taking out cost the same for a hundred items and for
 * a million (a search among the runs, a search in one, a move of at most 512 references).
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

  /** The item must order as it did when it was put in. */
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

  /** Items in order; `after`: only those after this place. */
  *walk(after?: (item: Item) => number): Generator<Item, void, void> {
    let run = after === undefined ? 0 : firstWhere(this.#runs, (each) => after(each.at(-1)!) > 0)
    let place =
      after === undefined || run === this.#runs.length ? 0 : firstWhere(this.#runs[run]!, (item) => after(item) > 0)
    for (; run < this.#runs.length; run++, place = 0) {
      const items = this.#runs[run]!
      for (; place < items.length; place++) yield items[place]!
    }
  }

  /** The run that holds it, or into which it belongs: the first whose last item does not stand before it. */
  #runOf(item: Item): number {
    const run = firstWhere(this.#runs, (each) => this.#order(each.at(-1)!, item) >= 0)
    return Math.min(run, this.#runs.length - 1)
  }

  #lower(run: readonly Item[], item: Item): number {
    return firstWhere(run, (each) => this.#order(each, item) >= 0)
  }
}

/** First place for which it is true, by binary search; the length when it is so for none. */
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

export type WorkSort = 'new' | 'reward' | 'deadline'

export type WorksQuery = {
  readonly room?: string
  /** As it is shown. */
  readonly state?: WorkState
  /** Words of the title, or a tag; lower case. */
  readonly words?: string
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
  /** Key of the last work of the page before. */
  readonly from?: readonly (number | string)[]
}

export type Claimant = {
  readonly id: string
  readonly isNewcomer: boolean
  /** Asked of a work as it stands now. */
  readonly may: (work: Work) => boolean
}

export type WorksPage = {
  /** As they stand now. */
  readonly works: readonly Work[]
  /** Key to continue after; undefined: that was all. */
  readonly next: readonly (number | string)[] | undefined
}

/** How works stand now. */
export type AsOfNow = {
  /** Those that time has changed since they were stored. */
  readonly due: () => readonly Work[]
  readonly settle: (work: Work) => Work
  /** What is shown as the state of a work that was settled. */
  readonly stateOf: (work: Work) => WorkState
}

/** Works walked before the columns are asked. */
const walkedMax = 1_000
/** Works examined for one page: where columns cannot tell a page ends early, and says how to continue. */
const lookedMax = 3_000

/** By what a work stands in a list; the smaller key first. */
const keys: Readonly<Record<WorkSort, (work: Work) => readonly (number | string)[]>> = {
  new: ({ created_at, id }) => [-created_at, id],
  reward: ({ amount, created_at, id }) => [-amount, -created_at, id],
  deadline: ({ deadline, id }) => [deadline, id],
}
export const workSorts: readonly WorkSort[] = ['new', 'reward', 'deadline']

type RowOrder = (a: number, b: number) => boolean

/** The same of two rows. */
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
  /** Also former workers of a work: their list checks the work again. */
  readonly #byParty = new Map<string, Set<Work>>()
  readonly #counts = new Map<WorkState, number>()

  /** By the state that is stored. */
  countOf(state: WorkState): number {
    return this.#counts.get(state) ?? 0
  }

  add(work: Work): void {
    for (const sort of workSorts) this.#orders[sort].add(work)
    this.#columns.add(work)
    this.#count(work, 1)
    for (const party of partiesOf(work)) this.#noteParty(party, work)
  }

  /** Changes a work and keeps its places. */
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

  /** In order, from after the cursor on: all that may be wanted, and some that are not. */
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
    // What time has moved into a state that is asked for is stored under another.
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

  /** Of a row: it stands after this place. */
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

/** States under which what is asked for is stored, as long as time has not moved it; undefined: any. */
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
  return (
    work.is_public === isPublic &&
    (simulated || !work.simulated) &&
    (room === undefined || work.room === room) &&
    (state === undefined || stateOf(work) === state) &&
    (party === undefined || partiesOf(work).includes(party)) &&
    (capability === undefined || work.capabilities.includes(capability)) &&
    (minReward === undefined || work.amount >= minReward) &&
    (words === undefined || work.title.toLowerCase().includes(words) || work.capabilities.includes(words)) &&
    (claimant?.may(work) ?? true)
  )
}

function sortedBy(sort: WorkSort): Sorted<Work> {
  const keyOf = keys[sort]
  return new Sorted((a, b) => compare(keyOf(a), keyOf(b)))
}

const noWorks: ReadonlySet<Work> = new Set()
