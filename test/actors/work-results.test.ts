/** What a room does about results: what can be one, who owns it, what nobody can do to it, and what the market is told. */
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { openPolicy } from '../../actors/rooms/policy.ts'
import { resultSha256 } from '../../actors/works/letters.ts'
import { type Decided, person } from '../support/shard-harness.ts'
import {
  accepted,
  claimedState,
  moderationArgs,
  postArgs,
  refusalCode,
  room,
  WorkShardHarness,
} from '../support/work-shard-harness.ts'

let shard = new WorkShardHarness()

afterEach(() => shard.expectSameAfterReplay())

function begin(visibility: 'public' | 'private' = 'public'): string {
  shard = new WorkShardHarness()
  return shard.createRoomAndRequest(visibility)
}

test('the hash of a result is that of its text, then one line for each file', () => {
  const sha = (text: string) => createHash('sha256').update(text).digest('hex')
  expect(resultSha256('done', [])).toBe(sha('done'))
  expect(resultSha256('wörd\n', ['a'.repeat(64), 'b'.repeat(64)])).toBe(
    sha(`wörd\n\n${'a'.repeat(64)}\n${'b'.repeat(64)}`),
  )
})

test('a result is a visible reply of the worker to the request, without ttl, and original', () => {
  const work = begin()
  shard.tell(work)
  const posted = (more: object, who = 'bob', text = 'mine') =>
    accepted(shard.send(who, 'post', room, { text, args: { ...postArgs, replyTo: work, ...more } })).id
  const mine = posted({})
  const fault = (result: string, who = 'bob') => shard.bind(work, result, who).fault?.code ?? 'bound'
  const hidden = posted({})
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(hidden)))
  posted({}, 'eve', 'first')
  const other = posted({}, 'eve', 'hidden copy')
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(other)))
  expect({
    unknown: fault('ab'.repeat(16)),
    others: fault(mine, 'eve'),
    request: fault(work, 'ada'),
    deeper: fault(posted({ replyTo: mine })),
    top: fault(posted({ replyTo: '' })),
    ttl: fault(posted({ ttl: 60 })),
    hidden: fault(hidden),
    copied: fault(posted({}, 'bob', 'first')),
    hiddenCopy: fault(posted({}, 'bob', 'hidden copy')),
    own: fault(posted({}, 'bob', 'mine')),
    mine: fault(mine),
  }).toEqual({
    unknown: 'not_found',
    others: 'forbidden',
    request: 'wrong_state',
    deeper: 'wrong_state',
    top: 'wrong_state',
    ttl: 'wrong_state',
    hidden: 'not_found',
    copied: 'conflict',
    hiddenCopy: 'bound',
    own: 'bound',
    mine: 'bound',
  })
  expect(shard.bind(work, mine)).toMatchObject({ id: mine, author: person('bob'), reply_to: work })
})

test('a result belongs to its first author, in any version: nobody copies it into a reply kept ready', () => {
  const work = begin()
  shard.tell(work)
  const reply = (who: string, text: string) => shard.deliver(work, text, who)
  const edit = (who: string, result: string, text: string) => shard.edit(result, text, who)
  const fault = (result: string, who: string) => shard.bind(work, result, who).fault?.code ?? 'bound'
  const [ready, spare] = [reply('eve', 'interesting'), reply('mia', 'me too')]
  const mine = reply('bob', 'the answer')
  edit('eve', ready, 'the answer')
  edit('mia', spare, 'the answer')
  expect([fault(mine, 'bob'), fault(ready, 'eve'), fault(spare, 'mia')]).toEqual(['bound', 'conflict', 'conflict'])
  // Changing it and changing it back does not make it earlier, and neither author loses what they wrote first.
  edit('eve', ready, 'another')
  edit('bob', mine, 'not yet')
  edit('eve', ready, 'the answer')
  edit('bob', mine, 'the answer')
  expect([fault(mine, 'bob'), fault(ready, 'eve')]).toEqual(['bound', 'conflict'])
  // A replaced text still belongs to its author; a better text belongs to the first to post it.
  edit('bob', mine, 'the answer, and why')
  expect([fault(ready, 'eve'), fault(reply('eve', 'the answer'), 'eve')]).toEqual(['conflict', 'conflict'])
  edit('eve', ready, 'the answer, and how')
  edit('bob', mine, 'the answer, and how')
  expect([fault(mine, 'bob'), fault(ready, 'eve')]).toEqual(['conflict', 'bound'])
  // Under another request it is another result.
  const other = shard.postRequest()
  expect(shard.bind(other, shard.deliver(other, 'the answer', 'eve'), 'eve').fault).toBeUndefined()
})

