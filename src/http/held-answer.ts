/**
 * Holds an answer that closes its connection while the client is still sending an unread body. If a connection is closed with unread bytes,
 * the kernel resets it, and a client that is still sending gets a broken pipe and no answer (RFC 9112 section 9.6).
 */

/** The answer waits for at most this much of a body. */
export const awaitedBytesMax = 64 * 1024 * 1024
const awaitedMs = 30_000
/** After this long without bytes, the client is waiting for the answer, or sends no more. */
const quietMs = 500

export class HeldAnswer {
  /** Sends the answer now. */
  readonly release: () => void
  readonly #now: () => number
  readonly #until: number
  readonly #quiet: NodeJS.Timeout
  #bytes = 0

  constructor(now: () => number, send: () => void) {
    this.#now = now
    this.#until = now() + awaitedMs
    this.release = () => {
      this.cancel()
      send()
    }
    this.#quiet = setTimeout(this.release, quietMs).unref()
  }

  /** Counts bytes of the body. After the last ones, or too many, the answer is sent. */
  onPart(bytes: number, isLast: boolean): void {
    this.#bytes += bytes
    if (isLast || this.#bytes > awaitedBytesMax || this.#now() > this.#until) this.release()
    else this.#quiet.refresh()
  }

  /** The client is gone. */
  cancel(): void {
    clearTimeout(this.#quiet)
  }
}
