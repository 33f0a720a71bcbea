/**
 * What HTTP threads and the main thread tell each other. An HTTP thread holds connections and speaks HTTP; what it receives it forwards
 * to the main thread, which answers. Each thread numbers its exchanges.
 */
import type { Header } from './port.ts'

/** `headers`: names and values, one a line. `body` undefined: it has not arrived whole. */
export type RequestMessage = [
  kind: 'request',
  id: number,
  method: string,
  path: string,
  query: string,
  remoteAddress: string,
  headers: string,
  isUpgrade: boolean,
  body: Uint8Array | undefined,
]

/** From an HTTP thread: what clients do. */
export type FromClients =
  | RequestMessage
  | readonly [kind: 'body', id: number, body: Uint8Array]
  /** The body is longer than it may be. */
  | readonly [kind: 'long body', id: number, sentAtLeast: number]
  /** The client went away before it was answered. */
  | readonly [kind: 'lost', id: number]
  /** The socket has taken so many bytes more of what was written; `again`: it had been blocked. */
  | readonly [kind: 'taken' | 'taken again', id: number, bytes: number]
  /** The socket takes no more, from now on. It is said again when it has taken a little meanwhile. */
  | readonly [kind: 'blocked', id: number]
  /** A stream or a WebSocket is over. */
  | readonly [kind: 'closed', id: number]
  | readonly [kind: 'message', id: number, bytes: Uint8Array, isBinary: boolean]
  | readonly [kind: 'ping' | 'pong', id: number]
  /** One was closed, because there are as many as there may be. */
  | readonly [kind: 'full']
  | readonly [kind: 'listening' | 'stopped accepting']
  | readonly [kind: 'not listening', problem: string]

/** From the main thread: what clients get. `headers` as {@link headersText} has them. */
export type ToClients =
  /** So many requests more have been handled, or are being handled. */
  | readonly [kind: 'received', requests: number]
  /** The handler wants the body, of at most so many bytes. */
  | readonly [kind: 'body limit', id: number, bytes: number]
  /** The handler wants no body. */
  | readonly [kind: 'no body', id: number]
  | readonly [kind: 'reply', id: number, status: number, headers: string, body: Uint8Array | string, close: boolean]
  /** `length` -1: chunked. */
  | readonly [kind: 'stream', id: number, status: number, headers: string, length: number]
  /** The same bytes to several streams. */
  | readonly [kind: 'write', ids: number[], chunk: Uint8Array]
  | readonly [kind: 'end' | 'cut' | 'drop', id: number]
  | readonly [kind: 'accept', id: number]
  | readonly [kind: 'send', id: number, messages: readonly string[]]
  | readonly [kind: 'send ping', id: number]
  | readonly [kind: 'end socket', id: number, code: number, reason: string]
  | readonly [kind: 'listen', host: string, port: number]
  /** `close`: the process ends now. */
  | readonly [kind: 'stop accepting' | 'close']

/** Bytes that a socket has taken are reported once there are so many: half of what may be on its way to one. */
export const reportedBytesMin = 32_768

const textOf = new WeakMap<readonly Header[], string>()

/** Header fields, one a line. Of a frozen list, which many answers share, the text is made once. */
export function headersText(headers: readonly Header[]): string {
  let text = textOf.get(headers)
  if (text === undefined) {
    text = headers.map(([name, value]) => `${name}\n${value}`).join('\n')
    if (Object.isFrozen(headers)) textOf.set(headers, text)
  }
  return text
}

/** Lists that are remembered: most answers of a board have one of few. */
const listsMax = 256

/** Reads such texts. The same text gives the same frozen list, which the engine checks and joins once. */
export class HeaderLists {
  readonly #lists = new Map<string, readonly Header[]>()

  of(text: string): readonly Header[] {
    const known = this.#lists.get(text)
    if (known !== undefined) return known
    const parts = text === '' ? [] : text.split('\n')
    const headers: Header[] = []
    for (let at = 0; at < parts.length; at += 2) headers.push([parts[at]!, parts[at + 1]!])
    // Values that are made for one answer must not keep out the others for ever.
    if (this.#lists.size >= listsMax) this.#lists.clear()
    this.#lists.set(text, Object.freeze(headers))
    return headers
  }
}
