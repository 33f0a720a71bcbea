/** Bodies that are still arriving take a bounded amount of memory, on both engines: a sender of many unfinished ones is told to wait. */
import { expect, test, vi } from 'vitest'
import type { HttpServer } from '../../../src/http/port.ts'
import { describeEngines, type Engine, post, textHeaders } from '../../support/http-engines.ts'
import { patience } from '../../support/patience.ts'
import { RawConnection, type RawOptions, rawRequest } from '../../support/raw-http.ts'

const bodies = { max: 2_000, ofNetworkMax: 1_000, free: 100, trustedProxy: { header: '', hops: 1, from: [] } }
const bodyOf = (bytes: number) => post('/', 'x'.repeat(bytes))

type Served = { readonly port: number; requests: number; readonly aborted: string[] }

async function serving(engine: Engine, use: (served: Served) => Promise<void>): Promise<void> {
  const served = { port: 0, requests: 0, aborted: [] as string[] }
  const server: HttpServer = await engine.start(
    (exchange) => {
      served.requests++
      exchange.onAbort(() => served.aborted.push(exchange.path))
      exchange.readBody(4_000, (result) => exchange.reply(200, textHeaders, String(result.ok && result.body.length)))
    },
    undefined,
    { bodies },
  )
  served.port = await server.listen('127.0.0.1', 0)
  try {
    await use(served)
  } finally {
    await server.close()
  }
}

/** Sends this many bytes of a body of that many, and waits until the handler has the request. */
async function sending(
  served: Served,
  [bytes, of]: readonly [number, number],
  options: RawOptions = {},
): Promise<RawConnection & { readonly rest: string }> {
  const before = served.requests
  const connection = await RawConnection.open(served.port, options)
  const whole = bodyOf(of)
  const end = whole.length - of + bytes
  connection.send(whole.slice(0, end))
  await vi.waitFor(() => expect(served.requests).toBe(before + 1), patience)
  return Object.assign(connection, { rest: whole.slice(end) })
}

async function answered(connection: RawConnection & { readonly rest: string }) {
  connection.send(connection.rest)
  const { status, headers, body } = await connection.answer()
  connection.destroy()
  return { status, retryAfter: headers.get('retry-after'), body: body.toString() }
}

describeEngines((engine) => {
  test('a body that takes more than its network may have is refused with 429, and its handler is told', () =>
    serving(engine, async (served) => {
      const long = await sending(served, [1_500, 2_000])
      expect(await answered(long)).toMatchObject({ status: 429, retryAfter: '1' })
      await vi.waitFor(() => expect(served.aborted).toEqual(['/']), patience)
      expect((await rawRequest(served.port, bodyOf(1_000)))?.body.toString()).toBe('1000')
    }))
})

describeEngines((engine) => {
  test('unfinished bodies of one network share its space, and leave the rest to others', () =>
    serving(engine, async (served) => {
      const first = await sending(served, [700, 1_000])
      expect(await answered(await sending(served, [600, 1_000]))).toMatchObject({ status: 429 })
      const other = await sending(served, [900, 1_000], { localAddress: '127.0.0.2' })
      expect(await answered(await sending(served, [800, 1_000], { localAddress: '127.0.0.3' }))).toMatchObject({
        status: 429,
      })
      // The first bytes of a body take nothing.
      expect(await answered(await sending(served, [50, 100]))).toMatchObject({ body: '100' })
      for (const each of [first, other]) expect(await answered(each)).toMatchObject({ body: '1000' })
      // What was answered, or has disconnected, takes nothing any more.
      const left = await sending(served, [900, 1_000])
      left.destroy()
      const again = async () =>
        expect(await answered(await sending(served, [900, 1_000]))).toMatchObject({ body: '1000' })
      await vi.waitFor(again, patience)
    }))
}, 'alone')
