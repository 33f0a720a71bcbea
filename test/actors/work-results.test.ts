/** What a room does about results: what can be one, who owns it, what nobody can do to it, and what the market is told. */
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { openPolicy } from '../../actors/rooms/policy.ts'
import { resultSha256 } from '../../actors/works/letters.ts'
import { type Decided, person } from '../support/desk.ts'
import { about, claimed, code, good, post, room, WorkDesk } from '../support/work-desk.ts'

let desk = new WorkDesk()

afterEach(() => desk.expectSameAgain())

function begin(visibility: 'public' | 'private' = 'public'): string {
  desk = new WorkDesk()
  return desk.begin(visibility)
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
  desk.tell(work)
  const posted = (more: object, who = 'bob', text = 'mine') =>
    good(desk.say(who, 'post', room, { text, args: { ...post, replyTo: work, ...more } })).id
  const mine = posted({})
  const fault = (result: string, who = 'bob') => desk.bind(work, result, who).fault?.code ?? 'bound'
  const hidden = posted({})
  good(desk.say('ada', 'room.hide', room, about(hidden)))
  posted({}, 'eve', 'first')
  const other = posted({}, 'eve', 'hidden copy')
  good(desk.say('ada', 'room.hide', room, about(other)))
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
  expect(desk.bind(work, mine)).toMatchObject({ id: mine, author: person('bob'), reply_to: work })
})

test('a result belongs to its first author, in any version: nobody copies it into a reply kept ready', () => {
  const work = begin()
  desk.tell(work)
  const reply = (who: string, text: string) => desk.deliver(work, text, who)
  const edit = (who: string, result: string, text: string) => desk.edit(result, text, who)
  const fault = (result: string, who: string) => desk.bind(work, result, who).fault?.code ?? 'bound'
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
  const other = desk.ask()
  expect(desk.bind(other, desk.deliver(other, 'the answer', 'eve'), 'eve').fault).toBeUndefined()
})

test('a result removed from its holder belongs to its first author, too', () => {
  const work = begin()
  desk.tell(work, claimed)
  const ready = desk.deliver(work, 'soon')
  const other = desk.deliver(work, 'the answer', 'eve')
  desk.edit(ready, 'the answer')
  good(desk.say('ada', 'room.hide', room, about(ready)))
  expect(desk.bind(work, ready).fault?.code).toBe('conflict')
  good(desk.say('ada', 'room.hide', room, about(other)))
  expect(desk.bind(work, ready).fault).toBeUndefined()
})

test('a result counts as its newest version, named by any of them; a pending earlier edit is reported after it', () => {
  const work = begin()
  desk.tell(work, claimed)
  const result = desk.deliver(work, 'draft')
  const edit = desk.edit(result, 'final')
  const { id, sha256 } = desk.bind(work, edit)
  expect([id, sha256]).toEqual([result, resultSha256('final', [])])
  desk.edit(result, 'swindle')
  expect(desk.heard()).toEqual([])
  desk.tell(work, { ...claimed, state: 'submitted', result, sha256: sha256! })
  const swindle = { event: 'result', change: 'edited', by: 'author' }
  expect(desk.heard()).toEqual([{ ...swindle, sha256: resultSha256('swindle', []) }])
  desk.edit(result, 'more')
  good(desk.say('bob', 'event.redact', room, about(result)))
  expect(desk.heard().slice(1)).toEqual([
    { ...swindle, sha256: resultSha256('more', []) },
    { ...swindle, change: 'redacted' },
  ])
  expect(new Set(desk.state.bound.unreported().map((each) => each.result))).toEqual(new Set([result]))
})

test('a reply that the market did not accept is released, and may be bound again', () => {
  const work = begin()
  desk.tell(work, claimed)
  const result = desk.deliver(work)
  const bound = good(desk.say('bob', 'work.bind', room, { text: 'x', args: { work, result } }))
  expect(desk.state.bound.unsettled()).toEqual([{ work, command: bound.id, result }])
  good(desk.say('board', 'work.unbind', room, { args: { work, command: bound.id } }))
  expect(desk.state.bound.unsettled()).toEqual([])
  expect(good(desk.say('board', 'work.unbind', room, { args: { work, command: bound.id } })).records).toBe(0)
  expect(desk.bind(work, result).fault).toBeUndefined()
})

