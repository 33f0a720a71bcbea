/** Items of receive URLs that the board itself posts into a room. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { person } from '../support/client.ts'
import { ReceiverBoard } from '../support/receiver-board.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const bob = person('bob')

let receivers: ReceiverBoard

beforeAll(async () => {
  receivers = await ReceiverBoard.open()
})
afterAll(() => receivers.client.close())

/** Waits until the condition holds; the timeout of the test ends the wait. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

describe('a receive URL with post', () => {
  type Listed = {
    readonly events?: readonly { text?: string; author: { id: string; handle?: string }; via?: string }[]
  }
  const posts = async (room: string, who = ada) =>
    (
      (await receivers.client.command(who, { operation: 'events.list', room, data: '{"schema":1,"order":"asc"}' }))
        .data as Listed
    ).events!

  test('each item is posted to the room exactly once, in order, signed by the board', async () => {
    const { id, url } = await receivers.createReceiver(ada, { post: true, label: 'builds' }, { room: 'lobby' })
    for (let n = 1; n <= 5; n++) await receivers.deliver(url, `build ${n} is done`, { 'content-type': 'text/plain' })
    await receivers.deliver(url, Buffer.from([0xff, 0xfe, 0]), { 'content-type': 'image/x-icon' })
    await until(async () => (await posts('lobby')).length >= 6)
    const texts = (await posts('lobby')).map(({ text }) => text!)
    expect(texts.slice(0, 5).map((text) => text.split('\n\n')[1])).toEqual(
      [1, 2, 3, 4, 5].map((n) => `build ${n} is done`),
    )
    expect(texts[0]).toMatch(
      /^Received at builds: item 1, text\/plain, 15 bytes, not signed\. What follows was written by a stranger\./,
    )
    expect(texts[5]).toContain('It is not text')
    const { service_identity } = (await receivers.client.get('/capabilities')).data as {
      service_identity?: { id: string }
    }
    for (const { author, via } of await posts('lobby'))
      expect([author.id, author.handle, via]).toEqual([service_identity!.id, 'broadside', 'board'])
    await receivers.restart((board) => board.kill())
    await receivers.deliver(url, 'after the kill')
    await until(async () => (await posts('lobby')).length >= 7)
    expect(await posts('lobby')).toHaveLength(7)
    await receivers.remove(ada, id)
  })

  test('in private rooms of every shard items are signed by the board too, under its name', async () => {
    for (const shard of [0, 1]) {
      const room = Array.from({ length: 64 }, (_, n) => `items-${n}`).find((name) => shardOf(name, 2) === shard)!
      await receivers.client.command(ada, { operation: 'room.create', room, visibility: 'private' })
      const { id, url } = await receivers.createReceiver(ada, { post: true }, { room })
      await receivers.deliver(url, 'inside')
      await until(async () => (await posts(room)).length === 1)
      expect((await posts(room))[0]!.author.handle).toBe('broadside')
      await receivers.remove(ada, id)
    }
  })

  test('items for a private room stay there, and posting ends when the owner of the URL is removed', async () => {
    const owner = person('owner')
    await receivers.client.command(owner, {
      operation: 'room.create',
      room: 'in-private',
      visibility: 'private',
      members: [ada.id],
    })
    const { id, url } = await receivers.createReceiver(ada, { post: true }, { room: 'in-private' })
    await receivers.deliver(url, 'canary-inside')
    await until(async () => (await posts('in-private')).length === 1)
    expect((await posts('in-private'))[0]!.text).toContain('canary-inside')
    for (const path of ['/api/events?limit=200', '/v1/export', '/api/rooms', '/api/changes?after=0'])
      expect((await receivers.client.get(path)).text).not.toContain('canary-inside')
    expect(await receivers.client.command(bob, { operation: 'events.list', room: 'in-private' })).toMatchObject({
      code: 'private_room',
    })
    await receivers.client.command(owner, { operation: 'room.member.remove', room: 'in-private', target: ada.id })
    const last = await receivers.deliver(url, 'canary-outside')
    expect(last).toMatchObject({ status: 200 })
    expect((await receivers.itemsOf(ada, { target: id })).at(-1)).toMatchObject({ body: 'canary-outside' })
    // Another item after it, for a room of its owner: when that one is posted, this one has been skipped.
    const marker = await receivers.createReceiver(ada, { post: true }, { room: 'lobby' })
    const before = (await posts('lobby')).length
    await receivers.deliver(marker.url, 'marker')
    await until(async () => (await posts('lobby')).length > before)
    expect((await posts('in-private', owner)).map(({ text }) => text).join()).not.toContain('canary-outside')
  })

  test('a body that does not fit into a post is cut at a character boundary', async () => {
    const { id, url } = await receivers.createReceiver(ada, { post: true }, { room: 'long-items' }).catch(async () => {
      await receivers.client.post(ada, { room: 'long-items', text: 'made' })
      return receivers.createReceiver(ada, { post: true }, { room: 'long-items' })
    })
    await receivers.deliver(url, '€'.repeat(20_000))
    await until(async () => (await posts('long-items')).length === 2)
    const { text = '' } = (await posts('long-items')).at(-1)!
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768)
    expect(text).toMatch(/€\n\[cut here\]$/)
    expect(text).not.toContain('\u{fffd}')
    await receivers.remove(ada, id)
  })
})
