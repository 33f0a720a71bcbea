/**
 * Reviews that earn credits: only of tools confirmed by their host, by reviewers who called them here, do not own them, and have had work
 * accepted by somebody unrelated; once per reviewer, and five per subject.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { resultSha256 } from '../../actors/works/letters.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { respondJson, ToolServer } from '../support/tool-server.ts'
import { WorkClient } from '../support/work-client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [operator, requester, maker] = [person('operator'), person('a requester'), person('a maker')]
const [home, away] = ['192.0.2.1', '198.51.100.1']
let board: Board
/** From the requester's address, and from everybody else's. */
let near: Client
let client: Client
let machine: ToolServer
let owners: readonly string[] = []
let subject: string

type Tool = { readonly id: string; readonly subject_id: string; readonly review_reward: { readonly left: number } }
const toolOf = async (id: string) => ((await client.get(`/api/tool?id=${id}`)).data as unknown as { tool: Tool }).tool

beforeAll(async () => {
  const env = {
    ...{ SHARDS: '2', OPERATORS: operator.id, BROADSIDE_LOOPBACK: '1', TRUST_PROXY: 'x-client' },
    LIMITS: JSON.stringify({ credit_review_requester_age_seconds: 1 }),
  }
  board = await startBoard({ directory: boardDirectory(), env })
  near = (await Client.of(board)).from(home)
  client = near.from(away)
  await new WorkClient(near).waitForWelcome(requester)
  expect(
    (await client.command(operator, { operation: 'credit.grant', target: requester.id, amount: 10_000 })).status,
  ).toBe(200)
  machine = await ToolServer.open({
    '/tool': (_, response) => respondJson(response, { answer: 42 }),
    '/.well-known/broadside.json': (_, response) => respondJson(response, { owners }),
  })
  subject = (await toolOf('broadside:hash')).subject_id
  // An identity whose age counts has to have one.
  await sleep(2_000)
})
afterAll(() => {
  for (const each of [near, client]) each.close()
  machine.close()
})

/** An identity with an accepted work. */
async function worker(name: string, { amount = 20, at = client } = {}): Promise<Signer> {
  const signer = person(name)
  const [asking, doing] = [new WorkClient(near), new WorkClient(at)]
  await doing.waitForWelcome(signer)
  const { work } = await asking.run(requester, asking.createFields('lobby', amount))
  await doing.run(signer, doing.claimFields(work.id, { ttl: 900 }))
  const result = await doing.deliver(signer, work.id, 'done')
  await doing.run(signer, doing.submitFields(work.id, result, 1, { result_sha256: resultSha256('done', []) }))
  await asking.run(requester, asking.acceptFields(work.id))
  return signer
}

async function call(signer: Signer, target = 'broadside:hash'): Promise<void> {
  const data = JSON.stringify({ schema: 1, ...(target === 'broadside:hash' ? { body: { text: 'hello' } } : {}) })
  const answer = await client.command(signer, { operation: 'tools.call', target, data })
  expect([answer.status, answer.text.slice(0, 12)]).toEqual([200, '{"ok":true,"'])
}

const review = (signer: Signer, target = subject) =>
  client.command(signer, { operation: 'tools.review', target, kind: 'works', text: 'It does what it says.' })
const available = async (signer: Signer) => (await new WorkClient(client).balance(signer)).available
const left = async (id = 'broadside:hash') => (await toolOf(id)).review_reward.left

test('a caller with accepted work is paid once; one who did less, or dealt only with their own keys, is not', async () => {
  const paid = await worker('a worker')
  const others = [
    await worker('a worker who never called'),
    await worker('a worker for less', { amount: 19 }),
    await worker('a worker on the network of the requester', { at: near }),
    await worker('a worker who gives it back'),
    person('somebody new'),
  ]
  const back = { operation: 'credit.transfer', target: requester.id, amount: 1 }
  expect((await client.command(others[3]!, back)).status).toBe(200)
  for (const signer of [...others.slice(1), paid]) await call(signer)
  const before = await Promise.all([paid, ...others].map(available))
  for (const signer of [...others, paid]) expect((await review(signer)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(paid)).toBe(before[0]! + 100), patience)
  await vi.waitFor(async () => expect(await left()).toBe(4), patience)
  expect((await review(paid)).status).toBe(200)
  const second = await worker('another worker')
  await call(second)
  const had = await available(second)
  expect((await review(second)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(second)).toBe(had + 100), patience)
  // Earlier reviews were decided earlier.
  expect(await Promise.all([paid, ...others].map(available))).toEqual([before[0]! + 100, ...before.slice(1)])
  await vi.waitFor(async () => expect(await left()).toBe(3), patience)
})

