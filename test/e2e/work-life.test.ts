/** Whole lives of works, by HTTP: what parties, rooms, followers and the public log learn of each transition. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { resultSha256 } from '../../actors/works/letters.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { WorkClient, type WorkJson } from '../support/work-client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const op = person('operator')
const ada = person('ada')
const bob = person('bob')
const eve = person('eve')
let board: Board
let client: Client
let works: WorkClient

beforeAll(async () => {
  board = await startBoard({
    directory: boardDirectory(),
    env: { SHARDS: '2', OPERATORS: op.id, COMPACT_SECONDS: '1' },
  })
  client = await Client.of(board)
  works = new WorkClient(client)
  await Promise.all([works.waitForWelcome(ada), works.waitForWelcome(bob)])
  const grant = { operation: 'credit.grant', target: ada.id, amount: 10_000 }
  expect((await client.command(op, grant)).status).toBe(200)
})
afterAll(() => client.close())

/** What a follower is notified of works from now on. */
async function follow(): Promise<() => Promise<string[]>> {
  let { cursor } = (await client.get('/api/updates')).data as { cursor?: string }
  const seen: string[] = []
  return async () => {
    for (;;) {
      const { data } = await client.get(`/api/updates?cursor=${cursor}&limit=200`)
      const page = data as unknown as { updates: { type: string; work?: string }[]; cursor: string; has_more: boolean }
      cursor = page.cursor
      seen.push(...page.updates.flatMap(({ type, work }) => (work === undefined ? [] : [`${type} ${work}`])))
      if (!page.has_more) return seen
    }
  }
}

async function texts(work: string): Promise<string[]> {
  return (await works.notices(ada, work)).map(({ text }) => text.split(/[:.,]/)[0]!)
}

test('a work is requested, claimed, delivered and accepted: paid, announced, and provable', async () => {
  const followed = await follow()
  const before = { ada: await works.balance(ada), bob: await works.balance(bob) }
  const asked = client.sign(ada, works.createFields('lobby', 200))
  const created = await client.send(asked.body)
  const { work, receipt } = created.data as unknown as { work: WorkJson; receipt: { log_index: number } }
  expect(work).toMatchObject({
    id: asked.eventId,
    state: 'open',
    fence: 0,
    reward: { amount: 200, fee: 2, state: 'held' },
  })
  expect(work.request.version_id).toBe(asked.eventId)
  expect(await works.balance(ada)).toEqual({ available: before.ada.available - 202, held: before.ada.held + 202 })
  // The command is the post: it is in the thread and in the log under the work's id.
  const { data: proof } = await client.get(`/api/log/proof?message=${work.id}`)
  expect([proof.leaf_index, JSON.parse(proof.signed_payload!).command.operation]).toEqual([
    receipt.log_index,
    'work.create',
  ])

  const claimed = await works.run(bob, works.claimFields(work.id, { ttl: 900 }))
  expect(claimed.work).toMatchObject({ state: 'claimed', fence: 1, worker: { id: bob.id } })
  const result = await works.deliver(bob, work.id, 'here it is')
  const submitted = await works.run(
    bob,
    works.submitFields(work.id, result, 1, { result_sha256: resultSha256('here it is', []) }),
  )
  expect(submitted.work).toMatchObject({
    state: 'submitted',
    fence: 1,
    result_id: result,
    result_available: true,
    result_sha256: resultSha256('here it is', []),
    result_changed_since_submit: false,
  })
  const accepted = await works.run(ada, works.acceptFields(work.id))
  expect(accepted.work).toMatchObject({ state: 'accepted', reward: { state: 'paid', reason: 'accepted' } })
  expect(await works.balance(bob)).toEqual({ available: before.bob.available + 200, held: 0 })
  expect(await works.balance(ada)).toEqual({ available: before.ada.available - 202, held: before.ada.held })

  await expect
    .poll(() => texts(work.id))
    .toEqual(
      ['Open', 'Claimed until 2', 'A result was submitted', 'Accepted'].map((each) =>
        expect.stringContaining(each.slice(0, 7)),
      ),
    )
  const [first, ...toBob] = await works.notices(ada, work.id)
  expect([first!.to, first!.author.handle]).toEqual([undefined, 'broadside'])
  expect(toBob.map(({ to }) => to)).toEqual([bob.id, bob.id, bob.id])
  expect(await followed()).toEqual(
    ['open', 'claimed', 'submitted', 'accepted'].map((state) => `work.${state} ${work.id}`),
  )
  for (const [who, type] of [
    [ada, 'reply'],
    [bob, 'addressed'],
  ] as const) {
    const { data } = await client.command(who, { operation: 'inbox.get', kind: type, limit: 200 })
    const { items } = data as unknown as { items: { event: { kind: string; thread: string } }[] }
    const notices = items.filter(({ event }) => event.kind === 'notice' && event.thread === work.id)
    expect([type, notices.length]).toEqual([type, type === 'reply' ? 4 : 3])
  }
  // A retry of the first command gets the current state of the work.
  const again = await client.send(asked.body)
  expect([
    again.status,
    again.data.receipt?.duplicate,
    (again.data as unknown as { work: WorkJson }).work.state,
  ]).toEqual([200, true, 'accepted'])
  expect(await texts(work.id)).toHaveLength(4)
})

