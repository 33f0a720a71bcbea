/**
 * Deliveries over kills of the board: a third-party subscriber (the AI SDK) and a plain webhook, each beside targets that are dead, slow,
 * or lie. Nothing is lost, nothing arrives twice except under its own id, and every signature is valid.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { missingPackage, peerPackage, skipNote, skipWithout } from '../peers/peers.ts'
import { accessToken } from '../support/access-token.ts'
import { person } from '../support/client.ts'
import { HookTarget, type ReceivedRequest } from '../support/hook-target.ts'
import { WebhookBoard } from '../support/webhook-board.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 })

const posts = Number(process.env.WEBHOOK_POSTS ?? 1_000)
const kills = Number(process.env.WEBHOOK_KILLS ?? 3)

type Subscription = { key: string; id?: string; [name: string]: unknown }
type Delivered = { readonly event: { readonly eventId: string; readonly data: { readonly event_id: string } } }
type AiSdk = {
  createMCPClient(options: object): Promise<{
    experimental_events: {
      list(): Promise<{ events: { name: string }[] }>
      subscribe(wish: object): Promise<{ id: string; truncated: boolean }>
      refresh(which: { id: string }): Promise<{ id: string }>
      unsubscribe(which: { id: string }): Promise<void>
    }
    close(): Promise<void>
  }>
  experimental_createMCPEventWebhook(options: object): (request: Request) => Promise<Response>
}

const missing = missingPackage('@ai-sdk/mcp')

/** Everything that the SDK stores, in memory. */
class Store {
  readonly #kept = new Map<string, Subscription>()
  get = async (key: string) => this.#kept.get(key)
  getById = async (id: string) => [...this.#kept.values()].find((each) => each.id === id)
  set = async (each: Subscription) => void this.#kept.set(each.key, each)
  update = async (key: string, more: object) => void this.#kept.set(key, { ...this.#kept.get(key)!, ...more })
  delete = async (key: string) => void this.#kept.delete(key)
}

describe.skipIf(skipWithout(missing))(`deliveries over kills${skipNote(missing)}`, () => {
  const [writer, owner, subscriber, unlucky] = [
    person('writer'),
    person('owner'),
    person('subscriber'),
    person('unlucky'),
  ]
  let webhooks: WebhookBoard
  let address: string

  beforeAll(async () => {
    webhooks = await WebhookBoard.open({ DELIVERY_WAIT_PERCENT: '1', PORT: '0' })
    address = webhooks.board.address
  })
  afterAll(() => webhooks.close())

  /** Dies and comes back at the same address. */
  async function die(): Promise<void> {
    await webhooks.restart((board) => board.kill())
  }

  test(`${posts} posts and ${kills} kills`, async () => {
    const sdk = await peerPackage<AiSdk>('@ai-sdk/mcp', 'dist/index.js')
    const store = new Store()
    const heard: Delivered['event'][] = []
    const errors: unknown[] = []
    const webhook = sdk.experimental_createMCPEventWebhook({
      store,
      onEvent: ({ event }: Delivered) => void heard.push(event),
      onError: (error: unknown) => void errors.push(error),
    })
    const receiver = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', async () => {
        const answer = await webhook(
          new Request(`http://127.0.0.1${request.url}`, {
            method: request.method!,
            headers: request.headers as Record<string, string>,
            body: Buffer.concat(chunks),
          }),
        )
        response
          .writeHead(answer.status, Object.fromEntries(answer.headers))
          .end(Buffer.from(await answer.arrayBuffer()))
      })
    })
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const token = await accessToken(address, subscriber, 'board:read events:subscribe')
    const client = await sdk.createMCPClient({
      transport: { type: 'http', url: `${address}/mcp`, headers: { authorization: `Bearer ${token}` } },
      experimental_events: { store },
    })
    const { events } = await client.experimental_events.list()
    expect(events.map(({ name }) => name)).toContain('room.post')
    const callback = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/in`
    const subscription = await client.experimental_events.subscribe({
      name: 'room.post',
      arguments: { room: 'lobby' },
      delivery: { mode: 'webhook', url: callback, allowInsecureLocalhost: true },
    })
    expect(subscription.truncated).toBe(false)
    expect((await client.experimental_events.refresh({ id: subscription.id })).id).toBe(subscription.id)
    await client.close()

    await webhooks.createWebhook(owner, '/plain')
    const swamp = await HookTarget.open()
    for (const path of ['/slow', '/liar', '/dead']) {
      const { secret } = await webhooks.createWebhook(unlucky, path, { url: swamp.url(path) })
      swamp.secrets.set(path, secret)
    }
    swamp.responders.set('/slow', (_arrived, response) => setTimeout(() => response.end(), 3_000).unref())
    // It says yes, and then never stops sending.
    swamp.responders.set('/liar', (_arrived, response) => {
      response.writeHead(200)
      const talk = setInterval(() => response.write('x'.repeat(8_192)), 5)
      response.on('close', () => clearInterval(talk))
    })
    swamp.responders.set('/dead', (_arrived, response) => response.destroy())

    const posted = new Set<string>()
    for (let round = 0; round <= kills; round++) {
      const until = Math.floor((posts * (round + 1)) / (kills + 1))
      while (posted.size < until) {
        const batch = Array.from({ length: Math.min(20, until - posted.size) }, () =>
          webhooks.post(writer, { room: 'lobby', text: `post ${posted.size}` }),
        )
        for (const id of await Promise.all(batch)) posted.add(id)
      }
      // In the middle of deliveries: some are done, some are pending, some are in flight.
      if (round < kills) await die()
    }
    await webhooks.target.waitUntil(
      () => new Set(webhooks.target.receivedAt('/plain').map(({ id }) => id)).size >= posts,
    )
    while (new Set(heard.map(({ eventId }) => eventId)).size < posts)
      await new Promise((resolve) => setTimeout(resolve, 20))

    const plain = webhooks.target.receivedAt('/plain')
    expect(plain.every(({ verified }) => verified)).toBe(true)
    const eventOf = ({ body }: ReceivedRequest) => String(body.data.event_id)
    expect(new Set(plain.map(eventOf))).toEqual(posted)
    expect(new Set(heard.map(({ data }) => data.event_id))).toEqual(posted)
    // One id per event, one event per id, and the same for both.
    const names = new Map([
      ...plain.map((each): [string, string] => [eventOf(each), each.id]),
      ...heard.map(({ eventId, data }): [string, string] => [data.event_id, eventId]),
    ])
    expect(new Set(names.values()).size).toBe(posts)
    for (const each of plain) expect(names.get(eventOf(each))).toBe(each.id)
    for (const { eventId, data } of heard) expect(names.get(data.event_id)).toBe(eventId)
    // In the order of the room, except for what a kill repeats.
    const firsts = [...new Map(plain.map(({ body }) => [body.data.event_id, Number(body.data.seq)])).values()]
    expect(firsts).toEqual([...firsts].sort((a, b) => a - b))
    expect(errors).toEqual([])
    console.info(
      `${posts} posts, ${kills} kills: ${plain.length - posts} and ${heard.length - posts} repeated; ` +
        `dead, slow and lying targets had ${swamp.receivedAt('/dead').length}, ${swamp.receivedAt('/slow').length} and ${swamp.receivedAt('/liar').length}`,
    )
    await swamp.waitUntil(() => swamp.receivedAt('/slow').length > 0)
    expect(swamp.receivedAt('/liar').every(({ verified }) => verified)).toBe(true)
    await swamp.close()
    receiver.closeAllConnections()
    receiver.close()
  })
})
