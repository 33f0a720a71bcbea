/** What a room does about the works in it: requests and their marks, what it is notified of, and what it tells the market. */
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { person } from '../support/desk.ts'
import { about, asRequest, claimed, code, good, post, room, WorkDesk } from '../support/work-desk.ts'

let desk = new WorkDesk()

afterEach(() => desk.expectSameAgain())

function begin(visibility: 'public' | 'private' = 'public'): string {
  desk = new WorkDesk()
  return desk.begin(visibility)
}

test('work.create posts the request and marks it; the same letter again has the same verdict and no effect', () => {
  desk = new WorkDesk()
  good(desk.say('ada', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } }))
  const signed = Buffer.from(JSON.stringify({ command: { text: 'please' } }))
  const work = createHash('sha256').update(signed).digest('hex').slice(0, 32)
  const first = good(desk.letter('ada', 'work.post', room, { signed, args: asRequest(work) }))
  expect(first.reply).toEqual({ taken: true, version: work, versions: 1, isPublic: true, page: 'main' })
  const again = good(desk.letter('ada', 'work.post', room, { signed, args: asRequest(work) }))
  expect([again.reply, again.records]).toEqual([first.reply, 0])
  const slot = desk.state.board.events.find(Buffer.from(work, 'hex'))
  expect([desk.state.board.kind(slot), desk.state.bound.find(work)?.work]).toEqual(['request', work])
})

test('a room remembers its refusal of a command, whatever changes; another command is decided anew', () => {
  desk = new WorkDesk()
  good(desk.say('ada', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } }))
  const policy = (set: object) => good(desk.say('ada', 'room.policy.set', room, { args: { set } }))
  policy({ write: 'owner' })
  const signed = Buffer.from(JSON.stringify({ command: { text: 'please' } }))
  const ask = () => good(desk.letter('bob', 'work.post', room, { signed, args: asRequest('00') })).reply
  const refused = { taken: false, refusal: { code: 'room_write_restricted' } }
  expect(ask()).toMatchObject(refused)
  policy({ write: 'open' })
  expect(ask()).toMatchObject(refused)
  expect(desk.state.board.events.count).toBe(0)
  expect(good(desk.say('bob', 'work.post', room, { text: 'please', args: asRequest('00') })).reply).toMatchObject({
    taken: true,
  })
})

test('only the author makes an event a request, and it must be a visible thread root of that kind, without ttl, only once', () => {
  desk = new WorkDesk()
  good(desk.say('ada', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } }))
  const posted = (more: object, who = 'ada') =>
    good(desk.say(who, 'post', room, { text: 'x', args: { ...post, kind: 'request', ...more } })).id
  const mark = (work: string, who = 'ada') => {
    const { reply } = good(desk.say(who, 'work.mark', room, { args: asRequest(work) }))
    return (reply as { refusal?: { code: string } }).refusal?.code ?? 'taken'
  }
  const plain = posted({})
  const hidden = posted({})
  good(desk.say('ada', 'room.hide', room, about(hidden)))
  const edited = posted({})
  const edit = posted({ supersedes: edited })
  expect({
    unknown: mark('ab'.repeat(16)),
    others: mark(plain, 'bob'),
    reply: mark(posted({ replyTo: plain })),
    note: mark(posted({ kind: 'note' })),
    ttl: mark(posted({ ttl: 60 })),
    hidden: mark(hidden),
    version: mark(edit),
    plain: mark(plain),
    twice: mark(plain),
    edited: mark(edited),
  }).toEqual({
    unknown: 'not_found',
    others: 'forbidden',
    reply: 'wrong_state',
    note: 'wrong_state',
    ttl: 'wrong_state',
    hidden: 'wrong_state',
    version: 'wrong_state',
    plain: 'taken',
    twice: 'conflict',
    edited: 'taken',
  })
})