test('a result removed from its holder belongs to its first author, too', () => {
  const work = begin()
  shard.tell(work, claimedState)
  const ready = shard.deliver(work, 'soon')
  const other = shard.deliver(work, 'the answer', 'eve')
  shard.edit(ready, 'the answer')
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(ready)))
  expect(shard.bind(work, ready).fault?.code).toBe('conflict')
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(other)))
  expect(shard.bind(work, ready).fault).toBeUndefined()
})

test('a result counts as its newest version, named by any of them; a pending earlier edit is reported after it', () => {
  const work = begin()
  shard.tell(work, claimedState)
  const result = shard.deliver(work, 'draft')
  const edit = shard.edit(result, 'final')
  const { id, sha256 } = shard.bind(work, edit)
  expect([id, sha256]).toEqual([result, resultSha256('final', [])])
  shard.edit(result, 'swindle')
  expect(shard.unreported()).toEqual([])
  shard.tell(work, { ...claimedState, state: 'submitted', result, sha256: sha256! })
  const swindle = { event: 'result', change: 'edited', by: 'author' }
  expect(shard.unreported()).toEqual([{ ...swindle, sha256: resultSha256('swindle', []) }])
  shard.edit(result, 'more')
  accepted(shard.send('bob', 'event.redact', room, moderationArgs(result)))
  expect(shard.unreported().slice(1)).toEqual([
    { ...swindle, sha256: resultSha256('more', []) },
    { ...swindle, change: 'redacted' },
  ])
  expect(new Set(shard.state.bound.unreported().map((each) => each.result))).toEqual(new Set([result]))
})

test('a reply that the market did not accept is released, and may be bound again', () => {
  const work = begin()
  shard.tell(work, claimedState)
  const result = shard.deliver(work)
  const bound = accepted(shard.send('bob', 'work.bind', room, { text: 'x', args: { work, result } }))
  expect(shard.state.bound.unsettled()).toEqual([{ work, command: bound.id, result }])
  accepted(shard.send('board', 'work.unbind', room, { args: { work, command: bound.id } }))
  expect(shard.state.bound.unsettled()).toEqual([])
  expect(accepted(shard.send('board', 'work.unbind', room, { args: { work, command: bound.id } })).records).toBe(0)
  expect(shard.bind(work, result).fault).toBeUndefined()
})

test('merely asking for a reply to be bound gains nothing, whether or not the market has refused yet', () => {
  const work = begin()
  shard.tell(work)
  accepted(shard.send('ada', 'room.policy.set', room, { args: { set: { promotion: 'moderate' } } }))
  const ad = shard.deliver(work, 'a fine summary', 'eve')
  const hidden = shard.deliver(work, 'spam', 'eve')
  const screened = () => {
    const version = accepted(shard.send('eve', 'post', room, { text: 'buy', args: { ...postArgs, supersedes: ad } }))
    expect(version.reply.screen).toBe(true)
    accepted(shard.send('board', 'room.hide', room, { ...moderationArgs(ad), via: 'board' }))
    accepted(shard.send('ada', 'room.restore', room, moderationArgs(ad)))
  }
  const commands = [ad, hidden].map((result) => {
    const letter = { text: 'x', args: { work, result } }
    return accepted(shard.send('eve', 'work.bind', room, letter)).id
  })
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(hidden)))
  const unseen = () => expect(shard.bind(work, hidden, 'eve').fault?.code).toBe('not_found')
  // As it is bound; while somebody else works on it; when the market has refused it; and with a claim of her own.
  screened()
  unseen()
  shard.tell(work, claimedState)
  screened()
  unseen()
  for (const command of commands) accepted(shard.send('board', 'work.unbind', room, { args: { work, command } }))
  screened()
  unseen()
  shard.tell(work, { ...claimedState, worker: person('eve'), fence: 2 })
  unseen()
})

