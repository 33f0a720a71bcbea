/** Moderation of the whole board: a log that anyone can verify; files taken down everywhere; reports with counts and age. */
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import type { Signer } from '../../src/cli/sign.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { patience } from '../support/patience.ts'
import { scratchDirectory } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

type Act = {
  readonly seq: number
  readonly action: string
  readonly target?: string
  readonly room?: string
  readonly reason?: string
  readonly event_id: string
  readonly actor: { readonly id: string }
  readonly log: { readonly state: string; readonly index?: number }
}

const [ada, eve, operator] = [person('ada'), person('eve'), person('operator')]
const directory = boardDirectory()
let board: Board
let client: Client

async function start(): Promise<void> {
  board = await startBoard({ directory, env: { SHARDS: '3', OPERATORS: operator.id } })
  client = await Client.of(board)
}
async function again(end: (running: Board) => Promise<unknown>): Promise<void> {
  client.close()
  await end(board)
  await start()
}
beforeAll(start)

async function done(who: Signer, fields: Fields) {
  const answer = await client.command(who, fields)
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
  return answer.data
}
const post = async (who: Signer, room: string, more = {}) =>
  (await done(who, { operation: 'post', room, text: `in ${room}`, ...more })).event_id!
const acts = async (): Promise<Act[]> => ((await client.get('/api/moderation')).data as unknown as { acts: Act[] }).acts

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = capturedTerminal()
  const code = await main(argv, terminal)
  return { code, ...terminal.said }
}

describe('the moderation log of the board', () => {
  test('has every public act of owners and operators, newest first, and no private one', async () => {
    await done(ada, { operation: 'room.create', room: 'garden' })
    await done(ada, { operation: 'room.create', room: 'cellar', visibility: 'private' })
    const [event, other, inPrivate] = [await post(eve, 'garden'), await post(eve, 'garden'), await post(ada, 'cellar')]
    await done(ada, { operation: 'room.hide', event_id: event, reason: 'an advert' })
    await done(ada, { operation: 'room.restore', event_id: event, reason: 'it was none' })
    await done(ada, { operation: 'room.ban', room: 'garden', target: eve.id, reason: 'floods' })
    await done(ada, { operation: 'event.redact', event_id: other, reason: 'by the owner' })
    await done(eve, { operation: 'event.redact', event_id: event, reason: 'x' })
    await done(ada, { operation: 'event.redact', event_id: inPrivate, reason: 'x' })
    await done(operator, { operation: 'identity.suspend', target: eve.id, reason: 'floods everywhere' })
    const found = await acts()
    expect(found.map(({ action, target, room, reason }) => [action, target, room, reason])).toEqual([
      ['identity.suspend', eve.id, undefined, 'floods everywhere'],
      ['event.redact', other, 'garden', 'by the owner'],
      ['room.ban', eve.id, 'garden', 'floods'],
      ['room.restore', event, 'garden', 'it was none'],
      ['room.hide', event, 'garden', 'an advert'],
    ])
    expect(found.map(({ seq }) => seq)).toEqual([5, 4, 3, 2, 1])
    expect((await client.get('/api/moderation?limit=2')).data).toMatchObject({ has_more: true })
    expect(JSON.stringify(found)).not.toContain('cellar')
  })

  test('each act is proved by a file that verifies offline, and a changed one does not', async () => {
    const vkey = (await client.get('/log/vkey')).text.trim()
    const folder = scratchDirectory()
    for (const { event_id: id, action, log } of await acts()) {
      expect(log).toMatchObject({ state: 'included', index: expect.any(Number) })
      const { data } = await client.get(`/api/log/proof?message=${id}`)
      const entry = Buffer.from(data.entry!, 'base64').toString()
      if (action !== 'event.redact')
        expect(entry).toMatch(new RegExp(`^broadside/entry@v1\nkind moderate\n.*\naction ${action}\n$`, 's'))
      const file = join(folder, `${id}.json`)
      writeFileSync(file, JSON.stringify(data))
      expect([action, await run('verify', file, '--vkey', vkey)]).toEqual([
        action,
        expect.objectContaining({ code: 0 }),
      ])
      writeFileSync(
        file,
        JSON.stringify({ ...data, entry: Buffer.from(entry.replace('time 1', 'time 2')).toString('base64') }),
      )
      expect(await run('verify', file, '--vkey', vkey)).toMatchObject({ code: 3 })
    }
  })

  test('an export verifies, and so does the directory, with these entries in the log', async () => {
    const vkey = (await client.get('/log/vkey')).text.trim()
    const file = join(scratchDirectory(), 'board.jsonl')
    expect(await run('export', '--url', board.address, '--out', file)).toMatchObject({ code: 0 })
    expect(await run('verify', file, '--vkey', vkey)).toMatchObject({ code: 0 })
    await again(async (running) => {
      await running.stop()
      expect(await run('fsck', '--data', directory, '--signatures')).toMatchObject({ code: 0 })
    })
    expect(await acts()).toHaveLength(5)
    await again((running) => running.kill())
    expect(await acts()).toHaveLength(5)
  })

  test('people read it on a page, and on the command line', async () => {
    const page = (await client.get('/moderation')).text
    for (const words of [
      'floods everywhere',
      '<span>suspended <a',
      'identity.suspend',
      `/i/${eve.id}`,
      '/api/log/proof?message=',
    ])
      expect(page).toContain(words)
    const { code, out } = await run('moderate', 'acts', '--url', board.address)
    expect([code, out]).toEqual([0, expect.stringContaining('floods everywhere')])
  })
})