test('the same signed command sent many times at once creates one work, and every sender gets it', async () => {
  const before = await works.balance(ada)
  const asked = client.sign(ada, works.createFields('lobby', 10))
  const answers = await Promise.all(Array.from({ length: 8 }, () => client.send(asked.body)))
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect(new Set(answers.map(({ data }) => (data as unknown as { work: WorkJson }).work.id))).toEqual(
    new Set([asked.eventId]),
  )
  expect(answers.filter(({ data }) => data.receipt?.duplicate === undefined)).toHaveLength(1)
  expect((await works.balance(ada)).held - before.held).toBe(10)
  const { data } = await client.get(`/api/thread/${asked.eventId}`)
  expect(data.events!.filter(({ kind }) => kind === 'request')).toHaveLength(1)
})

test('a request that its room refuses costs nothing, leaves nothing, and may be retried', async () => {
  await client.command(ada, { operation: 'room.create', room: 'hall', visibility: 'public' })
  const policy = (set: object) =>
    client.command(ada, { operation: 'room.policy.set', room: 'hall', data: JSON.stringify(set) })
  await policy({ write: 'owner' })
  const before = await works.balance(bob)
  const asked = client.sign(bob, { ...works.createFields('hall', 20), request_id: 'mine' } as never)
  const once = await client.send(asked.body)
  expect([once.status, once.code]).toEqual([403, 'room_write_restricted'])
  expect((await client.send(asked.body)).code).toBe('room_write_restricted')
  expect(await works.balance(bob)).toEqual(before)
  expect((await client.get(`/api/work/${asked.eventId}`)).code).toBe('not_found')
  expect((await client.get(`/api/events/${asked.eventId}`)).code).toBe('not_found')
  await policy({ write: 'open' })
  // A refusal consumes nothing: neither the request id nor the nonce.
  const { nonce, public_key, signature, timestamp, ...fields } = JSON.parse(asked.body) as Fields & { nonce: string }
  const later = await client.command(bob, { ...fields, amount: 21 }, { nonce })
  expect([later.status, later.code]).toEqual([200, undefined])
  const own = later.data.receipt!.event_id
  expect(await works.balance(bob)).toEqual({ available: before.available - 21, held: before.held + 21 })
  await works.run(bob, { operation: 'work.cancel', event_id: own, reason: 'not needed any more' })
  expect(await works.balance(bob)).toEqual(before)
})

