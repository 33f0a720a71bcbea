/**
 * A backup is restored while works have moved on: claims, fences, leases, holds and cursors afterwards, on real boards.
 *
 * The board is copied while it is stopped; then every work in it moves on, and the copy is restored. There are two works of each kind: for
 * the `brief` ones nobody has more than a second to confirm.
 */
import { cpSync, rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { LedgerBooks, readLedgerLine } from '../../src/export-check/ledger-books.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, expectStartRefused, startBoard } from '../support/board-process.ts'
import { Client, type Fields, now, person, type SignedCommand } from '../support/client.ts'
import { findDamage } from '../support/find-damage.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { reason, type Stage, type StagedWork, workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const operator = person('the operator')
const stages: readonly Stage[] = [
  'open',
  'claimed',
  'replied',
  'submitted',
  'revision',
  'rejected',
  'disputed',
  'accepted',
]
const directory = boardDirectory()
const copy = `${directory}.copy`
const staged = new Map<Stage, StagedWork>()
const brief = new Map<Stage, StagedWork>()
const later = person('who came later')
let board: Board
let client: Client
let world: World
let before: Readonly<Record<string, unknown>>
let cursor: string
/** Accepted after the backup, and lost with everything later. */
let lost: SignedCommand
let said: { readonly code: number; readonly out: string; readonly err: string }
let refusedByMark: string

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  board = await startBoard({ directory, env: { OPERATORS: operator.id, SHARDS: '2', ...env } })
  client = await Client.of(board)
  world = new World(client, operator)
}

async function stop(): Promise<void> {
  client.close()
  await board.stop()
}

async function restored(): Promise<typeof said> {
  const terminal = capturedTerminal()
  const code = await main(['restored', '--data', directory], terminal)
  return { code, ...terminal.said }
}

type Record_ = Readonly<Record<string, unknown>> & {
  readonly state: string
  readonly stored_state: string
  readonly fence: number
  readonly generation: string
}
const read = async ({ work }: StagedWork): Promise<Record_> =>
  ((await client.get(`/api/work/${work}`)).data as unknown as { work: Record_ }).work
const of = (stage: Stage): StagedWork => staged.get(stage)!
const heldBy = async ({ requester }: StagedWork): Promise<unknown> =>
  (await world.run(requester, { operation: 'credit.balance' })) as unknown
const generationNow = async () => (await client.get('/capabilities')).data as unknown as { generation: string }
/** The code that a command about a work is refused with; '' if it is accepted. */
const code = async (who: StagedWork['worker'], fields: Fields): Promise<string> =>
  (await client.command(who, fields)).code ?? ''

beforeAll(async () => {
  const make = async (into: Map<Stage, StagedWork>, of: readonly Stage[]): Promise<void> => {
    await Promise.all(of.map(async (stage) => into.set(stage, await workAt(world, stage, {}, { room: 'jobs' }))))
  }
  await start({ LIMITS: '{"work_recovery_window":1}' })
  await make(brief, ['claimed', 'submitted', 'revision'])
  await stop()
  await start()
  await make(staged, stages)
  cursor = ((await client.get('/api/updates')).data as unknown as { cursor: string }).cursor
  before = Object.fromEntries(
    await Promise.all(
      [...staged].map(async ([stage, each]) => [stage, [await read(each), await heldBy(each)]] as const),
    ),
  )
  await stop()
  cpSync(directory, copy, { recursive: true })
  await start()
  const { worker, work } = of('claimed')
  await world.run(worker, { operation: 'work.release', event_id: work, amount: 1 })
  await world.run(later, { operation: 'work.claim', event_id: work })
  // With the latest possible timestamp: it is sent again after all other checks.
  const accept = { operation: 'work.accept', event_id: of('submitted').work }
  lost = client.sign(of('submitted').requester, accept, { timestamp: now() + 250 })
  expect((await client.send(lost.body)).status).toBe(200)
  for (const stage of ['rejected', 'disputed'] as const)
    await world.run(of(stage).requester, { operation: 'work.accept', event_id: of(stage).work })
  await world.run(of('open').requester, { operation: 'work.cancel', event_id: of('open').work })
  await stop()
  rmSync(directory, { recursive: true })
  cpSync(copy, directory, { recursive: true })
  refusedByMark = (await restored()).err + (await expectStartRefused({ directory })).output
  // The machine is gone, and the mark with it.
  rmSync(`${directory}.mark`)
  said = await restored()
  await start()
})
afterAll(() => {
  client?.close()
  rmSync(copy, { recursive: true, force: true })
})

