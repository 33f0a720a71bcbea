/** Where an answer ends: however its bytes come in, and whatever a server says about it. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AnswerReader } from '../../../src/outgoing/answer-reader.ts'

type Told = { text: string; end?: boolean; bodyMax?: number }

/** Reads the text in the pieces that the cuts make of it. */
function read({ text, end = false, bodyMax = 16_384 }: Told, cuts: readonly number[] = []) {
  const reader = new AnswerReader(bodyMax, true)
  const bytes = Buffer.from(text, 'latin1')
  const places = [...new Set([...cuts.map((cut) => cut % bytes.length), bytes.length])].sort((a, b) => a - b)
  let from = 0
  let last: string = 'more'
  for (const place of places) {
    if (place === from) continue
    last = reader.take(bytes.subarray(from, place))
    from = place
    if (last !== 'more') break
  }
  if (last === 'more' && end) last = reader.ended()
  const { status, keepMs, retryAfter } = reader
  // A rest that comes in a piece of its own is met by a connection that has nothing under way.
  return { last, status, isKept: keepMs > 0 && from === bytes.length, retryAfter, body: reader.body.toString('latin1') }
}

const fine: readonly (readonly [what: string, told: Told, body: string, isKept: boolean])[] = [
  ['a length', { text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello' }, 'hello', true],
  ['no body', { text: 'HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n' }, '', true],
  ['no reason', { text: 'HTTP/1.1 202\r\ncontent-length:0\r\n\r\n' }, '', true],
  [
    'the same length twice',
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nok' },
    'ok',
    true,
  ],
  [
    'chunks',
    { text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n' },
    'abc0123456789',
    true,
  ],
  [
    'trailers',
    { text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX: y\r\nZ: 1\r\n\r\n' },
    'a',
    true,
  ],
  [
    'an interim answer',
    {
      text: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx',
    },
    'x',
    true,
  ],
  ['an end of the connection', { text: 'HTTP/1.1 200 OK\r\n\r\nall there is', end: true }, 'all there is', false],
  ['an old protocol', { text: 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok' }, 'ok', false],
  [
    'an old protocol that keeps',
    { text: 'HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok' },
    'ok',
    true,
  ],
  ['close', { text: 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok' }, 'ok', false],
  ['a second left', { text: 'HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok' }, 'ok', false],
  [
    'more than was asked',
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n' },
    'ok',
    false,
  ],
  [
    'chunks and a length',
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n' },
    'a',
    false,
  ],
  [
    'another coding',
    { text: 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: gzip\r\n\r\nabc', end: true },
    'abc',
    false,
  ],
]

test.each(fine)('ends by %s', (_what, told, body, isKept) => {
  expect(read(told)).toMatchObject({ last: 'done', body, isKept })
})

test('ends at the same place in whatever pieces it comes', () => {
  fc.assert(
    fc.property(fc.constantFrom(...fine), fc.array(fc.nat(), { maxLength: 6 }), ([, told, body, isKept], cuts) => {
      expect(read(told, cuts)).toMatchObject({ last: 'done', body, isKept })
    }),
    { numRuns: 500 },
  )
  for (const [, told, body] of fine)
    for (let cut = 1; cut < told.text.length; cut++) expect(read(told, [cut])).toMatchObject({ last: 'done', body })
})

test.each([
  ['220 mail.example ready\r\n\r\n'],
  ['HTTP/2 200 OK\r\n\r\n'],
  ['HTTP/1.1 20 OK\r\n\r\n'],
  ['HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n folded\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nno field\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n'],
  [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(2_000)}\r\n`],
  [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(100)}\r\n`],
  ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n'],
  ['HTTP/1.1 200 OK\r\nContent-'],
])('is none: %j', (text) => {
  expect(read({ text, end: true }).last).toBe('broken')
})

test.each([
  ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(40_000)}`, 0],
  ['interim answers without end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(2_000), 0],
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n', 200],
  ['chunks', 'HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n', 201],
  ['a body without end', 'HTTP/1.1 500 No\r\n\r\n', 500],
])('is read so far and no further: %s', (_what, text, status) => {
  expect(read({ text: text + 'x'.repeat(100), bodyMax: 99 }, [text.length])).toMatchObject({
    last: 'too_large',
    status,
  })
})

test('says when to come again', () => {
  const text = 'HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n'
  expect(read({ text })).toMatchObject({ status: 429, retryAfter: '7', isKept: true })
})
