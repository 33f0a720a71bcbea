/** Reviews that earn credits: only of who has called the tool here, does not own it, and has had a work accepted; once, and five to a subject. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { resultSha256 } from '../../actors/works/result-hash.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Bounty, type WorkJson } from '../support/bounty.ts'
import { Client, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const operator = person('operator')
const requester = person('a requester')
let board: Board
let client: Client
let works: Bounty
let subject: string

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { SHARDS: '2', OPERATORS: operator.id } })
  client = await Client.of(board)
  works = new Bounty(client)
  await works.welcomed(requester)
  expect(
    (await client.command(operator, { operation: 'credit.grant', target: requester.id, amount: 10_000 })).status,
  ).toBe(200)
  const { data } = await client.get('/api/tool?id=broadside:hash')
  subject = (data as unknown as { tool: { subject_id: string } }).tool.subject_id
})
afterAll(() => client.close())

/** Somebody of whom a work was accepted. */
async function worker(name: string): Promise<Signer> {
  const signer = person(name)
  await works.welcomed(signer)
  const { work } = (await works.run(requester, works.ask('lobby', 10))) as unknown as { work: WorkJson }
  await works.run(signer, works.claim(work.id, { ttl: 900 }))
  const result = await works.deliver(signer, work.id, 'done')
  await works.run(signer, works.submit(work.id, result, 1, { result_sha256: resultSha256('done', []) }))
  await works.run(requester, works.accept(work.id))
  return signer
}

async function call(signer: Signer): Promise<void> {
  const data = JSON.stringify({ schema: 1, body: { text: 'hello' } })
  const answer = await client.command(signer, { operation: 'tools.call', target: 'broadside:hash', data })
  expect([answer.status, answer.text.slice(0, 12)]).toEqual([200, '{"ok":true,"'])
}

const review = (signer: Signer) =>
  client.command(signer, { operation: 'tools.review', target: subject, kind: 'works', text: 'It hashes.' })
const left = async (): Promise<number> => {
  const { data } = await client.get('/api/tool?id=broadside:hash')
  return (data as unknown as { tool: { review_reward: { left: number } } }).tool.review_reward.left
}
const available = async (signer: Signer) => (await works.balance(signer)).available

test('who called it and has had a work accepted is paid, once; others are not', async () => {
  const paid = await worker('a worker')
  const idle = await worker('a worker who never called')
  const young = person('somebody new')
  await call(paid)
  await call(young)
  const before = await Promise.all([paid, idle].map(available))
  for (const signer of [idle, young, paid]) expect((await review(signer)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(paid)).toBe(before[0]! + 100), patience)
  await vi.waitFor(async () => expect(await left()).toBe(4), patience)
  expect((await review(paid)).status).toBe(200)
  const second = await worker('another worker')
  await call(second)
  const had = await available(second)
  expect((await review(second)).status).toBe(200)
  await vi.waitFor(async () => expect(await available(second)).toBe(had + 100), patience)
  // What came before it was decided before it.
  expect(await Promise.all([paid, idle].map(available))).toEqual([before[0]! + 100, before[1]!])
  await vi.waitFor(async () => expect(await left()).toBe(3), patience)
})
