/** A client of /v1/stream for tests: one WebSocket, everything received on it, and its close code. */
import { setTimeout as sleep } from 'node:timers/promises'
import WebSocket, { type ClientOptions } from 'ws'
import type { EventJson } from './client.ts'
import { patience } from './patience.ts'

export type StreamMessage = {
  readonly id: string
  readonly status: number
  readonly ok: boolean
  readonly data?: {
    readonly updates?: readonly { readonly type: string; readonly room?: string; readonly event?: EventJson }[]
    readonly cursor?: string
    readonly event?: EventJson
    readonly events?: readonly EventJson[]
    readonly event_id?: string
    readonly receipt?: { readonly duplicate?: true }
  }
  readonly error?: { readonly code: string; readonly field?: string; readonly retry_after?: number }
}

export class StreamClient {
  readonly socket: WebSocket
  readonly messages: StreamMessage[] = []
  /** Code of the close frame; 1006: there was none. */
  code: number | undefined
  #ids = 0

  static async open(address: string, options: ClientOptions = {}): Promise<StreamClient> {
    const socket = new WebSocket(`${address.replace('http', 'ws')}/v1/stream`, { perMessageDeflate: false, ...options })
    const client = new StreamClient(socket)
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
    })
    return client
  }

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('message', (data: Buffer) => this.messages.push(JSON.parse(data.toString()) as StreamMessage))
    socket.on('close', (code) => {
      this.code = code
    })
  }

  /** Sends a command, written as JSON, and returns the id of its message. */
  send(command: string, kind: 'command' | 'follow' = 'command'): string {
    const id = `${++this.#ids}`
    this.socket.send(`{"id":"${id}","${kind}":${command}}`)
    return id
  }

  command(command: string): Promise<StreamMessage> {
    return this.answer(this.send(command))
  }

  /** Follows, and resolves to the first answer. */
  follow(command: string): Promise<StreamMessage> {
    return this.answer(this.send(command, 'follow'))
  }

  /** Everything received with this id. */
  of(id: string): StreamMessage[] {
    return this.messages.filter((each) => each.id === id)
  }

  answer(id: string): Promise<StreamMessage> {
    return this.until(() => this.of(id)[0])
  }

  /** Texts of the posts that a follow has shown. */
  texts(id: string): string[] {
    return this.of(id)
      .flatMap(({ data }) => data?.updates ?? [])
      .filter(({ type }) => type === 'event.posted')
      .map(({ event }) => event!.text!)
  }

  /** The first thing found. */
  async until<Found>(find: () => Found | undefined | false): Promise<Found> {
    const until = performance.now() + patience.timeout
    for (;;) {
      const isOver = this.code !== undefined || performance.now() > until
      const found = find()
      if (found !== undefined && found !== false) return found
      if (isOver)
        throw new Error(
          `closed ${this.code}, ${this.messages.length} messages, ${JSON.stringify(this.messages.at(-1))}`,
        )
      await sleep(patience.interval)
    }
  }

  closed(): Promise<number> {
    return this.until(() => this.code)
  }

  close(): void {
    this.socket.terminate()
  }
}

/** An unsigned updates.get of these rooms. */
export function publicFollow(rooms: readonly string[], cursor?: string): string {
  return JSON.stringify({
    operation: 'updates.get',
    data: JSON.stringify({ schema: 1, rooms }),
    ...(cursor === undefined ? {} : { cursor }),
  })
}
