/**
 * One streamed answer on node:http. Its own buffer shows when a reader is slow: above 64 KiB unsent, `write` is false.
 */
import type { ServerResponse } from 'node:http'
import type { ByteStream } from './port.ts'

export class NodeStream implements ByteStream {
  blockedSince: number | undefined
  #res: ServerResponse | undefined
  #now: () => number
  #report: (error: unknown) => void
  #drainCallbacks: (() => void)[] = []
  #closeCallbacks: (() => void)[] = []

  /** `res` undefined: the client is gone already, the stream is over from the start. */
  constructor(res: ServerResponse | undefined, now: () => number, report: (error: unknown) => void) {
    this.#res = res
    this.#now = now
    this.#report = report
    res?.on('drain', () => {
      this.blockedSince = undefined
      for (const callback of this.#drainCallbacks) this.#call(callback)
    })
  }

  write(chunk: Uint8Array): boolean {
    if (this.#res === undefined || this.#res.writableEnded || chunk.length === 0) return true
    if (this.#res.write(chunk)) return true
    this.blockedSince ??= this.#now()
    return false
  }

  onDrain(callback: () => void): void {
    this.#drainCallbacks.push(callback)
  }

  onClose(callback: () => void): void {
    if (this.#res === undefined) this.#call(callback)
    else this.#closeCallbacks.push(callback)
  }

  end(): void {
    this.#res?.end()
  }

  close(): void {
    this.#res?.destroy()
  }

  closed(): void {
    if (this.#res === undefined) return
    this.#res = undefined
    this.blockedSince = undefined
    this.#drainCallbacks = []
    const callbacks = this.#closeCallbacks
    this.#closeCallbacks = []
    for (const callback of callbacks) this.#call(callback)
  }

  #call(callback: () => void): void {
    try {
      callback()
    } catch (error) {
      this.#report(error)
    }
  }
}