test('a request changes only by work.edit, and stays with its author from claim to settlement', () => {
  const work = begin()
  desk.tell(work)
  const supersede = () => desk.say('ada', 'post', room, { text: 'other', args: { ...post, supersedes: work } })
  expect(code(supersede())).toBe('wrong_state')
  const edit = good(desk.say('ada', 'work.version', room, { text: 'better', args: asRequest(work) }))
  expect(edit.reply).toMatchObject({ taken: true, versions: 2, version: edit.id })
  for (const state of ['claimed', 'submitted', 'revision', 'rejected', 'disputed'] as const) {
    desk.tell(work, { ...claimed, state })
    expect([state, code(desk.say('ada', 'event.redact', room, about(work)))]).toEqual([state, 'wrong_state'])
    expect(code(desk.say('ada', 'event.redact', room, about(edit.id)))).toBe('wrong_state')
  }
  desk.tell(work, { state: 'accepted', live: false, worker: person('bob'), fence: 1 })
  good(desk.say('ada', 'event.redact', room, about(work)))
  expect(desk.heard()).toEqual([{ event: 'request', change: 'redacted', by: 'author' }])
})

test('a moderator may remove a request: the market learns of it and of the moderator, once', () => {
  const work = begin()
  desk.tell(work, claimed)
  good(desk.say('ada', 'room.moderator.add', room, { args: { target: person('mia') } }))
  good(desk.say('op', 'room.hide', room, { ...about(work), operator: true }))
  good(desk.say('op', 'room.restore', room, { ...about(work), operator: true }))
  good(desk.say('op', 'event.redact', room, { ...about(work), operator: true }))
  expect(desk.heard()).toEqual([
    { event: 'request', change: 'hidden', by: 'other' },
    { event: 'request', change: 'restored', by: 'other' },
    { event: 'request', change: 'redacted', by: 'other' },
  ])
  expect(desk.state.bound.unreported().map(({ n }) => n)).toEqual([1, 2, 3])
  good(desk.say('board', 'work.observed', room, { args: { work, n: 2 } }))
  expect(desk.heard()).toHaveLength(1)
  expect(good(desk.say('board', 'work.observed', room, { args: { work, n: 2 } })).records).toBe(0)
})

test('a notification brings its notice: both in one turn, each once, and a missing one is made up for', () => {
  const work = begin()
  const told = { work, n: 1, state: 'open', live: true, requester: person('ada'), reviewer: person('ada') } as const
  const args = { ...told, worker: '', fence: 0, result: '', sha256: '', states: [] }
  const noticed = (name: string) => {
    const signed = Buffer.from(JSON.stringify({ command: { text: name } }))
    const by = { key: Buffer.alloc(32, 1), sig: Buffer.alloc(64), signed }
    return { ...args, notice: { sha: createHash('sha256').update(signed).digest(), by, page: 'main' } }
  }
  const say = (letter: object) => good(desk.say('board', 'work.tell', room, { args: letter, via: 'receiver' })).records
  expect([say(noticed('Open')), say(noticed('Open')), say(args)]).toEqual([2, 0, 0])
  const { board, bound } = desk.state
  const slot = board.events.count - 1
  expect([board.kind(slot), board.events.parent(slot), bound.find(work)?.lastTell?.n]).toEqual([
    'notice',
    board.events.find(Buffer.from(work, 'hex')),
    1,
  ])
  expect(JSON.stringify(bound.find(work)?.lastTell)).not.toContain('notice')
  // Notified by an earlier build, which posted notices later.
  expect([say({ ...args, n: 2 }), say({ ...noticed('Claimed'), n: 2 })]).toEqual([1, 1])
})

test('an older or repeated notification is ignored; parties are free once all is settled', () => {
  const work = begin('private')
  desk.tell(work, claimed)
  const remove = () => code(desk.say('ada', 'room.member.remove', room, { args: { target: person('bob') } }))
  expect(remove()).toBe('wrong_state')
  const { lastTell: told } = desk.state.bound.find(work)!
  const old = { ...told!, n: told!.n - 1, state: 'accepted', live: false }
  expect(good(desk.say('board', 'work.tell', room, { args: old }))).toMatchObject({
    records: 0,
    reply: { isPublic: false },
  })
  expect(remove()).toBe('wrong_state')
  desk.tell(work, { state: 'refunded', live: false, worker: person('bob'), fence: 1, states: [] })
  expect(remove()).toBe('')
})
