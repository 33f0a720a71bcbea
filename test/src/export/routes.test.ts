/** Exports: what a stop waits for, and who gets them as gzip. */
import { expect, test } from 'vitest'
import type { ExportChunk } from '../../../src/export/chunk.ts'
import { Exports } from '../../../src/export/routes.ts'
import type { ByteStream, Exchange } from '../../../src/http/port.ts'
import { takesGzip } from '../../../src/http/wire.ts'

/** A reader's connection, controlled by the test. */
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

test.each([undefined, 'gzip'])('a stop waits for an export with %s while its reader reads', async (encoding) => {
  let now = 10_000
  const chunk = { ok: true, bytes: Buffer.from('{}\n'), state: {} } as unknown as ExportChunk
  const exports = new Exports({
    now: () => now,
    // The rest of it never arrives.
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

test('chunks are made in turns: a long export does not keep others from starting', () => {
  const asked: { state: unknown; answer: (chunk: ExportChunk | undefined) => void }[] = []
  const exports = new Exports({
    now: () => 0,
    next: ({ state }, answer) => void asked.push({ state, answer }),
    rooms: { may: () => {} },
    refuse: () => {},
  })
  const more = { ok: true, bytes: Buffer.alloc(0), state: {} } as unknown as ExportChunk
  for (let count = 0; count < 6; count++) exports.handle(reader().exchange)
  for (let turn = 0; turn < 4; turn++) asked[turn]!.answer(more)
  expect(asked.map(({ state }) => state !== undefined)).toEqual([false, false, false, false, false, false, true, true])
})

test('reads wait for the chunks of at most four exports, and nothing is made for readers that have left', () => {
  const asked: ((chunk: ExportChunk | undefined) => void)[] = []
  const exports = new Exports({
    now: () => 0,
    next: (_request, answer) => void asked.push(answer),
    rooms: { may: () => {} },
    refuse: () => {},
  })
  const readers = Array.from({ length: 100 }, () => reader())
  for (const { exchange } of readers) exports.handle(exchange)
  expect(asked).toHaveLength(4)
  const last = { ok: true, bytes: Buffer.from('{}\n') } as unknown as ExportChunk
  asked[0]!(last)
  expect(asked).toHaveLength(5)
  // All but the last reader hang up.
  for (const { exchange } of readers.slice(0, -1)) Object.assign(exchange, { ended: true })
  for (const answer of asked.slice(1, 5)) answer(last)
  expect(asked).toHaveLength(6)
  asked[5]!(last)
  expect(asked).toHaveLength(6)
})

/** An export to a reader that takes one chunk at a time: what was requested, what the reader got, and how it takes more. */
function slowExport() {
  const asked: ((chunk: ExportChunk | undefined) => void)[] = []
  const told: string[] = []
  const drains: (() => void)[] = []
  const exports = new Exports({
    now: () => 0,
    next: (_request, answer) => void asked.push(answer),
    rooms: { may: () => {} },
    refuse: () => {},
  })
  const { stream, exchange } = reader()
  Object.assign(stream, {
    write: (bytes: Buffer) => {
      told.push(bytes.toString())
      return false
    },
    onDrain: (callback: () => void) => drains.push(callback),
    end: () => told.push('end'),
    close: () => told.push('cut'),
  })
  exports.handle(exchange)
  const chunk = (text: string, more: object = { state: {} }) =>
    ({ ok: true, bytes: Buffer.from(text), ...more }) as ExportChunk
  asked[0]!(chunk('one'))
  return { asked, told, chunk, drained: () => drains[0]!() }
}

test('while a reader takes a chunk the next one is made, and at most that one waits', () => {
  const { asked, told, chunk, drained } = slowExport()
  expect([told, asked.length]).toEqual([['one'], 2])
  asked[1]!(chunk('two'))
  expect([told, asked.length]).toEqual([['one'], 2])
  drained()
  expect([told, asked.length]).toEqual([['one', 'two'], 3])
  drained()
  asked[2]!(chunk('three', {}))
  expect([told, asked.length]).toEqual([['one', 'two', 'three', 'end'], 3])
})

test('if a chunk cannot be made, the reader gets everything made before, and then the connection is cut', () => {
  const { asked, told, drained } = slowExport()
  asked[1]!(undefined)
  expect(told).toEqual(['one'])
  drained()
  expect(told).toEqual(['one', 'cut'])
})

test('gzip goes to clients that accept it, and never to those that refuse it', () => {
  for (const accepted of ['gzip', 'deflate, GZIP', 'br;q=1, gzip ; q=0.5', 'gzip;q=0.001', 'gzip;q=1.0'])
    expect([accepted, takesGzip(accepted)]).toEqual([accepted, true])
  for (const refused of [undefined, '', 'gzip;q=0', 'identity, gzip; Q=0.000', 'x-gzip', 'deflate', 'gzip-2'])
    expect([refused, takesGzip(refused)]).toEqual([refused, false])
})
