/** Works on a real board: the records as the interface has them, lists, histories, private rooms, the feed, and the figures. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { marketName } from '../../actors/works/market/letters.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person, walkPages } from '../support/client.ts'
import { World } from '../support/operation-setups.ts'
import { patience } from '../support/patience.ts'
import { reason, type Stage, type StagedWork, workAt } from '../support/work-stages.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Loose = Readonly<Record<string, unknown>>
type WorkJson = Loose & {
  readonly id: string
  readonly state: string
  readonly title: string
  readonly fence: number
  readonly created_at: number
  readonly deadline: number
  readonly simulated: boolean
  readonly reward: { readonly amount: number; readonly state: string }
}

const operator = person('the operator')
let board: Board
let client: Client
let world: World
const staged = new Map<Stage, StagedWork>()

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { OPERATORS: operator.id, SHARDS: '2' } })
  client = await Client.of(board)
  world = new World(client, operator)
  const stages: readonly Stage[] = ['open', 'claimed', 'submitted', 'revision', 'rejected', 'disputed', 'accepted']
  await Promise.all(stages.map(async (stage) => staged.set(stage, await workAt(world, stage, {}, { room: 'jobs' }))))
})
afterAll(() => client.close())

const list = async (query: string): Promise<WorkJson[]> =>
  (await walkPages(client, `/api/works?${query}`)).flatMap(
    ({ data }) => (data as unknown as { works: WorkJson[] }).works,
  )

test('records have each field in the states that the interface lists, and in no others', async () => {
  const works = await list('room=jobs')
  expect(works).toHaveLength(staged.size)
  for (const work of works) {
    const isOpen = work.state === 'open'
    expect(work).toMatchObject({
      deadline: work.created_at + 604_800,
      requester_author: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    expect(work.requester).toMatchObject({ id: work.requester_author })
    expect(work.fence).toBe(isOpen ? 0 : 1)
    expect('worker' in work).toBe(!isOpen)
    const hasResult = !['open', 'claimed'].includes(work.state)
    for (const field of ['result_id', 'result_sha256', 'result_changed_since_submit'])
      expect(field in work).toBe(hasResult)
    expect(work.result_available).toBe(hasResult)
    expect(work.reward.state).toBe(work.state === 'accepted' ? 'paid' : 'held')
    if (isOpen) expect(work.claim_expires_at).toBe(0)
  }
})

test('a list is newest first, filtered by state, party, tag, words and reward, and its pages are complete', async () => {
  const all = await list('room=jobs')
  const sorted = [...all].sort((a, b) => b.created_at - a.created_at || (a.id < b.id ? -1 : 1))
  expect(all).toEqual(sorted)
  expect(await list('room=jobs&limit=2')).toEqual(all)
  expect((await list('room=jobs&kind=disputed')).map(({ id }) => id)).toEqual([staged.get('disputed')!.work])
  const { worker } = staged.get('revision')!
  expect((await list(`target=${worker.id}`)).map(({ id }) => id)).toEqual([staged.get('revision')!.work])
  expect(await list('room=jobs&capability=qa&query=three')).toEqual(all)
  expect(await list('room=jobs&query=four')).toEqual([])
  expect(await list('room=jobs&min_reward=101')).toEqual([])
  const dear = await workAt(world, 'open', {}, { room: 'jobs', amount: 400 })
  expect((await list('room=jobs&sort=reward'))[0]!.id).toBe(dear.work)
  expect((await list('room=jobs&sort=deadline')).at(-1)!.created_at).toBeGreaterThanOrEqual(all[0]!.created_at)
  const open = await list(`room=jobs&eligible_for=${world.someone().id}`)
  expect(open.map(({ id }) => id).sort()).toEqual([dear.work, staged.get('open')!.work].sort())
  expect((await list(`room=jobs&eligible_for=${dear.requester.id}`)).map(({ id }) => id)).not.toContain(dear.work)
  const { code } = await client.get('/api/works?cursor=AAAA')
  expect(code).toBe('invalid_field')
})

test('a history names who signed each transition and what moved, and its bytes can be verified', async () => {
  const { work, requester, worker } = staged.get('accepted')!
  const { data } = await client.get(`/api/work/${work}/history`)
  const { transitions } = data as unknown as { transitions: readonly Loose[] }
  expect(transitions.map(({ operation }) => operation)).toEqual([
    'work.create',
    'work.claim',
    'work.submit',
    'work.accept',
  ])
  expect(transitions.map(({ actor }) => (actor as { id: string }).id)).toEqual([
    requester.id,
    worker.id,
    worker.id,
    requester.id,
  ])
  expect(transitions.map(({ transfers }) => (transfers as { code: number }[]).map(({ code }) => code))).toEqual([
    [10],
    [],
    [],
    [11, 20, 21],
  ])
  for (const { signed_payload, signature } of transitions) {
    expect(JSON.parse(signed_payload as string).command.operation).toMatch(/^work\./)
    expect(signature).toMatch(/^[\w-]{86}$/)
  }
})

test('a redacted request is in no record and no history', async () => {
  const { requester, work } = await workAt(world, 'open', {}, { room: 'jobs', text: 'a very secret request' })
  await world.run(requester, { operation: 'event.redact', event_id: work, reason: 'x' })
  for (const path of [`/api/work/${work}`, `/api/work/${work}/history`, '/work.atom', '/api/works?room=jobs'])
    expect((await client.get(path)).text).not.toContain('very secret')
})

test('the title of a removed request is not found, and is in no export', async () => {
  const asked = { room: 'jobs', text: 'an offer' }
  const more = { title: 'Quokkas for sale', capabilities: ['marsupials'] }
  const [hidden, shown] = [await workAt(world, 'open', more, asked), await workAt(world, 'open', more, asked)]
  const found = async (query: string) => (await list(`room=jobs&query=${query}`)).map(({ id }) => id).sort()
  expect(await found('quokka')).toEqual([hidden.work, shown.work].sort())
  const titles = async () => (await client.get('/v1/export?stream=board')).text.split('Quokkas for sale').length - 1
  const before = await titles()
  await world.run(operator, { operation: 'room.hide', event_id: hidden.work, reason: 'spam' })
  expect(await found('quokka')).toEqual([shown.work])
  expect(await found('marsupials')).toEqual([hidden.work, shown.work].sort())
  await vi.waitFor(async () => expect(await titles()).toBe(before / 2), patience)
})

test.each(['in the shard of the market', 'in another shard'])(
  'the title of a request removed from a private room %s is not found there',
  async (where) => {
    const isThere = (name: string) => shardOf(name, 2) === shardOf(marketName, 2)
    const names = Array.from({ length: 20 }, (_, n) => `closed-${n}`)
    const room = names.find((name) => isThere(name) === (where === 'in the shard of the market'))!
    const requester = await world.personWithCredits()
    await world.run(requester, { operation: 'room.create', room, visibility: 'private' })
    const data = JSON.stringify({ schema: 1, title: 'A wombat', capabilities: ['marsupials'] })
    const asked = { operation: 'work.create', room, text: 'Bring it.', amount: 10, data }
    const { work } = await world.run(requester, asked)
    const found = async (query: string) => (await world.run(requester, { operation: 'work.list', room, query })).works
    expect(await found('wombat')).toMatchObject([{ title: 'A wombat' }])
    await world.run(requester, { operation: 'event.redact', event_id: work!.id as string, reason: 'mistaken' })
    expect(await found('wombat')).toEqual([])
    expect(await found('marsupials')).toMatchObject([{ title: '[removed]' }])
  },
)

describe('a work of a private room', () => {
  let inside: StagedWork
  let room: string
  beforeAll(async () => {
    const made = await world.privateRoom([])
    room = made.room
    const [requester, worker] = [await world.personWithCredits(), await world.personWithCredits()]
    for (const each of [requester, worker])
      await world.run(made.owner, { operation: 'room.member.add', room, target: each.id })
    const data = '{"schema":1,"title":"Hidden treasure","capabilities":["treasure-tag"]}'
    const asked = { operation: 'work.create', room, text: 'Find the hidden treasure.', amount: 77, data }
    const { work } = await world.run(requester, asked)
    inside = { requester, worker, work: work!.id as string, room, result: '', sha256: '' }
  })

  test('is read, claimed, delivered and accepted by its members like any other', async () => {
    const { requester, worker, work } = inside
    const listed = await world.run(worker, { operation: 'work.list', room })
    expect(listed.works).toMatchObject([{ id: work, request: { text: 'Find the hidden treasure.' } }])
    await world.run(worker, { operation: 'work.claim', event_id: work })
    const result = await world.post(worker, { room, reply_to: work, text: 'here it is' })
    await world.run(worker, { operation: 'work.submit', event_id: work, amount: 1, target: result })
    const { work: accepted } = await world.run(requester, { operation: 'work.accept', event_id: work })
    expect(accepted).toMatchObject({ state: 'accepted', reward: { state: 'paid' } })
    expect(await world.run(worker, { operation: 'credit.balance' })).toMatchObject({ available: 1_077 })
    const { transitions } = await world.run(worker, { operation: 'work.history', event_id: work })
    expect(transitions).toHaveLength(4)
  })

  test('is not visible anywhere else', async () => {
    const { work, worker, requester } = inside
    const paths = ['/api/works?limit=200', '/work.atom', '/api/credits?target=mint', `/api/works?target=${worker.id}`]
    for (const path of [...paths, '/v1/export', '/api/changes?after=0', '/api/log/leaves?start=0&end=200']) {
      const { text } = await client.get(path)
      expect(text).not.toContain(work)
      expect(text.toLowerCase()).not.toContain('treasure')
      expect(Buffer.from(text, 'base64').toString('latin1')).not.toContain(work)
    }
    const stranger = await world.personWithCredits()
    for (const operation of ['work.get', 'work.history']) {
      expect((await client.command(stranger, { operation, event_id: work })).code).toBe('private_room')
    }
    for (const operation of ['work.claim', 'work.accept', 'work.cancel', 'work.raise'])
      expect(
        (
          await client.command(stranger, {
            operation,
            event_id: work,
            ...(operation === 'work.raise' ? { amount: 5 } : {}),
          })
        ).code,
      ).toBe('not_found')
    const shown = await world.run(operator, { operation: 'credit.history', target: requester.id })
    expect(JSON.stringify(shown)).not.toContain(work)
    const { work: elsewhere } = await workAt(world, 'claimed', {}, { room: 'jobs' })
    const record = (await client.get(`/api/work/${elsewhere}`)).data as unknown as { work: { worker_record: object } }
    expect(record.work.worker_record).toEqual({ accepted: 0, rejected: 0, lapsed: 0 })
  })
})

test('practice works are listed only when their room is requested', async () => {
  const poor = world.someone()
  const data = '{"schema":1,"title":"Practice","simulated":true}'
  const asked = { operation: 'work.create', room: 'gym', text: 'practice this', amount: 900, data }
  const { work } = await world.run(poor, asked)
  expect((await list('limit=200')).map(({ id }) => id)).not.toContain(work!.id)
  expect((await list('room=gym')).map(({ id }) => id)).toEqual([work!.id])
  expect(await world.run(poor, { operation: 'credit.balance' })).toMatchObject({ simulated: { held: 909 } })
})

test('a claim that comes with its result is submitted in one step', async () => {
  const { worker, work } = await workAt(world, 'open', {}, { room: 'jobs' })
  const target = await world.post(worker, { room: 'jobs', reply_to: work, text: `ready-made for ${work}` })
  const { work: now } = await world.run(worker, { operation: 'work.claim', event_id: work, target })
  expect(now).toMatchObject({ state: 'submitted', fence: 1, result_id: target })
  expect(Number(now!.claim_expires_at)).toBeGreaterThan(Number(now!.created_at))
})

test('a result that is edited into an older reply belongs to its author, and nobody else can submit it', async () => {
  const { worker, work } = await workAt(world, 'open', {}, { room: 'jobs' })
  const thief = world.someone()
  const [text, reply] = [`what only the worker of ${work} has found`, { room: 'jobs', reply_to: work, kind: 'result' }]
  const ready = await world.post(thief, { ...reply, text: `soon, ${work}` })
  const target = await world.post(worker, { ...reply, text })
  await world.post(thief, { room: 'jobs', text, data: JSON.stringify({ schema: 1, supersedes: ready }) })
  const claim = { operation: 'work.claim', event_id: work }
  expect((await client.command(thief, { ...claim, target: ready })).code).toBe('conflict')
  const { work: now } = await world.run(worker, { ...claim, target })
  expect(now).toMatchObject({ state: 'submitted', result_id: target })
})

test('of many concurrent claims one gets the work', async () => {
  const { work } = await workAt(world, 'open', {}, { room: 'jobs' })
  const racers = Array.from({ length: 20 }, () => world.someone())
  const answers = await Promise.all(
    racers.map((each) => client.command(each, { operation: 'work.claim', event_id: work })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(new Set(answers.map(({ code }) => code))).toEqual(new Set([undefined, 'wrong_state']))
})

test('moved credits are in the history of both parties, and the sums are right', async () => {
  const [from, to] = [await world.personWithCredits(50), world.someone()]
  await world.run(from, { operation: 'credit.transfer', target: to.id, amount: 20, reason: 'thanks' })
  expect(await world.run(from, { operation: 'credit.balance' })).toMatchObject({ available: 29 })
  expect(await world.run(to, { operation: 'credit.balance' })).toMatchObject({ available: 20 })
  const { entries } = await world.run(from, { operation: 'credit.history', limit: 2 })
  expect((entries as unknown as { code: number }[]).map(({ code }) => code)).toEqual([4, 3])
  const paged = await world.run(from, { operation: 'credit.history', limit: 1 })
  const next = await world.run(from, { operation: 'credit.history', limit: 2, cursor: paged.next_cursor as never })
  expect((next.entries as unknown as { code: number }[]).map(({ code }) => code)).toEqual([3, 1])
})

test('an erased identity receives no credits, and an earlier transfer is answered as it was', async () => {
  const [from, gone] = [await world.personWithCredits(50), world.someone()]
  const before = client.sign(from, { operation: 'credit.transfer', target: gone.id, amount: 20 })
  expect((await client.send(before.body)).status).toBe(200)
  await world.run(operator, { operation: 'identity.erase', target: gone.id, reason: 'as asked' })
  for (const [by, operation] of [
    [from, 'credit.transfer'],
    [operator, 'credit.grant'],
  ] as const) {
    const answer = await client.command(by, { operation, target: gone.id, amount: 5 })
    expect(answer).toMatchObject({ code: 'invalid_field', field: 'target' })
    expect(answer.text).toContain('permanently erased')
  }
  expect((await client.send(before.body)).data.receipt).toMatchObject({ duplicate: true })
  expect(await world.run(from, { operation: 'credit.balance' })).toMatchObject({ available: 29 })
})

test('the feed is well formed whatever a title holds, and the figures count works by state', async () => {
  const title = 'a <b> & "c" \uffff \u{1f600}'
  await workAt(world, 'open', { title }, { room: 'jobs' })
  const { text, headers } = await client.get('/work.atom')
  expect(headers['content-type']).toBe('application/atom+xml; charset=utf-8')
  expect(text).toContain('a &lt;b&gt; &amp; &quot;c&quot; \u{fffd} \u{1f600} (100 credits, open)')
  const { stats } = (await client.get('/api/stats')).data as { stats: Readonly<Record<string, number>> }
  expect(stats.works_disputed).toBe(1)
  expect(stats.works).toBe(
    Object.entries(stats)
      .filter(([name]) => name.startsWith('works_'))
      .reduce((sum, [, count]) => sum + count, 0),
  )
})

test('works are unchanged after a kill, and one command has one effect', async () => {
  const { requester, worker, work } = await workAt(world, 'submitted', {}, { room: 'jobs' })
  const accept = client.sign(requester, { operation: 'work.accept', event_id: work })
  const first = await client.send(accept.body)
  expect(first.status).toBe(200)
  const before = await list('room=jobs&limit=200')
  const balance = await world.run(worker, { operation: 'credit.balance' })
  await board.kill()
  client.close()
  board = await startBoard({ directory: board.directory, env: { OPERATORS: operator.id, SHARDS: '2' } })
  client = await Client.of(board)
  world = new World(client, operator)
  const again = await client.send(accept.body)
  expect(again.data.receipt).toMatchObject({ duplicate: true, event_id: accept.eventId })
  expect(await list('room=jobs&limit=200')).toEqual(before)
  expect(await world.run(worker, { operation: 'credit.balance' })).toEqual(balance)
  expect(reason.length).toBeGreaterThan(20)
})

test('a request that its room refuses is recorded nonetheless, and counts against the limits', async () => {
  const counting = await startBoard({ directory: boardDirectory(), env: { BROADSIDE_LIMITS: 'on' } })
  const own = await Client.of(counting)
  const stranger = person('who asks where nobody may')
  const used = async () => {
    const { data } = await own.command(stranger, { operation: 'quota.get' })
    return (data as unknown as { quota: { used_bytes: number } }).quota.used_bytes
  }
  const data = '{"schema":1,"title":"It","simulated":true}'
  const ask = { operation: 'work.create', room: 'reviews', amount: 1, text: 'x'.repeat(10_000), data }
  expect(await own.command(stranger, ask)).toMatchObject({ status: 403, code: 'room_write_restricted' })
  expect(await used()).toBeGreaterThan(10_000)
  own.close()
  await counting.stop()
})
