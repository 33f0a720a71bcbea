/**
 * One streamed answer on uWebSockets.js: writes wait for the check phase and are sent in one cork.
 *
 * The native `write` takes everything and buffers without bound, so this class stops at the first `false` and buffers the rest here, where
 * it is counted. Without `onWritable`, the engine would disconnect a reader 10 s after its socket was first full, even if the reader has
 * caught up. The engine sends its own buffer only from a cork inside `onWritable`, even an empty one. It disconnects a reader that takes
 * nothing for about 10 s.
 *
 * A body of known length goes through `tryEnd`, which puts nothing into that buffer when the socket is full: the remainder stays here, and
 * the last byte ends the message.
 */

import { type Header, streamBytesHigh } from './port.ts'
import { type EngineHooks, EngineStream } from './wire.ts'

/** Streams flushed per loop turn: 500 take about 5 ms, which delays other requests by as much. */
const flushesPerTurnMax = 500

interface Flushable {
  flush(): void
}

/**
 * Delays writes that would otherwise happen inside the cork of another connection.
 *
 * uWebSockets.js has one cork per loop and holds it for the connection whose callback is running, including promise continuations and
 * `nextTick`. `cork` on any other connection then silently does nothing, and every piece of its answer becomes its own system call
 * (measured in uws.ts). The end of the cork has no event, but in the check phase of the same loop turn no engine callback is on the stack,
 * so writes wait for `setImmediate`.
 */
export class CorkTurn {
  #holder: object | undefined
  #scheduled = false
  #actions: (() => void)[] = []
  #streams: Flushable[] = []
  #next = 0

  /** Called first in every callback of the engine: `holder` has the cork for the rest of it. */
  enter(holder: object): void {
    this.#holder = holder
    this.#schedule()
  }

  /** Whether `who` may cork now and the cork takes effect. */
  isFree(who: object): boolean {
    return this.#holder === undefined || this.#holder === who
  }

  /** Runs the action in the check phase of this loop turn. It must not throw. */
  defer(action: () => void): void {
    this.#actions.push(action)
    this.#schedule()
  }

  /** Flushes the stream in this loop turn, or in a later one if many are waiting. The caller requests each flush once. */
  deferFlush(stream: Flushable): void {
    this.#streams.push(stream)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#run)
  }

