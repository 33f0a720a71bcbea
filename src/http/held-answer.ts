/**
 * An answer that closes its connection is held while the client is still sending an unread body. The kernel resets a connection that is
 * closed with bytes unread, and a client that is still sending then gets a broken pipe and no answer (RFC 9112 section 9.6).
 */

/** More of a body is not awaited. */
export const awaitedBytesMax = 64 * 1024 * 1024
const awaitedMs = 30_000
/** Nothing has come for so long: the client waits for the answer first, or sends no more. */
const quietMs = 500

export class HeldAnswer {
  /** Sends it now. */
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

  /** So many bytes of the body have come; after the last ones, or too many, the answer is sent. */
  partCame(bytes: number, isLast: boolean): void {
    this.#bytes += bytes
    if (isLast || this.#bytes > awaitedBytesMax || this.#now() > this.#until) this.release()
    else this.#quiet.refresh()
  }

  /** Nobody is there to read it. */
  cancel(): void {
    clearTimeout(this.#quiet)
  }
}
