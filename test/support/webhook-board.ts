/** A board with a webhook target: creates webhooks, and waits for their deliveries. */
import { expect } from 'vitest'
import type { Signer } from '../../src/cli/sign.ts'
import { type Board, boardDirectory, startBoard } from './board-process.ts'
import { type Answer, Client, type Fields } from './client.ts'
import { HookTarget, type ReceivedRequest } from './hook-target.ts'

export type CreatedWebhook = { readonly id: string; readonly secret: string }

export type ListedWebhook = {
  readonly id: string
  readonly kinds: readonly string[]
  readonly delivery: {
    readonly active: boolean
    readonly waiting: number
    readonly last_error?: string
    readonly last_delivery_at?: number
  }
}

export type DeliveryJson = {
  readonly event: string
  readonly kind: string
  readonly state: string
  readonly attempts: number
  readonly status?: number
  readonly error?: string
}

export class WebhookBoard {
  board: Board
  client: Client
  target: HookTarget
  readonly #env: Readonly<Record<string, string>>

  private constructor(board: Board, client: Client, target: HookTarget, env: Readonly<Record<string, string>>) {
    this.board = board
    this.client = client
    this.target = target
    this.#env = env
  }

  /** Waits between attempts are zero, as a test has no hours. */
  static async open(env: Readonly<Record<string, string>> = {}): Promise<WebhookBoard> {
    const settings = { SHARDS: '2', BROADSIDE_LOOPBACK: '1', DELIVERY_WAIT_PERCENT: '0', ...env }
    const board = await startBoard({ directory: boardDirectory(), env: settings })
    return new WebhookBoard(board, await Client.of(board), await HookTarget.open(), settings)
  }

  async close(): Promise<void> {
    this.client.close()
    await this.target.close()
  }

  /** Starts again from the same directory, after `end`. */
  async restart(end: (board: Board) => Promise<unknown>): Promise<void> {
    await end(this.board)
    this.client.close()
    this.board = await startBoard({ directory: this.board.directory, env: this.#env })
    this.client = await Client.of(this.board)
  }

  requestWebhook(who: Signer, path: string, data: object = {}): Promise<Answer> {
    const chosen = { schema: 1, url: this.target.url(path), kinds: ['room.post'], room: 'lobby', ...data }
    return this.client.command(who, { operation: 'webhook.create', data: JSON.stringify(chosen) })
  }

  async createWebhook(who: Signer, path: string, data: object = {}): Promise<CreatedWebhook> {
    let answer = await this.requestWebhook(who, path, data)
    // The target lives in the process of the test, which may be busy for longer than a challenge waits.
    while (answer.text.includes('(timeout)')) answer = await this.requestWebhook(who, path, data)
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"secret":"whsec_')])
    const { webhook } = answer.data as unknown as { webhook: CreatedWebhook }
    this.target.secrets.set(path, webhook.secret)
    return webhook
  }

  async run(who: Signer, fields: object): Promise<Answer> {
    const answer = await this.client.command(who, fields as Fields)
    expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
    return answer
  }

  /** Id of a new event. */
  async post(who: Signer, fields: object): Promise<string> {
    return (await this.run(who, { operation: 'post', ...fields })).data.event_id!
  }

  async list(who: Signer): Promise<ListedWebhook[]> {
    return ((await this.run(who, { operation: 'webhook.list' })).data as unknown as { webhooks: ListedWebhook[] })
      .webhooks
  }

  async deliveries(who: Signer, target: string): Promise<DeliveryJson[]> {
    const answer = await this.run(who, { operation: 'webhook.deliveries', target, limit: 200 })
    return (answer.data as unknown as { deliveries: DeliveryJson[] }).deliveries
  }

  /** Repeats the request until the list says so. */
  async waitUntilListed(who: Signer, holds: (webhook: ListedWebhook) => boolean): Promise<void> {
    while (!(await this.list(who)).every(holds)) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** Deliveries to a path, once there are that many. */
  async waitForDeliveries(path: string, count: number): Promise<ReceivedRequest[]> {
    await this.target.waitUntil(() => this.target.receivedAt(path).length >= count)
    return this.target.receivedAt(path)
  }
}
