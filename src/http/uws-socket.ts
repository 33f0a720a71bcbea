/**
 * One WebSocket on uWebSockets.js. The engine takes every message and buffers without bound, so this class stops at the first one that the
 * peer's socket did not take completely.
 */
import { EngineSocket } from './wire.ts'

/** The part of the native WebSocket that is used here. */
interface NativeSocket {
  cork(action: () => void): unknown
  send(text: string): number
  ping(): number
  end(code: number, reason: string): void
  close(): void
  getBufferedAmount(): number
}

/** Per cork: the native cork buffer holds 16 KiB, frame heads included. */
const corkBytesMax = 12_288

export class UwsSocket extends EngineSocket<NativeSocket> {
  opened(native: NativeSocket): void {
    this.native = native
  }

  send(messages: readonly string[]): number {
    let taken = 0
    while (taken < messages.length && this.native !== undefined && this.blockedSince === undefined) {
      const native = this.native
      native.cork(() => {
        let room = corkBytesMax
        do {
          const text = messages[taken++]!
          room -= Buffer.byteLength(text)
          native.send(text)
        } while (taken < messages.length && room > Buffer.byteLength(messages[taken]!))
      })
      if (native.getBufferedAmount() > 0) this.blockedSince = this.options.now()
    }
    return taken
  }

  ping(): void {
    if (this.blockedSince === undefined) this.native?.ping()
  }

  end(code: number, reason: string): void {
    // After `end`, the native socket cannot be closed anymore: what it buffers would stay until the peer takes it.
    if (this.blockedSince === undefined) this.native?.end(code, reason)
    else this.native?.close()
  }

  message(bytes: ArrayBuffer, isBinary: boolean): void {
    // The bytes are detached when the native callback returns, so copy them.
    const copy = Buffer.from(new Uint8Array(bytes))
    this.guard(() => this.options.handlers.message(copy, isBinary))
  }

  control(kind: 'ping' | 'pong'): void {
    this.guard(this.options.handlers[kind])
  }

  drained(): void {
    if (this.native !== undefined && this.native.getBufferedAmount() === 0) this.unblock()
  }
}
