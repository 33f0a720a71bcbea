/** The lifetime of attachments: with the posts that name them, over restarts and kills, on the disk, and within a quota. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { summaryOf } from '../support/answers.ts'
import { type BlobJson, blobOf, filesOf, putFields, sha256 } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type Answer, Client, person } from '../support/client.ts'
import { filesUnder } from '../support/files-under.ts'
import { program } from '../support/program.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const [ada, ben, eve] = [person('blob ada'), person('blob ben'), person('blob eve')]

describe('posts with files', () => {
  const directory = boardDirectory()
  const env = { SHARDS: '2' }
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({ directory, env })
    client = await Client.of(board)
    await client.command(ada, { operation: 'room.create', room: 'gallery' })
    await client.command(ada, { operation: 'room.create', room: 'vault', visibility: 'private', members: [ben.id] })
  })
  afterAll(() => client.close())

  const put = async (room: string, bytes = randomBytes(500), who = ada) =>
    blobOf(await client.command(who, putFields(bytes, { room, filename: 'x.bin' })))
  const post = (room: string, attachments: readonly string[]) => client.post(ada, { room, text: 'look', attachments })
  const attachmentsOf = ({ data }: Answer) =>
    (data.event as { attachments?: readonly BlobJson[] } | undefined)?.attachments

  test('a post shows the files that it names, in its order, on every read', async () => {
    const blobs = [await put('gallery'), await put('gallery')]
    const shown = blobs.map(({ id, filename, media_type, size, sha256, url }) => ({
      ...{ id, filename, media_type, size, sha256, url },
    }))
    const answer = await post('gallery', [blobs[0]!.id, blobs[1]!.id])
    expect(attachmentsOf(answer)).toEqual(shown)
    const read = await client.get(`/api/events/${answer.data.event_id}`)
    expect(attachmentsOf(read)).toEqual(shown)
    expect(read.data.event!.signed_payload).toContain(`"attachments":["${blobs[0]!.id}","${blobs[1]!.id}"]`)
  })

  test('a post may name only existing files of the same room, each once', async () => {
    const blob = await put('gallery')
    const secret = await put('vault')
    expect(summaryOf(await post('gallery', [blob.id, blob.id]))).toBe('400 invalid_field attachments')
    expect(summaryOf(await post('lobby', [blob.id]))).toBe('400 not_found attachments')
    expect(summaryOf(await post('gallery', [secret.id]))).toBe('400 not_found attachments')
    expect(summaryOf(await post('gallery', ['0'.repeat(32)]))).toBe('400 not_found attachments')
    expect(summaryOf(await post('gallery', Array(9).fill(blob.id)))).toBe('400 invalid_field attachments')
    const named = await post('gallery', [blob.id])
    await client.command(ada, { operation: 'blob.delete', target: blob.id, reason: 'old' })
    expect(summaryOf(await post('gallery', [blob.id]))).toBe('400 not_found attachments')
    const { id, size, sha256 } = blob
    expect(attachmentsOf(await client.get(`/api/events/${named.data.event_id}`))).toEqual([
      { id, size, sha256, gone: 'deleted', reason: 'old' },
    ])
  })

  test('in a private room a file has no path, and members can read it', async () => {
    const blob = await put('vault')
    const answer = await post('vault', [blob.id])
    const read = await client.command(ben, { operation: 'event.get', event_id: answer.data.event_id! })
    expect(attachmentsOf(read)).toEqual([
      { id: blob.id, filename: 'x.bin', media_type: 'application/octet-stream', size: 500, sha256: blob.sha256 },
    ])
  })

  test('a file goes with the last post that shows it: hidden and back when hidden, gone from the disk when redacted', async () => {
    const blob = await put('gallery')
    const served = async () => summaryOf(await client.get(`/a/${blob.id}`))
    expect(await served()).toBe('200 ok')
    const [one, two] = [await post('gallery', [blob.id]), await post('gallery', [blob.id])]
    const act = (operation: string, event: Answer) =>
      client.command(ada, { operation, event_id: event.data.event_id!, reason: 'because' })
    expect(summaryOf(await act('room.hide', one))).toBe('200 ok')
    expect(await served()).toBe('200 ok')
    expect(summaryOf(await act('room.hide', two))).toBe('200 ok')
    expect(await served()).toBe('400 not_found id')
    expect(summaryOf(await client.command(ada, { operation: 'blob.get', target: blob.id }))).toBe(
      '400 not_found target',
    )
    expect(summaryOf(await post('gallery', [blob.id]))).toBe('400 not_found attachments')
    expect(summaryOf(await act('room.restore', two))).toBe('200 ok')
    expect(await served()).toBe('200 ok')
    expect(summaryOf(await act('event.redact', one))).toBe('200 ok')
    expect(summaryOf(await act('event.redact', two))).toBe('200 ok')
    expect(await served()).toBe('400 not_found id')
    const kept = await put('gallery')
    const first = await post('gallery', [kept.id])
    const data = JSON.stringify({ schema: 1, supersedes: first.data.event_id })
    const version = { room: 'gallery', text: 'look again', attachments: [kept.id], data }
    expect(summaryOf(await client.post(ada, version))).toBe('200 ok')
    expect(summaryOf(await act('event.redact', first))).toBe('200 ok')
    await board.stop()
    board = await startBoard({ directory, env })
    client.close()
    client = await Client.of(board)
    expect(await served()).toBe('400 not_found id')
    for (const { sha256 } of [blob, kept]) expect(filesOf(directory, 'gallery')).not.toContain(sha256)
    await board.stop()
    expect(spawnSync(process.execPath, [program, 'fsck', '--data', directory], { encoding: 'utf8' })).toMatchObject({
      stdout: expect.stringContaining('Everything agrees.'),
      status: 0,
    })
  })
})

describe('what is retained', () => {
  const directory = boardDirectory()
  const env = { SHARDS: '2' }
  const rooms = ['lobby', 'cellar', 'hall']
  let board: Board
  let client: Client
  const start = async () => {
    board = await startBoard({ directory, env })
    client = await Client.of(board)
  }

  /** Every blob as its members read it, and who may. */
  async function readAll(ids: readonly string[]): Promise<string[]> {
    const found: string[] = []
    for (const target of ids) {
      for (const who of [ada, ben, eve]) found.push((await client.command(who, { operation: 'blob.get', target })).text)
      found.push((await client.get(`/a/${target}`)).text)
    }
    return found
  }

  beforeAll(start)
  afterAll(() => client.close())

  test('attachments are unchanged after a restart from snapshots, a replay and a kill, and retries are still recognized', async () => {
    await client.command(ada, { operation: 'room.create', room: 'cellar', visibility: 'private', members: [ben.id] })
    await client.command(ada, { operation: 'room.create', room: 'hall' })
    const bodies: string[] = []
    const ids: string[] = []
    for (const room of rooms) {
      for (const who of [ada, ben]) {
        const signed = client.sign(who, putFields(randomBytes(300), { room, request_id: `${room}${who.id}` }))
        bodies.push(signed.body)
        ids.push(blobOf(await client.send(signed.body)).id)
        await client.post(who, { room, text: 'see', attachments: [signed.eventId] })
      }
      const deleted = blobOf(await client.command(ben, putFields(randomBytes(300), { room })))
      await client.command(ben, { operation: 'blob.delete', target: deleted.id, reason: 'no' })
      ids.push(deleted.id)
    }
    const before = await readAll(ids)
    const files = rooms.map((room) => filesOf(directory, room))
    expect(files.map(({ length }) => length)).toEqual([2, 2, 2])
    const check = async () => {
      expect(await readAll(ids)).toEqual(before)
      expect(rooms.map((room) => filesOf(directory, room))).toEqual(files)
      for (const body of bodies) {
        const again = await client.send(body)
        expect(again.data.receipt).toMatchObject({ duplicate: true, event_id: blobOf(again).id })
        expect(ids).toContain(blobOf(again).id)
      }
    }
    await check()
    await board.stop()
    client.close()
    await start()
    await check()
    await board.stop()
    client.close()
    for (const shard of ['shard-00', 'shard-01']) rmSync(join(directory, shard, 'snapshots'), { recursive: true })
    rmSync(join(directory, 'log', 'feed-snapshots'), { recursive: true })
    await start()
    await check()
    await board.kill()
    client.close()
    await start()
    await check()
  })

  test('the journal does not contain the bytes', async () => {
    const bytes = randomBytes(300_000)
    const blob = blobOf(await client.command(ada, putFields(bytes)))
    const text = bytes.toString('base64url')
    for (const [name, file] of filesUnder(directory)) {
      expect(file.includes(text.slice(100_000, 100_100))).toBe(false)
      expect(file.includes(bytes.subarray(100_000, 100_100))).toBe(basename(name) === blob.sha256)
    }
  })

  test('files that a crash left without a record are removed, and nothing else', async () => {
    const needed = filesOf(directory, 'lobby')
    await board.kill()
    client.close()
    for (const room of ['lobby', 'never-made']) {
      mkdirSync(join(directory, 'blobs', room), { recursive: true })
      for (const name of [sha256(randomBytes(3)), `${needed[0]}.0123456789abcdef.tmp`])
        writeFileSync(join(directory, 'blobs', room, name), 'orphan')
    }
    await start()
    expect(filesOf(directory, 'lobby')).toEqual(needed)
    expect(filesOf(directory, 'never-made')).toEqual([])
  })

  test('killed amid many uploads, the board serves every acknowledged file, and has no file without a record', async () => {
    for (let round = 0; round < 4; round++) {
      const acknowledged: { readonly id: string; readonly bytes: Buffer }[] = []
      const sent = new Set<string>()
      const write = async () => {
        for (;;) {
          const bytes = randomBytes(20_000)
          sent.add(sha256(bytes))
          const answer = await client.command(ada, putFields(bytes)).catch(() => undefined)
          if (answer === undefined) return
          acknowledged.push({ id: blobOf(answer).id, bytes })
          if (acknowledged.length >= 10 + round * 7) board.signal('SIGKILL')
        }
      }
      await Promise.all([write(), write(), write(), write()])
      await board.ended
      client.close()
      await start()
      for (const { id, bytes } of acknowledged) {
        const served = await fetch(`${board.address}/a/${id}`)
        expect(Buffer.from(await served.arrayBuffer()).equals(bytes)).toBe(true)
      }
      const kept = filesOf(directory, 'lobby').filter((name) => sent.has(name))
      expect(kept.length).toBeGreaterThanOrEqual(acknowledged.length)
      expect(filesOf(directory, 'lobby').every((name) => /^[0-9a-f]{64}$/.test(name))).toBe(true)
    }
  })

  test('fsck reads every file, and reports damaged and missing ones', async () => {
    const [good, bad, missing] = await Promise.all(
      [0, 1, 2].map(async () => blobOf(await client.command(ada, putFields(randomBytes(100), { room: 'hall' })))),
    )
    await client.post(ada, { text: 'a public record behind them all' })
    await board.stop()
    client.close()
    const fsck = () =>
      spawnSync(process.execPath, [program, 'fsck', '--data', directory, '--signatures'], { encoding: 'utf8' })
    expect(fsck().status).toBe(0)
    const path = join(directory, 'blobs', 'hall')
    writeFileSync(join(path, bad!.sha256!), 'other bytes')
    rmSync(join(path, missing!.sha256!))
    const found = fsck()
    expect(found.status).toBe(3)
    expect(found.stdout).toContain(`hall/${bad!.sha256} has other content`)
    expect(found.stdout).toContain(`hall/${missing!.sha256} is missing`)
    expect(found.stdout).not.toContain(good!.sha256)
    await start()
  })
})

