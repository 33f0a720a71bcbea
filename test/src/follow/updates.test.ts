/**
 * The contract of updates.get, against a board made of arrays: in any order of posts, news, reads, answers and disconnects, every follower
 * gets everything it may get exactly once, in the order of each source.
 */

import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/clock.ts'
import { Outbox } from '../../../src/follow/outbox.ts'
import type { PushedRow, Update, UpdatesPage, UpdatesRequest } from '../../../src/follow/rows.ts'
import { Updates } from '../../../src/follow/updates.ts'
import { CursorSealer } from '../../../src/format/cursor.ts'
import { bodyOf, type Reply } from '../../../src/format/reply.ts'

const shards = 2
const rooms = ['one', 'two']
const key = new Uint8Array(32).fill(7)

type Row = { readonly position: number; readonly room: string; readonly names: readonly string[] }

/** The feed (source 0) or a shard: rows at increasing positions, some of them with two updates or none. */
class Source {
  readonly rows: Row[] = []
  position = 0
  /** The first row that was not pushed. */
  unpushed = 0

  append(room: string, names: readonly string[]): void {
    this.rows.push({ position: ++this.position, room, names })
  }

  page({ from, rooms: wanted, limit }: UpdatesRequest, rowsMax: number): UpdatesPage {
    const end = { next: this.position + 1, taken: 0 }
    const start = from ?? end
    const updates: Update[] = []
    let looked = 0
    for (const { position, room, names } of this.rows) {
      if (position < start.next) continue
      if (looked++ === rowsMax)
        return { ok: true, updates, end: { next: position, taken: 0 }, more: true, blocked: [], muted: [] }
      for (const [nth, name] of names.entries()) {
        if (position === start.next && nth < start.taken) continue
        if (wanted.length > 0 && !wanted.includes(room)) continue
        if (updates.length === limit)
          return { ok: true, updates, end: { next: position, taken: nth }, more: true, blocked: [], muted: [] }
        updates.push({ json: JSON.stringify(name), at: position, next: position, taken: nth + 1 })
      }
    }
    return { ok: true, updates, end, more: false, blocked: [], muted: [] }
  }
}

const pushed = ({ room, names, position }: Row): PushedRow[] =>
  names.map((name) => ({ position, type: 'event.posted', room, json: JSON.stringify(name) }))

type Follower = {
  readonly reader: string
  readonly rooms: readonly string[]
  readonly limit: number
  readonly wait: number
  cursor: string
  readonly heard: string[]
  /** Disconnects when called; undefined while it requests nothing. */
  gone: (() => void) | undefined
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      source: fc.nat(shards),
      room: fc.constantFrom(...rooms),
      count: fc.nat(2),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('push' as const), source: fc.nat(shards), isWhole: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('poll' as const), follower: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), follower: fc.nat(5) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('read' as const), which: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('tell' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('reach' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('later' as const) }) },
)

