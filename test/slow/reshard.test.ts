/**
 * A board with the result of every write operation gets another number of shards, repeatedly: every read has the same answer as before,
 * and works in progress continue.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { story, unpackBoard } from '../fixtures/fixture.ts'
import { dataOf, run, summaryOf } from '../support/answers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { differences, RecordingClient, viewBoard } from '../support/board-view.ts'
import { Client, person } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'
import { setups, World } from '../support/operation-setups.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'
import { runProgram } from '../support/run-program.ts'
import { type StagedWork, workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })

const operator = person('operator of shards')
const stranger = person('stranger to shards')
const directory = boardDirectory()
const env = {
  SHARDS: '1',
  OPERATORS: operator.id,
  BROADSIDE_LOOPBACK: '1',
  SEGMENT_BYTES: '65536',
  RECENT_EVENTS: '16',
  COMPACT_SECONDS: '1',
}

let board: Board
let known: RecordingClient
let people: number
let target: HookTarget
/** Works in progress; those of one element are completed after each reshard. */
let inProgress: { readonly claimed: StagedWork; readonly replied: StagedWork; readonly submitted: StagedWork }[]

async function start(): Promise<void> {
  board = await startBoard({ directory, env })
}

async function reshard(shards: number): Promise<void> {
  await board.stop()
  const args = ['reshard', '--shards', String(shards), '--data', directory]
  const { code, errors } = await runProgram(directory, process.execPath, [program, ...args])
  expect([code, errors]).toEqual([0, ''])
  await start()
}

async function withClient<Result>(use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = await Client.of(board)
  try {
    return await use(client)
  } finally {
    client.close()
  }
}

/** How many ids and accepted commands are queried. */
const queriedMax = 120

const view = () => withClient((client) => viewBoard(client, known, { operator, stranger }, queriedMax))