test('merely asking for a reply to be bound gains nothing, whether or not the market has refused yet', () => {
  const work = begin()
  desk.tell(work)
  good(desk.say('ada', 'room.policy.set', room, { args: { set: { promotion: 'moderate' } } }))
  const ad = desk.deliver(work, 'a fine summary', 'eve')
  const hidden = desk.deliver(work, 'spam', 'eve')
  const screened = () => {
    const version = good(desk.say('eve', 'post', room, { text: 'buy', args: { ...post, supersedes: ad } }))
    expect(version.reply.screen).toBe(true)
    good(desk.say('board', 'room.hide', room, { ...about(ad), via: 'board' }))
    good(desk.say('ada', 'room.restore', room, about(ad)))
  }
  const commands = [ad, hidden].map((result) => {
    const letter = { text: 'x', args: { work, result } }
    return good(desk.say('eve', 'work.bind', room, letter)).id
  })
  good(desk.say('ada', 'room.hide', room, about(hidden)))
  const unseen = () => expect(desk.bind(work, hidden, 'eve').fault?.code).toBe('not_found')
  // As it is bound; while somebody else works on it; when the market has refused it; and with a claim of her own.
  screened()
  unseen()
  desk.tell(work, claimed)
  screened()
  unseen()
  for (const command of commands) good(desk.say('board', 'work.unbind', room, { args: { work, command } }))
  screened()
  unseen()
  desk.tell(work, { ...claimed, worker: person('eve'), fence: 2 })
  unseen()
})

test('events between a bound reply and its claim are reported after the claim, and then it is delivered', () => {
  const work = begin()
  desk.tell(work)
  const result = desk.deliver(work, 'ready-made')
  const { sha256 } = desk.bind(work, result)
  desk.edit(result, 'swindle')
  const edited = resultSha256('swindle', [])
  good(desk.say('ada', 'room.hide', room, about(result)))
  desk.expectSameAgain()
  const submitted = { ...claimed, result, sha256: sha256! }
  desk.tell(work, { ...submitted, state: 'submitted' })
  expect(desk.heard()).toEqual([
    { event: 'result', change: 'edited', by: 'author', sha256: edited },
    { event: 'result', change: 'hidden', by: 'other' },
  ])
  expect(desk.state.bound.unsettled()).toEqual([])
  // Sent back, or after a backup was restored, it is submitted again though nobody sees it.
  desk.tell(work, { ...submitted, state: 'revision' })
  expect(desk.bind(work, result)).toMatchObject({ id: result, sha256: edited })
})

test('a file of a bound reply stays until the market refuses it, or otherwise until the work is settled', () => {
  const work = begin()
  desk.tell(work)
  const file = { size: 1, filename: 'a.txt', media_type: 'text/plain', is_image: false, over_quota: false }
  const blob = good(desk.say('bob', 'blob.put', room, { args: { ...file, sha256: Buffer.alloc(32, 7) } })).id
  const args = { ...post, replyTo: work, attachments: [blob] }
  const result = good(desk.say('bob', 'post', room, { text: 'see the file', args })).id
  const remove = () => code(desk.say('bob', 'blob.delete', room, { args: { target: blob, reason: '' } }))
  const command = good(desk.say('bob', 'work.bind', room, { text: 'x', args: { work, result } })).id
  expect(remove()).toBe('wrong_state')
  const { sha256 } = desk.bind(work, result)
  good(desk.say('board', 'work.unbind', room, { args: { work, command } }))
  expect(remove()).toBe('wrong_state')
  desk.tell(work, { ...claimed, state: 'submitted', result, sha256: sha256! })
  expect(remove()).toBe('wrong_state')
  desk.tell(work, { ...claimed, state: 'accepted', live: false, result, sha256: sha256! })
  expect(remove()).toBe('')
})