test('every follower gets everything once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 120 }), fc.integer({ min: 1, max: 4 }), async (steps, rowsMax) => {
      const sources = Array.from({ length: shards + 1 }, () => new Source())
      const reads: (() => void)[] = []
      const news: (() => void)[] = []
      const followed = new Set<string>()
      /** Notifications that have not reached their sources yet. Requests arrive after earlier notifications. */
      const tells: (() => void)[] = []
      const reach = (count: number) => {
        for (const tell of tells.splice(0, count)) tell()
      }
      let clock = 0
      let heardOf = 0
      let named = 0
      const read = (source: number) => (request: UpdatesRequest, answer: (page: UpdatesPage) => void) =>
        reads.push(() => {
          reach(tells.length)
          answer(sources[source]!.page(request, rowsMax))
        })
      const updates = new Updates({
        shards,
        epoch: { generation: '0'.repeat(32), layout: '' },
        cursors: new CursorSealer(key),
        // Whether a room may be followed is reported later than events in it.
        rooms: {
          may: (asked, _reader, answer) => (asked.length === 0 ? answer('yes') : reads.push(() => answer('yes'))),
        },
        read: (source, request, answer) => read(source)(request, answer),
        tell: ([kind, topic]) =>
          tells.push(() => (kind === 'follow' ? followed.add(topic.join(' ')) : followed.delete(topic.join(' ')))),
        handleOf: () => '',
        standing: () => undefined,
        newest: () => heardOf,
        waitersMax: 100,
        waitsPerAddress: 100,
        now: () => clock,
        timers: systemClock,
        outbox: new Outbox(systemClock),
      })
      const followers = Array.from({ length: 6 }, (_, n): Follower => {
        // Three share a filter and so a channel; one names a room; two are signed.
        const wanted = n % 5 < 3 ? [] : [rooms[n % 2]!]
        const reader = n < 4 ? '' : n === 4 ? 'ada' : 'ben'
        const limit = n < 3 ? 2 : 1 + (n % 3)
        const wait = n % 2 === 0 ? 55 : 1
        return { reader, rooms: wanted, limit, wait, cursor: '', heard: [], gone: undefined }
      })
      const poll = (follower: Follower, waitSeconds = follower.wait): void => {
        if (follower.gone !== undefined) return
        let isGone = false
        let stop = (): void => {}
        follower.gone = () => {
          isGone = true
          follower.gone = undefined
          stop()
        }
        const { reader, rooms: wanted, limit, cursor } = follower
        const onGone = (callback: () => void) => {
          stop = callback
        }
        const respond = (reply: Reply | undefined): void => {
          if (isGone) return
          follower.gone = undefined
          const { data } = JSON.parse(bodyOf(reply!)) as { data: { updates: string[]; cursor: string } }
          expect(data.updates.length).toBeLessThanOrEqual(limit)
          follower.heard.push(...data.updates)
          follower.cursor = data.cursor
        }
        updates.poll(
          {
            cursor,
            waitSeconds,
            rooms: wanted,
            kinds: [],
            limit,
            reader,
            key: '',
            address: '',
            roomsField: 'data.rooms',
            onGone,
          },
          respond,
        )
      }
      /** News arrives in order, and later than the events. It covers what was followed when it was made. */
      const push = (source: number, isWhole: boolean): void => {
        const { rows: all, unpushed, position: through } = sources[source]!
        const fresh = all.slice(unpushed)
        sources[source]!.unpushed = all.length
        if (fresh.length === 0) return
        if (source > 0) {
          const readers = ['ada', 'ben'].filter((reader) => followed.has(`reader ${reader}`))
          const rows = isWhole ? fresh.flatMap(pushed).map((row) => ({ ...row, readers })) : []
          const concerned = readers.map((reader) => [reader, []] as const)
          if (readers.length > 0)
            news.push(() => updates.waits.changedInShard(source - 1, { through, rows, isWhole }, concerned))
          return
        }
        const isFollowed = (room: string) => followed.has(`room ${room}`)
        const rows = isWhole ? fresh.filter(({ room }) => isFollowed('') || isFollowed(room)).flatMap(pushed) : []
        const told = { through, rows, isWhole, followed: isFollowed('') ? [''] : rooms.filter(isFollowed) }
        news.push(() => {
          heardOf = Math.max(heardOf, through)
          updates.waits.changed([...new Map(fresh.map(({ room, position }) => [room, position]))], told)
        })
      }
      /** Everything in progress completes. */
      const settle = async (): Promise<void> => {
        do {
          for (const source of sources.keys()) push(source, true)
          reach(tells.length)
          for (const tell of news.splice(0)) tell()
          for (const answer of reads.splice(0)) answer()
          await turn()
        } while (news.length + reads.length > 0)
      }
      // Every follower begins at nothing.
      for (const follower of followers) poll(follower, 0)
      await settle()

      for (const each of steps) {
        if (each.do === 'append') {
          const names = Array.from({ length: each.count }, () => `${each.source} ${named++}`)
          sources[each.source]!.append(each.room, names)
        } else if (each.do === 'push') push(each.source, each.isWhole)
        else if (each.do === 'poll') poll(followers[each.follower]!)
        else if (each.do === 'leave') followers[each.follower]!.gone?.()
        else if (each.do === 'read') reads.splice(each.which, 1)[0]?.()
        else if (each.do === 'tell') news.splice(0, 1)[0]?.()
        else if (each.do === 'reach') reach(1)
        else clock += 2_000
        await turn()
      }
      const wantedBy = ({ reader, rooms: wanted }: Follower) =>
        sources
          .slice(0, reader === '' ? 1 : shards + 1)
          .map(({ rows }) =>
            rows.filter(({ room }) => wanted.length === 0 || wanted.includes(room)).flatMap(({ names }) => names),
          )
      for (let round = 0; round < 200; round++) {
        await settle()
        for (const follower of followers) poll(follower)
        await settle()
        if (followers.every((each) => each.heard.length >= wantedBy(each).flat().length)) break
      }
      for (const follower of followers) {
        const bySource = wantedBy(follower).map((_, source) =>
          follower.heard.filter((name) => name.startsWith(`${source} `)),
        )
        expect(bySource).toEqual(wantedBy(follower))
      }
      for (const follower of followers) follower.gone?.()
      expect(updates.waiting).toBe(0)
      reach(tells.length)
      expect(followed.size).toBe(0)
      updates.close()
    }),
    { numRuns: 1_500 },
  )
}, 300_000)

test('a push that arrives after the page of a read repeats nothing of that page', async () => {
  const source = new Source()
  const reads: (() => void)[] = []
  let heardOf = 0
  const updates = new Updates({
    shards,
    epoch: { generation: '0'.repeat(32), layout: '' },
    cursors: new CursorSealer(key),
    rooms: { may: (_rooms, _reader, answer) => answer('yes') },
    read: (_source, request, answer) => reads.push(() => answer(source.page(request, 100))),
    tell: () => {},
    handleOf: () => '',
    standing: () => undefined,
    newest: () => heardOf,
    waitersMax: 100,
    waitsPerAddress: 100,
    now: () => 0,
    timers: systemClock,
    outbox: new Outbox(systemClock),
  })
  const push = (): void => {
    const rows = source.rows.slice(source.unpushed).flatMap(pushed)
    source.unpushed = source.rows.length
    heardOf = source.position
    updates.waits.changed([['one', heardOf]], { through: heardOf, rows, isWhole: true, followed: [''] })
  }
  const answers: string[][] = []
  let cursor = ''
  const poll = (waitSeconds: number, limit: number): void => {
    const asked = { cursor, waitSeconds, rooms: [], kinds: [], limit, reader: '', key: '', address: '' }
    updates.poll({ ...asked, roomsField: 'room', onGone: () => {} }, (reply) => {
      const { data } = JSON.parse(bodyOf(reply!)) as { data: { updates: string[]; cursor: string } }
      cursor = data.cursor
      answers.push(data.updates)
    })
  }
  const settle = async (): Promise<void> => {
    for (const answer of reads.splice(0)) answer()
    await turn()
    await turn()
  }
  poll(0, 2)
  await settle()
  source.append('one', ['a'])
  push()
  // The source is ahead of its news.
  source.append('one', ['b', 'c'])
  for (const limit of [2, 2, 50]) {
    poll(55, limit)
    await settle()
  }
  expect(answers).toEqual([[], ['a', 'b'], ['c']])
  source.append('one', ['d'])
  push()
  await settle()
  expect(answers.slice(3)).toEqual([['d']])
  updates.close()
})
