/**
 * A random walk over HTTP: works of a public and of a private room, practice among them, all operations by anybody, mostly sensible and
 * sometimes not, on a board whose timeouts are in seconds. After each step the returned record is as the interface says (fields by state,
 * fences, result), and in the end everything that shows works agrees: `work.get`, the lists by every filter, the history, the feed, the
 * figures, the export of the ledger.
 *
 * WORKS_WALK_STEPS, WORKS_WALK_SEED: 200, 1.
 */

import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { WorkState } from '../../actors/records/change-kinds.ts'
import { finalStates } from '../../actors/works/market/work.ts'
import { LedgerBooks, readLedgerLine } from '../../src/export-check/ledger-books.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person, walkPages } from '../support/client.ts'
import { randomFrom } from '../support/load.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { reason } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const steps = Number(process.env.WORKS_WALK_STEPS ?? 200)
const random = randomFrom(Number(process.env.WORKS_WALK_SEED ?? 1))
const pick = <Value>(values: readonly Value[]): Value => values[random(values.length)]!
const operator = person('the operator')
const people = Array.from({ length: 6 }, (_, n) => person(`walker ${n}`))
type Signer = ReturnType<typeof person>

type WorkJson = {
  readonly id: string
  readonly room: string
  readonly title: string
  readonly state: WorkState
  readonly stored_state: WorkState
  readonly fence: number
  readonly claim_expires_at: number
  readonly created_at: number
  readonly deadline: number
  readonly simulated: boolean
  readonly requester_author: string
  readonly requester: { readonly id: string }
  readonly reviewer: { readonly id: string }
  readonly worker?: { readonly id: string }
  readonly result_id?: string
  readonly result_sha256?: string
  readonly result_changed_since_submit?: boolean
  readonly result_available: boolean
  readonly reward: {
    readonly amount: number
    readonly fee: number
    readonly state: string
    readonly settled_at?: number
  }
}

let client: Client
let world: World
let hidden: string
const ids: string[] = []
const results = new Map<string, string>()
const done = new Map<string, number>()

beforeAll(async () => {
  const limits = { work_claim_default: 2, work_review_window: 3, work_revision_window: 2, work_dispute_window: 3 }
  const env = { OPERATORS: operator.id, SHARDS: '2', LIMITS: JSON.stringify(limits) }
  client = await Client.of(await startBoard({ directory: boardDirectory(), env }))
  world = new World(client, operator)
  for (const { id } of people) await world.run(operator, { operation: 'credit.grant', target: id, amount: 100_000 })
  const made = await world.privateRoom(people.map(({ id }) => id))
  hidden = made.room
})
afterAll(() => client.close())

/** What is promised of every record ("Observed consistency"), and of its reward. */
function expectConsistent(work: WorkJson): void {
  const isOpen = work.state === 'open'
  const hasResult = !['open', 'claimed', 'cancelled', 'expired'].includes(work.state)
  const at = [work.id, work.state]
  expect([...at, work.requester_author]).toEqual([...at, work.requester.id])
  expect([...at, work.deadline - work.created_at]).toEqual([...at, 604_800])
  if (isOpen) expect([...at, work.fence, work.claim_expires_at]).toEqual([...at, 0, 0])
  if (hasResult || work.state === 'claimed')
    expect([...at, work.fence >= 1, work.claim_expires_at > 0]).toEqual([...at, true, true])
  if (work.state !== 'cancelled') expect([...at, 'worker' in work]).toEqual([...at, !isOpen])
  for (const field of ['result_id', 'result_sha256', 'result_changed_since_submit'])
    expect([...at, field, field in work]).toEqual([...at, field, hasResult])
  if (!hasResult) expect([...at, work.result_available]).toEqual([...at, false])
  const wanted: Partial<Record<WorkState, string>> = { accepted: 'paid', split: 'split' }
  const reward = wanted[work.state] ?? (finalStates.has(work.state) ? 'released' : 'held')
  expect([...at, work.reward.state, 'settled_at' in work.reward]).toEqual([...at, reward, reward !== 'held'])
}

async function say(who: Signer, fields: Fields): Promise<WorkJson | undefined> {
  const answer = await client.command(who, fields)
  expect([fields.operation, answer.status < 500]).toEqual([fields.operation, true])
  const name = `${fields.operation} ${answer.code ?? ''}`.trim()
  done.set(name, (done.get(name) ?? 0) + 1)
  const { work } = answer.data as { work?: WorkJson }
  if (work !== undefined) expectConsistent(work)
  return work
}

