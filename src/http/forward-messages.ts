/**
 * Messages between HTTP threads and the main thread. An HTTP thread holds connections and speaks HTTP; it forwards requests to the main
 * thread, which answers them. Each thread numbers its exchanges.
 */
import type { Header } from './port.ts'

/** `headers`: names and values, one per line. `body`: undefined if it has not fully arrived. */
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
  /** The body exceeds its limit. */
  | readonly [kind: 'long body', id: number, sentAtLeast: number]
  /** The client disconnected before it was answered. */
  | readonly [kind: 'lost', id: number]
  /** The socket has taken this many more bytes of what was written; `taken again`: it had been blocked. */
  | readonly [kind: 'taken' | 'taken again', id: number, bytes: number]
  /** The socket has stopped taking bytes. Sent again if it has since taken a few. */
  | readonly [kind: 'blocked', id: number]
  /** A stream or a WebSocket is over. */
  | readonly [kind: 'closed', id: number]
  | readonly [kind: 'message', id: number, bytes: Uint8Array, isBinary: boolean]
  | readonly [kind: 'ping' | 'pong', id: number]
  /** A connection was closed because the maximum is reached. */
  | readonly [kind: 'full']
  | readonly [kind: 'listening' | 'stopped accepting']
  | readonly [kind: 'not listening', problem: string]

/** From the main thread: what clients get. `headers` as in {@link headersText}. */
export type ToClients =
  /** This many more requests were received by the main thread. */
  | readonly [kind: 'received', requests: number]
  /** The handler wants the body, up to this many bytes. */
  | readonly [kind: 'body limit', id: number, bytes: number]
  /** The handler wants no body. */
  | readonly [kind: 'no body', id: number]
  | readonly [kind: 'reply', id: number, status: number, headers: string, body: Uint8Array | string, close: boolean]
  /** `length` -1: chunked. */
  | readonly [kind: 'stream', id: number, status: number, headers: string, length: number]
  /** The same bytes for several streams. */
  | readonly [kind: 'write', ids: number[], chunk: Uint8Array]
  | readonly [kind: 'end' | 'cut' | 'drop', id: number]
  | readonly [kind: 'accept', id: number]
  | readonly [kind: 'send', id: number, messages: readonly string[]]
  | readonly [kind: 'send ping', id: number]
  | readonly [kind: 'end socket', id: number, code: number, reason: string]
  | readonly [kind: 'listen', host: string, port: number]
  /** `close`: the process is about to exit. */
  | readonly [kind: 'stop accepting' | 'close']

/** Bytes taken by a socket are reported once this many have accumulated: half of what may be in flight to one client. */
export const reportedBytesMin = 32_768

const textOf = new WeakMap<readonly Header[], string>()

/** Header fields, one name or value per line. The text of a frozen list, which many answers share, is built once. */
export function headersText(headers: readonly Header[]): string {
  let text = textOf.get(headers)
  if (text === undefined) {
    text = headers.map(([name, value]) => `${name}\n${value}`).join('\n')
    if (Object.isFrozen(headers)) textOf.set(headers, text)
  }
  return text
}

/** Lists that are cached: most answers of a board use one of a few. */
const listsMax = 256

/** Parses such texts. The same text yields the same frozen list, which the engine validates and joins once. */
export class HeaderLists {
  readonly #lists = new Map<string, readonly Header[]>()

  of(text: string): readonly Header[] {
    const known = this.#lists.get(text)
    if (known !== undefined) return known
    const parts = text === '' ? [] : text.split('\n')
    const headers: Header[] = []
    for (let at = 0; at < parts.length; at += 2) headers.push([parts[at]!, parts[at + 1]!])
    // Values that occur in only one answer must not keep the others out permanently.
    if (this.#lists.size >= listsMax) this.#lists.clear()
    this.#lists.set(text, Object.freeze(headers))
    return headers
  }
}
