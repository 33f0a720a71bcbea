/**
 * A board left behind by release 1.0.0 when it was killed: this release opens it, nothing is lost, and it continues.
 *
 * So does a board that got another number of shards in between, as if it had always had it.
 *
 * The fixture ages: whether timeouts in it have passed depends on when this runs.
 */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  fixtureEnvironment,
  type Name,
  people,
  readFixture,
  type Said,
  story,
  unpackBoard,
} from '../fixtures/fixture.ts'
import { faultsBy100 } from '../fixtures/rules-1-0-0.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, now } from '../support/client.ts'
import { docOf } from '../support/documents.ts'
import { filesUnder } from '../support/files-under.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { fetchUpdates } from '../support/updates.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Line = Readonly<Record<string, unknown>> & { readonly type: string }

const told = story()
const said = JSON.parse(readFixture('said.json')) as Readonly<Record<'fsck' | 'verify' | 'verifyLedger', Said>>

async function run(...args: string[]): Promise<Said> {
  return promisify(execFile)(process.execPath, [program, ...args]).then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      out: error.stdout + error.stderr,
    }),
  )
}

/** First number of a row in the table that `verify` prints. */
function figure(out: string, row: string): number {
  const [, found = ''] = new RegExp(`^${row} +([\\d,]+)`, 'm').exec(out) ?? []
  return Number(found.replaceAll(',', ''))
}

const counted = /([\d,]+) frames, ([\d,]+) bytes, ([\d,]+) leaves/

function linesOf(text: string): Line[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
}

/** Hashes of a log's leaves, as hex. */
function leavesOf(lines: readonly Line[], origin: string): string {
  const own = lines.filter((line) => line.type === 'leaves' && line.origin === origin)
  return own.map(({ hashes }) => Buffer.from(String(hashes), 'base64').toString('hex')).join('')
}

async function verify(text: string, ...more: string[]): Promise<Said> {
  const file = join(scratchDirectory(), 'export.jsonl')
  writeFileSync(file, text)
  return run('verify', file, '--vkey', told.log.vkey, ...more)
}

/** From its original two shards, one step after the other. */
const ways: readonly (readonly [string, readonly number[]])[] = [
  ['as it was left', []],
  ['with three shards, after one', [1, 3]],
]

