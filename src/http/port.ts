/**
 * The port between the board and the network: what an HTTP engine must be able to do.
 *
 * There are two engines, `uws` (uws.ts, the default) and `node` (node.ts, any platform, stricter parser). One protocol test suite runs on
 * both. The port knows sockets, statuses, and bytes; it knows nothing of rooms or commands.
 */

import type { TrustedProxy } from '../config.ts'
import type { ConnectionCount } from './connection-count.ts'

export type Header = readonly [name: string, value: string]

/** Called for every request, whatever its path and method. A throw or a rejection becomes a 500 with `onFault`'s body. */
export type Handler = (exchange: Exchange) => void | Promise<void>

export type BodyResult =
  | { readonly ok: true; readonly body: Buffer }
  /** `sentAtLeast`: bytes announced by Content-Length, else bytes seen when the limit was passed. */
  | { readonly ok: false; readonly sentAtLeast: number }

/** Memory for bodies that are still arriving. */
export type BodyBounds = {
  /** Bytes in total, of one network, and of each body that take nothing. */
  readonly max: number
  readonly ofNetworkMax: number
  readonly free: number
  /** Whose header says from which client a request comes. */
  readonly trustedProxy: TrustedProxy
}

export type HttpOptions = {
  /** Monotonic milliseconds. */
  readonly now: () => number
  /** The JSON body of a refusal by the port itself (framing, malformed target, header count). */
  readonly refusal: (status: number, code: string, message: string) => string
  /** Records a fault of the service and returns the JSON body of its 500 answer. Must not throw. */
  readonly onFault: (error: unknown) => string
  /** The last chance to answer a request that is `deadlineMs` old; it is dropped if this does not answer it. */
  readonly onDeadline?: (exchange: Exchange) => void
  /** Longest wait of a request for the start of its answer; default `answerDeadlineMs`. */
  readonly deadlineMs?: number
  /** The count of open connections, created before the server because other parts show it. */
  readonly connections?: ConnectionCount
  /** Maximum of simultaneous connections; one more is closed immediately. Default: no bound. */
  readonly connectionsMax?: number
  /** A connection was closed because of that bound. */
  readonly onFull?: () => void
  /** Memory for bodies that are still arriving. Default: no bound. */
  readonly bodies?: BodyBounds | undefined
  /** The one path where a request may become a WebSocket. */
  readonly socketPath?: string
}

/** A long poll waits at most 55 s. A request that is unanswered after this is a lost promise, and leaks a socket. */
export const answerDeadlineMs = 70_000

/** A reader that takes nothing of an answer's body for this long is disconnected. */
export const bodyStallMs = 15_000

/**
 * Longest request head (request line and header fields), for both engines: the board answers a 32 KiB URL with 400, anything longer gets
 * 431.
 */
export const headBytesMax = 40_960

/** Bytes that one stream may hold in memory before `write` returns false. */
export const streamBytesHigh = 65_536

/** A longer WebSocket message ends its connection while it arrives. */
export const socketMessageBytesMax = 262_144

/** A peer that sends nothing for this long, not even a pong, is disconnected by the engine. */
export const socketIdleSeconds = 60

/** Callbacks for what a WebSocket receives. None is called before `accept` has returned. */
export type SocketHandlers = {
  /** A whole message. */
  readonly message: (bytes: Buffer, isBinary: boolean) => void
  readonly ping: () => void
  readonly pong: () => void
  /** The socket accepts more again, after `send` did not take everything. */
  readonly drain: () => void
  /** Called once, whichever side ended it. */
  readonly closed: () => void
}

export interface WebSocketConnection {
  /** Takes these text messages in order until the peer's socket is full, and returns how many. Then stop until `drain`. */
  send(messages: readonly string[]): number
  ping(): void
  /**
   * Sends what was taken, then a close frame with this code. A full socket is disconnected instead. `closed` is called before this returns.
   */
  end(code: number, reason: string): void
  /** `now()` of the moment since which the peer's socket has taken nothing, while it takes nothing. */
  readonly blockedSince: number | undefined
}