/** Sends every write operation, with its documented example. */
async function sendEveryWrite(world: World): Promise<void> {
  for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
    const answer = await world.send(operation, await setups[operation.name]!(world))
    expect([operation.name, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([operation.name, 200, ''])
  }
}

beforeAll(async () => {
  await start()
  target = await HookTarget.open()
  const { serviceId } = await Client.of(board)
  known = new RecordingClient(board.address, serviceId)
  const world = new World(known, operator)
  await sendEveryWrite(world)
  inProgress = []
  for (let n = 0; n < 2; n++)
    inProgress.push({
      claimed: await workAt(world, 'claimed'),
      replied: await workAt(world, 'replied'),
      submitted: await workAt(world, 'submitted'),
    })
  people = world.people
  known.close()
})

afterAll(async () => {
  await board.stop()
  const check = await runProgram(directory, process.execPath, [program, 'fsck', '--signatures', '--data', directory])
  expect([check.code, check.output]).toEqual([0, expect.stringContaining('Everything agrees.')])
  await target.close()
})

/** Completes works in progress with their remaining commands. */
async function complete(world: World, { claimed, replied, submitted }: (typeof inProgress)[number]): Promise<void> {
  const submit = async ({ worker, work, result }: StagedWork) =>
    world.run(worker, { operation: 'work.submit', event_id: work, amount: 1, target: result })
  const result = await world.post(claimed.worker, { room: claimed.room, reply_to: claimed.work, text: 'done' })
  await submit({ ...claimed, result })
  await submit(replied)
  for (const { requester, worker, work } of [claimed, replied, submitted]) {
    const before = await balance(world, worker)
    const accepted = await world.run(requester, { operation: 'work.accept', event_id: work })
    expect(accepted.work).toMatchObject({ id: work, state: 'accepted' })
    expect((await balance(world, worker)) - before).toBeGreaterThan(0)
  }
}

async function balance(world: World, who: StagedWork['worker']): Promise<number> {
  const { available } = await world.run(who, { operation: 'credit.balance' })
  return Number(available)
}

test.each(
  randomPart([
    [0, 3],
    [1, 2],
  ] as const),
)(
  'after a reshard every read is answered as before, and works in progress can be completed (round %i, %i shards)',
  async (round, shards) => {
    // A restart first, so that what only the first start does is already done.
    await board.stop()
    await start()
    const before = await view()
    expect(before.size).toBeGreaterThan(2_000)
    await reshard(shards)
    expect(differences(before, await view())).toEqual([])
    await withClient(async (client) => {
      const world = new World(client, operator, people)
      await complete(world, inProgress[round]!)
      await sendEveryWrite(world)
      people = world.people
    })
  },
)

test('a reshard keeps public cursors valid, and refuses those with positions in shards', async () => {
  const [owner, room] = [person('owner of a den'), 'den-of-cursors']
  const cursors = await withClient(async (client) => {
    await run(client, owner, { operation: 'room.create', room, visibility: 'private' })
    for (const text of ['one', 'two', 'three']) await run(client, owner, { operation: 'post', room, text })
    const open = dataOf(await client.get('/api/updates')).cursor as string
    const signed = (await run(client, owner, { operation: 'updates.get' })).cursor as string
    const listed = (await run(client, owner, { operation: 'events.list', room, limit: 1 })).next_cursor as string
    return { open, signed, listed }
  })
  await reshard(4)
  await withClient(async (client) => {
    const text = 'after the cursor'
    const { event_id: id } = await run(client, owner, { operation: 'post', room: 'lobby', text })
    const page = dataOf(await client.get(`/api/updates?cursor=${cursors.open}`))
    expect(page.updates).toMatchObject([{ event: { event_id: id } }])
    const refused = await client.command(owner, { operation: 'updates.get', cursor: cursors.signed })
    expect(summaryOf(refused)).toBe('400 expired cursor')
    const [, oldest] = /oldest valid one is ([\w-]+)/.exec(refused.text)!
    const fields = {
      operation: 'updates.get',
      cursor: oldest!,
      limit: 200,
      data: JSON.stringify({ schema: 1, rooms: [room] }),
    }
    const { updates } = await run(client, owner, fields)
    const texts = (updates as { event?: { text: string } }[]).flatMap(({ event }) => event?.text ?? [])
    expect(texts).toEqual(['one', 'two', 'three'])
    const nextPage = { operation: 'events.list', room, limit: 1, cursor: cursors.listed }
    expect(summaryOf(await client.command(owner, nextPage))).toBe('400 invalid_field cursor')
  })
})

test('webhooks continue after a reshard: nothing is delivered twice, and old deliveries can be repeated on request', async () => {
  const [owner, room] = [person('owner of hooks'), 'hooked-den']
  const url = target.url('/moved')
  const texts = () => target.receivedAt('/moved').map(({ body }) => String(body.data.excerpt ?? body.data.text))
  const webhookId = await withClient(async (client) => {
    await run(client, owner, { operation: 'room.create', room, visibility: 'private' })
    const data = JSON.stringify({ schema: 1, url, kinds: ['room.post'], room })
    const { webhook } = await run(client, owner, { operation: 'webhook.create', data })
    for (const text of ['one', 'two']) await run(client, owner, { operation: 'post', room, text })
    return (webhook as { id: string }).id
  })
  await target.waitUntil(() => texts().length === 2)
  const delivered = texts()
  for (const shards of [1, 3]) await reshard(shards)
  await withClient(async (client) => {
    await run(client, owner, { operation: 'post', room, text: 'three' })
    await target.waitUntil(() => texts().length === 3)
    expect(texts().slice(0, 2)).toEqual(delivered)
    const { deliveries } = await run(client, owner, { operation: 'webhook.deliveries', target: webhookId })
    const oldest = (deliveries as { event: string }[]).at(-1)
    const redeliver = {
      operation: 'webhook.redeliver',
      target: webhookId,
      data: JSON.stringify({ schema: 1, event: oldest!.event }),
    }
    await run(client, owner, redeliver)
    // A busy machine may also have an unanswered delivery retried, so only those of the requested event count.
    const ofOldest = () => target.receivedAt('/moved').filter(({ body }) => body.eventId === oldest!.event)
    await target.waitUntil(() => ofOldest().length >= 2)
    const [original, repeated] = ofOldest()
    expect([repeated!.id, repeated!.body.data.excerpt]).toEqual([original!.id, original!.body.data.excerpt])
  })
})

test('a reshard that is killed at any moment leaves a complete board with the old or the new number of shards', async () => {
  const expected = story()
  const shardCounts = new Set<number>()
  for (const delayMs of randomPart([150, 400, 700])) {
    const path = boardDirectory()
    unpackBoard(path)
    const child = spawn(process.execPath, [program, 'reshard', '--shards', '5', '--data', path], { stdio: 'ignore' })
    const closed = once(child, 'close')
    await sleep(delayMs)
    child.kill('SIGKILL')
    await closed
    const started = await startBoard({ directory: path, env: {} })
    const client = await Client.of(started)
    expect((await client.get(`/api/events/${expected.post.id}`)).data.event).toMatchObject({ text: expected.post.text })
    client.close()
    expect(await started.stop()).toMatchObject({ code: 0 })
    const { shards } = JSON.parse(readFileSync(join(path, 'board.json'), 'utf8')) as { shards: number }
    shardCounts.add(shards)
    expect(readdirSync(path).filter((name) => /^(reshard|shard-)/.test(name))).toHaveLength(shards)
    const check = await runProgram(path, process.execPath, [program, 'fsck', '--data', path])
    expect([delayMs, check.code, check.output]).toEqual([delayMs, 0, expect.stringContaining('Everything agrees.')])
  }
  expect([...shardCounts].every((shards) => shards === 2 || shards === 5)).toBe(true)
})