test('a reply of the worker that is no result is reserved for them once the market accepted it, and not before', () => {
  const work = begin()
  desk.tell(work, claimed)
  const result = good(desk.say('bob', 'post', room, { text: 'a note', args: { ...post, replyTo: work } })).id
  const command = good(desk.say('bob', 'work.bind', room, { text: 'x', args: { work, result } })).id
  good(desk.say('board', 'work.unbind', room, { args: { work, command } }))
  good(desk.say('ada', 'room.hide', room, about(result)))
  expect(desk.bind(work, result).fault?.code).toBe('not_found')
  good(desk.say('ada', 'room.restore', room, about(result)))
  const { sha256 } = desk.bind(work, result)
  desk.tell(work, { ...claimed, state: 'submitted', result, sha256: sha256! })
  const other = desk.deliver(work, 'better')
  desk.tell(work, { ...claimed, state: 'submitted', result: other, sha256: desk.bind(work, other).sha256! })
  good(desk.say('ada', 'room.hide', room, about(result)))
  expect(desk.bind(work, result).sha256).toBe(sha256)
})

/**
 * What an owner who is the requester can do, before a result is submitted, to keep a worker from delivering or the result from counting.
 */
const hindrances: Readonly<Record<string, (result: string, work: string) => Decided | undefined>> = {
  'closes the room': () => desk.say('ada', 'room.policy.set', room, { args: { set: { closed: true } } }),
  'lets only himself write': () =>
    desk.say('ada', 'room.policy.set', room, { args: { set: { write: 'owner', reply: 'none' } } }),
  'asks for work, time and count': () =>
    desk.say('ada', 'room.policy.set', room, {
      args: { set: { proof_bits: 28, ttl_max: 60, max_events: 1, posts_per_minute: 1, closes_at: 1 } },
    }),
  'puts the worker out': () => desk.say('ada', 'room.member.remove', room, { args: { target: person('bob') } }),
  'hides the request': (_, work) => desk.say('ada', 'room.hide', room, about(work)),
  'hides the result': (result) => (result === '' ? undefined : desk.say('ada', 'room.hide', room, about(result))),
  'redacts the result': (result) => (result === '' ? undefined : desk.say('ada', 'event.redact', room, about(result))),
  'redacts the request': (_, work) => desk.say('ada', 'event.redact', room, about(work)),
}

for (const visibility of ['public', 'private'] as const) {
  for (const [name, hinder] of Object.entries(hindrances)) {
    test(`a requester who runs a ${visibility} room and ${name} does not get a result for nothing`, () => {
      const work = begin(visibility)
      desk.tell(work, claimed)
      hinder('', work)
      const result = desk.deliver(work, 'the result')
      hinder(result, work)
      const { sha256, fault } = desk.bind(work, result)
      expect([fault, sha256]).toEqual([undefined, resultSha256('the result', [])])
      desk.tell(work, { ...claimed, state: 'submitted', result, sha256: sha256! })
      hinder(result, work)
      for (const { event, by, change } of desk.heard()) {
        if (event === 'result') expect([by, change === 'edited']).toEqual(['other', false])
      }
      expect(desk.state.bound.liveWorkOf(desk.state.board.rooms.get(room)!.number, person('bob'))).toBe(work)
    })
  }
}

test('only the holder of the live fence is exempt from the policy: for a result, under that request, while the work lives', () => {
  const work = begin()
  const other = good(desk.say('ada', 'post', room, { text: 'x', args: { ...post, kind: 'request' } })).id
  desk.tell(work, claimed)
  good(
    desk.say('ada', 'room.policy.set', room, {
      args: { set: { ...openPolicy, reply: 'none', promotion: 'moderate' } },
    }),
  )
  const reply = (who: string, more: object = {}) =>
    code(desk.say(who, 'post', room, { text: `by ${who}`, args: { ...post, kind: 'result', replyTo: work, ...more } }))
  expect(reply('eve')).toBe('room_reply_restricted')
  expect(reply('bob', { kind: 'note' })).toBe('room_reply_restricted')
  expect(reply('bob', { replyTo: other })).toBe('room_reply_restricted')
  const posted = good(
    desk.say('bob', 'post', room, { text: 'buy this', args: { ...post, kind: 'result', replyTo: work } }),
  )
  expect(posted.reply.screen).toBeUndefined()
  // The board's own hide of it, requested before the claim, comes too late.
  expect(code(desk.say('board', 'room.hide', room, { ...about(posted.id), via: 'board' }))).toBe('wrong_state')
  desk.tell(work, { state: 'open', worker: '', fence: 0, states: [] })
  expect(reply('bob')).toBe('room_reply_restricted')
  desk.tell(work, { state: 'accepted', live: false, worker: person('bob'), fence: 1, states: [] })
  expect(reply('bob')).toBe('room_reply_restricted')
})