  #run = (): void => {
    this.#scheduled = false
    this.#holder = undefined
    if (this.#actions.length > 0) {
      const actions = this.#actions
      this.#actions = []
      for (const action of actions) action()
    }
    if (this.#streams.length === 0) return
    const end = Math.min(this.#streams.length, this.#next + flushesPerTurnMax)
    while (this.#next < end) this.#streams[this.#next++]?.flush()
    if (this.#next === this.#streams.length) {
      this.#streams = []
      this.#next = 0
      return
    }
    // Under a load that never empties the list, its used part must be released too.
    if (this.#next > 16 * flushesPerTurnMax) {
      this.#streams = this.#streams.slice(this.#next)
      this.#next = 0
    }
    this.#schedule()
  }
}

/** The part of the native response that a stream needs. */
interface NativeStream {
  cork(action: () => void): unknown
  writeStatus(line: string): unknown
  writeHeader(name: string, value: string): unknown
  write(chunk: Uint8Array): boolean
  /** Whether everything was taken, and whether the message is complete. */
  tryEnd(chunk: Uint8Array, length: number): readonly [boolean, boolean]
  /** Bytes of the body that were taken. */
  getWriteOffset(): number
  end(): unknown
  endWithoutBody(): unknown
  onWritable(callback: (offset: number) => boolean): unknown
  close(): unknown
}

type StreamOptions = {
  readonly line: string
  readonly headers: readonly Header[]
  readonly turn: CorkTurn
  /** Whether the client was told that the connection ends with the stream. */
  readonly close: boolean
  readonly isHead: boolean
  /** Length of the whole body in bytes; undefined if chunked. */
  readonly length: number | undefined
}

/** Per cork: the native cork buffer holds 16 KiB, chunk frames included, and this build loses bytes when it overflows. */
const corkBytesMax = 12_288

const nothing = () => {}
const nothingLeft = new Uint8Array(0)

export class UwsStream extends EngineStream<NativeStream> implements Flushable {
  #options: StreamOptions
  #started = false
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  /** For a body of known length, the bytes that the engine has taken. */
  #sent = 0
  #isComplete = false
  #needsDrain = false
  #ending = false
  #flushAsked = false

  constructor(res: NativeStream | undefined, hooks: EngineHooks, options: StreamOptions) {
    super(res, hooks)
    this.#options = options
    if (res === undefined) return
    if (options.isHead) this.end()
    res.onWritable(() => {
      this.native?.cork(nothing)
      this.blockedSince = undefined
      this.flush()
      return true
    })
  }

  write(chunk: Uint8Array): boolean {
    if (this.native === undefined || this.#ending) return true
    if (chunk.length > 0) {
      this.#waiting.push(chunk)
      this.#waitingBytes += chunk.length
      if (this.blockedSince === undefined) this.#askFlush()
    }
    const room = this.blockedSince === undefined && this.#waitingBytes < streamBytesHigh
    if (!room) this.#needsDrain = true
    return room
  }

  end(): void {
    if (this.native === undefined || this.#ending) return
    this.#ending = true
    this.#askFlush()
  }

  close(): void {
    // The native close calls onAborted, which calls closed().
    this.native?.close()
  }

  override closed(): void {
    this.#waiting = []
    this.#waitingBytes = 0
    super.closed()
  }

  flush(): void {
    this.#flushAsked = false
    const res = this.native
    if (res === undefined) return
    while (this.blockedSince === undefined && this.#waiting.length > 0) res.cork(this.#fillCork)
    if (this.#isComplete) return this.closed()
    if (this.#waiting.length > 0) return
    if (this.#ending) {
      res.cork(() => this.#finish(res))
      this.closed()
    } else if (this.#needsDrain && this.blockedSince === undefined) {
      this.#needsDrain = false
      this.drained()
    }
  }

  #fillCork = (): void => {
    const res = this.native
    if (res === undefined) return
    this.#start(res)
    let room = corkBytesMax
    let taken = 0
    for (let chunk = this.#waiting[0]; chunk !== undefined && room > 0; chunk = this.#waiting[taken]) {
      // A chunk that would fit on its own waits for the next cork; only one that never fits is split.
      if (chunk.length > room && room < corkBytesMax) break
      const piece = chunk.length > room ? chunk.subarray(0, room) : chunk
      if (piece.length < chunk.length) this.#waiting[taken] = chunk.subarray(piece.length)
      else taken++
      room -= piece.length
      this.#waitingBytes -= piece.length
      const left = this.#put(res, piece)
      if (left === undefined) continue
      if (left.length > 0) {
        // Restore the rest of its chunk to the front of the list.
        this.#waiting.splice(0, taken)
        this.#waiting.unshift(left)
        this.#waitingBytes += left.length
        taken = 0
      }
      this.blockedSince = this.hooks.now()
      this.#needsDrain = true
      break
    }
    this.#waiting.splice(0, taken)
  }

  /** Passes a piece to the engine. Undefined if it takes more; otherwise its socket is full, and this is the part that it did not take. */
  #put(res: NativeStream, piece: Uint8Array): Uint8Array | undefined {
    const { length } = this.#options
    // When a chunked body's `write` returns false, the engine has still taken the piece, into its own buffer.
    if (length === undefined) return res.write(piece) ? undefined : nothingLeft
    const [took, done] = res.tryEnd(piece, length)
    this.#isComplete = done
    if (took || done) {
      this.#sent += piece.length
      return undefined
    }
    const offset = res.getWriteOffset()
    const left = piece.subarray(offset - this.#sent)
    this.#sent = offset
    return left
  }

  #start(res: NativeStream): void {
    if (this.#started) return
    this.#started = true
    res.writeStatus(this.#options.line)
    writeHeaders(res, this.#options.headers)
    if (this.#options.close) res.writeHeader('Connection', 'close')
  }

  #finish(res: NativeStream): void {
    this.#start(res)
    const { isHead, length } = this.#options
    if (isHead && length !== undefined) res.writeHeader('Content-Length', String(length))
    if (isHead) res.endWithoutBody()
    // Never with closeConnection: after a write, this build puts that header between the chunks.
    else res.end()
  }

  #askFlush(): void {
    if (this.#flushAsked) return
    this.#flushAsked = true
    this.#options.turn.deferFlush(this)
  }
}

/** Writes all headers in one native call: their values were checked for line breaks, and a call costs more than the writing. */
export function writeHeaders(res: Pick<NativeStream, 'writeHeader'>, headers: readonly Header[]): void {
  const first = headers[0]
  if (first !== undefined) res.writeHeader(first[0], joined(headers))
}

const joinedOnce = new WeakMap<readonly Header[], string>()

/** The value of the first header, followed by all other headers. The text of a frozen list, which many answers share, is built once. */
function joined(headers: readonly Header[]): string {
  let text = joinedOnce.get(headers)
  if (text === undefined) {
    text = headers.map(([name, value], at) => (at === 0 ? value : `${name}: ${value}`)).join('\r\n')
    if (Object.isFrozen(headers)) joinedOnce.set(headers, text)
  }
  return text
}
