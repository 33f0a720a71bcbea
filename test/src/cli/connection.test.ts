import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AnswerReader, type WholeAnswer } from '../../../src/cli/answer-reader.ts'
import { BoardClient } from '../../../src/cli/client.ts'
import { Connection, parseEndpoint } from '../../../src/cli/connection.ts'
import { inertLine, inertText } from '../../../src/cli/terminal.ts'

const answer = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Next: a\r\n\r\nhello')

const chunked = Buffer.from(
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nX-Next: a\r\n\r\n2\r\nhe\r\n003;x="y"\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n',
)

/** Parses the bytes in pieces of this size. */
function read(bytes: Buffer, pieceBytes: number): WholeAnswer | undefined {
  const reader = new AnswerReader(100)
  let found: WholeAnswer | undefined
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    expect(found).toBeUndefined()
    found = reader.take(bytes.subarray(at, at + pieceBytes))
  }
  return found
}

test.each([
  ['of a stated length', answer],
  ['in chunks', chunked],
])('an answer %s is complete at its last byte and not before, however it is split', (_how, bytes) => {
  for (let size = 0; size < bytes.length; size += 1) expect(read(bytes.subarray(0, size), bytes.length)).toBeUndefined()
  for (let size = 1; size <= bytes.length; size += 1) {
    const { answer: found } = read(bytes, size)!
    expect([found.status, found.body.toString(), found.header('x-next')]).toEqual([200, 'hello', 'a'])
  }
})

test.each([
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n', 'Transfer-Encoding'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n', 'both'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ng\r\n', 'no size'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n', 'no size'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n', 'at most 100'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n', 'no size'],
  [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${'32\r\n'}${'x'.repeat(50)}\r\n33\r\n`, 'at most 100'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n', 'longer than its stated size'],
  ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx', 'bytes follow'],
  [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0;${'x'.repeat(300)}`, 'has no line ending'],
  [`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${'X: y\r\n'.repeat(400_000)}`, 'too many'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 2\r\n\r\nab', 'two different'],
  ['HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na', 'no Content-Length'],
  ['HTTP/1.1 200 OK\r\n\r\n', 'no Content-Length'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n', 'at most 100'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab', 'bytes follow'],
  ['HTTP/1.1 100 Continue\r\n\r\n', 'status line'],
  ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', 'status line'],
  [`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}`, 'head is longer'],
])('%j is refused', (text, reason) => {
  expect(() => new AnswerReader(100).take(Buffer.from(text))).toThrow(reason)
})

async function listen(serve: (socket: Socket) => void) {
  const server = createServer(serve)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

test('an answer may be split anywhere', async () => {
  const { url, close } = await listen((socket) => {
    socket.on('data', () => {
      socket.setNoDelay(true)
      for (const byte of answer) socket.write(Buffer.of(byte))
    })
  })
  const connection = new Connection({ endpoint: parseEndpoint(url), timeoutMs: 60_000, bodyBytesMax: 100 })
  for (let n = 0; n < 3; n += 1) {
    expect((await connection.request({ method: 'GET', target: '/' })).body.toString()).toBe('hello')
  }
  connection.close()
  close()
})

test('a request whose keep-alive connection was closed is sent once more; a board that always closes is unreachable', async () => {
  let closing = 1
  let requests = 0
  const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{"ok":true,"data":{}}'
  const { url, close } = await listen((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', () => {
      requests += 1
      closing -= 1
      if (closing >= 0) socket.destroy()
      else socket.write(ok)
    })
  })
  const client = new BoardClient({ url })
  expect(await client.read('/x')).toEqual({})
  expect(requests).toBe(2)
  closing = 2
  await expect(client.read('/x')).rejects.toThrow('No board answers')
  closing = 0
  expect(await client.read('/x')).toEqual({})
  client.close()
  close()
})

test.each([
  ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi', 'not JSON'],
  ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}', 'envelope'],
])('an answer that is not a board’s (%j) is reported in a sentence with the address', async (text, reason) => {
  const { url, close } = await listen((socket) => void socket.on('data', () => socket.write(text)))
  const client = new BoardClient({ url })
  await expect(client.read('/x')).rejects.toThrow(`${url} does not answer like a board`)
  await expect(client.read('/x')).rejects.toThrow(reason)
  client.close()
  close()
})

test('no text of a stranger reaches the terminal as a control, format or bidi character', () => {
  const sharp = fc.string({
    unit: fc.constantFrom(
      '\x1b',
      '\x9b',
      '\r',
      '\b',
      '\u202e',
      '\u2066',
      '\u200b',
      '\ufeff',
      '\u2028',
      'a',
      '\n',
      '\t',
    ),
  })
  fc.assert(
    fc.property(fc.oneof(sharp, fc.string({ unit: 'binary' })), (text) => {
      expect(inertText(text)).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
      expect(inertLine(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    }),
  )
  expect(inertText('plain text, é 🌍\n')).toBe('plain text, é 🌍\n')
  expect(inertLine('\x1b]0;x\x07')).toBe('\\u{1b}]0;x\\u{7}')
})