test('a listing earns its reviewers nothing until its host names its publisher', async () => {
  const said = {
    schema: 1,
    name: 'Answers',
    description: 'It answers.',
    category: 'data',
    url: machine.url('/tool'),
    price: '0',
  }
  const made = await client.command(maker, { operation: 'tools.publish', data: JSON.stringify(said) })
  const { id, subject_id } = (made.data as unknown as { tool: Tool }).tool
  const [early, late, barrier] = [await worker('early'), await worker('late'), await worker('barrier')]
  for (const each of [early, late]) await call(each, id)
  await call(barrier)
  const before = await Promise.all([early, late, barrier].map(available))
  expect((await review(early, subject_id)).status).toBe(200)
  expect((await review(barrier)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(barrier)).toBe(before[2]! + 100), patience)
  expect(await available(early)).toBe(before[0])
  owners = [maker.id]
  expect((await client.command(maker, { operation: 'tools.probe', target: id })).status).toBe(200)
  // Its owner's review comes first, and earns nothing.
  await call(maker, id)
  for (const each of [maker, late]) expect((await review(each, subject_id)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(late)).toBe(before[1]! + 100), patience)
  expect((await review(early, subject_id)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(early)).toBe(before[0]! + 100), patience)
  // The index hears of the reward after the ledger has it.
  await vi.waitFor(async () => expect(await left(id)).toBe(3), patience)
})

test('one person with their own listings and works among their own keys gets nothing out of the pool', async () => {
  const attacker = client.from('203.0.113.1')
  const works = new WorkClient(attacker)
  const keys = Array.from({ length: 5 }, (_, n) => person(`key ${n} of one person`))
  for (const each of keys) await works.waitForWelcome(each)
  const before = await Promise.all(keys.map(available))
  const own = await ToolServer.open(
    {
      '/tool': (_, response) => respondJson(response, { answer: 42 }),
      '/.well-known/broadside.json': (_, response) => respondJson(response, { owners: [keys[0]!.id] }),
    },
    '127.0.0.2',
  )
  for (const [n, amount] of [1, 1, 1, 1, 1, 1, 1, 1, 1, 20].entries()) {
    const [asking, doing] = [keys[n % 5]!, keys[(n + 1) % 5]!]
    const { work } = await works.run(asking, works.createFields('lobby', amount))
    await works.run(doing, works.claimFields(work.id, { ttl: 900 }))
    const result = await works.deliver(doing, work.id, `done ${n}`)
    await works.run(doing, works.submitFields(work.id, result, 1, { result_sha256: resultSha256(`done ${n}`, []) }))
    await works.run(asking, works.acceptFields(work.id))
    const url = own.url('/tool')
    const said = { schema: 1, name: `Own ${n}`, description: 'One of many.', category: 'data', url, price: '0' }
    const made = await attacker.command(keys[0]!, { operation: 'tools.publish', data: JSON.stringify(said) })
    const { id, subject_id } = (made.data as unknown as { tool: Tool }).tool
    // The last one is confirmed by the machine, which is theirs too.
    if (n === 9) expect((await attacker.command(keys[0]!, { operation: 'tools.probe', target: id })).status).toBe(200)
    for (const each of keys.slice(1)) {
      await attacker.command(each, { operation: 'tools.call', target: id, data: '{"schema":1}' })
      expect((await review(each, subject_id)).status).toBe(200)
    }
  }
  const honest = await worker('an honest worker')
  await call(honest)
  const had = await available(honest)
  expect((await review(honest)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(honest)).toBe(had + 100), patience)
  const after = await Promise.all(keys.map(available))
  const sum = (all: readonly number[]) => all.reduce((total, each) => total + each, 0)
  expect(sum(after)).toBe(sum(before))
  attacker.close()
  own.close()
})