async function create(): Promise<void> {
  const title = `${pick(['Three', 'Four', 'Five'])} reports ${ids.length}`
  const more = {
    ...(random(4) === 0 ? { reviewer: pick(people).id } : {}),
    ...(random(5) === 0 ? { eligibility: 'first_work' } : {}),
    ...(random(6) === 0 ? { simulated: true } : {}),
  }
  const data = JSON.stringify({ schema: 1, title, capabilities: [pick(['qa', 'code', 'prose'])], ...more })
  const amount = pick([1, 7, 99, 100, 2_500])
  const ask = { operation: 'work.create', room: pick(['jobs', 'jobs', hidden]), text: title, amount, data }
  const work = await say(pick(people), ask)
  if (work !== undefined) ids.push(work.id)
}

/** A sensible action for somebody in the work's current state. */
async function act(id: string): Promise<void> {
  const { work } = (await world.run(people[0]!, { operation: 'work.get', event_id: id })) as unknown as {
    work: WorkJson
  }
  expectConsistent(work)
  const known = (one: { readonly id: string } | undefined): Signer =>
    people.find((each) => each.id === one?.id) ?? pick(people)
  const [requester, reviewer, worker] = [known(work.requester), known(work.reviewer), known(work.worker)]
  const about = (operation: string, by: Signer, more: object = {}): Promise<unknown> =>
    say(random(8) === 0 ? pick(people) : by, { operation, event_id: id, ...more } as Fields)
  const fence = { amount: random(10) === 0 ? work.fence + 1 : Math.max(1, work.fence) }
  const deliver = async (by: Signer): Promise<string> => {
    const said = { room: work.room, text: `result ${random(1_000_000)}`, kind: 'result', reply_to: id }
    const target = await world.post(by, said).catch(() => '')
    if (target !== '') results.set(id, target)
    return target
  }
  const submit = async (): Promise<void> => {
    const target = await deliver(worker)
    if (target !== '') await about('work.submit', worker, { ...fence, target })
  }
  const touch = async (): Promise<void> => {
    const result = results.get(id)
    if (result === undefined) return
    const by = pick([worker, operator])
    const data = JSON.stringify({ schema: 1, supersedes: result })
    if (random(2) === 0)
      await client.command(worker, { operation: 'post', room: work.room, text: `again ${random(1_000)}`, data })
    else await client.command(by, { operation: 'event.redact', event_id: result, reason })
  }
  const claimWithResult = async (): Promise<void> => {
    const by = pick(people)
    const target = await deliver(by)
    if (target !== '') await say(by, { operation: 'work.claim', event_id: id, ttl: 7_200, target })
  }
  const deeds: Readonly<Partial<Record<WorkState, readonly (() => Promise<unknown>)[]>>> = {
    open: [
      () => about('work.claim', pick(people), { ttl: 7_200 }),
      () => about('work.claim', pick(people), { ttl: 7_200 }),
      () => about('work.claim', pick(people)),
      claimWithResult,
      () => about('work.raise', requester, { amount: pick([1, 50]) }),
      () => about('work.edit', requester, { text: `other words ${random(1_000)}` }),
      async () => random(4) === 0 && (await about('work.cancel', pick([requester, operator]), { reason })),
    ],
    claimed: [
      submit,
      submit,
      () => about('work.renew', worker, { ...fence, ttl: 7_200 }),
      () => about('work.release', worker, fence),
    ],
    submitted: [
      () => about('work.accept', pick([reviewer, requester])),
      () => about('work.reject', reviewer, { reason }),
      () => about('work.revise', reviewer, { reason }),
      touch,
      async () => random(4) === 0 && (await about('work.release', worker, fence)),
    ],
    revision: [submit, submit, () => about('work.release', worker, fence)],
    rejected: [
      () => about('work.dispute', worker, { ...fence, reason }),
      () => about('work.concede', worker, fence),
      () => about('work.reopen', requester),
      () => about('work.accept', requester),
    ],
    disputed: [
      () =>
        say(operator, {
          operation: 'work.rule',
          event_id: id,
          reason,
          data: `{"schema":1,"percent":${pick([0, 33, 100])}}`,
        }),
      () => about('work.accept', requester),
      touch,
    ],
  }
  const anything = Object.values(deeds).flat()
  await pick(random(12) === 0 ? anything : (deeds[work.state] ?? anything))()
}

/** Waits until no timeout is due soon, so that the records stay the same while they are compared. */
async function settled(): Promise<WorkJson[]> {
  const read = async (): Promise<WorkJson[]> =>
    Promise.all(
      ids.map(
        async (id) =>
          ((await world.run(people[0]!, { operation: 'work.get', event_id: id })) as unknown as { work: WorkJson })
            .work,
      ),
    )
  await vi.waitUntil(
    async () =>
      (await read()).every(
        ({ state, stored_state, claim_expires_at }) =>
          state === stored_state &&
          !['submitted', 'revision', 'rejected'].includes(state) &&
          (state !== 'claimed' || claim_expires_at > Date.now() / 1_000 + 600),
      ),
    { ...patience, interval: 500 },
  )
  return read()
}

