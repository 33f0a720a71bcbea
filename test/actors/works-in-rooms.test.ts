/** What a room does about the works in it: marks, results, what nobody can do to either, and what the market hears. */
import { createHash } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { openPolicy } from '../../actors/rooms/policy.ts'
import type { Observation, TellArgs } from '../../actors/works/letters.ts'
import { resultSha256 } from '../../actors/works/result-hash.ts'
import { type Decided, Desk, person } from '../support/desk.ts'

let desk = new Desk()
const room = 'den'
const post = { page: '', kind: '', replyTo: '', supersedes: '', attachments: [], ttl: 0, proofBits: 0 }

afterEach(() => {
  // Whatever a test has done, a replay and a snapshot know the same.
  const { replayed, unpacked } = desk.again()
  const packed = JSON.stringify(desk.state.bound.pack())
  expect(JSON.stringify(replayed.bound.pack())).toBe(packed)
  expect(JSON.stringify(unpacked.bound.pack())).toBe(packed)
})

/** A room of ada, who is also the requester, with bob as its member, and a request posted by work.create. */
function begin(visibility: 'public' | 'private' = 'public'): string {
  desk = new Desk()
  good(desk.say('ada', 'room.create', room, { args: { visibility, members: [person('bob')], text: '' } }))
  return good(desk.say('ada', 'work.post', room, { text: 'please', args: asRequest('') })).id
}

function asRequest(work: string) {
  return { work, reviewer: '', page: '', proofBits: 0 }
}

function good(decided: Decided): Extract<Decided, { ok: true }> {
  if (!decided.ok) throw new Error(`${decided.refusal.code}: ${decided.refusal.message}`)
  return decided
}

function code(decided: Decided): string {
  return decided.ok ? '' : decided.refusal.code
}

let tells = 0
function tell(work: string, more: Partial<TellArgs> = {}): void {
  tells += 1
  const told: TellArgs = {
    work,
    n: tells,
    state: 'open',
    live: true,
    requester: person('ada'),
    reviewer: person('ada'),
    worker: '',
    fence: 0,
    result: '',
    sha256: '',
    states: [['open', desk.now]],
    ...more,
  }
  good(desk.say('board', 'work.tell', room, { args: told, via: 'receiver' }))
}

const claimed = { state: 'claimed', worker: person('bob'), fence: 1, states: [] } as const

function deliver(work: string, text = 'done', who = 'bob'): string {
  return good(desk.say(who, 'post', room, { text, args: { ...post, kind: 'result', replyTo: work } })).id
}

function bind(work: string, result: string, who = 'bob') {
  const { reply } = good(desk.say(who, 'work.bind', room, { args: { work, result }, via: 'receiver' }))
  return reply as { id?: string; sha256?: string; author?: string; reply_to?: string; fault?: { code: string } }
}

function heard(): Omit<Observation, 'work' | 'n'>[] {
  return desk.state.bound.unheard().map(({ work, n, ...what }) => what)
}

const about = (event: string) => ({ args: { event, reason: 'because' } })

