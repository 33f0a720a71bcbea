/**
 * A flipped bit in a sealed segment costs only the record that it hits: entries of the log are rebuilt from their records, postings are
 * read from the log, a list shows a damaged event as a tombstone, and says how many others it leaves out.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { nameOf } from '../../actors/log/book.ts'
import { blobsDirectory, deliveryDirectory } from '../../src/board-directory.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { FOOTER_BYTES, SEGMENT_HEADER_BYTES } from '../../storage/segment.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'
import { createDelegation } from '../support/delegations.ts'
import { HookTarget } from '../support/hook-target.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { fetchVerifiedExport, logKeyOf } from '../support/log-checks.ts'
import { program } from '../support/program.ts'
import { runProgram } from '../support/run-program.ts'
import { flipByte } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const directory = boardDirectory()
const random = randomFrom(chooseSeed('damage costs itself'))
const ada = person('ada')
const op = person('op')
const eve = person('eve')
let target: HookTarget
/** Id of a document. */
let doc = ''
let board: Board
let client: Client

/** Sealed segments of a journal. */
const sealedOf = (part: string): string[] =>
  readdirSync(join(directory, part))
    .filter((name) => name.endsWith('.log'))
    .sort()
    .slice(0, -1)
    .map((name) => join(directory, part, name))

type Fields = Parameters<Client['command']>[1]

async function accepted(signer: Signer, fields: Fields): Promise<Answer['data']> {
  const { status, text, data } = await client.command(signer, fields)
  expect([status, text]).toEqual([200, text])
  return data
}

const env = { SEGMENT_BYTES: '65536', OPERATORS: op.id, BROADSIDE_LOOPBACK: '1' }

beforeAll(async () => {
  board = await startBoard({ directory, env })
  target = await HookTarget.open()
  client = await Client.of(board)
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
  await accepted(ada, { operation: 'room.create', room: 'garden' })
  const event = (await accepted(eve, { operation: 'post', room: 'garden', text: 'an advert' })).receipt!.event_id
  const made = (await accepted(ada, { operation: 'receiver.create', data: '{"schema":1}' })) as {
    receiver?: { id: string; url: string }
  }
  const receiver = made.receiver!
  const tool = await subject()
  await accepted(ada, { operation: 'identity.register', handle: 'ada' })
  const title = JSON.stringify({ schema: 1, title: 'Rules' })
  const created = await accepted(ada, { operation: 'docs.create', room: 'garden', text: 'the first', data: title })
  doc = (created as { doc?: { id: string } }).doc!.id
  for (let n = 0; n < 4; n++) {
    const listing = { schema: 1, name: `Listed as ${n}`, url: target.url(`/tool-${n}`), category: 'data' }
    await accepted(ada, { operation: 'tools.publish', data: JSON.stringify({ ...listing, description: 'damaged' }) })
  }
  const hook = { schema: 1, url: target.url('/ada'), kinds: ['mention'] }
  await accepted(ada, { operation: 'webhook.create', data: JSON.stringify(hook) })
  await accepted(ada, { operation: 'blob.put', room: 'garden', data: 'QUFB', filename: 'a.txt' })
  for (let n = 0; n < 4; n++) {
    await client.command(op, { operation: 'credit.grant', target: ada.id, amount: 1_000 + n, reason: `grant ${n}` })
    await client.post(ada, { room: 'den', text: `secret ${n}` })
    await accepted(ada, { operation: 'room.ban', room: 'garden', target: person(`b${n}`).id, reason: `banned as ${n}` })
    await accepted(person(`r${n}`), {
      operation: 'tools.review',
      target: tool,
      kind: 'works',
      text: `reviewed as ${n}`,
    })
    await fetch(new URL(receiver.url, board.address), { method: 'POST', body: `arrived as ${n}` })
    const reported = { operation: 'report', event_id: event, reason: `reported as ${n}` }
    await accepted(person(`s${n}`), reported)
    const base = JSON.stringify({ schema: 1, base_version: n + 1 })
    await accepted(ada, { operation: 'docs.write', target: doc, text: `written as ${n}`, data: base })
    await accepted(eve, { operation: 'post', room: 'garden', text: `named as ${n}, @ada` })
    await createDelegation(client, ada, person(`delegate ${n}`))
  }
  for (let n = 0; sealedOf('log').length < 2; n++) {
    const texts = Array.from({ length: 8 }, (_, k) => `public ${n * 8 + k} ${'lorem '.repeat(20)}`)
    const sent = texts.map((text, k) => client.post(person(`writer ${k}`), { room: 'hall', text }))
    for (const { status } of await Promise.all(sent)) expect(status).toBe(200)
  }
})

