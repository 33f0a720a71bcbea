/** A read error (EIO) in a sealed segment of a running board costs only what is in it, and only as long as it lasts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { missingProgram, skipNote, skipWithout } from '../peers/peers.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const missing = missingProgram('strace')
const directory = boardDirectory()
const posts = 1_200
const lost = 'the disk of this board does not return what was written'

type Listed = { readonly event_id: string; readonly type: string; readonly reason?: string }

describe.skipIf(skipWithout(missing))(`with a disk that has a bad place${skipNote(missing)}`, () => {
  let board: Board
  let client: Client

  beforeAll(async () => {
    const env = { SHARDS: '1', SEGMENT_BYTES: '65536', SCRUB_BYTES_PER_SECOND: '0', RECENT_EVENTS: '16' }
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    const ada = person('ada')
    // One at a time: each has its own frame in the log, so that a segment has as many as it can hold.
    for (let n = 0; n < posts; n++)
      expect((await client.post(ada, { room: 'many', text: `post ${n} ${'.'.repeat(300)}` })).status).toBe(200)
  })
  afterAll(async () => {
    client.close()
    await board.stop()
  })

  /** All events of the room, as its pages list them. */
  async function listed(): Promise<Listed[]> {
    const events: Listed[] = []
    for (let cursor = ''; ; ) {
      const after = cursor === '' ? '' : `&cursor=${cursor}`
      const { status, data } = await client.getWithRetries(`/api/events?room=many&order=asc&limit=100${after}`)
      expect(status).toBe(200)
      const page = data as unknown as { events: readonly Listed[]; has_more: boolean; next_cursor?: string }
      events.push(...page.events)
      if (!page.has_more) return events
      cursor = page.next_cursor!
    }
  }

  async function exported(query = ''): Promise<{ readonly lines: number; readonly unreadable: number }> {
    const { status, text } = await client.getWithRetries(`/v1/export${query}`)
    expect(status).toBe(200)
    return { lines: text.split('\n').length, unreadable: text.match(/"type":"unreadable"/g)?.length ?? 0 }
  }

  /** Every read of the second segment fails while `work` runs. */
  async function withBadSegment(part: string, work: () => Promise<void>): Promise<void> {
    const names = readdirSync(join(directory, part)).filter((name) => name.endsWith('.log'))
    const path = join(directory, part, names.sort()[1]!)
    const calls = 'read,pread64'
    const quiet = ['-f', '-o', '/dev/null', '-p', String(board.child.pid), '-P', path]
    const tracer: ChildProcess = spawn('strace', [...quiet, '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`])
    await new Promise<void>((attached) => tracer.stderr!.once('data', () => attached()))
    try {
      await work()
    } finally {
      tracer.kill()
      await new Promise((ended) => tracer.once('close', ended))
    }
  }

  test('in a shard: lists and exports mention each event in it, and all are back afterwards', async () => {
    const before = await exported()
    const whole = await exported('?stream=board')
    expect([before.unreadable, whole.unreadable]).toEqual([0, 0])
    let gone = 0
    await withBadSegment('shard-00', async () => {
      // Twice: an answer with tombstones is not cached.
      for (let n = 0; n < 2; n++) {
        const events = await listed()
        const tombstones = events.filter(({ type }) => type === 'tombstone')
        gone = tombstones.length
        expect(events).toHaveLength(posts)
        for (const { reason } of tombstones) expect(reason).toContain(lost)
      }
      expect(gone).toBeGreaterThan(0)
      expect(gone).toBeLessThan(posts / 2)
      expect(await exported()).toEqual({ lines: before.lines, unreadable: gone })
      expect(await exported('?stream=board')).toEqual({ lines: whole.lines, unreadable: gone })
      const { event_id } = (await listed()).find(({ type }) => type === 'tombstone')!
      const one = await client.getWithRetries(`/api/events/${event_id}`)
      expect([one.status, one.text]).toEqual([500, expect.stringContaining(lost)])
    })
    expect((await listed()).filter(({ type }) => type === 'tombstone')).toEqual([])
    expect(await exported()).toEqual(before)
  })

  test('in the log: every event has its proof, and an export is complete', async () => {
    const before = await exported()
    const whole = await exported('?stream=board')
    const events = await listed()
    await withBadSegment('log', async () => {
      for (const { event_id } of events.filter((_, n) => n % 7 === 0))
        expect((await client.getWithRetries(`/api/log/proof?message=${event_id}`)).status).toBe(200)
      expect(await exported()).toEqual(before)
      expect(await exported('?stream=board')).toEqual(whole)
    })
  })
})