test('work.create posts the request and marks it; the same letter again has the same verdict and no effect', () => {
  desk = new Desk()
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

test('a room that refuses keeps its refusal for the command, whatever changes; another command is decided anew', () => {
  desk = new Desk()
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

test('an event is made a request only by its author, at the top of its thread, of its kind, without ttl, shown, and once', () => {
  desk = new Desk()
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

test('a request changes by work.edit alone, and stays with its author from claim to settlement', () => {
  const work = begin()
  tell(work)
  const supersede = () => desk.say('ada', 'post', room, { text: 'other', args: { ...post, supersedes: work } })
  expect(code(supersede())).toBe('wrong_state')
  const edit = good(desk.say('ada', 'work.version', room, { text: 'better', args: asRequest(work) }))
  expect(edit.reply).toMatchObject({ taken: true, versions: 2, version: edit.id })
  for (const state of ['claimed', 'submitted', 'revision', 'rejected', 'disputed'] as const) {
    tell(work, { ...claimed, state })
    expect([state, code(desk.say('ada', 'event.redact', room, about(work)))]).toEqual([state, 'wrong_state'])
    expect(code(desk.say('ada', 'event.redact', room, about(edit.id)))).toBe('wrong_state')
  }
  tell(work, { state: 'accepted', live: false, worker: person('bob'), fence: 1 })
  good(desk.say('ada', 'event.redact', room, about(work)))
  expect(heard()).toEqual([{ event: 'request', change: 'redacted', by: 'author' }])
})

test('a moderator may take a request away: the market hears of it, who did it, and once', () => {
  const work = begin()
  tell(work, claimed)
  good(desk.say('ada', 'room.moderator.add', room, { args: { target: person('mia') } }))
  good(desk.say('op', 'room.hide', room, { ...about(work), operator: true }))
  good(desk.say('op', 'room.restore', room, { ...about(work), operator: true }))
  good(desk.say('op', 'event.redact', room, { ...about(work), operator: true }))
  expect(heard()).toEqual([
    { event: 'request', change: 'hidden', by: 'other' },
    { event: 'request', change: 'restored', by: 'other' },
    { event: 'request', change: 'redacted', by: 'other' },
  ])
  expect(desk.state.bound.unheard().map(({ n }) => n)).toEqual([1, 2, 3])
  good(desk.say('board', 'work.observed', room, { args: { work, n: 2 } }))
  expect(heard()).toHaveLength(1)
  expect(good(desk.say('board', 'work.observed', room, { args: { work, n: 2 } })).records).toBe(0)
})

test('the hash of a result is that of its text, then one line for each file', () => {
  const sha = (text: string) => createHash('sha256').update(text).digest('hex')
  expect(resultSha256('done', [])).toBe(sha('done'))
  expect(resultSha256('wörd\n', ['a'.repeat(64), 'b'.repeat(64)])).toBe(
    sha(`wörd\n\n${'a'.repeat(64)}\n${'b'.repeat(64)}`),
  )
})

test('a result is a reply of the worker to the request, shown, without ttl, and nobody said it before', () => {
  const work = begin()
  tell(work)
  const posted = (more: object, who = 'bob', text = 'mine') =>
    good(desk.say(who, 'post', room, { text, args: { ...post, replyTo: work, ...more } })).id
  const mine = posted({})
  const fault = (result: string, who = 'bob') => bind(work, result, who).fault?.code ?? 'bound'
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
  expect(bind(work, mine)).toMatchObject({ id: mine, author: person('bob'), reply_to: work })
})

test('a result counts as its newest version, named by any of them; an edit before it is taken is said behind it', () => {
  const work = begin()
  tell(work, claimed)
  const result = deliver(work, 'draft')
  const edit = good(desk.say('bob', 'post', room, { text: 'final', args: { ...post, supersedes: result } })).id
  const { id, sha256 } = bind(work, edit)
  expect([id, sha256]).toEqual([result, resultSha256('final', [])])
  good(desk.say('bob', 'post', room, { text: 'swindle', args: { ...post, supersedes: result } }))
  expect(heard()).toEqual([])
  tell(work, { ...claimed, state: 'submitted', result, sha256: sha256! })
  const swindle = { event: 'result', change: 'edited', by: 'author' }
  expect(heard()).toEqual([{ ...swindle, sha256: resultSha256('swindle', []) }])
  good(desk.say('bob', 'post', room, { text: 'more', args: { ...post, supersedes: result } }))
  good(desk.say('bob', 'event.redact', room, about(result)))
  expect(heard().slice(1)).toEqual([
    { ...swindle, sha256: resultSha256('more', []) },
    { ...swindle, change: 'redacted' },
  ])
})

test('what the market did not take is let go, and may be bound again', () => {
  const work = begin()
  tell(work, claimed)
  const result = deliver(work)
  const bound = good(desk.say('bob', 'work.bind', room, { text: 'x', args: { work, result } }))
  expect(desk.state.bound.unsettled()).toEqual([{ work, command: bound.id, result }])
  good(desk.say('board', 'work.unbind', room, { args: { work, command: bound.id } }))
  expect(desk.state.bound.unsettled()).toEqual([])
  expect(good(desk.say('board', 'work.unbind', room, { args: { work, command: bound.id } })).records).toBe(0)
  expect(bind(work, result).fault).toBeUndefined()
})

/** What an owner who is the requester can do to keep a worker from delivering, or a result from counting, before it is submitted. */
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
      tell(work, claimed)
      hinder('', work)
      const result = deliver(work, 'the result')
      hinder(result, work)
      const { sha256, fault } = bind(work, result)
      expect([fault, sha256]).toEqual([undefined, resultSha256('the result', [])])
      tell(work, { ...claimed, state: 'submitted', result, sha256: sha256! })
      hinder(result, work)
      for (const { event, by, change } of heard()) {
        if (event === 'result') expect([by, change === 'edited']).toEqual(['other', false])
      }
      expect(desk.state.bound.liveWorkOf(desk.state.board.rooms.get(room)!.number, person('bob'))).toBe(work)
    })
  }
}

test('only the holder of the live fence is free of the policy: for a result, under that request, while the work lives', () => {
  const work = begin()
  const other = good(desk.say('ada', 'post', room, { text: 'x', args: { ...post, kind: 'request' } })).id
  tell(work, claimed)
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
  // The board's own hide of it, asked for before the claim, comes too late.
  expect(code(desk.say('board', 'room.hide', room, { ...about(posted.id), via: 'board' }))).toBe('wrong_state')
  tell(work, { state: 'open', worker: '', fence: 0, states: [] })
  expect(reply('bob')).toBe('room_reply_restricted')
  tell(work, { state: 'accepted', live: false, worker: person('bob'), fence: 1, states: [] })
  expect(reply('bob')).toBe('room_reply_restricted')
})

test('a tell brings its notice: both in one turn, each once, and one that is missing is made up for', () => {
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
  expect([board.kind(slot), board.events.parent[slot], bound.find(work)?.told?.n]).toEqual([
    'notice',
    board.events.find(Buffer.from(work, 'hex')),
    1,
  ])
  expect(JSON.stringify(bound.find(work)?.told)).not.toContain('notice')
  // Told by an earlier build, which posted notices later.
  expect([say({ ...args, n: 2 }), say({ ...noticed('Claimed'), n: 2 })]).toEqual([1, 1])
})

test('a tell that is older, or comes twice, is not heard; parties go free when all is settled', () => {
  const work = begin('private')
  tell(work, claimed)
  const remove = () => code(desk.say('ada', 'room.member.remove', room, { args: { target: person('bob') } }))
  expect(remove()).toBe('wrong_state')
  const { told } = desk.state.bound.find(work)!
  const old = { ...told!, n: told!.n - 1, state: 'accepted', live: false }
  expect(good(desk.say('board', 'work.tell', room, { args: old }))).toMatchObject({
    records: 0,
    reply: { isPublic: false },
  })
  expect(remove()).toBe('wrong_state')
  tell(work, { state: 'refunded', live: false, worker: person('bob'), fence: 1, states: [] })
  expect(remove()).toBe('')
})
