/** Lists of works: for any query and order, the pages are complete, without duplicates, and each is bounded. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type WorkState, workStates } from '../../actors/records/change-kinds.ts'
import { type AsOfNow, Listing, type WorkSort, type WorksQuery } from '../../actors/works/market/listing.ts'
import { initialState, type Work } from '../../actors/works/market/work.ts'

const states = workStates.filter((state) => state !== 'recovery_required')
const people = ['ann', 'ben', 'cem', 'dot']
const words = ['alpha', 'beta', 'Gamma', 'delta ray', 'Straße', '日本']

/** A number determined by `n`. */
const mixed = (n: number, of: number): number => (Math.imul(n + 7, 2_654_435_761) >>> 8) % of

function workOf(n: number): Work {
  const id = Math.imul(n + 1, 2_654_435_761)
    .toString(16)
    .replace('-', '')
    .padStart(32, 'a')
  const at = 1_790_000_000 + Math.floor(n / 5)
  const state = states[mixed(n, states.length)]!
  return {
    ...initialState(id, '0', 1 + mixed(n, 40), 0, id),
    id,
    room: `room-${mixed(n * 3, 6)}`,
    is_public: mixed(n, 9) !== 0,
    title: `${words[mixed(n, 6)]} ${words[mixed(n * 5, 6)]} ${n}`,
    capabilities: [`tag-${mixed(n, 30)}`, 'all'],
    simulated: mixed(n, 11) === 0,
    eligibility: mixed(n, 4) === 0 ? 'first_work' : 'open',
    requester: people[mixed(n, 3)]!,
    requester_key: '',
    reviewer: people[mixed(n * 7, 3)]!,
    reviewer_key: '',
    terms: {} as Work['terms'],
    created_at: at,
    deadline: at + mixed(n, 1_000),
    held_at: at,
    state,
    worker: state === 'open' ? '' : people[mixed(n, 4)]!,
    updated_at: at,
    steps: 1,
    shard: 0,
    places: [1],
  }
}

const works = Array.from({ length: 6_000 }, (_, n) => workOf(n))
const listing = new Listing()
for (const work of works) listing.add(work)

/** Some that are stored as claimed are open by now, and some are not confirmed yet. */
const isLapsed = ({ state, amount }: Work): boolean => state === 'claimed' && amount % 5 === 0
const now: AsOfNow = {
  due: () => works.filter(isLapsed),
  settle: (work) => (isLapsed(work) ? { ...work, state: 'open', worker: '' } : work),
  stateOf: ({ state, amount }) => (state === 'claimed' && amount % 7 === 0 ? 'recovery_required' : state),
}

const keys: Readonly<Record<WorkSort, (work: Work) => (number | string)[]>> = {
  new: ({ created_at, id }) => [-created_at, id],
  reward: ({ amount, created_at, id }) => [-amount, -created_at, id],
  deadline: ({ deadline, id }) => [deadline, id],
}

type Asked = Omit<WorksQuery, 'limit' | 'from'>

function expected(query: Asked): string[] {
  const { isPublic, simulated, room, state, party, capability, minReward, words: said, claimant, sort } = query
  const key = keys[sort]
  const found = works
    .map((work) => now.settle(work))
    .filter((work) => work.is_public === isPublic && (simulated || !work.simulated))
    .filter((work) => (room ?? work.room) === work.room && (state ?? now.stateOf(work)) === now.stateOf(work))
    .filter(({ requester, reviewer, worker }) => [requester, reviewer, worker].includes(party ?? requester))
    .filter(({ capabilities, amount }) => capabilities.includes(capability ?? 'all') && amount >= (minReward ?? 0))
    .filter(({ title, capabilities }) => title.toLowerCase().includes(said ?? '') || capabilities.includes(said!))
    .filter((work) => claimant?.may(work) ?? true)
  const order = (a: Work, b: Work): number => {
    const [left, right] = [key(a), key(b)]
    const n = left.findIndex((each, place) => each !== right[place])
    return left[n]! < right[n]! ? -1 : 1
  }
  return found.sort(order).map(({ id }) => id)
}

