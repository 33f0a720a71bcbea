/** What a room does about the works in it: requests and their marks, what it is notified of, and what it tells the market. */
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { person } from '../support/shard-harness.ts'
import {
  accepted,
  claimedState,
  moderationArgs,
  postArgs,
  refusalCode,
  requestArgs,
  room,
  WorkShardHarness,
} from '../support/work-shard-harness.ts'

let shard = new WorkShardHarness()

afterEach(() => shard.expectSameAfterReplay())

function begin(visibility: 'public' | 'private' = 'public'): string {
  shard = new WorkShardHarness()
  return shard.createRoomAndRequest(visibility)
}

test('work.create posts the request and marks it; the same letter again has the same verdict and no effect', () => {
  shard = new WorkShardHarness()
  accepted(shard.send('ada', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } }))
  const signed = Buffer.from(JSON.stringify({ command: { text: 'please' } }))
  const work = createHash('sha256').update(signed).digest('hex').slice(0, 32)
  const first = accepted(shard.decide('ada', 'work.post', room, { signed, args: requestArgs(work) }))
  expect(first.reply).toEqual({ taken: true, version: work, versions: 1, isPublic: true, page: 'main' })
  const again = accepted(shard.decide('ada', 'work.post', room, { signed, args: requestArgs(work) }))
  expect([again.reply, again.records]).toEqual([first.reply, 0])
  const slot = shard.state.board.events.find(Buffer.from(work, 'hex'))
  expect([shard.state.board.kind(slot), shard.state.bound.find(work)?.work]).toEqual(['request', work])
})

test('a room remembers its refusal of a command, whatever changes; another command is decided anew', () => {
  shard = new WorkShardHarness()
  accepted(shard.send('ada', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } }))
  const policy = (set: object) => accepted(shard.send('ada', 'room.policy.set', room, { args: { set } }))
  policy({ write: 'owner' })
  const signed = Buffer.from(JSON.stringify({ command: { text: 'please' } }))
  const ask = () => accepted(shard.decide('bob', 'work.post', room, { signed, args: requestArgs('00') })).reply
  const refused = { taken: false, refusal: { code: 'room_write_restricted' } }
  expect(ask()).toMatchObject(refused)
  policy({ write: 'open' })
  expect(ask()).toMatchObject(refused)
  expect(shard.state.board.events.count).toBe(0)
  expect(
    accepted(shard.send('bob', 'work.post', room, { text: 'please', args: requestArgs('00') })).reply,
  ).toMatchObject({
    taken: true,
  })
})

test('only the author makes an event a request, and it must be a visible thread root of that kind, without ttl, only once', () => {
  shard = new WorkShardHarness()
  accepted(shard.send('ada', 'room.create', room, { args: { visibility: 'public', members: [], text: '' } }))
  const posted = (more: object, who = 'ada') =>
    accepted(shard.send(who, 'post', room, { text: 'x', args: { ...postArgs, kind: 'request', ...more } })).id
  const mark = (work: string, who = 'ada') => {
    const { reply } = accepted(shard.send(who, 'work.mark', room, { args: requestArgs(work) }))
    return (reply as { refusal?: { code: string } }).refusal?.code ?? 'taken'
  }
  const plain = posted({})
  const hidden = posted({})
  accepted(shard.send('ada', 'room.hide', room, moderationArgs(hidden)))
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
  shard.tell(work)
  const supersede = () => shard.send('ada', 'post', room, { text: 'other', args: { ...postArgs, supersedes: work } })
  expect(refusalCode(supersede())).toBe('wrong_state')
  const edit = accepted(shard.send('ada', 'work.version', room, { text: 'better', args: requestArgs(work) }))
  expect(edit.reply).toMatchObject({ taken: true, versions: 2, version: edit.id })
  for (const state of ['claimed', 'submitted', 'revision', 'rejected', 'disputed'] as const) {
    shard.tell(work, { ...claimedState, state })
    expect([state, refusalCode(shard.send('ada', 'event.redact', room, moderationArgs(work)))]).toEqual([
      state,
      'wrong_state',
    ])
    expect(refusalCode(shard.send('ada', 'event.redact', room, moderationArgs(edit.id)))).toBe('wrong_state')
  }
  shard.tell(work, { state: 'accepted', live: false, worker: person('bob'), fence: 1 })
  accepted(shard.send('ada', 'event.redact', room, moderationArgs(work)))
  expect(shard.unreported()).toEqual([{ event: 'request', change: 'redacted', by: 'author' }])
})

test('a moderator may remove a request: the market learns of it and of the moderator, once', () => {
  const work = begin()
  shard.tell(work, claimedState)
  accepted(shard.send('ada', 'room.moderator.add', room, { args: { target: person('mia') } }))
  accepted(shard.send('op', 'room.hide', room, { ...moderationArgs(work), operator: true }))
  accepted(shard.send('op', 'room.restore', room, { ...moderationArgs(work), operator: true }))
  accepted(shard.send('op', 'event.redact', room, { ...moderationArgs(work), operator: true }))
  expect(shard.unreported()).toEqual([
    { event: 'request', change: 'hidden', by: 'other' },
    { event: 'request', change: 'restored', by: 'other' },
    { event: 'request', change: 'redacted', by: 'other' },
  ])
  expect(shard.state.bound.unreported().map(({ n }) => n)).toEqual([1, 2, 3])
  accepted(shard.send('board', 'work.observed', room, { args: { work, n: 2 } }))
  expect(shard.unreported()).toHaveLength(1)
  expect(accepted(shard.send('board', 'work.observed', room, { args: { work, n: 2 } })).records).toBe(0)
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
  const say = (letter: object) =>
    accepted(shard.send('board', 'work.tell', room, { args: letter, via: 'receiver' })).records
  expect([say(noticed('Open')), say(noticed('Open')), say(args)]).toEqual([2, 0, 0])
  const { board, bound } = shard.state
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
  shard.tell(work, claimedState)
  const remove = () => refusalCode(shard.send('ada', 'room.member.remove', room, { args: { target: person('bob') } }))
  expect(remove()).toBe('wrong_state')
  const { lastTell: told } = shard.state.bound.find(work)!
  const old = { ...told!, n: told!.n - 1, state: 'accepted', live: false }
  expect(accepted(shard.send('board', 'work.tell', room, { args: old }))).toMatchObject({
    records: 0,
    reply: { isPublic: false },
  })
  expect(remove()).toBe('wrong_state')
  shard.tell(work, { state: 'refunded', live: false, worker: person('bob'), fence: 1, states: [] })
  expect(remove()).toBe('')
})
