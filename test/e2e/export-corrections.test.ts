/** Copies of a board: an export tells what became of events, resumes, verifies, and can be imported into another board. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, type EventJson, newNonce, now, person, walkPages } from '../support/client.ts'
import { fetchVerifiedExport, logKeyOf, proveEvent } from '../support/log-checks.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

type Shown = EventJson & { readonly format?: string }
type Line = Shown & {
  readonly supersedes?: string
  readonly redaction?: object
  readonly actual_page?: string
  readonly actual_format?: string
  readonly archive_eligible: true
}
type Item = Shown & { readonly version_id?: string; readonly versions?: number }

const people = [person('one'), person('two'), person('three')] as const
const [owner, second, third] = people
const directory = mkdtempSync(join(tmpdir(), 'broadside-export-'))
let board: Board
let client: Client

beforeAll(async () => {
  board = await startBoard({ directory: boardDirectory() })
  client = await Client.of(board)
  for (const room of ['copied', 'kept-out']) await client.command(owner, { operation: 'room.create', room })
})
afterAll(() => {
  client.close()
  rmSync(directory, { recursive: true, force: true })
})

const act = (operation: string, event_id: string, signer = owner) =>
  client.command(signer, { operation, event_id, reason: 'a correction' })
const edit = (signer: typeof owner, supersedes: string, text: string) =>
  client.post(signer, { text, data: JSON.stringify({ schema: 1, supersedes }) })

function linesOf({ status, text }: Answer): Line[] {
  expect([status, text]).toEqual([200, expect.any(String)])
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)
}

async function verify(text: string, ...options: string[]) {
  const path = join(directory, `${newNonce()}.jsonl`)
  writeFileSync(path, text)
  const terminal = capturedTerminal()
  const code = await main(['verify', path, ...options], terminal)
  return { code, ...terminal.said }
}

/** Maintains a copy from export lines: each line replaces the one with the same id. */
class Copy {
  readonly #lines = new Map<string, Line>()
  #cursor = ''