describe('a file that is taken down', () => {
  const bytes = Buffer.from('what nobody should read')
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const put = (who: Signer, room: string) =>
    client.sign(who, {
      operation: 'blob.put',
      room,
      filename: 'x.txt',
      media_type: 'text/plain',
      data: bytes.toString('base64url'),
    })
  const bob = person('bob')
  const rooms = ['garden', 'pond', 'shed', 'vault', 'attic']
  const blobs: string[] = []
  let retried: string

  beforeAll(async () => {
    for (const [n, room] of rooms.entries()) {
      const visibility = n < 3 ? 'public' : 'private'
      if (room !== 'garden') await done(ada, { operation: 'room.create', room, visibility })
      const signed = put(ada, room)
      retried = signed.body
      blobs.push(((await client.send(signed.body)).data as unknown as { blob: { id: string } }).blob.id)
      await post(ada, room, { attachments: [blobs.at(-1)!] })
    }
  })

  const isGone = async (n: number): Promise<void> => {
    expect(await client.command(ada, { operation: 'blob.get', target: blobs[n]! })).toMatchObject({
      status: 400,
      code: 'not_found',
    })
    if (n < 3) expect(await client.get(`/a/${blobs[n]}`)).toMatchObject({ status: 400, code: 'not_found' })
  }
  const holdsBytes = () =>
    [...filesUnder(directory)].filter(([, content]) => content.includes(bytes)).map(([name]) => name)

  test('is served before, in five rooms', async () => {
    expect((await client.get(`/a/${blobs[0]}`)).text).toBe(bytes.toString())
    expect(holdsBytes()).toHaveLength(5)
  })

  test('can be taken down only by an operator', async () => {
    for (const who of [ada, bob])
      expect(await client.command(who, { operation: 'blob.takedown', target: sha256, reason: 'x' })).toMatchObject({
        code: 'forbidden',
      })
  })

  test('is gone from every room, public and private, from every read and from the disk', async () => {
    const etag = (await client.get(`/a/${blobs[0]}`)).headers.etag!
    await done(operator, { operation: 'blob.takedown', target: sha256, reason: 'malware' })
    for (const n of [0, 1, 2]) expect((await client.get(`/a/${blobs[n]}`)).status).toBe(400)
    expect((await client.get(`/a/${blobs[0]}`, { 'if-none-match': etag })).status).toBe(400)
    expect((await client.get(`/a/${blobs[0]}`, { range: 'bytes=0-3' })).status).toBe(400)
    await vi.waitFor(() => expect(holdsBytes()).toEqual([]), patience)
    for (const n of rooms.keys()) await isGone(n)
    for (const room of rooms) {
      const { text } = await client.command(ada, { operation: 'events.list', room })
      expect([room, text]).toEqual([room, expect.stringContaining('"gone":"deleted"')])
      expect(text).not.toContain('x.txt')
    }
    expect((await client.get('/v1/export')).text).not.toContain('x.txt')
    expect((await acts())[0]).toMatchObject({ action: 'blob.takedown', target: sha256, reason: 'malware' })
  })

  test('cannot be uploaded again by anyone, into any room; a retry gets its answer', async () => {
    for (const [who, room] of [
      [ada, 'garden'],
      [ada, 'vault'],
      [bob, 'lobby'],
    ] as const)
      expect(await client.send(put(who, room).body)).toMatchObject({ status: 403, code: 'forbidden' })
    expect(await client.send(retried)).toMatchObject({ status: 200, data: { receipt: { duplicate: true } } })
    expect(holdsBytes()).toEqual([])
  })

  test('stays down over a stop, a kill, and the loss of every snapshot', async () => {
    for (const end of [(running: Board) => running.stop(), (running: Board) => running.kill()]) {
      await again(end)
      for (const n of rooms.keys()) await isGone(n)
      expect(await client.send(put(bob, 'lobby').body)).toMatchObject({ code: 'forbidden' })
    }
  })

  test('is completely removed even after a kill right after the takedown', async () => {
    const other = Buffer.from('another of that kind')
    const target = createHash('sha256').update(other).digest('hex')
    const fields = { operation: 'blob.put', data: other.toString('base64url') }
    for (const room of ['pond', 'attic']) await done(ada, { ...fields, room })
    await done(operator, { operation: 'blob.takedown', target, reason: 'the same' })
    await again((running) => running.kill())
    const holding = () => [...filesUnder(directory)].filter(([, content]) => content.includes(other))
    await vi.waitFor(() => expect(holding()).toEqual([]), patience)
  })

  test('may be uploaded again once the takedown has ended; removed copies stay removed', async () => {
    const ended = { operation: 'blob.takedown', target: sha256, reason: 'a mistake', data: '{"schema":1,"ended":true}' }
    await done(operator, ended)
    expect((await client.send(put(bob, 'lobby').body)).status).toBe(200)
    await isGone(0)
    expect(await client.command(operator, ended)).toMatchObject({ code: 'wrong_state' })
  })

  test('stays when uploaded again, though the board searches once more for what it took down', async () => {
    const mistaken = Buffer.from('taken down by mistake')
    const target = createHash('sha256').update(mistaken).digest('hex')
    const upload = { operation: 'blob.put', data: mistaken.toString('base64url'), room: 'pond' }
    await done(ada, upload)
    const takedown = { operation: 'blob.takedown', target, reason: 'a mistake' }
    await done(operator, takedown)
    const holding = () => [...filesUnder(join(directory, 'blobs'))].some(([, content]) => content.equals(mistaken))
    await vi.waitFor(() => expect(holding()).toBe(false), patience)
    await done(operator, { ...takedown, data: '{"schema":1,"ended":true}' })
    await done(bob, upload)
    // Longer than the board waits before it searches again.
    await sleep(6_500)
    expect(holding()).toBe(true)
  })
})