test('a post of kind request becomes a work, once; it is edited only through work.edit', async () => {
  const post = await client.post(ada, { room: 'lobby', text: 'wanted', kind: 'request' })
  const event_id = post.data.receipt!.event_id
  const ask = { operation: 'work.create', event_id, amount: 10, data: '{"schema":1,"title":"Wanted"}' }
  const { work } = await works.run(ada, ask)
  expect([work.id, work.request.text, work.request.versions]).toEqual([event_id, 'wanted', 1])
  expect(await works.refusalCode(ada, ask)).toBe('conflict')
  expect(await works.refusalCode(bob, ask)).toBe('conflict')
  const supersede = { operation: 'post', text: 'other', data: JSON.stringify({ schema: 1, supersedes: event_id }) }
  expect(await works.refusalCode(ada, supersede)).toBe('wrong_state')
  const edited = await works.run(ada, { operation: 'work.edit', event_id, text: 'wanted more' })
  expect(edited.work.request).toMatchObject({ text: 'wanted more', versions: 2, version_id: edited.receipt.event_id })
  const { data } = await client.get(`/api/events/${event_id}`)
  expect([data.event!.text, data.event!.event_id]).toEqual(['wanted more', event_id])
  await works.run(
    bob,
    works.claimFields(event_id, { data: JSON.stringify({ schema: 1, version_id: edited.receipt.event_id }) }),
  )
  expect(await works.refusalCode(ada, { operation: 'work.edit', event_id, text: 'too late' })).toBe('wrong_state')
  expect(await works.refusalCode(ada, { operation: 'event.redact', event_id, reason: 'no' })).toBe('wrong_state')
  expect((await works.run(bob, { operation: 'work.release', event_id, amount: 1 })).work.state).toBe('open')
  expect((await client.command(ada, { operation: 'event.redact', event_id, reason: 'enough' })).status).toBe(200)
  await expect
    .poll(async () => ((await client.get(`/api/work/${event_id}`)).data as unknown as { work: WorkJson }).work.state)
    .toBe('cancelled')
})

test('the text of a redacted request leaves the disk, in its room and with the market', async () => {
  const onDisk = (words: string) =>
    ['shard-00', 'shard-01'].flatMap((shard) =>
      readdirSync(join(board.directory, shard))
        .filter((name) => name.endsWith('.log'))
        .filter((name) => readFileSync(join(board.directory, shard, name)).includes(words)),
    )
  const [first, second, never] = ['first', 'second', 'never'].map((each) => `${each} words of a request`)
  const { work } = await works.run(ada, { ...works.createFields('lobby', 10), text: first! })
  await works.run(ada, { operation: 'work.edit', event_id: work.id, text: second! })
  await client.command(ada, { operation: 'room.create', room: 'closed' })
  await client.command(ada, { operation: 'room.policy.set', room: 'closed', data: '{"write":"owner"}' })
  expect(await works.refusalCode(bob, { ...works.createFields('closed', 10), text: `${never} in vain` })).toBe(
    'room_write_restricted',
  )
  expect([first!, second!].map((each) => onDisk(each).length > 0)).toEqual([true, true])
  const redact = { operation: 'event.redact', event_id: work.id, reason: 'too much' }
  expect((await client.command(ada, redact)).status).toBe(200)
  await expect.poll(() => [first!, second!, `${never} in vain`].flatMap(onDisk)).toEqual([])
  await expect
    .poll(async () => ((await client.get(`/api/work/${work.id}`)).data as unknown as { work: WorkJson }).work.state)
    .toBe('cancelled')
  expect((await client.get(`/api/work/${work.id}/history`)).status).toBe(200)
})

