/** /api/changes: a copy that follows it alongside exports stays equal to the board, through edits, hides, redactions and kills. */
import { expect, test, vi } from 'vitest'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type EventJson, person } from '../support/client.ts'
import { chooseSeed, randomFrom } from '../support/load.ts'
import { StreamReader } from '../support/stream-reader.ts'
import { drainUpdates, fetchUpdates, subject } from '../support/updates.ts'

vi.setConfig({ testTimeout: 900_000 })

type Version = EventJson & { readonly supersedes?: string; readonly superseded_by?: string }
type Change = {
  readonly change: number
  readonly type: string
  readonly at: number
  readonly event_id: string
  readonly events: readonly Version[]
}
type Page = { readonly changes: readonly Change[]; readonly after: number; readonly has_more: boolean }

const [ada, ben] = [person('ada'), person('ben')]

async function page(client: Client, after: number, limit = 50): Promise<Page> {
  const answer = await client.get(`/api/changes?after=${after}&limit=${limit}`)
  if (answer.status !== 200) throw new Error(answer.text)
  return answer.data as unknown as Page
}

/** Every correction after `after`, and where to continue. */
async function changesAfter(client: Client, after: number, limit = 50): Promise<{ found: Change[]; after: number }> {
  const found: Change[] = []
  let at = after
  for (;;) {
    const next = await page(client, at, limit)
    found.push(...next.changes)
    at = next.after
    if (!next.has_more) return { found, after: at }
  }
}

async function exported(client: Client): Promise<Version[]> {
  const { text } = await client.get('/v1/export')
  const lines = text.trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line) as Version).filter(({ type }) => type === 'event' || type === 'tombstone')
}

/** What a correction can change of a version. */
function shown(version: Version) {
  const { type, event_id, room, seq, text, hidden, reason, supersedes, superseded_by, signature, signed_payload } =
    version
  return { type, event_id, room, seq, text, hidden, reason, supersedes, superseded_by, signature, signed_payload }
}

/** A copy: the export upserted by id, with corrected versions replaced. */
class Copy {
  readonly versions = new Map<string, Version>()
  #after: number

  constructor(after: number) {
    this.#after = after
  }

