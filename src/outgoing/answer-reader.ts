/**
 * Reads the answer to one request from the bytes of a connection (RFC 9112, client side), and as much of it as a delivery needs:
 * its status, when to come again, whether the connection can be used once more, and the body where the caller wants it.
 *
 * Where an answer ends is taken from the plainest reading alone: one length, or chunks and nothing else. Whatever can be read in
 * two ways, says more than was asked, or has no end of its own costs the connection, which is then not used again.
 */
export type Read =
  | 'more'
  | 'done'
  /** It is no answer of HTTP/1.1. */
  | 'broken'
  /** More than is read of any answer; `status` is its own, where the head was whole. */
  | 'too_large'

const headBytesMax = 32_768
const lineBytesMax = 1_024
const trailersMax = 64
/** For how long a connection waits for its next request, if the other side does not say less. */
const idleMs = 60_000
/** The other side counts from earlier than we do. */
const leewayMs = 1_000

const statusLine = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: .*)?$/

type Phase = 'head' | 'length' | 'until-close' | 'chunk-size' | 'chunk-data' | 'chunk-end' | 'trailers' | 'end'

export class AnswerReader {
  /** 0: no head was read. */
  status = 0
  retryAfter: string | undefined
  /** For how long the connection may be kept for another request, ms; 0 = not at all. */
  keepMs = 0
  readonly #bodyBytesMax: number
  readonly #body: Buffer[] | undefined
  #phase: Phase = 'head'
  /** What came of a head, or of a line between chunks, that is not whole yet. */
  #piece = ''
  #headBytes = 0
  /** Bytes that are still to come of the body, or of a chunk. */
  #missing = 0
  #bodyBytes = 0
  #trailers = 0

  /** `keepsBody`: it will be asked for. */
  constructor(bodyBytesMax: number, keepsBody: boolean) {
    this.#bodyBytesMax = bodyBytesMax
    this.#body = keepsBody ? [] : undefined
  }

  get body(): Buffer {
    return Buffer.concat(this.#body ?? [])
  }

  /** The bytes are looked at now, never later. */
  take(bytes: Buffer): Read {
    let at = 0
    while (this.#phase === 'head') {
      const text = this.#piece + bytes.toString('latin1', at, at + headBytesMax)
      const end = text.indexOf('\r\n\r\n')
      const length = end < 0 ? text.length : end + 4
      if (this.#headBytes + length > headBytesMax) return 'too_large'
      if (end < 0) {
        this.#piece = text
        return 'more'
      }
      at += length - this.#piece.length
      this.#piece = ''
      this.#headBytes += length
      const problem = this.#readHead(text.slice(0, end))
      if (problem !== undefined) return problem
    }
    return this.#readBody(bytes, at)
  }

  /** The other side has said all it will. */
  ended(): Read {
    return this.#phase === 'until-close' ? 'done' : 'broken'
  }

  #readHead(text: string): 'broken' | 'too_large' | undefined {
    const [first = '', ...lines] = text.split('\r\n')
    const found = statusLine.exec(first)
    if (found === null) return 'broken'
    const status = Number(found[2])
    if (status === 101) return 'broken'
    // An interim answer: the real one follows.
    if (status < 200) return undefined
    const fields = readFields(lines)
    if (fields === undefined) return 'broken'
    const { length, coding, isChunked, closes, keeps, keepSeconds, retryAfter } = fields
    this.status = status
    this.retryAfter = retryAfter
    const isKept = found[1] === '1' ? !closes : keeps && !closes
    const isPlain = coding === undefined || (isChunked && length === undefined)
    this.keepMs = isKept && isPlain ? Math.max(0, Math.min(idleMs, keepSeconds * 1_000 - leewayMs)) : 0
    if (status === 204 || status === 304) this.#phase = 'end'
    else if (isChunked) this.#phase = 'chunk-size'
    else if (length !== undefined && coding === undefined) {
      if (length > this.#bodyBytesMax) return 'too_large'
      this.#missing = length
      this.#phase = length === 0 ? 'end' : 'length'
    } else {
      this.keepMs = 0
      this.#phase = 'until-close'
    }
    return undefined
  }

  #readBody(bytes: Buffer, from: number): Read {
    let at = from
    while (this.#phase !== 'end') {
      if (at >= bytes.length) return 'more'
      if (this.#phase === 'length' || this.#phase === 'chunk-data' || this.#phase === 'until-close') {
        const isBounded = this.#phase !== 'until-close'
        const count = isBounded ? Math.min(this.#missing, bytes.length - at) : bytes.length - at
        this.#bodyBytes += count
        if (this.#bodyBytes > this.#bodyBytesMax) return 'too_large'
        this.#body?.push(Buffer.from(bytes.subarray(at, at + count)))
        at += count
        if (isBounded) this.#missing -= count
        if (isBounded && this.#missing === 0) this.#phase = this.#phase === 'length' ? 'end' : 'chunk-end'
        continue
      }
      const end = bytes.indexOf(0x0a, at)
      this.#piece += bytes.toString('latin1', at, end < 0 ? bytes.length : end)
      if (this.#piece.length > lineBytesMax) return 'broken'
      if (end < 0) return 'more'
      at = end + 1
      const line = this.#piece
      this.#piece = ''
      if (!line.endsWith('\r') || !this.#readLine(line.slice(0, -1))) return 'broken'
    }
    // Only one answer was asked for.
    if (at < bytes.length) this.keepMs = 0
    return 'done'
  }

  /** A line between chunks; false: it cannot stand there. */
  #readLine(line: string): boolean {
    if (this.#phase === 'chunk-end') {
      this.#phase = 'chunk-size'
      return line === ''
    }
    if (this.#phase === 'trailers') {
      if (line === '') this.#phase = 'end'
      return ++this.#trailers <= trailersMax
    }
    const size = /^([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?$/.exec(line)?.[1]
    if (size === undefined) return false
    this.#missing = Number.parseInt(size, 16)
    this.#phase = this.#missing === 0 ? 'trailers' : 'chunk-data'
    return true
  }
}

/** Those fields of a head that say where the answer ends and what comes after; undefined: they contradict themselves. */
function readFields(lines: readonly string[]) {
  let length: number | undefined
  let coding: string | undefined
  let closes = false
  let keeps = false
  let keepSeconds = Number.POSITIVE_INFINITY
  let retryAfter: string | undefined
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon <= 0 || line.startsWith(' ') || line.startsWith('\t')) return undefined
    const value = line.slice(colon + 1).trim()
    switch (line.slice(0, colon).toLowerCase()) {
      case 'content-length':
        if (!/^[0-9]{1,15}$/.test(value) || (length !== undefined && length !== Number(value))) return undefined
        length = Number(value)
        break
      case 'transfer-encoding':
        coding = coding === undefined ? value.toLowerCase() : 'several'
        break
      case 'connection':
        closes ||= /\bclose\b/i.test(value)
        keeps ||= /\bkeep-alive\b/i.test(value)
        break
      case 'keep-alive':
        keepSeconds = Number(/\btimeout=([0-9]{1,6})\b/i.exec(value)?.[1] ?? keepSeconds)
        break
      case 'retry-after':
        retryAfter ??= value
        break
    }
  }
  return { length, coding, isChunked: coding === 'chunked', closes, keeps, keepSeconds, retryAfter }
}