test('an identity has a quota of bytes for files; deleting frees it, and a retry is never refused for it', async () => {
  const directory = boardDirectory()
  const env = { BROADSIDE_LIMITS: 'on', BLOB_BYTES_PER_IDENTITY: '10000', SHARDS: '2' }
  const board = await startBoard({ directory, env })
  const client = await Client.of(board)
  const { limits } = (await client.get('/capabilities')).data as { limits?: Record<string, number> }
  expect(limits).toMatchObject({ blob_bytes: 1_048_576, blob_bytes_per_identity: 10_000 })
  await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private' })
  const first = client.sign(ada, putFields(randomBytes(4000)))
  const blob = blobOf(await client.send(first.body))
  blobOf(await client.command(ada, putFields(randomBytes(4000), { room: 'den' })))
  const over = await client.command(ada, putFields(randomBytes(4000)))
  expect(summaryOf(over)).toBe('429 quota_exhausted')
  expect(Number(over.headers['retry-after'])).toBeGreaterThan(0)
  expect(filesOf(directory, 'lobby')).toEqual([blob.sha256])
  expect((await client.send(first.body)).data.receipt).toMatchObject({ duplicate: true })
  expect(summaryOf(await client.command(ben, putFields(randomBytes(4000))))).toBe('200 ok')
  await client.command(ada, { operation: 'blob.delete', target: blob.id })
  const three = [1, 2, 3].map(() => client.sign(ada, putFields(randomBytes(3000))).body)
  const together = await Promise.all(three.map((body) => client.send(body)))
  // Uploads in flight may be counted twice for a moment: a refused client retries when they have arrived.
  for (const [n, body] of three.entries())
    if (summaryOf(together[n]!) !== '200 ok') together[n] = await client.send(body)
  expect(together.map(summaryOf).sort()).toEqual(['200 ok', '200 ok', '429 quota_exhausted'])
  client.close()
})