afterAll(async () => {
  client.close()
  await target.close()
  expect((await board.stop()).code).toBe(0)
})

const bodyOf = async (path: string): Promise<string> => {
  const { status, text } = await client.get(path)
  expect([status, path, text.slice(0, 200)]).toEqual([200, path, expect.any(String)])
  return text
}

/** Every leaf of the log, page by page. */
async function leaves(): Promise<unknown[]> {
  const all: unknown[] = []
  for (;;) {
    const { status, data } = await client.get(`/api/log/leaves?start=${all.length}&end=${all.length + 100}`)
    expect(status).toBe(200)
    const page = data as unknown as { entries: unknown[]; tree_size: number }
    all.push(...page.entries)
    if (all.length >= page.tree_size) return all
  }
}

/** Subject of a tool of the board. */
async function subject(): Promise<string> {
  const { data } = await client.get('/api/tools?query=hash')
  return (data as unknown as { results: { subject_id: string }[] }).results[0]!.subject_id
}

/** Changes a byte, runs the request, and changes it back. */
async function withFlipped<Found>(path: string, offset: number, ask: () => Promise<Found>): Promise<Found> {
  flipByte(path, offset)
  try {
    return await ask()
  } finally {
    flipByte(path, offset)
  }
}

test('a changed byte anywhere in a sealed segment of the log changes no export, leaf or tile', async () => {
  const key = await logKeyOf(client)
  const exported = (await fetchVerifiedExport(client, key)).sha256
  const entries = await leaves()
  const width = Math.min(255, entries.length)
  const tiles = ['entries', '0'].map((kind) => `/log/${nameOf(key.name)}/tile/${kind}/000.p/${width}`)
  const whole = await Promise.all(tiles.map(bodyOf))
  for (const path of sealedOf('log'))
    for (let round = 0; round < 8; round++) {
      const size = readFileSync(path).length
      const offset = SEGMENT_HEADER_BYTES + 400 + random(size - SEGMENT_HEADER_BYTES - FOOTER_BYTES - 400)
      await withFlipped(path, offset, async () => {
        expect((await fetchVerifiedExport(client, key)).sha256, `byte ${offset} of ${path}`).toBe(exported)
        expect(await leaves()).toEqual(entries)
        expect(await Promise.all(tiles.map(bodyOf))).toEqual(whole)
      })
    }
})

test('a changed byte in a posting: the ledger stays complete, and a history has all other entries and says what is missing', async () => {
  const [path] = sealedOf('shard-00')
  const ledger = await bodyOf('/v1/export?stream=ledger')
  const history = async () =>
    (await client.command(ada, { operation: 'credit.history' })).data as unknown as {
      entries: { amount: number }[]
      unreadable?: number
    }
  const before = await history()
  const offset = readFileSync(path!).indexOf('grant 2')
  await withFlipped(path!, offset, async () => {
    expect(await bodyOf('/v1/export?stream=ledger')).toBe(ledger)
    const after = await history()
    expect(after.unreadable).toBe(1)
    expect(after.entries).toEqual(before.entries.filter(({ amount }) => amount !== 1_002))
  })
})

/** The lines of an export of the whole board, without its time. */
const boardLines = async (): Promise<string[]> => {
  const text = await bodyOf('/v1/export?stream=board')
  return text
    .replace(/"exported_at":\d+/, '')
    .trimEnd()
    .split('\n')
}

/** A new board is made of this file. */
const importedFrom = (file: string) =>
  runProgram(directory, process.execPath, [
    ...[program, 'import', file, '--as-it-was', '--data', join(boardDirectory(), 'board')],
  ])