test('everything that shows works is consistent after every step, and agrees in the end', async () => {
  for (let step = 0; step < steps; step++) {
    if (ids.length < 6 || random(8) === 0) await create()
    else await act(pick(ids.slice(-12)))
    if (step % 10 === 0)
      for (const { data } of await walkPages(client, `/api/works?limit=7&sort=${pick(['new', 'reward', 'deadline'])}`))
        for (const work of (data as unknown as { works: WorkJson[] }).works) expectConsistent(work)
  }
  const taken = [...done.keys()].filter((name) => !name.includes(' '))
  expect(taken.length).toBeGreaterThan(6)
  const works = await settled()
  for (const work of works) expectConsistent(work)
  const open = works.filter(({ room }) => room === 'jobs')
  const listed = async (query: string): Promise<WorkJson[]> =>
    (await walkPages(client, `/api/works?${query}&limit=9`)).flatMap(
      ({ data }) => (data as unknown as { works: WorkJson[] }).works,
    )
  const idsOf = (some: readonly { readonly id: string }[]): string[] => some.map(({ id }) => id).sort()
  // A list has no public record of the parties; everything else is the same.
  for (const work of await listed('room=jobs')) {
    const { requester_record, worker_record, ...same } = works.find(({ id }) => id === work.id) as WorkJson &
      Readonly<Record<string, unknown>>
    expect(work).toEqual(same)
  }
  expect(idsOf(await listed('room=jobs'))).toEqual(idsOf(open))
  const real = open.filter(({ simulated }) => !simulated)
  expect(idsOf(await listed(''))).toEqual(idsOf(real))
  for (const state of new Set(works.map((work) => work.state)))
    expect([state, idsOf(await listed(`kind=${state}`))]).toEqual([
      state,
      idsOf(real.filter((work) => work.state === state)),
    ])
  for (const { id } of people) {
    const mine = open.filter(({ requester, reviewer, worker }) => [requester.id, reviewer.id, worker?.id].includes(id))
    expect(idsOf(await listed(`target=${id}`))).toEqual(idsOf(mine))
  }
  expect(idsOf(await listed('query=four'))).toEqual(idsOf(real.filter(({ title }) => title.startsWith('Four'))))
  expect(idsOf(await listed('min_reward=100'))).toEqual(idsOf(real.filter(({ reward }) => reward.amount >= 100)))
  const inside = await world.run(people[0]!, { operation: 'work.list', room: hidden, limit: 200 })
  expect(idsOf(inside.works as unknown as WorkJson[])).toEqual(idsOf(works.filter(({ room }) => room === hidden)))

  const { text: feed } = await client.get('/work.atom')
  for (const { id, room } of works) if (room === hidden) expect(feed).not.toContain(id)
  for (const { id, title, state, reward } of (await listed('')).slice(0, 10))
    expect([id, feed.includes(id) && feed.includes(`${title} (${reward.amount} credits, ${state})`)]).toEqual([
      id,
      true,
    ])
  const { stats } = (await client.get('/api/stats')).data as { stats: Readonly<Record<string, number>> }
  for (const state of new Set(open.map((work) => work.state)))
    expect([state, stats[`works_${state}`]]).toEqual([state, open.filter((work) => work.state === state).length])

  for (const work of works) {
    const { transitions } = (await world.run(people[0]!, {
      operation: 'work.history',
      event_id: work.id,
      limit: 200,
    })) as unknown as {
      transitions: { seq: number; state: WorkState; fence: number }[]
    }
    expect(transitions.map(({ seq }) => seq)).toEqual(transitions.map((_, n) => n + 1))
    expect([work.id, transitions.at(-1)!.state, transitions.at(-1)!.fence]).toEqual([work.id, work.state, work.fence])
  }

  const books = new LedgerBooks()
  const held = new Map<string, number>()
  for (const line of (await client.get('/v1/export?stream=ledger')).text.trimEnd().split('\n')) {
    const each = JSON.parse(line) as Readonly<Record<string, unknown>>
    if (each.type !== 'ledger') continue
    const read = readLedgerLine(each)
    expect(typeof read === 'string' ? read : books.take(read.line)).toBeUndefined()
    const { event, posting, code, amount, debit } = each as {
      event: string
      posting: string
      code: number
      amount: number
      debit: string
    }
    const work = works.find(({ id }) => id === event)
    expect([event, event === '-' || work?.room === 'jobs']).toEqual([event, true])
    if (work === undefined || debit !== `user:${work.requester.id}`) continue
    if (posting === 'hold' && code === 10) held.set(event, (held.get(event) ?? 0) + amount)
    if (posting !== 'hold' && work.reward.state !== 'held') held.delete(event)
  }
  expect(books.end()).toBeUndefined()
  const unsettled = open.filter(({ simulated, reward }) => !simulated && reward.state === 'held')
  expect([...held.keys()].sort()).toEqual(idsOf(unsettled))
})
