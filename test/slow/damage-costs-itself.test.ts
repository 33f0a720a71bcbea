/**
 * A bit that changes in a sealed segment of a running board costs the record that it hits and nothing else: entries of the log are made
 * again from their records, postings are read from the log, and a list shows a damaged event as a tombstone.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { nameOf } from '../../actors/log/book.ts'
import { FOOTER_BYTES, SEGMENT_HEADER_BYTES } from '../../storage/segment.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { logKeyOf, takeExport } from '../support/judge.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { flipByte } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const directory = boardDirectory()
const random = randomFrom(chooseSeed('damage costs itself'))
const ada = person('ada')
const op = person('op')
let board: Board
let client: Client

/** Sealed segments of a journal. */
const sealedOf = (part: string): string[] =>
  readdirSync(join(directory, part))
    .filter((name) => name.endsWith('.log'))
    .sort()
    .slice(0, -1)
    .map((name) => join(directory, part, name))

beforeAll(async () => {
  board = await startBoard({ directory, env: { SEGMENT_BYTES: '65536', OPERATORS: op.id } })
  client = await Client.of(board)
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
  for (let n = 0; n < 4; n++) {
    await client.command(op, { operation: 'credit.grant', target: ada.id, amount: 1_000 + n, reason: `grant ${n}` })
    await client.post(ada, { room: 'den', text: `secret ${n}` })
  }
  for (let n = 0; sealedOf('log').length < 2; n++) {
    const texts = Array.from({ length: 8 }, (_, k) => `public ${n * 8 + k} ${'lorem '.repeat(20)}`)
    const sent = texts.map((text, k) => client.post(person(`writer ${k}`), { room: 'hall', text }))
    for (const { status } of await Promise.all(sent)) expect(status).toBe(200)
  }
})

afterAll(async () => {
  client.close()
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

/** Changes a byte, asks, and changes it back. */
async function withFlipped<Found>(path: string, offset: number, ask: () => Promise<Found>): Promise<Found> {
  flipByte(path, offset)
  try {
    return await ask()
  } finally {
    flipByte(path, offset)
  }
}

test('a changed byte anywhere in a sealed segment of the log: the export, all leaves and all tiles stay what they were', async () => {
  const key = await logKeyOf(client)
  const exported = (await takeExport(client, key)).sha256
  const entries = await leaves()
  const width = Math.min(255, entries.length)
  const tiles = ['entries', '0'].map((kind) => `/log/${nameOf(key.name)}/tile/${kind}/000.p/${width}`)
  const whole = await Promise.all(tiles.map(bodyOf))
  for (const path of sealedOf('log'))
    for (let round = 0; round < 8; round++) {
      const size = readFileSync(path).length
      const offset = SEGMENT_HEADER_BYTES + 400 + random(size - SEGMENT_HEADER_BYTES - FOOTER_BYTES - 400)
      await withFlipped(path, offset, async () => {
        expect((await takeExport(client, key)).sha256, `byte ${offset} of ${path}`).toBe(exported)
        expect(await leaves()).toEqual(entries)
        expect(await Promise.all(tiles.map(bodyOf))).toEqual(whole)
      })
    }
})

test('a changed byte in a posting: the ledger stays whole, and a history has all other entries and says what is missing', async () => {
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
