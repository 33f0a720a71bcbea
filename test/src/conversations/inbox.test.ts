/** Pages of an inbox: complete, newest first, whatever it holds; and each page walks a bounded part of it. */

import { expect, test } from 'vitest'
import { fromFrame, toFrame } from '../../../actors/records/record.ts'
import { directReads } from '../../../src/conversations/reads.ts'
import { dataOf, type ReadContext } from '../../../src/reads/read.ts'
import { person, ShardHarness } from '../../support/shard-harness.ts'

const plain = { page: '', kind: '', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }

function post(shard: ShardHarness, who: string, room: string, replyTo = ''): string {
  const said = shard.send(who, 'post', room, { text: 'words', args: { ...plain, replyTo } })
  if (!said.ok) throw new Error(said.refusal.message)
  return said.id
}

function privateRoom(shard: ShardHarness, room: string): void {
  const args = { visibility: 'private', members: [person('ben')], text: '' }
  shard.send('ann', 'room.create', room, { args })
}

/** As the shard of private rooms reads them. */
function contextOf(shard: ShardHarness): ReadContext {
  const { state } = shard
  const { board } = state
  const frame = (seq: number) => {
    const { record, key } = shard.records[seq - 1]!
    const made = toFrame(record, key, false, [])
    return { ...made, seq, payload: Buffer.from(made.payload) }
  }
  const context = {
    ...{ state, board, generation: '', serviceId: '', visibility: 'private' as const, now: () => shard.now },
    body: (slot: number) => frame(board.events.place(slot)),
    frame: (_shard: number, seq: number) => frame(seq),
    blobFile: () => undefined,
    cursors: {
      seal: (_list: string, place: unknown) => String(place),
      open: (_list: string, text: string) => text,
      openKept: (_list: string, text: string) => text,
    },
    handleOf: () => undefined,
  }
  expect(fromFrame(frame(1))).toBeTruthy()
  return context as unknown as ReadContext
}

/** Ids of the events on each page. */
function pages(shard: ShardHarness, limit: number): string[][] {
  const context = contextOf(shard)
  const found: string[][] = []
  for (let cursor: string | undefined, more = true; more; ) {
    const args = { limit, ...(cursor === undefined ? {} : { cursor }) }
    const answer = directReads['inbox.get'](context, { op: 'inbox.get', args, reader: person('ben') })
    if (!answer.ok) throw new Error('the inbox was not read')
    const { items, reached } = dataOf(answer)
    const events = items.slice(0, limit).map(({ item }) => (item as { event: { event_id: string } }).event.event_id)
    found.push(events)
    const last = items.length > limit ? items[limit - 1]! : reached
    expect(last?.cursor).not.toBe(cursor ?? '')
    cursor = last?.cursor
    more = cursor !== undefined
  }
  return found
}

test('replies in a room that the reader has left end a page early, and older ones follow', () => {
  const shard = new ShardHarness()
  privateRoom(shard, 'kept')
  privateRoom(shard, 'lost')
  const mine = post(shard, 'ben', 'kept')
  const old = post(shard, 'ann', 'kept', mine)
  const theirs = post(shard, 'ben', 'lost')
  for (let n = 0; n < 45_000; n++) {
    if (n % 1_000 === 0) shard.now++
    post(shard, 'ann', 'lost', theirs)
  }
  const newest = post(shard, 'ann', 'kept', mine)
  expect(shard.send('ann', 'room.member.remove', 'lost', { args: { target: person('ben') } }).ok).toBe(true)
  const found = pages(shard, 10)
  expect(found.flat()).toEqual([newest, old])
  expect(found.length).toBeGreaterThanOrEqual(3)
  expect(found.length).toBeLessThan(6)
})

test('the pages of an inbox are complete, newest first, though clocks went back while it grew', () => {
  const shard = new ShardHarness()
  privateRoom(shard, 'kept')
  const mine = post(shard, 'ben', 'kept')
  const told: { readonly id: string; readonly at: number; readonly n: number }[] = []
  const began = shard.now
  for (let n = 0; n < 2_000; n++) {
    shard.now = began + 500 * n - (n % 7) * 10_000
    told.push({ id: post(shard, 'ann', 'kept', mine), at: shard.now, n })
  }
  const expected = told.sort((a, b) => b.at - a.at || b.n - a.n).map(({ id }) => id)
  expect(pages(shard, 60).flat()).toEqual(expected)
})
