/**
 * One streamed answer on uWebSockets.js: what was written waits for the check phase and leaves in one cork.
 *
 * The native `write` takes everything and buffers without bound, so this class stops at the first `false` and keeps the
 * rest here, where it is counted. Without `onWritable` the engine would cut a reader 10 s after its first full socket
 * even when the reader has caught up; and it sends its own buffer only from a cork inside `onWritable`, even an empty
 * one. The engine cuts a reader that takes nothing for about 10 s.
 *
 * A body of known length goes through `tryEnd`, which takes nothing into that buffer when the socket is full: what it
 * did not take stays here, and the last byte ends the message.
 */

import { type Header, streamBytesHigh } from './port.ts'
import { type EngineHooks, EngineStream } from './wire.ts'

/** Streams flushed per loop turn: 500 take about 5 ms, which a request in between may have to wait. */
const flushesPerTurnMax = 500

interface Flushable {
  flush(): void
}

/**
 * Delays writes that would otherwise happen inside the cork of another connection.
 *
 * uWebSockets.js has one cork per loop and holds it for the connection whose callback is running, promise continuations
 * and `nextTick` included. `cork` on any other connection then silently does nothing, and every piece of its answer
 * becomes a system call of its own (measured in uws.ts). There is no event for the end of the cork, but no callback of
 * the engine is on the stack in the check phase of the same loop turn: so writes wait for `setImmediate`.
 */
export class CorkTurn {
  #holder: object | undefined
  #scheduled = false
  #actions: (() => void)[] = []
  #streams: Flushable[] = []
  #next = 0

  /** Called first in every callback the engine makes: `holder` has the cork for the rest of it. */
  enter(holder: object): void {
    this.#holder = holder
    this.#schedule()
  }

  /** Whether `who` may cork now and the cork will work. */
  isFree(who: object): boolean {
    return this.#holder === undefined || this.#holder === who
  }

  /** Runs the action in the check phase of this loop turn. It must not throw. */
  defer(action: () => void): void {
    this.#actions.push(action)
    this.#schedule()
  }

  /** Flushes the stream in this loop turn, or in one of the next when many are waiting. The caller asks once per flush. */
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
    // Under a load that never empties the list, its used part must still be given back.
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
  /** Whether all was taken, and whether the message is complete. */
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
  /** Whether the client knows that the connection ends with the stream. */
  readonly close: boolean
  readonly isHead: boolean
  /** Bytes of the whole body; undefined: chunked. */
  readonly length: number | undefined
}

/** Per cork: the native cork buffer holds 16 KiB with the chunk frames, and this build loses bytes when it overflows. */
const corkBytesMax = 12_288

const nothing = () => {}
const nothingLeft = new Uint8Array(0)

export class UwsStream extends EngineStream<NativeStream> implements Flushable {
  #options: StreamOptions
  #started = false
  #waiting: Uint8Array[] = []
  #waitingBytes = 0
  /** Of a body of known length, bytes that the engine has taken. */
  #sent = 0
  #isComplete = false
  #saidFalse = false
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
    if (!room) this.#saidFalse = true
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
    } else if (this.#saidFalse && this.blockedSince === undefined) {
      this.#saidFalse = false
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
      // A chunk that would fit alone waits for the next cork; only one that never fits is cut.
      if (chunk.length > room && room < corkBytesMax) break
      const piece = chunk.length > room ? chunk.subarray(0, room) : chunk
      if (piece.length < chunk.length) this.#waiting[taken] = chunk.subarray(piece.length)
      else taken++
      room -= piece.length
      this.#waitingBytes -= piece.length
      const left = this.#put(res, piece)
      if (left === undefined) continue
      if (left.length > 0) {
        // Back to what is left of its chunk.
        this.#waiting.splice(0, taken)
        this.#waiting.unshift(left)
        this.#waitingBytes += left.length
        taken = 0
      }
      this.blockedSince = this.hooks.now()
      this.#saidFalse = true
      break
    }
    this.#waiting.splice(0, taken)
  }

  /** Gives a piece to the engine. Undefined: it takes more; else its socket is full, and this is what it did not take. */
  #put(res: NativeStream, piece: Uint8Array): Uint8Array | undefined {
    const { length } = this.#options
    // What a chunked body's `write` answers false to is taken all the same, into the engine's own buffer.
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
    // Never with closeConnection: after a write this build puts that header between the chunks.
    else res.end()
  }

  #askFlush(): void {
    if (this.#flushAsked) return
    this.#flushAsked = true
    this.#options.turn.deferFlush(this)
  }
}

/**
 * All of them in one native call: the values were checked for line breaks, and each call costs more than what it
 * writes.
 */
export function writeHeaders(res: Pick<NativeStream, 'writeHeader'>, headers: readonly Header[]): void {
  const first = headers[0]
  if (first !== undefined) res.writeHeader(first[0], joined(headers))
}

const joinedOnce = new WeakMap<readonly Header[], string>()

/** The value of the first header, and all others after it. A frozen list, which many answers share, is joined once. */
function joined(headers: readonly Header[]): string {
  let text = joinedOnce.get(headers)
  if (text === undefined) {
    text = headers.map(([name, value], at) => (at === 0 ? value : `${name}: ${value}`)).join('\r\n')
    if (Object.isFrozen(headers)) joinedOnce.set(headers, text)
  }
  return text
}