test('events between a bound reply and its claim are reported after the claim, and then it is delivered', () => {
  const work = begin()
  shard.tell(work)
  const result = shard.deliver(work, 'ready-made')
  const { sha256 } = shard.bind(work, result)
  shard.edit(result, 'swindle')
  const edited = resultSha256('swindle', [])
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(result)))
  shard.expectSameAfterReplay()
  const submitted = { ...claimedState, result, sha256: sha256! }
  shard.tell(work, { ...submitted, state: 'submitted' })
  expect(shard.unreported()).toEqual([
    { event: 'result', change: 'edited', by: 'author', sha256: edited },
    { event: 'result', change: 'hidden', by: 'other' },
  ])
  expect(shard.state.bound.unsettled()).toEqual([])
  // Sent back, or after a backup was restored, it is submitted again though nobody sees it.
  shard.tell(work, { ...submitted, state: 'revision' })
  expect(shard.bind(work, result)).toMatchObject({ id: result, sha256: edited })
})

test('a file of a bound reply stays until the market refuses it, or otherwise until the work is settled', () => {
  const work = begin()
  shard.tell(work)
  const file = { size: 1, filename: 'a.txt', media_type: 'text/plain', is_image: false, over_quota: false }
  const blob = accepted(shard.send('bob', 'blob.put', room, { args: { ...file, sha256: Buffer.alloc(32, 7) } })).id
  const args = { ...postArgs, replyTo: work, attachments: [blob] }
  const result = accepted(shard.send('bob', 'post', room, { text: 'see the file', args })).id
  const remove = () => refusalCode(shard.send('bob', 'blob.delete', room, { args: { target: blob, reason: '' } }))
  const command = accepted(shard.send('bob', 'work.bind', room, { text: 'x', args: { work, result } })).id
  expect(remove()).toBe('wrong_state')
  const { sha256 } = shard.bind(work, result)
  accepted(shard.send('board', 'work.unbind', room, { args: { work, command } }))
  expect(remove()).toBe('wrong_state')
  shard.tell(work, { ...claimedState, state: 'submitted', result, sha256: sha256! })
  expect(remove()).toBe('wrong_state')
  shard.tell(work, { ...claimedState, state: 'accepted', live: false, result, sha256: sha256! })
  expect(remove()).toBe('')
})

test('a reply of the worker that is no result is reserved for them once the market accepted it, and not before', () => {
  const work = begin()
  shard.tell(work, claimedState)
  const result = accepted(shard.send('bob', 'post', room, { text: 'a note', args: { ...postArgs, replyTo: work } })).id
  const command = accepted(shard.send('bob', 'work.bind', room, { text: 'x', args: { work, result } })).id
  accepted(shard.send('board', 'work.unbind', room, { args: { work, command } }))
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(result)))
  expect(shard.bind(work, result).fault?.code).toBe('not_found')
  accepted(shard.send('ada', 'room.restore', room, moderationArgs(result)))
  const { sha256 } = shard.bind(work, result)
  shard.tell(work, { ...claimedState, state: 'submitted', result, sha256: sha256! })
  const other = shard.deliver(work, 'better')
  shard.tell(work, { ...claimedState, state: 'submitted', result: other, sha256: shard.bind(work, other).sha256! })
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(result)))
  expect(shard.bind(work, result).sha256).toBe(sha256)
})