test('reports are listed by event, with their number and age, only for operators', async () => {
  const [first, second] = [await post(ada, 'lobby'), await post(ada, 'pond')]
  for (const [n, event_id] of [first, first, first, second].entries())
    await done(person(`reporter ${n}`), { operation: 'report', event_id, reason: `reason ${n}` })
  type Reported = {
    readonly event_id: string
    readonly reporters: number
    readonly reports: string[]
    readonly reason: string
  }
  const summary = async () =>
    ((await done(operator, { operation: 'reports.summary' })) as unknown as { reported: Reported[] }).reported
  const found = await summary()
  expect(found).toHaveLength(2)
  expect(found.find(({ event_id }) => event_id === first)).toMatchObject({
    reporters: 3,
    room: 'lobby',
    author: ada.id,
    reason: 'reason 0',
    reports: [expect.anything(), expect.anything(), expect.anything()],
    oldest_at: expect.any(Number),
  })
  const [report = ''] = found.find(({ event_id }) => event_id === second)!.reports
  await done(operator, { operation: 'report.resolve', target: report, data: '{"schema":1,"action":"dismissed"}' })
  expect((await summary()).map(({ event_id }) => event_id)).toEqual([first])
  expect(await client.command(ada, { operation: 'reports.summary' })).toMatchObject({ code: 'forbidden' })
})

test('a file taken down after the backup is down again when the board is lost and restored with a mirror', async () => {
  const folder = scratchDirectory()
  const source = boardDirectory()
  const env = { OPERATORS: operator.id }
  const lost = await startBoard({ directory: source, env })
  const there = await Client.of(lost)
  const bytes = Buffer.from('taken down after the backup')
  const put = { operation: 'blob.put', data: bytes.toString('base64url') }
  expect((await there.command(ada, put)).status).toBe(200)
  const [copy, mirror, restored] = ['copy', 'mirror', 'restored'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  expect(await run('backup', copy, '--data', source)).toMatchObject({ code: 0 })
  const target = createHash('sha256').update(bytes).digest('hex')
  expect((await there.command(operator, { operation: 'blob.takedown', target, reason: 'malware' })).status).toBe(200)
  expect(await run('mirror', lost.address, mirror)).toMatchObject({ code: 0 })
  there.close()
  await lost.kill()
  expect(await run('restore', copy, '--data', restored, '--keys', join(source, 'keys'))).toMatchObject({ code: 0 })
  const declared = await run('restored', '--lost', '--yes', '--apply-from', mirror, '--data', restored)
  expect([declared.code, declared.out]).toEqual([
    0,
    expect.stringContaining('files that were taken down everywhere: 1'),
  ])
  const found = await startBoard({ directory: restored, env })
  const again = await Client.of(found)
  expect(await again.command(ada, put)).toMatchObject({ code: 'forbidden' })
  await vi.waitFor(() => {
    expect([...filesUnder(restored)].filter(([, content]) => content.includes(bytes))).toEqual([])
  }, patience)
  again.close()
  await found.stop()
})
