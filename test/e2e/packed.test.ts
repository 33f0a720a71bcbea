/** Large responses are compressed for clients that accept gzip, with a separate ETag, and unchanged for everybody else. */
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { type RawAnswer, RawConnection } from '../support/raw-http.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

describe.each(['uws', 'node'])('on %s', (engine) => {
  let board: Board
  let paths: string[]

  beforeAll(async () => {
    board = await startBoard({ directory: boardDirectory(), env: { HTTP_ENGINE: engine } })
    const home = await (await fetch(board.address)).text()
    const script = /src="(\/assets\/page\.[^"]+)"/.exec(home)![1]!
    paths = ['/capabilities', '/openapi.json', '/for-agents', '/docs/broadside.mjs', '/embed/v1.js', script]
  })
  afterAll(() => board.stop())

  async function ask(path: string, headers = '', method: 'GET' | 'HEAD' = 'GET'): Promise<RawAnswer> {
    const connection = await RawConnection.open(board.port)
    connection.send(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n`)
    const answer = await connection.answer(method === 'HEAD' ? 'head' : 'body')
    connection.destroy()
    return answer
  }
  const packing = 'Accept-Encoding: br, gzip\r\n'

  test('a compressed text decompresses to the original, is far smaller, and has a Vary header', async () => {
    for (const path of paths) {
      const [plain, packed] = [await ask(path), await ask(path, packing)]
      expect([path, packed.headers.get('content-encoding'), packed.headers.get('vary')]).toEqual([
        path,
        'gzip',
        'accept-encoding',
      ])
      expect([path, plain.headers.get('content-encoding'), plain.headers.get('vary')]).toEqual([
        path,
        undefined,
        'accept-encoding',
      ])
      expect(gunzipSync(packed.body).equals(plain.body), path).toBe(true)
      expect(packed.body.length, path).toBeLessThan(plain.body.length * 0.6)
      expect(packed.headers.get('content-type')).toBe(plain.headers.get('content-type'))
    }
  })

  test('each form has its own ETag, is not resent to a client that has it, and stays the same', async () => {
    for (const path of paths) {
      const [plain, packed] = [await ask(path), await ask(path, packing)]
      const [tag, packedTag] = [plain, packed].map(({ headers }) => headers.get('etag')!) as [string, string]
      expect(packedTag).not.toBe(tag)
      const held = await ask(path, `${packing}If-None-Match: ${packedTag}\r\n`)
      expect([held.status, held.headers.get('etag'), held.headers.get('vary')]).toEqual([
        304,
        packedTag,
        'accept-encoding',
      ])
      expect((await ask(path, `If-None-Match: ${tag}\r\n`)).status).toBe(304)
      expect((await ask(path, packing)).body.equals(packed.body)).toBe(true)
    }
  })

  test('HEAD reports the length that GET would send, and gzip with weight 0 is not accepted', async () => {
    for (const path of paths) {
      const packed = await ask(path, packing)
      const head = await ask(path, packing, 'HEAD')
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(packed.body.length)])
      expect(head.headers.get('content-encoding')).toBe('gzip')
      expect((await ask(path, 'Accept-Encoding: gzip;q=0\r\n')).headers.get('content-encoding')).toBeUndefined()
    }
  })

  test('short responses are not compressed', async () => {
    const { headers } = await ask('/robots.txt', packing)
    expect([headers.get('content-encoding'), headers.get('vary')]).toEqual([undefined, undefined])
  })
})
