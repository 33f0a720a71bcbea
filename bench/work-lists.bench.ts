/**
 * What does the first page of a hundred thousand works cost, whatever the query? Measured on the state alone, which answers a list. The
 * rare ones are a few in total, the hostile ones are as many as possible and almost all of them do not match.
 */

import { createHash } from 'node:crypto'
import type { WorkState } from '../actors/records/change-kinds.ts'
import { Listing, type WorksQuery } from '../actors/works/market/listing.ts'
import { initialState, type Work } from '../actors/works/market/work.ts'
import type { Bench, Row } from './report.ts'

export const workLists: Bench = {
  name: 'work-lists',
  question: 'What does a first page of 100,000 works cost, by every filter?',
  run: async () => [{ title: 'first page of 50 from 100,000 works (goal: 5 ms)', rows: listRows() }],
}

const count = 100_000
const rounds = 40
const common: readonly WorkState[] = ['open', 'claimed', 'submitted', 'accepted', 'accepted', 'expired']

const asked: readonly (readonly [string, Partial<WorksQuery>])[] = [
  ['newest', {}],
  ['open', { state: 'open' }],
  ['open, highest reward', { state: 'open', sort: 'reward' }],
  ['nearest deadline', { sort: 'deadline' }],
  ['of a room', { room: 'room-7' }],
  ['of a room, by state and reward', { room: 'room-7', state: 'submitted', minReward: 990, sort: 'reward' }],
  ['by a rare state', { state: 'disputed' }],
  ['of a state that none is in', { state: 'revision' }],
  ['of a tag that few have', { capability: 'rare' }],
  ['of a tag that few have, by deadline', { capability: 'rare', sort: 'deadline' }],
  ['of a reward that few pay', { minReward: 5_000, sort: 'new' }],
  ['with a word that few say', { words: 'unheard' }],
  ['with a word that none says', { words: 'nowhere' }],
  ['with a letter that none says', { words: 'ø' }],
  ['of a worker who did three', { party: 'worker-3' }],
  ['by the most frequent requester, in a rare state', { party: 'requester-0', state: 'disputed' }],
  ['open to a newcomer', { claimant: claimantOf('somebody') }],
  ['open to who asked for most', { claimant: claimantOf('requester-0') }],
  ['open to nobody, though no column says so', { claimant: { id: 'x', isNewcomer: true, may: () => false } }],
]

function claimantOf(id: string): NonNullable<WorksQuery['claimant']> {
  return { id, isNewcomer: true, may: (work) => work.state === 'open' && work.requester !== id && work.reviewer !== id }
}

function listRows(): Row[] {
  const listing = new Listing()
  for (let n = 0; n < count; n++) listing.add(workOf(n))
  const now = { due: () => [], settle: (work: Work) => work, stateOf: ({ state }: Work) => state }
  const base = { simulated: false, isPublic: true, limit: 50, sort: 'new' } as const
  return asked.map(([list, query]) => {
    const times = Array.from({ length: rounds }, () => {
      const start = performance.now()
      listing.find({ ...base, ...query }, now)
      return performance.now() - start
    }).sort((a, b) => a - b)
    const ms = (part: number): number => Math.round(times[Math.floor((rounds - 1) * part)]! * 1_000) / 1_000
    return { list, 'ms, median': ms(0.5), 'ms, slowest': ms(1) }
  })
}

const vocabulary =
  'find three reports of this error and say what they have in common translate a summary to french german check receipts against invoices write tests for the parser explain paper label images scrape prices'.split(
    ' ',
  )

/** Seven words, as people write them. */
function titleOf(id: string, n: number): string {
  const words = Array.from(
    { length: 7 },
    (_, k) => vocabulary[Number.parseInt(id.slice(k * 3, k * 3 + 3), 16) % vocabulary.length],
  )
  return `${words.join(' ')} ${n}`
}

function workOf(n: number): Work {
  const id = createHash('sha256').update(`work ${n}`).digest('hex').slice(0, 32)
  const at = 1_790_000_000 + Math.floor(n / 10)
  const isRare = n % 10_000 === 17
  const requester = `requester-${n % 50 === 1 ? 1 + (n % 500) : 0}`
  return {
    ...initialState(id, '0'.repeat(32), isRare ? 5_000 : 1 + (n % 997), 0, id),
    id,
    room: `room-${n % 20}`,
    is_public: true,
    title: isRare ? `an unheard-of work ${n}` : titleOf(id, n),
    capabilities: isRare ? ['rare'] : ['qa', 'research'],
    simulated: false,
    eligibility: n % 7 === 0 ? 'first_work' : 'open',
    requester,
    requester_key: '',
    reviewer: requester,
    reviewer_key: '',
    terms: {} as Work['terms'],
    created_at: at,
    deadline: at + 604_800,
    held_at: at,
    state: isRare ? 'disputed' : common[n % common.length]!,
    worker: n % common.length === 0 ? '' : `worker-${n % 33_000}`,
    updated_at: at,
    steps: 1,
    shard: 0,
    places: [1],
  }
}
