/** A board with receive URLs: creates them, delivers to them, reads what arrived, and restarts. */
import { request } from 'node:http'
import { expect } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from './board-process.ts'
import { type Answer, Client, type Fields } from './client.ts'

export type CreatedReceiver = { readonly id: string; readonly url: string; readonly secret_shown?: boolean }

export type ReceivedItem = {
  readonly receiver: string
  readonly item: number
  readonly received_at: number
  readonly content_type: string
  readonly query?: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: number
  readonly body: string
  readonly body_encoding: string
  readonly verified: boolean
  readonly untrusted: boolean
}

export type DeliveryResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  readonly code: string | undefined
  readonly data: { readonly item?: number; readonly bytes?: number; readonly duplicate?: boolean }
}

export class ReceiverBoard {
  board: Board
  client: Client
  readonly #env: Readonly<Record<string, string>>

  private constructor(board: Board, client: Client, env: Readonly<Record<string, string>>) {
    this.board = board
    this.client = client
    this.#env = env
  }

  static async open(env: Readonly<Record<string, string>> = {}): Promise<ReceiverBoard> {
    const settings = { SHARDS: '2', ...env }
    const board = await startBoard({ directory: boardDirectory(), env: settings })
    return new ReceiverBoard(board, await Client.of(board), settings)
  }

  /** Starts again from the same directory, after `end`. */
  async restart(end: (board: Board) => Promise<unknown>): Promise<void> {
    await end(this.board)
    this.client.close()
    this.board = await startBoard({ directory: this.board.directory, env: this.#env })
    this.client = await Client.of(this.board)
  }

  deliver(
    path: string,
    body: string | Uint8Array,
    headers: Readonly<Record<string, string>> = {},
    method = 'POST',
  ): Promise<DeliveryResponse> {
    const hasBody = method !== 'GET' && method !== 'HEAD'
    const length = hasBody ? { 'content-length': Buffer.byteLength(body) } : {}
    const options = { host: '127.0.0.1', port: this.board.port, path, method, headers: { ...length, ...headers } }
    return new Promise((resolve, reject) => {
      const sent = request(options, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const json = (text.startsWith('{') ? JSON.parse(text) : {}) as {
            data?: DeliveryResponse['data']
            error?: { code: string }
          }
          const { statusCode, headers: received } = response
          resolve({ status: statusCode!, headers: received, text, code: json.error?.code, data: json.data ?? {} })
        })
      })
      sent.on('error', reject)
      sent.end(hasBody ? body : undefined)
    })
  }

  requestReceiver(who: Signer, data: object = {}, more: object = {}): Promise<Answer> {
    const fields = { operation: 'receiver.create', data: JSON.stringify({ schema: 1, ...data }), ...more }
    return this.client.command(who, fields as Fields)
  }

  async createReceiver(who: Signer, data: object = {}, more: object = {}): Promise<CreatedReceiver> {
    const answer = await this.requestReceiver(who, data, more)
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"url"')])
    return (answer.data as { receiver?: CreatedReceiver }).receiver!
  }

  async itemsOf(who: Signer, fields: object = {}): Promise<ReceivedItem[]> {
    const answer = await this.client.command(who, { operation: 'receiver.items', ...fields } as Fields)
    expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
    return (answer.data as { items?: ReceivedItem[] }).items!
  }

  remove(who: Signer, target: string): Promise<Answer> {
    return this.client.command(who, { operation: 'receiver.delete', target })
  }
}