test('a work is rejected, disputed and ruled on by a third party: split, bond returned, books balanced', async () => {
  await works.waitForWelcome(eve)
  const before = { ada: await works.balance(ada), bob: await works.balance(bob) }
  const { work } = await works.run(ada, works.createFields('lobby', 100))
  const result = await works.deliver(eve, work.id, 'by eve')
  // In one step, with a result that was posted before.
  const claimed = await works.run(eve, { ...works.claimFields(work.id), target: result } as never)
  expect(claimed.work).toMatchObject({ state: 'submitted', fence: 1, result_id: result })
  const copy = await works.deliver(bob, work.id, 'by eve', { kind: 'note' })
  expect(copy).toMatch(/^[0-9a-f]{32}$/)
  await works.run(ada, { operation: 'work.reject', event_id: work.id, reason: 'this is not what was asked for' })
  await works.run(eve, { operation: 'work.dispute', event_id: work.id, amount: 1, reason: 'it is' })
  expect((await works.balance(eve)).held).toBe(10)
  const rule = { operation: 'work.rule', event_id: work.id, reason: 'half of it is', data: '{"schema":1,"percent":50}' }
  expect(await works.refusalCode(ada, rule)).toBe('forbidden')
  const ruled = await works.run(op, rule)
  expect(ruled.work).toMatchObject({ state: 'split', reward: { state: 'split' } })
  expect(await works.balance(eve)).toMatchObject({ available: 150, held: 0 })
  expect(await works.balance(ada)).toEqual({ available: before.ada.available - 50, held: before.ada.held })
  await expect.poll(async () => (await works.notices(ada, work.id)).length).toBe(6)
})

test('a simulated work is practice: it costs nothing, pays nothing, and is in no ledger', async () => {
  const newcomer = person('newcomer')
  const { work } = await works.run(newcomer, works.createFields('lobby', 1_000, {}, { simulated: true }))
  expect(work).toMatchObject({ simulated: true, state: 'open' })
  const result = await works.deliver(bob, work.id, `practice ${work.id}`)
  const before = await works.balance(bob)
  await works.run(bob, { ...works.claimFields(work.id), target: result } as never)
  await works.run(newcomer, works.acceptFields(work.id))
  expect(await works.balance(bob)).toEqual(before)
  const ledger = await client.get('/v1/export?stream=ledger')
  expect(ledger.text).not.toContain(work.id)
  // Its request was a first public post, which is welcomed like any other.
  await expect.poll(async () => (await works.balance(newcomer)).available).toBe(100)
})

test('a work of a private room is visible only to its members, and only they are notified', async () => {
  await client.command(ada, { operation: 'room.create', room: 'cellar', visibility: 'private', members: [bob.id] })
  const before = (await client.get('/v1/export?stream=ledger')).text
    .split('\n')
    .filter((line) => line.includes('"ledger"'))
  const updates = { operation: 'updates.get', data: '{"schema":1,"rooms":["cellar"]}' }
  const { cursor } = (await client.command(bob, updates)).data as { cursor?: string }
  const { work } = await works.run(ada, works.createFields('cellar', 50))
  expect((await client.get(`/api/work/${work.id}`)).code).toBe('private_room')
  expect(await works.refusalCode(eve, works.claimFields(work.id))).toBe('not_found')
  await works.run(bob, works.claimFields(work.id))
  expect(await works.refusalCode(ada, { operation: 'room.member.remove', room: 'cellar', target: bob.id })).toBe(
    'wrong_state',
  )
  const result = await works.deliver(bob, work.id, 'in secret')
  await works.run(bob, works.submitFields(work.id, result))
  const paid = await works.run(ada, works.acceptFields(work.id))
  expect(paid.work.state).toBe('accepted')
  const told = (await client.command(bob, { ...updates, cursor: cursor! })).data as unknown as {
    updates: { type: string; work?: string }[]
  }
  expect(told.updates.flatMap(({ type, work: id }) => (id === undefined ? [] : [[type, id]]))).toEqual(
    ['open', 'claimed', 'submitted', 'accepted'].map((state) => [`work.${state}`, work.id]),
  )
  await expect.poll(async () => (await works.notices(bob, work.id)).length).toBe(4)
  const after = (await client.get('/v1/export?stream=ledger')).text
    .split('\n')
    .filter((line) => line.includes('"ledger"'))
  expect(after.length).toBe(before.length)
  expect((await client.command(ada, { operation: 'room.member.remove', room: 'cellar', target: bob.id })).status).toBe(
    200,
  )
})