test('a changed byte in a post: an export of the whole board names it and has every other line, and no board is made of it', async () => {
  const [path] = sealedOf('shard-00')
  const before = await boardLines()
  const place = before.findIndex((line) => line.includes('public 17 '))
  const { id, room, seq } = JSON.parse(before[place]!)
  const offset = readFileSync(path!).indexOf('public 17 ')
  const file = join(boardDirectory(), 'board.jsonl')
  await withFlipped(path!, offset, async () => {
    const error = expect.stringContaining('bytes on the disk of this board are not what was written')
    // The board no longer has the post in memory once it has read other records.
    await accepted(ada, { operation: 'room.modlog', room: 'garden' })
    const after = await boardLines()
    expect(JSON.parse(after[place]!)).toEqual({ type: 'unreadable', id, room, seq, error })
    expect(after.toSpliced(place, 1)).toEqual(before.toSpliced(place, 1))
    const exported = await runProgram(directory, process.execPath, [
      ...[program, 'export', '--stream', 'board', '--out', file, '--url', board.address],
    ])
    expect([exported.code, exported.errors]).toEqual([3, expect.stringContaining('1 of these records are damaged')])
  })
  const imported = await importedFrom(file)
  expect([imported.code, imported.errors]).toEqual([
    3,
    expect.stringContaining(`the record ${id} (number ${seq} of room ${room}) is damaged on the disk of the old board`),
  ])
})

test.each([
  ['a frame of the log', 'log', (bytes: Buffer) => SEGMENT_HEADER_BYTES + ((bytes.length / 2) | 0)],
  ['a private post', 'shard-00', (bytes: Buffer) => bytes.indexOf('secret 2')],
] as const)('a changed byte in %s: an export of the whole board is the same', async (_what, part, offsetIn) => {
  const [path] = sealedOf(part)
  const before = await boardLines()
  await withFlipped(path!, offsetIn(readFileSync(path!)), async () => expect(await boardLines()).toEqual(before))
})

test('a changed byte in an attachment: an export of the whole board has its record, and a board is made of it', async () => {
  const before = await boardLines()
  const place = before.findIndex((line) => line.includes('"op":"blob.put"'))
  const { id, room, facts, signed, ...rest } = JSON.parse(before[place]!)
  const file = join(boardDirectory(), 'board.jsonl')
  await withFlipped(join(blobsDirectory(directory), room, facts.sha256.hex), 0, async () => {
    const after = await boardLines()
    const gone = { ...facts, filename: '', media_type: '', is_image: false }
    const { public_key, command_sha256 } = signed
    expect(JSON.parse(after[place]!)).toEqual({
      id,
      room,
      facts: gone,
      signed: { public_key, command_sha256 },
      ...rest,
    })
    expect(JSON.parse(after[place + 1]!)).toEqual({
      type: 'unreadable',
      id,
      room,
      file: true,
      error: expect.any(String),
    })
    const others = [...before.toSpliced(place, 1).slice(0, -1), `{"type":"end","lines":${before.length}}`]
    expect(after.toSpliced(place, 2)).toEqual(others)
    writeFileSync(file, await bodyOf('/v1/export?stream=board'))
  })
  const imported = await importedFrom(file)
  expect([imported.code, imported.output]).toEqual([0, expect.stringContaining('1 record')])
})

type Entry = Readonly<Record<string, unknown>>
type Listed = { readonly unreadable?: number; readonly has_more: boolean } & Readonly<Record<string, readonly Entry[]>>

test.each([
  ['acts of moderators', ada, { operation: 'room.modlog', room: 'garden' }, 'entries', 'banned as 2'],
  ['acts of the board', ada, { operation: 'moderation.log' }, 'acts', 'banned as 2'],
  ['bans', ada, { operation: 'room.bans', room: 'garden' }, 'bans', 'banned as 2'],
  ['reviews', ada, { operation: 'tools.reviews' }, 'reviews', 'reviewed as 2'],
  ['items of a receive URL', ada, { operation: 'receiver.items' }, 'items', 'arrived as 2'],
  ['versions of a document', ada, { operation: 'docs.history' }, 'versions', 'written as 2', '"version":4,'],
])(
  'a changed byte in one of the %s: a list has all others and says how many are missing',
  async (_what, signer, fields, name, text, shown = text) => {
    const [path] = sealedOf('shard-00')
    const list = async (limit: number, cursor = {}): Promise<Listed> => {
      const targets: Readonly<Record<string, string>> = { 'tools.reviews': await subject(), 'docs.history': doc }
      const target = targets[fields.operation]
      const named = target === undefined ? {} : { target }
      return (await accepted(signer, { ...fields, ...named, limit, ...cursor })) as unknown as Listed
    }
    const before = (await list(50))[name]!
    const place = before.findIndex((entry) => JSON.stringify(entry).includes(shown))
    expect(place).toBeGreaterThanOrEqual(0)
    await withFlipped(path!, readFileSync(path!).indexOf(text), async () => {
      const after = await list(50)
      expect(after.unreadable).toBe(1)
      expect(after[name]).toEqual(before.toSpliced(place, 1))
      // Page by page: the one with nothing else is empty, and leads on.
      const walked: Entry[] = []
      let missing = 0
      for (let page = await list(1); ; page = await list(1, { cursor: String(page.next_cursor) })) {
        walked.push(...page[name]!)
        missing += page.unreadable ?? 0
        if (!page.has_more) break
      }
      expect([walked, missing]).toEqual([before.toSpliced(place, 1), 1])
    })
  },
)

