/**
 * Answers whose bytes stay the same while the board runs: made at the first request for them, packed once, known by a tag.
 */
import { promisify } from 'node:util'
import { gzip as gzipCallback } from 'node:zlib'
import { etagOf, isHeld } from './answers.ts'
import type { Exchange, Header, RouteHandler } from './port.ts'
import { takesGzip } from './wire.ts'

const gzip = promisify(gzipCallback)

/** Below this a packed answer is not worth its headers. */
const packedBytesMin = 1_024
/** Types that shrink; pictures and fonts are packed already. */
const shrinks = /^(?:text\/|application\/json|image\/svg\+xml)/

type Form = { readonly body: Buffer; readonly headers: readonly Header[]; readonly etag: string }
type Made = { readonly plain: Form; readonly packed: Promise<Form> | undefined }

/** `headers`: all but the tag, the coding and Vary. */
export function fixedAnswer(headers: readonly Header[], render: () => Buffer | string): RouteHandler {
  let made: Made | undefined
  return (exchange) => {
    made ??= make(Buffer.from(render()), headers)
    const { plain, packed } = made
    if (packed === undefined || !takesGzip(exchange.header('accept-encoding'))) return send(exchange, plain)
    packed.then(
      (form) => send(exchange, form),
      () => send(exchange, plain),
    )
  }
}

function make(body: Buffer, headers: readonly Header[]): Made {
  const etag = etagOf(body)
  const isText = headers.some(([name, value]) => name === 'content-type' && shrinks.test(value))
  if (!isText || body.length < packedBytesMin) return { plain: { body, headers, etag }, packed: undefined }
  const varied: readonly Header[] = [...headers, ['vary', 'accept-encoding']]
  // Not on the main thread: the longest of them takes it 15 ms.
  const packed = gzip(body, { level: 9 }).then(
    (bytes): Form => ({
      body: bytes,
      headers: [...varied, ['content-encoding', 'gzip']],
      etag: etag.replace(/"$/, '-gzip"'),
    }),
  )
  return { plain: { body, headers: varied, etag }, packed }
}

function send(exchange: Exchange, { body, headers, etag }: Form): void {
  if (exchange.ended) return
  const tagged: readonly Header[] = [...headers, ['etag', etag]]
  if (isHeld(exchange, etag)) exchange.reply(304, tagged, '')
  else exchange.reply(200, tagged, body)
}
