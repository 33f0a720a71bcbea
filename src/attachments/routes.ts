/**
 * GET /a/{blob id}: the file of a public attachment, streamed from the disk as fast as the reader accepts it, after checking that its bytes
 * match its name.
 *
 * Strangers uploaded these bytes, so no browser may treat them as a page of this board. They are always a download, except for an image
 * whose first bytes match its type; never sniffed; sandboxed without scripts; and of a type that runs nothing. The bytes of an id never
 * change. Public files only: those of private rooms are read by signed `blob.get`.
 */

import { createHash } from 'node:crypto'
import { internalLimits, rates } from '../../actors/kernel/limits.ts'
import { refusal } from '../../actors/kernel/refusals.ts'
import { type BlobFiles, blobDamage } from '../../storage/blob-files.ts'
import type { ReadHandle } from '../../storage/disk.ts'
import type { Actors, NoAnswer } from '../command/ports.ts'
import { readReply } from '../command/reply.ts'
import type { refused } from '../format/reply.ts'
import { logFault } from '../http/engine.ts'
import type { ByteStream, Exchange, Header, RouteHandler } from '../http/port.ts'
import type { Replies } from '../http/replies.ts'
import { fromYou, Places } from '../rates/places.ts'
import type { Throttle } from '../rates/throttle.ts'
import { dataOf, type ReadAnswer } from '../reads/read.ts'
import type { BlobFile } from './reads.ts'

type BlobRouteOptions = {
  /** The feed is queried, which only knows public data. */
  readonly actors: Pick<Actors, 'read'>
  readonly files: BlobFiles
  readonly throttle: Throttle
  /** SHA-256 of files that no room may serve. */
  readonly takenDown: ReadonlySet<string>
  readonly addressOf: (exchange: Exchange) => string
  readonly replies: Replies
}

const busy = refusal('overloaded', 'too many attachments are being read at once: try again', undefined, 1)

const tooMany = refusal(
  'rate_limited',
  `${rates.downloads_per_address} attachment downloads are in progress ${fromYou}: wait for one to finish`,
  undefined,
  1,
)

/** Bytes read ahead of a reader. */
const pieceBytes = 65_536

export function blobRoute(options: BlobRouteOptions): RouteHandler {
  const { throttle } = options
  const each = rates.downloads_per_address
  const places = new Places({
    limit: 'downloads_per_address',
    each,
    max: internalLimits.blobDownloadsMax,
    keeper: throttle,
  })
  return (exchange, target) => {
    const send = (found: Parameters<typeof refused>[0]) => options.replies.refuse(exchange, found)
    const address = options.addressOf(exchange)
    const tooManyReads = throttle.count('reads', { address })
    if (tooManyReads !== undefined) return send(tooManyReads)
    if (exchange.query !== '') return send(refusal('unknown_field', '/a/{id} takes no parameters'))
    if (!/^[0-9a-f]{32}$/.test(target))
      return send(refusal('invalid_field', 'id must be a blob id of 32 lowercase hex characters', 'id'))
    const leave = places.take({ address })
    if (typeof leave === 'string') return send(leave === 'board' ? busy : tooMany)
    options.actors.read({ op: 'blob.file', args: { target }, reader: '' }, (answer) => {
      answered(options, exchange, answer)
        .catch((error: unknown) => {
          const message = `the file of this blob cannot be read: an internal error of this board, logged as ${logFault(error)}`
          send(refusal('internal', message))
        })
        .finally(leave)
    })
  }
}

/** Resolves when the last byte has been sent, or never will be. */
async function answered(
  { replies, files, takenDown }: BlobRouteOptions,
  exchange: Exchange,
  answer: ReadAnswer<BlobFile> | NoAnswer,
): Promise<void> {
  if (exchange.ended) return
  if (answer === undefined) return replies.send(exchange, readReply(answer))
  // The command's field is this path's id.
  if (!answer.ok) {
    const found = 'refusal' in answer ? answer.refusal : answer.absent
    return replies.refuse(exchange, { ...found, field: 'id' })
  }
  const file = dataOf(answer)
  if (takenDown.has(file.sha256))
    return replies.refuse(exchange, refusal('not_found', 'an operator took this file down: it is not served', 'id'))
  const etag = `"${file.sha256}"`
  const headers = headersOf(file, etag)
  if (matches(exchange.header('if-none-match'), etag)) return exchange.reply(304, headers, '')
  const part = partOf(exchange, file.size, etag)
  if (part === 'outside') return exchange.reply(416, [...headers, ['content-range', `bytes */${file.size}`]], '')
  await serve(files, exchange, file, { headers, part })
}

function headersOf(file: BlobFile, etag: string): Header[] {
  return [
    ['content-type', servedType(file)],
    ['content-disposition', contentDisposition(file.is_image ? 'inline' : 'attachment', file.filename)],
    ['content-security-policy', "sandbox; default-src 'none'"],
    ['x-content-type-options', 'nosniff'],
    // Anyone can read them in other ways, so other sites may show them; their pages learn nothing from it.
    ['cross-origin-resource-policy', 'cross-origin'],
    ['access-control-allow-origin', '*'],
    ['access-control-expose-headers', 'Content-Disposition, Content-Range, ETag, Date'],
    // The bytes never change, but they may be deleted, so a cached copy must be revalidated before use.
    ['cache-control', 'public, no-cache'],
    ['accept-ranges', 'bytes'],
    ['etag', etag],
  ]
}

