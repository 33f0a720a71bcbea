/**
 * Lists of works, held sorted: all of them and those of each stored state, by three orders; those of each room by the newest; those
 * of each identity. A list of a hundred thousand works is never walked for one page: a walk looks at a bounded number.
 */
import { Sorted } from './sorted.ts'
import { partiesOf, type Work, type WorkState } from './work.ts'

export type WorkSort = 'new' | 'reward' | 'deadline'

export type WorksQuery = {
  readonly room?: string
  readonly state?: WorkState
  /** Words of the title, or a tag; lower case. */
  readonly words?: string
  /** Requester, worker or reviewer. */
  readonly party?: string
  readonly capability?: string
  readonly minReward?: number
  /** Only what this accepts, asked of a work as it stands now. */
  readonly accept?: (work: Work) => boolean
  readonly simulated: boolean
  readonly isPublic: boolean
  readonly sort: WorkSort
  readonly limit: number
  /** Key of the last work of the page before. */
  readonly from?: readonly (number | string)[]
}

export type WorksPage = {
  /** As they stand now. */
  readonly works: readonly Work[]
  /** Key to go on behind; undefined: that was all. */
  readonly next: readonly (number | string)[] | undefined
}

/** Works looked at for one page: a rare one ends a page early, and the page says how to go on. */
const scanMax = 20_000

/** By what a work stands in a list; the smaller key first. */
const keys: Readonly<Record<WorkSort, (work: Work) => readonly (number | string)[]>> = {
  new: ({ created_at, id }) => [-created_at, id],
  reward: ({ amount, created_at, id }) => [-amount, -created_at, id],
  deadline: ({ deadline, id }) => [deadline, id],
}
const sorts: readonly WorkSort[] = ['new', 'reward', 'deadline']

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [n, each] of a.entries()) {
    if (each !== b[n]) return each < b[n]! ? -1 : 1
  }
  return 0
}

export class Listing {
  readonly #all = tripled()
  readonly #byState = new Map<WorkState, Readonly<Record<WorkSort, Sorted<Work>>>>()
  readonly #byRoom = new Map<string, Sorted<Work>>()
  readonly #byParty = new Map<string, Set<Work>>()

  get count(): number {
    return this.#all.new.length
  }

  countOf(state: WorkState): number {
    return this.#byState.get(state)?.new.length ?? 0
  }

  /** A new one, or one that was taken out to be changed. */
  add(work: Work): void {
    for (const sort of sorts) {
      this.#all[sort].add(work)
      this.#ofState(work.state)[sort].add(work)
    }
    get(this.#byRoom, work.room, () => sortedBy('new')).add(work)
    for (const party of partiesOf(work)) get(this.#byParty, party, () => new Set()).add(work)
  }

  /** Changes a work and keeps its places. Whoever was its worker finds it under his name for ever. */
  change(work: Work, change: () => void): void {
    const { state, amount } = work
    const lists = this.#ofState(state)
    for (const sort of sorts) lists[sort].remove(work)
    this.#all.reward.remove(work)
    change()
    this.#all.reward.add(work)
    for (const sort of sorts) this.#ofState(work.state)[sort].add(work)
    if (work.worker !== '') get(this.#byParty, work.worker, () => new Set()).add(work)
    if (amount > work.amount) throw new Error(`the reward of work ${work.id} went down`)
  }

  ofParty(identity: string): ReadonlySet<Work> {
    return this.#byParty.get(identity) ?? noWorks
  }

  /** `due`: works that time has changed since they were stored; `settle` gives a work as it stands now. */
  find(query: WorksQuery, due: readonly Work[], settle: (work: Work) => Work): WorksPage {
    const { sort, limit, from } = query
    const keyOf = keys[sort]
    const behind = (work: Work): boolean => from === undefined || compare(keyOf(work), from) > 0
    const matches = matcherOf(query)
    const works: Work[] = []
    let last: Work | undefined
    let looked = 0
    for (const stored of this.#candidates(query, due, behind)) {
      if (looked++ === scanMax) return { works, next: keyOf(last!) }
      const work = settle(stored)
      if (matches(work)) {
        if (works.length === limit) return { works, next: keyOf(works.at(-1)!) }
        works.push(work)
      }
      last = stored
    }
    return { works, next: undefined }
  }

  /** In order, from behind the cursor on. */
  #candidates(query: WorksQuery, due: readonly Work[], behind: (work: Work) => boolean): Iterable<Work> {
    const { sort, party, room, state } = query
    const keyOf = keys[sort]
    const sorted = (works: Iterable<Work>): Work[] =>
      [...works].filter(behind).sort((a, b) => compare(keyOf(a), keyOf(b)))
    if (party !== undefined) return sorted(this.ofParty(party))
    const after = (work: Work): number => (behind(work) ? 1 : -1)
    if (room !== undefined && sort === 'new' && state === undefined) return this.#byRoom.get(room)?.walk(after) ?? []
    if (state === undefined) return this.#all[sort].walk(after)
    // What time has moved into this state is stored under another.
    const moved = sorted(due.filter((work) => work.state !== state))
    return merged(this.#ofState(state)[sort].walk(after), moved, (a, b) => compare(keyOf(a), keyOf(b)))
  }

  #ofState(state: WorkState): Readonly<Record<WorkSort, Sorted<Work>>> {
    return get(this.#byState, state, tripled)
  }
}

function matcherOf(query: WorksQuery): (work: Work) => boolean {
  const { room, state, words, party, capability, minReward, accept, simulated, isPublic } = query
  return (work) =>
    work.is_public === isPublic &&
    (simulated || !work.simulated) &&
    (room === undefined || work.room === room) &&
    (state === undefined || work.state === state) &&
    (party === undefined || partiesOf(work).includes(party)) &&
    (capability === undefined || work.capabilities.includes(capability)) &&
    (minReward === undefined || work.amount >= minReward) &&
    (words === undefined || work.title.toLowerCase().includes(words) || work.capabilities.includes(words)) &&
    (accept?.(work) ?? true)
}

/** Two sorted sequences as one. */
function* merged(
  a: Iterable<Work>,
  b: readonly Work[],
  order: (a: Work, b: Work) => number,
): Generator<Work, void, void> {
  let place = 0
  for (const item of a) {
    while (place < b.length && order(b[place]!, item) < 0) yield b[place++]!
    yield item
  }
  yield* b.slice(place)
}

function tripled(): Readonly<Record<WorkSort, Sorted<Work>>> {
  return { new: sortedBy('new'), reward: sortedBy('reward'), deadline: sortedBy('deadline') }
}

function sortedBy(sort: WorkSort): Sorted<Work> {
  const keyOf = keys[sort]
  return new Sorted((a, b) => compare(keyOf(a), keyOf(b)))
}

function get<Key, Value>(table: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = table.get(key)
  if (value === undefined) {
    value = make()
    table.set(key, value)
  }
  return value
}

const noWorks: ReadonlySet<Work> = new Set()
