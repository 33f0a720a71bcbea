/** Items that go into a room: each is posted once and in order, though any answer may be lost. */

import { expect, test } from 'vitest'
import type { Actors, BoardAuthor } from '../../../src/command/ports.ts'
import { Throttle } from '../../../src/rates/throttle.ts'
import { Deliveries } from '../../../src/receive-urls/deliveries.ts'
import { ItemPosts } from '../../../src/receive-urls/item-posts.ts'

type Asked = { readonly op: string; readonly args: Readonly<Record<string, unknown>> }

const owner = 'aa'.repeat(32)
const door = { owner, delegation: '', secret: '', label: '', room: 'lobby', dedupe: 'x-name', allow: [], post: true }
const overloaded = { ok: false, refusal: { code: 'overloaded', message: '' } } as const

/** The body of an item whose record the disk cannot return. */
const damaged = 'damaged'

/** One receive URL on a board whose answers are lost where the test says so. */
function mailroom(kept: readonly string[] = []) {
  const items = [...kept]
  const names = new Map<string, number>()
  let posted = 0
  const said: string[] = []
  const later: (() => void)[] = []
  /** By operation: how many answers are replaced by `told`. */
  const lost = new Map<string, { times: number; readonly told: object | undefined }>()
  /** Commands that wait to be decided while the log stands still; reads are answered immediately. */
  const mailbox: (() => void)[] = []
  let standsStill = false
  const told = (op: string, answer: (found: unknown) => void, found: object): void => {
    const loss = lost.get(op)
    if (loss === undefined || loss.times-- <= 0) answer(found)
    else answer(loss.told)
  }
  const json = (data: object) => ({ ok: true, value: data })
  const decide = ({ op, args }: Asked) => {
    if (op === 'receiver.posted') posted = Math.max(posted, args.item as number)
    if (op !== 'receiver.deliver') return {}
    const known = names.get(args.dedupe as string)
    if (known !== undefined) return { item: known, bytes: 0, duplicate: true }
    const item = items.push(String(args.body))
    names.set(args.dedupe as string, item)
    return { item, bytes: 0 }
  }
  const page = (after: number) => {
    const next = items
      .map((body, n) => ({ item: n + 1, body, body_encoding: 'text' }))
      .filter(({ item }) => item > after)
      .slice(0, 1)
    const whole = next.filter(({ body }) => body !== damaged)
    return { items: whole, ...(whole.length < next.length ? { unreadable: 1 } : {}) }
  }
  const read = ({ op, args }: Asked, answer: (found: never) => void) => {
    const unposted = items.map((_, n) => n + 1).filter((item) => item > posted)
    const found: Readonly<Record<string, object>> = {
      'receiver.door': door,
      'receiver.room': {},
      'receiver.unposted': unposted.length === 0 ? [] : [{ receiver: 'r1', ...door, items: unposted }],
      'receiver.items': page(Number(args.after)),
    }
    told(op, answer as (found: unknown) => void, json(found[op]!))
  }
  const actors = {
    shards: 1,
    write: (letter: Asked, answer: (found: unknown) => void) => {
      const decided = () => told(letter.op, answer, { ok: true, reply: decide(letter) })
      if (!standsStill) return decided()
      if (letter.op === 'nothing') return mailbox.push(decided)
      // The wait times out, and nobody hears of the later decision.
      mailbox.push(() => decide(letter))
      answer(undefined)
    },
    readPrivate: (_shard: number, asked: Asked, answer: (found: never) => void) => read(asked, answer),
  } as unknown as Actors
  const say = ({ text }: { text: string }, _cause: unknown, answer: (reply: unknown) => void) => {
    said.push(text.split('\n\n')[1]!)
    answer({ status: 200, body: '' })
  }
  const itemPosts = new ItemPosts({
    ...{ actors, read, voice: { send: say } as unknown as BoardAuthor, isSuspended: () => false, report: () => {} },
    later: (callback) => later.push(callback),
  })
  const deliveries = new Deliveries({
    ...{ actors, limitsOn: false, now: () => 0, wallSeconds: () => 0, isThere: () => true },
    throttle: new Throttle({ on: false, now: () => 0, factors: { ofIdentity: () => 1, ofAddress: () => 1 } }),
    post: (receiver, isDecided) => itemPosts.post(receiver, isDecided),
  })
  return {
    itemPosts,
    said,
    lost,
    /** What the sender gets. */
    deliver: (name: string) =>
      new Promise<number | undefined>((resolve) =>
        deliveries.take(
          {
            ...{ receiver: 'r1', secret: 's', address: '127.0.0.1', type: '', query: '', fields: [] },
            ...{ header: () => name, body: Buffer.from(name) },
          },
          (reply) => resolve(reply?.status),
        ),
      ),
    stop: () => {
      standsStill = true
    },
    goOn: () => {
      standsStill = false
      for (const decided of mailbox.splice(0)) decided()
    },
    /** Advances the time until nothing waits. */
    async settled(): Promise<void> {
      do {
        for (const each of later.splice(0)) each()
        await new Promise((resolve) => setImmediate(resolve))
      } while (later.length > 0)
    },
  }
}

test('an item whose delivery had no answer is posted, before later ones', async () => {
  const { deliver, said, lost, settled } = mailroom()
  lost.set('receiver.deliver', { times: 1, told: undefined })
  lost.set('receiver.unposted', { times: 1, told: undefined })
  expect(await deliver('one')).toBeUndefined()
  expect(await deliver('two')).toBe(200)
  await settled()
  expect(said).toEqual(['one', 'two'])
  expect(await deliver('three')).toBe(200)
  await settled()
  expect(said).toEqual(['one', 'two', 'three'])
})

test('an item not yet decided when its delivery timed out is posted', async () => {
  const { deliver, said, lost, stop, goOn, settled } = mailroom()
  stop()
  expect([await deliver('one'), await deliver('two')]).toEqual([undefined, undefined])
  lost.set('nothing', { times: 1, told: overloaded })
  await settled()
  expect(said).toEqual([])
  goOn()
  await settled()
  expect(said).toEqual(['one', 'two'])
})

test('a repeated delivery is no second item, and an item not posted yet is posted', async () => {
  const { deliver, said, lost, settled } = mailroom()
  lost.set('receiver.deliver', { times: 1, told: undefined })
  expect([await deliver('one'), await deliver('one')]).toEqual([undefined, 200])
  await settled()
  expect(await deliver('one')).toBe(200)
  await settled()
  expect(said).toEqual(['one'])
})

test('items left by an earlier run are posted, though at first nobody can say what they are', async () => {
  const { itemPosts, said, lost, settled } = mailroom(['one', 'two'])
  lost.set('receiver.unposted', { times: 2, told: undefined })
  const resumed = itemPosts.resume()
  await settled()
  await resumed
  await settled()
  expect(said).toEqual(['one', 'two'])
})

test('an item is not given up because the board was too busy to decide whether it may be posted', async () => {
  const { deliver, said, lost, settled } = mailroom()
  lost.set('receiver.room', { times: 1, told: overloaded })
  lost.set('receiver.items', { times: 1, told: overloaded })
  expect(await deliver('one')).toBe(200)
  await settled()
  expect(said).toEqual(['one'])
})

test('an item whose record is damaged is skipped, and all later ones are posted', async () => {
  const { itemPosts, said, settled } = mailroom(['one', damaged, damaged, 'four', 'five'])
  itemPosts.post({ receiver: 'r1', owner }, true)
  await settled()
  expect(said).toEqual(['one', 'four', 'five'])
})