/** The requested part; undefined for all. A range applies only to GET, and with If-Range only to these exact bytes. */
function partOf(exchange: Exchange, size: number, etag: string): ByteRange | 'outside' | undefined {
  if (exchange.method !== 'GET') return undefined
  const condition = exchange.header('if-range')
  if (condition !== undefined && condition.trim() !== etag) return undefined
  return rangeOf(exchange.header('range'), size)
}

/** If-None-Match compares weakly (RFC 9110, 13.1.2). */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  return header.split(',').some((each) => each.trim() === '*' || each.trim().replace(/^W\//, '') === etag)
}

async function serve(
  files: BlobFiles,
  exchange: Exchange,
  file: BlobFile,
  { headers, part }: { headers: readonly Header[]; part: ByteRange | undefined },
): Promise<void> {
  const opened = await files.open(file.room, file.sha256)
  if (opened === undefined) throw new Error(`the file ${file.sha256} of room ${file.room} is missing`)
  const isSound = await hasName(opened, file.sha256).catch(async (error: unknown) => {
    await opened.close()
    throw error
  })
  if (!isSound || exchange.ended) await opened.close()
  if (!isSound) throw blobDamage(file)
  if (exchange.ended) return
  const { start, end } = part ?? { start: 0, end: file.size }
  const range: Header[] = part === undefined ? [] : [['content-range', `bytes ${start}-${end - 1}/${file.size}`]]
  const stream = exchange.stream(part === undefined ? 200 : 206, [...headers, ...range], end - start)
  await pump(opened, stream, { start, end })
}

/** Reads a whole file; returns whether its bytes have this SHA-256. */
async function hasName(file: ReadHandle, sha256: string): Promise<boolean> {
  const sum = createHash('sha256')
  const piece = Buffer.allocUnsafe(pieceBytes)
  for (let at = 0; ; ) {
    const count = await file.read(piece, at)
    if (count === 0) return sum.digest('hex') === sha256
    sum.update(piece.subarray(0, count))
    at += count
  }
}

/** Reads a piece, sends it, and waits for room. If reading fails, the stream ends before its full length. */
async function pump(file: ReadHandle, stream: ByteStream, { start, end }: ByteRange): Promise<void> {
  let isOver = false
  let resume = (): void => {}
  stream.onDrain(() => resume())
  stream.onClose(() => {
    isOver = true
    resume()
  })
  try {
    for (let at = start; at < end && !isOver; ) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, end - at))
      const count = await file.read(piece, at)
      if (count === 0) return stream.close()
      at += count
      if (!stream.write(piece.subarray(0, count)) && !isOver)
        await new Promise<void>((go) => {
          resume = go
        })
    }
    stream.end()
  } catch (error) {
    stream.close()
    throw error
  } finally {
    await file.close()
  }
}

/** Removes files that no record names: those of commands in progress when the process ended, and of redacted posts. */
export async function sweepBlobs(
  files: BlobFiles,
  /** Queries the shard of a room for the files it needs. */
  needed: (room: string, answer: (answer: ReadAnswer<readonly string[]> | NoAnswer) => void) => void,
): Promise<void> {
  for (const room of files.rooms()) {
    const answer = await new Promise<ReadAnswer<readonly string[]> | NoAnswer>((done) => needed(room, done))
    if (answer?.ok === true) files.sweep(room, new Set(dataOf(answer)))
  }
}

/** Bytes start..end-1. */
type ByteRange = { readonly start: number; readonly end: number }

/**
 * Types that contain no script and that no plugin displays. All others are served as a download of bytes; the true type is in the blob's
 * record.
 */
const harmless =
  /^(text\/plain|text\/markdown|text\/csv|application\/json|application\/pdf|application\/zip|application\/gzip|audio\/[a-z0-9.+-]+|video\/[a-z0-9.+-]+)(;|$)/i

function servedType(file: { readonly media_type: string; readonly is_image: boolean }): string {
  return file.is_image || harmless.test(file.media_type) ? file.media_type : 'application/octet-stream'
}

/** RFC 6266: the name in ASCII for old clients, and the full name in UTF-8 (RFC 8187). */
function contentDisposition(kind: 'inline' | 'attachment', filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, '_')
  const whole = encodeURIComponent(filename).replace(
    /['()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `${kind}; filename="${plain}"; filename*=UTF-8''${whole}`
}

/**
 * The single part that a Range header requests (RFC 9110, 14). Undefined to serve everything, as for a header that is not a byte range or
 * names several parts. 'outside' if the file has nothing in that range.
 */
function rangeOf(header: string | undefined, size: number): ByteRange | 'outside' | undefined {
  const found = header === undefined ? null : /^bytes=[ \t]*(?:(\d+)-(\d*)|-(\d+))[ \t]*$/i.exec(header)
  if (found === null) return undefined
  const [, first, last, suffix] = found
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size)
    return length === 0 ? 'outside' : { start: size - length, end: size }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'outside'
  return { start, end: last === '' ? size : Math.min(Number(last) + 1, size) }
}
