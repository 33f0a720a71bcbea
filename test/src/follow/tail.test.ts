/**
 * A follower of a private room while the thread of the room dies and another starts: the new one hears of that follower, and of no earlier
 * one.
 */

import { expect, test } from 'vitest'
import type { Change } from '../../../actors/records/board.ts'
import { systemClock } from '../../../src/clock.ts'
import type { Backfill, BackfillRequest } from '../../../src/follow/backfill.ts'
import { Outbox } from '../../../src/follow/outbox.ts'
import { Tails } from '../../../src/follow/tail-routes.ts'
import type { Live } from '../../../src/follow/topics.ts'
import type { ByteStream, Exchange } from '../../../src/http/port.ts'
import type { ReadContext } from '../../../src/reads/read.ts'
import { Publisher } from '../../../src/workers/publisher.ts'
import { FailedRead } from '../../../storage/disk.ts'

const past: Backfill = { ok: true, bytes: Buffer.from('past'), after: 0, more: false, change: 1 }

/** Tails of a board whose shards the test plays: what the live one was told, and what it was asked. */
function actorHost() {
  let told: string[] = []
  let asked: ((found: Backfill | undefined) => void)[] = []
  const tails = new Tails({
    backfill: (_request: BackfillRequest, answer) => asked.push(answer),
    tell: ([kind, topic]) => told.push(`${kind} ${topic.slice(2).join(' ')}`),
    openToken: (text) => ({ room: 'den', reader: text, key: '' }),
    standing: () => undefined,
    rooms: { may: () => {} },
    refuse: () => {},
    addressOf: () => '127.0.0.1',
    streamsPerAddress: 10,
    now: () => 0,
    timers: systemClock,
    outbox: new Outbox(systemClock),
    queueBytesMax: 1_000,
    stallMs: 1_000,
    lastMax: 100,
  })
  return {
    tails,
    told: () => told,
    /** Answers what was requested. */
    answer: () => {
      for (const each of asked.splice(0)) each(past)
    },
    /** The thread dies: requests to it stay unanswered. */
    die: () => {
      const open = asked
      told = []
      asked = []
      tails.losePrivate((room) => room === 'den')
      for (const each of open) each(undefined)
    },
  }
}

/** A reader's connection. The test ends it, as that of a reader that takes nothing. */
function reader(name: string) {
  const got: string[] = []
  let closed = () => {}
  const stream: ByteStream = {
    write: (chunk) => got.push(Buffer.from(chunk).toString()) > 0,
    onDrain: () => {},
    onClose: (callback) => {
      closed = callback
    },
    end: () => {},
    close: () => {},
    blockedSince: undefined,
  }
  const exchange = {
    query: `token=${name}`,
    header: () => undefined,
    ended: false,
    stream: () => stream,
    drop: () => got.push('dropped'),
  }
  return { exchange: exchange as unknown as Exchange, got, gone: () => closed() }
}

test('a follower that arrives between two threads is registered with the new one, whoever leaves later', () => {
  const { tails, told, answer, die } = actorHost()
  const [before, early, back] = [reader('before'), reader('early'), reader('back')]
  tails.handle(before.exchange, 'den')
  answer()
  tails.handle(early.exchange, 'den')
  expect(told()).toEqual(['follow block before', 'follow block early'])
  die()
  expect(before.got.at(-1)).toContain('an internal error closed this stream')
  expect(early.got).toEqual(['dropped'])
  tails.handle(back.exchange, 'den')
  before.gone()
  answer()
  expect(told()).toEqual(['follow block back'])
  tails.deliverPrivate('den', 'block', 2, Buffer.from('news'))
  return expect
    .poll(() => back.got.at(-1))
    .toBe('news')
    .then(() => {
      back.gone()
      expect(told()).toEqual(['follow block back', 'unfollow block back'])
    })
})

test('a tail ends when the disk does not return new events, and says how to resume: it skips nothing', async () => {
  const { tails, answer } = actorHost()
  const [stranger, member] = [reader('public'), reader('member')]
  tails.handle({ ...stranger.exchange, query: '' }, 'lobby')
  tails.handle(member.exchange, 'den')
  answer()
  const sent: Live[] = []
  const board = { rooms: new Map(), roomList: [{ name: 'den', visibility: 'private' }] }
  const context = {
    board,
    visibility: 'private',
    state: {},
    body: () => {
      throw new FailedRead({ path: '/d/1.log', offset: 64, expected: 'frame 1', frame: 1 })
    },
    fault: () => 'its record is damaged',
  }
  const publisher = new Publisher(
    () => {},
    context as unknown as ReadContext,
    (live) => sent.push(live),
  )
  publisher.receive(['follow', ['tail', 'den', 'block', 'member']])
  publisher.publish({ kind: 'event.posted', room: 0, position: 2, slot: 0, subject: 0 } as unknown as Change)
  for (const [, room, format, position, bytes] of sent) tails.deliverPrivate(room, format, position, bytes)
  expect(member.got.at(-1)).toContain('Reconnect with ?since=')
  expect(stranger.got.at(-1)).toBe('past')
})