test('an older copy is refused as a backup of a log with newer published heads, if anything shows them', async () => {
  expect(refusedByMark.match(/this log has \d+ entries, but a head of \d+ was signed and published/g)).toHaveLength(2)
  expect(refusedByMark).toContain(
    'broadside restored --lost ends it here and begins a new one. No recovery epoch was begun.',
  )
  const { generation } = await generationNow()
  expect([said.code, said.err]).toEqual([0, ''])
  expect(said.out).toContain(`${generation} begins with the next start`)
})

test('work in progress has to be confirmed, all else is unchanged, and nothing has moved in the ledger', async () => {
  const { generation } = await generationNow()
  for (const [stage, each] of staged) {
    const inFlight = ['claimed', 'replied', 'submitted', 'revision'].includes(stage)
    const [then, balance] = before[stage] as [Record_, unknown]
    const { service_generation, ...rest } = then
    const wanted = { ...rest, state: inFlight ? 'recovery_required' : then.state }
    const { confirm_due, ...now } = await read(each)
    expect([stage, now.generation === generation]).toEqual([stage, false])
    // Timeouts of unconfirmed works stand still, so the record shows that of the confirmation in their place.
    const { review_due, ...others } = wanted as Readonly<Record<string, unknown>>
    expect(now).toMatchObject(inFlight ? others : wanted)
    expect([stage, typeof confirm_due]).toEqual([stage, inFlight ? 'number' : 'undefined'])
    expect([stage, await heldBy(each)]).toEqual([stage, balance])
  }
})

test('an old cursor is refused as such, with a usable one', async () => {
  const answer = await client.get(`/api/updates?cursor=${cursor}`)
  expect([answer.code, answer.text]).toEqual(['expired', expect.stringContaining('the oldest valid one is')])
})

test('unconfirmed works are released: open, rejected, disputed; credits stay where they were', async () => {
  const wanted = { claimed: 'open', revision: 'rejected', submitted: 'disputed' } as const
  for (const [stage, state] of Object.entries(wanted)) {
    const each = brief.get(stage as Stage)!
    await vi.waitUntil(async () => (await read(each)).stored_state === state, patience)
    const now = await read(each)
    expect(now).toMatchObject({ state, fence: state === 'open' ? 0 : 1, reward: { state: 'held' } })
  }
})

test('lists and figures follow the state that is shown', async () => {
  const listed = async (kind: string): Promise<string[]> => {
    const { data } = await client.get(`/api/works?room=jobs&kind=${kind}`)
    return (data as unknown as { works: { id: string }[] }).works.map(({ id }) => id).sort()
  }
  const unsure = (['claimed', 'replied', 'submitted', 'revision'] as const).map((stage) => of(stage).work).sort()
  expect(await listed('recovery_required')).toEqual(unsure)
  expect(await listed('claimed')).toEqual([])
  const { stats } = (await client.get('/api/stats')).data as { stats: Readonly<Record<string, number>> }
  expect([stats.works_recovery_required, stats.works_claimed]).toEqual([unsure.length, undefined])
})

