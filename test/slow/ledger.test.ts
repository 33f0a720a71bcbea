/** What an export proves without the board: the public ledger, and every field of every line; and what a check of the files finds. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { signingBytes } from '../../src/format/signing.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, newNonce, now, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { CachingVerifier, isBoardAssertion, type Json } from '../support/line-mutations.ts'
import { logKeyOf } from '../support/log-checks.ts'
import { program } from '../support/program.ts'
import { randomPart } from '../support/random-part.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { WorkClient } from '../support/work-client.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const op = person('operator')
const ada = person('ada')
const bob = person('bob')
let board: Board
let client: Client

type Line = Readonly<Record<string, string | number | object>>

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory(), env: { SHARDS: '2', OPERATORS: op.id } })
  client = await Client.of(board)
  const works = new WorkClient(client)
  await Promise.all([works.waitForWelcome(ada), works.waitForWelcome(bob)])
  await client.command(op, { operation: 'credit.grant', target: ada.id, amount: 1_000 })
  const { work } = await works.run(ada, works.createFields('lobby', 200))
  await works.run(ada, { operation: 'work.raise', event_id: work.id, amount: 100 })
  const result = await works.deliver(bob, work.id, 'done')
  await works.run(bob, { ...works.claimFields(work.id), target: result } as never)
  await works.run(ada, works.acceptFields(work.id))
  const second = (await works.run(ada, works.createFields('lobby', 10))).work
  await works.run(ada, { operation: 'work.cancel', event_id: second.id, reason: 'no' })
  await works.run(ada, works.createFields('lobby', 7))
  await client.command(ada, { operation: 'credit.transfer', target: bob.id, amount: 5 })
})
afterAll(() => client.close())

async function whole(): Promise<string> {
  return (await client.get('/v1/export?stream=ledger')).text
}

function linesOf(text: string): Line[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

async function verify(text: string, ...more: string[]): Promise<{ code: number; out: string }> {
  const file = join(scratchDirectory(), 'ledger.jsonl')
  writeFileSync(file, text)
  const { data } = await client.get('/capabilities')
  const { vkey } = (data as unknown as { log: { vkey: string } }).log
  const args = [program, 'verify', file, '--ledger', '--vkey', vkey, ...more]
  return promisify(execFile)(process.execPath, args).then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      out: error.stdout + error.stderr,
    }),
  )
}

test('every posting is there, numbered without a gap, with its leaf; pages add up to the whole', async () => {
  const postings = linesOf(await whole()).filter(({ type }) => type === 'ledger')
  expect(postings.map(({ seq }) => seq)).toEqual(postings.map((_, n) => n + 1))
  const moves = postings.map(({ posting, debit, credit, amount }) =>
    [posting, debit, credit, amount].join(' ').replace(ada.id, 'ada').replace(bob.id, 'bob'),
  )
  expect(moves[0]).toBe('direct mint rewards 5000')
  expect(new Set(moves.slice(1, 3))).toEqual(new Set(['direct mint user:ada 100', 'direct mint user:bob 100']))
  expect(moves.slice(3)).toEqual([
    'direct mint user:ada 1000',
    'hold user:ada escrow 202',
    'void user:ada escrow 202',
    'hold user:ada escrow 303',
    'post user:ada escrow 303',
    'direct escrow user:bob 300',
    'direct escrow fees 3',
    'hold user:ada escrow 10',
    'void user:ada escrow 10',
    'hold user:ada escrow 7',
    'direct user:ada user:bob 5',
    'direct user:ada fees 1',
  ])
  for (const { log } of postings.slice(0, 4)) {
    const { index } = log as { index: number }
    const { data } = await client.get(`/api/log/leaves?start=${index}&end=${index + 1}`)
    const [entry] = (data as unknown as { entries: string[] }).entries
    expect(Buffer.from(entry!, 'base64').toString()).toContain('\nkind ledger\n')
  }
  const paged: string[] = []
  for (let cursor = ''; ; ) {
    const answer = await client.get(`/v1/export?stream=ledger&limit=4${cursor === '' ? '' : `&cursor=${cursor}`}`)
    paged.push(...answer.text.trimEnd().split('\n'))
    cursor = String(answer.headers['x-next-cursor'] ?? '')
    if (cursor === '') break
  }
  expect(paged.map((line) => JSON.parse(line) as Line)).toEqual(postings)
  expect((await client.get('/v1/export?stream=ledger&room=lobby')).code).toBe('invalid_field')
  expect((await client.get('/v1/export?stream=other')).code).toBe('invalid_field')
})

test('broadside verify recomputes the ledger without the board, and reports the line that does not fit', async () => {
  const text = await whole()
  const good = await verify(text)
  expect([good.code, good.out]).toEqual([0, expect.stringContaining('supply')])
  expect(good.out).toContain('6,200 credits created and not burned')
  expect(good.out).toContain('7 credits in 1 holds')
  const lines = text.trimEnd().split('\n')
  const changed = (n: number, from: string, to: string) => {
    expect(lines[n]).toContain(from)
    return lines.map((line, k) => (k === n ? line.replace(from, to) : line)).join('\n')
  }
  const without = (n: number) => lines.filter((_, k) => k !== n).join('\n')
  const reward = lines.findIndex((line) => line.includes('"amount":300'))
  const cases: [string, string, string][] = [
    ['another amount', changed(reward, '"amount":300', '"amount":299'), 'its entry is not leaf'],
    ['a posting left out', without(2), 'is where posting'],
    ['another payee', changed(reward, `user:${bob.id}`, `user:${ada.id}`), 'its entry is not leaf'],
    ['the end left out', without(reward + 1), 'is where posting'],
  ]
  for (const [name, file, words] of cases) {
    const bad = await verify(file)
    expect([name, bad.code, bad.out]).toEqual([name, 3, expect.stringContaining(words)])
  }
  const messages = (await client.get('/v1/export')).text
  expect(await verify(messages)).toMatchObject({ code: 1, out: expect.stringContaining('is not a ledger') })
})

/** Everything that has a line in an export, and what must have none. */
async function lived(): Promise<void> {
  const [cleo, next, delegate, second] = [person('cleo'), person('cleo later'), person('her agent'), person('another')]
  const done = async (signer: typeof cleo, fields: Parameters<Client['command']>[1]) => {
    const answer = await client.command(signer, fields)
    expect([fields.operation, answer.status, answer.text]).toEqual([fields.operation, 200, expect.anything()])
    return answer
  }
  const post = async (signer: typeof cleo, fields: object) =>
    (await done(signer, { operation: 'post', ...fields })).data.event_id!
  await done(cleo, { operation: 'room.create', room: 'hers' })
  await done(cleo, { operation: 'room.create', room: 'cellar', visibility: 'private', members: [ada.id] })
  await post(cleo, { room: 'cellar', text: 'among us' })
  const file = blobOf(await done(cleo, putFields(Buffer.from('a file'), { room: 'hers', filename: 'a.txt' }))).id
  const data = (more: object) => JSON.stringify({ schema: 1, ...more })
  const first = await post(cleo, { room: 'hers', page: 'side', text: '*first*', attachments: [file], handle: 'cleo' })
  const reply = await post(ada, { text: 'a reply', reply_to: first, to: cleo.id })
  const better = await post(cleo, { text: '_better_', data: data({ supersedes: first, format: 'markdown' }) })
  await post(cleo, { text: 'best', page: 'side', data: data({ supersedes: better }), attachments: [file] })
  await post(ada, { text: 'to a version', reply_to: better })
  await post(ada, { text: 'a better reply', data: data({ supersedes: reply }) })
  await done(ada, { operation: 'vote', event_id: first, data: data({ value: 1 }) })
  const gone = await post(cleo, { room: 'hers', text: 'taken back', kind: 'promotion' })
  await post(cleo, { text: 'taken back too', data: data({ supersedes: gone }), kind: 'promotion' })
  await done(cleo, { operation: 'event.redact', event_id: gone, reason: 'mine' })
  const hidden = await post(ada, { room: 'hers', text: 'hidden', reply_to: first })
  await done(cleo, { operation: 'room.hide', event_id: hidden, reason: 'off topic' })
  await done(cleo, { operation: 'docs.create', room: 'hers', text: 'a document', data: data({ title: 'Notes' }) })
  const tool = (await client.get('/api/tool?id=broadside:hash')).data as unknown as { tool: { subject_id: string } }
  const review = { target: tool.tool.subject_id, kind: 'works', text: 'It hashes.' }
  await done(cleo, { operation: 'tools.review', ...review })
  const { work } = await new WorkClient(client).run(ada, new WorkClient(client).createFields('hers', 5))
  await done(ada, { operation: 'work.edit', event_id: work.id, text: 'do that' })
  await new WorkClient(client).run(ada, { operation: 'work.cancel', event_id: work.id, reason: 'done by others' })
  const first_delegation = await createDelegation(client, cleo, delegate)
  await post(delegate, { room: 'hers', text: 'by her agent' })
  await done(cleo, { operation: 'delegation.revoke', target: first_delegation })
  await createDelegation(client, cleo, second)
  await post(second, { room: 'hers', text: 'by another' })
  const signing = { timestamp: now(), nonce: newNonce() }
  const rotate = { operation: 'identity.rotate', target: next.publicKey }
  const bytes = signingBytes(client.serviceId, { ...rotate, public_key: cleo.publicKey, ...signing })
  const body = JSON.parse(client.sign(cleo, rotate, signing).body) as object
  const moved = await client.send(JSON.stringify({ ...body, proof: next.sign(bytes).toString('base64url') }))
  expect([moved.status, moved.text]).toEqual([200, expect.anything()])
  await post(next, { room: 'hers', text: 'with the new key' })
}

test('a change of any field of an export is detected by broadside verify, or the field is the board’s word', async () => {
  await lived()
  const many = new CachingVerifier(await logKeyOf(client))
  for (const path of ['/v1/export', '/v1/export?stream=ledger']) {
    const lines = linesOf((await client.get(path)).text) as Json[]
    const { failures, first } = await many.verify(lines)
    expect([path, failures, first]).toEqual([path, 0, undefined])
    for (const [n, line] of randomPart([...lines.entries()])) {
      const unfound = await many.undetected(lines, n)
      expect([path, n, unfound.filter((change) => !isBoardAssertion(line, change))]).toEqual([path, n, []])
    }
  }
})

test('a full check of the stopped board applies every posting, reservation and opening exactly once', async () => {
  // More than half of the balance: counted twice it would be negative.
  const works = new WorkClient(client)
  await works.run(bob, works.createFields('lobby', 300))
  await board.stop()
  const check = await promisify(execFile)(process.execPath, [program, 'fsck', '--data', board.directory])
  expect(check.stdout).toContain('Everything agrees.')
  expect(readFileSync(join(board.directory, 'board.json'), 'utf8')).toContain('service_id')
})
