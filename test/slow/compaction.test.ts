import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test, vi } from 'vitest'
import { verifyProofJson } from '../../src/cli/verify-proof.ts'
import type { VerifierKey } from '../../storage/note.ts'
import { blobOf, putFields } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { logKeyOf } from '../support/log-checks.ts'
import { patience } from '../support/patience.ts'
import { program } from '../support/program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben] = [person('ada'), person('ben')]
const secret = 'a-secret-that-must-leave'
const clients: Client[] = []
afterAll(() => {
  for (const client of clients) client.close()
})

async function open(board: Board): Promise<Client> {
  const client = await Client.of(board)
  clients.push(client)
  return client
}

/** Every file of the data directory that contains these bytes. */
function filesWith(directory: string, words: string): string[] {
  return [...filesUnder(directory)].filter(([, bytes]) => bytes.includes(words)).map(([name]) => name)
}

/** Deleted journal files that a thread of the board still has open, as far as the system reports them. */
function heldOpen({ child }: Board): string[] {
  const open = `/proc/${child.pid}/fd`
  const names = existsSync(open) ? readdirSync(open) : []
  const files = names.map((name) => {
    try {
      return readlinkSync(join(open, name))
    } catch {
      return '' // Closed meanwhile.
    }
  })
  return files.filter((file) => file.endsWith('.log (deleted)'))
}

/** The entry of an event is still proved, with or without its signed bytes. */
async function prove(client: Client, key: VerifierKey, id: string, hasSignedBytes: boolean): Promise<void> {
  const { data } = await client.get(`/api/log/proof?message=${id}`)
  expect(verifyProofJson(data as Record<string, unknown>, key)).toMatchObject({ eventId: id, hasSignedBytes })
}

const gone = (directory: string, words: string) =>
  vi.waitFor(() => expect(filesWith(directory, words)).toEqual([]), patience)

test('a redacted text and its nonce leave every file, its versions too, and every proof stays valid', async () => {
  const directory = boardDirectory()
  const env = { COMPACT_SECONDS: '1', SEGMENT_BYTES: '65536', RECENT_EVENTS: '16' }
  let board = await startBoard({ directory, env })
  let client = await open(board)
  const nonce = 'a-nonce-that-must-leave-0123456789'
  const signed = client.sign(ada, { operation: 'post', room: 'talk', text: `${secret} one` }, { nonce })
  const id = (await client.send(signed.body)).data.event_id!
  const reply = await client.post(ben, { room: 'talk', text: 'an answer that stays', reply_to: id })
  const edit = await client.post(ada, {
    room: 'talk',
    text: `${secret} two`,
    data: JSON.stringify({ schema: 1, supersedes: id }),
  })
  expect(edit.status).toBe(200)
  for (let n = 0; n < 150; n++) await client.post(ben, { room: 'talk', text: `filling ${n} ${'x'.repeat(400)}` })
  const key = await logKeyOf(client)
  const redacted = await client.command(ada, { operation: 'event.redact', event_id: id, reason: 'said too much' })
  expect(redacted.status).toBe(200)
  await gone(directory, secret)
  await gone(directory, nonce)
  const check = async () => {
    expect((await client.get(`/api/events/${id}`)).data.event).toMatchObject({
      type: 'tombstone',
      hidden: true,
      seq: 1,
    })
    expect((await client.get(`/api/thread/${id}`)).data.events!.map(({ text }) => text)).toEqual([
      undefined,
      'an answer that stays',
    ])
    for (const each of [id, edit.data.event_id!]) await prove(client, key, each, false)
    await prove(client, key, reply.data.event_id!, true)
    expect((await client.get('/v1/export')).text).not.toContain(secret)
  }
  await check()
  // Destroyed content is still known as posted: the same bytes again are a retry, other bytes with its nonce are refused.
  const retried = await client.send(signed.body)
  expect(retried.data).toMatchObject({ event_id: id, event: { type: 'tombstone' }, receipt: { duplicate: true } })
  const reused = await client.post(ada, { room: 'talk', text: 'other words' }, { nonce })
  expect(reused.code).toBe('nonce_reused')
  await board.stop()
  const fsck = spawnSync(process.execPath, [program, 'fsck', '--data', directory], { encoding: 'utf8' })
  expect(fsck.stderr + fsck.stdout).not.toContain('damage:')
  expect(fsck.status).toBe(0)
  for (const name of ['shard-00/snapshots', 'log/feed-snapshots', 'search'])
    rmSync(join(directory, name), { recursive: true, force: true })
  board = await startBoard({ directory, env, port: board.port })
  client = await open(board)
  await check()
  expect(filesWith(directory, secret)).toEqual([])
})

