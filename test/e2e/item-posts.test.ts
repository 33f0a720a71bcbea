/** Items of receive URLs that the board itself posts into a room. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { shardOf } from '../../actors/shard.ts'
import { person } from '../support/client.ts'
import { Mailroom } from '../support/mailroom.ts'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })

const ada = person('ada')
const bob = person('bob')

let mail: Mailroom

beforeAll(async () => {
  mail = await Mailroom.open()
})
afterAll(() => mail.client.close())

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
      (await mail.client.command(who, { operation: 'events.list', room, data: '{"schema":1,"order":"asc"}' }))
        .data as Listed
    ).events!

  test('each item is posted to the room exactly once, in order, signed by the board', async () => {
    const { id, url } = await mail.made(ada, { post: true, label: 'builds' }, { room: 'lobby' })
    for (let n = 1; n <= 5; n++) await mail.deliver(url, `build ${n} is done`, { 'content-type': 'text/plain' })
    await mail.deliver(url, Buffer.from([0xff, 0xfe, 0]), { 'content-type': 'image/x-icon' })
    await until(async () => (await posts('lobby')).length >= 6)
    const texts = (await posts('lobby')).map(({ text }) => text!)
    expect(texts.slice(0, 5).map((text) => text.split('\n\n')[1])).toEqual(
      [1, 2, 3, 4, 5].map((n) => `build ${n} is done`),
    )
    expect(texts[0]).toMatch(
      /^Received at builds: item 1, text\/plain, 15 bytes, not signed\. What follows was written by a stranger\./,
    )
    expect(texts[5]).toContain('It is not text')
    const { service_identity } = (await mail.client.get('/capabilities')).data as { service_identity?: { id: string } }
    for (const { author, via } of await posts('lobby'))
      expect([author.id, author.handle, via]).toEqual([service_identity!.id, 'broadside', 'board'])
    await mail.again((board) => board.kill())
    await mail.deliver(url, 'after the kill')
    await until(async () => (await posts('lobby')).length >= 7)
    expect(await posts('lobby')).toHaveLength(7)
    await mail.remove(ada, id)
  })

  test('in private rooms of every shard items are signed by the board too, under its name', async () => {
    for (const shard of [0, 1]) {
      const room = Array.from({ length: 64 }, (_, n) => `items-${n}`).find((name) => shardOf(name, 2) === shard)!
      await mail.client.command(ada, { operation: 'room.create', room, visibility: 'private' })
      const { id, url } = await mail.made(ada, { post: true }, { room })
      await mail.deliver(url, 'inside')
      await until(async () => (await posts(room)).length === 1)
      expect((await posts(room))[0]!.author.handle).toBe('broadside')
      await mail.remove(ada, id)
    }
  })

  test('items for a private room stay there, and posting ends when the owner of the URL is removed', async () => {
    const owner = person('owner')
    await mail.client.command(owner, {
      operation: 'room.create',
      room: 'in-private',
      visibility: 'private',
      members: [ada.id],
    })
    const { id, url } = await mail.made(ada, { post: true }, { room: 'in-private' })
    await mail.deliver(url, 'canary-inside')
    await until(async () => (await posts('in-private')).length === 1)
    expect((await posts('in-private'))[0]!.text).toContain('canary-inside')
    for (const path of ['/api/events?limit=200', '/v1/export', '/api/rooms', '/api/changes?after=0'])
      expect((await mail.client.get(path)).text).not.toContain('canary-inside')
    expect(await mail.client.command(bob, { operation: 'events.list', room: 'in-private' })).toMatchObject({
      code: 'private_room',
    })
    await mail.client.command(owner, { operation: 'room.member.remove', room: 'in-private', target: ada.id })
    const last = await mail.deliver(url, 'canary-outside')
    expect(last).toMatchObject({ status: 200 })
    expect((await mail.itemsOf(ada, { target: id })).at(-1)).toMatchObject({ body: 'canary-outside' })
    // Another item after it, for a room of its owner: when that one is posted, this one has been skipped.
    const marker = await mail.made(ada, { post: true }, { room: 'lobby' })
    const before = (await posts('lobby')).length
    await mail.deliver(marker.url, 'marker')
    await until(async () => (await posts('lobby')).length > before)
    expect((await posts('in-private', owner)).map(({ text }) => text).join()).not.toContain('canary-outside')
  })

  test('a body that does not fit into a post is cut at a character boundary', async () => {
    const { id, url } = await mail.made(ada, { post: true }, { room: 'long-items' }).catch(async () => {
      await mail.client.post(ada, { room: 'long-items', text: 'made' })
      return mail.made(ada, { post: true }, { room: 'long-items' })
    })
    await mail.deliver(url, '€'.repeat(20_000))
    await until(async () => (await posts('long-items')).length === 2)
    const { text = '' } = (await posts('long-items')).at(-1)!
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(32_768)
    expect(text).toMatch(/€\n\[cut here\]$/)
    expect(text).not.toContain('\u{fffd}')
    await mail.remove(ada, id)
  })
})
