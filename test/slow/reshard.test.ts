/**
 * A board on which everything was done that can be done gets another number of shards, twice: to all who ask it is the same board, and
 * what was begun on it goes on.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { operations } from '../../actors/operations.ts'
import { story, unpackBoard } from '../fixtures/fixture.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { drawn } from '../support/drawn.ts'
import { HookTarget } from '../support/hook-target.ts'
import { setups, World } from '../support/operation-setups.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { dataOf, run, told } from '../support/told.ts'
import { differences, RememberingClient, wholeView } from '../support/whole-view.ts'
import { type Staged, workAt } from '../support/work-stages.ts'

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
let known: RememberingClient
let people: number
let target: HookTarget
/** Works that are brought further after each step. */
let begun: { readonly claimed: Staged; readonly replied: Staged; readonly submitted: Staged }[]

async function startAgain(): Promise<void> {
  board = await startBoard({ directory, env })
}

async function reshard(shards: number): Promise<void> {
  await board.stop()
  const args = ['reshard', '--shards', String(shards), '--data', directory]
  const { code, errors } = await runProgram(directory, process.execPath, [program, ...args])
  expect([code, errors]).toEqual([0, ''])
  await startAgain()
}

async function withClient<Result>(use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = await Client.of(board)
  try {
    return await use(client)
  } finally {
    client.close()
  }
}

/** Of ids so many are asked about. */
const asksMax = 120

const view = () => withClient((client) => wholeView(client, known, { operator, stranger }, asksMax))

/** Every write that there is, by its documented example. */
async function doEverything(world: World): Promise<void> {
  for (const operation of operations.filter(({ kind }) => kind !== 'read')) {
    const answer = await world.send(operation, await setups[operation.name]!(world))
    expect([operation.name, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([operation.name, 200, ''])
  }
}

beforeAll(async () => {
  await startAgain()
  target = await HookTarget.open()
  const { serviceId } = await Client.of(board)
  known = new RememberingClient(board.address, serviceId)
  const world = new World(known, operator)
  await doEverything(world)
  begun = []
  for (let n = 0; n < 2; n++)
    begun.push({
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

/** Brings a work to its end with the rest of its commands. */
async function complete(world: World, { claimed, replied, submitted }: (typeof begun)[number]): Promise<void> {
  const submit = async ({ worker, work, result }: Staged) =>
    world.done(worker, { operation: 'work.submit', event_id: work, amount: 1, target: result })
  const result = await world.post(claimed.worker, { room: claimed.room, reply_to: claimed.work, text: 'done' })
  await submit({ ...claimed, result })
  await submit(replied)
  for (const { requester, worker, work } of [claimed, replied, submitted]) {
    const before = await balance(world, worker)
    const accepted = await world.done(requester, { operation: 'work.accept', event_id: work })
    expect(accepted.work).toMatchObject({ id: work, state: 'accepted' })
    expect((await balance(world, worker)) - before).toBeGreaterThan(0)
  }
}

async function balance(world: World, who: Staged['worker']): Promise<number> {
  const { available } = await world.done(who, { operation: 'credit.balance' })
  return Number(available)
}

test.each(
  drawn([
    [0, 3],
    [1, 2],
  ] as const),
)('all is as before, and what was begun goes on: %i, with %i shards', async (round, shards) => {
  // What a start does once is done.
  await board.stop()
  await startAgain()
  const before = await view()
  expect(before.size).toBeGreaterThan(2_000)
  await reshard(shards)
  expect(differences(before, await view())).toEqual([])
  await withClient(async (client) => {
    const world = new World(client, operator, people)
    await complete(world, begun[round]!)
    await doEverything(world)
    people = world.people
  })
})

test('cursors of the public go on; those with places in shards are refused, and name where to begin', async () => {
  const [owner, room] = [person('owner of a den'), 'den-of-cursors']
  const before = await withClient(async (client) => {
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
    const page = dataOf(await client.get(`/api/updates?cursor=${before.open}`))
    expect(page.updates).toMatchObject([{ event: { event_id: id } }])
    const refused = await client.command(owner, { operation: 'updates.get', cursor: before.signed })
    expect(told(refused)).toBe('400 expired cursor')
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
    const list = { operation: 'events.list', room, limit: 1, cursor: before.listed }
    expect(told(await client.command(owner, list))).toBe('400 invalid_field cursor')
  })
})

test('webhooks go on where they were: nothing is sent twice, and what was sent can be sent again', async () => {
  const [owner, room] = [person('owner of hooks'), 'hooked-den']
  const url = target.url('/moved')
  const words = () => target.at('/moved').map(({ body }) => String(body.data.excerpt ?? body.data.text))
  const hook = await withClient(async (client) => {
    await run(client, owner, { operation: 'room.create', room, visibility: 'private' })
    const data = JSON.stringify({ schema: 1, url, kinds: ['room.post'], room })
    const { webhook } = await run(client, owner, { operation: 'webhook.create', data })
    for (const text of ['one', 'two']) await run(client, owner, { operation: 'post', room, text })
    return (webhook as { id: string }).id
  })
  await target.until(() => words().length === 2)
  const sent = words()
  for (const shards of [1, 3]) await reshard(shards)
  await withClient(async (client) => {
    await run(client, owner, { operation: 'post', room, text: 'three' })
    await target.until(() => words().length === 3)
    expect(words().slice(0, 2)).toEqual(sent)
    const { deliveries } = await run(client, owner, { operation: 'webhook.deliveries', target: hook })
    const first = (deliveries as { event: string }[]).at(-1)
    const again = {
      operation: 'webhook.redeliver',
      target: hook,
      data: JSON.stringify({ schema: 1, event: first!.event }),
    }
    await run(client, owner, again)
    await target.until(() => words().length === 4)
    const [repeated, ...others] = target.at('/moved').toReversed()
    const original = others.find(({ id }) => id === repeated!.id)
    expect([repeated!.body.eventId, repeated!.body.data.excerpt]).toEqual([first!.event, original!.body.data.excerpt])
  })
})

test('killed at any moment, the next start has a whole board', async () => {
  const told = story()
  const ends = new Set<number>()
  for (const delayMs of drawn([150, 400, 700])) {
    const path = boardDirectory()
    unpackBoard(path)
    const child = spawn(process.execPath, [program, 'reshard', '--shards', '5', '--data', path], { stdio: 'ignore' })
    const ended = once(child, 'close')
    await sleep(delayMs)
    child.kill('SIGKILL')
    await ended
    const started = await startBoard({ directory: path, env: {} })
    const client = await Client.of(started)
    expect((await client.get(`/api/events/${told.post.id}`)).data.event).toMatchObject({ text: told.post.text })
    client.close()
    expect(await started.stop()).toMatchObject({ code: 0 })
    const { shards } = JSON.parse(readFileSync(join(path, 'board.json'), 'utf8')) as { shards: number }
    ends.add(shards)
    expect(readdirSync(path).filter((name) => /^(reshard|shard-)/.test(name))).toHaveLength(shards)
    const check = await runProgram(path, process.execPath, [program, 'fsck', '--data', path])
    expect([delayMs, check.code, check.output]).toEqual([delayMs, 0, expect.stringContaining('Everything agrees.')])
  }
  expect([...ends].every((shards) => shards === 2 || shards === 5)).toBe(true)
})
