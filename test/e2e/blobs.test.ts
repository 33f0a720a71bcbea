/** Attachments as readers see them, on both engines: what is accepted, how they are served, and who may read them. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { summaryOf } from '../support/answers.ts'
import { blobOf, filesOf, putFields, sha256 } from '../support/blobs.ts'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, type Fields, person } from '../support/client.ts'
import { patience } from '../support/patience.ts'
import { flipByte } from '../support/scratch.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const [ada, ben, eve] = [person('blob ada'), person('blob ben'), person('blob eve')]
const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), randomBytes(100)])

describe.each(['uws', 'node'])('on %s', (engine) => {
  const directory = boardDirectory()
  let board: Board
  let client: Client

  beforeAll(async () => {
    board = await startBoard({ directory, env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
    await client.command(ada, { operation: 'room.create', room: 'den', visibility: 'private', members: [ben.id] })
    await client.command(ada, { operation: 'room.create', room: 'yard' })
  })
  afterAll(() => client.close())

  const put = async (bytes: Buffer, more: Record<string, string> = {}, who = ada) =>
    blobOf(await client.command(who, putFields(bytes, more)))
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${board.address}${path}`, { headers, method })

  test('a file is stored, read by command, and served at its own path', async () => {
    const bytes = randomBytes(5000)
    const answer = await client.command(
      ada,
      putFields(bytes, { filename: 'a b.bin', media_type: 'application/x-thing' }),
    )
    const blob = blobOf(answer)
    expect(blob).toEqual({
      id: answer.data.receipt!.event_id,
      filename: 'a b.bin',
      media_type: 'application/x-thing',
      size: 5000,
      sha256: sha256(bytes),
      url: `/a/${blob.id}`,
      room: 'lobby',
      author: ada.id,
      created_at: answer.data.receipt!.accepted_at,
    })
    const read = await client.send(JSON.stringify({ operation: 'blob.get', target: blob.id }))
    expect(read.data).toEqual({ blob, data: bytes.toString('base64url') })
    const served = await get(blob.url!)
    expect(served.status).toBe(200)
    expect(Buffer.from(await served.arrayBuffer()).equals(bytes)).toBe(true)
    expect(Object.fromEntries(served.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="a b.bin"; filename*=UTF-8''a%20b.bin`,
      'content-security-policy': "sandbox; default-src 'none'",
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'cross-origin',
      'cache-control': 'public, no-cache',
      'content-length': '5000',
      'accept-ranges': 'bytes',
      etag: `"${blob.sha256}"`,
    })
    expect(filesOf(directory, 'lobby')).toContain(blob.sha256)
  })

  test('without a name and type a file is attachment.bin of bytes; one byte is enough, an empty file is refused', async () => {
    const blob = await put(Buffer.from('x'))
    expect(blob).toMatchObject({ filename: 'attachment.bin', media_type: 'application/octet-stream', size: 1 })
    expect(summaryOf(await client.command(ada, { operation: 'blob.put', data: '' }))).toBe('400 missing_field data')
  })

  test('a file of 1 MiB is accepted and streamed whole; one more byte is refused with both sizes', async () => {
    const bytes = randomBytes(1024 * 1024)
    const blob = await put(bytes)
    const served = Buffer.from(await (await get(blob.url!)).arrayBuffer())
    expect(served.equals(bytes)).toBe(true)
    const lengthOf = (answer: Response) => answer.headers.get('content-length')
    expect(lengthOf(await get(blob.url!, {}, 'HEAD'))).toBe('1048576')
    const part = await get(blob.url!, { range: 'bytes=5-900004' })
    expect([part.status, lengthOf(part)]).toEqual([206, '900000'])
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(5, 900_005))).toBe(true)
    const over = await client.command(ada, putFields(Buffer.concat([bytes, Buffer.from('x')])))
    expect(summaryOf(over)).toBe('400 too_large data')
    expect(over.text).toContain('1048577 bytes, 1048576 are allowed')
    const other = await client.post(ada, { text: 'x', data: 'y'.repeat(65_537) })
    expect(summaryOf(other)).toBe('400 too_large data')
  })

  test.each([
    ['data', 'not base64url', 'A+/A'],
    ['data', 'padded', 'QUE='],
    ['data', 'bits too many in its last character', 'QUF'],
    ['data', 'a length that no bytes have', 'QUFBQ'],
    ['filename', 'a path', 'a/b'],
    ['filename', 'a path of the other kind', 'a\\b'],
    ['filename', 'a line feed', 'a\nb'],
    ['filename', 'a control character of the second kind', 'a\u0085b'],
    ['filename', 'a mark that turns the line', 'gpj.\u202eexe'],
    ['filename', 'a mark that is not seen', 'a\u200bb'],
    ['filename', 'a mark of another script', 'a\u061cb'],
    ['filename', 'a tag', 'a\u{e0041}b'],
    ['filename', 'the directory above', '..'],
    ['media_type', 'no type', 'png'],
    ['media_type', 'a header more', 'text/html\r\nX-Evil: 1'],
    ['media_type', 'two types', 'text/plain, text/html'],
  ])('%s with %s is refused', async (field, _what, value) => {
    const fields: Record<string, string> = { operation: 'blob.put', data: 'QUFB', [field]: value }
    expect(summaryOf(await client.command(ada, fields as Fields))).toBe(`400 invalid_field ${field}`)
  })

  test('a name of 128 bytes is accepted, one of 129 is not, and names in any language come back unchanged', async () => {
    const name = `${'ä'.repeat(60)}.tar.gz!`
    expect(Buffer.byteLength(name)).toBe(128)
    const blob = await put(randomBytes(4), { filename: name })
    expect((await get(blob.url!)).headers.get('content-disposition')).toContain(
      `filename*=UTF-8''${'%C3%A4'.repeat(60)}.tar.gz`,
    )
    expect(summaryOf(await client.command(ada, putFields(randomBytes(4), { filename: `${name}x` })))).toBe(
      '400 too_large filename',
    )
    const odd = await put(randomBytes(4), { filename: `"; filename=evil.html; x="%41'` })
    expect((await get(odd.url!)).headers.get('content-disposition')).toBe(
      `attachment; filename="_; filename=evil.html; x=__41'"; filename*=UTF-8''%22%3B%20filename%3Devil.html%3B%20x%3D%22%2541%27`,
    )
  })

  test.each([
    ['image/png', png, 'image/png', 'inline'],
    ['IMAGE/PNG', png, 'IMAGE/PNG', 'inline'],
    ['image/jpeg', png, 'application/octet-stream', 'attachment'],
    [
      'image/svg+xml',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      'application/octet-stream',
      'attachment',
    ],
    ['text/html', Buffer.from('<script>alert(1)</script>'), 'application/octet-stream', 'attachment'],
    ['text/javascript', Buffer.from('alert(1)'), 'application/octet-stream', 'attachment'],
    ['application/xhtml+xml', Buffer.from('<html/>'), 'application/octet-stream', 'attachment'],
    ['text/plain; charset=utf-8', Buffer.from('plain'), 'text/plain; charset=utf-8', 'attachment'],
  ])('%s is served in a form that cannot do harm', async (media_type, bytes, served, disposition) => {
    const blob = await put(bytes, { media_type })
    expect(blob.media_type).toBe(media_type)
    const { headers } = await get(blob.url!)
    expect(headers.get('content-type')).toBe(served)
    expect(headers.get('content-disposition')).toMatch(new RegExp(`^${disposition};`))
    expect(headers.get('content-security-policy')).toBe("sandbox; default-src 'none'")
  })

  test('any range of bytes is served exactly as RFC 9110 specifies', async () => {
    const bytes = randomBytes(200_000)
    const { url } = await put(bytes)
    const part = async (range: string) => {
      const served = await get(url!, { range })
      const body = Buffer.from(await served.arrayBuffer())
      return { status: served.status, range: served.headers.get('content-range'), body }
    }
    for (const [range, start, end] of [
      ['bytes=0-0', 0, 1],
      ['bytes=0-', 0, 200_000],
      ['bytes=199999-', 199_999, 200_000],
      ['bytes=65535-65537', 65_535, 65_538],
      ['bytes=100000-999999999', 100_000, 200_000],
      ['bytes=-1', 199_999, 200_000],
      ['bytes=-999999999', 0, 200_000],
      ['Bytes= 1-2 ', 1, 3],
    ] as const) {
      const found = await part(range)
      expect({ range, status: found.status, got: found.range }).toEqual({
        range,
        status: 206,
        got: `bytes ${start}-${end - 1}/200000`,
      })
      expect(found.body.equals(bytes.subarray(start, end))).toBe(true)
    }
    for (const range of ['bytes=200000-', 'bytes=200000-200001', 'bytes=-0']) {
      expect(await part(range)).toEqual({ status: 416, range: 'bytes */200000', body: Buffer.alloc(0) })
    }
    for (const range of ['bytes=2-1', 'bytes=', 'bytes=a-b', 'items=0-1', 'bytes=0-1,3-4', 'bytes=-', 'bytes=0-1x']) {
      const found = await part(range)
      expect({ range, status: found.status, length: found.body.length }).toEqual({
        range,
        status: 200,
        length: 200_000,
      })
    }
  })

  test('a conditional request gets 304 for an unchanged file, and a range only of the same bytes', async () => {
    const bytes = randomBytes(1000)
    const { url, sha256: hash } = await put(bytes)
    const statusOf = async (headers: Record<string, string>) => (await get(url!, headers)).status
    expect(await statusOf({ 'if-none-match': `"${hash}"` })).toBe(304)
    expect(await statusOf({ 'if-none-match': `W/"${hash}"` })).toBe(304)
    expect(await statusOf({ 'if-none-match': `"other", "${hash}"`, range: 'bytes=0-1' })).toBe(304)
    expect(await statusOf({ 'if-none-match': '*' })).toBe(304)
    expect(await statusOf({ 'if-none-match': '"other"' })).toBe(200)
    expect(await statusOf({ range: 'bytes=0-1', 'if-range': `"${hash}"` })).toBe(206)
    expect(await statusOf({ range: 'bytes=0-1', 'if-range': `W/"${hash}"` })).toBe(200)
    expect(await statusOf({ range: 'bytes=0-1', 'if-range': 'Sat, 21 Nov 2026 07:00:00 GMT' })).toBe(200)
    const head = await get(url!, { range: 'bytes=0-1' }, 'HEAD')
    expect([head.status, head.headers.get('etag'), (await head.arrayBuffer()).byteLength]).toEqual([
      200,
      `"${hash}"`,
      0,
    ])
  })

  test('an id that names no attachment and unsupported methods are refused', async () => {
    expect(summaryOf(await client.get(`/a/${'0'.repeat(32)}`))).toBe('400 not_found id')
    expect(summaryOf(await client.get('/a/lobby'))).toBe('400 invalid_field id')
    expect(summaryOf(await client.get(`/a/${'0'.repeat(32)}?download=1`))).toBe('400 unknown_field')
    expect((await get(`/a/${'0'.repeat(32)}`, {}, 'POST')).status).toBe(405)
    expect((await get(`/a/${'0'.repeat(32)}`, {}, 'OPTIONS')).status).toBe(200)
    expect(summaryOf(await client.command(ada, putFields(png, { room: 'nowhere' })))).toBe('400 not_found room')
    expect(filesOf(directory, 'nowhere')).toEqual([])
  })

  test('a file that is missing or unreadable fails only the read of that file', async () => {
    const missing = await put(randomBytes(70))
    const bytes = randomBytes(71)
    const broken = await put(bytes)
    for (const { sha256: hash } of [missing, broken]) rmSync(join(directory, 'blobs', 'lobby', hash!))
    mkdirSync(join(directory, 'blobs', 'lobby', broken.sha256!))
    expect(summaryOf(await client.get(missing.url!))).toBe('500 internal')
    expect(summaryOf(await client.send(JSON.stringify({ operation: 'blob.get', target: missing.id })))).toBe(
      '500 internal',
    )
    expect(summaryOf(await client.get(broken.url!))).toBe('500 internal')
    expect(summaryOf(await client.command(ben, putFields(bytes)))).toBe('500 internal')
    expect((await client.get('/time')).status).toBe(200)
    const logged = () => board.lines.filter((line) => line.includes(missing.sha256!))
    await vi.waitFor(() => expect(logged()).toHaveLength(2), patience)
    rmSync(join(directory, 'blobs', 'lobby', broken.sha256!), { recursive: true })
    expect((await client.command(ben, putFields(bytes))).status).toBe(200)
  })

  test('a file whose bytes were changed is not served, and is repaired when somebody uploads it again', async () => {
    const bytes = randomBytes(70_000)
    const blob = await put(bytes)
    const file = join(directory, 'blobs', 'lobby', blob.sha256!)
    flipByte(file, 69_000)
    const read = JSON.stringify({ operation: 'blob.get', target: blob.id })
    expect([summaryOf(await client.get(blob.url!)), summaryOf(await client.send(read))]).toEqual([
      '500 internal',
      '500 internal',
    ])
    expect((await get(blob.url!, { range: 'bytes=0-9' })).status).toBe(500)
    const named = () => board.lines.filter((line) => line.includes(`${blob.sha256!} is damaged at byte 0`)).length
    await expect.poll(named, patience).toBe(3)
    await put(bytes)
    expect(Buffer.from(await (await get(blob.url!)).arrayBuffer())).toEqual(bytes)
    expect(summaryOf(await client.send(read))).toBe('200 ok')
  })

  test('a private file is read only by members, with a signed command', async () => {
    const bytes = randomBytes(3000)
    const answer = await client.command(ben, putFields(bytes, { room: 'den', filename: 'canary.bin' }))
    const blob = blobOf(answer)
    expect(blob).not.toHaveProperty('url')
    expect(answer.data.receipt).not.toHaveProperty('tree_size')
    const target = { operation: 'blob.get', target: blob.id }
    expect((await client.command(ada, target)).data).toMatchObject({ data: bytes.toString('base64url') })
    expect(summaryOf(await client.command(eve, target))).toBe('403 private_room target')
    expect(summaryOf(await client.send(JSON.stringify(target)))).toBe('403 private_room target')
    expect(summaryOf(await client.get(`/a/${blob.id}`))).toBe('400 not_found id')
    expect(summaryOf(await client.command(eve, putFields(bytes, { room: 'den' })))).toBe('403 private_room room')
    expect(summaryOf(await client.command(eve, { operation: 'blob.delete', target: blob.id }))).toBe(
      '400 not_found target',
    )
    expect(filesOf(directory, 'den')).toEqual([blob.sha256])
    // The same bytes in another room are another file, so that one room reveals nothing about the files of another.
    await put(bytes, { room: 'yard' }, eve)
    expect(filesOf(directory, 'yard')).toEqual([blob.sha256])
  })

  test('a refused command leaves no file behind', async () => {
    const before = filesOf(directory, 'den')
    for (let n = 0; n < 5; n++) await client.command(eve, putFields(randomBytes(1000), { room: 'den' }))
    expect(filesOf(directory, 'den')).toEqual(before)
  })

  test('a file is deleted by its uploader or a moderator of its room, and is then gone from every read and from the disk', async () => {
    const bytes = randomBytes(2000)
    const first = await put(bytes, { room: 'yard' }, eve)
    const twin = await put(bytes, { room: 'yard', filename: 'twin' }, ben)
    const remove = (who: typeof ada, target: string, reason = '') =>
      client.command(who, { operation: 'blob.delete', target, ...(reason === '' ? {} : { reason }) })
    expect(summaryOf(await remove(ben, first.id))).toBe('403 forbidden target')
    const gone = await remove(eve, first.id, 'wrong one')
    expect((gone.data as { blob?: unknown }).blob).toEqual({ id: first.id, gone: 'deleted', reason: 'wrong one' })
    const twice = await remove(eve, first.id)
    expect([summaryOf(twice), twice.text]).toEqual([
      '400 not_found target',
      expect.stringContaining('is already deleted'),
    ])
    const read = await client.get(`/a/${first.id}`)
    expect(summaryOf(read)).toBe('400 not_found id')
    expect(read.text).toContain('it was deleted: wrong one')
    expect(summaryOf(await client.command(eve, { operation: 'blob.get', target: first.id }))).toBe(
      '400 not_found target',
    )
    expect(Buffer.from(await (await get(twin.url!)).arrayBuffer()).equals(bytes)).toBe(true)
    expect(summaryOf(await remove(ada, twin.id))).toBe('200 ok')
    expect(filesOf(directory, 'yard')).not.toContain(first.sha256)
    const { entries } = (await client.get('/api/modlog?room=yard')).data as unknown as { entries: object[] }
    expect(entries[0]).toMatchObject({ action: 'blob.delete', actor: { id: ada.id }, target: twin.id })
    expect(JSON.stringify(entries)).not.toContain(first.id)
    await client.command(ada, { operation: 'room.moderator.add', room: 'yard', target: ben.id })
    const owners = await put(randomBytes(10), { room: 'yard' })
    expect(summaryOf(await remove(ben, owners.id))).toBe('403 forbidden target')
    await client.command(ada, { operation: 'room.moderator.remove', room: 'yard', target: ben.id })
    const again = await put(bytes, { room: 'yard' }, eve)
    expect((await get(again.url!)).status).toBe(200)
  })

  test('a repeated command has no second effect, even after its file was deleted', async () => {
    const bytes = randomBytes(1500)
    const signed = client.sign(eve, putFields(bytes, { room: 'yard', request_id: `r-${engine}` }))
    const answers = await Promise.all([client.send(signed.body), client.send(signed.body), client.send(signed.body)])
    const [first] = answers.map(blobOf)
    expect(answers.map(blobOf)).toEqual([first, first, first])
    expect(answers.filter(({ data }) => data.receipt?.duplicate === true).length).toBe(2)
    const other = client.sign(eve, putFields(bytes, { room: 'yard', request_id: `r-${engine}` }))
    expect(blobOf(await client.send(other.body))).toEqual(first)
    const changed = await client.command(eve, putFields(randomBytes(1500), { room: 'yard', request_id: `r-${engine}` }))
    expect(summaryOf(changed)).toBe('400 request_id_reused request_id')
    expect(filesOf(directory, 'yard')).toContain(first!.sha256)
    await client.command(eve, { operation: 'blob.delete', target: first!.id })
    const late = await client.send(signed.body)
    expect([blobOf(late), late.data.receipt?.duplicate]).toEqual([first, true])
    expect(filesOf(directory, 'yard')).not.toContain(first!.sha256)
    expect(summaryOf(await client.get(first!.url!))).toBe('400 not_found id')
  })
})
