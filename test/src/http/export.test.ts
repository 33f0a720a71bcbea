/** What a stop waits for: exports whose readers take them, and no others. */
import { expect, test } from 'vitest'
import { Exports } from '../../../src/http/export.ts'
import type { ByteStream, Exchange } from '../../../src/http/port.ts'
import type { ExportChunk } from '../../../src/views/export-pages.ts'

/** A reader's connection, and what the test does to it. */
function reader(acceptEncoding?: string) {
  const callbacks: (() => void)[] = []
  const closed = () => {
    for (const each of callbacks) each()
  }
  const stream = {
    write: () => false,
    onDrain: () => {},
    onClose: (callback: () => void) => void callbacks.push(callback),
    end: closed,
    close: closed,
    blockedSince: undefined as number | undefined,
  } satisfies ByteStream
  const exchange = { query: '', ended: false, header: () => acceptEncoding, stream: () => stream }
  return { stream, exchange: exchange as unknown as Exchange }
}

test.each([undefined, 'gzip'])('an export with %s is waited for while its reader takes it', async (encoding) => {
  let now = 10_000
  const chunk = { ok: true, bytes: Buffer.from('{}\n'), state: {} } as unknown as ExportChunk
  const exports = new Exports({
    now: () => now,
    // The rest of it never comes.
    next: ({ state }, answer) => state ?? answer(chunk),
    rooms: { may: () => {} },
    refuse: () => {},
  })
  const [taking, stalled] = [reader(encoding), reader(encoding)]
  for (const { exchange } of [taking, stalled]) exports.handle(exchange)
  stalled.stream.blockedSince = now
  expect(exports.moving).toBe(2)
  now += 2_000
  expect(exports.moving).toBe(1)
  stalled.stream.blockedSince = undefined
  expect(exports.moving).toBe(2)
  taking.stream.end()
  expect(exports.moving).toBe(1)
  stalled.stream.close()
  expect(exports.moving).toBe(0)
})
