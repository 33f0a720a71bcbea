/**
 * The port between the board and the network: what an HTTP engine must be able to do.
 *
 * There are two engines, `uws` (uws.ts, default) and `node` (node.ts, any platform, stricter parser), and one protocol
 * suite runs on both. The port knows sockets, statuses and bytes. It knows nothing of rooms or commands.
 */

import type { ConnectionCount } from './connection-count.ts'

export type Header = readonly [name: string, value: string]

/** Called for every request, whatever its path and method. A throw or a rejection becomes a 500 with `onFault`'s body. */
export type Handler = (exchange: Exchange) => void | Promise<void>

export type BodyResult =
  | { readonly ok: true; readonly body: Buffer }
  /** `sentAtLeast`: bytes announced by Content-Length, else bytes seen when the limit was passed. */
  | { readonly ok: false; readonly sentAtLeast: number }

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
  /** Counts the open connections, for a part that shows the figure and is made before the server. */
  readonly connections?: ConnectionCount
  /** Connections at the same time; one more is closed at once. Default: no bound. */
  readonly connectionsMax?: number
  /** A connection was closed because of that bound. */
  readonly onFull?: () => void
  /** The one path where a request may become a WebSocket. */
  readonly socketPath?: string
}

/** A long poll waits at most 55 s; what is unanswered after this is a lost promise and leaks a socket. */
export const answerDeadlineMs = 70_000

/** A reader that takes nothing of an answer's body for this long is cut off. */
export const bodyStallMs = 15_000

/** Longest request head (request line and header fields), both engines: a 32 KiB URL is answered 400 by the board, more is 431. */
export const headBytesMax = 40_960

/** What one stream may hold in memory before `write` returns false. */
export const streamBytesHigh = 65_536

/** A longer WebSocket message cuts its connection while it arrives. */
export const socketMessageBytesMax = 262_144

/** A peer that sends nothing for this long, not even a pong, is cut off by the engine. */
export const socketIdleSeconds = 60

/** What comes from a WebSocket. Nothing is called before `accept` has returned. */
export type SocketHandlers = {
  /** A whole message. */
  readonly message: (bytes: Buffer, isBinary: boolean) => void
  readonly ping: () => void
  readonly pong: () => void
  /** It takes more again, after `send` did not take all. */
  readonly drain: () => void
  /** Called once, whichever side ended it. */
  readonly closed: () => void
}

export interface WebSocketConnection {
  /** Takes these text messages in order, until the peer's socket is full; returns how many. Then stop until `drain`. */
  send(messages: readonly string[]): number
  ping(): void
  /** Sends what was taken and a close frame with this code. A full socket is cut instead. `closed` is called before it returns. */
  end(code: number, reason: string): void
  /** `now()` of the moment since which the peer's socket takes nothing, while it does. */
  readonly blockedSince: number | undefined
}

export interface HttpServer {
  readonly engine: 'uws' | 'node'
  /**
   * Binds exclusively (no second process may share the port) and returns the port; rejects when it cannot. `isShared`: servers of
   * other threads listen on the same port, and the kernel divides the connections among them.
   */
  listen(host: string, port: number, isShared?: boolean): Promise<number>
  /** Closes the listening socket; resolves when it is closed. Requests in flight are answered, each answer closes its connection. */
  stopAccepting(): Promise<void>
  /** Stops accepting, aborts every open connection, frees everything. */
  close(): Promise<void>
  readonly openConnections: number
}

export interface Exchange {
  /** Exact method text, case kept. */
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
  /** Field names in lower case and values, alternating, as they came. */
  readonly headers: readonly string[]
  /** It asks to become a WebSocket, at a path where it may. */
  readonly isUpgrade: boolean
  /** First value of the field; the name in lower case. */
  header(name: string): string | undefined
  /** Called once if the client goes away before the answer was given; at once if it has gone already. */
  onAbort(callback: () => void): void
  /**
   * Collects the body, at most `limit` bytes. Must be called in the handler before its first `await`, once. May call back
   * before it returns. Never calls back after an abort.
   *
   * An unread body is discarded. If it has a known length of up to 64 KiB, the connection continues. Otherwise the answer is held until
   * the client has sent the rest, has sent nothing for half a second, or has sent 64 MiB or for 30 s. If the body is then incomplete, the
   * answer closes the connection.
   */
  readBody(limit: number, callback: (result: BodyResult) => void): void
  /** Of a body that is being read: it may have less. */
  lowerBodyLimit(limit: number): void
  /** Nobody wants the body that is being read: what has come of it is let go. */
  discardBody(): void
  /**
   * Answers once; a second answer and one after an abort do nothing. Content-Length is added (never for 204 and 304);
   * HEAD sends no body. Throws BadHeader on a name or value that is not printable ASCII, or that frames the message.
   */
  reply(
    status: number,
    headers: readonly Header[],
    body: Uint8Array | string,
    options?: { readonly close?: boolean },
  ): void
  /**
   * Answers with a body piece by piece: chunked, or of `length` bytes (at least 1), which Content-Length then says.
   * Exactly that many are written before `end`. The header section may wait for the first piece. For HEAD the stream is
   * over at once.
   */
  stream(status: number, headers: readonly Header[], length?: number): ByteStream
  /** Closes the connection with no answer. */
  drop(): void
  /** Makes the connection a WebSocket, in the handler before its first `await`. Undefined: this request cannot become one. */
  accept(handlers: SocketHandlers): WebSocketConnection | undefined
}

export interface ByteStream {
  /**
   * Takes the whole chunk, which must not change afterwards (it may be shared between streams).
   * False: taken, but stop until `onDrain`. Nothing happens once the stream is over.
   */
  write(chunk: Uint8Array): boolean
  /** Called whenever a stream that returned false takes more again. */
  onDrain(callback: () => void): void
  /** Called once when the stream is over, whichever side ended it. */
  onClose(callback: () => void): void
  /** Sends what was taken, then ends the message properly. */
  end(): void
  /** Cuts the connection: the reader sees an incomplete message. */
  close(): void
  /** `now()` of the moment since which the reader's socket has taken nothing, while it takes nothing. */
  readonly blockedSince: number | undefined
}

/** Answers a request to one path; `parameter`: what follows its first segment. */
export type RouteHandler = (exchange: Exchange, parameter: string) => void
