/** Webhooks as their maker sees them, told by a real board to a real target. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Board, boardDirectory, startBoard } from '../support/board-process.ts'
import { Client, person } from '../support/client.ts'
import { HookTarget } from '../support/hook-target.ts'

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 })

let board: Board
let client: Client
let target: HookTarget
const [owner, other] = [person('owner'), person('other')]

beforeAll(async () => {
  target = await HookTarget.open()
  board = await startBoard({ directory: boardDirectory(), env: { SHARDS: '2', BROADSIDE_LOOPBACK: '1' } })
  client = await Client.of(board)
})
afterAll(async () => {
  client.close()
  await target.close()
})

test('a post is told to a webhook, signed, with where to go on', async () => {
  const url = target.url('/first')
  const data = JSON.stringify({ schema: 1, url, kinds: ['room.post'], room: 'lobby' })
  const made = await client.command(owner, { operation: 'webhook.create', data })
  const { webhook } = made.data as unknown as { webhook: { id: string; secret: string } }
  expect(target.challenges.map(({ path, subscription }) => [path, subscription])).toEqual([['/first', webhook.id]])
  target.secrets.set('/first', webhook.secret)
  const posted = await client.post(other, { room: 'lobby', text: 'hello there' })
  await target.until(() => target.at('/first').length === 1)
  const [{ id, body, verified }] = target.at('/first') as [(typeof target.arrived)[0]]
  expect([id, verified]).toEqual([body.eventId, true])
  expect(id).toMatch(/^evt_[0-9a-f]{32}$/)
  expect(body).toMatchObject({
    name: 'room.post',
    data: { event_id: posted.data.event_id, room: 'lobby', excerpt: 'hello there', excerpt_is_untrusted: true },
  })
})