test('a changed byte in a report: the operator still sees it, without its reason', async () => {
  const [path] = sealedOf('shard-00')
  const list = async () =>
    ((await accepted(op, { operation: 'reports.list' })) as unknown as { reports: { id: string; reason: string }[] })
      .reports
  const before = await list()
  const place = before.findIndex(({ reason }) => reason === 'reported as 2')
  await withFlipped(path!, readFileSync(path!).indexOf('reported as 2'), async () => {
    expect(await list()).toEqual(before.with(place, { ...before[place]!, reason: '' }))
  })
})

test.each([
  ['private', 'den', 'secret 2', {}],
  ['public', 'hall', 'public 17 ', { before: 31 }],
])(
  'a changed byte in a %s post: a page of its room shows all others, and a tombstone in its place',
  async (_visibility, room, text, more) => {
    const [path] = sealedOf('shard-00')
    type Listed = { type: string; text?: string; event_id: string; seq: number; reason?: string }
    const list = async () => {
      const answer = await client.command(ada, { operation: 'events.list', room, limit: 30, ...more })
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
      return (answer.data as unknown as { events: Listed[] }).events
    }
    const before = await list()
    const place = before.findIndex((event) => event.text?.startsWith(text) === true)
    expect(place).toBeGreaterThanOrEqual(0)
    await withFlipped(path!, readFileSync(path!).indexOf(text), async () => {
      const after = await list()
      const { event_id, seq } = before[place]!
      const reason = expect.stringContaining('bytes on the disk of this board are not what was written')
      expect(after[place]).toMatchObject({ type: 'tombstone', event_id, seq, reason })
      expect(after.toSpliced(place, 1)).toEqual(before.toSpliced(place, 1))
    })
  },
)

/** Stops the board, changes a byte, and starts it from its snapshot. */
async function startWith(text: string, meanwhile = () => {}): Promise<void> {
  client.close()
  expect((await board.stop()).code).toBe(0)
  const [path] = sealedOf('shard-00')
  flipByte(path!, readFileSync(path!).indexOf(text))
  meanwhile()
  board = await startBoard({ directory, env })
  client = await Client.of(board)
}

test('a changed byte in a delegation, found at a start: the board runs, that delegate is refused, and all others act', async () => {
  const post = async (n: number) =>
    (await client.post(person(`delegate ${n}`), { room: 'hall', text: `by delegate ${n}` })).status
  expect(await post(2)).toBe(200)
  await startWith(person('delegate 2').publicKey)
  expect([await post(1), await post(2), await post(3)]).toEqual([200, 403, 200])
})

test('a changed byte in a post that a webhook has not read yet: all others are delivered', async () => {
  const told = () => target.receivedAt('/ada').map(({ body }) => /as (\d)/.exec(String(body.data!.excerpt))![1])
  await target.waitUntil(() => target.receivedAt('/ada').length === 4)
  expect(told()).toEqual(['0', '1', '2', '3'])
  target.received.length = 0
  // It begins again where it was created.
  await startWith('named as 2', () => rmSync(deliveryDirectory(directory), { recursive: true }))
  await target.waitUntil(() => target.receivedAt('/ada').length === 3)
  expect(told()).toEqual(['0', '1', '3'])
})

test('a changed byte in a listing of the tools directory, found at a start: a search finds all others', async () => {
  const found = async () => {
    const { results } = (await client.get('/api/tools?query=damaged')).data as { results?: { name: string }[] }
    return results?.map(({ name }) => name).sort()
  }
  expect(await found()).toEqual(['Listed as 0', 'Listed as 1', 'Listed as 2', 'Listed as 3'])
  await startWith('Listed as 0')
  expect(await found()).toEqual(['Listed as 1', 'Listed as 2', 'Listed as 3'])
})