describe.each(ways)('%s', (_, reshards) => {
  const directory = boardDirectory()
  let beforeStart: Said
  let board: Board
  let client: Client

  beforeAll(async () => {
    unpackBoard(directory)
    beforeStart = await run('fsck', '--data', directory, '--signatures')
    for (const shards of reshards) {
      const { code, out } = await run('reshard', '--shards', String(shards), '--data', directory)
      expect([code, out]).toEqual([0, expect.stringContaining(`to ${shards} shard`)])
    }
    board = await startBoard({ directory, env: { ...fixtureEnvironment, COMPACT_SECONDS: '1' } })
    client = await Client.of(board)
  })

  /** `data` of a signed read or write that must succeed. */
  async function done<Data>(who: Name, fields: Fields): Promise<Data> {
    const { status, text, data } = await client.command(people[who], fields)
    expect([fields.operation, status, status === 200 ? '' : text]).toEqual([fields.operation, 200, ''])
    return data as Data
  }

  async function textOf(id: string): Promise<string | undefined> {
    return (await client.get(`/api/events/${id}`)).data.event?.text
  }

  test('a check of the files finds the torn tail, with the same counts as 1.0.0', () => {
    expect([beforeStart.code, counted.exec(beforeStart.out)?.[0]]).toEqual([0, counted.exec(said.fsck.out)![0]])
    expect(beforeStart.out).toContain('torn-tail')
    expect(said.fsck.out).toContain('torn-tail')
  })

  test('posts, versions, votes and replies are unchanged; expired and redacted ones are gone', async () => {
    const { post, reply, edited, expiring, expired, compacted, pending, hidden, restored, moved } = told
    expect((await client.get(`/api/events/${post.id}`)).data.event).toMatchObject({
      text: post.text,
      author: { id: people.ada.id, handle: 'ada' },
      votes: { up: post.votes },
    })
    const thread = (await client.get(`/api/thread/${post.id}`)).data.events!
    expect(thread.map(({ event_id }) => event_id)).toEqual([post.id, reply])
    expect(await textOf(edited.id)).toBe(edited.text)
    expect((await client.get(`/api/history/${edited.id}`)).text).toContain(edited.first)
    expect(await textOf(expiring.id)).toBe(now() < expiring.until ? expiring.text : undefined)
    for (const { id, text } of [expired, compacted, pending]) {
      const answer = await client.get(`/api/events/${id}`)
      expect([id, answer.text.includes(text), answer.data.event?.text]).toEqual([id, false, undefined])
    }
    expect((await client.get(`/api/events/${hidden}`)).data.event).toMatchObject({ hidden: true, reason: 'Off topic.' })
    expect(await textOf(restored)).toBe('Not an advert.')
    expect((await client.get(`/api/events/${moved}`)).data.event).toMatchObject({
      author: { id: people.eve.id, public_key: people['eve later'].publicKey },
    })
  })

  test('every post acknowledged under load before the kill is there', async () => {
    const { acknowledged, unanswered } = told.load
    const found = await Promise.all(acknowledged.map(({ id }) => textOf(id)))
    expect(found).toEqual(acknowledged.map(({ text }) => text))
    for (const { id, text } of unanswered) expect([undefined, text]).toContain(await textOf(id))
  })

  test('a redacted text leaves the files that still contained it', async () => {
    const { pending, compacted } = told
    const holds = (text: string) => [...filesUnder(directory)].filter(([, bytes]) => bytes.includes(text))
    await vi.waitUntil(() => holds(pending.text).length === 0, patience)
    expect(holds(compacted.text)).toEqual([])
    // Proves that the search can find a text.
    expect(holds(told.post.text.slice(0, 30))).not.toEqual([])
  })

  test('the private room is read only by its members', async () => {
    const { cellar, privateAttachment } = told
    const { events } = await done<{ events: { event_id: string; text: string }[] }>('bob', {
      operation: 'events.list',
      room: cellar.room,
    })
    expect(events.find(({ event_id }) => event_id === cellar.id)?.text).toBe(cellar.text)
    expect(events.map(({ event_id }) => event_id)).toContain(cellar.reply)
    const { conversations } = await done<{ conversations: { room: string; accepted: boolean }[] }>('ada', {
      operation: 'conversations.list',
    })
    expect(conversations).toMatchObject([{ room: cellar.conversation, accepted: true }])
    const { rooms } = await done<{ rooms: Line[] }>('bob', { operation: 'rooms.list', data: '{"schema":1,"own":true}' })
    expect(rooms.map(({ name, visibility, role }) => [name, visibility, role]).sort()).toEqual([
      [cellar.room, 'private', 'member'],
      ['workshop', 'public', 'moderator'],
    ])
    const file = await done<{ data: string }>('ada', { operation: 'blob.get', target: privateAttachment.id })
    expect(Buffer.from(file.data, 'base64url').toString()).toBe(privateAttachment.text)
    const strangers = people['eve later']
    expect((await client.command(strangers, { operation: 'events.list', room: cellar.room })).code).toBe('private_room')
    expect((await client.get(`/api/events/${cellar.id}`)).code).toBe('private_room')
  })

  test('attachments and documents are unchanged to the byte', async () => {
    const { attachment, doc, unlistedDoc } = told
    const file = await fetch(`${board.address}/a/${attachment.id}`)
    expect([file.status, await file.text()]).toEqual([200, attachment.text])
    expect((await client.get(`/api/events/${attachment.post}`)).data.event).toMatchObject({
      attachments: [{ id: attachment.id, sha256: attachment.sha256, filename: 'open.txt' }],
    })
    const read = docOf(await client.get(`/api/docs/${doc.id}`))
    expect(read).toMatchObject({ version: doc.versions, text: doc.text })
    const versions = (await client.get(`/api/docs-history/${doc.id}`)).data as { versions?: unknown[] }
    expect(versions.versions).toHaveLength(doc.versions)
    expect(await done('ada', { operation: 'docs.read', target: unlistedDoc.id })).toMatchObject({
      doc: { text: unlistedDoc.text },
    })
  })

  test('receive URLs have their items, recognize a repetition, and accept more', async () => {
    const { id, url, bodies } = told.receiver
    type Items = { items: { body: string }[] }
    const bodiesNow = async () =>
      (await done<Items>('ada', { operation: 'receiver.items', target: id })).items.map(({ body }) => body).sort()
    expect(await bodiesNow()).toEqual(bodies)
    const answer = await fetch(`${board.address}${url}`, { method: 'POST', body: 'a third' })
    expect(answer.status).toBe(200)
    expect(await bodiesNow()).toEqual(['a third', ...bodies])
  })

  test('webhooks, tools, reviews, profile and room policy are unchanged', async () => {
    const { webhook, tool } = told
    expect(await done('ada', { operation: 'webhook.list' })).toMatchObject({
      webhooks: [{ id: webhook.id, kinds: ['room.post'] }],
    })
    const listing = (await client.get(`/api/tool?id=${tool.id}`)).data as {
      tool?: { name: string; subject_id: string }
    }
    expect(listing.tool).toMatchObject({ name: 'Weather', subject_id: tool.subject })
    expect((await client.get(`/api/reviews?subject=${tool.subject}`)).text).toContain(tool.review)
    const found = await client.command(people.bob, { operation: 'identity.get', target: 'ada' })
    expect(found.data.identity).toMatchObject({ id: people.ada.id, profile: { description: 'Keeps a fixture.' } })
    expect((await client.get('/api/room?room=workshop')).data.room).toMatchObject({
      owner: people.ada.id,
      policy: { rules: 'Be kind.' },
    })
  })

  test('a delegate acts until its delegation ends, and a suspended identity does not', async () => {
    const { lasting, short, revoked, byAgent } = told.delegations
    expect((await client.get(`/api/events/${byAgent}`)).data.event).toMatchObject({
      author: { id: people.ada.id, public_key: people.agent.publicKey },
    })
    for (const [name, { until }, isRevoked] of [
      ['agent', lasting, false],
      ['brief agent', short, false],
      ['former agent', revoked, true],
    ] as const) {
      const isLive = !isRevoked && now() < until
      const answer = await client.post(people[name], { room: 'workshop', text: `${name} is back` })
      expect([name, answer.status, answer.code]).toEqual(isLive ? [name, 200, undefined] : [name, 403, 'forbidden'])
    }
    const { delegations } = await done<{ delegations: { id: string; ended_by?: string }[] }>('ada', {
      operation: 'delegation.list',
    })
    expect(delegations.map(({ id }) => id).sort()).toEqual([lasting.id, short.id, revoked.id].sort())
    expect(delegations.find(({ id }) => id === revoked.id)?.ended_by).toBe('revoked')
    expect((await client.post(people.banned, { text: 'again' })).code).toBe('suspended')
  })

  test('works are in the state they were in, or the one that time has brought', async () => {
    const longAgo = 90 * 86_400
    for (const { id, state, end, due = Number.POSITIVE_INFINITY } of told.works) {
      const { work } = (await client.get(`/api/work/${id}`)).data as { work?: { state: string; reward: unknown } }
      // Between its first timeout and its last a work goes through intermediate states.
      const known = now() < due ? state : now() > due + longAgo ? end : work!.state
      expect([id, work!.state]).toEqual([id, known])
    }
    const hidden = { operation: 'work.get', event_id: told.privateWork }
    expect(await done('ada', hidden)).toMatchObject({ work: { id: told.privateWork, room: 'cellar' } })
    expect((await client.get(`/api/work/${told.privateWork}`)).code).toBe('private_room')
  })

  test('a reader of updates continues with its old cursor', async () => {
    const { cursor, next } = told.updates
    const page = await fetchUpdates(client, { cursor, limit: 1 })
    expect(page.updates).toMatchObject([{ type: 'event.posted', event: { event_id: next } }])
  })

  test('an export has every line of the old export, in the same order and with the same leaves', async () => {
    for (const [path, kept, verdict, more] of [
      ['/v1/export', 'export.jsonl.gz', said.verify, []],
      ['/v1/export?stream=ledger', 'ledger.jsonl.gz', said.verifyLedger, ['--ledger']],
    ] as const) {
      const before = readFixture(kept)
      const after = (await client.get(path)).text
      const lines = linesOf(after)
      const isRecord = ({ type }: Line) => !['leaves', 'log', 'end'].includes(type)
      const keyOf = ({ type, event_id, transfer }: Line) => `${type} ${String(transfer ?? event_id)}`
      const records = linesOf(before).filter(isRecord)
      const byKey = new Map(lines.map((line) => [keyOf(line), line]))
      for (const record of records) expect(byKey.get(keyOf(record))).toMatchObject(record)
      const known = new Set(records.map(keyOf))
      expect(lines.map(keyOf).filter((key) => known.has(key))).toEqual(records.map(keyOf))
      for (const origin of told.log.origins) {
        const [grown, leaves] = [leavesOf(lines, origin), leavesOf(linesOf(before), origin)]
        expect([origin, grown.slice(0, leaves.length)]).toEqual([origin, leaves])
      }
      // The old export verifies now, with the same counts.
      const again = await verify(before, ...more)
      expect([again.code, figure(again.out, 'failures')]).toEqual([0, 0])
      for (const row of [
        'events',
        'tombstones',
        'key rotations',
        'signatures good',
        'leaves',
        'postings',
        'works',
        'supply',
      ])
        expect([row, figure(again.out, row)]).toEqual([row, figure(verdict.out, row)])
      expect((await verify(after, ...more)).code).toBe(0)
      expect(faultsBy100(after)).toEqual([])
    }
  })

  test('people write on it, and what they wrote survives a stop', async () => {
    const { receipt } = await done<{ receipt: { event_id: string } }>('bob', {
      operation: 'post',
      text: 'written by a later release',
      reply_to: told.post.id,
    })
    await done('eve later', { operation: 'vote', event_id: told.post.id, data: '{"value":-1}' })
    await done('bob', {
      operation: 'docs.write',
      target: told.doc.id,
      text: `${told.doc.text}More.\n`,
      data: JSON.stringify({ schema: 1, base_version: told.doc.versions }),
    })
    await done('bob', { operation: 'post', room: told.cellar.room, text: 'still among us', reply_to: told.cellar.id })
    const proof = await client.get(`/api/log/proof?message=${told.post.id}`)
    expect(proof.data).toMatchObject({ log: { origin: told.log.origins[0] } })
    client.close()
    expect(await board.stop()).toEqual({ code: 0, signal: null })
    const check = await run('fsck', '--data', directory, '--signatures')
    expect([check.code, check.out]).toEqual([0, expect.stringContaining('Everything agrees.')])
    board = await startBoard({ directory, env: fixtureEnvironment })
    client = await Client.of(board)
    expect(await textOf(receipt.event_id)).toBe('written by a later release')
    // An earlier vote of theirs is recorded under the key before the rotation.
    expect((await client.get(`/api/events/${told.post.id}`)).data.event).toMatchObject({ votes: { up: 1, down: 1 } })
    expect(docOf(await client.get(`/api/docs/${told.doc.id}`)).version).toBe(told.doc.versions + 1)
  })

  test('a policy that 1.0.0 stored, without the key imports, accepts imported posts', async () => {
    const { policy } = await done<{ policy: Line }>('ada', { operation: 'room.policy.get', room: 'workshop' })
    expect(policy).toMatchObject({ rules: 'Be kind.', imports: true })
    const data = '{"schema":1,"source":{"system":"mbox","id":"1@harbour.example","author":"Ines","at":1551518100}}'
    await done('ada', { operation: 'post', room: 'workshop', text: 'written before', data })
  })

  afterAll(() => board.stop())
})