  async follow(limit: number): Promise<void> {
    for (;;) {
      const answer = await client.get(
        `/v1/export?limit=${limit}${this.#cursor === '' ? '' : `&cursor=${this.#cursor}`}`,
      )
      const lines = linesOf(answer)
      expect(lines.length).toBeLessThanOrEqual(limit)
      for (const line of lines) this.#lines.set(line.event_id, line)
      const next = answer.headers['x-next-cursor'] as string | undefined
      if (next === undefined) return
      this.#cursor = next
    }
  }

  /** What a list of the room would show, computed from the copy alone. */
  items(room: string): object[] {
    const lines = [...this.#lines.values()].filter((line) => line.room === room).sort((a, b) => a.seq - b.seq)
    return lines
      .filter(({ supersedes, type }) => supersedes === undefined && type === 'event')
      .map((line) => {
        const edits = lines.filter(({ supersedes }) => supersedes === line.event_id)
        const newest = edits.at(-1) ?? line
        return shownOf({
          ...line,
          page: line.actual_page ?? line.page,
          format: newest.actual_format ?? newest.format!,
          ...(edits.length === 0 ? {} : { version_id: newest.event_id, versions: edits.length + 1 }),
          text: newest.text!,
          signature: newest.signature!,
        })
      })
  }

  tombstones(room: string): string[] {
    return [...this.#lines.values()]
      .filter((line) => line.room === room && line.type === 'tombstone')
      .map(({ event_id, reason }) => `${event_id} ${reason}`)
      .sort()
  }

  get size(): number {
    return this.#lines.size
  }
}

function shownOf({ event_id, seq, kind, page, author, text, format, thread, ...event }: Item) {
  const { reply_to, signature, version_id, versions } = event
  return {
    event_id,
    seq,
    kind,
    page,
    author: author.id,
    text,
    format,
    thread,
    reply_to,
    signature,
    version_id,
    versions,
  }
}

async function itemsOf(room: string): Promise<object[]> {
  const answers = await walkPages(client, `/api/events?room=${room}&order=asc&limit=200`)
  return answers.flatMap(({ data }) => (data.events as Item[]).map(shownOf))
}

/** Ids and reasons of every removed version, as the board reports them one by one. */
async function goneOf(room: string, ids: readonly string[]): Promise<string[]> {
  const gone: string[] = []
  for (const id of ids) {
    const { events } = (await client.get(`/api/history/${id}`)).data
    for (const event of events!) if (event.room === room && event.hidden) gone.push(`${event.event_id} ${event.reason}`)
  }
  return gone.sort()
}

test('a copy that follows the export by cursor ends up with what the board shows, whatever happened in between', async () => {
  const copy = new Copy()
  const room = 'copied'
  const ids: { id: string; signer: typeof owner }[] = []
  const deed = fc.record({
    kind: fc.constantFrom('post', 'post', 'reply', 'edit', 'edit', 'hide', 'restore', 'redact', 'follow'),
    who: fc.nat(2),
    which: fc.nat(1000),
    limit: fc.constantFrom(1, 2, 7, 200),
  })
  const deeds = fc.sample(deed, { numRuns: 150, seed: 7 })
  let words = 0
  for (const { kind, who, which, limit } of deeds) {
    const target = ids[which % Math.max(1, ids.length)]
    if (kind === 'follow') await copy.follow(limit)
    else if (kind === 'post' || target === undefined) {
      const data = JSON.stringify({ schema: 1, format: which % 2 === 0 ? 'markdown' : 'text' })
      const fields = { room, text: `words ${++words}`, page: `page-${which % 3}`, data }
      const { data: answer } = await client.post(people[who]!, fields)
      ids.push({ id: answer.event_id!, signer: people[who]! })
    } else if (kind === 'reply') {
      const { data } = await client.post(people[who]!, { text: `words ${++words}`, reply_to: target.id })
      ids.push({ id: data.event_id!, signer: people[who]! })
    } else if (kind === 'edit') await edit(target.signer, target.id, `words ${++words}`)
    else if (kind === 'redact') await act('event.redact', target.id, target.signer)
    else await act(`room.${kind}`, target.id)
  }
  await copy.follow(3)
  expect(copy.items(room)).toEqual(await itemsOf(room))
  const gone = await goneOf(
    room,
    ids.map(({ id }) => id),
  )
  expect(gone.length).toBeGreaterThan(5)
  expect(copy.tombstones(room)).toEqual(gone)
})

test('the full export verifies offline: tombstones, versions and redactions with their leaves, each line once', async () => {
  const whole = await client.get('/v1/export')
  const terminal = await verify(whole.text, '--vkey', await vkeyOf())
  expect(terminal).toMatchObject({
    code: 0,
    out: expect.stringMatching(/root recomputed, signed by the log: verified/),
  })
  // Entries that belong to no event are ledger postings or moderation acts.
  const postings = linesOf(await client.get('/v1/export?stream=ledger')).filter(({ type }) => type === 'ledger').length
  const { acts } = (await client.get('/api/moderation?limit=200')).data as unknown as { acts: { log?: object }[] }
  expect(terminal.out).toContain(`, ${postings + acts.length} other entries`)
  const lines = linesOf(whole).filter(({ type }) => type === 'event' || type === 'tombstone')
  expect(new Set(lines.map(({ event_id }) => event_id)).size).toBe(lines.length)
  expect(lines.filter(({ redaction }) => redaction !== undefined).length).toBeGreaterThan(0)
  for (const line of lines.filter(({ type }) => type === 'tombstone'))
    for (const gone of ['text', 'signature', 'signed_payload', 'attachments']) expect(line).not.toHaveProperty(gone)
  const gzipped = await fetch(`${board.address}/v1/export`, { headers: { 'accept-encoding': 'gzip' } })
  expect(await gzipped.text()).toBe((await client.get('/v1/export')).text)
})

async function vkeyOf(): Promise<string> {
  return ((await client.get('/api/log/checkpoint')).data as { vkey?: string }).vkey!
}

test('a false line is detected: another original, another target, or a redaction that never happened', async () => {
  const text = (await client.get('/v1/export')).text.trimEnd().split('\n')
  const lies: [find: (line: Line) => boolean, change: object][] = [
    [({ supersedes, type }) => supersedes !== undefined && type === 'event', { supersedes: 'a'.repeat(32) }],
    [({ supersedes, type }) => supersedes !== undefined && type === 'event', { supersedes: undefined }],
    [
      ({ supersedes, type, reply_to }) => supersedes === undefined && type === 'event' && reply_to === undefined,
      { supersedes: 'a'.repeat(32) },
    ],
    [({ reply_to, supersedes }) => reply_to !== undefined && supersedes === undefined, { reply_to: 'a'.repeat(32) }],
    [
      ({ type, redaction }) => type === 'tombstone' && redaction === undefined,
      {
        redaction: { command_sha256: 'b'.repeat(64), created_at: 1, log: { state: 'included', origin: 'x', index: 0 } },
      },
    ],
    [({ redaction }) => redaction !== undefined, { seq: 99 }],
  ]
  for (const [find, change] of lies) {
    const at = text.findIndex((line) => find(JSON.parse(line) as Line))
    expect(at).toBeGreaterThanOrEqual(0)
    const lied = text.with(at, JSON.stringify({ ...JSON.parse(text[at]!), ...change }))
    expect([change, await verify(lied.join('\n'), '--vkey', await vkeyOf())]).toMatchObject([
      change,
      { code: 3, err: expect.stringContaining(`line ${at + 1}`) },
    ])
  }
})

test('a partial export is proved leaf by leaf against the board’s tiles, and says so', async () => {
  for (let count = 0; count < 300; count++) await client.post(third, { room: 'long', text: `post ${count}` })
  const { text } = await client.get('/v1/export?room=long')
  const lines = text.trimEnd().split('\n')
  expect(lines).toHaveLength(300)
  expect(await verify(text, '--unpinned')).toMatchObject({ code: 0, out: expect.stringContaining('NOT CHECKED') })
  const proved = await verify(text, '--from', board.address, '--vkey', await vkeyOf())
  expect(proved).toMatchObject({
    code: 0,
    out: expect.stringMatching(/inclusion +300 leaves under the signed root of \d+/),
  })
  const moved = JSON.parse(lines[5]!) as { log: { index: number } }
  moved.log.index += 1
  const lied = lines.with(5, JSON.stringify(moved)).join('\n')
  expect(await verify(lied, '--from', board.address)).toMatchObject({ code: 3, err: expect.stringContaining('line 6') })
  const page = await client.get('/v1/export?limit=5')
  expect(await verify(page.text, '--from', board.address)).toMatchObject({ code: 0 })
  expect(await verify(text, '--from', `${board.address}/nowhere`, '--vkey', await vkeyOf())).toMatchObject({ code: 1 })
})

test('filters select a room and a time; a room that opts out of archives and expiring posts are left out', async () => {
  await client.command(owner, { operation: 'room.policy.set', room: 'kept-out', data: '{"archive":false}' })
  await client.post(second, { room: 'kept-out', text: 'not for archives' })
  await client.post(second, { room: 'copied', text: 'not for long', ttl: 3600 })
  const { text } = await client.get('/v1/export')
  expect(text).not.toContain('not for')
  expect(linesOf(await client.get('/v1/export?room=kept-out'))).toEqual([])
  expect(linesOf(await client.get('/v1/export?room=long')).every(({ room }) => room === 'long')).toBe(true)
  expect(linesOf(await client.get(`/v1/export?since=${now() + 1000}`))).toEqual([])
  expect(linesOf(await client.get(`/v1/export?until=${now() - 1000}`))).toEqual([])
  const all = linesOf(await client.get(`/v1/export?since=${now() - 1000}&until=${now() + 1000}`))
  expect(new Set(all.map(({ event_id }) => event_id)).size).toBeGreaterThan(300)
  expect(await client.get('/v1/export?room=nowhere')).toMatchObject({ status: 400, code: 'not_found', field: 'room' })
  const { headers } = await client.get('/v1/export?room=long&limit=1')
  const other = await client.get(`/v1/export?room=copied&cursor=${headers['x-next-cursor'] as string}`)
  expect(other).toMatchObject({ status: 400, code: 'invalid_field', field: 'cursor' })
})

test('another board imports an export: the same texts, versions and threads, proved by that board', async () => {
  const path = join(directory, 'board.jsonl')
  writeFileSync(path, (await client.get('/v1/export')).text)
  const twin = await startBoard({ directory: boardDirectory() })
  const other = await Client.of(twin)
  const terminal = capturedTerminal()
  expect([await main(['import', path, '--url', twin.address], terminal), terminal.said]).toEqual([0, expect.anything()])
  expect(terminal.said.out).toContain('lines of an export that contain no text were skipped')
  const textsOf = async (from: Client, room: string) => {
    const answers = await walkPages(from, `/api/events?room=${room}&order=asc&limit=200`)
    const items = answers.flatMap(({ data }) => data.events as Item[])
    return items.map(({ text, versions, kind, page }) => JSON.stringify([text, versions, kind, page])).sort()
  }
  for (const room of ['copied', 'long'])
    expect(await textsOf(other, room)).toEqual(
      (await textsOf(client, room)).filter((each) => !each.includes('not for long')),
    )
  const key = await logKeyOf(other)
  const { events } = await fetchVerifiedExport(other, key)
  for (const { event_id } of events.slice(0, 20)) await proveEvent(other, key, event_id)
  const versions = async (from: Client, room: string) => {
    const answers = await walkPages(from, `/api/events?room=${room}&order=asc&limit=200`)
    const edited = answers.flatMap(({ data }) => data.events as Item[]).filter((item) => item.versions !== undefined)
    const texts: string[][] = []
    for (const { event_id } of edited)
      texts.push((await from.get(`/api/history/${event_id}`)).data.events?.map(({ text }) => text!) ?? [])
    return texts.sort()
  }
  const before = await versions(client, 'copied')
  expect(before.length).toBeGreaterThan(3)
  expect(await versions(other, 'copied')).toEqual(before)
  other.close()
})

test('a reply to a version of an event that expires verifies, though no line mentions either', async () => {
  const { data: passing } = await client.post(owner, { text: 'gone in an hour', ttl: 3_600 })
  const { data: version } = await edit(owner, passing.event!.event_id, 'gone in an hour, and better')
  const to = (id: string) => client.post(second, { text: `an answer to ${id}`, reply_to: id })
  const named = [passing.event!.event_id, version.receipt!.event_id]
  const answers = [await to(named[0]!), await to(named[1]!)].map(({ data }) => data.event!)
  expect(answers.map(({ reply_to }) => reply_to)).toEqual([named[0], named[0]])
  const found = await client.get('/v1/export')
  expect(found.text).not.toContain('gone in an hour')
  const shown = new Map(linesOf(found).map((line) => [line.event_id, line.reply_to]))
  expect(answers.map(({ event_id }) => shown.get(event_id))).toEqual(named)
  expect(await verify(found.text, '--vkey', await vkeyOf())).toMatchObject({ code: 0 })
})