  async follow(client: Client, limit: number): Promise<void> {
    for (const version of await exported(client)) this.versions.set(version.event_id, version)
    const { found, after } = await changesAfter(client, this.#after, limit)
    this.#after = after
    for (const { events } of found) for (const version of events) this.versions.set(version.event_id, version)
  }
}

test('a copy that follows exports and corrections equals the board', async () => {
  const random = randomFrom(chooseSeed('changes'))
  const directory = boardDirectory()
  const env = { SHARDS: '2', OPERATORS: ada.id }
  let board = await startBoard({ directory, env })
  let client = await Client.of(board)
  const rooms = ['one', 'two']
  for (const room of rooms) await client.command(ada, { operation: 'room.create', room })
  await client.command(ada, { operation: 'room.create', room: 'inner', visibility: 'private' })
  const inner = (await client.post(ada, { room: 'inner', text: 'canary' })).data.event_id!

  const copy = new Copy((await page(client, -1)).after)
  const originals: { id: string; by: typeof ada }[] = []
  const expected: string[] = []
  const note = (type: string, id: string, { status }: { status: number }) => {
    if (status === 200) expected.push(`${type} ${id}`)
  }
  for (let round = 0; round < 6; round++) {
    for (let n = 0; n < 30; n++) {
      const by = random(2) === 0 ? ada : ben
      const chosen = originals[random(originals.length || 1)]
      const reason = `reason ${n}`
      const what = random(10)
      if (chosen === undefined || what < 4) {
        const { data } = await client.post(by, { room: rooms[random(2)]!, text: `text ${round} ${n}` })
        originals.push({ id: data.event_id!, by })
      } else if (what < 7) {
        const data = JSON.stringify({ schema: 1, supersedes: chosen.id })
        note('event.superseded', chosen.id, await client.post(chosen.by, { text: `edit ${round} ${n}`, data }))
      } else {
        const operation = what === 7 ? 'room.hide' : what === 8 ? 'room.restore' : 'event.redact'
        if (what === 9 && random(3) > 0) continue
        const type = what === 7 ? 'event.hidden' : what === 8 ? 'event.restored' : 'event.redacted'
        note(type, chosen.id, await client.command(ada, { operation, event_id: chosen.id, reason }))
      }
      if (random(8) === 0) await client.command(ada, { operation: 'room.hide', event_id: inner, reason: 'canary' })
    }
    await copy.follow(client, 1 + random(20))
    if (round === 2 || round === 4) {
      if (round === 2) await board.kill()
      else await board.stop()
      client.close()
      board = await startBoard({ directory, env })
      client = await Client.of(board)
    }
    const truth = await exported(client)
    for (const version of truth) expect(shown(copy.versions.get(version.event_id)!)).toEqual(shown(version))
    const listed = new Set(truth.map(({ event_id }) => event_id))
    for (const version of copy.versions.values()) {
      // An event that is no longer in an export is known only from its corrections, and shows no text.
      if (listed.has(version.event_id)) continue
      expect(version).toMatchObject({ type: 'tombstone', hidden: true })
      expect(version).not.toHaveProperty('text')
      expect(version).not.toHaveProperty('signed_payload')
    }
  }
  const { found } = await changesAfter(client, 0, 200)
  expect(found.map(({ type, event_id }) => `${type} ${event_id}`)).toEqual(expected)
  expect(found.every(({ change }, n) => n === 0 || change > found[n - 1]!.change)).toBe(true)
  for (const limit of [1, 3, 7]) expect((await changesAfter(client, 0, limit)).found).toEqual(found)
  expect(JSON.stringify(found)).not.toContain(inner)
  client.close()
})

test('edits, hides, restores and redactions reach followers: updates, and tails of both kinds', async () => {
  const board = await startBoard({ directory: boardDirectory(), env: { SHARDS: '2' } })
  const client = await Client.of(board)
  for (const visibility of ['public', 'private']) {
    const room = `${visibility}-room`
    await client.command(ada, { operation: 'room.create', room, visibility, members: [ben.id] })
    const reader = visibility === 'public' ? undefined : ben
    const token = await client.command(ben, { operation: 'room.read_token', room })
    const { tail = `/tail/${room}` } = token.data as unknown as { tail?: string }
    const { cursor } = await fetchUpdates(client, {}, reader)
    const id = (await client.post(ada, { room, text: 'first' })).data.event_id!
    const [text, line, sse] = [
      new StreamReader(board.address, tail),
      new StreamReader(board.address, `${tail}${tail.includes('?') ? '&' : '?'}format=line`),
      new StreamReader(board.address, tail, { accept: 'text/event-stream' }),
    ]
    for (const each of [text, line, sse]) await each.until((all) => all.includes(id))
    const data = JSON.stringify({ schema: 1, supersedes: id })
    const edit = (await client.post(ada, { text: 'second', data })).data.event_id!
    const act = (operation: string, reason: string) => client.command(ada, { operation, event_id: id, reason })
    expect((await act('room.hide', 'off\ntopic')).status).toBe(200)
    expect((await act('room.restore', 'after all')).status).toBe(200)
    expect((await act('event.redact', 'for good')).status).toBe(200)
    const found = await drainUpdates(client, { cursor, limit: 2, rooms: [room] }, reader)
    expect(found.map(subject)).toEqual([
      `event.posted ${id}`,
      `event.superseded ${edit}`,
      `event.hidden ${id}`,
      `event.restored ${id}`,
      `event.redacted ${id}`,
    ])
    for (const { event } of found) expect(event).toMatchObject({ type: 'tombstone', hidden: true, reason: 'for good' })
    const blocks = await text.until((all) => all.includes('redacted'))
    expect(blocks).toContain(
      `\n# ${id} is hidden: off topic\n\n# ${id} is shown again\n\n# ${id} is redacted: for good\n\n`,
    )
    expect(blocks).toMatch(new RegExp(`^\\[${edit}\\] ${room}/main \\S+ \\S+ supersedes=${id}\\nsecond\\n\\n`, 'm'))
    const lines = await line.until((all) => all.includes('redacted'))
    expect(lines).toContain(`\n# ${id} is hidden: off topic\n# ${id} is shown again\n# ${id} is redacted: for good\n`)
    const streamed = await sse.until((all) => all.includes('"reason":"for good"'))
    const revisions = [...streamed.matchAll(/^event: revision\ndata: (.*)\n\n/gm)].map(([, json]) => JSON.parse(json!))
    expect(revisions).toMatchObject([
      { event_id: id, hidden: true, reason: 'off\ntopic' },
      { event_id: id, hidden: false, text: 'second' },
      { event_id: id, hidden: true, reason: 'for good' },
    ])
    for (const each of [text, line, sse]) each.close()
  }
  client.close()
  await board.stop()
})

test('an invalid query is refused with a message', async () => {
  const board = await startBoard({ directory: boardDirectory() })
  const client = await Client.of(board)
  const { after } = await page(client, -1)
  expect((await client.get('/api/changes')).data).toMatchObject({ changes: [], after, has_more: false })
  for (const [query, code, field] of [
    ['after=-2', 'invalid_field', 'after'],
    ['after=x', 'invalid_field', 'after'],
    [`after=${after + 1}`, 'expired', 'after'],
    ['limit=0', 'invalid_field', 'limit'],
    ['limit=201', 'invalid_field', 'limit'],
    ['room=lobby', 'unknown_field', 'room'],
  ])
    expect([query, await client.get(`/api/changes?${query}`)]).toMatchObject([query, { status: 400, code, field }])
  const sent = await client.send(JSON.stringify({ operation: 'changes.list', data: '{"schema":1,"after":-1}' }))
  expect(sent.data).toMatchObject({ changes: [], after })
  client.close()
  await board.stop()
})