function paged(query: Asked, limit: number): string[] {
  const found: string[] = []
  let from: WorksQuery['from']
  for (let pages = 0; pages < 10_000; pages++) {
    const page = listing.find({ ...query, limit, ...(from === undefined ? {} : { from }) }, now)
    expect(page.works.length).toBeLessThanOrEqual(limit)
    found.push(...page.works.map(({ id }) => id))
    if (page.next === undefined) return found
    from = page.next
  }
  throw new Error('these pages have no end')
}

const claimants = people.map((id) => ({
  id,
  isNewcomer: id === 'ann',
  may: ({ state, requester, reviewer, eligibility }: Work) =>
    state === 'open' && requester !== id && reviewer !== id && (eligibility === 'open' || id === 'ann'),
}))

const maybe = <Name extends string, Value>(name: Name, values: readonly Value[]) =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.constantFrom(...values.map((value) => ({ [name]: value }))) },
  )
const queries = fc
  .tuple(
    fc.record({
      isPublic: fc.boolean(),
      simulated: fc.boolean(),
      sort: fc.constantFrom<WorkSort>('new', 'reward', 'deadline'),
    }),
    maybe('room', ['room-1', 'room-5', 'nowhere']),
    maybe<string, WorkState>('state', workStates),
    maybe('party', [...people, 'nobody']),
    maybe('capability', ['tag-3', 'tag-29', 'none']),
    maybe('minReward', [2, 38, 40, 41]),
    maybe('words', ['alpha', 'gamma', 'a', '7', ' ', 'straße', '日', 'ray a', 'tag-4', 'zebra', 'ü']),
    maybe('claimant', claimants),
  )
  .map((parts) => Object.assign({}, ...parts) as Asked)

test('the pages of any list equal what a walk over all works finds, in order', () => {
  fc.assert(
    fc.property(queries, fc.constantFrom(7, 50, 200), (query, limit) => {
      expect(paged(query, limit)).toEqual(expected(query))
    }),
    { numRuns: 60 },
  )
})

test('changed works keep their place: by state, worker and reward', () => {
  const own = new Listing()
  const some = Array.from({ length: 1_500 }, (_, n) => ({ ...workOf(n), state: 'open' as WorkState, worker: '' }))
  for (const work of some) own.add(work)
  const asItIs: AsOfNow = { due: () => [], settle: (work) => work, stateOf: ({ state }) => state }
  const ids = (query: Partial<WorksQuery>): string[] =>
    own.find({ isPublic: true, simulated: true, sort: 'new', limit: 50, ...query }, asItIs).works.map(({ id }) => id)
  const [old] = some
  own.change(old!, { state: 'submitted', worker: 'eve', amount: 9_999 })
  for (const query of [{ state: 'submitted' }, { party: 'eve' }, { minReward: 9_999 }] as const)
    expect(ids(query)).toEqual([old!.id])
  expect(ids({ sort: 'reward' })[0]).toBe(old!.id)
  expect([own.countOf('open'), own.countOf('submitted')]).toEqual([1_499, 1])
  own.change(old!, { state: 'open', worker: '' })
  expect([ids({ state: 'submitted' }), ids({ party: 'eve' })]).toEqual([[], []])
})

test('a page with a filter that no column covers ends after a bounded number of works, and says how to go on', () => {
  let looked = 0
  const counting: AsOfNow = {
    due: () => [],
    settle: (work) => {
      looked++
      return { ...work, state: 'open' }
    },
    stateOf: ({ state }) => state,
  }
  const claimant = { id: 'zoe', isNewcomer: true, may: () => false }
  const many = new Listing()
  for (let n = 0; n < 4_000; n++) many.add({ ...workOf(n), state: 'open', is_public: true })
  const query = { isPublic: true, simulated: true, sort: 'deadline', limit: 50, claimant } as const
  const first = many.find(query, counting)
  expect([first.works, looked]).toEqual([[], 3_000])
  expect(many.find({ ...query, from: first.next! }, counting)).toEqual({ works: [], next: undefined })
  expect(looked).toBe(4_000)
})
