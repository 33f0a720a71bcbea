/**
 * Parses one HTTP/1.1 answer from the pieces in which it arrives: a head, then a body of a stated length or in chunks (RFC 9112, 6 and
 * 7.1); a proxy may turn the former into the latter. Every byte is examined once. Bodies that end with the connection, interim answers
 * (1xx), and bytes after an answer are errors.
 */

/** An answer's head is about a dozen short lines; a longer one is not from a board. */
const headBytesMax = 16 * 1024
/** The line with the size of a chunk: digits, and extensions that no server sends. */
const lineMax = 256
/** Total length of the lines between chunks: without a bound, a body in one-byte chunks would take minutes. */
const framingBytesMax = 1024 * 1024
const headEnd = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')

export type HttpAnswer = { readonly status: number; header(name: string): string | undefined; readonly body: Buffer }

export type WholeAnswer = { readonly answer: HttpAnswer; readonly closes: boolean }

type Head = Pick<HttpAnswer, 'status' | 'header'>

const statusLine = /^HTTP\/1\.1 ([2-5]\d\d) ?[^\r\n]*(?=\r\n|$)/

export class AnswerReader {
  readonly #bodyBytesMax: number
  /** Bytes that have arrived and are not parsed yet. */
  #unread: Buffer = Buffer.alloc(0)
  #head: Head | undefined
  /** Its first `#bodyBytes` bytes are the body so far: chunks may be as small as one byte. */
  #body: Buffer = Buffer.alloc(0)
  #bodyBytes = 0
  /** Bytes of the body or chunk that are still missing; undefined if a line comes next. */
  #due: number | undefined
  #isChunked = false
  /** What the next line is: the end of a chunk's data, a chunk size, or a trailer. */
  #line: 'end of data' | 'size' | 'trailer' = 'size'
  #framingBytes = 0

  constructor(bodyBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax
  }

  /** The answer, if these bytes complete it. Throws an Error with a sentence if the input can never become an acceptable answer. */
  take(bytes: Buffer): WholeAnswer | undefined {
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes])
    if (this.#head === undefined && !this.#readHead()) return undefined
    const isWhole = this.#isChunked ? this.#readChunks() : this.#readData()
    if (!isWhole) return undefined
    if (this.#unread.length > 0) throw new Error('bytes follow the answer')
    const head = this.#head!
    const closes = head.header('connection')?.toLowerCase() === 'close'
    return { answer: { ...head, body: this.#body.subarray(0, this.#bodyBytes) }, closes }
  }

  #readHead(): boolean {
    const end = this.#unread.subarray(0, headBytesMax).indexOf(headEnd)
    if (end < 0) {
      if (this.#unread.length >= headBytesMax) throw new Error(`the answer's head is longer than ${headBytesMax} bytes`)
      return false
    }
    const head = this.#unread.toString('latin1', 0, end)
    const status = statusLine.exec(head)?.[1]
    if (status === undefined) throw new Error('the answer does not begin with an HTTP/1.1 status line')
    const header = (name: string): string | undefined => headerOf(head, name)
    this.#head = { status: Number(status), header }
    this.#unread = this.#unread.subarray(end + headEnd.length)
    const length = header('content-length')
    const encoding = header('transfer-encoding')
    if (encoding !== undefined) {
      if (encoding.toLowerCase() !== 'chunked') throw new Error(`the answer has the Transfer-Encoding "${encoding}"`)
      // Two framings let one answer be read as two.
      if (length !== undefined) throw new Error('the answer has both a Content-Length and chunks')
      this.#isChunked = true
    } else if (length !== undefined && /^\d{1,15}$/.test(length)) {
      this.#expect(Number(length))
    } else {
      throw new Error('the answer has no Content-Length')
    }
    return true
  }

  #expect(bytes: number): void {
    const all = this.#bodyBytes + bytes
    if (all > this.#bodyBytesMax)
      throw new Error(`the answer is ${all} bytes; at most ${this.#bodyBytesMax} are accepted here`)
    this.#due = bytes
  }

  /** Returns true once all expected bytes have arrived. */
  #readData(): boolean {
    const data = this.#unread.subarray(0, this.#due)
    this.#unread = this.#unread.subarray(data.length)
    this.#due! -= data.length
    this.#keep(data)
    return this.#due === 0
  }

  #keep(data: Buffer): void {
    const bytes = this.#bodyBytes + data.length
    if (bytes > this.#body.length) {
      const larger = Buffer.allocUnsafe(Math.max(bytes, 2 * this.#body.length))
      this.#body.copy(larger, 0, 0, this.#bodyBytes)
      this.#body = larger
    }
    data.copy(this.#body, this.#bodyBytes)
    this.#bodyBytes = bytes
  }

  #readChunks(): boolean {
    for (;;) {
      if (this.#due !== undefined) {
        if (!this.#readData()) return false
        this.#due = undefined
        this.#line = 'end of data'
      }
      const line = this.#readLine()
      if (line === undefined) return false
      if (this.#line === 'trailer') {
        if (line === '') return true
      } else if (this.#line === 'end of data') {
        if (line !== '') throw new Error('a chunk of the answer is longer than its stated size')
        this.#line = 'size'
      } else {
        const size = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/.exec(line)?.[1]
        if (size === undefined) throw new Error('a chunk of the answer has no size')
        const bytes = Number.parseInt(size, 16)
        if (bytes === 0) this.#line = 'trailer'
        else this.#expect(bytes)
      }
    }
  }

  #readLine(): string | undefined {
    const end = this.#unread.subarray(0, lineMax).indexOf(lineEnd)
    if (end < 0) {
      if (this.#unread.length >= lineMax) throw new Error('a chunk line of the answer has no line ending')
      return undefined
    }
    const line = this.#unread.toString('latin1', 0, end)
    this.#unread = this.#unread.subarray(end + lineEnd.length)
    this.#framingBytes += line.length + lineEnd.length
    if (this.#framingBytes > framingBytesMax) throw new Error('the answer has too many chunks')
    return line
  }
}

// Compiled once: a new RegExp for each header would be a tenth of the cost of a request.
const headerPatterns = new Map<string, RegExp>()

/** The only value of a header. Throws if it occurs twice with different values. */
function headerOf(head: string, name: string): string | undefined {
  let pattern = headerPatterns.get(name)
  if (pattern === undefined) {
    pattern = new RegExp(`\\r\\n${name}:[ \\t]*([^\\r\\n]*)`, 'gi')
    headerPatterns.set(name, pattern)
  }
  pattern.lastIndex = 0
  const value = pattern.exec(head)?.[1]?.trimEnd()
  if (value === undefined) return undefined
  for (let next = pattern.exec(head); next !== null; next = pattern.exec(head)) {
    if (next[1]!.trimEnd() !== value) throw new Error(`the answer has two different ${name} headers`)
  }
  return value
}