/**
 * What an owner who is the requester can do, before a result is submitted, to keep a worker from delivering or the result from counting.
 */
const hindrances: Readonly<Record<string, (result: string, work: string) => Decided | undefined>> = {
  'closes the room': () => shard.send('ada', 'room.policy.set', room, { args: { set: { closed: true } } }),
  'lets only himself write': () =>
    shard.send('ada', 'room.policy.set', room, { args: { set: { write: 'owner', reply: 'none' } } }),
  'asks for work, time and count': () =>
    shard.send('ada', 'room.policy.set', room, {
      args: { set: { proof_bits: 28, ttl_max: 60, max_events: 1, posts_per_minute: 1, closes_at: 1 } },
    }),
  'puts the worker out': () => shard.send('ada', 'room.member.remove', room, { args: { target: person('bob') } }),
  'hides the request': (_, work) => shard.send('ada', 'room.hide', room, moderationArgs(work)),
  'hides the result': (result) =>
    result === '' ? undefined : shard.send('ada', 'room.hide', room, moderationArgs(result)),
  'redacts the result': (result) =>
    result === '' ? undefined : shard.send('ada', 'event.redact', room, moderationArgs(result)),
  'redacts the request': (_, work) => shard.send('ada', 'event.redact', room, moderationArgs(work)),
}

for (const visibility of ['public', 'private'] as const) {
  for (const [name, hinder] of Object.entries(hindrances)) {
    test(`a requester who runs a ${visibility} room and ${name} does not get a result for nothing`, () => {
      const work = begin(visibility)
      shard.tell(work, claimedState)
      hinder('', work)
      const result = shard.deliver(work, 'the result')
      hinder(result, work)
      const { sha256, fault } = shard.bind(work, result)
      expect([fault, sha256]).toEqual([undefined, resultSha256('the result', [])])
      shard.tell(work, { ...claimedState, state: 'submitted', result, sha256: sha256! })
      hinder(result, work)
      for (const { event, by, change } of shard.unreported()) {
        if (event === 'result') expect([by, change === 'edited']).toEqual(['other', false])
      }
      expect(shard.state.bound.liveWorkOf(shard.state.board.rooms.get(room)!.number, person('bob'))).toBe(work)
    })
  }
}

test('only the holder of the live fence is exempt from the policy: for a result, under that request, while the work lives', () => {
  const work = begin()
  const other = accepted(shard.send('ada', 'post', room, { text: 'x', args: { ...postArgs, kind: 'request' } })).id
  shard.tell(work, claimedState)
  accepted(
    shard.send('ada', 'room.policy.set', room, {
      args: { set: { ...openPolicy, reply: 'none', promotion: 'moderate' } },
    }),
  )
  const reply = (who: string, more: object = {}) =>
    refusalCode(
      shard.send(who, 'post', room, {
        text: `by ${who}`,
        args: { ...postArgs, kind: 'result', replyTo: work, ...more },
      }),
    )
  expect(reply('eve')).toBe('room_reply_restricted')
  expect(reply('bob', { kind: 'note' })).toBe('room_reply_restricted')
  expect(reply('bob', { replyTo: other })).toBe('room_reply_restricted')
  const posted = accepted(
    shard.send('bob', 'post', room, { text: 'buy this', args: { ...postArgs, kind: 'result', replyTo: work } }),
  )
  expect(posted.reply.screen).toBeUndefined()
  // The board's own hide of it, requested before the claim, comes too late.
  expect(refusalCode(shard.send('board', 'room.hide', room, { ...moderationArgs(posted.id), via: 'board' }))).toBe(
    'wrong_state',
  )
  shard.tell(work, { state: 'open', worker: '', fence: 0, states: [] })
  expect(reply('bob')).toBe('room_reply_restricted')
  shard.tell(work, { state: 'accepted', live: false, worker: person('bob'), fence: 1, states: [] })
  expect(reply('bob')).toBe('room_reply_restricted')
})