test('a worker with a fence that the backup does not know changes nothing with it', async () => {
  const { worker, work, result } = of('claimed')
  const stale: readonly Fields[] = [
    { operation: 'work.renew', event_id: work, amount: 2 },
    { operation: 'work.release', event_id: work, amount: 2 },
    { operation: 'work.submit', event_id: work, amount: 2, target: result || work },
    { operation: 'work.dispute', event_id: work, amount: 2, reason },
    { operation: 'work.concede', event_id: work, amount: 2 },
  ]
  for (const fields of stale)
    expect([fields.operation, await code(later, fields)]).toEqual([fields.operation, 'stale_fence'])
  for (const fields of stale)
    expect([fields.operation, await code(later, { ...fields, amount: 1 })]).toEqual([fields.operation, 'forbidden'])
  expect(await code(later, { operation: 'work.claim', event_id: work })).toBe('wrong_state')
  expect(await code(worker, { operation: 'work.release', event_id: work, amount: 1 })).toBe('wrong_state')
})

test('a worker confirms the claim with its fence, and continues as if nothing had happened', async () => {
  const { worker, requester, work, result } = of('replied')
  const { work: confirmed } = await world.run(worker, {
    operation: 'work.renew',
    event_id: work,
    amount: 1,
    ttl: 7_200,
  })
  const { generation } = await generationNow()
  expect(confirmed).toMatchObject({ state: 'claimed', fence: 1, generation })
  const { work: submitted } = await world.run(worker, {
    operation: 'work.submit',
    event_id: work,
    amount: 1,
    target: result,
  })
  expect(submitted).toMatchObject({ state: 'submitted', fence: 1, result_available: true })
  const { work: paid } = await world.run(requester, { operation: 'work.accept', event_id: work })
  expect(paid).toMatchObject({ state: 'accepted', reward: { state: 'paid' } })
  const revision = of('revision')
  const again = { operation: 'work.renew', event_id: revision.work, amount: 1 }
  expect((await world.run(revision.worker, again)).work).toMatchObject({ state: 'revision', fence: 1 })
})

test('a result is confirmed only by the same result; its requester need not wait for that', async () => {
  const { requester, worker, work, result } = of('submitted')
  const other = await world.post(worker, { room: 'jobs', reply_to: work, text: 'something else' })
  const submit = { operation: 'work.submit', event_id: work, amount: 1 }
  expect(await code(worker, { ...submit, target: other })).toBe('conflict')
  expect(await code(requester, { operation: 'work.reject', event_id: work, reason })).toBe('wrong_state')
  // The very command whose effect was lost, still within its time: it has its effect now, once.
  const first = await client.send(lost.body)
  expect([first.status, first.data.receipt?.duplicate]).toEqual([200, undefined])
  expect(await read(of('submitted'))).toMatchObject({ state: 'accepted', reward: { state: 'paid' }, result_id: result })
  expect((await client.send(lost.body)).data.receipt?.duplicate).toBe(true)
  expect(await code(worker, { ...submit, target: result })).toBe('wrong_state')
})

test('works that need no confirmation continue', async () => {
  const [open, rejected, disputed] = [of('open'), of('rejected'), of('disputed')]
  await world.run(open.worker, { operation: 'work.claim', event_id: open.work })
  await world.run(rejected.worker, { operation: 'work.dispute', event_id: rejected.work, amount: 1, reason })
  const rule = { operation: 'work.rule', event_id: disputed.work, reason, data: '{"schema":1,"percent":100}' }
  expect((await world.run(operator, rule)).work).toMatchObject({ state: 'accepted' })
})

test('a restart changes no epoch; the ledger and the files agree', async () => {
  const { generation } = await generationNow()
  const confirmed = await read(of('revision'))
  await board.kill()
  client.close()
  await start()
  expect([(await generationNow()).generation, await read(of('revision'))]).toEqual([generation, confirmed])
  const books = new LedgerBooks()
  for (const line of (await client.get('/v1/export?stream=ledger')).text.trimEnd().split('\n')) {
    const each = JSON.parse(line) as Readonly<Record<string, unknown>>
    if (each.type !== 'ledger') continue
    const found = readLedgerLine(each)
    expect(typeof found === 'string' ? found : books.take(found.line)).toBeUndefined()
  }
  expect(books.end()).toBeUndefined()
  await stop()
  expect(findDamage(directory)).toEqual([])
})