export interface HttpServer {
  readonly engine: 'uws' | 'node'
  /**
   * Binds exclusively (no second process may share the port) and returns the port; rejects if it cannot. `isShared`: servers of other
   * threads listen on the same port, and the kernel distributes the connections among them.
   */
  listen(host: string, port: number, isShared?: boolean): Promise<number>
  /** Closes the listening socket; resolves when it is closed. Requests in flight are answered, and each answer closes its connection. */
  stopAccepting(): Promise<void>
  /** Stops accepting, aborts every open connection, frees everything. */
  close(): Promise<void>
  readonly openConnections: number
}

export interface Exchange {
  /** Exact method text, case preserved. */
  readonly method: string
  /** Undecoded; begins with `/`; visible ASCII only. */
  readonly path: string
  /** Undecoded, without `?`; empty when there is none. */
  readonly query: string
  /**
   * The socket's peer: IPv4-mapped addresses as dotted IPv4, IPv6 in the form of RFC 5952. No header changes it. Read it
   * in the handler: if it is first read after the exchange has ended, it may be empty.
   */
  readonly remoteAddress: string
  /** Aborted, answered, streaming or dropped. */
  readonly ended: boolean
  /** Field names in lower case and values, alternating, in order of arrival. */
  readonly headers: readonly string[]
  /** The request asks to become a WebSocket, on a path that allows it. */
  readonly isUpgrade: boolean
  /** First value of the field; the name in lower case. */
  header(name: string): string | undefined
  /**
   * Called once if the client disconnects before it is answered, or if there is no memory for its body, which the engine answers; called
   * immediately if that has already happened.
   */
  onAbort(callback: () => void): void
  /**
   * Collects the body, at most `limit` bytes. Must be called once, in the handler before its first `await`. May call back before it
   * returns. Never calls back after an abort.
   *
   * An unread body is discarded. If it has a known length of up to 64 KiB, the connection continues. Otherwise the answer is held until the
   * client has sent the rest, has sent nothing for half a second, has sent 64 MiB, or has been sending for 30 s. If the body is then
   * incomplete, the answer closes the connection.
   */
  readBody(limit: number, callback: (result: BodyResult) => void): void
  /** Lowers the limit of a body that is being read. */
  lowerBodyLimit(limit: number): void
  /** Stops reading the body; what has arrived is dropped. */
  discardBody(): void
  /**
   * Answers once; a second answer, or one after an abort, does nothing. Content-Length is added (never for 204 and 304); HEAD sends no
   * body. Throws BadHeader on a name or value that is not printable ASCII, or on a header that controls framing.
   */
  reply(
    status: number,
    headers: readonly Header[],
    body: Uint8Array | string,
    options?: { readonly close?: boolean },
  ): void
  /**
   * Answers with a body in pieces: chunked, or of `length` bytes (at least 1), announced in Content-Length. Exactly that many must be
   * written before `end`. The header section may wait for the first piece. For HEAD the stream is over immediately.
   */
  stream(status: number, headers: readonly Header[], length?: number): ByteStream
  /** Closes the connection without an answer. */
  drop(): void
  /**
   * Turns the connection into a WebSocket; call it in the handler before its first `await`. Undefined if this request cannot become one.
   */
  accept(handlers: SocketHandlers): WebSocketConnection | undefined
}

export interface ByteStream {
  /**
   * Takes the whole chunk, which must not change afterwards (streams may share it). False: the chunk was taken, but stop until `onDrain`.
   * Does nothing once the stream is over.
   */
  write(chunk: Uint8Array): boolean
  /** Called whenever a stream that returned false accepts more again. */
  onDrain(callback: () => void): void
  /** Called once when the stream is over, whichever side ended it. */
  onClose(callback: () => void): void
  /** Sends what was taken, then ends the message properly. */
  end(): void
  /** Closes the connection: the reader sees an incomplete message. */
  close(): void
  /** `now()` of the moment since which the reader's socket has taken nothing, while it takes nothing. */
  readonly blockedSince: number | undefined
}

/** Answers a request to one path; `parameter`: the part of the path after its first segment. */
export type RouteHandler = (exchange: Exchange, parameter: string) => void