test('expired texts leave the disk too, and so do texts redacted in a private room', async () => {
  const directory = boardDirectory()
  const env = { COMPACT_SECONDS: '1' }
  let board = await startBoard({ directory, env })
  let client = await open(board)
  await client.post(ada, { room: 'talk', text: `${secret} for a moment`, ttl: 1 })
  for (const path of ['/api/tools?query=moment', '/api/events?query=moment'])
    expect((await client.get(path)).status).toBe(200)
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
  const inside = await client.post(ada, { room: 'den', text: `${secret} within` })
  expect(filesWith(directory, `${secret} within`)).not.toEqual([])
  expect(
    (await client.command(ada, { operation: 'event.redact', event_id: inside.data.event_id!, reason: 'x' })).status,
  ).toBe(200)
  await gone(directory, secret)
  // Nor is it in deleted files: nothing is written now that would make anybody open the next segment.
  await vi.waitFor(() => expect(heldOpen(board)).toEqual([]), patience)
  const read = await client.command(ada, { operation: 'event.get', event_id: inside.data.event_id! })
  expect(read.data.event).toMatchObject({ type: 'tombstone' })
  const found = await client.post(ada, { room: 'talk', text: `${secret} to be found` })
  expect((await client.get('/api/events?query=found')).data.events).toHaveLength(1)
  await board.stop()
  board = await startBoard({ directory, env, port: board.port })
  client = await open(board)
  expect(filesWith(directory, 'to be found')).toEqual(expect.arrayContaining(['search/index.db']))
  // Nobody searches any more, and texts found before leave the index all the same.
  const redact = { operation: 'event.redact', event_id: found.data.event_id!, reason: 'x' }
  expect((await client.command(ada, redact)).status).toBe(200)
  await gone(directory, secret)
})

test('the files of redacted posts and tails saved by recovery go with the texts; files of other posts stay', async () => {
  const directory = boardDirectory()
  const board = await startBoard({ directory, env: { COMPACT_SECONDS: '1' } })
  const client = await open(board)
  await client.command(ada, { operation: 'room.create', room: 'talk' })
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
  const put = async (room: string, words: string) =>
    blobOf(await client.command(ada, putFields(Buffer.from(words), { room, filename: 'x.txt' })))
  const posted = async (room: string, attachments: string[], more = {}) =>
    (await client.post(ada, { room, text: 'look', attachments, ...more })).data.event_id!
  const shown = await put('talk', `${secret} file, shown twice`)
  const edited = await put('talk', `${secret} file of an edit`)
  const first = await put('talk', `${secret} file`)
  const inside = await put('den', `${secret} file within`)
  const talk = await posted('talk', [first.id, shown.id])
  await posted('talk', [edited.id], { data: JSON.stringify({ schema: 1, supersedes: talk }) })
  const other = await posted('talk', [shown.id])
  const den = await posted('den', [inside.id])
  const tails = join(directory, 'shard-00', 'lost+tail')
  mkdirSync(tails)
  writeFileSync(join(tails, '00000001-1-64.bin'), `${secret} never promised`)
  for (const event_id of [talk, den])
    expect((await client.command(ada, { operation: 'event.redact', event_id, reason: 'x' })).status).toBe(200)
  await vi.waitFor(() => expect(filesWith(directory, secret)).toEqual([`blobs/talk/${shown.sha256}`]), patience)
  expect(await (await fetch(`${board.address}${shown.url}`)).text()).toBe(`${secret} file, shown twice`)
  await client.command(ada, { operation: 'event.redact', event_id: other, reason: 'x' })
  await gone(directory, secret)
  await board.stop()
  const fsck = spawnSync(process.execPath, [program, 'fsck', '--data', directory], { encoding: 'utf8' })
  expect([fsck.stdout.includes('damage'), fsck.status]).toEqual([false, 0])
})

test('killed again and again while texts are being removed, the board loses nothing else and finishes', async () => {
  const directory = boardDirectory()
  const env = { COMPACT_SECONDS: '1', SEGMENT_BYTES: '65536' }
  let board = await startBoard({ directory, env })
  let client = await open(board)
  const kept: string[] = []
  const taken: string[] = []
  for (let n = 0; n < 120; n++) {
    const isSecret = n % 3 === 0
    const { data } = await client.post(ada, {
      room: 'talk',
      text: `${isSecret ? secret : 'stays'} ${n} ${'y'.repeat(500)}`,
    })
    ;(isSecret ? taken : kept).push(data.event_id!)
  }
  for (const id of taken) await client.command(ada, { operation: 'event.redact', event_id: id, reason: 'x' })
  for (let round = 0; round < 3; round++) {
    await new Promise((done) => setTimeout(done, 950 + 40 * round))
    await board.kill()
    board = await startBoard({ directory, env, port: board.port })
    client = await open(board)
  }
  await gone(directory, secret)
  const key = await logKeyOf(client)
  for (const id of kept) expect((await client.get(`/api/events/${id}`)).data.event?.text).toContain('stays')
  for (const id of taken) await prove(client, key, id, false)
  for (const id of kept) await prove(client, key, id, true)
})
