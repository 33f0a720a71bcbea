import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { main } from '../../src/cli/main.ts'
import { openCheckpoint } from '../../storage/checkpoint.ts'
import { HASH_BYTES, leafHash, nodeHash } from '../../storage/merkle.ts'
import { verifyConsistency } from '../../storage/merkle-verify.ts'
import { parseVkey, type VerifierKey } from '../../storage/note.ts'
import { parseProofFile, verifyProofFile } from '../../storage/proof-file.ts'
import { formatTilePath, newTiles, TILE_WIDTH } from '../../storage/tile-path.ts'
import { capturedTerminal } from '../src/cli/captured-terminal.ts'
import { boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { scratchDirectory } from '../support/scratch.ts'
import { readVector, vectors } from '../support/vectors.ts'
import { welcomeAuthor, welcomeLeaves } from '../support/welcome-author.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
/** More entries than a tile holds, so that there is a level 1. */
const posts = 300

describe.each(['uws', 'node'])('the log under its own prefix, on the %s engine', (engine) => {
  let client: Client
  let prefix: string
  let key: VerifierKey
  const ids: string[] = []

  const fetched = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${client.address}${path}`, { headers })
    return { status: answer.status, headers: answer.headers, body: Buffer.from(await answer.arrayBuffer()) }
  }
  const head = async () => {
    const { body } = await fetched(`${prefix}checkpoint`)
    const opened = openCheckpoint(body.toString(), key)
    if (!opened.ok) throw new Error(opened.problem)
    return opened.value
  }

  /** The status line for a path exactly as written: fetch would normalize it. */
  const rawStatus = (path: string): Promise<string> =>
    new Promise((done, fail) => {
      const { hostname, port } = new URL(client.address)
      const socket = connect(Number(port), hostname, () =>
        socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`),
      )
      let text = ''
      socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
      socket.on('error', fail)
      socket.on('close', () => done(text.split('\r\n')[0]!.replace(/^HTTP\/1.1 /, '')))
    })

  beforeAll(async () => {
    const board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    client = await Client.of(board)
    const pinned = parseVkey((await fetched('/log/vkey')).body.toString().trim())
    if (!pinned.ok) throw new Error(pinned.problem)
    key = pinned.value
    prefix = `/${key.name.slice(key.name.indexOf('/') + 1)}/`
    await welcomeAuthor(client, ada)
    for (let n = welcomeLeaves; n < posts; n++) {
      const made = await client.post(ada, { room: 'tiles', text: `entry ${n}` })
      ids[n] = made.data.event_id!
    }
  })
  afterAll(() => client.close())

  test('its checkpoint is signed by the pinned key and covers every acknowledged post', async () => {
    const { headers } = await fetched(`${prefix}checkpoint`)
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect((await head()).size).toBe(posts)
    expect((await fetched('/log/policy')).body.toString()).toContain(
      `log ${(await fetched('/log/vkey')).body.toString().trim()} ${client.address}${prefix.slice(0, -1)}\nquorum none\n`,
    )
  })

  test('the tiles and bundles of the checkpoint give its root and every entry, and nothing beyond', async () => {
    const { size, root } = await head()
    const tiles = new Map<string, Buffer>()
    for (const tile of newTiles(0, size)) {
      const { status, headers, body } = await fetched(`${prefix}${formatTilePath(tile)}`)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toBe('application/octet-stream')
      expect(headers.get('cache-control')).toContain('immutable')
      expect(body).toHaveLength(tile.width * HASH_BYTES)
      tiles.set(`${tile.level}/${tile.index}`, body)
    }
    const leaves: Buffer[] = []
    for (let index = 0; index * TILE_WIDTH < size; index++) {
      const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH)
      const path = `${prefix}${formatTilePath({ kind: 'entries', level: 0, index, width })}`
      const bundle = (await fetched(path)).body
      for (let at = 0, n = 0; at < bundle.length; n++) {
        const next = at + 2 + bundle.readUInt16BE(at)
        const hash = leafHash(bundle.subarray(at + 2, next))
        expect(tiles.get(`0/${index}`)!.subarray(n * HASH_BYTES, (n + 1) * HASH_BYTES)).toEqual(hash)
        leaves.push(hash)
        at = next
      }
    }
    expect(rootOf(Buffer.concat(leaves))).toEqual(Buffer.from(root))
    expect(tiles.get('1/0')).toEqual(rootOf(tiles.get('0/0')!))
    for (const beyond of [
      'tile/0/001.p/45',
      'tile/0/001',
      'tile/0/002',
      'tile/1/000.p/2',
      'tile/2/000.p/1',
      'tile/entries/001.p/45',
      'tile/63/x999/x999/x999/x999/x999/999',
    ])
      expect((await fetched(`${prefix}${beyond}`)).status, beyond).toBe(404)
    for (const wrong of [
      'tile/0/0',
      'tile/0/000.p/256',
      'tile/0/000.p/0',
      'tile/64/000',
      'tile/0/%30%30%30',
      'tile/0/000?a=1',
      'tile',
      '',
    ])
      expect((await fetched(`${prefix}${wrong}`)).status, wrong).toBe(404)
  })

  test.skipIf(vectors.isAbsent)(
    `every path that must not be served is answered 404, for hashes and entries${vectors.note}`,
    async () => {
      const { parse_error_level_path: wrong } = JSON.parse(readVector('tlog/tile-paths.json')) as {
        parse_error_level_path: [level: string, path: string][]
      }
      const size = (await head()).size
      const paths = wrong.flatMap(([level, path]) => [`tile/${level}/${path}`, `tile/entries/${path}`])
      const ownForms = [
        '000.p/1/',
        '000.p/01',
        '0000',
        'x000/000',
        '%30%30%30',
        '000.P/1',
        '+00',
        '000.p/256',
        '000.p/0',
      ]
      for (const path of [
        ...paths,
        ...ownForms.flatMap((each) => [`tile/0/${each}`, `tile/entries/${each}`]),
        'tile/00/000',
        'TILE/0/000',
        'checkpoint/',
        'checkpoint.txt',
      ])
        expect((await rawStatus(`${prefix}${path}`)).startsWith('404'), path).toBe(true)
      expect((await head()).size).toBe(size)
    },
  )

  test('the partial tiles and bundles of every size ever published are available, and are prefixes of the full ones', async () => {
    const whole = (await fetched(`${prefix}tile/0/000`)).body
    const bundle = (await fetched(`${prefix}tile/entries/000`)).body
    let bytes = 0
    for (let width = 1; width < TILE_WIDTH; width++) {
      const tile = await fetched(`${prefix}tile/0/000.p/${width}`)
      expect(tile.body.equals(whole.subarray(0, width * HASH_BYTES)), `tile of ${width}`).toBe(true)
      bytes += 2 + bundle.readUInt16BE(bytes)
      if (width % 16 !== 0 && width < 250) continue
      const part = await fetched(`${prefix}tile/entries/000.p/${width}`)
      expect(part.body.equals(bundle.subarray(0, bytes)), `bundle of ${width}`).toBe(true)
      expect(part.headers.get('cache-control')).toContain('immutable')
    }
  })

  test('the checkpoint may be cached briefly, a tile forever', async () => {
    const age = async (path: string) => (await fetched(`${prefix}${path}`)).headers.get('cache-control')
    expect(await age('checkpoint')).toBe('public, max-age=1')
    for (const path of ['tile/0/000', 'tile/1/000.p/1', 'tile/entries/001.p/3'])
      expect(await age(path)).toBe('public, max-age=31536000, immutable')
    expect((await fetched(`${prefix}tile/0/009`)).headers.get('cache-control')).toBe('no-store')
  })

  test('a partial tile of any published size is a prefix of the full one, also by HEAD and gzip', async () => {
    const full = (await fetched(`${prefix}tile/0/000`)).body
    for (const width of [1, 17, 255]) {
      const { body } = await fetched(`${prefix}tile/0/000.p/${width}`)
      expect(body).toEqual(full.subarray(0, width * HASH_BYTES))
    }
    const plain = await fetched(`${prefix}tile/entries/000`, { 'accept-encoding': 'identity' })
    // fetch decompresses automatically: the tests' client gets the raw answer.
    const packed = await fetch(`${client.address}${prefix}tile/entries/000`, { headers: { 'accept-encoding': 'gzip' } })
    expect(packed.headers.get('content-encoding')).toBe('gzip')
    expect(Buffer.from(await packed.arrayBuffer())).toEqual(plain.body)
    expect(() => gunzipSync(plain.body)).toThrow()
    const onlyHead = await fetch(`${client.address}${prefix}tile/0/000`, { method: 'HEAD' })
    expect(onlyHead.status).toBe(200)
    expect(onlyHead.headers.get('content-length')).toBe(String(TILE_WIDTH * HASH_BYTES))
  })

  test('a proof is available as a self-contained file', async () => {
    const { status, headers, body } = await fetched(`/api/log/proof?message=${ids[7]}&format=tlog-proof`)
    expect(status).toBe(200)
    expect(headers.get('content-disposition')).toBe(`attachment; filename="${ids[7]}.tlog-proof"`)
    const file = parseProofFile(body)
    if (!file.ok) throw new Error(file.problem)
    const { entries } = (await client.get('/api/log/leaves?start=7&end=8')).data as { entries: string[] }
    const entry = Buffer.from(entries[0]!, 'base64')
    expect(entry.toString()).toContain(`event ${ids[7]}\n`)
    expect(verifyProofFile(file.value, leafHash(entry), key).ok).toBe(true)
    // The entry is inside: the file and the log's key suffice.
    expect(Buffer.from(file.value.extra ?? [])).toEqual(entry)
    const saved = join(scratchDirectory(), 'saved.tlog-proof')
    writeFileSync(saved, body)
    const vkey = (await fetched('/log/vkey')).body.toString().trim()
    const terminal = capturedTerminal()
    expect([await main(['verify', saved, '--vkey', vkey], terminal), terminal.said.err]).toEqual([0, ''])
    expect(terminal.said.out).toContain(ids[7])
    const inside = await client.command(ada, {
      operation: 'log.proof',
      event_id: ids[7]!,
      data: '{"schema":1,"format":"tlog-proof"}',
    })
    expect((inside.data as { proof_file: string }).proof_file).toBe(body.toString())
  })

  test('any two sizes are proved consistent with each other', async () => {
    const tile = (await fetched(`${prefix}tile/0/000`)).body
    for (const [from, to] of [
      [1, 2],
      [3, 256],
      [7, 7],
      [128, 255],
    ] as const) {
      const answer = await client.get(`/api/log/consistency?from=${from}&to=${to}`)
      const { consistency_path } = answer.data as { consistency_path: string[] }
      const path = consistency_path.map((hash) => Buffer.from(hash, 'hex'))
      expect(verifyConsistency(from, to, path, rootOf(tile, from), rootOf(tile, to))).toBe(true)
    }
  })

  test('a proof that cannot exist is refused with the field and the rule', async () => {
    for (const [path, code, field] of [
      ['/api/log/consistency?from=9&to=3', 'invalid_field', 'from'],
      [`/api/log/consistency?from=1&to=${posts + 1}`, 'not_found', 'to'],
      ['/api/log/consistency?from=0&to=3', 'invalid_field', 'from'],
      ['/api/log/consistency?from=1', 'missing_field', 'to'],
      ['/api/log/leaves?start=0&end=257', 'invalid_field', 'end'],
      ['/api/log/leaves?start=5&end=5', 'invalid_field', 'end'],
      [`/api/log/leaves?start=${posts}&end=${posts + 1}`, 'not_found', 'start'],
      [`/api/log/proof?message=${'0'.repeat(32)}`, 'not_found', 'message'],
      [`/api/log/proof?message=${ids[7]}&format=pem`, 'invalid_field', 'format'],
    ] as const) {
      const answer = await client.get(path)
      expect([answer.status, answer.code, answer.field], path).toEqual([400, code, field])
    }
  })
})

/** Root of the first `width` leaf hashes, by the definition of RFC 9162 2.1.1. */
function rootOf(leaves: Buffer, width = leaves.length / HASH_BYTES): Buffer {
  if (width === 1) return Buffer.from(leaves.subarray(0, HASH_BYTES))
  const half = 2 ** Math.ceil(Math.log2(width) - 1)
  return nodeHash(rootOf(leaves, half), rootOf(leaves.subarray(half * HASH_BYTES), width - half))
}
